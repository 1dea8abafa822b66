"""Expected shares of gamma variables in their sum, against their closed form, an integral and draws."""

import numpy as np
import pytest
from scipy import integrate

from countveil.models.priors.expected_shares import expected_shares


def test_shares_of_gammas_with_one_rate_are_those_of_their_shapes():
    shape = np.array([0.05, 0.4, 2.0])
    found = expected_shares(shape, np.full((5, 3), 3.0) * np.arange(1.0, 6.0)[:, None])
    np.testing.assert_allclose(found, np.tile(shape / shape.sum(), (5, 1)), rtol=1e-12)


@pytest.mark.parametrize("shape", [[0.05, 0.1, 0.02], [0.5, 3.0, 20.0], [0.3, 0.3, 0.3]])
def test_shares_are_those_of_the_integral(shape):
    shape, rate = np.array(shape), np.array([0.01, 1.0, 40.0])
    found = expected_shares(shape, rate)
    for k in range(3):

        def density(u, k=k):
            t = np.exp(u)
            return t * shape[k] / (rate[k] + t) * np.exp(-(shape * np.log1p(t / rate)).sum())

        slow = integrate.quad(density, -60.0, 12.0, limit=500)[0]
        slow += shape[k] / shape.sum() * np.exp(-(shape * np.log1p(np.exp(12.0) / rate)).sum())  # beyond
        assert found[k] == pytest.approx(slow, abs=2e-3)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)


def test_shares_are_those_of_draws():
    rng, shape, rate = np.random.default_rng(1), np.array([0.3, 1.5]), np.array([[0.2, 2.0], [3.0, 0.5]])
    draws = rng.gamma(shape, 1.0, (40_000, 2, 2)) / rate
    mean = (draws / draws.sum(axis=-1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(expected_shares(shape, rate), mean, atol=0.01)
