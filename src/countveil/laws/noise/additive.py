"""Reports that are counts plus noise of any law, also where only large reports are published."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, xlogy

from countveil.kernels.report_kernels import FLAT, LINEAR, QUADRATIC, TABLE
from countveil.kernels.series import skellam_logcdf, skellam_logpmf
from countveil.laws.noise.report_law import (
    MOST,
    Counts,
    Flags,
    Floats,
    Pieces,
    ReportLaw,
    joined,
    pieces,
    table_reach,
    whole_numbers,
)
from countveil.laws.noise.two_sided_geometric import formulas

FAR = 12.0  # of sigma: up to here tails of the discrete Gaussian are kept in a table
CLOSE_TO_NORMAL = 3e3  # sigma, above which tails are those of a normal variable, corrected
CODE = float(log_ndtr(-10.0))
"""Reports of which noise is no smaller with a lower probability than this, in logs, are taken for codes."""
ENOUGH = 45.0  # terms below e^-45 of the first are left out of a sum


class AdditiveLaw(ReportLaw):
    """report = count + tau, where the law of tau is log-concave and does not depend on the count.

    Bounded noise needs ``broken``, ``support`` and ``pieces`` of its own; it is not supported below a threshold.
    """

    centre: int = 0  # the mode of tau
    mean: float = 0.0  # of tau
    excess_kurtosis: float = 0.0  # the fourth central moment of tau is at most (3 + this) spread^4
    exact: bool = False  # whether there is no noise at all
    real: ClassVar[bool] = False  # whether noise is of real numbers

    @abstractmethod
    def log_mass(self, tau: Floats) -> Floats:
        """log P(tau), or its log density."""

    @abstractmethod
    def log_cdf(self, tau: Floats) -> Floats:
        """log P(noise <= tau)."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """The standard deviation of tau, or slightly more."""

    @abstractmethod
    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Noise of this shape. It is seeded and protects nobody."""

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Every number is possible, but some are less probable than Gaussian noise ten deviations below zero."""
        far = np.zeros(reports.shape, np.bool_)
        below = reports < 0
        if not self.exact and below.any():
            far[below] = self.log_cdf(reports[below]) < CODE
        code = f"{reports[far].flat[0]:.16g}" if far.any() else "-99"
        rule = "reports must not be over ten standard deviations below zero, as codes for missing values are"
        remedy = f"mask cells that were never reported: --missing {code}; make hidden counts NaN: --absent {code}"
        yield f"{rule} ({remedy}, and a mechanism that hides some, such as suppression)", far

    def log_kernel(self, reports: Floats, counts: Counts) -> Floats:
        """log P(tau = report - count)."""
        return self.log_mass(reports - counts)

    def less(self, reports: Floats, counts: Counts) -> Floats:
        """P(tau < report - count)."""
        return np.asarray(np.exp(self.log_cdf(reports - counts - (0.0 if self.real else 1.0))))

    def support(self, reports: Floats) -> tuple[Counts, Counts]:
        """All counts."""
        return np.zeros(reports.shape, np.int64), np.full(reports.shape, MOST)

    def peak(self, reports: Floats) -> Counts:
        """The report less the mode of the noise, or 0."""
        return whole_numbers(np.rint(reports) - self.centre)

    def pieces(self, reports: Floats) -> Pieces:
        """By a table of log P(tau), which all reports share."""
        reach = table_reach(self.spread)
        tau = np.arange(self.centre + reach, self.centre - reach - 1, -1, dtype=np.float64)  # the count grows
        table = self.log_mass(tau)
        return pieces(
            TABLE,
            reports.size,
            table=table,
            length=table.size,
            offset=reports.astype(np.int64) - self.centre - reach,
            slopes=(table[1] - table[0], table[-1] - table[-2]),
        )

    def draw(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """count + tau."""
        return counts + self.sample(counts.shape, rng)


class GaussianLaw(AdditiveLaw):
    """tau ~ Normal(0, sigma^2)."""

    real = True

    def __init__(self, sigma: float) -> None:
        self.sigma = sigma
        self.log_scale = math.log(sigma) + 0.5 * math.log(2 * math.pi)

    def log_mass(self, tau: Floats) -> Floats:
        """The log density, or log P(tau)."""
        return -0.5 * (tau / self.sigma) ** 2 - self.log_scale

    def log_cdf(self, tau: Floats) -> Floats:
        """log Phi(tau / sigma)."""
        return np.asarray(log_ndtr(tau / self.sigma))

    @property
    def spread(self) -> float:
        """sigma."""
        return self.sigma

    def pieces(self, reports: Floats) -> Pieces:
        """Quadratic."""
        return pieces(QUADRATIC, reports.size, value=reports, scale=0.5 / self.sigma**2, constant=-self.log_scale)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Normal variables."""
        return self.sigma * rng.standard_normal(shape)


