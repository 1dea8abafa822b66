"""A mechanism that was added by its recipe: every unit of a count is reported, or lost by itself with a known chance.

    report ~ Binomial(count, 1 - loss)

A report of zero has probability loss^count: such a cell has exposure 1 - loss, and need not be stored.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from countveil.kernels import general, law
from countveil.kernels.law import provides


class ThinningKernel(NamedTuple):
    """Thinning, for compiled loops."""

    parameters: tuple[()] = ()


class ThinningNoise:
    """What a thinned report says about its count. Levels are chances of loss."""

    mechanism = "thinning"
    level = "loss"
    levels_below = 1.0
    counts_positive = True
    unbiased = True
    kernel = ThinningKernel()

    def in_words(self, level):
        return f"loss from {level.min():.4g} to {level.max():.4g}"

    def level_of(self, mechanism):
        return float(mechanism.loss)

    def ratio(self, level):
        return level

    def bias(self, level):
        return 0.0 * level

    def positive_by_noise(self, level):
        return 0.0 * level

    def mean_at_zero(self, level):
        return 0.0 * level

    def standard_deviation(self, level):
        return np.sqrt(level)

    def variance(self, reports, level):
        return np.broadcast_to(self.standard_deviation(level) ** 2, np.shape(reports))

    def contradiction(self, tally):
        return None

    def log_kernel(self, report, count, level):
        return stats.binom.logpmf(report, count, 1.0 - level)

    def sample(self, counts, level, rng):
        return rng.binomial(counts, 1.0 - np.broadcast_to(level, counts.shape))


@provides(general.log_kernel, ThinningKernel)
def log_kernel(noise, report, count, level):
    lost = count - report
    ways = math.lgamma(count + 1.0) - math.lgamma(report + 1.0) - math.lgamma(lost + 1.0)
    return ways + report * math.log1p(-level) + (lost * math.log(level) if lost > 0 else 0.0)


@provides(general.least_count, ThinningKernel)
def least_count(noise, report, level):
    return report


@provides(general.most_count, ThinningKernel)
def most_count(noise, report, level):
    return -1 if level > 0.0 else report


@provides(general.kernel_ratio, ThinningKernel)
def kernel_ratio(noise, level):
    return level


@provides(general.log_unseen, ThinningKernel)
def log_unseen(noise, level):
    return 0.0


@provides(law.debiased, ThinningKernel)
def debiased(noise, report, level):
    return report / (1.0 - level)


@provides(law.bias, ThinningKernel)
def bias(noise, level):
    return 0.0


@provides(law.unbiased, ThinningKernel)
def unbiased(noise, report, level):
    return report / (1.0 - level)
