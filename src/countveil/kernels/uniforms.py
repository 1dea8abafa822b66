"""Uniforms in bulk: xoshiro256++ (Blackman and Vigna 2021), seeded from a NumPy generator's stream.

A call of NumPy's Generator costs several times as much as the numbers themselves. Every block of rows seeds a source of
its own from its own stream, so that the draws depend on the stream's key alone.
"""

import numpy as np

from countveil.kernels.compiled import subroutine

WORD = np.uint64
STEP = WORD(0x9E3779B97F4A7C15)
UNIT = 1.0 / 9007199254740992.0  # 2^-53


@subroutine
def mixed(word):
    """A one-to-one mix of the word's bits (splitmix64)."""
    word = (word ^ (word >> WORD(30))) * WORD(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> WORD(27))) * WORD(0x94D049BB133111EB)
    return word ^ (word >> WORD(31))


@subroutine
def new_source(rng):
    """(4,) state of a source, from 212 bits of a NumPy generator; never all zero."""
    source = np.empty(4, dtype=WORD)
    for i in range(4):
        source[i] = mixed(WORD(rng.random() / UNIT) + WORD(i + 1) * STEP)
    return source


@subroutine
def fill_uniforms(source, n, uniform_n):
    """Fill the first n of uniform_n with draws from [0, 1), multiples of 2^-53, and advance the source."""
    s0, s1, s2, s3 = source[0], source[1], source[2], source[3]
    for i in range(n):
        word = s0 + s3
        word = ((word << WORD(23)) | (word >> WORD(41))) + s0
        shifted = s1 << WORD(17)
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= shifted
        s3 = (s3 << WORD(45)) | (s3 >> WORD(19))
        uniform_n[i] = np.float64(np.int64(word >> WORD(11))) * UNIT
    source[0], source[1], source[2], source[3] = s0, s1, s2, s3
