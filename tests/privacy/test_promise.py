import math
import re
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel, promise
from countveil.privacy.promise import epsilon_for

RIGHT_AT_MOST = {"strong": 0.75, "moderate": 0.9, "weak": 0.99, "nothing": 1.0}
EPSILONS = ["0.1", 1, "1.09", "1.1", "1.38", "1.39", 2, "2.19", "2.2", 3, "3.2", "3.3", 4, "4.5", "4.7", 5, 7, 8, 20]


def right_guesses(level, distance):
    """The share of right guesses, (1 + TV)/2, between 0 and ``distance`` in one cell: the law, summed term by term."""
    law = level.mechanism
    masses = [law.pmf(r) for r in range(-401 * distance, 401 * distance)]
    return sum(map(max, masses[distance:], masses)) / 2


@pytest.mark.long
@pytest.mark.parametrize("precision", [1, 2, 3, 10])
def test_words_go_by_the_exact_share_of_right_guesses(precision):
    for epsilon in EPSILONS:
        level = PrivacyLevel(epsilon, precision)
        right = right_guesses(level, precision)
        (name,) = [name for name, most in RIGHT_AT_MOST.items() if right <= most][:1]
        assert promise.strength(level.epsilon, level.precision) == name
        said = promise.right_guesses(level.epsilon, level.precision)
        assert right - 1e-9 <= float(said.rstrip("%")) / 100 < right + 0.00101
        unchanged = level.mechanism.pmf(0)
        assert abs(1 - 2 * level.false_positive_rate - unchanged) < 1e-12
        assert f"leaves {promise.unchanged(1 - unchanged)} of counts unchanged" in level.mechanism.describe()
        if precision == 1:  # one count out of (1 + unchanged)/2 guesses
            assert right == pytest.approx((1 + unchanged) / 2)


@pytest.mark.long
def test_a_difference_in_one_cell_is_the_easiest_to_see():
    """Guesses between sets that differ by as much in several cells, or in several reports, are wrong more often."""

    def clamped(rate, distance):
        """The law of a report at count 0, and at ``distance``, cut to [0, distance], which loses nothing."""
        alpha, places = np.exp(-rate), np.arange(distance + 1)
        law = (1 - alpha) / (1 + alpha) * alpha**places
        law[0], law[-1] = 1 / (1 + alpha), alpha**distance / (1 + alpha)
        return law, law[::-1]

    def wrong(parts):
        here, there = np.ones(1), np.ones(1)
        for rate, distance in parts:
            one, other = clamped(rate, distance)
            here, there = np.multiply.outer(here, one).ravel(), np.multiply.outer(there, other).ravel()
        return np.minimum(here, there).sum() / 2

    for rate in (0.05, 0.5, 2.0):
        for distances in [(1,), (2,), (7,), (1, 1), (1, 2), (3, 3), (4, 1, 1), (1, 1, 1)]:
            bound = promise.wrong_guesses(Fraction(rate), sum(distances))
            found = wrong([(rate, d) for d in distances])
            assert found == pytest.approx(bound) if len(distances) == 1 else found > bound
    for one, other, distance in product((0.05, 0.5, 2.0), (0.1, 1.0), (1, 2, 5)):
        assert wrong([(one, distance), (other, distance)]) > promise.wrong_guesses(Fraction(one + other), distance)


@pytest.mark.long
def test_wrong_guesses_become_fewer_with_every_unit_and_never_break():
    for rate in (Fraction(1, 2**40), Fraction(1, 3), Fraction(10**400), Fraction(1, 10**400)):
        shares = [promise.wrong_guesses(rate, d) for d in range(1, 9)]
        assert all(0 <= later <= earlier <= 0.5 for earlier, later in pairwise(shares))
    assert promise.wrong_guesses(Fraction(1, 10**400), 10**400) == pytest.approx(np.exp(-0.5) / 2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("missing", "said"),
    [(0.5, "50.0%"), (0.26894, "73.2%"), (0.0066929, "99.4%"), (6.1e-6, "99.9994%"), (1e-12, "practically 100%")],
)
def test_shares_near_all_have_the_digits_that_tell_them_from_all(missing, said):
    assert promise.percent(missing) == said
    assert promise.unchanged(missing) == said
    assert promise.unchanged(0.9999) == "less than 0.1%"


