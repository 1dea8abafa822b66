import copy
import html
import math
import pickle
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countveil.privacy import PrivacyLevel
from countveil.privacy.level import HIDES_LITTLE, HIDES_NOTHING, hides, short

positive = st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000)


def test_alpha_is_exp_of_minus_the_rate():
    assert PrivacyLevel(1, 2).alpha == math.exp(-1 / 2)
    assert PrivacyLevel(epsilon=1.0, precision=2).rate == Fraction(1, 2)
    assert PrivacyLevel(10**6, 1).alpha == 0.0


@pytest.mark.parametrize(
    ("given", "exact"),
    [
        (2, Fraction(2)),
        (0.5, Fraction(1, 2)),
        (0.1, Fraction(3602879701896397, 2**55)),
        ("0.1", Fraction(1, 10)),
        ("1e-3", Fraction(1, 1000)),
        (Decimal("0.30"), Fraction(3, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (np.int64(3), Fraction(3)),
        (np.float32(0.1), Fraction(float(np.float32(0.1)))),
        (np.float64(0.25), Fraction(1, 4)),
    ],
)
def test_numbers_are_kept_exactly(given, exact):
    level = PrivacyLevel(given, given)
    assert level.epsilon == level.precision == exact
    assert type(level.epsilon) is Fraction
    assert level.rate == 1


@pytest.mark.parametrize("bad", [0, -1, -0.3, "0", "-2", Decimal(0), Fraction(-1, 2)])
def test_parameters_must_be_positive(bad):
    for name, arguments in (("epsilon", (bad, 1)), ("precision", (1, bad))):
        with pytest.raises(ValueError, match=rf"^{name} must be positive, got {re.escape(str(bad))}$"):
            PrivacyLevel(*arguments)


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, "nan", "inf", Decimal("NaN"), np.float32("inf")]
)
def test_parameters_must_be_finite(bad):
    with pytest.raises(ValueError, match=r"^epsilon must be finite, got "):
        PrivacyLevel(bad, 1)


@pytest.mark.parametrize("bad", [True, False, np.True_, None, 1j, [1], b"1"])
def test_parameters_must_be_numbers(bad):
    with pytest.raises(TypeError, match=r"^precision must be a number or a decimal string, got "):
        PrivacyLevel(1, bad)


@pytest.mark.parametrize("bad", ["one", "", "1/3", "1e999999999", Decimal("1e-5000"), 2**5000])
def test_parameters_must_be_writable(bad):
    with pytest.raises(ValueError, match=r"^epsilon must (be|have) "):
        PrivacyLevel(bad, 1)


def test_errors_read_as_name_rule_value():
    with pytest.raises(ValueError, match=r"^epsilon must be positive, got -0\.3$"):
        PrivacyLevel(-0.3, 1)


def test_levels_are_values():
    level = PrivacyLevel("0.5", 2)
    assert level == PrivacyLevel(0.5, 2.0)
    assert hash(level) == hash(PrivacyLevel(0.5, 2.0))
    assert level != PrivacyLevel(1, 4)
    assert level != 0.5
    assert pickle.loads(pickle.dumps(level)) == copy.deepcopy(level) == level
    for name in ("epsilon", "precision", "rate", "alpha", "anything"):
        with pytest.raises(AttributeError):
            setattr(level, name, 1)


@given(positive, positive, st.integers(1, 50), positive)
def test_composition_is_exact(epsilon, precision, times, distance):
    level, other = PrivacyLevel(epsilon, precision), PrivacyLevel(precision, epsilon)
    assert level.epsilon_at(level.precision) == level.epsilon
    assert level.epsilon_at(distance) == distance * epsilon / precision
    assert level.epsilon_at(0) == 0
    assert level.repeated(times).epsilon_at(distance) == times * level.epsilon_at(distance)
    assert level.repeated(times).precision == precision
    both = level.composed_with(other)
    assert both.precision == precision
    assert both.rate == level.rate + other.rate
    assert level.composed_with(level) == level.repeated(2)


def test_composition_refuses_what_it_cannot_mean():
    level = PrivacyLevel(1, 2)
    with pytest.raises(ValueError, match=r"^distance must not be negative, got -1$"):
        level.epsilon_at(-1)
    with pytest.raises(ValueError, match=r"^times must be at least 1, got 0$"):
        level.repeated(0)
    for bad in (1.5, True, "2"):
        with pytest.raises(TypeError, match=r"^times must be a whole number, got "):
            level.repeated(bad)
    with pytest.raises(TypeError, match=r"^other must be a PrivacyLevel, got float$"):
        level.composed_with(1.0)


def test_a_zero_turns_positive_as_often_as_the_level_says():
    level = PrivacyLevel(1, 1)
    tail = sum((1 - level.alpha) / (1 + level.alpha) * level.alpha**k for k in range(1, 200))
    assert level.false_positive_rate == pytest.approx(tail, rel=1e-12)


def test_describe_says_both_things_in_two_sentences():
    text = PrivacyLevel(1, 2).describe()
    assert len(re.findall(r"\.(?:\s|$)", text)) == 2
    for part in ("at most 2 in total", "e^1 (about 2.72) times as likely", "grows by 0.5", "Less protected"):
        assert part in text
    assert "e^1000 times" in PrivacyLevel(1000, 1).describe()


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
    level = PrivacyLevel(epsilon, precision)
    text = level.describe()
    assert len(re.findall(r"\.(?:\s|$)", text)) == 2
    assert hides(level) == said
    if said is None:
        assert text.startswith("Protected: ")
    else:
        assert text.startswith(f"This level (N = {precision}) hides {said}: ")
        assert "hard to tell apart" not in text


def test_a_precision_below_one_count_is_described_by_one_count():
    """No two sets of counts differ by a tenth: that epsilon protects nobody from anything."""
    text = PrivacyLevel("0.4", "0.1").describe()
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
    text = PrivacyLevel(epsilon, precision).describe()
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
    ("value", "text"),
    [
        (Fraction(2), "2"),
        (Fraction(1, 2), "0.5"),
        (Fraction(1, 10), "0.1"),
        (Fraction(0.1), "0.1"),
        (Fraction(1, 3), "1/3"),
        (Fraction(10**9, 10**9 + 7), "1"),
        (Fraction(123456789, 10**10 + 19), "0.0123457"),
        (Fraction(10) ** 400, "1.00000e+400"),
    ],
)
def test_numbers_are_shown_short(value, text):
    assert short(value) == text
    assert repr(PrivacyLevel(1, "2.5")) == "PrivacyLevel(epsilon=1, precision=2.5)"


def test_a_notebook_is_shown_the_promise():
    level = PrivacyLevel(1, "2.5")
    shown = level._repr_html_()
    assert ">2.5<" in shown
    assert ">0.4<" in shown
    assert f">{level.alpha:.4g}<" in shown
    assert html.escape(level.describe()) in shown
