"""Two-sided geometric noise, the mechanism of the owner's side of this package."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, Self, cast

from countveil.privacy import promise
from countveil.privacy.exact import Exact, from_text, positive, rounded_up, short
from countveil.privacy.mechanisms.base import MOST_DIGITS, Mechanism, names_in
from countveil.privacy.noise import MIN_RATE


@dataclass(frozen=True, repr=False)
class TwoSidedGeometric(Mechanism):
    """Two-sided geometric noise, also called the discrete Laplace law.

        report = count + tau,   P(tau) = (1 - alpha)/(1 + alpha) alpha^|tau|,   alpha in [0, 1)

    ``TwoSidedGeometric(alpha)`` is for analysts who know only the strength of the noise; alpha = 0 is no noise.
    The owner's side has ``keeping(epsilon, precision)`` and ``PrivacyLevel.mechanism``, which state both numbers
    of the promise exactly, as fractions. Otherwise ``epsilon`` and ``precision`` are None, and the mechanism does
    not equal one that states them.

    Raises TypeError if a parameter is not a number, ValueError if it is outside its range.
    Source: Schein et al. (2019), equation 4 and Theorem 1; Ghosh et al. (2012).
    """

    alpha: float
    epsilon: Fraction | None = None
    precision: Fraction | None = None

    name: ClassVar[str] = "two-sided geometric"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "two-sided geometric noise"
    unbiased: ClassVar[bool] = True
    lossless_at_zero: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.epsilon is None and self.precision is None:
            object.__setattr__(self, "alpha", _strength(self.alpha))
            return
        for name in ("epsilon", "precision"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.alpha != math.exp(-self.rate):
            raise ValueError(f"alpha must be exp(-epsilon/precision), {math.exp(-self.rate)}, got {self.alpha}")

    @classmethod
    def keeping(cls, epsilon: Exact, precision: Exact) -> Self:
        """The noise that promises epsilon at N = ``precision``: alpha = exp(-epsilon/N)."""
        exact = positive("epsilon", epsilon), positive("precision", precision)
        return cls(math.exp(-_nearest(exact[0] / exact[1])), *exact)

    @property
    def rate(self) -> float:
        """-ln(alpha), which is epsilon/N, as the nearest float; infinite without noise."""
        if self.epsilon is not None and self.precision is not None:
            return _nearest(self.epsilon / self.precision)
        return -math.log(self.alpha) if self.alpha > 0 else math.inf

    @property
    def standard_deviation(self) -> float:
        """The root of the variance, sqrt(2 alpha)/(1 - alpha)."""
        return math.sqrt(2 * self.alpha) / -math.expm1(-self.rate)

    @property
    def variance(self) -> float:
        """E[tau^2] = 2 alpha/(1 - alpha)^2; the mean of tau is 0."""
        return self.standard_deviation * self.standard_deviation

    @property
    def mean_magnitude(self) -> float:
        """E|tau| = 2 alpha/(1 - alpha^2)."""
        return 2 * self.alpha / -math.expm1(-2 * self.rate)

    @property
    def magnitude_variance(self) -> float:
        """The variance of |tau|, E[tau^2] - (E|tau|)^2 = -d E|tau| / d rate."""
        return self.variance - self.mean_magnitude**2

    @property
    def false_positive_rate(self) -> float:
        """P(tau > 0) = alpha/(1 + alpha): how often a true zero is reported as positive."""
        return self.alpha / (1 + self.alpha)

    def pmf(self, k: int) -> float:
        """P(tau = k) = (1 - alpha)/(1 + alpha) alpha^|k|."""
        return math.tanh(self.rate / 2) * self._power(abs(k))

    def tail(self, k: int) -> float:
        """P(|tau| > k) = 2 alpha^(k+1)/(1 + alpha); ValueError for a negative k."""
        if k < 0:
            raise ValueError(f"k must not be negative, got {k}")
        return 2 * self._power(k + 1) / (1 + self.alpha)

    def within(self, probability: float) -> int:
        """The smallest k with P(|tau| <= k) of at least ``probability``, which lies between 0 and 1."""
        if not 0 < probability < 1:
            raise ValueError(f"probability must lie between 0 and 1, got {probability}")
        steps = (math.log(2 / (1 + self.alpha)) - math.log1p(-probability)) / self.rate
        return max(0, math.ceil(steps) - 1)

    def residue(self, k: int, modulus: int) -> float:
        """P(tau mod m = k) = (1 - alpha)/(1 + alpha) (alpha^k + alpha^(m-k))/(1 - alpha^m), for 0 <= k < m."""
        if not 0 <= k < modulus:
            raise ValueError(f"k must be at least 0 and below the modulus {modulus}, got {k}")
        both = self._power(k) + self._power(modulus - k)
        return math.tanh(self.rate / 2) * both / -math.expm1(-self.rate * modulus)

    def parameters(self) -> dict[str, Any]:
        """``epsilon`` and ``precision`` where they are known, alpha's exact binary value otherwise."""
        if self.epsilon is None:
            return {"alpha": str(Fraction(self.alpha))}
        return {"epsilon": str(self.epsilon), "precision": str(self.precision)}

    @classmethod
    def of_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """The mechanism of epsilon and precision, or of alpha alone; ValueError for anything else."""
        if set(parameters) not in ({"epsilon", "precision"}, {"alpha"}):
            raise ValueError(f"parameters must be epsilon and precision, or alpha, got {names_in(parameters)}")
        exact = {name: from_text(name, text) for name, text in parameters.items()}
        if "alpha" not in exact:
            return cls.keeping(**exact)
        alpha = exact["alpha"]
        if alpha >= 1 or alpha != float(alpha):
            raise ValueError(f"alpha must be a 64-bit float below 1, exactly, got {short(alpha)}")
        return cls(float(alpha))

    def check_released(self) -> None:
        """Raises ValueError if it states no promise, an unreadable one, or a rate below 2^-40, which is not drawn."""
        if self.epsilon is None or self.precision is None:
            raise ValueError("mechanism must state its epsilon and precision, got only alpha")
        for name, value in (("epsilon", self.epsilon), ("precision", self.precision)):
            digits = len(str(max(value.numerator, value.denominator)))
            if digits > MOST_DIGITS:
                raise ValueError(f"{name} must be a fraction of at most {MOST_DIGITS} digits, got {digits}")
        if self.epsilon / self.precision < MIN_RATE:
            raise ValueError(f"mechanism must have a rate of at least 2**-40, got {self.rate:.6g}")

    @property
    def in_words(self) -> str:
        """The epsilon and N that it keeps, or else alpha."""
        if self.epsilon is None or self.precision is None:
            return f"{self.title} (alpha {self.alpha:.4g})"
        return f"{self.title} (epsilon {short(self.epsilon)}, N {short(self.precision)})"

    def describe(self) -> str:
        """The strength of the noise, what it protects, and how often it makes a zero positive."""
        strength = f"alpha is {self.alpha:.4g} and the noise has standard deviation {self.standard_deviation:.3g}."
        kept = f"The noise leaves {promise.unchanged(2 * self.false_positive_rate)} of counts unchanged."
        zeros = f"{kept} A true zero is reported as positive with probability {self.false_positive_rate:.2%}."
        if self.epsilon is not None and self.precision is not None:
            stated = f"epsilon is {short(self.epsilon)} at N = {short(self.precision)}, so "
            return f"{stated}{strength} {promise.describe(self.epsilon, self.precision)} {zeros}"
        if self.alpha == 0:
            return "alpha is 0: there is no noise, and nothing is protected."
        return (
            f"{strength} No conclusion drawn from the report becomes more than e^({rounded_up(self.rate)} d) times as "
            f"likely under one set of counts as under another, d being how much they differ in total, summed "
            f"over all cells. {zeros}"
        )

    def __repr__(self) -> str:
        if self.epsilon is None or self.precision is None:
            return f"TwoSidedGeometric({self.alpha!r})"
        stated = f"epsilon={short(self.epsilon)}, precision={short(self.precision)}"
        return f"TwoSidedGeometric.keeping({stated})"

    def _power(self, k: int) -> float:
        """alpha^k, from the rate: precise for any k where alpha is near 1, and 1 at k = 0 also without noise."""
        return math.exp(-self.rate * k) if k else 1.0


def _strength(alpha: Any) -> float:
    """alpha as a float; raises TypeError if it is not a number, ValueError outside [0, 1)."""
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        raise TypeError(f"alpha must be a number, got {alpha!r}")
    if not 0 <= cast(float, alpha) < 1 or not (found := float(alpha)) < 1:  # some whole numbers are beyond all floats
        raise ValueError(f"alpha must be at least 0 and below 1, got {alpha!s:.40}")
    return found


def _nearest(rate: Fraction) -> float:
    """A positive fraction as a float: infinite where it is too large for one, the smallest where too small."""
    return max(float(rate), math.ulp(0.0)) if rate < 1e300 else math.inf
