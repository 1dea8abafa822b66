"""Whether support means what it says: ``python benchmarks/supports.py LEVEL [TOPICS] [CHAINS] [FITS] [KEPT.npy]``.

395 Reuters stories (1,000 words after the 20 most frequent; the extra ``demo``) are given noise at epsilon/N = LEVEL
once, and CHAINS chains (64) find TOPICS topics (20), each by itself (150 sweeps of tuning, 100 draws). FITS times (40)
four of them, or eight, are taken for the chains of one fit, whose topics are matched as those of a fit are; 50 of the
other chains are refits. Printed are, by the support of topics, their number and the share of refits in which they are
found again: in which some topic overlaps with them by half, and in which one does that has no better match among the
topics of the fit. KEPT.npy holds what chains found, and chains that it has are not run again.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

import countveil as cv
from countveil.common.files import replacing
from countveil.experiments.reuters import load_reuters
from countveil.inference.matching import LEAST_OVERLAP, matched, overlap

SAMPLING = {"chains": 1, "tune": 150, "draws": 100, "threads": 1, "progress": False}
SIZES = 4, 8  # chains of a fit
REFITS = 50
SEED = 5_000  # of the first chain


def topics_of(release, n_topics, seed):
    """(K, V) mean shares of words in the topics of one chain."""
    fit = cv.TopicModel(n_topics, seed=seed, **SAMPLING).fit(release)
    table = fit.supported("word", release.shape[1])
    words = fit.posterior["posterior"]["word"].to_numpy()
    return table.pivot(index="component", columns="member", values="probability")[words].to_numpy()


def pool(release, n_topics, n_chains, kept):
    """(C, K, V) topics of many chains; those in the file ``kept`` are not run again."""
    found = list(np.load(kept)) if kept is not None and kept.exists() else []
    for seed in range(len(found), n_chains):
        found.append(topics_of(release, n_topics, SEED + seed))
        if kept is not None:
            with replacing(kept) as path, path.open("wb") as file:
                np.save(file, np.array(found, dtype=np.float32))
    return np.array(found[:n_chains], dtype=float)


def listed(chains):
    """(supports (M,), shares (M, V)) of all topics of a fit by these chains."""
    every = matched([[own] for own in chains], np.full(len(chains), 1.0 / len(chains)))
    means = [chains[each.chains, each.components].mean(axis=0) for each in every]
    return np.array([each.support for each in every]), np.array(means)


def found_again(topics, refit):
    """(2, M) whether a refit has each of these topics: any that overlaps by half, and one to one."""
    shared = overlap(topics, refit)
    rows, columns = linear_sum_assignment(shared, maximize=True)
    again = np.zeros(len(topics), dtype=bool)
    again[rows] = shared[rows, columns] >= LEAST_OVERLAP
    return np.array([shared.max(axis=1) >= LEAST_OVERLAP, again])


def main():
    warnings.simplefilter("ignore")
    level = float(sys.argv[1])
    n_topics, n_chains, n_fits = (int(x) for x in (*sys.argv[2:5], *("20", "64", "40")[len(sys.argv[2:5]) :]))
    kept = Path(sys.argv[5]) if len(sys.argv) > 5 else None
    if n_chains < max(SIZES) + REFITS:
        sys.exit(
            f"CHAINS must be at least {max(SIZES) + REFITS}, of which {REFITS} are refits, got {n_chains}"
        )
    counts, rng = load_reuters().counts, np.random.default_rng(1)
    noise = rng.geometric(1.0 - np.exp(-level), (2, *counts.shape))
    release = cv.PrivatizedCounts(counts + noise[0] - noise[1], np.exp(-level))
    chains = pool(release, n_topics, n_chains, kept)
    print("| chains | support | topics | found again | one to one |\n| --- | --- | --- | --- | --- |")
    for size in SIZES:
        supports, shares, rng = [], [], np.random.default_rng(2)
        for _ in range(n_fits):
            order = rng.permutation(n_chains)
            support, topics = listed(chains[order[:size]])
            refits = chains[order[size : size + REFITS]]
            supports.append(support)
            shares.append(np.mean([found_again(topics, refit) for refit in refits], axis=0))
        support, share = np.concatenate(supports), np.concatenate(shares, axis=1)
        for value in np.unique(support.round(6)):
            own = np.isclose(support, value, atol=1e-5)
            anyhow, alone = share[:, own].mean(axis=1)
            print(f"| {size} | {value:.0%} | {own.sum()} | {anyhow:.0%} | {alone:.0%} |")


if __name__ == "__main__":
    main()
