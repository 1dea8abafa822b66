"""Numbers kept exactly, as fractions: taken from what people give, read from text, and shown short."""

import math
import re
from decimal import ROUND_CEILING, Decimal, InvalidOperation, localcontext
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, SupportsFloat, TypeAlias, cast

Exact: TypeAlias = SupportsFloat | Decimal | str
"""int, float, Fraction, Decimal, a NumPy scalar, or a decimal string."""

_MAX_BITS = 4096
_MAX_DIGITS = 1200
_FRACTION = re.compile(r"(0|[1-9][0-9]{0,1299})(/[1-9][0-9]{0,1299})?", re.ASCII)


def exact(name: str, value: Exact) -> Fraction:
    """The number itself as a fraction; a float stands for its exact binary value.

    Raises TypeError if it is not a number (a boolean is not), ValueError if it is not finite or takes more than
    4096 bits to write down; both name the argument.
    """
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
        found = Fraction(int(value.numerator), int(value.denominator))
    else:
        real = cast(float, value)
        if not math.isfinite(real):
            raise ValueError(f"{name} must be finite, got {value!s}")
        found = Fraction(*(int(part) for part in real.as_integer_ratio()))
    if max(found.numerator.bit_length(), found.denominator.bit_length()) > _MAX_BITS:
        raise ValueError(f"{name} must be a fraction of numbers below 2**{_MAX_BITS}, got a longer one")
    return found


def positive(name: str, value: Exact) -> Fraction:
    """``exact`` for a number that must be above zero; raises what ``exact`` raises, ValueError if it is not."""
    found = exact(name, value)
    if found <= 0:
        raise ValueError(f"{name} must be positive, got {value!s}")
    return found


def from_text(name: str, text: Any) -> Fraction:
    """The number that a file states as text such as "0", "3" or "1/10": the one spelling of a reduced fraction.

    Raises ValueError for anything else.
    """
    if not isinstance(text, str) or not _FRACTION.fullmatch(text) or str(Fraction(text)) != text:
        raise ValueError(f"{name} must be a reduced fraction in text, such as 1 or 1/10, got {ascii(text)[:40]}")
    return exact(name, Fraction(text))


def short(value: Fraction) -> str:
    """A short decimal or fraction for reading, exact wherever that is short enough."""
    if value.denominator == 1 and value < 10**15:
        return str(value.numerator)
    try:
        nearest = float(value)
    except OverflowError:
        return f"{Decimal(value.numerator) / Decimal(value.denominator):.6g}"
    if 0 < abs(value) < 1e-300:
        return f"{Decimal(value.numerator) / Decimal(value.denominator):.6g}"
    if value in (Fraction(nearest), Fraction(repr(nearest))) and len(repr(nearest)) <= 12:
        return repr(nearest).removesuffix(".0")
    if value.numerator <= 9999 and value.denominator <= 9999:
        return f"{value.numerator}/{value.denominator}"
    return f"{nearest:.6g}"


def rounded_up(value: float | Fraction) -> str:
    """A positive bound for reading, with three significant digits: never less than the value.

    A float may be more than what it stands for by its own rounding, which is left out.
    """
    if value == math.inf:
        return "inf"
    exactly = Fraction(value) * (1 - Fraction(1, 10**14)) if isinstance(value, float) else value
    with localcontext() as context:
        context.prec, context.rounding = 3, ROUND_CEILING
        return f"{(Decimal(exactly.numerator) / Decimal(exactly.denominator)).normalize():g}"


def _from_decimal(name: str, value: Decimal) -> Fraction:
    """Refuses what cannot be written out in ``_MAX_DIGITS`` digits before trying to write it out."""
    if not value.is_finite():
        raise ValueError(f"{name} must be finite, got {value}")
    exponent = int(value.as_tuple().exponent)
    if value and len(value.as_tuple().digits) + abs(exponent) > _MAX_DIGITS:
        raise ValueError(f"{name} must have at most {_MAX_DIGITS} digits, got {value:.6g}")
    return Fraction(value)
