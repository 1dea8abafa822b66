"""The methods that experiments and plans compare: each turns counts or reports into rates and topics.

Ours and the naive way see a release alone, least squares and the column means its signed reports. Only the
reference sees true counts. Ours, naive and reference are one model under one sampler, and average over its
chains; least squares has as many starts, averages its rates over them and takes the topics of the best.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from countveil.data.observations import ExactCounts, NaiveCounts
from countveil.evaluation import log_score, mean_absolute_error
from countveil.fit import TopicModel
from countveil.fit.base import check_whole
from countveil.inference.posterior import flat_draws
from countveil.inference.starts.alternating import least_squares
from countveil.privacy import Release

LEAST_SQUARES_ITERATIONS = 100
FLOORS = (0.0, *np.geomspace(1e-3, 0.2, 15))  # for rates of rivals that can be zero; see ``rate_scores``


class Sampling(NamedTuple):
    """The one setting for every fit by Gibbs sampling: ours, the naive way's and the reference's."""

    n_topics: int = 20
    chains: int = 4
    tune: int = 20
    draws: int = 25


class Estimate(NamedTuple):
    """What a method makes of its data."""

    rate: np.ndarray  # (D, V)
    topics: np.ndarray | None  # (K, V) probabilities of words, posterior means; None: a method without topics
    typical: np.ndarray | None  # (K, V) the same as posterior medians, which a few odd draws do not move
    seconds: float


class Contender(NamedTuple):
    """A method under its name in the table; ``floored`` if its rates can be zero and are raised before scoring."""

    name: str
    estimate: Callable[[Release, Sampling, int], Estimate]
    floored: bool = False


def ours(release: Release, sampling: Sampling, seed: int) -> Estimate:
    """The posterior of the topic model given the noisy release."""
    return _sampled(release, sampling, seed)


def naive(release: Release, sampling: Sampling, seed: int) -> Estimate:
    """The same model and sampler on the reports cut at zero, as if they were true counts."""
    return _sampled(NaiveCounts(release), sampling, seed)


def on_true_counts(counts: np.ndarray, sampling: Sampling, seed: int) -> Estimate:
    """The same model and sampler on the true counts: the reference, which only their owner can compute."""
    return _sampled(ExactCounts(counts), sampling, seed)


def least_squares_on_reports(release: Release, sampling: Sampling, seed: int) -> Estimate:
    """Nonnegative least squares on the signed reports, whose expectation is the true counts."""
    started = time.perf_counter()
    reports = np.asarray(release.reports, dtype=np.float64)
    unbiased = np.zeros(reports.shape[0])
    total, best, least = np.zeros(reports.shape), np.empty(0), np.inf
    for rng in np.random.default_rng(seed).spawn(sampling.chains):
        theta, phi = least_squares(reports, unbiased, sampling.n_topics, rng, LEAST_SQUARES_ITERATIONS)
        rate = theta @ phi.T
        total += rate
        error = float(((reports - rate) ** 2).sum())
        if error < least:
            best, least = phi.T, error
    topics = distributions(best)
    return Estimate(total / sampling.chains, topics, topics, time.perf_counter() - started)


def column_means(release: Release, sampling: Sampling, seed: int) -> Estimate:
    """Every document the same: the means of the signed reports, word by word."""
    started = time.perf_counter()
    means = np.maximum(release.reports.mean(axis=0), 0.0)
    return Estimate(np.broadcast_to(means, release.shape), None, None, time.perf_counter() - started)


def all_zero(release: Release, sampling: Sampling, seed: int) -> Estimate:
    """No words at all in any document."""
    return Estimate(np.zeros(release.shape), None, None, 0.0)


OURS = Contender("countveil", ours)
NAIVE = Contender("naive", naive)
LEAST_SQUARES = Contender("least squares", least_squares_on_reports, floored=True)
COLUMN_MEANS = Contender("column means", column_means, floored=True)
ZERO = Contender("zero", all_zero)
CONTENDERS = (OURS, NAIVE, LEAST_SQUARES, COLUMN_MEANS, ZERO)
TRUE_COUNTS = "true counts"


def rate_scores(counts: np.ndarray, rate: np.ndarray, floored: bool) -> dict[str, float]:
    """Log score per word and mean absolute error of rates, against true counts of the same shape.

    Rates of a rival that can fall to zero are raised to a floor first. Each of the two scores takes the floor
    of ``FLOORS`` at which it is best, found with the true counts: an advantage that no analyst has.
    """
    rates = [np.maximum(rate, floor) for floor in (FLOORS if floored else (0.0,))]
    return {
        "log_score": max(log_score(counts, each) for each in rates),
        "mae": min(mean_absolute_error(each, counts) for each in rates),
    }


def _sampled(data: Any, sampling: Sampling, seed: int) -> Estimate:
    """One thread per fit: several fits run side by side."""
    started = time.perf_counter()
    model = TopicModel(
        n_topics=sampling.n_topics, chains=sampling.chains, tune=sampling.tune, draws=sampling.draws,
        seed=seed, threads=1, progress=False,
    ).fit(data)  # fmt: skip
    check_whole(model)
    median = np.median(flat_draws(model.posterior, "phi"), axis=0)
    return Estimate(model.rate().to_numpy(), model.components_, median, time.perf_counter() - started)


def distributions(topics: np.ndarray) -> np.ndarray:
    """Rows scaled to sum to one; a row of zeros becomes uniform."""
    totals = topics.sum(axis=1, keepdims=True)
    return np.where(totals > 0.0, topics / np.maximum(totals, 1e-300), 1.0 / topics.shape[1])
