"""The statistics of an audit: histograms of noise against the exact law, and lower bounds on epsilon."""

import math
from collections.abc import Iterable
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
