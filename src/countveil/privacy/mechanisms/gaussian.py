"""Gaussian noise, on the whole numbers or on the real ones."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from countveil.privacy.exact import short
from countveil.privacy.mechanisms.elsewhere import AddedNoise, scale


class _GaussianNoise(AddedNoise):
    """What both have in common."""

    sigma: Fraction
    _exact: ClassVar[tuple[str, ...]] = ("sigma",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", scale("sigma", self.sigma))

    @property
    def rho(self) -> float:
        """1 / (2 sigma^2), the zero-concentrated differential privacy of one count where it changes by one."""
        return float(1 / (2 * self.sigma**2))

    def describe(self) -> str:
        """The strength of the noise, and what it protects."""
        return (
            f"sigma is {short(self.sigma)}. {self._strength()} Protected, by zero-concentrated differential privacy: "
            f"rho is {self.rho:.3g} d^2 for two sets of counts whose squared differences add up to d^2, so one unit in "
            f"one cell has rho = {self.rho:.3g}, large differences are not protected, and rho adds up over "
            f"reports.{self._caveat()}"
        )

    def _caveat(self) -> str:
        return ""


@dataclass(frozen=True, repr=False)
class DiscreteGaussian(_GaussianNoise):
    """Discrete Gaussian noise.

        report = count + tau,   P(tau) = exp(-tau^2 / (2 sigma^2)) / sum_k exp(-k^2 / (2 sigma^2)),   tau whole

    ``sigma`` is the parameter, not quite the standard deviation where it is below 1. Raises TypeError if it is not a
    number, ValueError if it is not positive. Source: Canonne, Kamath, Steinke (2020).
    """

    sigma: Fraction

    name: ClassVar[str] = "discrete Gaussian"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "discrete Gaussian noise"

    @property
    def standard_deviation(self) -> float:
        """Of the noise, by its sums where sigma is small, sigma itself where it is not."""
        sigma = float(self.sigma)
        if sigma > 8:
            return sigma
        terms = [(k, math.exp(-0.5 * (k / sigma) ** 2)) for k in range(1, int(12 * sigma) + 3)]
        return math.sqrt(2 * sum(k * k * w for k, w in terms) / (1 + 2 * sum(w for _, w in terms)))


@dataclass(frozen=True, repr=False)
class Gaussian(_GaussianNoise):
    """Gaussian noise on the real numbers.

        report = count + tau,   tau ~ Normal(0, sigma^2)

    Raises TypeError if ``sigma`` is not a number, ValueError if it is not positive.
    """

    sigma: Fraction

    name: ClassVar[str] = "Gaussian"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "Gaussian noise"
    real: ClassVar[bool] = True

    @property
    def standard_deviation(self) -> float:
        """sigma."""
        return float(self.sigma)

    def _caveat(self) -> str:
        return " Where it was drawn in floating point, the last digits of reports may tell more."
