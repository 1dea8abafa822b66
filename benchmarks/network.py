"""Bursty counts and their rivals on a network: every count scored, and links that were hidden from the fits.

    python benchmarks/network.py COUNTS.npz                 # every report off the diagonal is seen and scored
    python benchmarks/network.py COUNTS.npz --masks 5       # a tenth of the links hidden, by five masks

COUNTS.npz holds an array Y of true counts, such as enron_network/enron161.npz. Noise is simulated, seeded by its draw
and level; a mask is seeded by its number, and goes with the noise draw of that number. Everything is fitted by one
chain. A line for each fit, so that runs can be stopped, and go on with --draws or --first-mask.

Seen: the predictive log score per message (least squares: that of its rates as Poisson rates, raised to the floor that
is best for it, found with the true counts). Hidden: log predictive of the true count (of least squares again with the
best floor) and absolute errors of the mean and of the predictive median, means over hidden links, beside zero's.
"""

import argparse
import time
import warnings

import numpy as np

import countveil as cv
from countveil.evaluation import predictive_log_score
from countveil.inference.starts.alternating import least_squares
from countveil.planning.contenders import LEAST_SQUARES_ITERATIONS, rate_scores

POISSON = {"likelihood": "poisson"}
BURSTY = {"likelihood": "negative-binomial", "dispersion": "global"}
BY_COLUMN = BURSTY | {"dispersion": "column"}
FITS = {
    "Poisson": (False, POISSON),
    "bursty, one p": (False, BURSTY),
    "bursty, p by column": (False, BY_COLUMN),
    "naive Poisson": (True, POISSON),
    "naive bursty": (True, BURSTY),
}  # whether reports cut at zero are taken for counts, and the likelihood
SQUARES = "least squares"
HIDDEN, TABLES = 0.1, 200  # the share of links that a mask hides, and simulated tables whose median predicts


def reports(counts: np.ndarray, level: float, draw: int) -> np.ndarray:
    """Counts with two-sided geometric noise; the draws of ``likelihoods.py``."""
    rng = np.random.default_rng([draw, int(level)])
    noise = rng.geometric(1.0 - np.exp(-level), (2, *counts.shape))
    return counts + noise[0] - noise[1]


def hidden_links(size: int, number: int) -> np.ndarray:
    """True for a tenth of the cells off the diagonal."""
    return (np.random.default_rng([20, number]).random((size, size)) < HIDDEN) & ~np.eye(size, dtype=bool)


def squares(given: np.ndarray, unseen: np.ndarray, components: int, draw: int) -> np.ndarray:
    """Rates by nonnegative least squares; cells not seen are filled in with its own rates, round by round."""
    filled, none = np.where(unseen, given[~unseen].mean(), given), np.zeros(len(given))
    for _ in range(5):
        rng = np.random.default_rng(draw)
        theta, phi = least_squares(filled, none, components, rng, LEAST_SQUARES_ITERATIONS)
        filled = np.where(unseen, theta @ phi.T, given)
    return theta @ phi.T


def measure(counts, name, level, draw, components, hidden, sampling) -> str:
    """The figures of one fit, as the cells of a line."""
    diagonal, given = np.eye(len(counts), dtype=bool), reports(counts, level, draw)
    unseen = diagonal if hidden is None else diagonal | hidden
    cells = ~diagonal if hidden is None else hidden
    true, started = counts[cells], time.process_time()
    if name == SQUARES:
        scores = rate_scores(true, squares(given.astype(float), unseen, components, draw)[cells], True)
        per_token, mean_error, median_error = scores["log_score"], scores["mae"], np.nan
    else:
        naive, options = FITS[name]
        data = cv.NaiveCounts(given, unseen) if naive else cv.PrivatizedCounts(given, np.exp(-level), unseen)
        model = cv.BlockModel(
            components, seed=draw, chains=1, threads=1, progress=False, **sampling, **options
        )
        fit = model.fit(data)
        per_token = predictive_log_score(counts, fit, cells)
        mean_error, median_error = np.abs(fit.rate().to_numpy()[cells] - true).mean(), np.nan
        if hidden is not None:
            tables = fit.predict_counts(TABLES, np.random.default_rng(draw)).to_numpy()[:, cells]
            median_error = np.abs(np.median(tables, axis=0) - true).mean()
    seconds = f"{time.process_time() - started:.1f}"
    if hidden is None:
        return f"{per_token:.3f} | {mean_error:.3f} | {seconds}"
    found = (per_token * true.sum() / true.size, mean_error, median_error, true.mean())
    return " | ".join(["" if np.isnan(each) else f"{each:.3f}" for each in found] + [seconds])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("counts")
    parser.add_argument("--levels", nargs="+", type=float, default=[1.0, 2.0, 3.0], help="epsilon/N")
    parser.add_argument("--communities", nargs="+", type=int, default=[5, 10, 20])
    parser.add_argument("--draws", nargs="+", type=int, default=[0], help="numbers of noise draws")
    parser.add_argument("--masks", type=int, default=0, help="hide a tenth of the links, so many times")
    parser.add_argument("--first-mask", type=int, default=0)
    parser.add_argument("--fits", nargs="+", choices=[*FITS, SQUARES], default=[*FITS, SQUARES])
    parser.add_argument("--tune", type=int, default=150)
    parser.add_argument("--sweeps", type=int, default=150, help="kept, after --tune")
    options = parser.parse_args()
    counts = np.load(options.counts)["Y"]
    sampling = {"tune": options.tune, "draws": options.sweeps}
    masks = range(options.first_mask, options.first_mask + options.masks)
    runs = [(mask, hidden_links(len(counts), mask)) for mask in masks] or [(n, None) for n in options.draws]
    figures = "log predictive | mean's error | median's error | zero's" if masks else "log score | MAE"
    head = f"| epsilon/N | C | {'mask' if masks else 'draw'} | fit | {figures} | s |"
    print(head + "\n" + "| --- " * (head.count("|") - 1) + "|", flush=True)
    for number, hidden in runs:
        for level in options.levels:
            for components in options.communities:
                for name in options.fits:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        line = measure(counts, name, level, number, components, hidden, sampling)
                    print(f"| {level:g} | {components} | {number} | {name} | {line} |", flush=True)


if __name__ == "__main__":
    main()
