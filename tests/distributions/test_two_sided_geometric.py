import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from countveil.distributions import TwoSidedGeometric
from tests import reference

ALPHAS = (1e-9, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9)
VALUES = (-(10**7), -300, -5, -1, 0, 1, 7, 300, 10**7)
ACCURACY = 1e-12


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("k", VALUES)
def test_mass_and_tails(k, alpha):
    law = TwoSidedGeometric(alpha)
    a = mpf(alpha)
    exact = (1 - a) / (1 + a) * a ** abs(k)
    upper = a ** (k + 1) / (1 + a) if k >= 0 else 1 - a ** (-k) / (1 + a)
    lower = a ** (-k) / (1 + a) if k < 0 else 1 - a ** (k + 1) / (1 + a)
    assert reference.relative_error(law.logpmf(k), mp.log(exact)) < ACCURACY
    for value, log_value, tail in ((law.cdf(k), law.logcdf(k), lower), (law.sf(k), law.logsf(k), upper)):
        if tail > mpf(10) ** -300:
            assert reference.relative_error(value, tail) < ACCURACY
        if abs(tail - 1) > mpf(10) ** -40:
            assert reference.relative_error(log_value, mp.log(tail)) < ACCURACY


def test_agrees_with_scipy():
    law, scipy_law = TwoSidedGeometric(0.7), stats.dlaplace(-np.log(0.7))
    k = np.arange(-40, 41)
    np.testing.assert_allclose(law.pmf(k), scipy_law.pmf(k), rtol=1e-13)
    np.testing.assert_allclose(law.cdf(k), scipy_law.cdf(k), rtol=1e-13)
    assert law.var() == pytest.approx(scipy_law.var())


def test_no_noise_is_a_point_mass():
    law = TwoSidedGeometric(0.0)
    assert law.pmf([-1, 0, 1]).tolist() == [0.0, 1.0, 0.0]
    assert law.cdf([-1, 0, 1]).tolist() == [0.0, 1.0, 1.0]
    assert law.sf([-1, 0, 1]).tolist() == [1.0, 0.0, 0.0]
    assert (law.mean(), law.var(), law.mode()) == (0.0, 0.0, 0)
    assert not law.rvs(100, 1).any()


def test_moments():
    law = TwoSidedGeometric([0.2, 0.6])
    k = np.arange(-200, 201)[:, None]
    np.testing.assert_allclose((k**2 * law.pmf(k)).sum(0), law.var(), rtol=1e-13)
    np.testing.assert_allclose(law.std() ** 2, law.var(), rtol=1e-14)
    assert law.mean().tolist() == [0.0, 0.0]
    assert law.mode().tolist() == [0, 0]


@pytest.mark.parametrize("alpha", [0.01, 0.5, 0.99])
def test_draws(alpha):
    k = np.arange(-4000, 4001)
    exact = TwoSidedGeometric(alpha).pmf(k)
    assert reference.chi_square_p_value(TwoSidedGeometric(alpha).rvs(100_000, 3), -4000, exact) > 1e-4
    wrong = TwoSidedGeometric(0.97 * alpha).rvs(400_000, 3)
    assert reference.chi_square_p_value(wrong, -4000, exact) < 1e-4 or alpha < 0.1


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (1.0, r"alpha must be in \[0, 1\), got 1.0$"),
        (np.nan, r"alpha must be in \[0, 1\), got nan$"),
        ([[0.1, 0.2], [0.3, -0.5]], r"alpha must be in \[0, 1\), got -0.5 at index \(1, 1\)$"),
    ],
)
def test_alpha_outside_its_range(alpha, message):
    with pytest.raises(ValueError, match=message):
        TwoSidedGeometric(alpha)
