"""Two-sided geometric noise as inference sees it (``laws.noise.protocol``). Levels are alpha."""

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special

from countveil.kernels import general, law
from countveil.kernels.law import provides
from countveil.laws.noise.protocol import Contradiction, Tally
from countveil.laws.noise.two_sided_geometric import batches, formulas, poisson

# What compiled loops call for two-sided geometric noise: closed forms for Poisson counts, the kernel for others.


class TwoSidedGeometricPoisson(NamedTuple):
    """The law of reports of Poisson counts under this noise; levels are alpha, where 0 is no noise."""

    likelihood: Any


class TwoSidedGeometricKernel(NamedTuple):
    """This noise for a likelihood without a law of its own."""

    parameters: tuple[()] = ()


provides(law.draw_counts, TwoSidedGeometricPoisson)(batches.draw_counts)
provides(law.expect_counts, TwoSidedGeometricPoisson)(batches.expect_counts)


@provides(law.expected_ratio, TwoSidedGeometricPoisson)
def expected_poisson_ratio(law, report, rate, level):
    """E[y | report, rate] / rate (2.3)."""
    return batches.ratio_only(report, rate, level)


@provides(law.report_score, TwoSidedGeometricPoisson)
def poisson_report_score(law, report, rate, level):
    """log P(report | rate) (2.2)."""
    return poisson.report_logpmf(report, rate, level)


@provides(law.unseen_score, TwoSidedGeometricPoisson)
def unseen_poisson_score(law, rate, level):
    """log P(report <= 0 | rate) (2.6)."""
    return poisson.censored_logpmf(rate, level)


@provides(law.unseen_constant, TwoSidedGeometricPoisson)
def unseen_poisson_constant(law, level):
    """log P(report <= 0 | rate 0)."""
    return -math.log1p(level)


@provides(law.unseen_exposure, TwoSidedGeometricPoisson)
def unseen_poisson_exposure(law, level):
    """1 - alpha (3.2)."""
    return formulas.exposure(level)


@provides(law.debiased, TwoSidedGeometricKernel)
def debiased(noise, report, level):
    """(1 + alpha) max(report, 0)."""
    return formulas.debiased(report, level)


@provides(law.bias, TwoSidedGeometricKernel)
def bias(noise, level):
    """alpha / (1 - alpha)."""
    return formulas.mean_over_positive(level)


@provides(law.unbiased, TwoSidedGeometricKernel)
def unbiased(noise, report, level):
    """The report where it is positive, -alpha / (1 - alpha) where it is not."""
    return float(report) if report > 0 else -formulas.mean_over_positive(level)


@provides(general.log_kernel, TwoSidedGeometricKernel)
def log_kernel(noise, report, count, level):
    """log (1 - alpha) / (1 + alpha) alpha^|report - count|."""
    if level <= 0.0:
        return 0.0 if report == count else -math.inf
    return formulas.log_normaliser(level) + abs(report - count) * math.log(level)


@provides(general.least_count, TwoSidedGeometricKernel)
def least_count(noise, report, level):
    """Zero; without noise the report."""
    return 0 if level > 0.0 else report


@provides(general.most_count, TwoSidedGeometricKernel)
def most_count(noise, report, level):
    """No greatest count; without noise the report."""
    return -1 if level > 0.0 else report


@provides(general.kernel_ratio, TwoSidedGeometricKernel)
def kernel_ratio(noise, level):
    """alpha: each further unit of the count makes a report that is not positive alpha times as likely."""
    return level


@provides(general.log_unseen, TwoSidedGeometricKernel)
def log_unseen(noise, level):
    """log P(tau <= 0) = -log (1 + alpha)."""
    return -math.log1p(level)


