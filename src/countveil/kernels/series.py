"""Sums of the weights low^n high^(n + order) / (n! (n + order)!), n = 0, 1, ..., relative to one of them.

They are the modified Bessel function's series, hence both the Bessel law (order fixed) and the Skellam law
(order its absolute value, low and high its rates). All terms are positive and the ratios of neighbours fall,
so running outwards from the largest is stable, at any size, and needs no special function.
"""

import math
from typing import Any

from countveil.kernels.compiled import elementwise, kernel
from countveil.kernels.poisson import poisson_logpmf, sum_above

TOLERANCE = 1e-18


@kernel
def balance_point(order: int, geometric_mean: float) -> float:
    """The real mode of the weights: the x >= 0 with x (x + order) = geometric_mean^2; nothing cancels."""
    if geometric_mean <= 0.0:
        return 0.0
    argument = 2.0 * geometric_mean
    return geometric_mean * (argument / (order + math.hypot(float(order), argument)))


@kernel
def sum_upwards(n: int, order: int, low: float, high: float) -> float:
    """Sum of the weights above n over the weight at n."""
    total = 0.0
    term = 1.0
    i = float(n)
    while True:
        i += 1.0
        term *= (low / i) * (high / (i + order))
        total += term
        if term <= TOLERANCE * (1.0 + total):
            return total


@kernel
def sum_downwards(n: int, order: int, low: float, high: float) -> float:
    """Sum of the weights below n over the weight at n; n at or below the mode, or near it."""
    total = 0.0
    term = 1.0
    i = float(n)
    while i > 0.0:
        term *= (i / low) * ((i + order) / high)
        total += term
        if term <= TOLERANCE * (1.0 + total):
            break
        i -= 1.0
    return total


@kernel
def moments_about(n: int, order: int, low: float, high: float) -> tuple[float, float]:
    """E[N - n] and E[(N - n)^2] under the normalised weights; n their mode."""
    total = 1.0
    first = 0.0
    second = 0.0
    term = 1.0
    step = 0.0
    while term * step * step > TOLERANCE * second or step < 2.0:
        step += 1.0
        term *= (low / (n + step)) * (high / (n + step + order))
        total += term
        first += step * term
        second += step * step * term
        if term == 0.0:
            break
    term = 1.0
    for down in range(1, n + 1):
        i = float(n - down + 1)
        term *= (i / low) * ((i + order) / high)
        total += term
        first -= down * term
        second += float(down) * down * term
        if term * down * down <= TOLERANCE * second:
            break
    return first / total, second / total


@kernel
def log_complement(log_p: float) -> float:
    """log(1 - p) from log p; for p that is not close to one."""
    return math.log1p(-math.exp(log_p))


# The Skellam distribution, compiled: log mass and log tails of a Poisson variable less another.

NEGLIGIBLE = 1e-22


@elementwise
def skellam_logpmf(k: Any, rate1: Any, rate2: Any) -> Any:
    """log P(N1 - N2 = k)."""
    order, high, low = (k, rate1, rate2) if k >= 0 else (-k, rate2, rate1)
    n = int(balance_point(order, math.sqrt(low) * math.sqrt(high)))
    at_n = poisson_logpmf(n, low) + poisson_logpmf(n + order, high)
    return at_n + math.log1p(sum_upwards(n, order, low, high) + sum_downwards(n, order, low, high))


@kernel
def _upper_tail(k: int, rate1: float, rate2: float) -> float:
    """log P(N1 - N2 > k), for k above the mean less one: the sum over n of P(N2 = n) P(N1 > n + k).

    The summand is log-concave in n. The sum runs downwards, because P(N1 > x - 1) = P(N1 > x) + P(N1 = x)
    only adds. Everything is relative to P(N2 = n) P(N1 = n + k) at the n where that is largest.
    """
    n = int(balance_point(abs(k), math.sqrt(rate1) * math.sqrt(rate2))) + max(0, -k)
    scale = poisson_logpmf(n, rate2) + poisson_logpmf(n + k, rate1)
    mass = 1.0
    while True:
        step = (rate2 / (n + 1.0)) * (rate1 / (n + k + 1.0))
        if mass * step <= NEGLIGIBLE:
            break
        mass *= step
        n += 1
    tail = mass * sum_above(n + k, rate1)
    total = tail
    while n > 0:
        tail = (tail + mass) * (n / rate2)
        mass = mass * (n / rate2) * ((n + k) / rate1) if n + k > 0 else 0.0
        n -= 1
        total += tail
        if tail + mass <= NEGLIGIBLE * total:
            break
    return scale + math.log(total) if total > 0.0 and scale > -math.inf else -math.inf


@elementwise
def skellam_logsf(k: Any, rate1: Any, rate2: Any) -> Any:
    """log P(N1 - N2 > k)."""
    if k > rate1 - rate2 - 1.0:
        return _upper_tail(k, rate1, rate2)
    return log_complement(_upper_tail(-k - 1, rate2, rate1))


@elementwise
def skellam_logcdf(k: Any, rate1: Any, rate2: Any) -> Any:
    """log P(N1 - N2 <= k)."""
    if k < rate1 - rate2:
        return _upper_tail(-k - 1, rate2, rate1)
    return log_complement(_upper_tail(k, rate1, rate2))
