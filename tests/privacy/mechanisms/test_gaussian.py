"""Discrete Gaussian noise that states its rho exactly, as releases do."""

from fractions import Fraction

import pytest

from countveil.privacy.mechanisms import DiscreteGaussian, from_json
from countveil.study.audit.statistics import GaussianLaw

KEPT = DiscreteGaussian.keeping(Fraction(1, 3))


def test_rho_comes_back_from_a_file():
    stated = KEPT.to_json()
    assert stated == {"name": "discrete Gaussian", "version": 1, "parameters": {"rho": "1/3"}}
    assert from_json(stated) == KEPT
    assert from_json(stated).rho == Fraction(1, 3)
    assert repr(KEPT) == "DiscreteGaussian.keeping(rho=1/3)"
    assert from_json(DiscreteGaussian(2).to_json()).stated_rho is None


def test_it_says_what_it_promises():
    assert "rho is 0.125, so sigma^2 is 4" in DiscreteGaussian.keeping("0.125").describe()
    assert "positive with probability 40.03%" in DiscreteGaussian.keeping("0.125").describe()


def test_releases_state_rho():
    KEPT.check_released()
    with pytest.raises(ValueError, match="the owner's side draws, got 'discrete Gaussian' without a stated rho"):
        DiscreteGaussian(2).check_released()
    with pytest.raises(ValueError, match=r"rho of at least 2\*\*-81"):
        DiscreteGaussian.keeping("1e-26").check_released()
    with pytest.raises(ValueError, match="at most 100 digits, got 102"):
        DiscreteGaussian.keeping(Fraction(10**100 + 1, 10**101)).check_released()


@pytest.mark.parametrize("bad", ["0", "-1", "2/6", "1e-3", "0.5", 3])
def test_another_rho_in_a_file_is_refused(bad):
    with pytest.raises(ValueError, match="discrete Gaussian"):
        from_json(KEPT.to_json() | {"parameters": {"rho": bad}})


def test_sigma_and_rho_that_disagree_are_refused():
    with pytest.raises(ValueError, match="sigma must be 1/sqrt"):
        DiscreteGaussian(1, Fraction(1, 3))


@pytest.mark.parametrize("rho", ["200", "2", "0.125", "1e-4", "1e-9"])
def test_how_far_most_noise_reaches(rho):
    mechanism = DiscreteGaussian.keeping(rho)
    law = GaussianLaw(mechanism)
    for probability in (0.5, 0.95):
        k = mechanism.within(probability)
        assert 1 - law.tail(k) >= probability
        assert k == 0 or 1 - law.tail(k - 1) < probability
    with pytest.raises(ValueError, match="must lie between 0 and 1, got 1"):
        mechanism.within(1)
