"""Whether support means what it says: ``python benchmarks/supports.py LEVEL [TOPICS] [FITS] [REFITS] [CHAINS]``.

395 Reuters stories (1,000 words after the 20 most frequent; the extra ``demo``) are given noise at epsilon/N = LEVEL
once and fitted FITS times (8) by CHAINS chains (4) with TOPICS (20), and REFITS times (50) by one chain, all with other
seeds (150 sweeps of tuning, 100 draws). A topic is found again by a refit if the two overlap by half, matched as the
chains of a fit are. Printed are, by the support of topics, their number and the share of refits in which they are found
again.
"""

import sys
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment

import countveil as cv
from countveil.experiments.reuters import load_reuters
from countveil.inference.matching import LEAST_OVERLAP, overlap

SAMPLING = {"tune": 150, "draws": 100, "threads": 1, "progress": False}


def topics_of(release, n_topics, chains, seed):
    """(supports (M,), shares (M, V)) of all topics that a fit lists, whatever their support."""
    fit = cv.TopicModel(n_topics, chains=chains, seed=seed, **SAMPLING).fit(release)
    table = fit.supported("word", release.shape[1])
    words = fit.posterior["posterior"]["word"].to_numpy()
    shares = table.pivot(index="component", columns="member", values="probability")[words]
    return fit.support().set_index("component")["support"].loc[shares.index].to_numpy(), shares.to_numpy()


def found_again(topics, refit):
    """(M,) whether a refit has each of these topics."""
    shared = overlap(topics, refit)
    rows, columns = linear_sum_assignment(shared, maximize=True)
    again = np.zeros(len(topics), dtype=bool)
    again[rows] = shared[rows, columns] >= LEAST_OVERLAP
    return again


def main():
    warnings.simplefilter("ignore")
    level = float(sys.argv[1])
    n_topics, n_fits, n_refits, n_chains = (
        int(x) for x in (*sys.argv[2:], *("20", "8", "50", "4")[len(sys.argv) - 2 :])
    )
    if n_chains < 2:
        sys.exit("CHAINS must be at least 2, since one chain's topics have no support")
    counts, rng = load_reuters().counts, np.random.default_rng(1)
    noise = rng.geometric(1.0 - np.exp(-level), (2, *counts.shape))
    release = cv.PrivatizedCounts(counts + noise[0] - noise[1], np.exp(-level))
    refits = [topics_of(release, n_topics, 1, 1_000 + seed)[1] for seed in range(n_refits)]
    supports, again = [], []
    for seed in range(n_fits):
        support, topics = topics_of(release, n_topics, n_chains, seed)
        supports.append(support)
        again.append(np.mean([found_again(topics, refit) for refit in refits], axis=0))
        print(f"fit {seed}: {len(support)} topics", flush=True)
    support, share = np.concatenate(supports), np.concatenate(again)
    print("| support | topics | found again, mean | 10th and 90th percentile |\n| --- | --- | --- | --- |")
    for value in np.unique(support.round(6)):
        own = share[np.isclose(support, value, atol=1e-5)]
        low, high = np.quantile(own, [0.1, 0.9])
        print(f"| {value:.2f} | {len(own)} | {own.mean():.2f} | {low:.2f}, {high:.2f} |")


if __name__ == "__main__":
    main()
