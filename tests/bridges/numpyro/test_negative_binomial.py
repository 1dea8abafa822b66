import doctest
import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import countveil as cv
import countveil.bridges.numpyro.negative_binomial
from countveil.bridges.numpyro import PrivatizedNegativeBinomial
from countveil.bridges.numpyro.negative_binomial import _score_and_gradients
from countveil.distributions import PrivatizedNegativeBinomial as Law
from countveil.distributions import PrivatizedPoisson
from tests import reference

pytestmark = pytest.mark.long

numpyro.enable_x64()

REPORTS, ALPHAS = (-7, 0, 1, 3, 17, 300, 5000), (0.0, 0.01, 0.4, 0.95)
MEANS, CONCENTRATIONS = (1e-6, 0.02, 1.0, 40.0, 5000.0), (1e-3, 0.03, 0.9, 1.0, 30.0, 1e5, 1e9)


def all_cases():
    """Reports, means, concentrations and noise levels in every combination that can be."""
    cases = itertools.product(REPORTS, MEANS, CONCENTRATIONS, ALPHAS)
    columns = np.array([case for case in cases if case[0] >= 0 or case[3] > 0.0]).T
    return columns[0].astype(int), *columns[1:]


def exactly(reports, mean, concentration, alpha, truncated=False):
    """The scores by ``countveil.log_likelihood``."""
    rate, p = concentration * np.log1p(mean / concentration), mean / (mean + concentration)
    return cv.log_likelihood(reports, rate, alpha, truncated, likelihood="negative-binomial", dispersion=p)


SIZES = (12, 945)  # of few cases and of all: what JAX compiled for arrays of a size serves all that are filled up to it


@functools.cache
def each_slope(truncated):
    """The score and its derivatives in both parameters, by JAX."""

    def score(mean, concentration, r, alpha):
        return PrivatizedNegativeBinomial(mean, concentration, alpha, truncated=truncated).log_prob(r)

    return jax.jit(jax.vmap(jax.value_and_grad(score, (0, 1))))


def score_and_slopes(reports, mean, concentration, alpha, truncated=False):
    """The score, and its derivatives in the mean and in the concentration."""
    arrays = np.broadcast_arrays(mean, concentration, reports, alpha)
    n = arrays[0].size
    filled = [jnp.asarray(np.resize(each, min(size for size in SIZES if size >= n))) for each in arrays]
    score, found = each_slope(truncated)(*filled)
    return np.asarray(score)[:n], [np.asarray(x)[:n] for x in found]


@pytest.mark.parametrize("truncated", [False, True])
def test_scores_and_gradients_are_those_of_the_compiled_functions(truncated):
    reports, mean, concentration, alpha = all_cases()
    reports = np.maximum(reports, 0) if truncated else reports
    got, found = score_and_slopes(reports, mean, concentration, alpha, truncated=truncated)
    (in_mean, in_concentration), exact = found, exactly(reports, mean, concentration, alpha, truncated)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, exact, rtol=1e-9, atol=1e-9)
    rate, p = concentration * np.log1p(mean / concentration), mean / (mean + concentration)
    counts = cv.expected_true_counts(reports, rate, alpha, likelihood="negative-binomial", dispersion=p)
    bursts = cv.expected_bursts(reports, rate, alpha, p)
    expected = (counts - mean) * concentration / (mean + concentration)
    np.testing.assert_allclose(in_mean * mean, expected, rtol=1e-8, atol=1e-10)
    expected = bursts - rate - (counts - mean) * concentration / (mean + concentration)
    np.testing.assert_allclose(in_concentration * concentration, expected, rtol=1e-6, atol=1e-6)


def test_extremes():
    cases = [
        [3, 0, -(10**6), 10**6, 10**5, 5, 2],
        [1e-20, 1e-20, 2.0, 1e6, 9.9e4, 1e5, 1.0],
        [2.0, 0.1, 1e-10, 1e3, 5.0, 1e12, 0.5],
        [0.5, 0.5, 0.9, 1e-12, 1 - 1e-6, 0.3, 1e-300],
    ]
    got, found = score_and_slopes(*cases)
    np.testing.assert_allclose(got, exactly(*map(np.array, cases)), rtol=1e-9)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_parameters_that_overflow_or_vanish_score_without_nan(alpha):
    ends = np.array([0.0, 1e-300, 2.0, np.inf])
    mean, concentration = (x.ravel() for x in np.meshgrid(ends, ends[1:]))
    for r in (0, 4):
        score, found = score_and_slopes(r, mean, concentration, alpha)
        assert not np.isnan(score).any()
        assert np.isfinite(found).all()
    far = score[(mean == 2.0) & (concentration == np.inf)].item()  # of the last report
    assert far == pytest.approx(PrivatizedPoisson(2.0, alpha).logpmf(4), rel=1e-9)


