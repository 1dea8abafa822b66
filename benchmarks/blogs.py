"""Whether noisy effects agree with noiseless ones, on posts of political blogs by the rating of their blog.

    python benchmarks/blogs.py POSTS.npz [draws [n_topics [levels]]] [--posts N --words N] [--kept FILE]
                              [--own-starts] [--ways {own,known} ...] [--simulated] [--dispersion column]

POSTS.npz has triplets row, col and count of the posts' words, their shape, and the rating of each post. One chain
finds topics in the true counts. Topics with the rating and the day as covariates are fitted to the true counts once,
by chains that begin there, and to draws of noise at every level ("1,2"). How large is each topic's contrast between
both ratings? Printed are how wide its 90% interval is, over the noiseless one, how often it holds the noiseless
estimate, and how far the estimates lie apart, over all topics that share at least half of their words with a noiseless
one; then for each topic the mean error over the draws and the standard deviation of the errors, in half-widths of the
intervals. The same for fits, noiseless and noisy, whose topics are known: those that the one chain found. Noisy chains
begin at the noiseless topics, so that few topics are lost; with --own-starts where a user's chains do.

Would topics fit the posts, weights of the words would not matter. Printed first is how contrasts of the true counts
change, the known topics being the same, if words are weighted as noise makes it: by 1 / (mean count + the noise's
variance), in least squares fits of both groups' totals. --simulated takes counts that the one chain's model draws,
which its topics fit. --posts and --words take fewer posts, at random, and the most frequent words; --ways takes one of
the two ways alone. What a fit gave is a line of FILE, and fits that have one are not done again.
"""

import argparse
import itertools
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment, nnls

import countveil as cv

SWEEPS = 150, 150  # tuned and kept, by each of two chains
LEAST_OVERLAP = 0.5
BOTH = {"rating": "Conservative"}, {"rating": "Liberal"}
OWN, KNOWN = "topics of their own", "known topics"
WAYS = {"own": OWN, "known": KNOWN}


def posts(path: str, n_posts: int | None, n_words: int | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """True counts, and the posts' covariates."""
    with np.load(path, allow_pickle=False) as file:
        triplets = file["count"], (file["row"], file["col"])
        counts = sp.csr_array(sp.coo_array(triplets, shape=tuple(file["shape"])))
        frame = pd.DataFrame({"rating": file["rating"], "day": file["day"]})
    rows = np.sort(np.random.default_rng(0).permutation(len(frame))[:n_posts])
    columns = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[:n_words])
    words = [f"word {v}" for v in columns]
    return pd.DataFrame(counts[rows][:, columns].toarray(), columns=words), frame.iloc[rows].reset_index(
        drop=True
    )


def fitted(
    data: object, frame: pd.DataFrame, n_topics: int, seed: int, chains: int = 2, **how: Any
) -> cv.TopicModel:
    """A fit with the rating and the day as covariates."""
    model = cv.TopicModel(
        n_topics,
        prevalence="~ rating + bs(day, 3)",
        tune=SWEEPS[0],
        draws=SWEEPS[1],
        chains=chains,
        seed=seed,
        threads=1,
        progress=False,
        **how,
    )
    return model.fit(data, covariates=frame)


def contrasts(fit: cv.TopicModel) -> np.ndarray:
    """(K, 3) estimates and ends of 90% intervals, of the topics by number."""
    table = fit.contrast(*BOTH, uncalibrated=True)
    ends = [name for name in table.columns if name.endswith(("lower", "upper"))]
    return table[["estimate", *ends]].to_numpy()[: len(fit.components_)]


def found_again(exact: cv.TopicModel, fit: cv.TopicModel) -> list[list[float]]:
    """A noisy fit's contrasts, topic by topic, after the noiseless topic that it is and their overlap."""
    overlap = np.array([[np.minimum(p, q).sum() for q in fit.components_] for p in exact.components_])
    true, own = linear_sum_assignment(-overlap)
    return np.column_stack([true, overlap[true, own], contrasts(fit)[own]]).tolist()


