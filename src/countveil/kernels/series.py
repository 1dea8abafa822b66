"""Sums of the weights low^n high^(n + order) / (n! (n + order)!), n = 0, 1, ..., relative to one of them.

They are the modified Bessel function's series, hence both the Bessel law (order fixed) and the Skellam law
(order its absolute value, low and high its rates). All terms are positive and the ratios of neighbours fall,
so running outwards from the largest is stable, at any size, and needs no special function.
"""

import math

from countveil.kernels.compiled import kernel

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
