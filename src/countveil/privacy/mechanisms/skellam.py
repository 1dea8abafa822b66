"""Skellam noise: a Poisson variable less another."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from countveil.privacy.exact import short
from countveil.privacy.mechanisms.base import AddedNoise, scale

SMALLEST_RATE, LARGEST_RATE = Fraction(1, 10**9), Fraction(10**9)


@dataclass(frozen=True, repr=False)
class Skellam(AddedNoise):
    """Skellam noise.

        report = count + N1 - N2,   N1 ~ Poisson(l1),   N2 ~ Poisson(l2)

    Raises TypeError if a parameter is not a number, ValueError unless it lies between 1e-9 and 1e9.
    Source: Skellam (1946); Agarwal, Kairouz, Liu (2021).
    """

    l1: Fraction
    l2: Fraction

    name: ClassVar[str] = "Skellam"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "Skellam noise"
    _exact: ClassVar[tuple[str, ...]] = ("l1", "l2")

    def __post_init__(self) -> None:
        for name in self._exact:
            object.__setattr__(self, name, scale(name, getattr(self, name)))
            if not SMALLEST_RATE <= getattr(self, name) <= LARGEST_RATE:
                raise ValueError(f"{name} must lie between 1e-9 and 1e9, got {short(getattr(self, name))}")

    @property
    def unbiased(self) -> bool:  # type: ignore[override]
        """Whether both rates are the same; the mean of the noise is l1 - l2."""
        return self.l1 == self.l2

    @property
    def standard_deviation(self) -> float:
        """sqrt(l1 + l2)."""
        return math.sqrt(float(self.l1 + self.l2))

    def describe(self) -> str:
        """The strength of the noise, and what is not said of it."""
        return (
            f"The rates are {short(self.l1)} and {short(self.l2)}. {self._strength()} It protects about as Gaussian "
            f"noise of this standard deviation does where both rates are large, and less otherwise; no level of "
            f"privacy is stated."
        )
