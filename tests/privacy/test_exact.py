import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from countveil.privacy.exact import exact, from_text, positive, rounded_up, short


@pytest.mark.parametrize("value", [0, -3, 0.1, -2.5, np.float32(0.1), Decimal("-0.30"), Fraction(-1, 3), "-1e-3"])
def test_numbers_are_taken_exactly(value):
    found = exact("it", value)
    assert found == Fraction(float(value) if isinstance(value, np.floating) else value)
    assert type(found) is Fraction


@pytest.mark.parametrize("bad", [True, None, 1j, b"1", [1]])
def test_what_is_no_number_is_refused_by_name(bad):
    with pytest.raises(TypeError, match=r"^it must be a number or a decimal string, got "):
        exact("it", bad)


@pytest.mark.parametrize("bad", [math.inf, "nan", "1/3", "1e9999", 2**4096, Fraction(1, 2**4096)])
def test_what_cannot_be_written_down_is_refused_by_name(bad):
    with pytest.raises(ValueError, match=r"^it must (be|have) "):
        exact("it", bad)


def test_a_positive_number_is_above_zero():
    assert positive("it", "0.1") == Fraction(1, 10)
    for bad in (0, -1, "0.0"):
        with pytest.raises(ValueError, match=rf"^it must be positive, got {bad}$"):
            positive("it", bad)


@pytest.mark.parametrize("text", ["0", "1", "10", "1/10", "22/7", "9" * 1200])
def test_a_fraction_has_one_spelling(text):
    assert str(from_text("it", text)) == text


@pytest.mark.parametrize(
    "bad", ["", "-1", "+1", "01", "2/4", "3/1", "0/1", "1/0", "1.5", "1e3", " 1", "1\n", "١", "1_0", 1, None, 0.5]
)
def test_other_spellings_are_refused(bad):
    with pytest.raises(ValueError, match=r"^it must be a reduced fraction in text, such as 1 or 1/10, got ") as caught:
        from_text("it", bad)
    assert str(caught.value).isprintable()


def test_a_fraction_that_is_too_long_is_refused():
    for bad in ("9" * 1300, "9" * 5000, "1/" + "9" * 1300):
        with pytest.raises(ValueError, match=r"^it must be a (reduced )?fraction "):
            from_text("it", bad)


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
        (Fraction(1, 10**400), "1e-400"),
        (Fraction(1e-320), "9.99989e-321"),
    ],
)
def test_numbers_are_shown_short(value, text):
    assert short(value) == text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.1, "0.1"),
        (Fraction(10007, 3000), "3.34"),
        (Fraction(1, 3), "0.334"),
        (1.0025, "1.01"),
        (11.650, "11.7"),
        (float("inf"), "inf"),
    ],
)
def test_bounds_are_rounded_up(value, shown):
    assert rounded_up(value) == shown