class DiscreteGaussianLaw(GaussianLaw):
    """P(tau) = exp(-tau^2 / (2 sigma^2)) / sum_k exp(-k^2 / (2 sigma^2)), tau whole."""

    real = False

    def __init__(self, sigma: float) -> None:
        super().__init__(sigma)
        if sigma < 5.0:  # beyond, the sum is the integral: they differ by 2 exp(-2 pi^2 sigma^2), relatively
            k = np.arange(1.0, math.ceil(40.0 * sigma) + 2)
            mass = 2.0 * np.exp(-0.5 * (k / sigma) ** 2)
            self.log_scale = math.log1p(mass.sum())
            fourth = float(mass @ (k / sigma) ** 4) / (1.0 + mass.sum())
            self.excess_kurtosis = max(fourth - 3.0, 0.0)  # up to .6, near sigma = .5

    def log_cdf(self, tau: Floats) -> Floats:
        """log P(noise <= tau), tau whole: by the tail on its own side of 0."""
        below = tau < 0
        tails = self._log_tail(np.where(below, -tau, tau + 1.0))
        with np.errstate(divide="ignore"):
            return np.where(below, tails, np.log1p(-np.exp(tails)))

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Two-sided geometric candidates, rejected as by Canonne, Kamath and Steinke (2020), algorithm 3."""
        scale = math.floor(self.sigma) + 1
        found = np.empty(math.prod(shape))
        todo = np.arange(found.size)
        while todo.size:
            candidates = formulas.sample(math.exp(-1.0 / scale), rng, todo.shape)
            gap = (np.abs(candidates) - self.sigma**2 / scale) / self.sigma
            found[todo] = candidates
            todo = todo[rng.random(todo.size) >= np.exp(-0.5 * gap**2)]
        return found.reshape(shape)

    @cached_property
    def _near(self) -> Floats:
        """log P(tau >= k) for k = 0, 1, ... up to FAR sigma, summed from the far end."""
        end = math.ceil(FAR * self.sigma) + 1
        start = self._series(np.array([float(end)]))
        masses = self.log_mass(np.arange(end - 1.0, -1.0, -1.0))
        return np.logaddexp.accumulate(np.concatenate([start, masses]))[::-1]

    def _log_tail(self, k: Floats) -> Floats:
        """log P(tau >= k), k >= 0."""
        if self.sigma > CLOSE_TO_NORMAL:
            return self._almost_normal(k)
        near = k < self._near.size
        found = self._near[np.where(near, k, 0).astype(np.int64)]
        if not near.all():
            far, back = np.unique(k[~near], return_inverse=True)
            found[~near] = self._series(far)[back]
        return np.asarray(found)

    def _almost_normal(self, k: Floats) -> Floats:
        """The same: the integral from k - 1/2 on, plus 1/24 of the slope there (Euler, Maclaurin)."""
        end = (k - 0.5) / self.sigma
        integral = log_ndtr(-end)
        hazard = np.exp(-0.5 * end**2 - 0.5 * math.log(2 * math.pi) - integral)
        return np.asarray(integral + np.log1p(-end * hazard / (24.0 * self.sigma**2)))

    def _series(self, k: Floats) -> Floats:
        """The same for k of at least FAR sigma: P(k) times the sum over j >= 0 of P(k + j) / P(k)."""
        total = np.ones(k.shape)
        for j in range(1, int(ENOUGH * self.sigma / FAR) + 2):
            total += np.exp(-0.5 * j * (j / self.sigma + 2.0 * (k / self.sigma)) / self.sigma)
        return self.log_mass(k) + np.log(total)


class LaplaceLaw(AdditiveLaw):
    """p(tau) = exp(-|tau| / scale) / (2 scale)."""

    real = True

    def __init__(self, scale: float) -> None:
        self.scale, self.excess_kurtosis = scale, 3.0

    def log_mass(self, tau: Floats) -> Floats:
        """The log density."""
        return -np.abs(tau) / self.scale - math.log(2.0 * self.scale)

    def log_cdf(self, tau: Floats) -> Floats:
        """log of e^(tau / scale) / 2 up to 0, of 1 - e^(-tau / scale) / 2 above."""
        return np.where(
            tau <= 0.0, tau / self.scale - math.log(2.0), np.log1p(-0.5 * np.exp(-np.maximum(tau, 0.0) / self.scale))
        )

    @property
    def spread(self) -> float:
        """sqrt(2) times the scale."""
        return math.sqrt(2.0) * self.scale

    def pieces(self, reports: Floats) -> Pieces:
        """Linear."""
        return pieces(LINEAR, reports.size, value=reports, scale=1.0 / self.scale, constant=-math.log(2.0 * self.scale))

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Laplace variables."""
        return rng.laplace(0.0, self.scale, shape)


