"""A promise of rho: zero-concentrated differential privacy, which discrete Gaussian noise keeps."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from countveil.privacy import gaussian_noise, promise_of_rho
from countveil.privacy._text import card
from countveil.privacy.any_level import Level, check_times
from countveil.privacy.exact import Exact, exact, positive, rounded_up, short
from countveil.privacy.mechanisms import DiscreteGaussian
from countveil.privacy.mechanisms.gaussian import check_rho

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ConcentratedLevel(Level):
    """The promise of rho for one unit in one cell; ``PrivacyLevel.zcdp(rho)`` makes it.

        D_a(reports | counts, reports | counts') <= a rho |counts - counts'|_2^2   for all a > 1
        sigma^2 = 1/(2 rho)

    ``rho`` is kept exactly, as a fraction, and so is sigma^2, also where sigma is irrational. A float stands for its
    exact binary value. Raises TypeError if it is not a number (a boolean is not), ValueError if it does not lie
    between 5e-201 and 5e199, so that sigma is a float. Sources: Bun and Steinke (2016); Canonne, Kamath,
    Steinke (2020), Theorem 4.
    """

    __slots__ = ("_rho",)

    def __init__(self, rho: Exact) -> None:
        self._rho = check_rho(positive("rho", rho))

    @property
    def rho(self) -> Fraction:
        """What holds between two sets of counts that differ by one unit in one cell."""
        return self._rho

    @property
    def variance(self) -> Fraction:
        """sigma^2 = 1/(2 rho), exactly."""
        return 1 / (2 * self._rho)

    @property
    def mechanism(self) -> DiscreteGaussian:
        """The noise that keeps this promise, with rho exactly."""
        return DiscreteGaussian.keeping(self._rho)

    @property
    def loss(self) -> Fraction:
        """rho."""
        return self._rho

    @property
    def false_positive_rate(self) -> float:
        """The probability that a true zero is reported as a positive number."""
        return self.mechanism.false_positive_rate

    @property
    def kept_rho(self) -> Fraction:
        """rho."""
        return self._rho

    def numbers(self) -> dict[str, Fraction]:
        """rho."""
        return {"rho": self._rho}

    def rho_at(self, distance: Exact) -> Fraction:
        """The rho that holds between counts at this Euclidean distance: distance^2 rho, exactly."""
        found = exact("distance", distance)
        if found < 0:
            raise ValueError(f"distance must not be negative, got {distance!s}")
        return self._rho * found**2

    def epsilon_for(self, delta: Exact, distance: Exact = 1) -> float:
        """An epsilon so that counts at this Euclidean distance are (epsilon, delta)-indistinguishable.

        It is infinite where it is too large for a float. Raises TypeError if delta is not a number, ValueError unless
        it lies between 5e-324, the smallest float, and 1. Source: Canonne, Kamath, Steinke (2020), Proposition 12.
        """
        stated = exact("delta", delta)
        if not 0 < stated < 1:
            raise ValueError(f"delta must lie between 0 and 1, got {delta}")
        if not float(stated):
            raise ValueError(f"delta must be at least 5e-324, the smallest float, got {delta}")
        rho = self.rho_at(distance)
        if not rho:
            return 0.0
        return promise_of_rho.epsilon_for(max(float(rho), 1e-300), float(stated)) if rho < 1e300 else math.inf

    def repeated(self, times: int) -> "ConcentratedLevel":
        """The level of ``times`` independent releases of the same record: times * rho."""
        return ConcentratedLevel(self._rho * check_times(times))

    def composed_with(self, other: Level) -> "ConcentratedLevel":
        """The level of one release at each of two levels: the rhos add, and epsilon/N counts as (epsilon/N)^2/2.

        Two-sided geometric noise of that rate keeps such a rho in every cell, and no epsilon holds for both releases.
        Of several levels, compose those of rho first: squares of rates that are added up one by one are smaller.
        Sources: Bun and Steinke (2016), Lemma 1.7 and Proposition 1.4.
        """
        if not isinstance(other, Level):
            raise TypeError(f"other must be a level, got {type(other).__name__}")
        return ConcentratedLevel(self._rho + other.kept_rho)

    def check_drawn(self) -> None:
        """Raises ValueError if sigma^2 is above 2^80."""
        if self.variance > gaussian_noise.MAX_VARIANCE:
            raise ValueError(f"level must have a rho of at least 2**-81, got {float(self._rho):.6g}")

    def draw(self, size: int) -> list[int]:
        """``size`` draws of the noise from the operating system's entropy, in pure Python."""
        return gaussian_noise.draw(self.variance, size)

    def draw_narrow(self, size: int) -> "NDArray[np.signedinteger]":
        """The same in bulk."""
        return gaussian_noise.draw_narrow(self.variance, size)

    def hides(self) -> str | None:
        """How little it hides where that must be said: "little", "practically nothing", or None."""
        return promise_of_rho.hides(self._rho)

    def in_numbers(self) -> str:
        """Such as "rho 1/8"."""
        return f"rho {short(self._rho)}"

    def noise_in_numbers(self) -> str:
        """Such as "sigma 2"."""
        return f"sigma {float(self.mechanism.sigma):.3g}"

    def spelt(self) -> str:
        """Such as rho:0.125."""
        return f"rho:{short(self._rho)}"

    def sentence(self, unit: str) -> str:
        """What it protects, words first and numbers in brackets second; ``unit`` is "word" or "count"."""
        return promise_of_rho.sentence(self._rho, unit)

    def describe(self, together: bool = False) -> str:
        """In plain sentences: what this level protects, if anything, and what it does not.

        ``together`` says that it is what several releases add up to, of noises that may differ.
        """
        return promise_of_rho.describe(self._rho, together)

    def __eq__(self, other: object) -> bool:
        return self._rho == other.rho if isinstance(other, ConcentratedLevel) else NotImplemented

    def __hash__(self) -> int:
        return hash((ConcentratedLevel, self._rho))

    def __reduce__(self) -> tuple[type, tuple[Fraction]]:
        return ConcentratedLevel, (self._rho,)

    def __repr__(self) -> str:
        return f"PrivacyLevel.zcdp({short(self._rho)})"

    def _repr_html_(self) -> str:
        rows = [
            ("rho", short(self._rho)),
            ("sigma^2", short(self.variance)),
            (f"epsilon at delta = {promise_of_rho.DELTA_SHOWN}", rounded_up(self.epsilon_for(promise_of_rho.DELTA))),
            ("true zeros reported as positive", f"{self.false_positive_rate:.2%}"),
        ]
        return card("ConcentratedLevel", rows, self.describe())
