"""What compiled loops call for two-sided geometric noise: closed forms for Poisson counts, the kernel for others."""

import math
from typing import Any, NamedTuple

from countveil.kernels import general, law
from countveil.kernels.law import provides
from countveil.laws.noise.two_sided_geometric import draws, expectations, formulas, poisson


class TwoSidedGeometricPoisson(NamedTuple):
    """The law of reports of Poisson counts under this noise; levels are alpha, where 0 is no noise."""

    likelihood: Any


class TwoSidedGeometricKernel(NamedTuple):
    """This noise for a likelihood without a law of its own."""

    parameters: tuple[()] = ()


provides(law.draw_counts, TwoSidedGeometricPoisson)(draws.draw_counts)
provides(law.expect_counts, TwoSidedGeometricPoisson)(expectations.expect_counts)


@provides(law.expected_ratio, TwoSidedGeometricPoisson)
def expected_poisson_ratio(law, report, rate, level):
    """E[y | report, rate] / rate (2.3)."""
    return expectations.ratio_only(report, rate, level)


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
