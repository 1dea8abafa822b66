"""Known offsets of rows and columns: the same posterior as writing the offset into the prior by hand."""

import numpy as np
import pytest

import countveil as cv
from countveil.inference import cavi
from countveil.inference.facts import mean_rate_without_offsets
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from tests.inference.test_cavi import climb, largest_fall
from tests.joint import SERIAL, assert_same_bits, batch_error, bound, draw_reports, mu_of, run_chain, small_model

pytestmark = pytest.mark.long

ROW = np.array([0.5, 1.0, 8.0, 2.0, 0.2, 3.0])
COLUMN = np.array([1.0, 0.3, 4.0, 2.0, 1.5])


def scene(learned=False, seed=1):
    rng = np.random.default_rng(seed)
    model = small_model((6, 5), learned=learned)
    theta, phi = rng.gamma(1.5, 1.0, (6, 2)), rng.gamma(1.5, 1.0, (5, 2))
    reports = draw_reports(np.outer(ROW, COLUMN) * (theta @ phi.T), np.asarray(0.5), rng)
    return reports, model


@pytest.mark.parametrize("algorithm", ["gibbs", "augmented_gibbs"])
def test_a_single_cell_has_the_posterior_of_its_scaled_prior(algorithm):
    from importlib import import_module

    from scipy import special, stats

    module = import_module(f"countveil.inference.{algorithm}")
    observations = cv.PrivatizedCounts([[4]], 0.5, row_offset=[6.0], column_offset=[0.5])
    nodes, weights = special.roots_genlaguerre(80, 0.5)
    mu = 3.0 * np.outer(nodes, nodes)
    counts = np.arange(200)
    likelihood = stats.poisson.pmf(counts, mu[..., None]) @ 0.5 ** np.abs(4 - counts)
    density = np.outer(weights, weights) * likelihood
    exact = (mu * density).sum() / density.sum()
    streams, model = Streams.of_chain(3, 0), small_model((1, 1), 1)
    plan = Plan(observations, model)
    state = module.init(plan, model, streams, SERIAL)
    trace = []
    for _ in range(2000):
        state, _ = module.step(state, plan, model, streams, SERIAL)
        trace.append(mu_of(state.factors)[0, 0])
    assert abs(np.mean(trace) - exact) < bound(1) * batch_error(np.array(trace))


@pytest.mark.parametrize("method", ["gibbs", "augmented-gibbs", "cavi"])
def test_a_large_column_offset_is_the_row_offset_of_the_transposed_data(method):
    counts = np.zeros((3, 4), dtype=int)
    counts[:, 0] = 2
    offset, mask = np.array([1.0, 1.0, 1.0, 100.0]), np.zeros((3, 4), dtype=bool)
    mask[:, 2] = True
    options = {"prior_shape": 5.0, "prior_rate": 20.0, "draws": 500, "tune": 60, "chains": 1, "seed": 1}
    model = cv.TopicModel(1, method=method, likelihood="poisson", **options)
    upright = model.fit(cv.PrivatizedCounts(counts, 0.5, mask, column_offset=offset)).rate().mean("doc")
    turned = model.fit(cv.PrivatizedCounts(counts.T, 0.5, mask.T, row_offset=offset)).rate().mean("word")
    np.testing.assert_allclose(upright, turned, rtol=0.1)


@pytest.mark.parametrize("spec", ["ik,jk->ij", "ijk,k->ij"])
def test_offsets_stay_with_their_axes_whatever_the_matrix_form(spec):
    nothing, options = np.zeros((6, 5), dtype=int), {"prior_shape": 400.0, "prior_rate": 20.0, "seed": 1}
    model = cv.PoissonFactorization(spec, {"k": 1}, names=("rows", "others"), draws=200, tune=1, chains=1, **options)
    unseen = cv.PrivatizedCounts(nothing, 0.5, np.ones((6, 5), dtype=bool), row_offset=ROW)
    means = model.fit(unseen).rate().mean("j").to_numpy()
    error = np.sqrt(2 / 400.0 / 200)  # a rate is a product of two gammas of shape 400; of 200 draws
    assert np.abs(means / ROW / 400.0 - 1.0).max() < 5.0 * error


@pytest.mark.parametrize(
    "make",
    [
        lambda values, **options: cv.PrivatizedCounts(values, 0.5, **options),
        lambda values, **options: cv.Reports(values, cv.mechanisms.Rounding(3), **options),
        cv.ExactCounts,
    ],
)
def test_offsets_for_the_columns_of_a_tensor_are_refused(make):
    with pytest.raises(ValueError, match=r"column_offset must be for reports with two axes, got 3 axes: leave it out"):
        make(np.full((4, 3, 2), 3), column_offset=np.arange(1.0, 7.0))


