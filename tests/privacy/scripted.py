"""Entropy that is none: words that a test chose."""

import sys


class Script:
    """The given 64-bit words, in order.

    Asked for two bytes it gives the first 16 bits of the next word, which stays until the rest is asked for.
    """

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def __call__(self, size: int) -> bytes:
        if size == 2:
            return (self.words[0] >> 48).to_bytes(2, sys.byteorder)
        assert size % 8 == 0
        return b"".join(self.words.pop(0).to_bytes(8, sys.byteorder) for _ in range(size // 8))
