"""Whether noisy effects agree with noiseless ones, on posts of political blogs by the rating of their blog.

    python benchmarks/blogs.py POSTS.npz [draws [n_topics [levels]]] [--own-starts]

POSTS.npz has triplets row, col and count of the posts' words, their shape, and the rating of each post. Topics with the
rating and the day as covariates are fitted to the true counts once, and to draws of noise at every level ("1,2"). How
large is each topic's contrast between both ratings? Printed are how wide its 90% interval is, over the noiseless one,
how often it holds the noiseless estimate, and how far the estimates lie apart, over all topics that share at least half
of their words with a noiseless one. Chains begin at the noiseless topics, so that few topics are lost; with
--own-starts where a user's chains do.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

import countveil as cv

SWEEPS = 150, 150  # tuned and kept, by each of two chains
LEAST_OVERLAP = 0.5
BOTH = {"rating": "Conservative"}, {"rating": "Liberal"}


def posts(path: str) -> tuple[sp.csr_array, pd.DataFrame]:
    """True counts, and the posts' covariates."""
    with np.load(path, allow_pickle=False) as file:
        triplets = file["count"], (file["row"], file["col"])
        counts = sp.csr_array(sp.coo_array(triplets, shape=tuple(file["shape"])))
        return counts, pd.DataFrame({"rating": file["rating"], "day": file["day"]})


def fitted(data: object, frame: pd.DataFrame, n_topics: int, seed: int, start: object) -> cv.TopicModel:
    """A fit with the rating and the day as covariates."""
    model = cv.TopicModel(
        n_topics,
        prevalence="~ rating + bs(day, 3)",
        tune=SWEEPS[0],
        draws=SWEEPS[1],
        chains=2,
        seed=seed,
        start=start,
        progress=False,
    )
    return model.fit(data, covariates=frame)


def contrasts(fit: cv.TopicModel) -> np.ndarray:
    """(K, 3) estimates and ends of 90% intervals, of the topics by number."""
    table = fit.contrast(*BOTH, uncalibrated=True)
    ends = [name for name in table.columns if name.endswith(("lower", "upper"))]
    return table[["estimate", *ends]].to_numpy()[: len(fit.components_)]


def main(path: str, n_draws: int, n_topics: int, levels: list[int], own_starts: bool) -> None:
    counts, frame = posts(path)
    exact = fitted(cv.ExactCounts(counts), frame, n_topics, 0, "auto")
    truth = contrasts(exact)
    print("noiseless contrasts:", np.round(truth[np.argsort(truth[:, 0])], 3).tolist(), flush=True)
    for level in levels:
        wider, inside, apart, started = [], [], [], time.perf_counter()
        for seed in range(n_draws):
            release = cv.simulate_release(
                counts, cv.PrivacyLevel(epsilon=level, precision=1), rng=np.random.default_rng(seed)
            )
            fit = fitted(release, frame, n_topics, seed, "auto" if own_starts else exact)
            overlap = np.array([[np.minimum(p, q).sum() for q in fit.components_] for p in exact.components_])
            true, own = linear_sum_assignment(-overlap)
            same = overlap[true, own] >= LEAST_OVERLAP
            known, found = truth[true[same]], contrasts(fit)[own[same]]
            wider += ((found[:, 2] - found[:, 1]) / (known[:, 2] - known[:, 1])).tolist()
            inside += ((found[:, 1] <= known[:, 0]) & (known[:, 0] <= found[:, 2])).tolist()
            apart += np.abs(found[:, 0] - known[:, 0]).tolist()
        print(
            f"level {level}: {len(inside)} of {n_draws * n_topics} topics found again; 90% intervals are "
            f"{np.median(wider):.2f} times as wide in the median ({np.mean(np.array(wider) > 1):.0%} wider) and "
            f"{np.mean(inside):.1%} hold the noiseless estimate; estimates lie {np.mean(apart):.4f} apart; "
            f"{(time.perf_counter() - started) / n_draws:.0f} s a fit",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("draws", nargs="?", type=int, default=20)
    parser.add_argument("n_topics", nargs="?", type=int, default=10)
    parser.add_argument("levels", nargs="?", default="1,2")
    parser.add_argument("--own-starts", action="store_true")
    given = parser.parse_args()
    main(given.path, given.draws, given.n_topics, [int(x) for x in given.levels.split(",")], given.own_starts)
