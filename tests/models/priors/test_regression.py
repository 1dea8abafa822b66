"""Covariates in the prior: the law of shapes, sizes and coefficients given counts, against brute force on grids."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import integrate, special, stats

from countveil.kernels.random import SMALLEST
from countveil.models.priors import Conditional, RegressionPrior, learned_shape, prior_of, regression
from countveil.models.priors.regression import expected_shares
from tests.joint import FALSE_ALARM, matrix_model

pytestmark = pytest.mark.long

DESIGN = np.array([[-1.2, 0.5], [-0.4, -1.0], [0.0, 1.1], [0.3, -0.2], [0.6, 0.1], [0.2, -0.9], [0.5, 0.4]])
OFFSETS = np.linspace(0.5, 2.0, 7)[:, None]
KNOWN, LEARNED = RegressionPrior(0.8, 0.6, DESIGN), RegressionPrior(0.8, None, DESIGN, 0.7)


def theta():
    """(7, 2)."""
    return matrix_model((7, 4), 2, 0.1, None, 1.0).factors[0]


def shared():
    """The same, used twice."""
    return theta()._replace(shared=True)


def counts(seed=1):
    """Counts and exposures of all entries; one row is not seen."""
    rng = np.random.default_rng(seed)
    count, exposure = rng.poisson(1.5, (7, 2)).astype(float), rng.gamma(2.0, 1.0, (7, 2))
    count[2], exposure[2] = 0.0, 0.0
    return count, exposure


def brute_force(prior, found, own, scale, count, exposure):
    """(2,) log-densities of shapes, log sizes and coefficients, with every entry summed out on a grid."""
    log_x = np.linspace(-90.0, 8.0, 20_000)
    total = np.zeros(2)
    for k in range(2):
        (log_a, *tilts), (size, *slopes) = own[:, k], found[:, k]
        for d in range(7):
            a = np.exp(log_a + sum(b * x for b, x in zip(tilts, DESIGN[d], strict=True)))
            rate = a * np.exp(-size - sum(b * x for b, x in zip(slopes, DESIGN[d], strict=True))) * scale[d]
            law = a * np.log(rate) + a * log_x - rate * np.exp(log_x) - special.gammaln(a)
            law = law + count[d, k] * log_x - exposure[d, k] * np.exp(log_x)
            total[k] += special.logsumexp(law)
        e = prior.mean * np.exp(-size)  # is exponential of mean 1, and size its decreasing function
        total[k] += stats.expon.logpdf(e) + np.log(e)
        total[k] += stats.norm.logpdf([*slopes, *(2.0 * np.array(tilts))], 0.0, prior.spread).sum()
        if prior.shape is None:
            total[k] += stats.norm.logpdf(log_a, np.log(learned_shape.MEDIAN), learned_shape.SPREAD)
    return total


def log_shapes(own):
    """(7, 2)."""
    return own[0] + DESIGN @ own[1:]


@pytest.mark.parametrize("scale", [np.ones((7, 1)), OFFSETS], ids=["plain", "offsets"])
def test_the_law_given_counts_has_all_entries_summed_out(scale):
    rng, (count, exposure) = np.random.default_rng(2), counts()
    told, nothing = LEARNED.given_counts(scale, count, exposure), np.zeros((3, 2))
    law, slow = [], []
    for _ in range(4):
        found, own = rng.normal(0.0, 0.7, (3, 2)), rng.normal(-0.5, 0.6, (3, 2))
        slopes = LEARNED.slopes(found)
        of_means = LEARNED.place(found, log_shapes(own), told).log_mass
        of_means -= LEARNED.place(found, log_shapes(nothing), told).log_mass
        at = told.of_shapes(slopes)
        of_shapes = LEARNED.place_of_shapes(own, at, told).log_mass
        of_shapes -= LEARNED.place_of_shapes(nothing, at, told).log_mass
        lead = of_shapes - of_means  # what shapes have for themselves
        law.append(LEARNED.place(found, log_shapes(own), told).log_mass + lead)
        slow.append(brute_force(LEARNED, found, own, scale[:, 0], count, exposure))
        sizes = LEARNED.mass_of_sizes(slopes - found[0], log_shapes(own), told)
        more = found + np.array([[0.3], [0.0], [0.0]])
        one, other = (LEARNED.place(each, log_shapes(own), told).log_mass for each in (more, found))
        change = one - other
        np.testing.assert_allclose(sizes(more[0]) - sizes(found[0]), change, rtol=1e-8)
    np.testing.assert_allclose(np.diff(law, axis=0), np.diff(slow, axis=0), rtol=1e-5, atol=1e-5)


def places(kind):
    """How proposals see coefficients of means and those of shapes, and values of each."""
    rng, (count, exposure) = np.random.default_rng(3), counts()
    known = (
        LEARNED.given_counts(OFFSETS, count, exposure) if kind == "counts" else LEARNED.given_entries(OFFSETS, values())
    )
    found, own = rng.normal(0.0, 0.5, (3, 2)), np.array([[0.2, -1.0], [0.3, -0.4], [0.1, 0.6]])
    log_shape, at = log_shapes(own), known.of_shapes(LEARNED.slopes(found))
    return [
        (lambda new: LEARNED.place(new, log_shape, known), found),
        (lambda new: LEARNED.place_of_shapes(new, at, known), own),
    ]


@pytest.mark.parametrize("kind", ["counts", "values"])
@pytest.mark.parametrize("of", [0, 1], ids=["means", "shapes"])
def test_newton_steps_follow_the_slope_and_lead_uphill(kind, of):
    place_of, found = places(kind)[of]
    _, mass, aim, curvature = place_of(found)
    step, h = aim - found.T, 1e-5
    for p in range(3):
        change = h * np.eye(3)[p][:, None]
        slope = place_of(found + change).log_mass - place_of(found - change).log_mass
        np.testing.assert_allclose(np.einsum("kq,kq->k", curvature[:, p], step), slope / (2.0 * h), rtol=1e-5)
    assert (np.linalg.eigvalsh(curvature) > 0.0).all()
    assert (place_of(found + 0.01 * step.T).log_mass > mass).all()


@pytest.mark.parametrize("kept", [0.0, 0.6])
def test_proposals_stay_between_their_limits(kept, monkeypatch):
    """4,000 chains of a normal that is cut off, after twelve steps each."""
    monkeypatch.setattr(regression, "KEPT", (kept,))
    ones = np.ones((4000, 1, 1))

    def place_of(found):
        return regression.Place(found, -0.5 * found[0] ** 2, np.zeros((4000, 1)), ones)

    found, rng = np.zeros((1, 4000)), np.random.default_rng(1)
    for _ in range(12):
        found = regression.proposed(place_of, found, np.array([[-0.5], [1.0]]), rng)
    assert stats.kstest(found[0], stats.truncnorm(-0.5, 1.0).cdf).pvalue > FALSE_ALARM


def test_an_entry_bends_newtons_curvature_of_shapes_as_its_law_does():
    """Where its own curvature is positive; with the prior's it is all of it."""
    design, h = np.array([[1.0]]), 1e-4
    prior = RegressionPrior(0.8, None, design, 0.7)
    for count, exposure in ((5.0, 0.3), (2.0, 4.0), (0.0, 3.0), (30.0, 50.0)):
        told = prior.given_counts(1.0, np.array([[count]]), np.array([[exposure]]))
        at = told.of_shapes(np.array([[0.4]]))
        places = [prior.place_of_shapes(np.array([[-0.7], [x]]), at, told) for x in (-h, 0.0, h)]
        bend = -np.diff([place.log_mass[0] for place in places], 2)[0] / h**2 - 0.35**-2
        np.testing.assert_allclose(places[1].curvature[0, 1, 1] - 0.35**-2, max(bend, 0.0), rtol=1e-4, atol=1e-5)


