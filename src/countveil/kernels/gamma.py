"""Gamma variables, compiled: draws, and the logarithmic derivative of the gamma function."""

import math

from countveil.kernels.compiled import subroutine
from countveil.kernels.generator import standard_gamma

SMALLEST = 1e-150  # the smallest factor entry or rate: a product of two is still positive


@subroutine
def sample_gamma(shape, rate, rng):
    """Gamma(shape, rate), kept away from underflow so that a product of two draws stays positive."""
    return max(standard_gamma(shape, rng) / rate, SMALLEST)


@subroutine
def digamma(x):
    """d log Gamma(x) / dx for x > 0: recurrence up to 10, then the asymptotic series; to about 1e-14."""
    shift = 0.0
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    s = 1.0 / (x * x)
    series = s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * 691 / 32760)))))
    return shift + math.log(x) - 0.5 / x - series


@subroutine
def trigamma(x):
    """d^2 log Gamma(x) / dx^2 for x > 0: recurrence up to 10, then the asymptotic series; to about 1e-14."""
    shift = 0.0
    while x < 10.0:
        shift += 1.0 / (x * x)
        x += 1.0
    s = 1.0 / (x * x)
    series = s * (1 / 6 - s * (1 / 30 - s * (1 / 42 - s * (1 / 30 - s * (5 / 66 - s * 691 / 2730)))))
    return shift + (1.0 + 0.5 / x + series) / x
