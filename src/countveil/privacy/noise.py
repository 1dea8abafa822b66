"""Exact two-sided geometric noise from the operating system's entropy; it cannot be seeded.

    P(tau) = (1 - alpha)/(1 + alpha) alpha^|tau|,   alpha = exp(-rate),   rate rational

It is drawn by ``inversion``. A table is finite: given |tau| >= K, it is K plus a geometric variable (memorylessness),
which is drawn digit by digit, because quotient and remainder of a geometric variable are independent:
G = r + B q, r geometric given r < B, q geometric with rate B * rate.

Nothing is kept between calls: each takes its own entropy, so that a forked process repeats nothing.
Sources: Ghosh et al. (2012); Mironov (2012) on why floating-point noise does not protect.
"""

import os
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from math import ceil
from numbers import Rational
from typing import TYPE_CHECKING

from countveil.privacy import _survival
from countveil.privacy.inversion import (
    MAX_NOISE,
    TOO_LARGE,
    Bounds,
    Entropy,
    Inversion,
    Table,
    random_word,
    random_words,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_RATE = Fraction(1, 2**40)
"""Below this rate the noise itself needs more than 41 bits. It would destroy the data, and is refused."""

_ENTRIES = 8192
_BASE = 4096
"""Sizes of tables: larger ones take more time and memory to make, smaller ones leave more to the digits."""


def draw(rate: Fraction, size: int) -> list[int]:
    """``size`` independent draws of the noise at ``rate`` (nats per unit of count), in pure Python.

    Raises TypeError if ``rate`` is not a Fraction, ValueError if it is below 2^-40 or ``size`` is negative,
    OverflowError if a draw reaches 2^62 (the probability is below exp(-2^21) at every accepted rate).
    """
    return _sampler(_checked(rate, size)).draw(size, os.urandom)


def draw_narrow(rate: Fraction, size: int) -> "NDArray[np.signedinteger]":
    """The law of ``draw`` in bulk, in int8, int16 or int64: the narrowest for nearly all draws at ``rate``, or int64.

    Raises what ``draw`` raises.
    """
    return _sampler(_checked(rate, size)).draw_array(size, os.urandom)


class Sampler(Inversion):
    """Two-sided geometric noise at one rate: a table of magnitudes, and geometric digits beyond it.

    ``entries`` (at least 2) bounds the size of the open tables; ``base`` (at least 2) is the base of the digits.
    """

    def __init__(self, rate: Fraction, entries: int = _ENTRIES, base: int = _BASE) -> None:
        self._rate, self._entries, self._base = rate, entries, base
        self.head = Table(_around(partial(_survival.magnitude, rate, _needed(rate, entries))))

    @cached_property
    def tail(self) -> tuple[list[Table], Table]:
        """Tables of the closed digits 0..B-1, lowest first, and of the open digit above them."""
        rate, digits = self._rate, []
        while _needed(rate, self._entries + 1) > self._entries:
            digits.append(Table(_around(partial(_survival.digit, rate, self._base))))
            rate *= self._base
        return digits, Table(_around(partial(_survival.geometric, rate, _needed(rate, self._entries))))

    def beyond(self, entropy: Entropy) -> int:
        """One draw of G, P(G >= k) = alpha^k, which is the law beyond any table."""
        digits, last = self.tail
        total, weight = 0, 1
        for table in digits:
            total += weight * table.look_up(random_word(entropy), entropy)
            weight *= self._base
        while True:
            count = last.look_up(random_word(entropy), entropy)
            total += weight * count
            if total + self.head.size >= MAX_NOISE:
                raise OverflowError(TOO_LARGE)
            if count < last.size:
                return total

    def beyond_array(self, size: int, entropy: Entropy) -> "NDArray[np.int64]":
        """``size`` draws of G in bulk; OverflowError where the noise would reach 2^62."""
        import numpy as np

        digits, last = self.tail
        total, weight = np.zeros(size, dtype=np.int64), 1
        for table in digits:
            total += weight * table.look_up_array(random_words(size, entropy), entropy)
            weight *= self._base
        going = np.arange(size)
        top = np.zeros(size, dtype=np.int64)
        while going.size:
            counts = last.look_up_array(random_words(going.size, entropy), entropy)
            top[going] += counts
            going = going[counts == last.size]
            if weight * (int(top.max()) + 2) + self.head.size >= MAX_NOISE:
                raise OverflowError(TOO_LARGE)
        return total + weight * top


@lru_cache(maxsize=64)
def _sampler(rate: Fraction) -> Sampler:
    return Sampler(rate)


def _around(floors: Callable[[int], list[int]]) -> Bounds:
    """The bounds of probabilities whose floors, at any number of bits, are known."""

    def bounds(bits: int) -> tuple[list[int], list[int]]:
        lows = floors(bits)
        return lows, [low + 1 for low in lows]

    return bounds


def _needed(rate: Fraction, entries: int) -> int:
    """Table entries until the survival probability is below 2^-63 (45 > 64 ln 2), at most ``entries``."""
    return min(entries, ceil(45 / rate) + 1)


def _checked(rate: Fraction, size: int) -> Fraction:
    if isinstance(rate, bool) or not isinstance(rate, Rational):
        raise TypeError(f"rate must be a Fraction, got {rate!r}")
    if rate < MIN_RATE:
        raise ValueError(f"rate must be at least 2**-40, got {float(rate):.6g}")
    if size < 0:
        raise ValueError(f"size must not be negative, got {size}")
    return Fraction(rate)
