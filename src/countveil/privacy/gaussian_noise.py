"""Exact discrete Gaussian noise from the operating system's entropy; it cannot be seeded.

    P(tau) = exp(-tau^2 / (2 sigma^2)) / sum_k exp(-k^2 / (2 sigma^2)),   tau whole, sigma^2 rational

``sample`` is the sampler of Canonne, Kamath and Steinke: uniform whole numbers and comparisons of them, nothing
else, for any sigma^2. It takes tens of microseconds a draw.

Up to sigma = 3400 noise is drawn by ``inversion`` instead, from bounds of its survival probabilities
(``_survival``): nanoseconds a draw in bulk. The sign is a bit of its own, and zero has none. Given that |tau|
is beyond the table, at least K,

    P(|tau| = K + g) ~ exp(-g K/sigma^2) exp(-g^2/(2 sigma^2)),

a geometric variable of rate K/sigma^2 that is accepted with probability exp(-g^2/(2 sigma^2)).

Source: Canonne, Kamath, Steinke (2020), Algorithms 1 to 3.
"""

import os
from array import array
from fractions import Fraction
from functools import lru_cache, partial
from math import isqrt
from numbers import Rational
from typing import TYPE_CHECKING

from countveil.privacy import _survival
from countveil.privacy.inversion import MAX_NOISE, TOO_LARGE, Entropy, Inversion, Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_VARIANCE = Fraction(2**80)
"""Above it the noise itself needs more than 41 bits. It would destroy the data, and is refused."""
TABLED = Fraction(3400**2)
"""Up to this variance a table holds all but 2^-63 of the law: its magnitudes fit in 16 bits."""


def draw(variance: Fraction, size: int) -> list[int]:
    """``size`` independent draws of the noise at sigma^2 = ``variance``, in pure Python.

    Raises TypeError if ``variance`` is not a Fraction, ValueError if it is not above 0 and up to 2^80 or ``size`` is
    negative, OverflowError if a draw reaches 2^62 (the probability is below exp(-2^42) at every accepted variance).
    """
    if (found := _checked(variance, size)) > TABLED:
        return [sample(found, os.urandom) for _ in range(size)]
    return _sampler(found).draw(size, os.urandom)


def draw_narrow(variance: Fraction, size: int) -> "NDArray[np.signedinteger]":
    """The law of ``draw``, in bulk up to sigma = 3400: int8 or int16, if nearly all draws fit, or int64.

    Raises what ``draw`` raises.
    """
    if (found := _checked(variance, size)) <= TABLED:
        return _sampler(found).draw_array(size, os.urandom)
    import numpy as np

    return np.array(array("q", draw(found, size)), dtype=np.int64)


class GaussianSampler(Inversion):
    """Discrete Gaussian noise at one variance, by inversion; ``entries`` (at least 1) bounds the table's size."""

    def __init__(self, variance: Fraction, entries: int = 2**15 - 1) -> None:
        self._variance = variance
        needed = isqrt(int(90 * variance)) + 2  # exp(-45) < 2^-64
        self.head = Table(partial(_survival.gaussian_magnitude, variance, min(entries, needed)))

    def beyond(self, entropy: Entropy) -> int:
        """One draw of |tau| - K given |tau| >= K."""
        rate = self.head.size / self._variance
        while True:
            excess = 0
            while bernoulli_exp(rate, entropy):
                excess += 1
            if bernoulli_exp(excess * excess / (2 * self._variance), entropy):
                return excess

    def beyond_array(self, size: int, entropy: Entropy) -> "NDArray[np.int64]":
        """``size`` draws of ``beyond``, one by one: so few that nothing is gained in bulk."""
        import numpy as np

        return np.array([self.beyond(entropy) for _ in range(size)], dtype=np.int64)


def sample(variance: Fraction, entropy: Entropy) -> int:
    """One draw of discrete Gaussian noise, by rejection of discrete Laplace noise (Algorithm 3)."""
    scale = isqrt(variance.numerator // variance.denominator) + 1
    while True:
        found = discrete_laplace(scale, entropy)
        if bernoulli_exp((abs(found) - variance / scale) ** 2 / (2 * variance), entropy):
            if abs(found) >= MAX_NOISE:
                raise OverflowError(TOO_LARGE)
            return found


def discrete_laplace(scale: int, entropy: Entropy) -> int:
    """One draw with P(x) proportional to exp(-|x|/scale), ``scale`` a whole number from 1 (Algorithm 2)."""
    while True:
        rest = uniform(scale, entropy)
        if not bernoulli_exp(Fraction(rest, scale), entropy):
            continue
        magnitude = rest
        while bernoulli_exp(Fraction(1), entropy):
            magnitude += scale
        negative = uniform(2, entropy)
        if magnitude or not negative:  # zero has one sign, not two
            return -magnitude if negative else magnitude


def bernoulli_exp(rate: Fraction, entropy: Entropy) -> bool:
    """True with probability exp(-rate), for a rational rate of at least 0 (Algorithm 1)."""
    while rate > 1:
        if not _bernoulli_exp_of_part(Fraction(1), entropy):
            return False
        rate -= 1
    return _bernoulli_exp_of_part(rate, entropy)


def _bernoulli_exp_of_part(rate: Fraction, entropy: Entropy) -> bool:
    """``bernoulli_exp`` for a rate of at most 1: whether a run of successes at rate/1, rate/2, ... has even length."""
    tries = 1
    while uniform(rate.denominator * tries, entropy) < rate.numerator:
        tries += 1
    return tries % 2 == 1


def uniform(below: int, entropy: Entropy) -> int:
    """A whole number from 0 to ``below`` - 1, each equally likely: bits are drawn until they are one of them."""
    bits = (below - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        found = int.from_bytes(entropy(size), "big") >> 8 * size - bits
        if found < below:
            return found


@lru_cache(maxsize=64)
def _sampler(variance: Fraction) -> GaussianSampler:
    return GaussianSampler(variance)


def _checked(variance: Fraction, size: int) -> Fraction:
    if isinstance(variance, bool) or not isinstance(variance, Rational):
        raise TypeError(f"variance must be a Fraction, got {variance!r}")
    if not 0 < variance <= MAX_VARIANCE:
        raise ValueError(f"variance must be above 0 and up to 2**80, got {float(variance):.6g}")
    if size < 0:
        raise ValueError(f"size must not be negative, got {size}")
    return Fraction(variance)