class TwoSidedGeometricNoise:
    """What a report with two-sided geometric noise says about its count."""

    mechanism: str = "two-sided geometric"
    level: ClassVar[str] = "alpha"
    levels_below: ClassVar[float] = 1.0
    counts_positive: ClassVar[bool] = True
    unbiased: bool = True
    kernel: TwoSidedGeometricKernel = TwoSidedGeometricKernel()

    def in_words(self, level: Any) -> str:
        """alpha, or its range."""
        low, high = float(level.min()), float(level.max())
        return f"alpha {low:.4g}" if low == high else f"alpha from {low:.4g} to {high:.4g}"

    def level_of(self, mechanism: Any) -> float:
        """alpha."""
        return float(mechanism.alpha)

    def ratio(self, level: Any) -> Any:
        """alpha."""
        return level

    def bias(self, level: Any) -> Any:
        """alpha / (1 - alpha)."""
        return formulas.mean_over_positive(level)

    def positive_by_noise(self, level: Any) -> Any:
        """alpha / (1 + alpha)."""
        return formulas.positive_by_noise(level)

    def mean_at_zero(self, level: Any) -> Any:
        """alpha / (1 - alpha^2)."""
        return formulas.excess(level)

    def standard_deviation(self, level: Any) -> Any:
        """sqrt(2 alpha) / (1 - alpha)."""
        return formulas.standard_deviation(level)

    def variance(self, reports: Any, level: Any) -> np.ndarray:
        """2 alpha / (1 - alpha)^2, and half of it where the report is not positive (12.5)."""
        return np.asarray(np.where(reports > 0, 1.0, 0.5) * self.standard_deviation(level) ** 2)

    def contradiction(self, tally: Tally) -> Contradiction | None:
        """The stated and the found alpha where they differ beyond chance; else None.

        Given a report r at or below zero, -r is geometric, P(-r = k) proportional to alpha^k, whatever the true count
        is (mathematics, equation 2.5). So signed reports show alpha. Truncated ones bound it from above: a count of
        zero makes more reports of zero than any other count does, 1 / (1 + alpha) of them, and no count makes fewer
        reports of two for each report of one, alpha.
        """
        kept = tally.level > 0.0
        level, cells, at_most_zero, ones, twos = (values[kept] for values in tally[:5])
        if tally.below_zero is not None:
            return of_signed(level, at_most_zero, float(tally.below_zero[kept].sum()))
        return of_zeros(level, cells, float(at_most_zero.sum())) or of_twos(level, ones, twos)

    def log_kernel(self, report: Any, count: Any, level: Any) -> np.ndarray:
        """|max(report, 0) - count| log alpha."""
        with np.errstate(divide="ignore"):
            log_alpha = np.where(level > 0.0, np.log(level), -1e300)  # at 0 the report is the count
        return np.asarray(log_alpha * np.abs(np.maximum(report, 0) - count))

    def sample(self, counts: np.ndarray, level: Any, rng: np.random.Generator) -> np.ndarray:
        """max(count + tau, 0)."""
        return np.asarray(np.maximum(counts + formulas.sample(level, rng, counts.shape), 0))


SURPRISE = 2.5e-5  # of a right level, on each of two sides: one release in twenty thousand is doubted


def of_signed(alpha: np.ndarray, n: np.ndarray, found: float) -> Contradiction | None:
    """By the sum of the sizes of n reports at or below zero, each geometric with mean alpha / (1 - alpha)."""
    mean, odd = float((n * alpha / (1.0 - alpha)).sum()), float((n * (alpha / (1.0 - alpha)) ** 2).sum())
    if mean <= 0.0:
        return None
    # negative binomial: exact for one level, else with the same two moments
    size, p = mean**2 / odd, mean / (mean + odd)
    above = special.betaincc(size, found, p) if found > 0.0 else 1.0  # P(as much, or more)
    if min(special.betainc(size, found + 1.0, p), above) >= SURPRISE:
        return None
    total = float(n.sum())
    return Contradiction(mean / (total + mean), found / (total + found), at_most=False)


def of_zeros(alpha: np.ndarray, cells: np.ndarray, found: float) -> Contradiction | None:
    """By more reports of zero than noise leaves."""
    n = float(cells.sum())
    share = float((cells / (1.0 + alpha)).sum()) / max(n, 1.0)
    if n == 0.0 or special.bdtrc(found - 1.0, int(n), share) >= SURPRISE:
        return None
    return Contradiction(1.0 / share - 1.0, n / found - 1.0, at_most=True)


def of_twos(alpha: np.ndarray, ones: np.ndarray, twos: np.ndarray) -> Contradiction | None:
    """By fewer reports of two, for the reports of one, than noise makes by itself."""
    n, found = float((ones + twos).sum()), float(twos.sum())
    share = float(((ones + twos) * alpha / (1.0 + alpha)).sum()) / max(n, 1.0)
    if n == 0.0 or special.bdtr(found, int(n), share) >= SURPRISE:
        return None
    return Contradiction(share / (1.0 - share), found / (n - found), at_most=True)
