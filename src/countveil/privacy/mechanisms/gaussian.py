"""Gaussian noise, on the whole numbers or on the real ones."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from statistics import NormalDist
from typing import Any, ClassVar, Self

from countveil.privacy import promise
from countveil.privacy.exact import Exact, from_text, positive, rounded_up, short
from countveil.privacy.gaussian_noise import MAX_VARIANCE
from countveil.privacy.mechanisms.base import LARGEST, MOST_DIGITS, SMALLEST, AddedNoise, scale


class _GaussianNoise(AddedNoise):
    """What both have in common."""

    sigma: Fraction
    _exact: ClassVar[tuple[str, ...]] = ("sigma",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", scale("sigma", self.sigma))

    @property
    def rho(self) -> Fraction:
        """1 / (2 sigma^2), the zero-concentrated differential privacy of one count where it changes by one."""
        return 1 / (2 * self.sigma**2)

    def describe(self) -> str:
        """The strength of the noise, and what it protects."""
        rho = rounded_up(self.rho)
        return (
            f"sigma is {short(self.sigma)}. {self._strength()} Protected, by zero-concentrated differential privacy: "
            f"rho is {rho} d^2 for two sets of counts whose squared differences add up to d^2, so one unit in "
            f"one cell has rho = {rho}, large differences are not protected, and rho adds up over "
            f"reports.{self._caveat()}"
        )

    def _caveat(self) -> str:
        return ""


@dataclass(frozen=True, repr=False)
class DiscreteGaussian(_GaussianNoise):
    """Discrete Gaussian noise.

        report = count + tau,   P(tau) = exp(-tau^2 / (2 sigma^2)) / sum_k exp(-k^2 / (2 sigma^2)),   tau whole

    ``sigma`` is the parameter, not quite the standard deviation where it is below 1. ``DiscreteGaussian(sigma)`` is for
    analysts. The owner's side has ``keeping(rho)`` and ``PrivacyLevel.zcdp(rho).mechanism``, which state
    rho = 1/(2 sigma^2) exactly in ``stated_rho``, so that sigma^2 is exact where sigma is irrational and ``sigma`` the
    nearest float to it. Otherwise it is None, and the mechanism does not equal one that states it.

    Raises TypeError if a parameter is not a number, ValueError if it is not positive.
    Source: Canonne, Kamath, Steinke (2020).
    """

    sigma: Fraction
    stated_rho: Fraction | None = None

    name: ClassVar[str] = "discrete Gaussian"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "discrete Gaussian noise"
    signed_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stated_rho is not None:
            object.__setattr__(self, "stated_rho", positive("rho", self.stated_rho))
            if self.sigma != (nearest := _sigma_of(self.stated_rho)):
                raise ValueError(f"sigma must be 1/sqrt(2 rho), {float(nearest)}, got {float(self.sigma)}")

    @classmethod
    def keeping(cls, rho: Exact) -> Self:
        """The noise that promises rho for one unit in one cell: sigma^2 = 1/(2 rho)."""
        exact = positive("rho", rho)
        return cls(_sigma_of(exact), exact)

    @property
    def rho(self) -> Fraction:
        """1 / (2 sigma^2), the zero-concentrated differential privacy of one count where it changes by one."""
        return super().rho if self.stated_rho is None else self.stated_rho

    @property
    def variance_parameter(self) -> Fraction:
        """sigma^2 = 1/(2 rho), exactly; not quite the variance where it is below 1."""
        return 1 / (2 * self.rho)

    @property
    def standard_deviation(self) -> float:
        """Of the noise, by its sums where sigma is small, sigma itself where it is not."""
        sigma = float(self.sigma)
        if sigma > 8:
            return sigma
        terms = self._terms()
        return math.sqrt(2 * sum(k * k * w for k, w in terms) / (1 + 2 * sum(w for _, w in terms)))

    @property
    def false_positive_rate(self) -> float:
        """P(tau > 0): how often a true zero is reported as positive."""
        sigma = float(self.sigma)
        if sigma > 8:
            return (1 - 1 / (sigma * math.sqrt(2 * math.pi))) / 2  # the sum is that integral but for exp(-2 pi^2 64)
        half = sum(w for _, w in self._terms())
        return half / (1 + 2 * half)

    def within(self, probability: float) -> int:
        """The smallest k with P(|tau| <= k) of at least ``probability``, which lies between 0 and 1.

        Above sigma = 1000 by the Gaussian integral from -k - 1/2 to k + 1/2, which may be one off.
        """
        if not 0 < probability < 1:
            raise ValueError(f"probability must lie between 0 and 1, got {probability}")
        sigma = float(self.sigma)
        if sigma > 1000:
            return math.ceil(sigma * NormalDist().inv_cdf((1 + probability) / 2) - 0.5)
        terms = self._terms()
        wanted, k = probability * (1 + 2 * sum(w for _, w in terms)), 0
        for seen in accumulate((2 * w for _, w in terms), initial=1.0):
            if seen >= wanted:
                break
            k += 1
        return k

    def _terms(self) -> list[tuple[int, float]]:
        """k and exp(-k^2/(2 sigma^2)) for k from 1 as far as it matters."""
        sigma = float(self.sigma)
        return [(k, math.exp(-0.5 * (k / sigma) ** 2)) for k in range(1, int(12 * sigma) + 3)]

    def parameters(self) -> dict[str, Any]:
        """``rho`` where it is stated, ``sigma`` otherwise."""
        return super().parameters() if self.stated_rho is None else {"rho": str(self.stated_rho)}

    @classmethod
    def of_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """The mechanism of rho, or of sigma alone; ValueError for anything else."""
        if set(parameters) == {"rho"}:
            return cls.keeping(from_text("rho", parameters["rho"]))
        return super().of_parameters(parameters)

    def check_released(self) -> None:
        """Raises ValueError if it states no promise, an unreadable one, or sigma^2 above 2^80, which is not drawn."""
        if self.stated_rho is None:
            raise ValueError(
                f"mechanism must be one that the owner's side draws, got {self.name!r} without a stated rho"
            )
        digits = len(str(max(self.stated_rho.numerator, self.stated_rho.denominator)))
        if digits > MOST_DIGITS:
            raise ValueError(f"rho must be a fraction of at most {MOST_DIGITS} digits, got {digits}")
        if self.variance_parameter > MAX_VARIANCE:
            raise ValueError(f"mechanism must have a rho of at least 2**-81, got {float(self.rho):.6g}")

    def describe(self) -> str:
        """The strength of the noise, what it protects, and how often it makes a zero positive."""
        if self.stated_rho is None:
            return super().describe()
        return (
            f"rho is {short(self.rho)}, so sigma^2 is {short(self.variance_parameter)} and the noise has standard "
            f"deviation {self.standard_deviation:.3g}. {promise.describe_of_rho(self.rho)} The noise leaves "
            f"{promise.unchanged(2 * self.false_positive_rate)} of counts unchanged. A true zero is reported as "
            f"positive with probability {self.false_positive_rate:.2%}."
        )

    @property
    def in_words(self) -> str:
        """The rho that it keeps, or else sigma."""
        return super().in_words if self.stated_rho is None else f"{self.title} (rho {short(self.stated_rho)})"

    def __repr__(self) -> str:
        if self.stated_rho is None:
            return super().__repr__()
        return f"DiscreteGaussian.keeping(rho={short(self.stated_rho)})"


def check_rho(rho: Fraction) -> Fraction:
    """A rho whose sigma lies in the range of scales; ValueError for any other."""
    if not 1 / (2 * LARGEST**2) <= rho <= 1 / (2 * SMALLEST**2):
        raise ValueError(f"rho must lie between 5e-201 and 5e199, got {short(rho)}")
    return rho


def _sigma_of(rho: Fraction) -> Fraction:
    """1/sqrt(2 rho) as the fraction that the nearest float is, or its neighbour; ValueError where that is no float."""
    variance = 1 / (2 * check_rho(rho))
    sigma = Fraction(math.isqrt(int(variance * 2**2000)), 2**1000)  # to 300 bits at least
    return min(max(Fraction(float(sigma)), SMALLEST), LARGEST)


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
