"""What a promise of rho means, in plain words, and how little it means where rho is large.

    rho-zCDP:   D_a(reports | counts, reports | counts') <= a rho |counts - counts'|^2   for all a > 1,

D_a being the Renyi divergence of order a and |.| the Euclidean distance: d units in one cell have d^2 rho, one unit in
each of d cells has d rho. Mathematics, equation 1.6. Sources: Bun and Steinke (2016),
Definition 1.1; Canonne, Kamath, Steinke (2020), Theorem 4.
"""

import math
from fractions import Fraction

from countveil.privacy import promise, wording
from countveil.privacy.exact import rounded_up, short

DELTA, DELTA_SHOWN = 1e-6, "10^-6"
"""The delta at which an epsilon is stated for reading."""


def wrong_guesses(rho: Fraction) -> float:
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


def hides(rho: Fraction) -> str | None:
    """How little a promise hides where that must be said: "little", "practically nothing", or None."""
    return promise.HIDDEN.get(strength(rho))


def strength(rho: Fraction) -> str:
    """How much a promise protects one unit: "strong", "moderate", "weak" or "nothing"."""
    return promise.strength_of(wrong_guesses(rho))


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


def right_guesses(rho: Fraction) -> str:
    """How often the best guess between counts that differ by one in one cell is right, for discrete Gaussian noise."""
    return promise.percent(wrong_guesses(rho))


def least_wrong_guesses(rho: Fraction) -> float:
    """A lower bound for any noise, and any difference, for which rho holds between the two sets of counts.

    (1 - TV)/2, with TV^2 at most rho/2 (Pinsker) and 1 - exp(-rho) (Bretagnolle and Huber).
    """
    known = min(float(rho), 700.0)
    far = math.exp(-known) / (1 + math.sqrt(-math.expm1(-known))) / 2
    return max(far, (1 - math.sqrt(known / 2)) / 2)


def sentence(rho: Fraction, unit: str) -> str:
    """What a promise protects, words first and numbers second; ``unit`` is "word" or "count"."""
    said = wording.level(strength(rho), "1", unit, right_guesses(rho))
    return f"{said} ({wording.BOTH['level_rho'].format(rho=short(rho))})"


def describe(rho: Fraction, together: bool = False) -> str:
    """Plain sentences: what rho for one unit in one cell protects, if anything, its epsilon, and what it does not.

    ``together`` says that it is what several releases add up to, of noises that may differ: the share of right guesses
    is a bound then.
    """
    wrong = least_wrong_guesses(rho) if together else wrong_guesses(rho)
    named, right = promise.strength_of(wrong), promise.percent(wrong)
    hidden = promise.HIDDEN.get(named)
    often = f"guesses between two that are equally likely are right in at most {right} of cases"
    if hidden is None:
        first, then = promise.PROTECTED[named]
        said = f"{first}: any two sets of counts that differ by one unit in one cell {then} ({often}). "
    else:
        said = (
            f"This level hides {hidden}: two sets of counts that differ by one unit in one cell can "
            f"{promise.OFTEN[hidden]} be told apart ({often}). "
        )
    epsilon = rounded_up(epsilon_for(float(rho), DELTA))
    return (
        f"{said}rho is {short(rho)} for them, which gives epsilon = {epsilon} with delta = "
        f"{DELTA_SHOWN}: no conclusion becomes more than e^epsilon times as likely under one as under the other, "
        "except by chances of at most delta. Less protected: larger differences and sums over many counts (d units in "
        "one cell have d^2 times this rho, one unit in each of d cells d times), and counts that are reported more "
        "than once, because rho adds up over reports."
    )
