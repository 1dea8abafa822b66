import re
from fractions import Fraction

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel, promise
from countveil.privacy.promise import HIDES_LITTLE, HIDES_NOTHING


def described(epsilon, precision):
    return promise.describe(Fraction(epsilon), Fraction(precision))


def test_describe_says_both_things_in_two_sentences():
    text = described(1, 2)
    assert len(re.findall(r"\.(?:\s|$)", text)) == 2
    for part in ("at most 2 in total", "e^1 (about 2.72) times as likely", "grows by 0.5", "Less protected"):
        assert part in text
    assert "e^1000 times" in described(1000, 1)


@pytest.mark.parametrize(
    ("epsilon", "precision", "said"),
    [
        ("5", 3, None),
        ("5.001", "2.5", "little"),
        (20, 2, "little"),
        ("20.001", 2, "practically nothing"),
        (100, 100, "practically nothing"),
        (5, "0.5", "little"),
        (5, "0.1", "practically nothing"),
    ],
)
def test_a_weak_level_claims_no_protection(epsilon, precision, said):
    text = described(epsilon, precision)
    assert len(re.findall(r"\.(?:\s|$)", text)) == 2
    assert promise.hides(Fraction(epsilon), Fraction(precision)) == said
    if said is None:
        assert text.startswith("Partly protected: ")
        assert "hard to tell apart" not in text
    else:
        assert text.startswith(f"This level (N = {precision}) hides {said}: ")
        assert "hard to tell apart" not in text


@pytest.mark.parametrize("precision", [1, 4, 10])
@pytest.mark.parametrize(
    ("epsilon", "hard", "right"),
    [
        ("0.1", True, "52.5%"),
        (1, True, "73.2%"),
        ("1.01", False, "73.4%"),
        (4, False, "98.3%"),
        (5, False, "99.4%"),
    ],
)
def test_only_what_is_hard_to_tell_apart_is_called_so(epsilon, hard, right, precision):
    """Up to epsilon 1 the best guess is wrong in a quarter of cases or more; above, its share is stated."""
    text, alpha = described(epsilon, precision), PrivacyLevel(epsilon, precision).alpha
    assert ("hard to tell apart" in text) == hard
    assert ("hardly" in promise.sentence(Fraction(epsilon), Fraction(precision), "word")) == hard
    assert text.startswith("Protected: " if hard else "Partly protected: ")
    assert (f"right in at most {right} of cases" in text) != hard
    assert promise.right_guesses(Fraction(epsilon)) == right
    reports = np.arange(-400, 400)
    law = [(1 - alpha) / (1 + alpha) * alpha ** np.abs(reports - at) for at in (0, precision)]
    found = np.maximum(*law).sum() / 2  # of two counts that differ by N in one cell
    assert found <= float(right.rstrip("%")) / 100
    assert not hard or found < 0.75


def test_a_precision_below_one_count_is_described_by_one_count():
    """No two sets of counts differ by a tenth: that epsilon protects nobody from anything."""
    text = described("0.4", "0.1")
    assert "differ by at most 1 (N = 0.1 is less than any difference) in total" in text
    assert "more than e^4 (about 54.6) times" in text
    assert "e^0.4" not in text
    assert len(re.findall(r"\.(?:\s|$)", text)) == 2


@pytest.mark.parametrize(
    ("epsilon", "precision", "difference", "exponent"),
    [(10**9, 10**6, "1", "1000"), (100, 100, "21", "21"), (10, 100, "51", "5.1"), (6, "2.5", "2.5", "6")],
)
def test_a_weak_level_names_the_small_difference_that_gives_it_away(epsilon, precision, difference, exponent):
    """A large N beside a larger epsilon must not read as if differences below N were hidden."""
    text = described(epsilon, precision)
    assert f": two sets of counts that differ by {difference} in a single cell can" in text
    assert f"up to e^{exponent} " in text


@pytest.mark.parametrize(("epsilon", "threshold"), [(HIDES_LITTLE, 0.9), (HIDES_NOTHING, 0.9999)])
@pytest.mark.parametrize("precision", [1, 2, 20])
def test_what_is_said_of_weak_levels_is_true(epsilon, threshold, precision):
    """The best guess between two cells that differ by N, from one report, is right this often."""
    alpha = PrivacyLevel(epsilon, precision).alpha
    reports = np.arange(-40 * precision, 42 * precision)
    law = [(1 - alpha) / (1 + alpha) * alpha ** np.abs(reports - at) for at in (0, precision)]
    assert np.maximum(*law).sum() / 2 > threshold


@pytest.mark.parametrize(
    ("epsilon", "precision", "strength", "amount"),
    [
        (1, 10, "strong", "10"),
        ("1.01", 10, "moderate", "10"),
        (5, "2.5", "moderate", "2"),
        ("0.5", "0.5", "strong", "1"),
        (5, "0.5", "little", "1"),
        (20, 4, "little", "2"),
        (21, 1, "nothing", "1"),
        (100, 100, "nothing", "21"),
    ],
)
def test_a_level_is_a_sentence_first(epsilon, precision, strength, amount):
    numbers = Fraction(epsilon), Fraction(precision)
    assert promise.strength(*numbers) == strength
    assert (promise.hides(*numbers) is None) == (strength in ("strong", "moderate"))
    assert promise.amount(*numbers) == amount
    if strength in ("little", "nothing"):
        assert f"differ by {amount} in a single cell" in promise.describe(*numbers)
    said = promise.sentence(*numbers, "count")
    assert said.endswith(f"(N = {float(precision):g}, epsilon = {float(epsilon):g})")
    assert f" {amount} count{'' if amount == '1' else 's'}, " in said
