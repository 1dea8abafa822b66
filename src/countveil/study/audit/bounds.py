"""Lower confidence bounds on what is promised between two inputs, from reports on both."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from countveil.study.audit.statistics import CRITICAL, CRITICAL_SCORE, POWER_SCORE, Integers, Outputs


class Bound(NamedTuple):
    """A lower confidence bound on epsilon or on rho between two inputs, and the one that it would have detected."""

    lower: float
    detectable: float


class Hits(NamedTuple):
    """How often an event occurred under each of two inputs, and among how many outputs."""

    hits: tuple[int, int]
    sizes: tuple[int, int]


def epsilon_bound(first: Outputs, second: Outputs, claimed: float) -> Bound:
    """A lower bound, at confidence 1 - CRITICAL, on the epsilon between two inputs, from many outputs under each.

    Clopper-Pearson bounds on the two probabilities of a promising event bound their ratio. ``claimed`` is the epsilon
    that is promised.
    """
    seen = _promising(first, second)
    (hits, others), (size, other_size) = seen
    lower = float(_log_ratio(np.array([hits]), np.array([others]), size, other_size)[0])
    error = math.sqrt(sum((1 - k / n) / max(k, 1) for k, n in zip(*seen, strict=True)))
    return Bound(max(lower, 0.0), claimed + (CRITICAL_SCORE + POWER_SCORE) * error)


def rho_bound(first: Outputs, second: Outputs, claimed: float) -> Bound:
    """A lower bound, at confidence 1 - CRITICAL, on the rho between two inputs, from many outputs under each.

    Whether a promising event occurs keeps every promise that the report keeps: its Renyi divergence of any order a is
    at most a rho. Clopper-Pearson bounds on the two probabilities bound it. ``claimed`` is the rho that is promised.
    """
    seen = _promising(first, second)
    hits, others = (np.array([count]) for count in seen.hits)
    least, most = (float(part[0]) for part in _probabilities(hits, others, *seen.sizes))
    lower = max(_divergence(least, most, order) / order for order in ORDERS) if least > most else 0.0
    return Bound(lower, _detectable_rho((seen.hits[1] + 1) / (seen.sizes[1] + 2), min(seen.sizes), claimed))


def _detectable_rho(q: float, size: int, claimed: float) -> float:
    """The divergence from an event of probability q that is told from the claimed one with 99% probability.

    That of the probability which lies as far above the one at the claimed divergence as the two bounds are apart, and
    POWER_SCORE standard errors of both beyond.
    """
    low, high = q, 1 - 1 / (size + 2)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _divergence(middle, q, 1.0) < claimed else (low, middle)
    errors = [math.sqrt(chance * (1 - chance) / size) for chance in (high, q)]
    beyond = min(high + CRITICAL_SCORE * sum(errors) + POWER_SCORE * math.hypot(*errors), 1 - 1 / (size + 2))
    return max(claimed, _divergence(beyond, q, 1.0))


ORDERS = (1.0, 1.5, 2.0, 4.0, 8.0)
"""Those of Renyi divergences in bounds on rho; that of order 1 is the Kullback-Leibler divergence."""


def _divergence(p: float, q: float, order: float) -> float:
    """The Renyi divergence between events of probabilities p and q, both between 0 and 1."""
    pairs = [(x, y) for x, y in ((p, q), (1 - p, 1 - q)) if x > 0]
    if order == 1.0:
        return sum(x * math.log(x / y) for x, y in pairs)
    return float(np.logaddexp.reduce([order * math.log(x) + (1 - order) * math.log(y) for x, y in pairs])) / (
        order - 1
    )


def _promising(first: Outputs, second: Outputs) -> Hits:
    """How often the most promising event occurs: more often under the input that is named first in the result.

    Both hold the same statistics of their outputs, by name. The first half of the outputs chooses an event (a statistic
    at least, at most, or equal to a value), the other half counts it.
    """
    best: tuple[float, str, int, str, bool] = (-math.inf, "", 0, "", False)
    for swapped, (one, other) in ((False, (first, second)), (True, (second, first))):
        for name in first:
            halves = (part[name][: part[name].size // 2] for part in (one, other))
            best = max(best, *((*found, name, swapped) for found in _events(*halves)))
    _, kind, value, name, swapped = best
    one, other = (second, first) if swapped else (first, second)
    fresh = [part[name][part[name].size // 2 :] for part in (one, other)]
    hits = [int(_EVENTS[kind](part, value).sum()) for part in fresh]
    return Hits((hits[0], hits[1]), (fresh[0].size, fresh[1].size))


def _log_ratio(hits: Integers, others: Integers, size: int, other_size: int) -> NDArray[np.float64]:
    """Lower bounds, at confidence 1 - CRITICAL, on the log ratio of two probabilities (Clopper and Pearson)."""
    least, most = _probabilities(hits, others, size, other_size)
    return np.log(np.maximum(least, 1e-300) / most)


def _probabilities(
    hits: Integers, others: Integers, size: int, other_size: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A lower bound on the first probability and an upper one on the second, together at confidence 1 - CRITICAL."""
    least = np.where(hits > 0, stats.beta.ppf(CRITICAL / 2, np.maximum(hits, 1), size - hits + 1), 0.0)
    rest = np.maximum(other_size - others, 1)
    most = np.where(others < other_size, stats.beta.isf(CRITICAL / 2, others + 1, rest), 1.0)
    return least, most


_EVENTS: dict[str, Callable[[Integers, int], NDArray[np.bool_]]] = {
    "at least": np.greater_equal,
    "at most": np.less_equal,
    "equal": np.equal,
}


def _events(one: Integers, other: Integers) -> Iterator[tuple[float, str, int]]:
    """The best event of each kind on a grid of values, with the bound that it gives on the log ratio."""
    grid = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0, 1, 101), method="nearest"))
    below = [np.searchsorted(np.sort(part), grid, "left") for part in (one, other)]
    upto = [np.searchsorted(np.sort(part), grid, "right") for part in (one, other)]
    kinds = {
        "at least": (one.size - below[0], other.size - below[1]),
        "at most": (upto[0], upto[1]),
        "equal": (upto[0] - below[0], upto[1] - below[1]),
    }
    for kind, hits in kinds.items():
        scores = _log_ratio(*hits, one.size, other.size)
        place = int(scores.argmax())
        yield float(scores[place]), kind, int(grid[place])
