"""What a promise of epsilon at N means, in plain words, and how little it means where epsilon is large."""

import math
from fractions import Fraction

from countveil.privacy import wording
from countveil.privacy.exact import short

STRONG = 1
"""Up to this epsilon a level is called strong; moderate up to HIDES_LITTLE."""
HIDES_LITTLE = 5
HIDES_NOTHING = 20
"""Above these epsilons no protection is claimed: a shift by N goes unseen about once in e^(epsilon/2)."""
LITTLE = "little"


def felt(epsilon: Fraction, precision: Fraction) -> Fraction:
    """The epsilon at N, or at one count, the smallest difference there is, where N is less than one."""
    return max(epsilon, epsilon / precision)


def hides(epsilon: Fraction, precision: Fraction) -> str | None:
    """How little a promise hides where that must be said: "little", "practically nothing", or None."""
    exponent = felt(epsilon, precision)
    if exponent <= HIDES_LITTLE:
        return None
    return LITTLE if exponent <= HIDES_NOTHING else "practically nothing"


def strength(epsilon: Fraction, precision: Fraction) -> str:
    """How much a promise protects: "strong", "moderate", "little" or "nothing"."""
    bounds = ((STRONG, "strong"), (HIDES_LITTLE, "moderate"), (HIDES_NOTHING, "little"))
    return next((name for bound, name in bounds if felt(epsilon, precision) <= bound), "nothing")


def amount(epsilon: Fraction, precision: Fraction) -> str:
    """The difference that the sentence about a promise speaks of: all that is protected, or one that shows."""
    if (hidden := hides(epsilon, precision)) is not None:
        return short(_small_difference(epsilon / precision, precision, hidden))
    return short(Fraction(max(1, math.floor(precision))))


def sentence(epsilon: Fraction, precision: Fraction, unit: str) -> str:
    """What a promise protects, words first and numbers second; ``unit`` is "word" or "count"."""
    said = wording.level(strength(epsilon, precision), amount(epsilon, precision), unit)
    numbers = wording.BOTH["level_numbers"].format(precision=short(precision), epsilon=short(epsilon))
    return f"{said} ({numbers})"


def describe(epsilon: Fraction, precision: Fraction) -> str:
    """Two plain sentences: what epsilon at N = ``precision`` protects, if anything, and what it does not."""
    rate, hidden = epsilon / precision, hides(epsilon, precision)
    first = _protected(epsilon, precision) if hidden is None else _told_apart(epsilon, precision, hidden)
    return (
        f"{first}larger differences, sums over many counts, and counts that are reported more "
        f"than once, because the exponent grows by {short(rate)} for every further unit of difference and "
        f"adds up over reports."
    )


def _protected(epsilon: Fraction, precision: Fraction) -> str:
    shown = short(precision)
    most = shown if precision >= 1 else f"1 (N = {shown} is less than any difference)"
    return (
        f"Protected: any two sets of counts that differ by at most {most} in total, summed over "
        f"all cells, are hard to tell apart, because no conclusion drawn from the report becomes more "
        f"than {_factor(felt(epsilon, precision))} times as likely under one than under the other. "
        f"Less protected: "
    )


def _told_apart(epsilon: Fraction, precision: Fraction, hidden: str) -> str:
    rate = epsilon / precision
    difference = _small_difference(rate, precision, hidden)
    often = "usually" if hidden == LITTLE else "almost always"
    return (
        f"This level (N = {short(precision)}) hides {hidden}: two sets of counts that differ by "
        f"{short(difference)} in a single cell can {often} be told apart, because conclusions drawn "
        f"from the report become up to {_factor(rate * difference)} times as likely under one as under the "
        f"other. Protected even less: "
    )


def _small_difference(rate: Fraction, precision: Fraction, hidden: str) -> Fraction:
    """A difference in one cell that reveals a weak promise: far below N where N and epsilon are both large."""
    threshold = HIDES_LITTLE if hidden == LITTLE else HIDES_NOTHING
    return min(Fraction(math.floor(threshold / rate) + 1), max(precision, Fraction(1)))


def _factor(exponent: Fraction) -> str:
    return f"e^{short(exponent)}" + (f" (about {math.exp(exponent):.3g})" if exponent <= 20 else "")
