"""What a page cannot take from the browser: noise thresholds, the meaning of levels, and this Python's Unicode."""

import base64
import math
import sys
import unicodedata
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

from countveil.privacy import noise, promise
from countveil.privacy.exact import rounded_up, short
from countveil.privacy.level import ConcentratedLevel, Level, PrivacyLevel
from countveil.privacy.study import Study

PARTY = 5**2 + 5**2
"""The squared distance of the two people in the example of a surprise party: five times each of two words."""


def levels(study: Study) -> list[dict[str, Any]]:
    """Each level as the page shows and draws it, in the study's order."""
    both = zip(study.levels, study.meanings(), strict=True)
    return [_both_kinds(level, said) | _own_kind(level) for level, said in both]


def _both_kinds(level: Level, said: str) -> dict[str, Any]:
    return {
        **{name: str(number) for name, number in level.numbers().items()},
        "positive": f"{100 * level.false_positive_rate:.3g}",
        "unchanged": promise.unchanged(2 * level.false_positive_rate),
        "meaning": said,
        "promise": level.describe(),
    }


def _own_kind(level: Level) -> dict[str, Any]:
    if isinstance(level, PrivacyLevel):
        return {
            "rate": str(level.rate),
            "shortEpsilon": short(level.epsilon),
            "shortPrecision": short(level.precision),
            "factor": times(promise.felt(level.epsilon, level.precision)),
            "strength": promise.strength(level.epsilon, level.precision),
            "amount": short(Fraction(promise.amount(level.epsilon, level.precision))),
            "guesses": promise.right_guesses(level.epsilon, level.precision),
            "within": level.mechanism.within(0.95),
            "thresholds": thresholds(level.rate),
        }
    if not isinstance(level, ConcentratedLevel):
        raise TypeError(f"levels must be stated in epsilon or in rho, got {type(level).__name__}")
    return {
        "shortRho": short(level.rho),
        "strength": promise.strength_of_rho(level.rho),
        "amount": "1",
        "within": level.mechanism.within(0.95),
        "variance": str(level.variance),
        "guesses": promise.right_guesses_of_rho(level.rho),
        "epsilonAtDelta": _epsilon(level.rho),
        "party": {
            "shortRho": short(PARTY * level.rho),
            "guesses": promise.percent(promise.least_wrong_guesses(PARTY * level.rho)),
            "epsilonAtDelta": _epsilon(PARTY * level.rho),
        },
    }


def _epsilon(rho: Fraction) -> str:
    """The epsilon at delta where rho holds between two sets of counts."""
    return rounded_up(promise.epsilon_for(float(rho), promise.DELTA))


def times(exponent: Fraction) -> str:
    """How many times as likely something can become, in words: 2.72, 22 000, or e^30."""
    if exponent > promise.WRITTEN_OUT:
        return f"e^{short(exponent)}"
    factor = float(f"{math.exp(exponent):.3g}")
    return f"{factor:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}") if factor >= 1000 else f"{factor:.3g}"


def thresholds(rate: Fraction) -> str:
    """The thresholds of the noise's head table: base64 of 64-bit words, lowest byte first, ascending."""
    ascending = noise.Sampler(rate).head.ascending
    return base64.b64encode(b"".join(word.to_bytes(8, "little") for word in ascending)).decode("ascii")


@cache
def unicode() -> dict[str, str]:
    """The sets of code points that decide what a word is, in this Python's Unicode.

    kept: letters, marks and digits; unknown: not assigned; cased and ignorable: what decides whether a capital
    sigma is final, found by asking ``str.lower``.
    """
    return {
        "kept": runs(lambda c: c.isalnum() or unicodedata.category(c).startswith("M")),
        "unknown": runs(lambda c: unicodedata.category(c) == "Cn"),
        "cased": runs(lambda c: f"{c}Σ".lower()[-1] == "ς"),
        "ignorable": runs(lambda c: f"A{c}Σ".lower()[-1] == "ς" and f"{c}Σ".lower()[-1] == "σ"),
    }


def runs(inside: Callable[[str], bool]) -> str:
    """A set of characters: the lengths of the runs outside and inside it in turn, in base 36."""
    lengths, state, start = [], False, 0
    for code in range(sys.maxunicode + 1):
        if inside(chr(code)) != state:
            lengths.append(_base36(code - start))
            state, start = not state, code
    return " ".join(lengths)


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
        if not number:
            return digits
