"""What is promised to a participant: a precision N, an epsilon, and nothing else.

Limited-precision local privacy: any two count vectors within L1 distance N of each other are
e^epsilon-indistinguishable. Two-sided geometric noise with alpha = exp(-epsilon/N) keeps that promise for
every N at once (Schein et al. (2019), Theorem 1; Ghosh et al. (2012)), so only the ratio epsilon/N, the
rate, matters to the noise; both numbers are kept because both are part of the promise.
"""

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import SupportsFloat, TypeAlias, cast

from countveil.privacy._html import card

Exact: TypeAlias = SupportsFloat | Decimal | str
"""int, float, Fraction, Decimal, a NumPy scalar, or a decimal string."""

HIDES_LITTLE = 5
HIDES_NOTHING = 20
"""Above these epsilons no protection is claimed: a shift by N goes unseen about once in e^(epsilon/2)."""
LITTLE = "little"

_MAX_BITS = 4096
_MAX_DIGITS = 1200


class PrivacyLevel:
    """The promise that any two sets of counts within distance N are e^epsilon-indistinguishable.

        P(report | counts) <= e^epsilon P(report | counts')   where |counts - counts'|_1 <= N
        alpha = exp(-epsilon/N)

    ``epsilon`` and ``precision`` (N, in units of counts) are kept exactly, as fractions. A float stands for
    its exact binary value: 0.1 is 3602879701896397/2^55, and ``"0.1"`` is one tenth. Levels are immutable,
    hashable, and equal when both numbers are.

    Raises TypeError if a parameter is no number (booleans are none), ValueError if it is not positive and
    finite. Source: Schein et al. (2019), Definition 3 and Theorem 1.
    """

    __slots__ = ("_epsilon", "_precision")

    def __init__(self, epsilon: Exact, precision: Exact) -> None:
        self._epsilon = _positive("epsilon", epsilon)
        self._precision = _positive("precision", precision)

    @property
    def epsilon(self) -> Fraction:
        """How far apart, in nats, two sets of counts at distance ``precision`` can be told."""
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
    def alpha(self) -> float:
        """exp(-epsilon/N) as the nearest float or its neighbour; the noise itself uses the exact ``rate``."""
        return math.exp(-float(self.rate)) if self.rate < 1000 else 0.0

    @property
    def false_positive_rate(self) -> float:
        """The probability alpha/(1 + alpha) that a true zero is reported as a positive number."""
        return self.alpha / (1 + self.alpha)

    def epsilon_at(self, distance: Exact) -> Fraction:
        """The epsilon that holds between counts at this L1 distance: distance * epsilon/N, exactly."""
        exact = _exact("distance", distance)
        if exact < 0:
            raise ValueError(f"distance must not be negative, got {distance!s}")
        return self.rate * exact

    def repeated(self, times: int) -> "PrivacyLevel":
        """The level of ``times`` independent releases of the same record: times * epsilon at the same N."""
        if isinstance(times, bool) or not isinstance(times, Integral):
            raise TypeError(f"times must be a whole number, got {times!r}")
        if times < 1:
            raise ValueError(f"times must be at least 1, got {times}")
        return PrivacyLevel(self.epsilon * int(times), self.precision)

    def composed_with(self, other: "PrivacyLevel") -> "PrivacyLevel":
        """The level of one release at each of two levels, at this one's N: the rates add."""
        if not isinstance(other, PrivacyLevel):
            raise TypeError(f"other must be a PrivacyLevel, got {type(other).__name__}")
        return PrivacyLevel(self.epsilon + other.epsilon_at(self.precision), self.precision)

    def describe(self) -> str:
        """Two plain sentences: what this level protects, if anything, and what it does not."""
        precision, rate = short(self.precision), short(self.rate)
        hidden, told = hides(self), _told(self)
        exponent = _felt(self) if hidden is None else self.rate * told
        factor = f"e^{short(exponent)}" + (f" (about {math.exp(exponent):.3g})" if exponent <= 20 else "")
        if hidden is None:
            most = precision if self.precision >= 1 else f"1 (N = {precision} is less than any difference)"
            first = (
                f"Protected: any two sets of counts that differ by at most {most} in total, summed over "
                f"all cells, are hard to tell apart, because no conclusion drawn from the report becomes more "
                f"than {factor} times as likely under one than under the other. Less protected: "
            )
        else:
            first = (
                f"This level (N = {precision}) hides {hidden}: two sets of counts that differ by "
                f"{short(told)} in a single cell can "
                f"{'usually' if hidden == LITTLE else 'almost always'} be told apart, because conclusions drawn "
                f"from the report become up to {factor} times as likely under one as under the other. "
                f"Protected even less: "
            )
        return (
            f"{first}larger differences, sums over many counts, and counts that are reported more "
            f"than once, because the exponent grows by {rate} for every further unit of difference and "
            f"adds up over reports."
        )

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


