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

from countveil.privacy import PrivacyLevel, promise

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


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "nan", "inf", Decimal("NaN"), np.float32("inf")])
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


def test_a_level_is_described_in_the_words_of_its_promise():
    level = PrivacyLevel(6, "2.5")
    assert level.describe() == promise.describe(Fraction(6), Fraction(5, 2))
    assert level.hides() == "little"
    assert repr(level) == "PrivacyLevel(epsilon=6, precision=2.5)"


def test_a_notebook_is_shown_the_promise():
    level = PrivacyLevel(1, "2.5")
    shown = level._repr_html_()
    assert ">2.5<" in shown
    assert ">0.4<" in shown
    assert f">{level.alpha:.4g}<" in shown
    assert html.escape(level.describe()) in shown
