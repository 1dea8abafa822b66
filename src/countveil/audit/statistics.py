"""The statistics of an audit: histograms of noise against the exact law, and lower bounds on epsilon."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from countveil.privacy.mechanisms import TwoSidedGeometric

Integers = NDArray[np.int64]
Outputs = dict[str, Integers]

CRITICAL = 1e-8
"""The probability of a false alarm in one statistic."""
POWER_SCORE = 2.33
"""A fault this many standard errors beyond the critical one is detected with 99% probability."""
CRITICAL_SCORE = float(stats.norm.isf(CRITICAL / 2))
LEAST_EXPECTED = 50
WINDOW = 32
RESIDUES = 256


class Histogram(NamedTuple):
    """How often noise fell into bins of odd width around zero, and below and above them.

    Bin k holds b k - (b - 1)/2, ..., b k + (b - 1)/2, for k from -W to W, b being the width.
    """

    cells: Integers  # (2 W + 3,)
    residues: Integers  # (RESIDUES,): of tau modulo RESIDUES
    size: int
    total: int  # sum of |tau|, exactly

    def chances(self, law: TwoSidedGeometric) -> NDArray[np.float64]:
        """The probabilities of the cells under the law."""
        step, widest = bin_width(law), (self.cells.size - 3) // 2
        edges = [step * k + (step + 1) // 2 for k in range(widest + 1)]
        beyond = np.array([law.tail(edge - 1) / 2 for edge in edges])  # P(tau >= edge)
        side = np.append(beyond[:-1] - beyond[1:], beyond[-1])
        return np.concatenate([side[::-1], [1 - 2 * beyond[0]], side])


def bin_width(law: TwoSidedGeometric) -> int:
    """An odd width of bins, a tenth of the scale of the noise where that is more than 1."""
    return int(0.1 / law.rate) | 1


def histogram(noise: Iterable[Integers], law: TwoSidedGeometric, size: int) -> Histogram:
    """The histogram of ``size`` draws, in as many bins as can expect LEAST_EXPECTED of them."""
    step = bin_width(law)
    binned = TwoSidedGeometric(math.exp(-law.rate * step))  # nearly the law of tau / step, rounded
    widest = max(int(math.log(size * binned.pmf(0) / LEAST_EXPECTED) / binned.rate), 1)
    cells, residues = np.zeros(2 * widest + 3, dtype=np.int64), np.zeros(RESIDUES, dtype=np.int64)
    seen = total = 0
    for narrow in noise:
        some = narrow.astype(np.int64, copy=False)
        bins = np.clip((some + step // 2) // step, -widest - 1, widest + 1)
        cells += np.bincount(bins + widest + 1, minlength=cells.size)
        residues += np.bincount(some & (RESIDUES - 1), minlength=RESIDUES)
        seen, total = seen + some.size, total + int(np.abs(some).sum())
    return Histogram(cells, residues, seen, total)


def chi_square(seen: Histogram, law: TwoSidedGeometric, positive: bool = False) -> float:
    """p-value of a histogram against the law; ``positive`` for noise that was cut at zero."""
    cells, chances = seen.cells, seen.chances(law)
    if positive:
        middle = cells.size // 2 + 1
        cells = np.concatenate([[cells[:middle].sum()], cells[middle:]])
        chances = np.concatenate([[chances[:middle].sum()], chances[middle:]])
    return _chi_square(cells, seen.size * chances, seen.size)


def last_bits(seen: Histogram, law: TwoSidedGeometric) -> float:
    """p-value of the residues of the noise, which reveals numbers that were rounded at any strength of noise."""
    chances = np.array([law.residue(k, RESIDUES) for k in range(RESIDUES)])
    return _chi_square(seen.residues, seen.size * chances, seen.size)


def _chi_square(cells: Integers, expected: NDArray[np.float64], size: int) -> float:
    """Pearson's, over the cells that expect enough; what is rarer is tested together and exactly."""
    kept = expected >= LEAST_EXPECTED
    statistic = float(np.sum((cells[kept] - expected[kept]) ** 2 / expected[kept]))
    value = float(stats.chi2.sf(statistic, max(int(kept.sum()) - 1, 1)))
    rest = float(expected[~kept].sum())
    return either(value, binomial(int(cells[~kept].sum()), size, rest / size)) if rest > 0 else value


def either(first: float, second: float) -> float:
    """One p-value of two."""
    return min(1.0, 2 * min(first, second))


def binomial(hits: int, size: int, chance: float) -> float:
    """Two-sided exact p-value of a number of hits."""
    return float(stats.binomtest(hits, size, min(chance, 1.0)).pvalue)


def magnitude(seen: Histogram, law: TwoSidedGeometric) -> float:
    """p-value of the mean of |tau|, which is sufficient for alpha; exact where noise is rare."""
    if seen.size * 2 * law.alpha < 10_000:
        return binomial(seen.size - int(seen.cells[seen.cells.size // 2]), seen.size, law.tail(0))
    score = (seen.total / seen.size - law.mean_magnitude) / math.sqrt(law.magnitude_variance / seen.size)
    return float(2 * stats.norm.sf(abs(score)))


def detectable_alpha(law: TwoSidedGeometric, size: int) -> float:
    """The relative error of alpha that ``magnitude`` detects with 99% probability."""
    return (CRITICAL_SCORE + POWER_SCORE) / math.sqrt(size * law.magnitude_variance)


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
