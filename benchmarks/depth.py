"""Whether topics of topics predict better: counts of cells that no fit has seen, by the number of layers.

    python benchmarks/depth.py FOLDER FILE [DATA ...] [--levels 1 2] [--draws 0] [--chains 2]

FOLDER and the data are those of first_fit.py (500 documents by 800 words of both texts). A tenth of the cells is
masked, the same in all fits of a draw, and counts get seeded two-sided geometric noise at epsilon/N = each of LEVELS.
Every finished fit is a line of FILE at once; those that FILE has are left out. All fits have as many topics of words.

Columns: layers (numbers of topics from the bottom up; one number is the usual model); log_score, the log posterior
predictive probability of the true counts of masked cells per word in them (higher is better); difference, how much
higher it is than that of one layer on the same reports; error, twice the standard error of the difference over
documents; state of the verdict; seconds of processor time.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from first_fit import corpora, release

import countveil as cv
from countveil.laws.counts.protocol import parameters_of_rows

TOPICS = (20,), (20, 8), (20, 8, 3)
KEY = ["data", "level", "draw", "layers"]
COLUMNS = [*KEY, "log_score", "difference", "error", "state", "seconds"]
MASKED, TUNE, DRAWS, SCORED = 0.1, 200, 50, 200


def masked(counts, level, draw):
    """Reports of all cells but a tenth of them, and the mask."""
    rng = np.random.default_rng([draw, round(10 * level)])
    _, reports, _ = release(counts, cv.TopicModel, level, rng)
    mask = rng.random(counts.shape) < MASKED
    return cv.PrivatizedCounts(reports, np.exp(-level), mask), mask


def scores(fit, counts, mask):
    """(D,) log predictive probabilities of the true counts of masked cells, summed over those of each document."""
    total, n, likelihood = np.full(counts.shape, -np.inf), 0, fit.model_.likelihood
    for (theta, phi), parameters in fit._reader.even_draws(SCORED):
        own = parameters_of_rows(likelihood, parameters, np.arange(len(counts)))
        np.logaddexp(total, likelihood.log_mass(counts, theta @ phi.T, own), out=total)
        n += 1
    return np.where(mask, total - np.log(n), 0.0).sum(axis=1)


def fitted(data, sizes, draw, chains):
    """A fit with these numbers of topics, and its processor time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        fit = cv.TopicModel(
            sizes[0] if len(sizes) == 1 else sizes,
            chains=chains, tune=TUNE, draws=DRAWS, seed=draw, threads=1, progress=False,
        ).fit(data)  # fmt: skip
        return fit, time.process_time() - started


def main():
    """Fit what FILE lacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("data", nargs="*", default=["reuters", "enron-text", "poliblog"])
    parser.add_argument("--levels", type=float, nargs="+", default=[1.0, 2.0])
    parser.add_argument("--draws", type=int, nargs="+", default=[0])
    parser.add_argument("--chains", type=int, default=2)
    given = parser.parse_args()
    known = corpora(given.folder)
    with given.file.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not file.tell():
            writer.writeheader()
        with given.file.open() as before:
            done = {tuple(row[name] for name in KEY) for row in csv.DictReader(before)}
        for name in given.data:
            counts = known[name][0](None)
            for level in given.levels:
                for draw in given.draws:
                    data, mask = masked(counts, level, draw)
                    words, flat = counts[mask].sum(), None
                    for sizes in TOPICS:
                        key = name, f"{level:g}", str(draw), " ".join(map(str, sizes))
                        if key in done and flat is None and len(sizes) > 1:
                            continue
                        fit, seconds = fitted(data, sizes, draw, given.chains)
                        own = scores(fit, counts, mask)
                        flat = own if flat is None else flat
                        gain = own - flat
                        found = {
                            "log_score": f"{own.sum() / words:.4f}",
                            "difference": f"{gain.sum() / words:.4f}",
                            "error": f"{2.0 * gain.std(ddof=1) * np.sqrt(gain.size) / words:.4f}",
                            "state": str(fit.diagnostics().state),
                            "seconds": f"{seconds:.0f}",
                        }
                        writer.writerow(dict(zip(KEY, key, strict=True)) | found)
                        file.flush()


if __name__ == "__main__":
    main()
