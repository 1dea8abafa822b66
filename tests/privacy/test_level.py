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

from countveil.privacy import PrivacyLevel, gaussian_noise, promise
from countveil.privacy.level import ConcentratedLevel
from countveil.privacy.mechanisms import DiscreteGaussian, TwoSidedGeometric

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


EIGHTH = PrivacyLevel.zcdp("0.125")


def test_rho_and_sigma_squared_are_exact():
    third = PrivacyLevel.zcdp(Fraction(1, 3))
    assert (third.rho, third.variance, third.loss) == (Fraction(1, 3), Fraction(3, 2), Fraction(1, 3))
    assert third.mechanism.variance_parameter == Fraction(3, 2)
    assert float(third.mechanism.sigma) == math.sqrt(1.5)
    assert PrivacyLevel.zcdp(0.1).rho == Fraction(0.1) != PrivacyLevel.zcdp("0.1").rho
    assert EIGHTH.numbers() == {"rho": Fraction(1, 8)}
    assert (EIGHTH.in_numbers(), EIGHTH.spelt(), repr(EIGHTH)) == ("rho 0.125", "rho:0.125", "PrivacyLevel.zcdp(0.125)")


def test_a_mechanism_gives_back_the_level_that_it_keeps():
    assert PrivacyLevel.kept_by(EIGHTH.mechanism) == EIGHTH
    assert PrivacyLevel.kept_by(DiscreteGaussian(2)) is None
    assert PrivacyLevel.kept_by(TwoSidedGeometric.keeping(1, 8)) == PrivacyLevel(1, 8) != EIGHTH
    assert DiscreteGaussian(2).rho == EIGHTH.rho
    assert DiscreteGaussian(2) != EIGHTH.mechanism


def test_rho_grows_with_the_square_of_the_distance():
    assert EIGHTH.rho_at(3) == Fraction(9, 8)
    assert EIGHTH.epsilon_for(1e-6, 2) == pytest.approx(PrivacyLevel.zcdp("0.5").epsilon_for(1e-6))
    assert EIGHTH.epsilon_for(1e-6, 0) == 0.0


def test_releases_add_up():
    assert EIGHTH.repeated(3) == PrivacyLevel.zcdp("0.375") == EIGHTH.composed_with(PrivacyLevel.zcdp("0.25"))


def test_two_sided_geometric_noise_counts_as_half_its_squared_rate():
    both = EIGHTH.composed_with(PrivacyLevel(1, 2))
    assert both == PrivacyLevel(1, 2).composed_with(EIGHTH) == PrivacyLevel.zcdp("0.25")
    tau = np.arange(-400, 401)
    law = TwoSidedGeometric(math.exp(-0.5))
    logs = np.log([law.pmf(int(k)) for k in tau])
    for order in (1.01, 2.0, 8.0, 64.0):  # the divergence of one unit more is at most order * rate^2/2
        divergence = np.logaddexp.reduce(order * logs[1:] + (1 - order) * logs[:-1]) / (order - 1)
        assert divergence <= order * 0.5**2 / 2


def test_noise_is_drawn_at_its_exact_variance(monkeypatch):
    asked = []
    monkeypatch.setattr(gaussian_noise, "draw", lambda *given: asked.append(given) or [0])
    monkeypatch.setattr(gaussian_noise, "draw_narrow", lambda *given: asked.append(given) or np.zeros(1))
    level = PrivacyLevel.zcdp(Fraction(1, 3))
    level.draw(5)
    level.draw_narrow(6)
    assert asked == [(Fraction(3, 2), 5), (Fraction(3, 2), 6)]


@pytest.mark.parametrize("rho", ["0.0001", "0.125", "0.5", 3, 50])
def test_true_zeros_are_reported_as_positive_as_often_as_said(rho):
    level = PrivacyLevel.zcdp(rho)
    tau = np.arange(-5000, 5001)
    weights = np.exp(-float(level.rho) * tau.astype(float) ** 2)
    assert level.false_positive_rate == pytest.approx(weights[tau > 0].sum() / weights.sum(), rel=1e-9)


def test_levels_of_rho_are_values():
    assert pickle.loads(pickle.dumps(EIGHTH)) == copy.deepcopy(EIGHTH) == EIGHTH
    assert len({EIGHTH, PrivacyLevel.zcdp(0.125), PrivacyLevel.zcdp(1)}) == 2
    assert PrivacyLevel(1, 8) != EIGHTH
    assert "sigma^2" in EIGHTH._repr_html_()
    assert EIGHTH.hides() is None
    assert PrivacyLevel.zcdp(4).hides() == "little"


@pytest.mark.parametrize(
    ("make", "error", "rule"),
    [
        (lambda: PrivacyLevel.zcdp(0), ValueError, "rho must be positive, got 0"),
        (lambda: PrivacyLevel.zcdp(True), TypeError, "rho must be a number or a decimal string, got True"),
        (lambda: PrivacyLevel.zcdp("1e-30").check_drawn(), ValueError, r"rho of at least 2\*\*-81, got 1e-30"),
        (lambda: PrivacyLevel.zcdp("1e-400"), ValueError, "rho must lie between 5e-201 and 5e199, got 1e-400"),
        (lambda: PrivacyLevel.zcdp("1e400"), ValueError, r"rho must lie between .*, got 1.00000e\+400"),
        (lambda: EIGHTH.epsilon_for("x"), ValueError, "delta must be a decimal number, got 'x'"),
        (lambda: EIGHTH.epsilon_for(None), TypeError, "delta must be a number or a decimal string, got None"),
        (lambda: EIGHTH.epsilon_for("1e-400"), ValueError, "delta must be at least 5e-324"),
        (lambda: EIGHTH.repeated(0), ValueError, "times must be at least 1, got 0"),
        (lambda: EIGHTH.composed_with(0.1), TypeError, "other must be a level, got float"),
        (lambda: EIGHTH.epsilon_for(0), ValueError, "delta must lie between 0 and 1, got 0"),
        (lambda: EIGHTH.rho_at(-1), ValueError, "distance must not be negative, got -1"),
    ],
)
def test_what_no_level_can_be_is_refused(make, error, rule):
    with pytest.raises(error, match=rule):
        make()


def test_any_distance_and_any_spelling_of_delta_has_its_epsilon():
    assert EIGHTH.epsilon_for("1e-6") == EIGHTH.epsilon_for(1e-6)
    assert EIGHTH.epsilon_for(1e-6, "1e200") == math.inf
    assert 0.0 <= EIGHTH.epsilon_for(1e-6, "1e-200") <= EIGHTH.epsilon_for(1e-6, "1e-100") < 1e-6
    for rho in ("5e-201", "5e199"):
        level = PrivacyLevel.zcdp(rho)
        assert f"rho is {rho.replace('e', 'e+') if rho == '5e199' else rho}" in level.describe()
        assert level.mechanism.rho == level.rho


def test_a_level_of_rho_has_no_epsilon():
    assert not hasattr(ConcentratedLevel(1), "epsilon")