class GeometricLaw(AdditiveLaw):
    """P(tau) of two-sided geometric noise, tau whole; with alpha = 0 reports are the counts."""

    def __init__(self, alpha: float) -> None:
        self.alpha, self.exact = alpha, alpha == 0.0
        self.excess_kurtosis = 0.0 if self.exact else 3.0 + 1.0 / float(formulas.variance(alpha))

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Without noise reports are counts."""
        yield "reports must be non-negative where alpha is 0", (reports < 0) & (self.alpha == 0)
        yield from super().broken(reports)

    def log_mass(self, tau: Floats) -> Floats:
        """log P(tau)."""
        return np.asarray(formulas.log_normaliser(self.alpha) + xlogy(np.abs(tau), self.alpha))

    def log_cdf(self, tau: Floats) -> Floats:
        """log P(noise <= tau), by the tail on its own side of 0."""
        tails = formulas.log_survival(np.where(tau < 0, -tau - 1.0, tau), self.alpha)
        with np.errstate(divide="ignore"):
            return np.where(tau < 0, tails, np.log1p(-np.exp(tails)))

    def support(self, reports: Floats) -> tuple[Counts, Counts]:
        """All counts, or the report itself where there is no noise."""
        if self.alpha > 0:
            return super().support(reports)
        return whole_numbers(reports), whole_numbers(reports)

    @property
    def spread(self) -> float:
        """sqrt(2 alpha) / (1 - alpha)."""
        return float(formulas.standard_deviation(self.alpha))

    def pieces(self, reports: Floats) -> Pieces:
        """Linear; without noise flat, since only the report itself is possible."""
        if self.alpha == 0.0:
            return pieces(FLAT, reports.size)
        constant = float(formulas.log_normaliser(self.alpha))
        return pieces(LINEAR, reports.size, value=reports, scale=-math.log(self.alpha), constant=constant)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Differences of geometric variables."""
        return np.asarray(formulas.sample(self.alpha, rng, shape), np.float64)