def test_matrices_are_well_conditioned_where_no_chain_is():
    known = LEARNED.given_entries(OFFSETS, values())
    wild = LEARNED.place(np.array([[-30.0, 30.0], [40.0, -40.0], [40.0, 40.0]]), np.zeros((7, 2)), known)
    assert np.isfinite(np.linalg.cholesky(wild.curvature)).all()


def drawn(prior, n, seed, scale=OFFSETS):
    """(n, 2 + 2 P, 1, 2) hyperparameters after one step each."""
    rng, (count, exposure), hypers, found = np.random.default_rng(seed), counts(), prior.start(theta()), []
    for _ in range(n):
        given = Conditional(scale, count, count, exposure)
        hypers = prior.draw_hypers_given_counts(theta(), hypers, given, rng)
        found.append(hypers)
    return np.array(found)


def means_on_a_grid(prior):
    """(statistics, K) posterior means by adding up a grid of log shape, log size and the coefficient of each."""
    (count, exposure), x = counts(), prior.design[:, 0]
    axes = np.linspace(-3.5, 4.5, 33), np.linspace(-3.0, 3.0, 25), np.linspace(-3.0, 3.0, 25)
    size, slope, tilt = np.meshgrid(*axes, indexing="ij", sparse=True)
    shapes = np.linspace(-5.5, 2.5, 25) if prior.shape is None else [np.log(prior.shape)]
    total, weight, top = np.zeros((8, 2)), np.zeros(2), None
    known = stats.norm.logpdf(slope, 0.0, prior.spread) + stats.norm.logpdf(2.0 * tilt, 0.0, prior.spread)
    known = known - size - prior.mean * np.exp(-size)
    for log_a, k in product(shapes, range(2)):
        law = known + stats.norm.logpdf(log_a, np.log(0.1), 1.0)
        for d in range(7):
            a, n, e = np.exp(log_a + x[d] * tilt), count[d, k], exposure[d, k]
            rate = a * np.exp(-size - x[d] * slope) * OFFSETS[d]
            law = law + special.gammaln(a + n) - special.gammaln(a) + a * np.log(rate) - (a + n) * np.log(rate + e)
        top = law.max() if top is None else top
        w = np.exp(law - top)
        weight[k] += w.sum()
        values = log_a, size, slope, tilt, slope**2, tilt**2, slope * tilt, size * slope
        total[:, k] += [(each * w).sum() for each in values]
    return total / weight


