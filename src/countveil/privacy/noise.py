"""Exact two-sided geometric noise from the operating system's entropy; it cannot be seeded.

    P(tau) = (1 - alpha)/(1 + alpha) alpha^|tau|,   alpha = exp(-rate),   rate rational

|tau| is found by inversion: it is the number of survival probabilities S_k = P(|tau| >= k) above a uniform
number U. A 64-bit word gives the sign and the first 63 bits of U, which are compared with floor(S_k 2^63).
If they are lower, U < S_k; if higher, U > S_k; at a tie 64 further bits of U are drawn and compared, as often as
needed. So the law is the mathematical one, not a 63-bit approximation of it. A table is finite: given |tau| >= K,
it is K plus a geometric variable (memorylessness), which is drawn digit by digit, because quotient and remainder
of a geometric variable are independent: G = r + B q, r geometric given r < B, q geometric with rate B * rate.

In bulk the first 16 bits of a word (the sign and 15 bits of U) are drawn first, and mostly decide: no survival
probability lies among the numbers that begin with these bits. Where one does, the other 48 bits are drawn, and
the word is looked up as above. This takes a quarter of the entropy; the law is the same.

Nothing is kept between calls: each takes its own entropy, so that a forked process repeats nothing.
Sources: Ghosh et al. (2012); Mironov (2012) on why floating-point noise does not protect;
Knuth and Yao (1976) on drawing exactly, bit by bit.
"""

import os
import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from math import ceil
from numbers import Rational
from typing import TYPE_CHECKING

from countveil.privacy import _survival

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Entropy = Callable[[int], bytes]

MIN_RATE = Fraction(1, 2**40)
"""Below this rate the noise itself needs more than 41 bits. It would destroy the data, and is refused."""
MAX_NOISE = 2**62
"""|tau| stays below this, so that a count up to 2^62 plus noise fits in 64 bits."""

_TOO_LARGE = "noise must stay below 2**62, got a larger draw"
_BITS = 63
_MASK = (1 << _BITS) - 1
_CHUNK = 1 << 16
"""Draws made at a time: more take more memory, fewer more time."""
_ENTRIES = 8192
_BASE = 4096
"""Sizes of tables: larger ones take more time and memory to make, smaller ones leave more to the digits."""
_GUIDE_BITS = 15
"""With the sign, 16 bits: two bytes of entropy decide most draws."""
_REST = (1 << (_BITS - _GUIDE_BITS)) - 1


def draw(rate: Fraction, size: int) -> list[int]:
    """``size`` independent draws of the noise at ``rate`` (nats per unit of count), in pure Python.

    Raises TypeError if ``rate`` is not a Fraction, ValueError if it is below 2^-40 or ``size`` is negative,
    OverflowError if a draw reaches 2^62 (the probability is below exp(-2^21) at every accepted rate).
    """
    return _sampler(_checked(rate, size)).draw(size, os.urandom)


def draw_array(rate: Fraction, size: int) -> "NDArray[np.int64]":
    """``size`` independent draws of the noise at ``rate`` as an array: the law of ``draw``, in bulk.

    Raises what ``draw`` raises.
    """
    return draw_narrow(rate, size).astype("int64", copy=False)


def draw_narrow(rate: Fraction, size: int) -> "NDArray[np.signedinteger]":
    """``draw_array`` in int8, int16 or int64: the narrowest for nearly all draws at ``rate``, or int64.

    Raises what ``draw`` raises.
    """
    return _sampler(_checked(rate, size)).draw_array(size, os.urandom)


