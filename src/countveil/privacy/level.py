"""What is promised to the people who are counted, and the exact noise that keeps it.

Limited-precision local privacy, ``PrivacyLevel``: any two count vectors within L1 distance N of each other are
e^epsilon-indistinguishable. Two-sided geometric noise with alpha = exp(-epsilon/N) keeps that promise for
every N at once (Schein et al. (2019), Theorem 1; Ghosh et al. (2012)), so only the ratio epsilon/N, the
rate, matters to the noise; both numbers are kept because both are part of the promise.

Zero-concentrated differential privacy, ``ConcentratedLevel``: a promise of rho, which discrete Gaussian noise keeps.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from numbers import Integral
from typing import TYPE_CHECKING, Self

from countveil.privacy import gaussian_noise, noise, promise
from countveil.privacy._text import card
from countveil.privacy.exact import Exact, exact, positive, rounded_up, short
from countveil.privacy.mechanisms import DiscreteGaussian, Mechanism, TwoSidedGeometric
from countveil.privacy.mechanisms.gaussian import check_rho

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Level(ABC):
    """A promise to the people whose counts are released, and the exact noise that keeps it.

    Levels are immutable and hashable. ``PrivacyLevel`` promises epsilon at a distance N by two-sided geometric noise,
    ``ConcentratedLevel`` promises rho by discrete Gaussian noise.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """The noise that keeps this promise, with its numbers exactly."""

    @property
    @abstractmethod
    def loss(self) -> Fraction:
        """What adds up over releases, per unit of count: of two levels of a kind, the larger protects less."""

    @property
    @abstractmethod
    def false_positive_rate(self) -> float:
        """The probability that a true zero is reported as a positive number."""

    @property
    @abstractmethod
    def kept_rho(self) -> Fraction:
        """The rho for one unit in one cell that its noise keeps, whatever the promise is stated in."""

    @abstractmethod
    def numbers(self) -> dict[str, Fraction]:
        """The numbers of the promise, by the names that files give them."""

    @abstractmethod
    def check_drawn(self) -> None:
        """Raises ValueError if noise at this level is not drawn."""

    @abstractmethod
    def draw(self, size: int) -> list[int]:
        """``size`` draws of the noise from the operating system's entropy, in pure Python."""

    @abstractmethod
    def draw_narrow(self, size: int) -> "NDArray[np.signedinteger]":
        """The same in bulk, in the narrowest of int8, int16 and int64 that holds nearly all draws, or in int64."""

    @abstractmethod
    def repeated(self, times: int) -> Self:
        """The level of ``times`` independent releases of the same record."""

    @abstractmethod
    def composed_with(self, other: "Level") -> "Level":
        """The level of one release at each of two levels."""

    @abstractmethod
    def hides(self) -> str | None:
        """How little it hides where that must be said: "little", "practically nothing", or None."""

    @abstractmethod
    def in_numbers(self) -> str:
        """The numbers of the promise for reading, such as "epsilon 1 at N = 10"."""

    @abstractmethod
    def noise_in_numbers(self) -> str:
        """The strength of its noise for reading, such as "alpha 0.905"."""

    @abstractmethod
    def spelt(self) -> str:
        """The level as commands take it, such as 10:1."""

    @abstractmethod
    def sentence(self, unit: str) -> str:
        """What it protects, words first and numbers in brackets second; ``unit`` is "word" or "count"."""

    @abstractmethod
    def describe(self, together: bool = False) -> str:
        """In plain sentences: what this level protects, if anything, and what it does not.

        ``together`` says that it is what several releases add up to, and not the level of one.
        """