@pytest.mark.parametrize("prior", [KNOWN, LEARNED], ids=["known shape", "learned shape"])
def test_steps_have_the_posterior_that_a_grid_gives(prior):
    prior = replace(prior, design=DESIGN[:, :1])
    check_against(means_on_a_grid(prior), drawn(prior, 1600, 4)[:, :, 0], prior)


def check_against(wanted, found, prior):
    """Hyperparameters (n, 4, K) of a chain against the posterior means (8, K) of statistics of them."""
    log_a, slope, tilt = np.log(found[:, 0]), found[:, 2], found[:, 3]
    size = log_a - np.log(found[:, 1])
    statistics = np.stack([log_a, size, slope, tilt, slope**2, tilt**2, slope * tilt, size * slope], axis=1)
    batches = statistics.reshape(40, -1, 8, 2).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(40)
    z = (batches.mean(axis=0) - wanted) / np.maximum(error, 1e-9)
    if prior.shape is not None:
        assert found[:, 0] == pytest.approx(prior.shape)
        z = z[1:]
    assert np.abs(z).max() < stats.t.isf(FALSE_ALARM / 2 / z.size, 39)
    assert (np.diff(found[:, 2:], axis=0) != 0.0).mean() > 0.8  # proposals are taken


def test_shapes_of_many_rows_leave_their_start_soon():
    rng, n = np.random.default_rng(9), 4000
    design = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
    shape = np.array([1.6, 0.3]) * np.exp(design * [-0.4, 0.5])
    count = rng.poisson(rng.gamma(shape, 30.0 / shape)).astype(float)
    prior, factor = RegressionPrior(10.0, None, design), theta()
    hypers = prior.start(factor)
    for _ in range(40):
        given = Conditional(1.0, count, count, np.ones((n, 2)))
        hypers = prior.draw_hypers_given_counts(factor, hypers, given, rng)
    shapes, _, _, tilts = hypers[:, 0]
    np.testing.assert_allclose(shapes, [1.6, 0.3], rtol=0.15)
    np.testing.assert_allclose(tilts, [-0.4, 0.5], atol=0.15)


def values():
    """(7, 2) entries, of which two are too small for a number."""
    found = np.random.default_rng(8).gamma(0.5, np.exp(0.8 * DESIGN[:, :1]), (7, 2))
    found[4] = SMALLEST
    return found


def means_given_values(prior, value):
    """(statistics, K) posterior means by adding up a grid of log shape, log size and the coefficient of each."""
    x = prior.design[:, 0]
    axes = np.linspace(-4.5, 8.0, 41), np.linspace(-3.5, 3.5, 29), np.linspace(-2.2, 2.2, 29)
    size, slope, tilt = np.meshgrid(*axes, indexing="ij", sparse=True)
    shapes = np.linspace(-5.5, 3.0, 27) if prior.shape is None else [np.log(prior.shape)]
    known = stats.norm.logpdf(slope, 0.0, prior.spread) + stats.norm.logpdf(2.0 * tilt, 0.0, prior.spread)
    known = known - size - prior.mean * np.exp(-size)
    total, weight, top = np.zeros((8, 2)), np.zeros(2), np.full(2, np.nan)
    for log_a, k in product(shapes, range(2)):
        law = known + stats.norm.logpdf(log_a, np.log(0.1), 1.0)
        for d in range(7):
            a, own = np.exp(log_a + x[d] * tilt), value[d, k]
            log_rate = log_a + x[d] * (tilt - slope) - size + np.log(OFFSETS[d])
            law += a * log_rate
            if own <= SMALLEST:  # the probability of less
                law += a * np.log(SMALLEST) - special.gammaln(1.0 + a)
            else:
                law += (a - 1.0) * np.log(own) - np.exp(log_rate) * own - special.gammaln(a)
        top[k] = law.max() if np.isnan(top[k]) else top[k]
        w = np.exp(law - top[k])
        weight[k] += w.sum()
        values = log_a, size, slope, tilt, slope**2, tilt**2, slope * tilt, size * slope
        total[:, k] += [(each * w).sum() for each in values]
    return total / weight


