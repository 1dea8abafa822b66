"""Exact survival probabilities, as integers: floor(P(X >= k) * 2^bits) for the laws that noise is made of.

Every bound below is an interval of integers at a working precision, and a floor is returned only once both
ends of its interval agree on it. They do in the end: each probability is a non-constant rational function of
exp(-rate), which is transcendental at a rational rate (Lindemann-Weierstrass), so never a multiple of 2^-bits.
"""

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from math import floor

# Survival probabilities of discrete Gaussian noise between two integers, at any number of bits.
#
#     P(|tau| >= k) = 2 T_k / (1 + 2 T_1),   T_k = sum_{j >= k} w_j,   w_j = exp(-j^2 / (2 sigma^2))
#
# Every number is an interval of integers: its lower end is rounded down and its upper end up in each step.
# With q = exp(-1/(2 sigma^2)), w_(j+1) = w_j q^(2j+1). Ratios fall with j, so that what is left of a sum
# after w_J is at most w_J/(1 - q^(2J+1)).

_GUARD = 64


def magnitude(rate: Fraction, count: int, bits: int) -> list[int]:
    """floor(2^bits P(|tau| >= k)), P(|tau| >= k) = 2 alpha^k/(1 + alpha), for k = 1..count."""

    def bounds(working: int) -> list[tuple[int, int]]:
        lows, highs = _powers(rate, count, working)
        one = 1 << working
        return [
            ((2 * low << bits) // (one + highs[1]), (2 * high << bits) // (one + lows[1]))
            for low, high in zip(lows[1:], highs[1:], strict=True)
        ]

    return _certain(bounds, bits)


def geometric(rate: Fraction, count: int, bits: int) -> list[int]:
    """floor(2^bits P(G >= k)), P(G >= k) = alpha^k, for k = 1..count."""

    def bounds(working: int) -> list[tuple[int, int]]:
        lows, highs = _powers(rate, count, working)
        shift = working - bits
        return [(low >> shift, high >> shift) for low, high in zip(lows[1:], highs[1:], strict=True)]

    return _certain(bounds, bits)


def digit(rate: Fraction, base: int, bits: int) -> list[int]:
    """floor(2^bits P(G mod B >= k)), which is (alpha^k - alpha^B)/(1 - alpha^B), for k = 1..B-1."""

    def bounds(working: int) -> list[tuple[int, int]]:
        lows, highs = _powers(rate, base, working)
        one = 1 << working
        if highs[base] == one:  # too coarse to tell alpha^B from 1
            return [(0, 1)]
        return [
            (
                (max(low - highs[base], 0) << bits) // (one - lows[base]),
                (high - lows[base] << bits) // (one - highs[base]),
            )
            for low, high in zip(lows[1:base], highs[1:base], strict=True)
        ]

    return _certain(bounds, bits)


def _certain(bounds: Callable[[int], list[tuple[int, int]]], bits: int) -> list[int]:
    """The floors, at the first working precision at which both ends of every interval agree."""
    working = bits + _GUARD
    while True:
        pairs = bounds(working)
        if all(low == high for low, high in pairs):
            return [low for low, _ in pairs]
        working *= 2


def _powers(rate: Fraction, count: int, bits: int) -> tuple[list[int], list[int]]:
    """Integers with low_k <= alpha^k 2^bits <= high_k, for k = 0..count."""
    low, high = exponential(rate, bits)
    lows, highs = [1 << bits], [1 << bits]
    for _ in range(count):
        lows.append(lows[-1] * low >> bits)
        highs.append(-(-highs[-1] * high >> bits))
    return lows, highs


def exponential(rate: Fraction, bits: int) -> tuple[int, int]:
    """Integers with low <= exp(-rate) 2^bits <= high.

    The division and the exponential are both correctly rounded to P digits, so that the computed value is
    within (x exp(-x) + 1) 10^(1-P) / 2 < 10^(1-P) < 2^-bits of exp(-x), x = rate.
    """
    if rate > bits:
        return 0, 1
    digits = bits * 302 // 1000 + 10
    with localcontext(Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX)):
        rounded = (Decimal(-rate.numerator) / Decimal(rate.denominator)).exp()
    scaled = floor(Fraction(rounded) * (1 << bits))
    return max(scaled - 1, 0), min(scaled + 2, 1 << bits)


def gaussian_magnitude(variance: Fraction, count: int, bits: int) -> tuple[list[int], list[int]]:
    """Integers with low_k <= 2^bits P(|tau| >= k) <= high_k, for k = 1..count; both fall with k.

    They differ by one, or by two where 2^bits P(|tau| >= k) is within about 2^-16 of a whole number.
    """
    working = bits + _GUARD
    one = 1 << working
    lows, highs = _tails(variance, count, working)
    least, most = one + 2 * lows[0], one + 2 * highs[0]
    return [(2 * low << bits) // most for low in lows], [-(-(2 * high << bits) // least) for high in highs]


def _tails(variance: Fraction, count: int, bits: int) -> tuple[list[int], list[int]]:
    """Integers with low_k <= 2^bits T_k <= high_k, for k = 1..count, where 2^bits is well above sigma^2."""
    lows: list[int] = []
    highs: list[int] = []
    low, high = base = exponential(1 / (2 * variance), bits)
    step = _times(base, base, bits)
    ratio = _times(base, step, bits)
    while low > 0 or len(lows) < count or ratio[1] >> bits:
        lows.append(low)
        highs.append(high)
        low, high = _times((low, high), ratio, bits)
        ratio = _times(ratio, step, bits)
    return _sums(lows, 0)[:count], _sums(highs, _rest(high, ratio[1], bits))[:count]


def _rest(high: int, ratio: int, bits: int) -> int:
    """A bound on the sum of a term of at most ``high`` and all later ones, each at most ``ratio`` of the last."""
    return -(-(high << bits) // ((1 << bits) - ratio))


def _sums(terms: list[int], rest: int) -> list[int]:
    """For each term the sum of it, of all later ones, and of ``rest``."""
    return list(accumulate(reversed(terms), initial=rest))[:0:-1]


def _times(first: tuple[int, int], second: tuple[int, int], bits: int) -> tuple[int, int]:
    """The product of two intervals of numbers scaled by 2^bits."""
    return first[0] * second[0] >> bits, -(-first[1] * second[1] >> bits)