class SkellamLaw(AdditiveLaw):
    """tau = N1 - N2 of independent Poisson variables with rates l1 and l2."""

    def __init__(self, l1: float, l2: float) -> None:
        self.l1, self.l2 = l1, l2
        self.mean, self.excess_kurtosis = l1 - l2, 1.0 / (l1 + l2)
        near = math.floor(l1 - l2) + np.arange(-2, 3)
        self.centre = int(near[np.argmax(self.log_mass(near.astype(float)))])

    def log_mass(self, tau: Floats) -> Floats:
        """log P(tau)."""
        return np.asarray(skellam_logpmf(tau.astype(np.int64), self.l1, self.l2))

    def log_cdf(self, tau: Floats) -> Floats:
        """log P(noise <= tau)."""
        with np.errstate(all="ignore"):
            return np.asarray(skellam_logcdf(tau.astype(np.int64), self.l1, self.l2))

    @property
    def spread(self) -> float:
        """sqrt(l1 + l2)."""
        return math.sqrt(self.l1 + self.l2)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Differences of Poisson variables."""
        return np.asarray(rng.poisson(self.l1, shape) - rng.poisson(self.l2, shape), np.float64)


class ThresholdedLaw(ReportLaw):
    """report = count + tau if that exceeds ``above``, absent otherwise; P(absent | count) = P(count + tau <= above)."""

    def __init__(self, noise: AdditiveLaw, above: float) -> None:
        self.noise, self.above = noise, above

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Reports that are there are above the threshold, and follow the rules of the noise."""
        yield f"reports must be above {self.above:g}, or absent", reports <= self.above
        yield from self.noise.broken(reports)

    def log_kernel(self, reports: Floats, counts: Counts) -> Floats:
        """That of the noise where there is a report, the probability of no report where there is none."""
        absent = np.isnan(reports)
        found = np.empty(reports.shape)
        found[absent] = self.noise.log_cdf(self.above - counts[absent].astype(np.float64))
        found[~absent] = self.noise.log_kernel(reports[~absent], counts[~absent])
        return found

    def less(self, reports: Floats, counts: Counts) -> Floats:
        """That of the noise where there is a report, 0 where there is none."""
        absent = np.isnan(reports)
        return np.where(absent, 0.0, self.noise.less(np.where(absent, 0.0, reports), counts))

    def pieces(self, reports: Floats) -> Pieces:
        """Those of the noise, and a table of P(absent | count) around the threshold."""
        if self.noise.exact:
            return pieces(FLAT, reports.size)
        absent, reach = np.isnan(reports), table_reach(self.noise.spread)
        first = max(int(self.above) - self.noise.centre - reach, 0)
        last = max(int(self.above) - self.noise.centre, 0) + reach
        table = self.noise.log_cdf(self.above - np.arange(first, last + 1, dtype=np.float64))
        slopes = (0.0, table[-1] - table[-2])
        both = joined(
            [
                self.noise.pieces(reports[~absent]),
                pieces(TABLE, int(absent.sum()), table=table, length=table.size, offset=first, slopes=slopes),
            ]
        )
        place = np.empty(reports.size, np.int64)
        place[~absent], place[absent] = np.split(np.arange(reports.size), [int((~absent).sum())])
        return both.take(place)

    def support(self, reports: Floats) -> tuple[Counts, Counts]:
        """That of the noise where there is a report, all counts where there is none."""
        least, most = self.noise.support(reports)
        absent = np.isnan(reports)
        hidden = math.floor(self.above) if self.noise.exact else MOST
        return np.where(absent, 0, least), np.where(absent, hidden, most)

    def peak(self, reports: Floats) -> Counts:
        """That of the noise where there is a report, 0 where there is none."""
        return np.where(np.isnan(reports), whole_numbers(np.zeros(reports.shape)), self.noise.peak(reports))

    def draw(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """count + tau, NaN up to the threshold."""
        noisy = self.noise.draw(counts, rng)
        return np.where(noisy > self.above, noisy, np.nan)