@pytest.mark.parametrize("prior", [replace(KNOWN, shape=0.01), LEARNED], ids=["known shape", "learned shape"])
def test_steps_given_values_have_the_posterior_that_a_grid_gives(prior):
    prior = replace(prior, design=DESIGN[:, :1])
    rng, value, hypers, found = np.random.default_rng(5), values(), prior.start(theta()), []
    for _ in range(1600):
        hypers = prior.draw_hypers(shared(), hypers, OFFSETS, value, rng)
        found.append(hypers[:, 0])
    check_against(means_given_values(prior, value), np.array(found), prior)


HYPERS = np.array(
    [[[0.3, 0.4]], [[1.0, 3.0]], [[0.5, 0.0]], [[-1.0, 2.0]], [[0.2, -0.3]], [[0.0, 0.8]]]
)  # shapes, rates, two coefficients of means, two of shapes


def test_entries_have_shapes_and_means_that_covariates_and_offsets_change():
    shape, rate = LEARNED.gamma(HYPERS, OFFSETS)
    for d in range(7):
        mean = HYPERS[0, 0] / HYPERS[1, 0] * np.exp(DESIGN[d] @ HYPERS[2:4, 0])
        np.testing.assert_allclose(shape[d], HYPERS[0, 0] * np.exp(DESIGN[d] @ HYPERS[4:, 0]))
        np.testing.assert_allclose(shape[d] / rate[d], mean / OFFSETS[d])


def test_shapes_stay_where_they_can_be_computed_with():
    far = HYPERS * np.array([1.0, 1.0, 1.0, 1.0, 300.0, 300.0])[:, None, None]
    shape, rate = LEARNED.gamma(far, 1.0)
    assert (np.exp(learned_shape.BOUNDS[0]) <= shape).all()
    assert (shape <= 1.01 * np.exp(learned_shape.BOUNDS[1])).all()
    np.testing.assert_allclose(shape / rate, np.divide(*LEARNED.gamma(HYPERS, 1.0)))


def test_a_factor_given_its_counts_is_gamma():
    rng, (count, exposure) = np.random.default_rng(3), counts()
    given = Conditional(OFFSETS, np.ones((7, 2)), count, exposure)
    draws = np.array([LEARNED.draw(theta(), HYPERS, given, rng)[0] for _ in range(500)])
    shape, rate = LEARNED.gamma(HYPERS, OFFSETS)
    law = stats.gamma(shape + count, scale=1.0 / (rate + exposure))
    assert stats.kstest(law.cdf(draws).ravel(), "uniform").pvalue > FALSE_ALARM


def test_hyperparameters_start_without_effects():
    first = LEARNED.start(theta())
    assert first.shape == (6, 1, 2)
    assert (first[0] == learned_shape.MEDIAN).all()
    np.testing.assert_allclose(first[0] / first[1], 0.8)
    assert (first[2:] == 0.0).all()
    assert (KNOWN.start(theta())[0] == 0.6).all()
    value = np.random.default_rng(1).gamma(1.0, 1.0, (7, 2))
    shape, rate = LEARNED.estimate(theta(), OFFSETS, value)[:2]
    np.testing.assert_allclose(7 * shape / rate, (OFFSETS * value).sum(axis=0, keepdims=True))
    assert LEARNED.draw_hypers(theta(), first, 1.0, value, None) is first


def test_facts_have_no_design():
    facts = json.loads(json.dumps(LEARNED.facts()))
    found = prior_of(facts)
    assert (found.mean, found.shape) == (0.8, None)
    assert found.spread == 0.7
    assert found.design.shape == (1, 2)
    assert facts["design"] != replace(LEARNED, design=-DESIGN).facts()["design"]
    draws = np.arange(48.0).reshape(2, 3, 4, 1, 2)
    np.testing.assert_array_equal(LEARNED.reported_rates(draws), draws[:, :, 1])
    found = LEARNED.reported(theta(), draws)
    assert {name: axes for name, (axes, _) in found.items()} == {
        "_shape": (1,), "_effect": ("term", 1), "_shape_effect": ("term", 1)
    }  # fmt: skip
    for (_, values), rows in zip(found.values(), ([0], [2], [3]), strict=True):
        np.testing.assert_array_equal(np.reshape(values, (2, 3, 1, 2)), draws[:, :, rows, 0])
    np.testing.assert_array_equal(LEARNED.summaries(theta(), draws)[0], draws[:, :, 0, 0].mean(axis=2))


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