def check_times(times: int) -> int:
    """A number of releases; TypeError if it is not whole, ValueError below 1."""
    if isinstance(times, bool) or not isinstance(times, Integral):
        raise TypeError(f"times must be a whole number, got {times!r}")
    if times < 1:
        raise ValueError(f"times must be at least 1, got {times}")
    return int(times)


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
        return promise.epsilon_for(max(float(rho), 1e-300), float(stated)) if rho < 1e300 else math.inf

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
        return promise.HIDDEN.get(promise.strength_of_rho(self._rho))

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
        return promise.sentence_of_rho(self._rho, unit)

    def describe(self, together: bool = False) -> str:
        """In plain sentences: what this level protects, if anything, and what it does not.

        ``together`` says that it is what several releases add up to, of noises that may differ.
        """
        return promise.describe_of_rho(self._rho, together)

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
            (f"epsilon at delta = {promise.DELTA_SHOWN}", rounded_up(self.epsilon_for(promise.DELTA))),
            ("true zeros reported as positive", f"{self.false_positive_rate:.2%}"),
        ]
        return card("ConcentratedLevel", rows, self.describe())


class PrivacyLevel(Level):
    """The promise that any two sets of counts within distance N are e^epsilon-indistinguishable.

        P(report | counts) <= e^epsilon P(report | counts')   where |counts - counts'|_1 <= N
        alpha = exp(-epsilon/N)

    ``epsilon`` and ``precision`` (N, in units of counts) are kept exactly, as fractions. A float stands for
    its exact binary value: 0.1 is 3602879701896397/2^55, and ``"0.1"`` is one tenth. Levels are immutable,
    hashable, and equal when both numbers are. ``PrivacyLevel.zcdp(rho)`` is a promise of another kind.

    Raises TypeError if a parameter is not a number (a boolean is not), ValueError if it is not positive and
    finite. Source: Schein et al. (2019), Definition 3 and Theorem 1.
    """

    __slots__ = ("_epsilon", "_precision")

    def __init__(self, epsilon: Exact, precision: Exact) -> None:
        self._epsilon = positive("epsilon", epsilon)
        self._precision = positive("precision", precision)

    @staticmethod
    def zcdp(rho: Exact) -> ConcentratedLevel:
        """The promise of rho (zero-concentrated differential privacy), which discrete Gaussian noise keeps."""
        return ConcentratedLevel(rho)

    @staticmethod
    def kept_by(mechanism: Mechanism) -> Level | None:
        """The level that a mechanism was made to keep, of epsilon or of rho; None if it states none."""
        if isinstance(mechanism, DiscreteGaussian) and mechanism.stated_rho is not None:
            return ConcentratedLevel(mechanism.stated_rho)
        if not isinstance(mechanism, TwoSidedGeometric):
            return None
        if mechanism.epsilon is None or mechanism.precision is None:
            return None
        return PrivacyLevel(mechanism.epsilon, mechanism.precision)

    @property
    def epsilon(self) -> Fraction:
        """How well, in nats, two sets of counts at distance ``precision`` can be told apart."""
        return self._epsilon

    @property
    def precision(self) -> Fraction:
        """N, the L1 distance up to which ``epsilon`` is promised."""
        return self._precision

    @property
    def rate(self) -> Fraction:
        """epsilon/N, in nats per unit of count: all that the noise depends on."""
        return self._epsilon / self._precision

    @property
    def loss(self) -> Fraction:
        """epsilon/N."""
        return self.rate

    @property
    def kept_rho(self) -> Fraction:
        """(epsilon/N)^2/2. Source: Bun and Steinke (2016), Proposition 1.4."""
        return self.rate**2 / 2

    def numbers(self) -> dict[str, Fraction]:
        """epsilon and the precision N."""
        return {"epsilon": self._epsilon, "precision": self._precision}

    @property
    def mechanism(self) -> TwoSidedGeometric:
        """The noise that keeps this promise, with both numbers exactly."""
        return TwoSidedGeometric.keeping(self._epsilon, self._precision)

    @property
    def alpha(self) -> float:
        """exp(-epsilon/N) as the nearest float or its neighbour; the noise itself uses the exact ``rate``."""
        return self.mechanism.alpha

    @property
    def false_positive_rate(self) -> float:
        """The probability that a true zero is reported as a positive number."""
        return self.mechanism.false_positive_rate

    def epsilon_at(self, distance: Exact) -> Fraction:
        """The epsilon that holds between counts at this L1 distance: distance * epsilon/N, exactly."""
        found = exact("distance", distance)
        if found < 0:
            raise ValueError(f"distance must not be negative, got {distance!s}")
        return self.rate * found

    def repeated(self, times: int) -> "PrivacyLevel":
        """The level of ``times`` independent releases of the same record: times * epsilon at the same N."""
        return PrivacyLevel(self.epsilon * check_times(times), self.precision)

    def composed_with(self, other: Level) -> Level:
        """The level of one release at each of two levels, at this one's N: the rates add.

        With a level of rho it is one of rho, as ``ConcentratedLevel.composed_with`` says: no epsilon holds for both.
        """
        if isinstance(other, ConcentratedLevel):
            return other.composed_with(self)
        if not isinstance(other, PrivacyLevel):
            raise TypeError(f"other must be a PrivacyLevel, got {type(other).__name__}")
        return PrivacyLevel(self.epsilon + other.epsilon_at(self.precision), self.precision)

    def check_drawn(self) -> None:
        """Raises ValueError if the rate is below 2^-40."""
        if self.rate < noise.MIN_RATE:
            raise ValueError(f"level must have a rate of at least 2**-40, got {float(self.rate):.6g}")

    def draw(self, size: int) -> list[int]:
        """``size`` draws of the noise from the operating system's entropy, in pure Python."""
        return noise.draw(self.rate, size)

    def draw_narrow(self, size: int) -> "NDArray[np.signedinteger]":
        """The same in bulk."""
        return noise.draw_narrow(self.rate, size)

    def hides(self) -> str | None:
        """How little it hides where that must be said: "little", "practically nothing", or None."""
        return promise.hides(self.epsilon, self.precision)

    def in_numbers(self) -> str:
        """Such as "epsilon 1 at N = 10"."""
        return f"epsilon {short(self.epsilon)} at N = {short(self.precision)}"

    def noise_in_numbers(self) -> str:
        """Such as "alpha 0.905"."""
        return f"alpha {self.alpha:.3g}"

    def spelt(self) -> str:
        """N:EPSILON, such as 10:1."""
        return f"{short(self.precision)}:{short(self.epsilon)}"

    def sentence(self, unit: str) -> str:
        """What it protects, words first and numbers in brackets second; ``unit`` is "word" or "count"."""
        return promise.sentence(self.epsilon, self.precision, unit)

    def describe(self, together: bool = False) -> str:
        """Two plain sentences: what this level protects, if anything, and what it does not.

        They hold for several releases that add up to this level as well, so ``together`` changes nothing.
        """
        return promise.describe(self.epsilon, self.precision)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrivacyLevel):
            return NotImplemented
        return (self.epsilon, self.precision) == (other.epsilon, other.precision)

    def __hash__(self) -> int:
        return hash((PrivacyLevel, self._epsilon, self._precision))

    def __reduce__(self) -> tuple[type, tuple[Fraction, Fraction]]:
        return PrivacyLevel, (self._epsilon, self._precision)

    def __repr__(self) -> str:
        return f"PrivacyLevel(epsilon={short(self.epsilon)}, precision={short(self.precision)})"

    def _repr_html_(self) -> str:
        rows = [
            ("precision N", short(self.precision)),
            ("epsilon at N", short(self.epsilon)),
            ("epsilon/N", short(self.rate)),
            ("alpha", f"{self.alpha:.4g}"),
            ("true zeros reported as positive", f"{self.false_positive_rate:.2%}"),
        ]
        return card("PrivacyLevel", rows, self.describe())


def total(levels: Iterable[Level]) -> Level | None:
    """What one release at each of the levels adds up to; None for none.

    The sum of epsilon/N, at N = 1; where there is a level of rho, the sum of all ``kept_rho``.
    """
    every = tuple(levels)
    if not every:
        return None
    if any(isinstance(level, ConcentratedLevel) for level in every):
        return ConcentratedLevel(sum((level.kept_rho for level in every), Fraction(0)))
    return PrivacyLevel(sum((level.loss for level in every), Fraction(0)), 1)
