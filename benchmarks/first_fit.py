"""Whether the first fit, with nothing chosen but a seed, is the right one: on real and on planted counts.

    python benchmarks/first_fit.py FOLDER FILE [DATA ...] [--levels 1 2] [--draws 0-2] [--settings default poisson ...]

FOLDER holds enron_text/enron_ham_1000x1400.npz, covariates/stm/poliblog5k.npz (of both texts 500 documents and 800
words are taken, those with most counts), enron_network/enron161.npz, and icews/icews_tensor.npz and icews_matrix.npz;
Reuters comes with the extra ``demo``. Counts get seeded two-sided geometric noise at epsilon/N = each of LEVELS, and
planted counts are new in every draw. Every finished fit is a line of FILE at once; those that FILE has are left out.
"poisson" and so on have chains 12, tune 200 and draws 50, and one likelihood each; "auto" and numbers, such as 10, are
the number of components, with everything else by default.

Columns: state and reason of the verdict ("nested": averages over chains are not steady, and "nested_of" is the quantity
that is steady least; "sums": sums of reports that the fit does not explain; "total"; "undetermined"); seconds of
processor time of the fit; log_score, the mean over cells of the log posterior predictive probability of the true counts
times cells per token, over 120 draws; counts and positive, how often randomised 90% intervals hold true counts given
their reports, of 20,000 cells, and of those with a positive report; rows_below, rows_above, columns_below and
columns_above, the shares of true sums by row and by column that are below, and above, the 90% intervals that
``countveil counts --sums`` prints; total_place, the place of the true sum of all counts among those of 100 drawn
tables, from 0 to 1; total_held is 1 where the 90% interval of it that is printed holds it; components, how many the
fit has.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

import countveil as cv
from countveil.evaluation.errors import covered, randomised_pit
from countveil.experiments.corpora import load_reuters
from countveil.laws.counts.protocol import parameters_of_rows

OTHERS = {
    "poisson": {"likelihood": "poisson"},
    "global": {"dispersion": "global"},
    "column": {"dispersion": "column"},
    "row": {"dispersion": "row"},
}
SAMPLING = {"chains": 12, "tune": 200, "draws": 50}
KEY = ["data", "level", "draw", "setting"]
COLUMNS = [*KEY, "state", "reason", "r_hat", "nested", "nested_of", "chains", "seconds", "log_score", "counts"]
COLUMNS += ["positive", "rows_below", "rows_above", "columns_below", "columns_above", "total_place", "total_held"]
COLUMNS += ["components"]
SAFE = "safe to report", "safe to report with support"
INTERVAL, CELLS, SCORED_DRAWS, TABLES, AT_ONCE = 0.9, 20_000, 120, 100, 20


def largest(counts, rows=500, columns=800):
    """The rows and columns with the largest sums, in their order."""
    row, column = (
        np.sort(np.argsort(-np.ravel(counts.sum(axis=a)), kind="stable")[:n]) for a, n in ((1, rows), (0, columns))
    )
    return counts[row][:, column].toarray().astype(int)


def planted_topics(rng):
    """Poisson counts of 300 documents with about 200 words each, 200 words, ten topics."""
    phi = rng.dirichlet(np.full(200, 0.1), 10)
    return rng.poisson(rng.dirichlet(np.full(10, 0.2), 300) * rng.gamma(4.0, 50.0, (300, 1)) @ phi)


def planted_communities(rng):
    """Poisson counts of 100 actors in five communities, about three for each pair."""
    theta = rng.dirichlet(np.full(5, 0.1), 100) * rng.gamma(2.0, 0.5, (100, 1))
    return rng.poisson(theta @ (2.0 + 30.0 * np.eye(5)) @ theta.T * 0.4)


def corpora(folder):
    """(true counts of a draw, model and its size) of every data set by its name; read when they are asked for."""

    def poliblog():
        found = np.load(folder / "covariates/stm/poliblog5k.npz")
        return largest(sp.csr_array((found["count"], (found["row"], found["col"])), shape=tuple(found["shape"])))

    def icews():
        found = np.load(folder / "icews/icews_tensor.npz")
        tensor = np.zeros(found["shape"], dtype=int)
        tensor[tuple(found["subs"].T)] = found["counts"]
        return tensor[..., -1]  # one year, so that a run takes minutes

    def enron():
        return largest(sp.csr_array(sp.load_npz(folder / "enron_text/enron_ham_1000x1400.npz")))

    def actors(name):
        return lambda rng: np.load(folder / name)["Y"].astype(int)

    return {
        "reuters": (lambda rng: load_reuters().counts, cv.TopicModel, 20),
        "enron-text": (lambda rng: enron(), cv.TopicModel, 20),
        "poliblog": (lambda rng: poliblog(), cv.TopicModel, 20),
        "enron-network": (actors("enron_network/enron161.npz"), cv.BlockModel, 10),
        "icews-network": (actors("icews/icews_matrix.npz"), cv.BlockModel, 10),
        "icews": (lambda rng: icews(), cv.TensorModel, 25),
        "planted-topics": (planted_topics, cv.TopicModel, 10),
        "planted-communities": (planted_communities, cv.BlockModel, 5),
    }


def release(counts, model, level, rng):
    """(Observations, their reports, which cells are seen) under seeded noise."""
    alpha = np.exp(-level)
    noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
    mask = np.eye(len(counts), dtype=bool) if model is cv.BlockModel else None
    seen = np.ones(counts.shape, dtype=bool) if mask is None else ~mask
    reports = counts + noise[0] - noise[1]
    return cv.PrivatizedCounts(reports, alpha, mask), reports, seen


def log_score(fit, counts, seen):
    """log of the mean over draws of P(count | draw), summed over cells, per token."""
    true, cells, likelihood = (fit._reader.as_matrix(counts), fit._reader.as_matrix(seen), fit.model_.likelihood)
    total, n = np.full(true.shape, -np.inf), 0
    for (theta, phi), parameters in fit._reader.even_draws(SCORED_DRAWS):
        own = parameters_of_rows(likelihood, parameters, np.arange(len(true)))
        np.logaddexp(total, likelihood.log_mass(true, theta @ phi.T, own), out=total)
        n += 1
    return (total[cells] - np.log(n)).sum() / true[cells].sum()


def missed_sums(fit, data, counts, seen):
    """Shares of the true sums by row, and by column, that are below and above the printed intervals."""
    true = np.where(seen, counts, 0)
    for axis, name in enumerate(list(fit._reader.axes)[:2]):
        sums = true.sum(axis=tuple(other for other in range(counts.ndim) if other != axis))
        table = fit.counts_table(data, by=name, interval=INTERVAL)
        yield from ((sums < table.lower).mean(), (sums > table.upper).mean())


def place_of_total(fit, data, counts, seen, rng):
    """The place of the true sum of all counts among those of drawn tables: uniform if all is right."""
    drawn, total = [], counts[seen].sum()
    for _ in range(TABLES // AT_ONCE):
        drawn += [table[seen].sum() for table in fit.predict_counts(AT_ONCE, rng, data).to_numpy()]
    below, same = (np.array(drawn) < total).sum(), (np.array(drawn) == total).sum()
    return (below + rng.random() * (same + 1)) / (TABLES + 1)


def reason_of(found):
    """Why a fit is not safe to report, in a word or two."""
    if found.state in SAFE:
        return ""
    wrong = () if found.mechanism is None else (*found.mechanism.found, *found.mechanism.misfits)
    said = {"nested": "are not steady", "total": "The sum of the true counts", "undetermined": "cannot be found"}
    reasons = [name for name, words in said.items() if words in found.verdict]
    reasons += ["sums"] if any("explain the sums" in each for each in wrong) else []
    reasons += ["spread"] if any("explain how far" in each for each in wrong) else []
    return " ".join(reasons) or "other"


def measure(made, model, size, level, draw, options):
    """All figures of one fit."""
    rng = np.random.default_rng([draw, round(10 * level)])
    counts = made(rng)
    data, reports, seen = release(counts, model, level, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        fit = model(size, seed=draw, threads=1, progress=False, **options).fit(data)
        seconds = time.process_time() - started
    return figures(fit, seconds, data, reports, counts, seen, rng)


def figures(fit, seconds, data, reports, counts, seen, rng):
    """Everything after the key."""
    found = fit.diagnostics()
    print(f"{found.verdict}\n{found.table.round(3)}", flush=True)
    steady = found.table["r_hat_nested"].drop("log-likelihood")
    cells, chosen = np.flatnonzero(seen), np.zeros(counts.shape, dtype=bool)
    chosen.ravel()[rng.choice(cells, min(CELLS, cells.size), replace=False)] = True
    pit = randomised_pit(counts, fit, rng, data, chosen)
    held = covered(pit, INTERVAL), covered(pit[reports[chosen] > 0], INTERVAL)
    agreement = found.table["r_hat"].max(), steady.max(), steady.idxmax()
    n_chains = fit.posterior["posterior"].sizes["chain"]
    said = str(found.state), reason_of(found)
    totals, true = fit.totals(), counts[seen].sum()
    ends = [float(each) for each in missed_sums(fit, data, counts, seen)]
    ends += [float(place_of_total(fit, data, counts, seen, rng)), int(totals.lower <= true <= totals.upper)]
    n_components = fit.model_.rows.sizes[fit.model_.spec.latent[0]]
    return [*said, *agreement, n_chains, seconds, log_score(fit, counts, seen), *held, *ends, n_components]


def summary(found):
    """One line per data set, level and setting: means over draws."""
    found = found.assign(
        safe=found["state"].isin(SAFE),
        rows=1.0 - found["rows_below"] - found["rows_above"],
        columns=1.0 - found["columns_below"] - found["columns_above"],
        total=found["total_held"],
        drawn_total=(found["total_place"] - 0.5).abs() <= 0.5 * INTERVAL,
        fits=1,
    )
    means = [
        "safe",
        "r_hat",
        "nested",
        "chains",
        "log_score",
        "counts",
        "positive",
        "rows",
        "columns",
        "total",
        "drawn_total",
    ]
    return found.groupby(["data", "setting", "level"], sort=False).agg(
        {"fits": "sum"} | dict.fromkeys([*means, "seconds"], "mean")
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("data", nargs="*", help="data sets; all without any")
    parser.add_argument("--levels", nargs="+", type=float, default=[1.0, 2.0])
    parser.add_argument("--draws", default="0-0", help="the first and the last noise draw")
    parser.add_argument(
        "--settings", nargs="+", default=["default"], help="default, auto, a number or " + ", ".join(OTHERS)
    )
    asked = parser.parse_args()
    known = corpora(asked.folder)
    first, last = map(int, asked.draws.split("-"))
    if not asked.file.exists():
        asked.file.write_text(",".join(COLUMNS) + "\n")
    done = {tuple(map(str, key)) for key in pd.read_csv(asked.file)[KEY].itertuples(index=False)}
    for draw in range(first, last + 1):
        for setting in asked.settings:
            options = SAMPLING | OTHERS[setting] if setting in OTHERS else {}
            for level in asked.levels:
                for name in asked.data or known:
                    key = name, level, draw, setting
                    if tuple(map(str, key)) in done:
                        continue
                    print(*key, flush=True)
                    made, model, size = known[name]
                    size = int(setting) if setting.isdigit() else "auto" if setting == "auto" else size
                    figures = measure(made, model, size, level, draw, options)
                    with asked.file.open("a", newline="") as file:
                        csv.writer(file, lineterminator="\n").writerow(
                            [*key, *(f"{x:.4f}" if isinstance(x, float) else x for x in figures)]
                        )
    with pd.option_context("display.width", 200, "display.max_columns", None):
        print(summary(pd.read_csv(asked.file)).round(3).to_string())


if __name__ == "__main__":
    main()
