"""Scores under any mechanism in NumPyro: the sums over counts, their slopes, and a regression that uses them."""

import doctest

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS

import countveil as cv
import countveil.bridges.numpyro.protected
from countveil.bridges.numpyro import negative_binomial_score, poisson_score

pytestmark = pytest.mark.long

numpyro.enable_x64()
HIDES = cv.mechanisms.Suppression(10)
REPORTS = np.array([[np.nan, 0.0], [12.0, np.nan]])


def finite(function, at, h=1e-5):
    return (function(at + h) - function(at - h)) / (2 * h)


def test_values_and_slopes_are_those_of_the_sums():
    rates = np.array([0.5, 8.0])  # of the columns
    score = poisson_score(REPORTS, rates, HIDES)
    np.testing.assert_allclose(score, cv.log_likelihood(REPORTS, rates, mechanism=HIDES), rtol=1e-13)
    slopes = jax.jit(jax.grad(lambda rate: poisson_score(REPORTS, rate, HIDES).sum()))(rates)
    expected = cv.expected_true_counts(REPORTS, rates, mechanism=HIDES) / rates - 1.0
    np.testing.assert_allclose(slopes, expected.sum(axis=0), rtol=1e-12)


def test_slopes_of_bursty_counts_are_those_of_finite_differences():
    def total(mean, concentration):
        return negative_binomial_score(REPORTS, mean, concentration, HIDES).sum()

    mean, concentration = 5.0, 0.7
    slopes = jax.grad(total, (0, 1))(mean, concentration)
    assert slopes[0] == pytest.approx(float(finite(lambda m: total(m, concentration), mean)), rel=1e-6)
    assert slopes[1] == pytest.approx(float(finite(lambda s: total(mean, s), concentration)), rel=1e-6)


def test_chains_side_by_side_are_called_together():
    rates = jnp.array([1.0, 5.0, 30.0])
    each = jax.vmap(jax.value_and_grad(lambda rate: poisson_score(REPORTS, rate, HIDES).sum()))
    scores, slopes = each(rates)
    for i, rate in enumerate(rates):
        one = jax.value_and_grad(lambda x: poisson_score(REPORTS, x, HIDES).sum())(rate)
        np.testing.assert_allclose((scores[i], slopes[i]), one, rtol=1e-12)


def test_impossible_rates_score_nothing():
    assert np.isnan(poisson_score([12.0], -1.0, HIDES)).all()
    assert np.isnan(negative_binomial_score([12.0], 1.0, 0.0, HIDES)).all()


def test_a_second_derivative_is_refused():
    with pytest.raises(ValueError, match="JVP"):
        jax.grad(jax.grad(lambda rate: poisson_score(REPORTS, rate, HIDES).sum()))(1.0)


def test_a_regression_on_hidden_counts_finds_its_slope():
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.0, 1.0, 300)
    reports = cv.simulate_reports(rng.poisson(np.exp(1.5 + x)), HIDES, rng)

    def model():
        intercept = numpyro.sample("intercept", dist.Normal(0.0, 2.0))
        slope = numpyro.sample("slope", dist.Normal(0.0, 2.0))
        numpyro.factor("reports", poisson_score(reports, jnp.exp(intercept + slope * x), HIDES).sum())

    chains = MCMC(NUTS(model), num_warmup=100, num_samples=100, progress_bar=False)
    chains.run(jax.random.key(1))
    slope = np.asarray(chains.get_samples()["slope"])
    assert abs(slope.mean() - 1.0) < 4 * slope.std()
    assert slope.std() < 0.2


def test_examples_run():
    assert doctest.testmod(countveil.bridges.numpyro.protected).failed == 0
