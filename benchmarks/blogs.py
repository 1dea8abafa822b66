"""Whether noisy effects agree with noiseless ones, on posts of political blogs by the rating of their blog.

    python benchmarks/blogs.py POSTS.npz [draws [n_topics [levels]]] [--posts N --words N] [--own-starts] [--kept FILE]

POSTS.npz has triplets row, col and count of the posts' words, their shape, and the rating of each post. Topics with the
rating and the day as covariates are fitted to the true counts once, and to draws of noise at every level ("1,2"). How
large is each topic's contrast between both ratings? Printed are how wide its 90% interval is, over the noiseless one,
how often it holds the noiseless estimate, and how far the estimates lie apart, over all topics that share at least half
of their words with a noiseless one. Chains begin at the noiseless topics, so that few topics are lost; with
--own-starts where a user's chains do. --posts and --words take fewer posts, at random, and the most frequent words.
What a fit gave is a line of FILE, and fits that have one are not done again.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

import countveil as cv

SWEEPS = 150, 150  # tuned and kept, by each of two chains
LEAST_OVERLAP = 0.5
BOTH = {"rating": "Conservative"}, {"rating": "Liberal"}


def posts(path: str, n_posts: int | None, n_words: int | None) -> tuple[sp.csr_array, pd.DataFrame]:
    """True counts, and the posts' covariates."""
    with np.load(path, allow_pickle=False) as file:
        triplets = file["count"], (file["row"], file["col"])
        counts = sp.csr_array(sp.coo_array(triplets, shape=tuple(file["shape"])))
        frame = pd.DataFrame({"rating": file["rating"], "day": file["day"]})
    rows = np.sort(np.random.default_rng(0).permutation(len(frame))[:n_posts])
    columns = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[:n_words])
    return counts[rows][:, columns], frame.iloc[rows].reset_index(drop=True)


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
        threads=1,
        progress=False,
    )
    return model.fit(data, covariates=frame)


def contrasts(fit: cv.TopicModel) -> np.ndarray:
    """(K, 3) estimates and ends of 90% intervals, of the topics by number."""
    table = fit.contrast(*BOTH, uncalibrated=True)
    ends = [name for name in table.columns if name.endswith(("lower", "upper"))]
    return table[["estimate", *ends]].to_numpy()[: len(fit.components_)]


def found_again(
    exact: cv.TopicModel, release: cv.Release, frame: pd.DataFrame, seed: int, own_starts: bool
) -> list[list[float]]:
    """A noisy fit's contrasts, topic by topic, after the noiseless topic that it is and their overlap."""
    fit = fitted(release, frame, len(exact.components_), seed, "auto" if own_starts else exact)
    overlap = np.array([[np.minimum(p, q).sum() for q in fit.components_] for p in exact.components_])
    true, own = linear_sum_assignment(-overlap)
    return np.column_stack([true, overlap[true, own], contrasts(fit)[own]]).tolist()


def in_words(truth: np.ndarray, fits: list[list[list[float]]]) -> str:
    """How noisy contrasts compare with noiseless ones."""
    each = np.concatenate([np.array(fit) for fit in fits])
    same = each[each[:, 1] >= LEAST_OVERLAP]
    known, (estimate, lower, upper) = truth[same[:, 0].astype(int)], same[:, 2:].T
    wider = (upper - lower) / (known[:, 2] - known[:, 1])
    inside = (lower <= known[:, 0]) & (known[:, 0] <= upper)
    return (
        f"{len(same)} of {len(each)} topics found again in {len(fits)} draws; 90% intervals are "
        f"{np.median(wider):.2f} times as wide in the median ({np.mean(wider > 1):.0%} wider) and "
        f"{np.mean(inside):.1%} hold the noiseless estimate; estimates lie "
        f"{np.mean(np.abs(estimate - known[:, 0])):.4f} apart"
    )


def main(given: argparse.Namespace) -> None:
    """Print what the noiseless fit and the noisy ones of every level say."""
    counts, frame = posts(given.path, given.posts, given.words)
    exact = fitted(cv.ExactCounts(counts), frame, given.n_topics, 0, "auto")
    truth = contrasts(exact)
    print("noiseless contrasts:", np.round(truth[np.argsort(truth[:, 0])], 3).tolist(), flush=True)
    lines = given.kept.read_text().splitlines() if given.kept and given.kept.exists() else []
    done = {(each["level"], each["seed"]): each["found"] for each in map(json.loads, lines)}
    for seed in range(given.draws):
        for level in map(int, given.levels.split(",")):
            if (level, seed) in done:
                continue
            started, rng = time.process_time(), np.random.default_rng(seed)
            release = cv.simulate_release(counts, cv.PrivacyLevel(epsilon=level, precision=1), rng=rng)
            done[level, seed] = found_again(exact, release, frame, seed, given.own_starts)
            print(f"level {level}, draw {seed}: {time.process_time() - started:.0f} s", flush=True)
            if given.kept:
                with given.kept.open("a") as file:
                    file.write(json.dumps({"level": level, "seed": seed, "found": done[level, seed]}) + "\n")
    for level in map(int, given.levels.split(",")):
        print(
            f"level {level}: {in_words(truth, [done[level, seed] for seed in range(given.draws)])}",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("draws", nargs="?", type=int, default=20)
    parser.add_argument("n_topics", nargs="?", type=int, default=10)
    parser.add_argument("levels", nargs="?", default="1,2")
    parser.add_argument("--posts", type=int)
    parser.add_argument("--words", type=int)
    parser.add_argument("--own-starts", action="store_true")
    parser.add_argument("--kept", type=Path)
    main(parser.parse_args())
