"""What a promise of epsilon at N, or of rho, means in plain words, and how little it means where these are large.

Levels of every kind are called strong, moderate, weak or nothing by one scale (``strength_of``): how often somebody is
right who sees a report and must say which of two sets of counts it is about, if both are equally likely beforehand. The
two differ by as much as the level protects: by N in total, or by one unit where the level promises rho. The share is
exact, (1 + TV)/2 for the total variation distance TV of the level's own noise, and not a bound such as e/(1 + e).
"""

import math
from fractions import Fraction

from countveil.privacy import wording
from countveil.privacy.exact import rounded_up, short

LEAST_WRONG = ((0.25, "strong"), (0.1, "moderate"), (0.01, "weak"))
"""The shares of wrong guesses from which a level has its name. Without a report, half of all guesses are wrong."""
HIDDEN = {"weak": "little", "nothing": "practically nothing"}
WRITTEN_OUT = 20
"""The largest exponent for which e^exponent is written out as well."""


def strength_of(wrong: float) -> str:
    """How much protects a level of which this share of guesses is wrong: "strong", "moderate", "weak" or "nothing".

    Strong: at most 75% of guesses are right. Moderate: at most 90%. Weak: at most 99%. Nothing: more.
    """
    return next((name for least, name in LEAST_WRONG if wrong >= least), "nothing")


def wrong_guesses(rate: Fraction, distance: int) -> float:
    """How often the best guess between two sets of counts is wrong, for two-sided geometric noise of this rate.

        wrong = exp(-d rate/2) / 2                       d even
        wrong = exp(-d rate/2) / (2 cosh(rate/2))        d odd

    for a difference of d = ``distance`` in one cell. Differences of d in total over several cells are harder to see,
    and so are those in several reports whose rates add up to this one. Mathematics, equation 1.9.
    """
    if distance % 2:
        return _exp(rate * (distance + 1) / 2) / (1 + _exp(rate))
    return _exp(rate * distance / 2) / 2


def _exp(nats: Fraction) -> float:
    return math.exp(-float(min(nats, Fraction(1000))))


def protected_distance(precision: Fraction) -> int:
    """The largest difference that N covers, or one, the smallest there is, where N is less than one."""
    return max(1, math.floor(precision))


def felt(epsilon: Fraction, precision: Fraction) -> Fraction:
    """The epsilon at N, or at one count, the smallest difference there is, where N is less than one."""
    return max(epsilon, epsilon / precision)


def strength(epsilon: Fraction, precision: Fraction) -> str:
    """How much a promise protects: "strong", "moderate", "weak" or "nothing"."""
    return strength_of(wrong_guesses(epsilon / precision, protected_distance(precision)))


def hides(epsilon: Fraction, precision: Fraction) -> str | None:
    """How little a promise hides where that must be said: "little", "practically nothing", or None."""
    return HIDDEN.get(strength(epsilon, precision))


def amount(epsilon: Fraction, precision: Fraction) -> int:
    """The difference that the sentence about a promise speaks of: all that is protected, or one that shows.

    Of a weak level it is the smallest difference in one cell that is seen as often as the sentence says, far below N
    where N and epsilon are both large.
    """
    rate, most, named = epsilon / precision, protected_distance(precision), strength(epsilon, precision)
    if named not in HIDDEN:
        return most
    shown = {"weak": 0.1, "nothing": 0.01}[named]
    low, high = 0, most  # wrong guesses become fewer with every unit of difference
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wrong_guesses(rate, middle) < shown else (middle, high)
    return high


def right_guesses(epsilon: Fraction, precision: Fraction, distance: int | None = None) -> str:
    """How often guesses between sets of counts that differ by ``distance``, or all that is protected, can be right."""
    far = protected_distance(precision) if distance is None else distance
    return percent(wrong_guesses(epsilon / precision, far))


def percent(missing: float) -> str:
    """The share 1 - ``missing`` for reading, rounded up; with more digits where it is near 100%."""
    if missing < 1e-9:
        return "practically 100%"
    digits = max(1, math.ceil(-math.log10(100 * missing)))
    return f"{math.ceil(round(100 * (1 - missing) * 10**digits, 6)) / 10**digits:.{digits}f}%"


def unchanged(changed: float) -> str:
    """How many counts noise leaves as they are, for reading, of the share that it changes."""
    return percent(changed) if changed < 0.999 else "less than 0.1%"


def sentence(epsilon: Fraction, precision: Fraction, unit: str) -> str:
    """What a promise protects, words first and numbers second; ``unit`` is "word" or "count"."""
    most, guesses = short(Fraction(amount(epsilon, precision))), right_guesses(epsilon, precision)
    said = wording.level(strength(epsilon, precision), most, unit, guesses)
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


PROTECTED = {
    "strong": ("Protected", "are hard to tell apart"),
    "moderate": ("Partly protected", "cannot be told apart with certainty"),
}
OFTEN = {"little": "usually", "practically nothing": "almost always"}


def _protected(epsilon: Fraction, precision: Fraction) -> str:
    shown = short(precision)
    most = shown if precision >= 1 else f"1 (N = {shown} is less than any difference)"
    first, then = PROTECTED[strength(epsilon, precision)]
    return (
        f"{first}: any two sets of counts that differ by at most {most} in total, summed over all cells, {then} "
        f"(guesses between two that are equally likely are right in at most {right_guesses(epsilon, precision)} of "
        f"cases), because no conclusion drawn from the report becomes more than {_factor(felt(epsilon, precision))} "
        f"times as likely under one as under the other. Less protected: "
    )