def test_single_precision_is_decent():
    rng = np.random.default_rng(3)
    mean, concentration, alpha = (
        10 ** rng.uniform(-3, 2, 2000),
        10 ** rng.uniform(-2, 3, 2000),
        rng.uniform(0.1, 0.9, 2000),
    )
    reports = np.rint(mean * rng.gamma(0.5, 2.0, 2000)) + rng.integers(-3, 4, 2000)
    arrays = [jnp.asarray(x, jnp.float32) for x in (reports, mean, concentration, alpha)]
    exact = exactly(reports.astype(int), *(np.asarray(x, np.float64) for x in arrays[1:]))
    got, *found = jax.jit(_score_and_gradients)(*arrays)
    assert got.dtype == found[0].dtype == jnp.float32
    assert np.abs(np.asarray(got) - exact).max() < 1e-3
    assert np.isfinite(found).all()


def test_without_noise_it_is_the_negative_binomial_distribution():
    counts = np.arange(-1, 899)
    for mean in (0.5, 4.0):
        score, _ = score_and_slopes(counts, mean, 1.5, 0.0)
        np.testing.assert_allclose(score, stats.nbinom.logpmf(counts, 1.5, 1.5 / (1.5 + mean)), rtol=1e-11)
        assert score[0] == -np.inf


@pytest.mark.parametrize(("mean", "concentration", "alpha"), [(0.2, 0.5, 0.9), (3.0, 7.0, 0.4), (1.0, 0.3, 0.0)])
def test_truncated(mean, concentration, alpha):
    law, r = PrivatizedNegativeBinomial(mean, concentration, alpha, truncated=True), np.arange(900)
    score, _ = score_and_slopes(r, mean, concentration, alpha, truncated=True)
    np.testing.assert_allclose(score, exactly(r, mean, concentration, alpha, truncated=True), rtol=1e-10)
    mass = np.exp(score)
    assert mass.sum() == pytest.approx(1.0, rel=1e-10)
    assert law.mean == pytest.approx(mass @ r, rel=1e-9)
    assert law.variance == pytest.approx(mass @ (r - mass @ r) ** 2, rel=1e-9)
    assert law.support is dist.constraints.nonnegative_integer
    key = jax.random.key(1)
    draws = [
        np.asarray(PrivatizedNegativeBinomial(mean, concentration, alpha, truncated=t).sample(key, (1000,)))
        for t in (True, False)
    ]
    assert (draws[0] == np.maximum(draws[1], 0)).all()


@pytest.mark.parametrize(("mean", "concentration", "alpha"), [(0.3, 0.1, 0.3), (20.0, 3.0, 0.9)])
def test_samples_follow_the_law(mean, concentration, alpha):
    law = PrivatizedNegativeBinomial(mean, concentration, alpha)
    draws, support = np.asarray(law.sample(jax.random.key(2), (40_000,))), np.arange(-2500, 3500)
    exact = Law(concentration * math.log1p(mean / concentration), mean / (mean + concentration), alpha)
    assert reference.chi_square_p_value(draws, support[0], exact.pmf(support)) > 1e-3
    other = PrivatizedPoisson(mean, alpha).pmf(support)  # the negative control
    assert reference.chi_square_p_value(draws, support[0], other) < 1e-4
    assert (law.mean, law.variance) == pytest.approx((exact.mean(), exact.var()))


def test_shapes_and_pytrees():
    alpha = np.array([0.1, 0.5, 0.9])
    law = PrivatizedNegativeBinomial(jnp.ones((4, 1)), 2.0, alpha, truncated=True)
    assert (law.batch_shape, law.event_shape) == ((4, 3), ())
    assert law.mean.shape == law.variance.shape == (4, 3)
    # Traced, since compiling them is slow.
    assert jax.eval_shape(law.log_prob, jnp.zeros((7, 1, 1))).shape == (7, 4, 3)
    assert jax.eval_shape(law.sample, jax.random.key(0)).shape == (4, 3)
    back = jax.tree.unflatten(*jax.tree.flatten(law)[::-1])
    assert back.truncated
    np.testing.assert_array_equal(back.alpha, law.alpha)
    assert jax.eval_shape(lambda law: law.log_prob(3), law).shape == (4, 3)
    each = jax.vmap(lambda mean: PrivatizedNegativeBinomial(mean, 2.0, 0.5).log_prob(3))
    assert jax.eval_shape(each, jnp.array([1.0, 2.0])).shape == (2,)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\), got 1.0"):
        PrivatizedNegativeBinomial(1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="invalid concentration parameter"):
        PrivatizedNegativeBinomial(1.0, -1.0, 0.5, validate_args=True)
    with pytest.raises(TypeError, match="key must be a JAX random key, got int"):
        PrivatizedNegativeBinomial(1.0, 1.0, 0.5).sample(1)
    with pytest.raises(NotImplementedError, match="only in mean and concentration, got a derivative in alpha"):
        jax.grad(lambda a: PrivatizedNegativeBinomial(1.0, 1.0, a).log_prob(3))(0.5)


def test_examples_run():
    assert doctest.testmod(countveil.bridges.numpyro.negative_binomial).failed == 0
