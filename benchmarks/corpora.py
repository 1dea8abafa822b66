"""One chain on real counts.

    python benchmarks/corpora.py FOLDER [DRAWS] [CORPUS ...] [--likelihood negative-binomial] [--plain]

FOLDER holds enron_text/enron_ham_1000x1400.npz, enron_network/enron161.npz and icews/icews_tensor.npz; Reuters comes
with the extra ``demo``. Every corpus is given noise at epsilon/N = 1 and 3, seeded, DRAWS times (3), and fitted by four
chains; corpora are named by how they begin. Printed are means over noise draws: the predictive log score per count of
each chain alone (its worst chain in brackets), that of all chains together, and the largest R-hat. With --plain chains
begin at least squares and make no moves. Counts are Poisson unless another likelihood is asked for. To compare with an
older checkout, which knows of none of this, set PYTHONPATH to its src.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, xlogy

import countveil as cv
from countveil.experiments.reuters import load_reuters

SAMPLING = {"chains": 4, "tune": 200, "draws": 100, "seed": 1, "threads": 2, "progress": False}
THIN = 4  # one draw in so many is scored
if "likelihood" in cv.TopicModel().get_params():
    SAMPLING["likelihood"] = "poisson"  # as older checkouts do


def corpora(folder):
    """(name, true counts, mask, model) of every corpus."""
    yield "Reuters, K = 20", load_reuters().counts, None, cv.TopicModel(20, **SAMPLING)
    text = sp.load_npz(folder / "enron_text/enron_ham_1000x1400.npz").toarray()
    yield "Enron text 1,000 x 1,400, K = 20", text, None, cv.TopicModel(20, **SAMPLING)
    network = np.load(folder / "enron_network/enron161.npz")["Y"]
    mask = np.eye(len(network), dtype=bool)
    yield "Enron network, C = 10", network, mask, cv.BlockModel(10, **SAMPLING)
    found = np.load(folder / "icews/icews_tensor.npz")
    tensor = np.zeros(found["shape"], dtype=int)
    tensor[tuple(found["subs"].T)] = found["counts"]
    # one year, so that a run takes minutes
    yield "ICEWS, last year, K = 25", tensor[..., -1], None, cv.TensorModel(25, **SAMPLING)


def summed_draws(counts, seen, model, whole, chain):
    """(cells,) log of the sum over some draws of a chain of P(count | draw)."""
    if SAMPLING.get("likelihood", "poisson") != "poisson":
        return summed_draws_of_any(counts, seen, model, whole, chain)
    total, true = np.full(int(seen.sum()), -np.inf), counts[seen]  # older checkouts have no such score
    for draw in range(0, SAMPLING["draws"], THIN):
        model.posterior_ = whole.isel(chain=[chain], draw=[draw])
        rate = model.rate().to_numpy()[seen]
        np.logaddexp(total, xlogy(true, rate) - rate - gammaln(true + 1.0), out=total)
    model.posterior_ = whole
    return total


def summed_draws_of_any(counts, seen, model, whole, chain):
    """The same under any likelihood."""
    from countveil.laws.counts.protocol import parameters_of_rows

    model.posterior_ = whole.isel(chain=[chain], draw=slice(None, None, THIN))
    likelihood, matrix, cells = model.model_.likelihood, model.as_matrix(counts), model.as_matrix(seen)
    total = np.full(int(seen.sum()), -np.inf)
    for (theta, phi), parameters in zip(model.matrix_draws(), model.parameter_draws(), strict=False):
        own = parameters_of_rows(likelihood, parameters, np.arange(len(matrix)))
        np.logaddexp(total, likelihood.log_mass(matrix, theta @ phi.T, own)[cells], out=total)
    model.posterior_ = whole
    return total


def scores(counts, mask, model, level, draw):
    """(mean over chains, worst chain, all chains, R-hat) on one noise draw."""
    rng, alpha = np.random.default_rng([draw, int(level)]), np.exp(-level)
    noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(cv.PrivatizedCounts(counts + noise[0] - noise[1], alpha, mask))
    seen = np.ones(counts.shape, dtype=bool) if mask is None else ~mask
    whole, tokens = model.posterior_, counts[seen].sum()
    chains = [summed_draws(counts, seen, model, whole, chain) for chain in range(SAMPLING["chains"])]
    n_draws = len(range(0, SAMPLING["draws"], THIN))
    alone = [(chain - np.log(n_draws)).sum() / tokens for chain in chains]
    together = (np.logaddexp.reduce(chains) - np.log(n_draws * len(chains))).sum() / tokens
    return np.mean(alone), np.min(alone), together, model.diagnostics().table["r_hat"].max()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("draws", nargs="?", type=int, default=3)
    parser.add_argument("corpora", nargs="*")
    parser.add_argument("--likelihood")
    parser.add_argument("--plain", action="store_true")
    asked = parser.parse_args()
    SAMPLING.update({"likelihood": asked.likelihood} if asked.likelihood else {})
    SAMPLING.update({"start": "least-squares", "moves": 0} if asked.plain else {})
    print(f"countveil of {Path(cv.__file__).parent}\n")
    print("| corpus | epsilon/N | one chain (worst) | four chains | R-hat |")
    print("| --- | --- | --- | --- | --- |")
    for name, counts, mask, model in corpora(asked.folder):
        if asked.corpora and not any(name.startswith(wanted) for wanted in asked.corpora):
            continue
        for level in (1.0, 3.0):
            found = np.array([scores(counts, mask, model, level, draw) for draw in range(asked.draws)])
            one, worst, four, r_hat = found.mean(axis=0)
            print(f"| {name} | {level:g} | {one:.4f} ({worst:.4f}) | {four:.4f} | {r_hat:.2f} |", flush=True)
            print("  one chain by draw:", np.round(found[:, 0], 5).tolist(), flush=True)


if __name__ == "__main__":
    main()
