import doctest
import functools
import importlib
import itertools
import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

import countveil as cv
import countveil.bridges.numpyro
from countveil.bridges.numpyro import (
    PrivatizedNegativeBinomial,
    PrivatizedPoisson,
    _log_prob,
    _rate_gradient,
    _score_and_gradients,
    negative_binomial_score,
    poisson_score,
)
from countveil.distributions import PrivatizedNegativeBinomial as BurstyLaw
from countveil.distributions import PrivatizedPoisson as Law
from tests import reference
from tests.pages import run_sections

pytestmark = pytest.mark.long

numpyro.enable_x64()

REPORTS, RATES = np.array([-7, 0, 1, 3, 30, 1000]), np.array([1e-6, 0.01, 2.5, 30.0, 1e3, 1e6])
CASES = REPORTS.size * RATES.size  # a size that is compiled anyway


draw = jax.jit(lambda law, key: law.sample(key, (40_000,)))


SHORTER = "num_warmup=300, num_samples=500", "num_warmup=100, num_samples=100"  # chains


def far_and_wide(size):
    """Reports near their law and anywhere, rates over twelve decades, alpha near 0, in between and near 1."""
    rng = np.random.default_rng(5)
    rate = 10 ** rng.uniform(-6, 6, size)
    alpha = rng.uniform(0.01, 0.999, size)
    alpha = np.where(rng.random(size) < 0.5, alpha, 1 - 10 ** rng.uniform(-3, -0.01, size)).clip(0.01, 0.999)
    near = rate + rng.normal(size=size) * (np.sqrt(rate) + 1 / (1 - alpha))
    anywhere = 10 ** rng.uniform(0, 5, size)
    return np.rint(np.where(rng.random(size) < 0.5, near, anywhere)).clip(-1e5, 1e5).astype(int), rate, alpha


each_slope = jax.jit(jax.vmap(jax.grad(lambda m, r, a: PrivatizedPoisson(m, a).log_prob(r))))


def slopes(reports, rate, alpha):
    return np.asarray(each_slope(*(jnp.asarray(x) for x in (rate, reports, alpha))))


@pytest.mark.parametrize("alpha", [0.01, 0.3, 0.7, 0.95])
def test_log_prob_is_the_sum_over_all_counts(alpha):
    r, m = (x.ravel() for x in np.meshgrid(REPORTS, RATES))
    exact = [reference.report_logpmf(int(a), b, alpha) for a, b in zip(r, m, strict=True)]
    got = PrivatizedPoisson(m, alpha).log_prob(r)
    assert got.dtype == np.float64
    assert max(map(reference.relative_error, np.asarray(got), exact)) < 1e-13
    ratios = [reference.expected_count(int(a), b, alpha) / b for a, b in zip(r, m, strict=True)]
    assert max(map(reference.relative_error, slopes(r, m, np.full(r.size, alpha)) + 1, ratios)) < 1e-9


def test_log_prob_and_gradient_agree_with_the_compiled_functions_everywhere():
    reports, rate, alpha = far_and_wide(50_000)
    got = jax.jit(lambda r, m, a: PrivatizedPoisson(m, a).log_prob(r))(reports, rate, alpha)
    np.testing.assert_allclose(got, cv.log_likelihood(reports, rate, alpha), rtol=1e-13)
    expected = cv.expected_true_counts(reports, rate, alpha) / rate - 1
    np.testing.assert_allclose(slopes(reports, rate, alpha), expected, rtol=1e-9, atol=1e-13)


