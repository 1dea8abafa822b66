"""Two-sided geometric noise in closed form: P(tau) = (1 - alpha) / (1 + alpha) alpha^|tau|, and what follows from it.

Functions of alpha, for numbers and NumPy arrays, and those that only calculate for arrays of any library;
``debiased`` takes one report at a time. Compiled loops call those that are marked for them (mathematics, sections 1, 2,
7, 10 and 12). No other module writes them out.
"""

import numpy as np
from numba.extending import register_jitable
from scipy.special import xlogy


@register_jitable
def log_normaliser(alpha):
    """log P(tau = 0) = log (1 - alpha) / (1 + alpha)."""
    return np.log1p(-alpha) - np.log1p(alpha)


def log_normaliser_of(alpha, log1p):
    """``log_normaliser`` by another library's log1p."""
    return log1p(-alpha) - log1p(alpha)


@register_jitable
def exposure(alpha):
    """1 - alpha: the exposure of a cell without a positive report, where a cell with one has 1 (3.2)."""
    return 1.0 - alpha


@register_jitable
def variance(alpha):
    """Var[tau] = 2 alpha / (1 - alpha)^2 (1.2)."""
    return 2.0 * alpha / (1.0 - alpha) ** 2


def standard_deviation(alpha):
    """The square root of ``variance``."""
    return np.sqrt(2.0 * alpha) / (1.0 - alpha)


@register_jitable
def positive_by_noise(alpha):
    """P(tau > 0) = alpha / (1 + alpha): the probability that a true zero is reported as positive (2.7)."""
    return alpha / (1.0 + alpha)


def positive_beyond_noise(rate, alpha):
    """P(report > 0 | rate) - P(tau > 0) = (1 - e^(-(1 - alpha) rate)) / (1 + alpha)."""
    return -np.expm1(-exposure(alpha) * rate) / (1.0 + alpha)


@register_jitable
def excess(alpha):
    """E[max(tau, 0)] = alpha / (1 - alpha^2)."""
    return alpha / (1.0 - alpha**2)


@register_jitable
def mean_over_positive(alpha):
    """alpha / (1 - alpha).

    Minus this is the unbiased estimate of a count whose report is not positive (12.3). It is also the mean of each of
    the two exponential rates whose Skellam noise is two-sided geometric (7.1).
    """
    return alpha / (1.0 - alpha)


@register_jitable
def debiased(report, alpha):
    """(1 + alpha) max(report, 0); less ``mean_over_positive`` its mean is zero where the rate is zero (10.1)."""
    return (1.0 + alpha) * max(report, 0)


def censored_log_probability(rate, alpha, log1p=np.log1p):
    """log P(report <= 0 | rate) = -(1 - alpha) rate - log(1 + alpha): the score of a truncated report (2.6)."""
    return -exposure(alpha) * rate - log1p(alpha)


def log_survival(k, alpha):
    """log P(tau > k) for k >= -1: alpha^(k+1) / (1 + alpha)."""
    return xlogy(k + 1, alpha) - np.log1p(alpha)


def sample(alpha, rng: np.random.Generator, shape):
    """Noise of this shape, as a difference of two geometric variables. It is seeded and protects nobody."""
    success = np.broadcast_to(exposure(alpha), shape)
    return rng.geometric(success) - rng.geometric(success)