class Table:
    """Counts the survival probabilities S_1 > S_2 > ... > S_K that lie above a uniform number.

    ``floors(bits)`` gives floor(S_k 2^bits) for k = 1..K, at any number of bits. Words from ``ascending`` to ``last``
    do not say on which side of a threshold U lies; here both are the floor itself.
    """

    def __init__(self, floors: Callable[[int], list[int]]) -> None:
        self._floors = floors
        self.ascending = self.last = floors(_BITS)[::-1]
        self.size = len(self.ascending)

    def look_up(self, word: int, entropy: Entropy) -> int:
        """The count for the uniform number whose first 63 bits are ``word``."""
        place = bisect_right(self.ascending, word)
        if place and word <= self.last[place - 1]:
            return self.settle(word, entropy)
        return self.size - place

    def settle(self, word: int, entropy: Entropy) -> int:
        """The count for a uniform number whose first 63 bits do not decide it: draw more bits."""
        bits = _BITS
        while True:
            bits += 64
            word = word << 64 | int.from_bytes(entropy(8), sys.byteorder)
            ascending = self._floors(bits)[::-1]
            place = bisect_right(ascending, word)
            if not (place and ascending[place - 1] == word):
                return self.size - place

    def look_up_array(self, words: "NDArray[np.int64]", entropy: Entropy) -> "NDArray[np.int64]":
        """``look_up`` for an array of words."""
        import numpy as np

        ascending, guide = self._thresholds, self.guide
        counts = guide[words >> (_BITS - _GUIDE_BITS)].astype(np.int64)
        unsure = np.flatnonzero(counts < 0)
        hard = words[unsure]
        places = np.searchsorted(ascending, hard, side="right")
        counts[unsure] = self.size - places
        tied = unsure[(places > 0) & (hard <= self._last[places - 1])]
        for i in tied:
            counts[i] = self.settle(int(words[i]), entropy)
        return counts

    @cached_property
    def _thresholds(self) -> "NDArray[np.int64]":
        import numpy as np

        return np.array(self.ascending, dtype=np.int64)

    @cached_property
    def _last(self) -> "NDArray[np.int64]":
        import numpy as np

        return np.array(self.last, dtype=np.int64)

    @cached_property
    def guide(self) -> "NDArray[np.int16]":
        """For each value of a word's first 15 bits the count, or -1 where it depends on the rest."""
        import numpy as np

        cell = 1 << (_BITS - _GUIDE_BITS)
        starts = np.arange(1 << _GUIDE_BITS, dtype=np.int64) * cell
        below = np.searchsorted(self._last, starts, side="left")
        below_or_inside = np.searchsorted(self._thresholds, starts + (cell - 1), side="right")
        return np.where(below == below_or_inside, self.size - below, -1).astype(np.int16)


class Inversion:
    """Noise that is symmetric about zero, from a table of magnitudes and its law beyond the table.

    ``head``, ``beyond`` (one draw of |tau| - K given |tau| >= K, K the size of the table) and ``beyond_array`` (many)
    are those of the law.
    """

    head: Table

    def beyond(self, entropy: Entropy) -> int:
        """One draw of |tau| - K given |tau| >= K."""
        raise NotImplementedError

    def beyond_array(self, size: int, entropy: Entropy) -> "NDArray[np.int64]":
        """``size`` draws of ``beyond``."""
        raise NotImplementedError

    def draw(self, size: int, entropy: Entropy) -> list[int]:
        """``size`` draws in pure Python, from a source of random bytes."""
        table, thresholds, last, beyond = self.head, self.head.ascending, self.head.last, self.head.size
        noise = []
        for word in _words(size, entropy):
            low = word & _MASK
            place = bisect_right(thresholds, low)
            magnitude = beyond - place
            if place and low <= last[place - 1]:
                magnitude = table.settle(low, entropy)
            if magnitude == beyond:
                magnitude += self.beyond(entropy)
            noise.append(-magnitude if word < 0 else magnitude)
        return noise

    @cached_property
    def _guide(self) -> "NDArray[np.signedinteger]":
        """The noise by a word's first 16 bits, sign first; the type's lowest value where they do not decide."""
        import numpy as np

        magnitudes = self.head.guide.astype(np.int64)
        decided = (magnitudes >= 0) & (magnitudes < self.head.size)
        kind = "int8" if self.head.size < 128 else "int16"
        undecided = np.iinfo(kind).min
        return np.concatenate(
            [np.where(decided, magnitudes, undecided), np.where(decided, -magnitudes, undecided)]
        ).astype(kind)

    def draw_array(self, size: int, entropy: Entropy) -> "NDArray[np.signedinteger]":
        """``size`` draws in bulk, from a source of random bytes; int64 where the guide's type is too narrow."""
        import numpy as np

        guide = self._guide
        undecided = np.iinfo(guide.dtype).min
        noise = np.empty(size, dtype=guide.dtype)
        for start in range(0, size, _CHUNK):
            first = np.frombuffer(entropy(2 * min(_CHUNK, size - start)), dtype=np.uint16)
            found = guide[first]
            hard = np.flatnonzero(found == undecided)
            if hard.size:
                drawn = self._draw_rest(first[hard], entropy)
                if max(-int(drawn.min()), int(drawn.max())) > np.iinfo(found.dtype).max:
                    found, noise = found.astype(np.int64), noise.astype(np.int64)
                found[hard] = drawn
            noise[start : start + first.size] = found
        return noise

    def _draw_rest(self, first: "NDArray[np.uint16]", entropy: Entropy) -> "NDArray[np.int64]":
        """The noise of words whose first 16 bits are known."""
        import numpy as np

        rest = np.frombuffer(entropy(8 * first.size), dtype=np.int64) & _REST
        low = (first & 0x7FFF).astype(np.int64) << (_BITS - _GUIDE_BITS) | rest
        magnitudes = self.head.look_up_array(low, entropy)
        beyond = np.flatnonzero(magnitudes == self.head.size)
        if beyond.size:
            magnitudes[beyond] += self.beyond_array(beyond.size, entropy)
        return np.where(first >> 15, -magnitudes, magnitudes)