def test_extremes():
    cases = [
        [3, 0, -(10**7), 10**7, 10**7, 5, 10**6, 10**6, 2],
        [1e-300, 1e-300, 2.0, 1e7, 9.9e6, 1e7, 3.0, 1e6, 1.0],
        [0.5, 0.5, 0.9, 1e-12, 1 - 1e-9, 0.3, 1 - 1e-9, 1 - 1e-6, 1e-300],
    ]
    reports, rate, alpha = (np.resize(each, CASES) for each in cases)
    got = PrivatizedPoisson(rate, alpha).log_prob(reports)
    np.testing.assert_allclose(got, cv.log_likelihood(reports, rate, alpha), rtol=1e-11)
    expected = cv.expected_true_counts(reports, rate, alpha) / rate - 1
    np.testing.assert_allclose(slopes(reports, rate, alpha), expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_a_rate_that_overflows_or_vanishes_scores_without_nan(alpha):
    law = PrivatizedPoisson(np.array([0.0, np.inf]), alpha)
    score = np.asarray(law.log_prob(np.array([[0], [4]])))
    assert (score[:, 1] < -1e290).all()
    assert np.isclose(score[0, 0], np.log((1 - alpha) / (1 + alpha)))
    assert not np.isnan(score).any()
    assert slopes(*(np.full(CASES, each) for each in (4, 0.0, 0.5))) == pytest.approx(1.0)


def test_gradient_by_finite_differences_and_a_second_derivative():
    def score(m):
        return PrivatizedPoisson(m, 0.6).log_prob(jnp.array([-2, 0, 1, 4, 40])).sum()

    score, slope, bend = (jax.jit(f) for f in (score, jax.grad(score), jax.hessian(score)))
    for rate in (0.3, 2.0, 25.0, 80.0):
        h = 1e-5 * rate
        difference = float(score(rate + h) - score(rate - h)) / (2 * h)
        assert float(slope(rate)) == pytest.approx(difference, rel=1e-6)
        difference = float(slope(rate + h) - slope(rate - h)) / (2 * h)
        assert float(bend(rate)) == pytest.approx(difference, rel=1e-5)


def test_single_precision_is_decent():
    reports, rate, alpha = far_and_wide(20_000)
    arrays = [jnp.asarray(x, jnp.float32) for x in (reports, rate, alpha)]
    rate, alpha = (np.asarray(x, np.float64) for x in arrays[1:])
    exact = cv.log_likelihood(reports, rate, alpha)
    got, slope = jax.jit(_log_prob)(*arrays), jax.jit(_rate_gradient)(*arrays)
    assert got.dtype == slope.dtype == jnp.float32
    error = np.abs(np.asarray(got) - exact)
    assert (error / np.maximum(1.0, np.abs(exact))).max() < 1e-3
    assert error[(np.abs(reports) < 30) & (np.abs(exact) < 30)].max() < 3e-5
    expected = cv.expected_true_counts(reports, rate, alpha) / rate - 1
    assert (np.abs(np.asarray(slope) - expected) / np.maximum(1.0, np.abs(expected))).max() < 1e-5


def test_without_noise_it_is_the_poisson_distribution():
    counts = np.arange(-1, 599)  # as many as below, so that they are compiled once
    for rate in (0.5, 4.0):
        score = np.asarray(PrivatizedPoisson(rate, 0.0).log_prob(counts))
        np.testing.assert_allclose(score[1:], dist.Poisson(rate).log_prob(counts[1:]), rtol=1e-12)
        assert score[0] == -np.inf
    assert slopes(*(np.resize(each, CASES) for each in ([3, 0], 2.0, 0.0))).tolist()[:2] == [0.5, -1.0]
    assert (draw(PrivatizedPoisson(4.0, 0.0), jax.random.key(3)) >= 0).all()
    alpha = np.resize([0.0, 0.5], 600)
    mixed = PrivatizedPoisson(2.0, alpha).log_prob(np.full(600, 3))
    np.testing.assert_allclose(mixed, cv.log_likelihood(3, 2.0, alpha), rtol=1e-13)


@pytest.mark.parametrize(("rate", "alpha"), [(0.2, 0.9), (3.0, 0.4), (1.0, 0.0)])
def test_truncated(rate, alpha):
    law = PrivatizedPoisson(rate, alpha, truncated=True)
    r = np.arange(600)
    score = np.asarray(law.log_prob(r))
    np.testing.assert_allclose(score, cv.log_likelihood(r, rate, alpha, truncated=True), rtol=1e-12)
    mass = np.exp(score)
    assert mass.sum() == pytest.approx(1.0, rel=1e-12)
    assert law.mean == pytest.approx(mass @ r, rel=1e-10)
    assert law.variance == pytest.approx(mass @ (r - mass @ r) ** 2, rel=1e-10)
    both = [jax.grad(lambda m, t=t: PrivatizedPoisson(m, alpha, truncated=t).log_prob(0))(rate) for t in (0, 1)]
    assert both[0] == both[1]
    assert law.support is dist.constraints.nonnegative_integer
    draws = [np.asarray(draw(x, jax.random.key(1))) for x in (law, PrivatizedPoisson(rate, alpha))]
    assert (draws[0] == np.maximum(draws[1], 0)).all()


@pytest.mark.parametrize(("rate", "alpha"), [(0.3, 0.3), (2.0, 0.8), (400.0, 0.99)])
def test_samples_follow_the_law(rate, alpha):
    law = PrivatizedPoisson(rate, alpha)
    draws = np.asarray(draw(law, jax.random.key(2)))
    assert draws.dtype.kind == "i"
    support = np.arange(-2500, 3500)
    pmf = np.exp(law.log_prob(support))
    assert reference.chi_square_p_value(draws, support[0], pmf) > 1e-3
    other = Law(rate, 0.95 * alpha).pmf(support)  # the negative control
    assert reference.chi_square_p_value(draws, support[0], np.asarray(other)) < 1e-4
    assert law.mean == rate
    wide = np.arange(-5000, 5000)
    assert law.variance == pytest.approx(np.exp(law.log_prob(wide)) @ (wide - rate) ** 2, rel=1e-9)
    error = np.sqrt(float(law.variance) / draws.size)
    assert abs(draws.mean() - rate) < 4 * error


def test_shapes():
    law = PrivatizedPoisson(jnp.ones((4, 1)), jnp.array([0.1, 0.5, 0.9]))
    assert (law.batch_shape, law.event_shape) == ((4, 3), ())
    assert law.mean.shape == law.variance.shape == (4, 3)
    assert law.log_prob(jnp.zeros((7, 1, 1))).shape == (7, 4, 3)
    wide = PrivatizedPoisson(1.0, 0.5).expand((5, 2))
    key = jax.random.key(0)
    sampled = {(4, 3): law.sample, (5, 2): wide.sample}
    for shape, sample in sampled.items():  # traced, not run: compiling a Poisson sampler for each is slow
        assert jax.eval_shape(sample, key).shape == shape
        assert jax.eval_shape(lambda key, sample=sample: sample(key, (7, 2)), key).shape == (7, 2, *shape)
    assert wide.log_prob(0).shape == (5, 2)
    assert wide.to_event(1).log_prob(jnp.zeros((5, 2))).shape == (5,)
    assert law.mask(jnp.array([True, False, True])).log_prob(1)[0, 1] == 0.0


def test_it_is_a_pytree():
    law = PrivatizedPoisson(jnp.array([1.0, 2.0]), 0.5, truncated=True)
    leaves, tree = jax.tree.flatten(law)
    back = jax.tree.unflatten(tree, leaves)
    assert back.truncated
    assert back.batch_shape == (2,)
    through_jit = jax.jit(lambda law: law.log_prob(3))(law)
    through_vmap = jax.vmap(lambda m: PrivatizedPoisson(m, 0.5, truncated=True).log_prob(3))(law.rate)
    np.testing.assert_allclose(through_jit, law.log_prob(3), rtol=1e-14)
    np.testing.assert_allclose(through_vmap, law.log_prob(3), rtol=1e-14)
    laws = jax.vmap(lambda m: PrivatizedPoisson(m, 0.5))(law.rate)
    assert laws.mean.shape == (2,)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("truncated", [False, True])
def test_parameters_that_are_not_known_score_as_nan(alpha, truncated):
    """A finite score would hide from a sampler that its model broke."""
    reports, options = np.array([0, 1, 30]), {"truncated": truncated, "validate_args": False}
    assert np.isnan(PrivatizedPoisson(np.nan, alpha, **options).log_prob(reports)).all()
    for mean, concentration in ((np.nan, 2.0), (3.0, np.nan)):
        law = PrivatizedNegativeBinomial(mean, concentration, alpha, **options)
        assert np.isnan(law.log_prob(reports)).all()
        slopes = jax.grad(
            lambda m, s: PrivatizedNegativeBinomial(m, s, alpha, **options).log_prob(reports).sum(), argnums=(0, 1)
        )(mean, concentration)
        assert np.isnan(slopes).all()


@pytest.mark.parametrize("alpha", [1.0, -0.1, np.nan, [0.5, 1.5]])
def test_noise_levels_out_of_range_are_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\), got"):
        PrivatizedPoisson(1.0, alpha)