def _told_apart(epsilon: Fraction, precision: Fraction, hidden: str) -> str:
    difference = amount(epsilon, precision)
    return (
        f"This level (N = {short(precision)}) hides {hidden}: two sets of counts that differ by "
        f"{short(Fraction(difference))} in a single cell can {OFTEN[hidden]} be told apart (guesses between two that "
        f"are equally likely are right in at most {right_guesses(epsilon, precision, difference)} of cases), because "
        f"conclusions drawn from the report become up to {_factor(epsilon / precision * difference)} times as likely "
        f"under one as under the other. Protected even less: "
    )


def _factor(exponent: Fraction) -> str:
    return f"e^{short(exponent)}" + (f" (about {math.exp(exponent):.3g})" if exponent <= WRITTEN_OUT else "")


# A promise of rho.
#
#     rho-zCDP:   D_a(reports | counts, reports | counts') <= a rho |counts - counts'|^2   for all a > 1,
#
# D_a being the Renyi divergence of order a and |.| the Euclidean distance: d units in one cell have d^2 rho, one unit
# in each of d cells has d rho. Mathematics, equation 1.6. Sources: Bun and Steinke (2016), Definition 1.1; Canonne,
# Kamath, Steinke (2020), Theorem 4.

DELTA, DELTA_SHOWN = 1e-6, "10^-6"
"""The delta at which an epsilon is stated for reading."""


def wrong_guesses_of_rho(rho: Fraction) -> float:
    """How often the best guess between counts that differ by one in one cell is wrong, for discrete Gaussian noise.

        wrong = (1 - P(tau = 0)) / 2

    So the share of right guesses is (1 + the share of counts that the noise leaves as they are) / 2. Several reports
    whose rhos add up to this one, all with discrete Gaussian noise, are wrong more often. Mathematics, equation 1.10.
    """
    known = float(rho)
    if known < 1 / 128:  # the sum over tau is its integral but for exp(-2 pi^2 64)
        return (1 - math.sqrt(known / math.pi)) / 2
    positive = sum(math.exp(-known * k * k) for k in range(1, math.isqrt(int(745 / known)) + 2))
    return positive / (1 + 2 * positive)


def strength_of_rho(rho: Fraction) -> str:
    """How much a promise protects one unit: "strong", "moderate", "weak" or "nothing"."""
    return strength_of(wrong_guesses_of_rho(rho))


def epsilon_for(rho: float, delta: float) -> float:
    """An epsilon so that reports are (epsilon, delta)-indistinguishable where rho holds between two sets of counts.

        epsilon = min over a > 1 of   a rho + ln(1/(a delta)) / (a - 1) + ln(1 - 1/a)

    Every a > 1 gives a valid epsilon; a is searched by golden sections. It is below rho + 2 sqrt(rho ln(1/delta)), the
    one of Bun and Steinke (2016), Proposition 1.3. Source: Canonne, Kamath, Steinke (2020), Proposition 12.
    """

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return order * rho - (math.log(delta) + math.log(order)) / excess - math.log1p(1 / excess)

    middle = math.log(max(math.sqrt(-math.log(delta) / rho), 1e-9))
    low, high = middle - 20, middle + 20
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(100):
        first, second = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, second) if at(first) < at(second) else (first, high)
    return max(0.0, min(at(low), at(middle)))


def right_guesses_of_rho(rho: Fraction) -> str:
    """How often the best guess between counts that differ by one in one cell is right, for discrete Gaussian noise."""
    return percent(wrong_guesses_of_rho(rho))


def least_wrong_guesses(rho: Fraction) -> float:
    """A lower bound for any noise, and any difference, for which rho holds between the two sets of counts.

    (1 - TV)/2, with TV^2 at most rho/2 (Pinsker) and 1 - exp(-rho) (Bretagnolle and Huber).
    """
    known = min(float(rho), 700.0)
    far = math.exp(-known) / (1 + math.sqrt(-math.expm1(-known))) / 2
    return max(far, (1 - math.sqrt(known / 2)) / 2)


def sentence_of_rho(rho: Fraction, unit: str) -> str:
    """What a promise protects, words first and numbers second; ``unit`` is "word" or "count"."""
    said = wording.level(strength_of_rho(rho), "1", unit, right_guesses_of_rho(rho))
    return f"{said} ({wording.BOTH['level_rho'].format(rho=short(rho))})"


def describe_of_rho(rho: Fraction, together: bool = False) -> str:
    """Plain sentences: what rho for one unit in one cell protects, if anything, its epsilon, and what it does not.

    ``together`` says that it is what several releases add up to, of noises that may differ: the share of right guesses
    is a bound then.
    """
    wrong = least_wrong_guesses(rho) if together else wrong_guesses_of_rho(rho)
    named, right = strength_of(wrong), percent(wrong)
    hidden = HIDDEN.get(named)
    often = f"guesses between two that are equally likely are right in at most {right} of cases"
    if hidden is None:
        first, then = PROTECTED[named]
        said = f"{first}: any two sets of counts that differ by one unit in one cell {then} ({often}). "
    else:
        said = (
            f"This level hides {hidden}: two sets of counts that differ by one unit in one cell can "
            f"{OFTEN[hidden]} be told apart ({often}). "
        )
    epsilon = rounded_up(epsilon_for(float(rho), DELTA))
    return (
        f"{said}rho is {short(rho)} for them, which gives epsilon = {epsilon} with delta = "
        f"{DELTA_SHOWN}: no conclusion becomes more than e^epsilon times as likely under one as under the other, "
        "except by chances of at most delta. Less protected: larger differences and sums over many counts (d units in "
        "one cell have d^2 times this rho, one unit in each of d cells d times), and counts that are reported more "
        "than once, because rho adds up over reports."
    )
