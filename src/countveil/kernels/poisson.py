"""The Poisson distribution, compiled: log mass, sums of the mass on either side of a count, draws by inversion."""

import math

import numpy as np

from countveil.kernels.compiled import subroutine

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
SERIES_TOLERANCE = 1e-18
INVERSION_LIMIT = 48.0
RECIPROCALS = np.concatenate([[0.0], 1.0 / np.arange(1.0, 513.0)])


@subroutine
def stirling_error(n):
    """log n! - log(sqrt(2 pi n) (n/e)^n) for n >= 1, to about 1e-15."""
    if n <= 15:
        return math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - HALF_LOG_TWO_PI
    s = 1.0 / (n * n)
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - s / 1188) * s) * s) * s) / n


@subroutine
def poisson_deviance(n, rate):
    """n log(n/rate) + rate - n, without cancellation where n is close to the rate (n > 0, rate > 0)."""
    gap = n - rate
    if abs(gap) > 0.1 * (n + rate):
        return n * (math.log(n) - math.log(rate)) - gap
    d = gap / (n + rate)
    d2 = d * d
    power = 2.0 * n * d * d2
    total = gap * d
    j = 3.0
    while True:
        updated = total + power / j
        if updated == total or math.isnan(updated):
            return updated
        total = updated
        power *= d2
        j += 2.0


@subroutine
def poisson_logpmf(n, rate):
    """log of rate^n e^-rate / n!, by the saddle-point expansion (Loader 2000); n >= 0, rate >= 0."""
    if n == 0:
        return -rate
    if rate <= 0.0:
        return -math.inf
    if n > rate and rate < 1e-290:
        return n * math.log(rate) - rate - math.lgamma(n + 1.0)
    x = float(n)
    return -HALF_LOG_TWO_PI - 0.5 * math.log(x) - stirling_error(x) - poisson_deviance(x, rate)


@subroutine
def sum_below(r, x):
    """sum_{j=1..r} r (r-1) ... (r-j+1) / x^j: Poisson(x) mass below r over its mass at r. For x >= r."""
    total = 0.0
    term = 1.0
    inverse = 1.0 / x
    left = float(r)
    while left > 0.0:
        term *= left * inverse
        total += term
        if term <= SERIES_TOLERANCE * (1.0 + total):
            break
        left -= 1.0
    return total


@subroutine
def sum_above(r, x):
    """sum_{j>=1} x^j / ((r+1) ... (r+j)): Poisson(x) mass above r over its mass at r. For x <= r + 1."""
    total = 0.0
    term = 1.0
    n = float(r)
    while True:
        n += 1.0
        term *= x / n
        total += term
        if not term > SERIES_TOLERANCE * (1.0 + total):
            return total


@subroutine
def invert_poisson(mean, rng):
    """A draw of Poisson(mean) by a running sum from zero; for means below INVERSION_LIMIT."""
    while True:
        left = rng.random()
        if left < 1.0 - mean:  # <= e^-mean
            return 0
        term = math.exp(-mean)
        for y in range(1, RECIPROCALS.size):
            left -= term
            if left < 0.0:
                return y - 1
            term *= mean * RECIPROCALS[y]