def test_other_bad_input_is_refused():
    with pytest.raises(ValueError, match="invalid rate parameter"):
        PrivatizedPoisson(-1.0, 0.5, validate_args=True)
    with pytest.warns(UserWarning, match="Out-of-support"):
        PrivatizedPoisson(1.0, 0.5, validate_args=True).log_prob(0.5)
    assert PrivatizedPoisson(1.0, 0.5, validate_args=True).log_prob(-3) < 0
    with pytest.raises(TypeError, match="key must be a JAX random key, got int"):
        PrivatizedPoisson(1.0, 0.5).sample(1)
    with pytest.raises(NotImplementedError, match="differentiable only in rate, got a derivative in alpha"):
        jax.grad(lambda a: PrivatizedPoisson(1.0, a).log_prob(3))(0.5)


def test_without_numpyro_the_error_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "countveil.bridges.numpyro")
    monkeypatch.setitem(sys.modules, "numpyro.distributions", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[numpyro\]'"):
        importlib.import_module("countveil.bridges.numpyro")


def test_posterior_predictive_reports():
    def model():
        numpyro.sample("r", PrivatizedPoisson(2.0, 0.5).expand((3,)))

    draws = numpyro.infer.Predictive(model, num_samples=5)(jax.random.key(0))
    assert draws["r"].shape == (5, 3)


def test_regression_covers_the_slope_and_the_naive_one_does_not(capsys):
    found = run_sections("regression.md", SHORTER, "The data", "NumPyro")["slopes"]
    low, high = (np.quantile(np.stack(list(found.values())), q, axis=1) for q in (0.025, 0.975))
    covers = dict(zip(found, (low < 1.0) & (high > 1.0), strict=True))
    assert covers == {"private": True, "naive": False, "true counts": True}
    assert "naive" in capsys.readouterr().out


@functools.cache
def sampler(draws):
    """NUTS for the topic model, compiled once for all reports of one size."""
    return MCMC(
        NUTS(topics),
        num_warmup=200,
        num_samples=draws,
        num_chains=2,
        chain_method="vectorized",
        progress_bar=False,
        jit_model_args=True,
    )


def topics(reports, alpha, shape, rate):
    """The topic model with every count summed out."""
    rows, columns = reports.shape
    theta = numpyro.sample("theta", dist.Gamma(shape, rate).expand((rows, 2)))
    phi = numpyro.sample("phi", dist.Gamma(shape, rate).expand((columns, 2)))
    numpyro.sample("reports", PrivatizedPoisson(theta @ phi.T, alpha), obs=reports)


def moments(draws):
    """Posterior means and standard deviations with their Monte Carlo errors; draws (chain, draw, ...)."""
    mean = draws.mean((0, 1))
    square = (draws - mean) ** 2
    sd = np.sqrt(square.mean((0, 1)))
    errors = [np.sqrt(x.var((0, 1)) / effective_sample_size(x)) for x in (draws, square)]
    return np.stack([mean, sd]), np.stack([errors[0], errors[1] / (2 * sd)])


def compare(rows, columns, alpha, draws):
    """z of every rate's mean and standard deviation, (2, rows, columns): NUTS against collapsed Gibbs."""
    rng = np.random.default_rng(11)
    shape, rate = 1.0, 0.8
    truth = rng.gamma(shape, 1 / rate, (rows, 2)) @ rng.gamma(shape, 1 / rate, (2, columns))
    noise = rng.geometric(1 - alpha, (2, rows, columns))
    reports = rng.poisson(truth) + noise[0] - noise[1]

    nuts = sampler(draws)
    nuts.run(jax.random.key(4), reports, alpha, shape, rate)
    by_nuts = nuts.get_samples(group_by_chain=True)
    model = cv.TopicModel(
        2,
        method="gibbs",
        likelihood="poisson",
        draws=3 * draws,
        tune=300,
        chains=2,
        prior_shape=shape,
        prior_rate=rate,
        seed=6,
        progress=False,
    )
    with pytest.warns(ConvergenceWarning, match="^Too little data: "):  # so that the prior matters
        by_gibbs = model.fit(cv.PrivatizedCounts(reports, alpha)).posterior["posterior"]
    rates = [
        np.einsum("csdk,csvk->csdv", by_nuts["theta"], by_nuts["phi"]),
        np.einsum("csdk,cskv->csdv", by_gibbs["theta"], by_gibbs["phi"], dtype=np.float64),
    ]
    (found, error), (exact, exact_error) = map(moments, rates)
    return (found - exact) / np.hypot(error, exact_error)


def test_nuts_and_collapsed_gibbs_have_the_same_posterior():
    z = compare(8, 7, 0.9, 400)
    assert np.abs(z).max() < 4.5
    assert (z**2).mean() < 2.0


def test_the_module_is_not_imported_by_countveil():
    assert "numpyro" not in cv.__all__
    assert countveil.bridges.numpyro.__all__ == [
        "PrivatizedNegativeBinomial",
        "PrivatizedPoisson",
        "negative_binomial_score",
        "poisson_score",
    ]


numpyro.enable_x64()

REPORTS_OF_BURSTS, ALPHAS = (-7, 0, 1, 3, 17, 300, 5000), (0.0, 0.01, 0.4, 0.95)
MEANS, CONCENTRATIONS = (1e-6, 0.02, 1.0, 40.0, 5000.0), (1e-3, 0.03, 0.9, 1.0, 30.0, 1e5, 1e9)


def all_cases():
    """Reports, means, concentrations and noise levels in every combination that can be."""
    cases = itertools.product(REPORTS_OF_BURSTS, MEANS, CONCENTRATIONS, ALPHAS)
    columns = np.array([case for case in cases if case[0] >= 0 or case[3] > 0.0]).T
    return columns[0].astype(int), *columns[1:]


def exactly(reports, mean, concentration, alpha, truncated=False):
    """The scores by ``countveil.log_likelihood``."""
    rate, p = concentration * np.log1p(mean / concentration), mean / (mean + concentration)
    return cv.log_likelihood(reports, rate, alpha, truncated, likelihood="negative-binomial", dispersion=p)


SIZES = (12, 945)  # of few cases and of all: what JAX compiled for arrays of a size serves all that are filled up to it


@functools.cache
def each_slope_of_bursts(truncated):
    """The score and its derivatives in both parameters, by JAX."""

    def score(mean, concentration, r, alpha):
        return PrivatizedNegativeBinomial(mean, concentration, alpha, truncated=truncated).log_prob(r)

    return jax.jit(jax.vmap(jax.value_and_grad(score, (0, 1))))


def score_and_slopes(reports, mean, concentration, alpha, truncated=False):
    """The score, and its derivatives in the mean and in the concentration."""
    arrays = np.broadcast_arrays(mean, concentration, reports, alpha)
    n = arrays[0].size
    filled = [jnp.asarray(np.resize(each, min(size for size in SIZES if size >= n))) for each in arrays]
    score, found = each_slope_of_bursts(truncated)(*filled)
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


def test_extremes_of_bursts():
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
    assert far == pytest.approx(Law(2.0, alpha).logpmf(4), rel=1e-9)


def test_single_precision_is_decent_of_bursts():
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
def test_truncated_of_bursts(mean, concentration, alpha):
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
def test_samples_follow_the_law_of_bursts(mean, concentration, alpha):
    law = PrivatizedNegativeBinomial(mean, concentration, alpha)
    draws, support = np.asarray(law.sample(jax.random.key(2), (40_000,))), np.arange(-2500, 3500)
    exact = BurstyLaw(concentration * math.log1p(mean / concentration), mean / (mean + concentration), alpha)
    assert reference.chi_square_p_value(draws, support[0], exact.pmf(support)) > 1e-3
    other = Law(mean, alpha).pmf(support)  # the negative control
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


def test_examples_run_of_bursts():
    assert doctest.testmod(countveil.bridges.numpyro).failed == 0


numpyro.enable_x64()
HIDES = cv.mechanisms.Suppression(10)
REPORTS_OF_ANY = np.array([[np.nan, 0.0], [12.0, np.nan]])


def finite(function, at, h=1e-5):
    return (function(at + h) - function(at - h)) / (2 * h)


def test_values_and_slopes_are_those_of_the_sums():
    rates = np.array([0.5, 8.0])  # of the columns
    score = poisson_score(REPORTS_OF_ANY, rates, HIDES)
    np.testing.assert_allclose(score, cv.log_likelihood(REPORTS_OF_ANY, rates, mechanism=HIDES), rtol=1e-13)
    slopes = jax.jit(jax.grad(lambda rate: poisson_score(REPORTS_OF_ANY, rate, HIDES).sum()))(rates)
    expected = cv.expected_true_counts(REPORTS_OF_ANY, rates, mechanism=HIDES) / rates - 1.0
    np.testing.assert_allclose(slopes, expected.sum(axis=0), rtol=1e-12)


def test_slopes_of_bursty_counts_are_those_of_finite_differences():
    def total(mean, concentration):
        return negative_binomial_score(REPORTS_OF_ANY, mean, concentration, HIDES).sum()

    mean, concentration = 5.0, 0.7
    slopes = jax.grad(total, (0, 1))(mean, concentration)
    assert slopes[0] == pytest.approx(float(finite(lambda m: total(m, concentration), mean)), rel=1e-6)
    assert slopes[1] == pytest.approx(float(finite(lambda s: total(mean, s), concentration)), rel=1e-6)


def test_chains_side_by_side_are_called_together():
    rates = jnp.array([1.0, 5.0, 30.0])
    each = jax.vmap(jax.value_and_grad(lambda rate: poisson_score(REPORTS_OF_ANY, rate, HIDES).sum()))
    scores, slopes = each(rates)
    for i, rate in enumerate(rates):
        one = jax.value_and_grad(lambda x: poisson_score(REPORTS_OF_ANY, x, HIDES).sum())(rate)
        np.testing.assert_allclose((scores[i], slopes[i]), one, rtol=1e-12)


def test_impossible_rates_score_nothing():
    assert np.isnan(poisson_score([12.0], -1.0, HIDES)).all()
    assert np.isnan(negative_binomial_score([12.0], 1.0, 0.0, HIDES)).all()


def test_a_second_derivative_is_refused():
    with pytest.raises(ValueError, match="JVP"):
        jax.grad(jax.grad(lambda rate: poisson_score(REPORTS_OF_ANY, rate, HIDES).sum()))(1.0)


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


def test_examples_run_of_any():
    assert doctest.testmod(countveil.bridges.numpyro).failed == 0