def described(epsilon, precision):
    return promise.describe(Fraction(epsilon), Fraction(precision))


@pytest.mark.long
def test_describe_says_both_things_in_two_sentences():
    text = described(1, 2)
    assert len(re.findall(r"\.(?:\s|$)", text)) == 2
    for part in ("at most 2 in total", "e^1 (about 2.72) times as likely", "grows by 0.5", "Less protected"):
        assert part in text
    assert "e^1000 times" in described(1000, 1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("epsilon", "precision", "said"),
    [
        (3, 2, None),
        (4, 3, "little"),
        (7, 2, "little"),
        ("4.7", 1, "practically nothing"),
        (100, 100, "practically nothing"),
        (2, "0.5", "little"),
        (5, "0.1", "practically nothing"),
    ],
)
def test_a_weak_level_claims_no_protection(epsilon, precision, said):
    text = described(epsilon, precision)
    assert len(re.findall(r"\.(?:\s|$)", text)) == 2
    assert promise.hides(Fraction(epsilon), Fraction(precision)) == said
    assert "hard to tell apart" not in text
    if said is None:
        assert text.startswith("Partly protected: ")
    else:
        assert text.startswith(f"This level (N = {precision}) hides {said}: ")


@pytest.mark.long
@pytest.mark.parametrize("precision", [1, 4, 10])
@pytest.mark.parametrize(("epsilon", "hard"), [("0.1", True), (1, True), ("1.5", False), (2, False)])
def test_only_what_is_hard_to_tell_apart_is_called_so(epsilon, hard, precision):
    """A quarter of guesses or more are wrong then."""
    text, level = described(epsilon, precision), PrivacyLevel(epsilon, precision)
    assert ("hard to tell apart" in text) == hard
    assert ("Strong" in promise.sentence(level.epsilon, level.precision, "word")) == hard
    assert text.startswith("Protected: " if hard else "Partly protected: ")
    assert f"right in at most {promise.right_guesses(level.epsilon, level.precision)} of cases" in text
    assert (right_guesses(level, precision) <= 0.75) == hard


@pytest.mark.long
@pytest.mark.parametrize("level", [PrivacyLevel(1, 10), PrivacyLevel(9, 2), PrivacyLevel.zcdp(1), PrivacyLevel.zcdp(9)])
def test_the_promise_is_a_sentence(level):
    assert " times as likely under one as under the other" in level.describe()
    assert "than under the other" not in level.describe()


@pytest.mark.long
def test_a_precision_below_one_count_is_described_by_one_count():
    """No two sets of counts differ by a tenth: that epsilon protects nobody from anything."""
    text = described("0.2", "0.1")
    assert "differ by at most 1 (N = 0.1 is less than any difference) in total" in text
    assert "more than e^2 (about 7.39) times" in text
    assert "e^0.2" not in text
    assert len(re.findall(r"\.(?:\s|$)", text)) == 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("epsilon", "precision", "difference"), [(10**9, 10**6, 1), (100, 100, 8), (10, 100, 79), (5, 10, 7), (6, "2.5", 1)]
)
def test_a_weak_level_names_the_smallest_difference_that_gives_it_away(epsilon, precision, difference):
    """A large N beside a larger epsilon must not read as if differences below N were hidden."""
    level = PrivacyLevel(epsilon, precision)
    named = promise.strength(level.epsilon, level.precision)
    seen = {"weak": 0.9, "nothing": 0.99}[named]
    assert promise.amount(level.epsilon, level.precision) == difference
    text = level.describe()
    assert f": two sets of counts that differ by {difference} in a single cell can" in text
    assert f"up to e^{float(level.rate * difference):g} " in text
    said = promise.right_guesses(level.epsilon, level.precision, difference)
    assert f"right in at most {said} of cases" in text
    if level.rate < 100:
        assert right_guesses(level, difference) > seen
        assert difference == 1 or right_guesses(level, difference - 1) <= seen


