"""Chains alone, together, and weighted: ``python benchmarks/stacking.py FOLDER [DRAWS] [CORPUS...]``.

FOLDER holds enron_text/enron_ham_1000x1400.npz, enron_network/enron161.npz and icews/icews_tensor.npz; Reuters comes
with the extra ``demo``. Every corpus is given noise at two levels, seeded, DRAWS times (2), and fitted by four chains
(150 sweeps of tuning, 100 draws). Printed are the predictive log score of the true counts, per token, of the best and
of the worst chain, of all chains with equal weights and with those of stacking; the stacking weights; and the best that
any weights would reach, which nobody can know who does not have the true counts.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

import countveil as cv
from countveil.experiments.reuters import load_reuters
from countveil.fit.weighting import draws_by_chain
from countveil.inference.stacking import stacking_weights
from countveil.laws.counts.protocol import parameters_at

SAMPLING = {"chains": 4, "tune": 150, "draws": 100, "threads": 1, "progress": False}


def corpora(folder):
    """Every corpus by its name, when it is asked for: true counts, cells that nobody reports, the model, levels."""

    def network():
        counts = np.load(folder / "enron_network/enron161.npz")["Y"]
        hidden = np.eye(len(counts), dtype=bool)
        return np.where(hidden, 0, counts), hidden, cv.BlockModel(10), (1.0, 3.0)

    def events():
        found = np.load(folder / "icews/icews_tensor.npz")
        tensor = np.zeros(found["shape"], dtype=int)
        tensor[tuple(found["subs"].T)] = found["counts"]
        return tensor[..., -1], None, cv.TensorModel(25), (1.0, 3.0)

    def text():
        counts = sp.load_npz(folder / "enron_text/enron_ham_1000x1400.npz").toarray()
        return counts, None, cv.TopicModel(50), (1.0, 2.0)

    return {
        "reuters": lambda: (load_reuters().counts, None, cv.TopicModel(50), (1.0, 2.0)),
        "network": network,
        "events": events,
        "text": text,
    }


def scores_of_chains(fit, counts, hidden):
    """(cells, chains) log of the mean over a chain's draws of P(true count), of the cells that were seen."""
    true, found = fit.as_matrix(counts), []
    seen = np.ones(true.shape, dtype=bool) if hidden is None else ~fit.as_matrix(hidden)
    likelihood, true, (rows, columns) = fit.model_.likelihood, true[seen], np.nonzero(seen)
    for draws in draws_by_chain(fit):
        total, n = np.full(true.shape, -np.inf), 0
        for (theta, phi), parameters in draws:
            own = parameters_at(likelihood, parameters, rows, columns)
            np.logaddexp(total, likelihood.log_mass(true, (theta @ phi.T)[seen], own), out=total)
            n += 1
        found.append(total - np.log(n))
    return np.stack(found, axis=1)


def main():
    warnings.simplefilter("ignore")
    known = corpora(Path(sys.argv[1]))
    n_draws = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    print("| data | epsilon/N | worst chain | best chain | equal | stacked | best possible | weights | s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for name in sys.argv[3:] or known:
        counts, hidden, model, levels = known[name]()
        for level in levels:
            for draw in range(n_draws):
                rng, alpha = np.random.default_rng([draw, int(level)]), np.exp(-level)
                noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
                data = cv.PrivatizedCounts(counts + noise[0] - noise[1], alpha, hidden)
                started = time.process_time()
                fit = model.set_params(seed=draw, weights="stacked", **SAMPLING).fit(data)
                seconds = time.process_time() - started
                scores = scores_of_chains(fit, counts, hidden)
                tokens = counts.sum()

                def of(weights, scores=scores, tokens=tokens):
                    return logsumexp(scores, axis=1, b=weights).sum() / tokens

                single = scores.sum(axis=0) / tokens
                both = of(np.full(4, 0.25)), of(fit.weights_), of(stacking_weights(scores))
                print(
                    f"| {name} | {level:g} | {single.min():.4f} | {single.max():.4f} | "
                    + " | ".join(f"{value:.4f}" for value in both)
                    + f" | {' '.join(f'{w:.2f}' for w in fit.weights_)} | {seconds:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
