"""What every level of privacy has, whichever unit its promise is stated in."""

from abc import ABC, abstractmethod
from fractions import Fraction
from numbers import Integral
from typing import TYPE_CHECKING, Self

from countveil.privacy.mechanisms import Mechanism

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
