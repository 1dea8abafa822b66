"""What is promised to a participant: a precision N, an epsilon, and nothing else.

Limited-precision local privacy: any two count vectors within L1 distance N of each other are
e^epsilon-indistinguishable. Two-sided geometric noise with alpha = exp(-epsilon/N) keeps that promise for
every N at once (Schein et al. (2019), Theorem 1; Ghosh et al. (2012)), so only the ratio epsilon/N, the
rate, matters to the noise; both numbers are kept because both are part of the promise.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from countveil.privacy import noise, promise
from countveil.privacy._text import card
from countveil.privacy.any_level import Level, check_times
from countveil.privacy.concentrated import ConcentratedLevel
from countveil.privacy.exact import Exact, exact, positive, short
from countveil.privacy.mechanisms import DiscreteGaussian, Mechanism, TwoSidedGeometric

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
