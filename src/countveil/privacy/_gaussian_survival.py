"""Survival probabilities of discrete Gaussian noise between two integers, at any number of bits.

    P(|tau| >= k) = 2 T_k / (1 + 2 T_1),   T_k = sum_{j >= k} w_j,   w_j = exp(-j^2 / (2 sigma^2))

Every number is an interval of integers: its lower end is rounded down and its upper end up in each step. With
q = exp(-1/(2 sigma^2)), w_(j+1) = w_j q^(2j+1). Ratios fall with j, so that what is left of a sum after w_J is at most
w_J/(1 - q^(2J+1)).
"""

from fractions import Fraction
from itertools import accumulate

from countveil.privacy._survival import exponential

_GUARD = 64


def magnitude(variance: Fraction, count: int, bits: int) -> tuple[list[int], list[int]]:
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