class Sampler(Inversion):
    """Two-sided geometric noise at one rate: a table of magnitudes, and geometric digits beyond it.

    ``entries`` (at least 2) bounds the size of the open tables; ``base`` (at least 2) is the base of the digits.
    """

    def __init__(self, rate: Fraction, entries: int = _ENTRIES, base: int = _BASE) -> None:
        self._rate, self._entries, self._base = rate, entries, base
        self.head = Table(partial(_survival.magnitude, rate, _needed(rate, entries)))

    @cached_property
    def tail(self) -> tuple[list[Table], Table]:
        """Tables of the closed digits 0..B-1, lowest first, and of the open digit above them."""
        rate, digits = self._rate, []
        while _needed(rate, self._entries + 1) > self._entries:
            digits.append(Table(partial(_survival.digit, rate, self._base)))
            rate *= self._base
        return digits, Table(partial(_survival.geometric, rate, _needed(rate, self._entries)))

    def beyond(self, entropy: Entropy) -> int:
        """One draw of G, P(G >= k) = alpha^k, which is the law beyond any table."""
        digits, last = self.tail
        total, weight = 0, 1
        for table in digits:
            total += weight * table.look_up(_word(entropy), entropy)
            weight *= self._base
        while True:
            count = last.look_up(_word(entropy), entropy)
            total += weight * count
            if total + self.head.size >= MAX_NOISE:
                raise OverflowError(_TOO_LARGE)
            if count < last.size:
                return total

    def beyond_array(self, size: int, entropy: Entropy) -> "NDArray[np.int64]":
        """``size`` draws of G in bulk; OverflowError where the noise would reach 2^62."""
        import numpy as np

        def words(size: int) -> "NDArray[np.int64]":
            return np.frombuffer(entropy(8 * size), dtype=np.int64) & _MASK

        digits, last = self.tail
        total, weight = np.zeros(size, dtype=np.int64), 1
        for table in digits:
            total += weight * table.look_up_array(words(size), entropy)
            weight *= self._base
        going = np.arange(size)
        top = np.zeros(size, dtype=np.int64)
        while going.size:
            counts = last.look_up_array(words(going.size), entropy)
            top[going] += counts
            going = going[counts == last.size]
            if weight * (int(top.max()) + 2) + self.head.size >= MAX_NOISE:
                raise OverflowError(_TOO_LARGE)
        return total + weight * top


@lru_cache(maxsize=64)
def _sampler(rate: Fraction) -> Sampler:
    return Sampler(rate)


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


def _words(size: int, entropy: Entropy) -> Iterator[int]:
    """``size`` random 64-bit words with a sign, a buffer at a time."""
    for start in range(0, size, _CHUNK):
        buffer = array("q")
        buffer.frombytes(entropy(8 * min(_CHUNK, size - start)))
        yield from buffer


def _word(entropy: Entropy) -> int:
    return int.from_bytes(entropy(8), sys.byteorder) & _MASK
