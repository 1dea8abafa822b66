"""What a promise of epsilon at N means, in plain words, and how little it means where epsilon is large."""

import math
from fractions import Fraction

from countveil.privacy import wording
from countveil.privacy.exact import short

STRONG = 1
"""Up to this epsilon a level is called strong, and counts that differ by N "hard to tell apart".

Of two sets of counts that are equally likely beforehand, the best guess from a report is right in at most
e/(1 + e) = 73% of cases then, and a blind one in 50%. Up to HIDES_LITTLE a level is called moderate, and the share of
right guesses is stated instead.
"""
HIDES_LITTLE = 5
HIDES_NOTHING = 20
"""Above these epsilons no protection is claimed: a shift by N goes unseen about once in e^(epsilon/2)."""
LITTLE, NOTHING = "little", "practically nothing"


def felt(epsilon: Fraction, precision: Fraction) -> Fraction:
    """The epsilon at N, or at one count, the smallest difference there is, where N is less than one."""
    return max(epsilon, epsilon / precision)


def hides(epsilon: Fraction, precision: Fraction) -> str | None:
    """How little a promise hides where that must be said: "little", "practically nothing", or None."""
    exponent = felt(epsilon, precision)
    if exponent <= HIDES_LITTLE:
        return None
    return LITTLE if exponent <= HIDES_NOTHING else NOTHING


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


def right_guesses(exponent: Fraction) -> str:
    """How often the best guess between two sets of counts is right at most, if both are equally likely beforehand."""
    return f"{math.ceil(1000 / (1 + math.exp(-exponent))) / 10:g}%"


def _protected(epsilon: Fraction, precision: Fraction) -> str:
    shown, exponent = short(precision), felt(epsilon, precision)
    most = shown if precision >= 1 else f"1 (N = {shown} is less than any difference)"
    if exponent <= STRONG:
        first, then = "Protected", "are hard to tell apart"
    else:
        first = "Partly protected"
        rightly = f"guesses between two that are equally likely are right in at most {right_guesses(exponent)} of cases"
        then = f"cannot be told apart for sure ({rightly})"
    return (
        f"{first}: any two sets of counts that differ by at most {most} in total, summed over "
        f"all cells, {then}, because no conclusion drawn from the report becomes more "
        f"than {_factor(exponent)} times as likely under one than under the other. "
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