@pytest.mark.parametrize(("factor", "name"), [("phi", "column"), ("theta", "row")])
@pytest.mark.parametrize("method", ["gibbs", "em", "cavi"])
def test_an_offset_for_a_factor_that_is_fixed_is_refused(factor, name, method):
    """It scales the prior of a factor that is learned, and would change nothing here."""
    counts = np.arange(12).reshape(4, 3)
    size = {"phi": 3, "theta": 4}[factor]
    data = cv.ExactCounts(counts, **{f"{name}_offset": np.arange(1.0, 1.0 + size)})
    options = {"chains": 1, "tune": 1, "draws": 1} if method == "gibbs" else {}
    model = cv.PoissonFactorization(
        "dk,vk->dv",
        {"k": 2},
        names=["theta", "phi"],
        fixed={factor: np.ones((size, 2))},
        method=method,
        seed=1,
        **options,
    )
    rule = rf"{name}_offset must be for a factor that is learned, .* multiply its values by the offset instead"
    with pytest.raises(ValueError, match=rule):
        model.fit(data)


def test_the_prior_has_the_size_of_the_rates_before_their_offsets():
    reports = scene()[0]
    plain = mean_rate_without_offsets(cv.PrivatizedCounts(reports, 0.5))
    scaled = cv.PrivatizedCounts(reports, 0.5, row_offset=np.full(6, 8.0), column_offset=np.full(5, 0.5))
    np.testing.assert_allclose(mean_rate_without_offsets(scaled), plain / 4.0, rtol=1e-12)


def test_an_offset_of_one_is_none():
    reports, model = scene()
    plain = list(run_chain(cv.PrivatizedCounts(reports, 0.5), model, 3, seed=2))[-1]
    ones = cv.PrivatizedCounts(reports, 0.5, row_offset=np.ones(6), column_offset=np.ones(5))
    assert_same_bits(plain, list(run_chain(ones, model, 3, seed=2))[-1])


@pytest.mark.parametrize("learned", [False, True])
def test_the_bound_with_offsets_never_decreases(learned):
    reports, model = scene(learned)
    observations = cv.PrivatizedCounts(reports, 0.5, row_offset=ROW, column_offset=COLUMN)
    for expectation in cavi.EXPECTATIONS:
        assert largest_fall(climb(observations, model, 100, expectation)[1]) < 1e-9


@pytest.mark.filterwarnings("ignore:Not safe yet:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["gibbs", "augmented-gibbs", "cavi", "svi"])
def test_documents_of_very_different_lengths_are_fitted_better_with_their_lengths(method):
    rng = np.random.default_rng(5)
    topics = rng.dirichlet(np.full(40, 0.1), 3)
    mixture = rng.dirichlet(np.full(3, 0.5), 80)
    lengths = np.exp(rng.normal(4.0, 1.5, 80))
    mu = lengths[:, None] * (mixture @ topics)
    reports = draw_reports(mu, np.asarray(0.7), rng)
    options = {"draws": 50, "tune": 50, "chains": 1, "seed": 1, "prior_shape": 1.0}
    error = {}
    for name, offset in (("with", lengths), ("without", None)):
        observations = cv.PrivatizedCounts(reports, 0.7, row_offset=offset)
        fit = cv.TopicModel(3, method=method, **options).fit(observations)
        error[name] = np.abs(np.log(fit.rate().to_numpy().sum(axis=1) / lengths)).mean()
    assert error["with"] < error["without"]


def test_offsets_are_checked():
    with pytest.raises(ValueError, match=r"row_offset must have shape \(2,\), got \(3,\)"):
        cv.PrivatizedCounts([[1], [2]], 0.5, row_offset=[1, 2, 3])
    with pytest.raises(ValueError, match=r"column_offset must be positive and finite, got 0\.0 at index 0"):
        cv.ExactCounts([[1], [2]], column_offset=[0.0])


@pytest.mark.filterwarnings("ignore:Not safe yet:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dispersion", ["row", 0.8])
def test_offsets_multiply_the_bursts_of_bursty_counts(dispersion):
    """Rows that differ by their offsets alone: with these, theta / offset is even, and p is that of the counts."""
    rng, p = np.random.default_rng(6), 0.8
    offset = np.exp(rng.normal(0.0, 1.0, 200))
    rate = 2.0 * offset[:, None] * rng.dirichlet(np.full(20, 5.0))[None, :] * 20.0
    counts = rng.negative_binomial(rate / -np.log1p(-p), 1.0 - p)
    noise = rng.geometric(0.5, rate.shape) - rng.geometric(0.5, rate.shape)
    options = {"draws": 40, "tune": 40, "chains": 1, "seed": 1, "threads": 1, "prior_shape": 5.0, "progress": False}
    model = cv.TopicModel(1, likelihood="negative-binomial", dispersion=dispersion, **options)
    spread = {}
    for name, given in (("with", {"row_offset": offset}), ("without", {})):
        fit = model.fit(cv.PrivatizedCounts(counts + noise, 0.5, **given))
        theta = fit.posterior["posterior"]["theta"].mean(("chain", "draw")).to_numpy()[:, 0]
        spread[name] = np.abs(np.log(theta / theta.mean() / (offset / offset.mean()))).max()
        expected = rate.sum() * p / (-np.log1p(-p) * (1.0 - p))
        assert float(fit.rate().sum()) == pytest.approx(expected, rel=0.1)
        found = fit.dispersions()["p"].to_numpy()
        assert found.mean() == pytest.approx(p, abs=0.03)
    assert spread["with"] < 0.7 * spread["without"]