@pytest.mark.long
@pytest.mark.parametrize(
    ("epsilon", "precision", "strength", "amount"),
    [
        (1, 10, "strong", "10"),
        (2, 10, "moderate", "10"),
        (3, "2.5", "moderate", "2"),
        ("0.5", "0.5", "strong", "1"),
        (2, "0.5", "weak", "1"),
        (5, 10, "weak", "7"),
        (12, 1, "nothing", "1"),
        (100, 100, "nothing", "8"),
    ],
)
def test_a_level_is_a_sentence_first(epsilon, precision, strength, amount):
    numbers = Fraction(epsilon), Fraction(precision)
    assert promise.strength(*numbers) == strength
    assert (promise.hides(*numbers) is None) == (strength in ("strong", "moderate"))
    assert promise.amount(*numbers) == int(amount)
    if strength in ("weak", "nothing"):
        assert f"differ by {amount} in a single cell" in promise.describe(*numbers)
    said = promise.sentence(*numbers, "count")
    assert said.endswith(f"(N = {float(precision):g}, epsilon = {float(epsilon):g})")
    assert f" {amount} count{'' if amount == '1' else 's'} can be guessed right in " in said
    if strength in ("strong", "moderate"):
        assert f"in at most {promise.right_guesses(*numbers)} of cases" in said


RHOS = [0.005, 0.125, 2.0, 30.0]


def masses(rho: float) -> np.ndarray:
    """Of discrete Gaussian noise with sigma^2 = 1/(2 rho), from -W to W."""
    widest = int(40 / math.sqrt(rho)) + 4
    weights = np.exp(-rho * np.arange(-widest, widest + 1.0) ** 2)
    return weights / weights.sum()


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_epsilon_is_the_best_order_and_below_the_closed_form(rho, delta):
    excess = np.exp(np.linspace(-12, 25, 100_001))
    order = 1 + excess
    brute = (order * rho - np.log(order * delta) / excess - np.log1p(1 / excess)).min()
    found = epsilon_for(rho, delta)
    assert found == pytest.approx(brute, abs=1e-6 * max(1, found))
    assert found <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_the_noise_keeps_epsilon_and_delta(rho, delta):
    """delta(epsilon) = sum of max(0, P(tau) - e^epsilon P(tau - 1)), by its definition."""
    here = masses(rho)
    there = np.roll(here, 1)
    there[0] = 0

    def needed(epsilon: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.maximum(here[1:] - np.exp(epsilon) * there[1:], 0).sum())

    assert needed(epsilon_for(rho, delta)) <= delta
    assert rho > 10 or needed(epsilon_for(rho, delta) * 0.5) > delta  # half of it is not kept


@pytest.mark.parametrize("rho", RHOS)
def test_divergences_of_every_order_are_below_rho(rho):
    here = masses(rho)
    there = np.roll(here, 1)
    kept = (here > 1e-250) & (there > 1e-250)
    for order in (1.01, 1.5, 2.0, 4.0):
        terms = order * np.log(here[kept]) + (1 - order) * np.log(there[kept])
        divergence = np.logaddexp.reduce(terms) / (order - 1)
        assert divergence <= order * rho * (1 + 1e-9)
        assert divergence > order * rho * 0.3 or rho > 1


def right_in(rho):
    """The share of right guesses between counts that differ by one, (1 + TV)/2, summed over the law."""
    here = masses(rho)
    return 0.5 + np.maximum(here - np.roll(here, 1), 0).sum() / 2


