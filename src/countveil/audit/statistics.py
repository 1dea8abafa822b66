"""The statistics of an audit: histograms of noise against the exact law, and lower bounds on epsilon.

P(tau) = (1 - alpha)/(1 + alpha) alpha^|tau|,   alpha = exp(-rate)
E|tau| = 2 alpha/(1 - alpha^2),   Var|tau| = 2 alpha/(1 - alpha)^2 - (E|tau|)^2 = -d E|tau| / d rate
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Integers = NDArray[np.int64]
Outputs = dict[str, Integers]

CRITICAL = 1e-8
"""The probability of a false alarm in one statistic."""
POWER_SCORE = 2.33
"""A fault this many standard errors beyond the critical one is detected with 99% probability."""
CRITICAL_SCORE = float(stats.norm.isf(CRITICAL / 2))
LEAST_EXPECTED = 50
WINDOW = 32


class Histogram(NamedTuple):
    """How often each value of the noise from -(W + 1), for all below, to W + 1, for all above, was seen."""

    cells: Integers  # (2 W + 3,)
    size: int
    total: int  # sum of |tau|, exactly


def width(rate: float, size: int) -> int:
    """The largest |tau| of which at least LEAST_EXPECTED are expected among ``size`` draws; at least 1."""
    return max(int(math.log(size * math.tanh(rate / 2) / LEAST_EXPECTED) / rate), 1)


def histogram(noise: Integers, widest: int) -> Histogram:
    """The histogram of some draws; histograms of one width add up by their parts."""
    clipped = np.clip(noise, -widest - 1, widest + 1) + widest + 1
    cells = np.bincount(clipped, minlength=2 * widest + 3)
    return Histogram(cells, noise.size, int(np.abs(noise).astype(object).sum()) if noise.size else 0)


def chi_square(seen: Histogram, rate: float, positive: bool = False) -> float:
    """p-value of a histogram against the law; ``positive`` for noise that was cut at zero."""
    widest = (seen.cells.size - 3) // 2
    inner = math.tanh(rate / 2) * np.exp(-rate * np.abs(np.arange(-widest, widest + 1)))
    tail = math.exp(-rate * (widest + 1)) / (1 + math.exp(-rate))
    cells, chances = seen.cells.astype(float), np.concatenate([[tail], inner, [tail]])
    if positive:
        middle = widest + 2
        cells = np.concatenate([[cells[:middle].sum()], cells[middle:]])
        chances = np.concatenate([[chances[:middle].sum()], chances[middle:]])
    expected = seen.size * chances
    kept = expected >= LEAST_EXPECTED
    rest = expected[~kept].sum()
    statistic = float(np.sum((cells[kept] - expected[kept]) ** 2 / expected[kept]))
    value = float(stats.chi2.sf(statistic, max(int(kept.sum()) - 1, 1)))
    if rest > 0:
        value = min(value, binomial(int(cells[~kept].sum()), seen.size, rest / seen.size))
    return value


def binomial(hits: int, size: int, chance: float) -> float:
    """Two-sided exact p-value of a number of hits."""
    return float(stats.binomtest(hits, size, min(chance, 1.0)).pvalue)


def magnitude(seen: Histogram, rate: float) -> float:
    """p-value of the mean of |tau|, which is sufficient for alpha; exact where noise is rare."""
    alpha = math.exp(-rate)
    mean, variance = moments(rate)
    if seen.size * 2 * alpha < 10_000:
        return binomial(seen.size - int(seen.cells[seen.cells.size // 2]), seen.size, 2 * alpha / (1 + alpha))
    score = (seen.total / seen.size - mean) / math.sqrt(variance / seen.size)
    return float(2 * stats.norm.sf(abs(score)))


def moments(rate: float) -> tuple[float, float]:
    """Mean and variance of |tau|."""
    alpha = math.exp(-rate)
    mean = 2 * alpha / (1 - alpha * alpha)
    return mean, 2 * alpha / (1 - alpha) ** 2 - mean * mean


def detectable_alpha(rate: float, size: int) -> float:
    """The relative error of alpha that ``magnitude`` detects with 99% probability."""
    return (CRITICAL_SCORE + POWER_SCORE) / math.sqrt(size * moments(rate)[1])


def one_sidedness(seen: Histogram) -> float:
    """p-value of the signs: as many positive as negative draws."""
    middle = seen.cells.size // 2
    above, below = int(seen.cells[middle + 1 :].sum()), int(seen.cells[:middle].sum())
    return 1.0 if above + below == 0 else binomial(above, above + below, 0.5)


def repeated_windows(noise: Integers) -> int:
    """How many runs of WINDOW draws occur again anywhere, up to the sign; 0 but for once in 10^9 tries."""
    weights = np.random.default_rng(1).integers(1, 2**63, WINDOW, dtype=np.uint64) * np.uint64(2) + np.uint64(
        1
    )
    found = 0
    for values in (noise, np.abs(noise)):
        runs = np.lib.stride_tricks.sliding_window_view(values.astype(np.uint64), WINDOW)
        sums = runs @ weights
        found = max(found, sums.size - np.unique(sums).size)
    return found


def correlation(noise: Integers, lags: tuple[int, ...]) -> float:
    """Smallest p-value, times their number, of correlations of draws and of magnitudes with later ones."""
    worst = 1.0
    bound = 4 * noise.std() + 1
    for values in (np.clip(noise, -bound, bound), np.minimum(np.abs(noise), bound)):
        centred = values - values.mean()
        for lag in lags:
            later = centred[lag:]
            score = float(centred[:-lag] @ later) / (float(centred.var()) or 1.0) / math.sqrt(later.size)
            worst = min(worst, float(2 * stats.norm.sf(abs(score))))
    return min(1.0, worst * 2 * len(lags))


class Bound(NamedTuple):
    """A lower confidence bound on epsilon between two inputs, and the epsilon it would have found out."""

    lower: float
    detectable: float


def epsilon_bound(first: Outputs, second: Outputs, claimed: float) -> Bound:
    """A lower bound, at confidence 1 - CRITICAL, on the epsilon between two inputs, from many outputs under each.

    Each holds the same statistics of its outputs, by name. On the first half of the outputs the event (a statistic
    at least, at most, or equal to a value) is chosen that promises most; on the other half, Clopper-Pearson bounds
    on its two probabilities bound their ratio. ``claimed`` is the epsilon that is promised.
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
    sizes = [part.size for part in fresh]
    lower = float(_log_ratio(np.array(hits[:1]), np.array(hits[1:]), sizes[0], sizes[1])[0])
    error = math.sqrt(sum((1 - k / n) / max(k, 1) for k, n in zip(hits, sizes, strict=True)))
    return Bound(max(lower, 0.0), claimed + (CRITICAL_SCORE + POWER_SCORE) * error)


def _log_ratio(hits: Integers, others: Integers, size: int, other_size: int) -> NDArray[np.float64]:
    """Lower bounds, at confidence 1 - CRITICAL, on the log ratio of two probabilities (Clopper and Pearson)."""
    least = np.where(hits > 0, stats.beta.ppf(CRITICAL / 2, np.maximum(hits, 1), size - hits + 1), 0.0)
    rest = np.maximum(other_size - others, 1)
    most = np.where(others < other_size, stats.beta.isf(CRITICAL / 2, others + 1, rest), 1.0)
    return np.log(np.maximum(least, 1e-300) / most)


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
