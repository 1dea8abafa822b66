"""Levels of rho: what they promise, what they add up to, and the noise that they draw."""

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel, gaussian_noise
from countveil.privacy.concentrated import ConcentratedLevel
from countveil.privacy.mechanisms import DiscreteGaussian, TwoSidedGeometric

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


def test_levels_are_values():
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
