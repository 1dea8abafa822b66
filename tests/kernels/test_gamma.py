"""The compiled gamma draws and digamma against SciPy's."""

import numpy as np
import pytest
from scipy import special, stats

from countveil.kernels import gamma as kernels
from tests.joint import FALSE_ALARM

DRAWS = 20_000


def draws_of(shape, rate):
    rng = np.random.default_rng(3)
    return np.array([kernels.sample_gamma(shape, rate, rng) for _ in range(DRAWS)])


@pytest.mark.long
@pytest.mark.parametrize(("shape", "rate"), [(0.3, 2.0), (1.0, 0.5), (40.0, 7.0)])
def test_draws_are_gamma(shape, rate):
    draws = draws_of(shape, rate)
    assert stats.kstest(draws, stats.gamma(shape, scale=1.0 / rate).cdf).pvalue > FALSE_ALARM / 3
    assert stats.kstest(draws, stats.gamma(shape, scale=1.1 / rate).cdf).pvalue < FALSE_ALARM / 3


def test_draws_never_vanish():
    draws = draws_of(1e-4, 1.0)
    assert draws.min() == kernels.SMALLEST
    assert kernels.SMALLEST**2 > 0.0


def test_digamma_is_scipys():
    x = np.concatenate([np.geomspace(1e-6, 1e8, 200), np.linspace(0.5, 12.0, 50)])
    found = np.array([kernels.digamma(value) for value in x])
    np.testing.assert_allclose(found, special.digamma(x), rtol=1e-12, atol=1e-13)


def test_trigamma_is_scipys():
    x = np.concatenate([np.geomspace(1e-6, 1e8, 200), np.linspace(0.5, 12.0, 50)])
    found = np.array([kernels.trigamma(value) for value in x])
    np.testing.assert_allclose(found, special.polygamma(1, x), rtol=1e-12, atol=0.0)