def weighted(counts: pd.DataFrame, frame: pd.DataFrame, topics: np.ndarray, variance: float) -> np.ndarray:
    """(K,) contrasts of true counts at known topics, by least squares with noise of this variance in every cell."""
    scale, shares = 1.0 / np.sqrt(counts.mean(axis=0).to_numpy() + variance), []
    for group in BOTH:
        total = counts[frame["rating"] == group["rating"]].mean(axis=0).to_numpy()
        found = nnls((topics * scale).T, total * scale)[0]
        shares.append(found / found.sum())
    return np.asarray(shares[0] - shares[1])


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
        f"{np.mean(np.abs(estimate - known[:, 0])):.4f} apart; {by_topic(truth, same)}"
    )


def by_topic(truth: np.ndarray, same: np.ndarray) -> str:
    """Mean and standard deviation of each topic's errors, in half-widths of its intervals."""
    numbers, parts = same[:, 0].astype(int), []
    errors = 2.0 * (same[:, 2] - truth[numbers, 0]) / (same[:, 4] - same[:, 3])
    for k in np.unique(numbers):
        own = errors[numbers == k]
        parts.append(f"{own.mean():+.2f} ({own.std(ddof=1) if len(own) > 1 else np.nan:.2f})")
    return "errors in half-widths by topic: " + ", ".join(parts)


def main(given: argparse.Namespace) -> None:
    """Print what the noiseless fits and the noisy ones of every level say."""
    counts, frame = posts(given.path, given.posts, given.words)
    levels, size = list(map(int, given.levels.split(","))), given.n_topics
    model = {"dispersion": given.dispersion}
    first = fitted(cv.ExactCounts(counts), frame, size, 0, 1, **model)
    if given.simulated:
        drawn = first.predict_counts(1, np.random.default_rng(0)).to_numpy()[0]
        counts = pd.DataFrame(drawn, columns=counts.columns)
    for level in levels:
        alpha = np.exp(-float(level))
        one, other = (
            weighted(counts, frame, first.components_, v) for v in (0.0, 2 * alpha / (1 - alpha) ** 2)
        )
        print(f"level {level}, weights alone: {np.round(one, 3)} becomes {np.round(other, 3)}", flush=True)
    every: dict[str, dict[str, Any]] = {OWN: {"start": first}, KNOWN: {"known_topics": first}}
    ways = {WAYS[name]: every[WAYS[name]] | model for name in given.ways}
    exact = {way: fitted(cv.ExactCounts(counts), frame, size, 1, **how) for way, how in ways.items()}
    truth = {way: contrasts(fit) for way, fit in exact.items()}
    for way in ways:
        print(f"{way}, noiseless contrasts: {np.round(truth[way], 3).tolist()}", flush=True)
    if OWN in ways:
        ways[OWN]["start"] = "auto" if given.own_starts else exact[OWN]
    lines = given.kept.read_text().splitlines() if given.kept and given.kept.exists() else []
    done = {(each["way"], each["level"], each["seed"]): each["found"] for each in map(json.loads, lines)}
    for seed, level in itertools.product(range(given.draws), levels):
        rng = np.random.default_rng(seed)
        release = cv.simulate_release(counts, cv.PrivacyLevel(epsilon=level, precision=1), rng=rng)
        for way, how in ways.items():
            if (way, level, seed) in done:
                continue
            started = time.process_time()
            done[way, level, seed] = found_again(exact[way], fitted(release, frame, size, seed, **how))
            print(f"{way}, level {level}, draw {seed}: {time.process_time() - started:.0f} s", flush=True)
            if given.kept:
                with given.kept.open("a") as file:
                    file.write(
                        json.dumps(
                            {"way": way, "level": level, "seed": seed, "found": done[way, level, seed]}
                        )
                        + "\n"
                    )
    for way, level in itertools.product(ways, levels):
        found = [done[way, level, seed] for seed in range(given.draws)]
        print(f"{way}, level {level}: {in_words(truth[way], found)}", flush=True)


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
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--dispersion", choices=["global", "column", "row"], default="global")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--kept", type=Path)
    main(parser.parse_args())
