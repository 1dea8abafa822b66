"""Laplace noise on the real numbers."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from countveil.privacy.exact import rounded_up, short
from countveil.privacy.mechanisms.base import AddedNoise, scale


@dataclass(frozen=True, repr=False)
class Laplace(AddedNoise):
    """Laplace noise; on whole numbers it is ``TwoSidedGeometric(exp(-1 / scale))``.

        report = count + tau,   p(tau) = exp(-|tau| / scale) / (2 scale)

    Raises TypeError if ``scale`` is not a number, ValueError if it is not positive. Source: Dwork et al. (2006).
    """

    scale: Fraction

    name: ClassVar[str] = "Laplace"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "Laplace noise"
    real: ClassVar[bool] = True
    _exact: ClassVar[tuple[str, ...]] = ("scale",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", scale("scale", self.scale))

    @property
    def standard_deviation(self) -> float:
        """sqrt(2) scale."""
        return math.sqrt(2) * float(self.scale)

    def describe(self) -> str:
        """The strength of the noise, and what it protects."""
        return (
            f"The scale is {short(self.scale)}. {self._strength()} Protected, by differential privacy: no conclusion "
            f"becomes more than e^({rounded_up(1 / self.scale)} d) times as likely under one set of counts as under "
            f"another, d being how much they differ in total, summed over all cells. Where it was drawn in floating "
            f"point, the last digits of reports may tell more."
        )
