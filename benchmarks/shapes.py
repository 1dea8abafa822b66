"""Learned shapes of the priors or a fixed one, on real and planted data: the tables behind the default.

python benchmarks/shapes.py FOLDER [DRAWS] [CORPUS...]

FOLDER holds enron_text/enron_ham_1000x1400.npz, enron_network/enron161.npz and icews/icews_tensor.npz; Reuters comes
with the extra ``demo``. Every corpus is given noise at epsilon/N = 1 and 2, seeded, DRAWS times (2), and fitted by four
chains with either prior. Printed are means over noise draws: the predictive log score per token of the first chain
alone and of all four; the sum of the true counts by the fit and by the reports, in units of the true one; seconds of a
sweep; and the shapes that were learned. Differences from the fixed shape have their standard deviation over noise draws
in brackets.

python benchmarks/shapes.py --planted [DATA SETS]

prints how often 90% intervals of the top words of planted topics hold the truth (theta ~ Dirichlet(.3), phi ~
Dirichlet(.1), counts of mean 1, epsilon/N = 1), and how much of the truth lies above them, for either prior and for the
shapes of the truth. Words are those that the fit ranks first; topics are matched to the true ones.
"""

import sys
import time
import warnings
from copy import copy
from pathlib import Path

import likelihoods
import numpy as np

import countveil as cv
from countveil.evaluation import match_topics, predictive_log_score

SAMPLING = {"chains": 4, "tune": 100, "draws": 100, "threads": 1, "progress": False}
LONG = {"chains": 1, "tune": 300, "draws": 300}  # for coverage
PRIORS = {"shape .1": 0.1, "learned": "learned"}
LEVELS = 1.0, 2.0
CASES = {
    "Reuters, K = 20": ("reuters", 20), "Reuters, K = 50": ("reuters", 50), "Enron text, K = 20": ("text", 20),
    "Enron text, K = 50": ("text", 50), "Enron network, C = 10": ("network", 10), "ICEWS 2014, K = 25": ("events", 25),
}  # fmt: skip
THETA, PHI, ROWS, WORDS, TOPICS, TOP = 0.3, 0.1, 300, 200, 10, 8  # of planted data


def noisy(counts, mask, level, draw):
    """Reports of these counts with seeded noise."""
    rng, alpha = np.random.default_rng([draw, int(level)]), np.exp(-level)
    noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
    return cv.PrivatizedCounts(counts + noise[0] - noise[1], alpha, mask)


def first_chain(fit):
    """The fit as if it had one chain."""
    alone = copy(fit)
    alone.posterior_ = fit.posterior.isel(chain=[0])
    return alone


def measure(corpus, components, level, draw, shape):
    """(figures of one fit, its learned shapes by factor)."""
    data = noisy(corpus.counts, corpus.mask, level, draw)
    model = corpus.model(components, seed=draw, prior_shape=shape, **SAMPLING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        fit = model.fit(data)
        seconds = time.process_time() - started
    seen = np.ones(corpus.counts.shape, bool) if corpus.mask is None else ~corpus.mask
    scores = [predictive_log_score(corpus.counts, each, seen) for each in (first_chain(fit), fit)]
    totals, true = fit.totals(), corpus.counts[seen].sum()
    sweeps = SAMPLING["chains"] * (SAMPLING["tune"] + SAMPLING["draws"])
    draws = fit.posterior["posterior"]
    shapes = {name: float(draws[name].mean()) for name in draws.data_vars if name.endswith("_shape")}
    return np.array([*scores, totals.fitted / true, totals.reported / true, seconds / sweeps]), shapes


def compare(name, corpus, components, level, n_draws):
    """Print a row for either prior."""
    base = None
    for prior, shape in PRIORS.items():
        measured = [measure(corpus, components, level, draw, shape) for draw in range(n_draws)]
        found = np.array([figures for figures, _ in measured])
        base = found if base is None else base
        mean, gaps = found.mean(axis=0), (found - base)[:, :2]
        cells = [f"{mean[i]:.3f}" for i in range(2)]
        if found is not base and n_draws > 1:
            cells = [
                f"{cell} ({gap:+.3f}, sd {sd:.3f})"
                for cell, gap, sd in zip(cells, gaps.mean(axis=0), gaps.std(axis=0, ddof=1), strict=True)
            ]
        cells += [f"{mean[2]:.3f}", f"{mean[3]:.3f}", f"{1000 * mean[4]:.0f}"]
        shapes = {factor: np.mean([own[factor] for _, own in measured]) for factor in measured[0][1]}
        cells.append(", ".join(f"{value:.3f}" for value in shapes.values()))
        print(f"| {name} | {level:g} | {prior} | {' | '.join(cells)} |", flush=True)


def planted(seed):
    """(true topics (K, V), reports) of Poisson counts."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(WORDS, PHI), TOPICS)
    rates = rng.dirichlet(np.full(TOPICS, THETA), ROWS) @ topics * WORDS
    return topics, noisy(rng.poisson(rates), None, 1.0, seed)


def coverage(seed, shapes):
    """(share of true probabilities of top words inside their 90% intervals, above them, fitted total by reported)."""
    topics, data = planted(seed)
    priors = {"theta": (shapes[0], None), "phi": (shapes[1], None)}
    model = cv.PoissonFactorization(
        "dk,vk->dv", {"k": TOPICS}, names=("theta", "phi"), priors=priors, seed=seed,
        **SAMPLING | LONG,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = model.fit(data)
    draws = fit.posterior["posterior"]["phi"].transpose("chain", "draw", "k", "v").to_numpy()[0]
    draws = draws / draws.sum(axis=2, keepdims=True)
    means = draws.mean(axis=0)
    true = topics[match_topics(means, topics)]
    best = np.argsort(-means, axis=1)[:, :TOP]
    lower, upper = (np.take_along_axis(np.quantile(draws, q, axis=0), best, axis=1) for q in (0.05, 0.95))
    true = np.take_along_axis(true, best, axis=1)
    totals = fit.totals()
    return ((true >= lower) & (true <= upper)).mean(), (true > upper).mean(), totals.fitted / totals.reported


def main():
    if sys.argv[1] == "--planted":
        n = int(sys.argv[2]) if len(sys.argv) > 2 else 10
        print(
            "| shapes of theta, phi | coverage of 90% intervals | truth above them | total, fitted by reported |"
        )
        print("| --- | --- | --- | --- |")
        for name, shapes in {
            ".1, .1": (0.1, 0.1),
            "learned": ("learned",) * 2,
            ".3, .1": (THETA, PHI),
        }.items():
            found = np.array([coverage(seed, shapes) for seed in range(n)])
            mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(n)
            cells = (f"{m:.3f} ({e:.3f})" for m, e in zip(mean, error, strict=True))
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
        return
    n_draws = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    known = likelihoods.corpora(Path(sys.argv[1]))
    print(
        "| data | epsilon/N | prior | one chain | four chains | total, fitted | reported | ms a sweep | shapes |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for name, (corpus, components) in CASES.items():
        if corpus in (sys.argv[3:] or known):
            for level in LEVELS:
                compare(name, known[corpus](), components, level, n_draws)


if __name__ == "__main__":
    main()