@pytest.mark.parametrize("rho", [1e-4, 0.005, 0.125, 0.5, 0.8, 0.82, 1.0, 2.0, 2.08, 2.1, 4.5, 4.7, 12.0, 30.0])
def test_words_go_by_the_exact_share_of_right_guesses_of_rho(rho):
    """Which is (1 + the share of counts that the noise leaves as they are)/2."""
    level, right = PrivacyLevel.zcdp(rho), right_in(rho)
    unchanged = masses(rho).max()
    assert right == pytest.approx((1 + unchanged) / 2)
    assert promise.wrong_guesses_of_rho(level.rho) == pytest.approx(1 - right, rel=1e-9, abs=1e-14)
    (name,) = [name for name, most in RIGHT_AT_MOST.items() if right <= most][:1]
    assert promise.strength_of_rho(level.rho) == name
    said = promise.right_guesses_of_rho(level.rho)
    assert said == "practically 100%" if right > 1 - 1e-9 else right <= float(said.rstrip("%")) / 100 < right + 0.00101
    assert f"right in at most {said} of cases" in level.describe()
    assert f"leaves {promise.unchanged(1 - unchanged)} of counts unchanged" in level.mechanism.describe()


def test_rho_12_protects_practically_nothing():
    assert promise.describe_of_rho(Fraction(12)).startswith("This level hides practically nothing")
    assert "right in at most 99.9994% of cases" in promise.describe_of_rho(Fraction(12))
    assert promise.sentence_of_rho(Fraction(12), "word").startswith("Practically no protection")


@pytest.mark.parametrize("rho", RHOS)
def test_what_several_releases_add_up_to_is_bounded_for_any_noise(rho):
    """Two-sided geometric noise of the same rho, (epsilon/N)^2/2, is told apart more easily where rho is small."""
    geometric = math.tanh(math.sqrt(rho / 2))
    bound = 1 - 2 * promise.least_wrong_guesses(Fraction(rho))
    assert max(geometric, masses(rho).max()) <= bound <= 1
    said = promise.percent(promise.least_wrong_guesses(Fraction(rho)))
    assert f"right in at most {said} of cases" in promise.describe_of_rho(Fraction(rho), together=True)


@pytest.mark.parametrize("rho", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("times", [2, 3, 5])
def test_several_reports_with_the_same_noise_show_less_than_one_at_the_sum_of_their_rhos(rho, times):
    summed = masses(rho)
    for _ in range(times - 1):
        summed = np.convolve(summed, masses(rho))
    noise = np.arange(len(summed)) - len(summed) // 2
    distance = summed[(noise > -times / 2) & (noise <= times / 2)].sum()  # the best guess is by the sum of the reports
    assert distance <= 1 - 2 * promise.wrong_guesses_of_rho(Fraction(times * rho))


def test_what_is_said():
    assert promise.describe_of_rho(Fraction(1, 8)).startswith(
        "Protected: any two sets of counts that differ by one unit in one cell "
    )
    assert "right in at most 60.0% of cases" in promise.describe_of_rho(Fraction(1, 8))
    assert "gives epsilon = 2.42 with delta = 10^-6" in promise.describe_of_rho(Fraction(1, 8))
    assert "d units in one cell have d^2 times this rho" in promise.describe_of_rho(Fraction(1, 8))
    assert max(len(promise.describe_of_rho(Fraction(rho))) for rho in (1 / 3, 2, 20, 300)) < 640
    assert promise.describe_of_rho(Fraction(2)).startswith("Partly protected")
    assert "hides little" in promise.describe_of_rho(Fraction(4))
    assert "almost always" in promise.describe_of_rho(Fraction(300))
    assert promise.sentence_of_rho(Fraction(1, 8), "word").endswith("(rho = 0.125)")
    assert math.isfinite(promise.epsilon_for(1e-300, 1e-6))
