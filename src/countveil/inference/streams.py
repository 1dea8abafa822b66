"""Random streams keyed by their use, so that a seed gives the same chain however the work is split."""

from typing import Any, NamedTuple

import numpy as np
from numpy.random.bit_generator import ISeedSequence

ROWS, COLUMNS, HYPERS, START, SPLITS, PARAMETERS, MOVES, TOTALS, DISPERSION = range(9)


class Key(ISeedSequence):
    """A key used without mixing, so that a generator takes no entropy from the operating system."""

    def __init__(self, words: tuple[int, int]) -> None:
        self.words = np.array(words, dtype=np.uint64)

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> np.ndarray:
        """The words of the key."""
        return self.words


class Streams(NamedTuple):
    """The random generators of one chain: one for every (sweep, purpose, block)."""

    key: tuple[int, int]

    @classmethod
    def of_chain(cls, seed: int, chain: int) -> "Streams":
        """Streams of chain number ``chain`` of a run with this seed."""
        words = np.random.SeedSequence(seed, spawn_key=(chain,)).generate_state(2, np.uint64)
        return cls((int(words[0]), int(words[1])))

    def generator(self, sweep: int, purpose: int, block: int = 0) -> np.random.Generator:
        """The generator for one block of one sweep; streams of different arguments never overlap.

        Philox counts in 256 bits: the upper two words name the stream, the lower two count within it.
        """
        counter = np.array([0, 0, purpose << 48 | block, sweep], dtype=np.uint64)
        key: Any = Key(self.key)
        return np.random.Generator(np.random.Philox(key, counter=counter))