def hides(level: PrivacyLevel) -> str | None:
    """How little a level hides where that must be said: "little", "practically nothing", or None."""
    felt = _felt(level)
    if felt <= HIDES_LITTLE:
        return None
    return LITTLE if felt <= HIDES_NOTHING else "practically nothing"


def _felt(level: PrivacyLevel) -> Fraction:
    """The epsilon at N, or at the smallest difference there is, one count, where N is less."""
    return max(level.epsilon, level.rate)


def _told(level: PrivacyLevel) -> Fraction:
    """A small difference in one cell that gives a weak level away: far below N where N and epsilon are both large."""
    threshold = HIDES_LITTLE if hides(level) == LITTLE else HIDES_NOTHING
    return min(Fraction(math.floor(threshold / level.rate) + 1), max(level.precision, Fraction(1)))


def short(value: Fraction) -> str:
    """A short decimal or fraction for reading, exact wherever that is short enough."""
    if value.denominator == 1 and value < 10**15:
        return str(value.numerator)
    try:
        nearest = float(value)
    except OverflowError:
        return f"{Decimal(value.numerator) / Decimal(value.denominator):.6g}"
    if value in (Fraction(nearest), Fraction(repr(nearest))) and len(repr(nearest)) <= 12:
        return repr(nearest).removesuffix(".0")
    if value.numerator <= 9999 and value.denominator <= 9999:
        return f"{value.numerator}/{value.denominator}"
    return f"{nearest:.6g}"


def _positive(name: str, value: Exact) -> Fraction:
    exact = _exact(name, value)
    if exact <= 0:
        raise ValueError(f"{name} must be positive, got {value!s}")
    return exact


def _exact(name: str, value: Exact) -> Fraction:
    """The number itself as a fraction; NumPy's scalars come in through the abstract number types."""
    if isinstance(value, str):
        try:
            value = Decimal(value)
        except InvalidOperation:
            raise ValueError(f"{name} must be a decimal number, got {value!r}") from None
    if isinstance(value, bool) or not isinstance(value, Decimal | Real):
        raise TypeError(f"{name} must be a number or a decimal string, got {value!r}")
    if isinstance(value, Decimal):
        return _from_decimal(name, value)
    if isinstance(value, Rational):
        exact = Fraction(int(value.numerator), int(value.denominator))
    else:
        real = cast(float, value)
        if not math.isfinite(real):
            raise ValueError(f"{name} must be finite, got {value!s}")
        exact = Fraction(*(int(part) for part in real.as_integer_ratio()))
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _MAX_BITS:
        raise ValueError(f"{name} must be a fraction of numbers below 2**{_MAX_BITS}, got a longer one")
    return exact


def _from_decimal(name: str, value: Decimal) -> Fraction:
    """Refuses what cannot be written out in ``_MAX_DIGITS`` digits before trying to write it out."""
    if not value.is_finite():
        raise ValueError(f"{name} must be finite, got {value}")
    exponent = int(value.as_tuple().exponent)
    if value and len(value.as_tuple().digits) + abs(exponent) > _MAX_DIGITS:
        raise ValueError(f"{name} must have at most {_MAX_DIGITS} digits, got {value:.6g}")
    return Fraction(value)
