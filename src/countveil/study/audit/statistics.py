"""The statistics of an audit: histograms of noise against the exact law, and lower bounds on epsilon."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from countveil.privacy.mechanisms import DiscreteGaussian, Mechanism, TwoSidedGeometric

LARGEST_SIGMA = 10**5
"""Probabilities are summed over about 13 sigma terms."""


class GaussianLaw:
    """P(tau) = exp(-tau^2 / (2 sigma^2)) / sum_k exp(-k^2 / (2 sigma^2)); ValueError if sigma is above 10^5."""

    def __init__(self, mechanism: DiscreteGaussian) -> None:
        self.sigma = math.sqrt(mechanism.variance_parameter)
        if self.sigma > LARGEST_SIGMA:
            raise ValueError(f"sigma must be at most {LARGEST_SIGMA} to be audited, got {self.sigma:.6g}")

    @cached_property
    def _masses(self) -> NDArray[np.float64]:
        """P(tau = k) for k from 0 as far as it is above 10^-36."""
        weights = np.exp(-0.5 * (np.arange(int(13 * self.sigma) + 3) / self.sigma) ** 2)
        return weights / (2 * weights.sum() - 1)

    @cached_property
    def _survival(self) -> NDArray[np.float64]:
        """P(tau >= k) for the same k."""
        return np.cumsum(self._masses[::-1])[::-1]

    def tail(self, k: int) -> float:
        """P(|tau| > k)."""
        return 2 * float(self._survival[k + 1]) if k + 1 < self._survival.size else 0.0

    @property
    def false_positive_rate(self) -> float:
        """P(tau > 0)."""
        return self.tail(0) / 2

    @cached_property
    def _magnitudes(self) -> tuple[float, float, float]:
        """E|tau|, its variance, and the covariance of |tau| with (tau/sigma)^2, its slope in ln sigma."""
        k, mass = np.arange(self._masses.size), np.append(self._masses[:1], 2 * self._masses[1:])
        mean, square = float(k @ mass), float(k**2 @ mass)
        return mean, square - mean**2, (float(k.astype(float) ** 3 @ mass) - mean * square) / self.sigma**2

    @property
    def mean_magnitude(self) -> float:
        """E|tau|."""
        return self._magnitudes[0]

    @property
    def magnitude_variance(self) -> float:
        """The variance of |tau|."""
        return self._magnitudes[1]

    @property
    def magnitude_information(self) -> float:
        """What the mean of |tau| says of ln sigma, per draw: its slope, squared, over its variance."""
        return self._magnitudes[2] ** 2 / self._magnitudes[1]

    def residue(self, k: int, modulus: int) -> float:
        """P(tau mod m = k)."""
        return float(self._masses[k::modulus].sum() + self._masses[modulus - k :: modulus].sum())


Integers = NDArray[np.int64]
Outputs = dict[str, Integers]
Law = TwoSidedGeometric | GaussianLaw

CRITICAL = 1e-8
"""The probability of a false alarm in one statistic."""
POWER_SCORE = 2.33
"""A fault this many standard errors beyond the critical one is detected with 99% probability."""
CRITICAL_SCORE = float(stats.norm.isf(CRITICAL / 2))
MIN_EXPECTED = 50
"""Fewest expected draws per cell, so that the chi-square law holds; more would test the tails less finely."""
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

    def chances(self, law: Law) -> NDArray[np.float64]:
        """The probabilities of the cells under the law."""
        step, widest = bin_width(law), (self.cells.size - 3) // 2
        edges = [step * k + (step + 1) // 2 for k in range(widest + 1)]
        beyond = np.array([law.tail(edge - 1) / 2 for edge in edges])  # P(tau >= edge)
        side = np.append(beyond[:-1] - beyond[1:], beyond[-1])
        return np.concatenate([side[::-1], [1 - 2 * beyond[0]], side])


def law_of(mechanism: Mechanism) -> Law:
    """The probabilities of noise that the owner's side draws; TypeError for other mechanisms."""
    if isinstance(mechanism, DiscreteGaussian):
        return GaussianLaw(mechanism)
    if isinstance(mechanism, TwoSidedGeometric):
        return mechanism
    raise TypeError(f"mechanism must be one that the owner's side draws, got {mechanism.name!r}")


def bin_width(law: Law) -> int:
    """An odd width of bins, a tenth of the scale of the noise where that is more than 1."""
    return int(0.1 * law.sigma if isinstance(law, GaussianLaw) else 0.1 / law.rate) | 1


