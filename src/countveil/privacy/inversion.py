"""Noise by inversion: a table of survival probabilities, compared with a uniform number as many bits as needed.

|tau| is the number of survival probabilities S_k = P(|tau| >= k) above a uniform number U. A 64-bit word gives the
sign and the first 63 bits of U. Each S_k lies between two integers over 2^63, and so the word decides, unless it lies
between the two: then 64 further bits of U are drawn and compared with closer bounds, as often as needed. So the law
is the mathematical one, not a 63-bit approximation of it: bounds decide only how many bits are drawn.

In bulk the first 16 bits of a word (the sign and 15 bits of U) are drawn first, and mostly decide: no survival
probability lies among the numbers that begin with these bits. Where one does, the other 48 bits are drawn, and
the word is looked up as above. This takes a quarter of the entropy; the law is the same.

Source: Knuth and Yao (1976) on drawing exactly, bit by bit.
"""

import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Entropy = Callable[[int], bytes]
Bounds = Callable[[int], tuple[list[int], list[int]]]
"""Of a number of bits: integers with low_k <= 2^bits S_k <= high_k, low_k < high_k, for k = 1..K; both fall with k."""

MAX_NOISE = 2**62
"""|tau| stays below this, so that a count up to 2^62 plus noise fits in 64 bits."""
TOO_LARGE = "noise must stay below 2**62, got a larger draw"

_BITS = 63
_MASK = (1 << _BITS) - 1
_CHUNK = 1 << 16
"""Draws made at a time: more take more memory, fewer more time."""
_GUIDE_BITS = 15
"""With the sign, 16 bits: two bytes of entropy decide most draws."""
_REST = (1 << (_BITS - _GUIDE_BITS)) - 1


class Table:
    """Counts the survival probabilities S_1 > S_2 > ... > S_K that lie above a uniform number.

    ``ascending`` and ``last`` hold, for S_K..S_1, the first and the last word that do not say on which side U lies.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.ascending, self.last = self._undecided(_BITS)
        self.size = len(self.ascending)

    def _undecided(self, bits: int) -> tuple[list[int], list[int]]:
        """The first and the last word of this many bits that do not decide, for S_K..S_1."""
        lows, highs = self._bounds(bits)
        return lows[::-1], [high - 1 for high in reversed(highs)]

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
            ascending, last = self._undecided(bits)
            place = bisect_right(ascending, word)
            if not (place and word <= last[place - 1]):
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


def _words(size: int, entropy: Entropy) -> Iterator[int]:
    """``size`` random 64-bit words with a sign, a buffer at a time."""
    for start in range(0, size, _CHUNK):
        buffer = array("q")
        buffer.frombytes(entropy(8 * min(_CHUNK, size - start)))
        yield from buffer


def random_word(entropy: Entropy) -> int:
    """63 random bits."""
    return int.from_bytes(entropy(8), sys.byteorder) & _MASK


def random_words(size: int, entropy: Entropy) -> "NDArray[np.int64]":
    """``size`` times 63 random bits."""
    import numpy as np

    return np.frombuffer(entropy(8 * size), dtype=np.int64) & _MASK
