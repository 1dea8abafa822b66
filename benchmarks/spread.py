"""Whether the spread of a topic's draws tells how wrong the topic is: ``python benchmarks/spread.py [SEEDS]``.

Planted topics, one chain each: the error of the mean topics (total variation, matched to the planted ones), their
spread (``member_spread``), and how many topics exceed a half by each.
"""

import sys
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import countveil as cv
from countveil.evaluation import match_topics
from countveil.fit.parts import UNDETERMINED


class Case(NamedTuple):
    """Documents, words, topics, tokens of a document in the mean, and epsilon/N."""

    docs: int = 400
    words: int = 500
    topics: int = 30
    tokens: int = 200
    level: float = 3.0


CASES = (
    Case(),
    Case(tokens=60),
    Case(tokens=30),
    Case(tokens=60, level=2.0),
    Case(tokens=20, level=2.0),
    Case(level=1.0),
    Case(tokens=130, level=1.0),
    Case(tokens=100, level=1.0),
    Case(tokens=60, level=1.0),
    Case(tokens=20, level=1.0),
    Case(level=0.5),
    Case(docs=2000, tokens=60, level=1.0),
    Case(docs=300, words=2000, topics=10, tokens=60, level=2.0),
)


def errors_and_spread(case, seed):
    """(K,) errors and (K,) spreads of one chain's mean topics."""
    rng, alpha = np.random.default_rng(seed), np.exp(-case.level)
    truth = rng.dirichlet(np.full(case.words, 0.05), case.topics)
    rates = rng.dirichlet(np.full(case.topics, 0.1), case.docs) @ truth * case.tokens
    noise = rng.geometric(1.0 - alpha, (2, *rates.shape))
    reports = rng.poisson(rates) + noise[0] - noise[1]
    model = cv.TopicModel(
        case.topics, likelihood="poisson", chains=1, tune=300, draws=100, seed=seed, threads=1, progress=False
    ).fit(cv.PrivatizedCounts(reports, alpha))
    order = match_topics(truth, model.components_)
    errors = 0.5 * np.abs(model.components_[order] - truth).sum(axis=1)
    return errors, model.member_spread("word")[order]


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(
        "| documents, words, topics | tokens | epsilon/N | error | spread | topics over .5: by error, by spread |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for case in CASES:
        with threadpool_limits(1):
            found = np.array([errors_and_spread(case, seed) for seed in range(1, seeds + 1)])
        error, spread = found.mean(axis=(0, 2))
        wrong, doubtful = (found > UNDETERMINED).sum(axis=2).mean(axis=0)
        print(
            f"| {case.docs} x {case.words}, {case.topics} | {case.tokens} | {case.level:g} | {error:.2f} "
            f"| {spread:.2f} | {wrong:.1f}, {doubtful:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