def widest_bin(law: Law, step: int, size: int) -> int:
    """The last bin of this width that can expect MIN_EXPECTED of ``size`` draws, at least 1."""
    if isinstance(law, GaussianLaw):
        bins = range(1, int(13 * law.sigma / step) + 2)
        starts = [step * k - step // 2 for k in bins]
        expected = [size * (law.tail(start - 1) - law.tail(start + step - 1)) / 2 for start in starts]
        return max(sum(each >= MIN_EXPECTED for each in expected), 1)
    binned = TwoSidedGeometric(math.exp(-law.rate * step))  # nearly the law of tau / step, rounded
    return max(int(math.log(size * binned.pmf(0) / MIN_EXPECTED) / binned.rate), 1)


def histogram(noise: Iterable[Integers], law: Law, size: int) -> Histogram:
    """The histogram of ``size`` draws, in as many bins as can expect MIN_EXPECTED of them."""
    step = bin_width(law)
    widest = widest_bin(law, step, size)
    cells, residues = np.zeros(2 * widest + 3, dtype=np.int64), np.zeros(RESIDUES, dtype=np.int64)
    seen = total = 0
    for narrow in noise:
        some = narrow.astype(np.int64, copy=False)
        bins = np.clip((some + step // 2) // step, -widest - 1, widest + 1)
        cells += np.bincount(bins + widest + 1, minlength=cells.size)
        residues += np.bincount(some & (RESIDUES - 1), minlength=RESIDUES)
        seen, total = seen + some.size, total + int(np.abs(some).sum())
    return Histogram(cells, residues, seen, total)


def chi_square(seen: Histogram, law: Law, positive: bool = False) -> float:
    """p-value of a histogram against the law; ``positive`` for noise that was cut at zero."""
    cells, chances = seen.cells, seen.chances(law)
    if positive:
        middle = cells.size // 2 + 1
        cells = np.concatenate([[cells[:middle].sum()], cells[middle:]])
        chances = np.concatenate([[chances[:middle].sum()], chances[middle:]])
    return _chi_square(cells, seen.size * chances, seen.size)


def last_bits(seen: Histogram, law: Law) -> float:
    """p-value of the residues of the noise, which reveals rounded numbers at any strength of noise."""
    chances = np.array([law.residue(k, RESIDUES) for k in range(RESIDUES)])
    return _chi_square(seen.residues, seen.size * chances, seen.size)


def _chi_square(cells: Integers, expected: NDArray[np.float64], size: int) -> float:
    """Pearson's test over the cells that expect enough; the rarer ones are pooled and tested exactly."""
    kept = expected >= MIN_EXPECTED
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


def magnitude(seen: Histogram, law: Law) -> float:
    """p-value of the mean of |tau|, sufficient for alpha and nearly so for sigma; exact where noise is rare."""
    if seen.size * law.tail(0) < 10_000:
        return binomial(seen.size - int(seen.cells[seen.cells.size // 2]), seen.size, law.tail(0))
    score = (seen.total / seen.size - law.mean_magnitude) / math.sqrt(law.magnitude_variance / seen.size)
    return float(2 * stats.norm.sf(abs(score)))


def information(law: Law) -> float:
    """What the mean of |tau| says of ln alpha, or of ln sigma, per draw."""
    return law.magnitude_information if isinstance(law, GaussianLaw) else law.magnitude_variance


def detectable_strength(law: Law, size: int) -> float:
    """The relative error of alpha, or of sigma, that ``magnitude`` detects with 99% probability."""
    return (CRITICAL_SCORE + POWER_SCORE) / math.sqrt(size * information(law))


def one_sidedness(seen: Histogram) -> float:
    """p-value of the signs: positive and negative draws are equally likely."""
    middle = seen.cells.size // 2
    above, below = int(seen.cells[middle + 1 :].sum()), int(seen.cells[:middle].sum())
    return 1.0 if above + below == 0 else binomial(above, above + below, 0.5)


def repeated_windows(noise: Integers) -> int:
    """How many runs of WINDOW draws occur again, up to the sign; above 0 by chance once in 10^9 tries."""
    weights = np.random.default_rng(1).integers(1, 2**63, WINDOW, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
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
    return float(np.logaddexp.reduce([order * math.log(x) + (1 - order) * math.log(y) for x, y in pairs])) / (order - 1)


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
