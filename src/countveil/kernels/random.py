"""Random numbers for compiled loops: NumPy's generator, gamma variables, and uniforms in bulk.

NumPy's draws take long to compile, so that they are subroutines: whatever calls them finds them on disk. A call of
NumPy's Generator costs several times as much as the numbers themselves; bulk uniforms come from xoshiro256++ (Blackman
and Vigna 2021). Every block of rows seeds a source of its own from its own stream, so that the draws depend on the
stream's key alone.
"""

import math

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


@subroutine
def binomial(trials, chance, rng):
    """Binomial(trials, chance)."""
    return rng.binomial(trials, chance)


@subroutine
def standard_gamma(shape, rng):
    """Gamma(shape, 1)."""
    return rng.standard_gamma(shape)


@subroutine
def standard_exponential(rng):
    """Exponential(1)."""
    return rng.standard_exponential()


@subroutine
def standard_normal(rng):
    """Normal(0, 1)."""
    return rng.standard_normal()


SMALLEST = 1e-150  # the smallest factor entry or rate: a product of two is still positive


@subroutine
def sample_gamma(shape, rate, rng):
    """Gamma(shape, rate), kept away from underflow so that a product of two draws stays positive."""
    return max(standard_gamma(shape, rng) / rate, SMALLEST)


@subroutine
def digamma(x):
    """d log Gamma(x) / dx for x > 0: recurrence up to 10, then the asymptotic series; to about 1e-14."""
    shift = 0.0
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    s = 1.0 / (x * x)
    series = s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * 691 / 32760)))))
    return shift + math.log(x) - 0.5 / x - series


@subroutine
def trigamma(x):
    """d^2 log Gamma(x) / dx^2 for x > 0: recurrence up to 10, then the asymptotic series; to about 1e-14."""
    shift = 0.0
    while x < 10.0:
        shift += 1.0 / (x * x)
        x += 1.0
    s = 1.0 / (x * x)
    series = s * (1 / 6 - s * (1 / 30 - s * (1 / 42 - s * (1 / 30 - s * (5 / 66 - s * 691 / 2730)))))
    return shift + (1.0 + 0.5 / x + series) / x
