"""Covariates in the prior: the law of shapes, sizes and coefficients given counts, against brute force on grids."""

import json

import numpy as np
import pytest
from scipy import special, stats

from countveil.kernels.gamma import SMALLEST
from countveil.models.priors import RegressionPrior, learned_shape, prior_of, regression
from tests.joint import FALSE_ALARM, matrix_model

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


def brute_force(prior, found, log_a, scale, count, exposure):
    """(2,) log-densities of shapes, log sizes and coefficients, with every entry summed out on a grid."""
    log_x = np.linspace(-90.0, 8.0, 20_000)
    total = np.zeros(2)
    for k in range(2):
        a, (size, *slopes) = np.exp(log_a[k]), found[:, k]
        for d in range(7):
            rate = a * np.exp(-size - sum(b * x for b, x in zip(slopes, DESIGN[d], strict=True))) * scale[d]
            law = a * np.log(rate) + a * log_x - rate * np.exp(log_x) - special.gammaln(a)
            law = law + count[d, k] * log_x - exposure[d, k] * np.exp(log_x)
            total[k] += special.logsumexp(law)
        e = prior.mean * np.exp(-size)  # is exponential of mean 1, and size its decreasing function
        total[k] += stats.expon.logpdf(e) + np.log(e)
        total[k] += stats.norm.logpdf(slopes, 0.0, prior.spread).sum()
        if prior.shape is None:
            total[k] += stats.norm.logpdf(log_a[k], np.log(learned_shape.MEDIAN), learned_shape.SPREAD)
    return total


@pytest.mark.parametrize("scale", [np.ones((7, 1)), OFFSETS], ids=["plain", "offsets"])
def test_the_law_given_counts_has_all_entries_summed_out(scale):
    rng, (count, exposure) = np.random.default_rng(2), counts()
    told = LEARNED.told(scale, count, exposure)
    own, slow = [], []
    for _ in range(4):
        found, log_a = rng.normal(0.0, 0.7, (3, 2)), rng.normal(-0.5, 0.6, 2)
        slopes = LEARNED.slopes(found, told)
        of_slopes = LEARNED.log_mass(found, log_a, told) - LEARNED.log_mass(found, np.zeros(2), told)
        of_shapes = regression.mass_of_shapes(slopes, told)
        lead = of_shapes(log_a) - of_shapes(np.zeros(2)) - of_slopes  # what shapes have for themselves
        own.append(LEARNED.log_mass(found, log_a, told) + lead)
        slow.append(brute_force(LEARNED, found, log_a, scale[:, 0], count, exposure))
        sizes = LEARNED.mass_of_sizes(slopes - found[0], log_a, told)
        more = found + np.array([[0.3], [0.0], [0.0]])
        change = LEARNED.log_mass(more, log_a, told) - LEARNED.log_mass(found, log_a, told)
        np.testing.assert_allclose(sizes(more[0]) - sizes(found[0]), change, rtol=1e-8)
    np.testing.assert_allclose(np.diff(own, axis=0), np.diff(slow, axis=0), rtol=1e-5, atol=1e-5)


def test_newton_steps_follow_the_slope_and_lead_uphill():
    rng, (count, exposure) = np.random.default_rng(3), counts()
    told, found, log_a = (
        LEARNED.told(OFFSETS, count, exposure),
        rng.normal(0.0, 0.5, (3, 2)),
        np.array([0.2, -1.0]),
    )
    _, _, aim, curvature = LEARNED.place(found, log_a, told)
    step, h = aim - found.T, 1e-5
    for p in range(3):
        change = h * np.eye(3)[p][:, None]
        slope = LEARNED.log_mass(found + change, log_a, told) - LEARNED.log_mass(found - change, log_a, told)
        np.testing.assert_allclose(np.einsum("kq,kq->k", curvature[:, p], step), slope / (2.0 * h), rtol=1e-5)
    assert (np.linalg.eigvalsh(curvature) > 0.0).all()
    shorter = LEARNED.log_mass(found + 0.01 * step.T, log_a, told)
    assert (shorter > LEARNED.log_mass(found, log_a, told)).all()


def drawn(prior, n, seed, scale=OFFSETS):
    """(n, 4, 1, 2) hyperparameters after one step each."""
    rng, (count, exposure), hypers, found = np.random.default_rng(seed), counts(), prior.start(theta()), []
    for _ in range(n):
        hypers = prior.draw_hypers_given_counts(theta(), hypers, scale, count, exposure, rng)
        found.append(hypers)
    return np.array(found)


def means_on_a_grid(prior):
    """(statistics, K) posterior means by adding up a grid of log shape, log size and both coefficients."""
    count, exposure = counts()
    grid = np.stack(np.meshgrid(np.linspace(-3.5, 4.5, 33), *[np.linspace(-3.0, 3.0, 25)] * 2, indexing="ij"))
    size, *slopes = grid.reshape(3, -1)
    shapes = np.linspace(-5.5, 2.5, 25) if prior.shape is None else [np.log(prior.shape)]
    total, weight, top = np.zeros((6, 2)), np.zeros(2), None
    known = stats.norm.logpdf(slopes, 0.0, prior.spread).sum(axis=0) - size - prior.mean * np.exp(-size)
    for log_a in shapes:
        a, rate = np.exp(log_a), np.exp(log_a - size - DESIGN @ slopes) * OFFSETS
        for k in range(2):
            n, e = count[:, k, None], exposure[:, k, None]
            law = special.gammaln(a + n) - special.gammaln(a) + a * np.log(rate) - (a + n) * np.log(rate + e)
            law = law.sum(axis=0) + known + stats.norm.logpdf(log_a, np.log(0.1), 1.0)
            top = law.max() if top is None else top
            w = np.exp(law - top)
            weight[k] += w.sum()
            values = [np.full(size.size, log_a), size, *slopes, slopes[0] ** 2, slopes[1] ** 2]
            total[:, k] += np.array(values) @ w
    return total / weight


@pytest.mark.parametrize("prior", [KNOWN, LEARNED], ids=["known shape", "learned shape"])
def test_steps_have_the_posterior_that_a_grid_gives(prior):
    found = drawn(prior, 2000, 4)[:, :, 0]
    logs = np.log(found[:, :2])
    statistics = np.stack(
        [
            logs[:, 0], logs[:, 0] - logs[:, 1], found[:, 2], found[:, 3], found[:, 2] ** 2, found[:, 3] ** 2,
        ], axis=1)  # fmt: skip
    batches = statistics.reshape(40, 50, 6, 2).mean(axis=1)
    wanted = means_on_a_grid(prior)
    error = batches.std(axis=0, ddof=1) / np.sqrt(40)
    z = (batches.mean(axis=0) - wanted) / np.maximum(error, 1e-9)
    if prior.shape is not None:
        assert found[:, 0] == pytest.approx(prior.shape)
        z = z[1:]
    assert np.abs(z).max() < stats.t.isf(FALSE_ALARM / 2 / z.size, 39)
    assert (np.diff(found[:, 2], axis=0) != 0.0).mean() > 0.9  # proposals are taken


def values():
    """(7, 2) entries, of which two are too small for a number."""
    found = np.random.default_rng(8).gamma(0.5, np.exp(0.8 * DESIGN[:, :1]), (7, 2))
    found[4] = SMALLEST
    return found


def means_given_values(prior, value):
    """(statistics, K) posterior means by adding up a grid of log shape, log size and both coefficients."""
    grid = np.stack(np.meshgrid(np.linspace(-4.5, 8.0, 41), *[np.linspace(-3.5, 3.5, 25)] * 2, indexing="ij"))
    size, *slopes = grid.reshape(3, -1)
    known = stats.norm.logpdf(slopes, 0.0, prior.spread).sum(axis=0) - size - prior.mean * np.exp(-size)
    shapes = np.linspace(-5.5, 3.0, 27) if prior.shape is None else [np.log(prior.shape)]
    laws = np.empty((2, len(shapes), size.size))
    for i, log_a in enumerate(shapes):
        a, log_rate = np.exp(log_a), log_a - size - DESIGN @ slopes + np.log(OFFSETS)  # (7, n)
        rate = np.exp(log_rate)
        for k in range(2):
            x = value[:, k, None]
            at = (a - 1.0) * np.log(x) - rate * x - special.gammaln(a)
            below = a * np.log(SMALLEST) - special.gammaln(
                1.0 + a
            )  # of what was cut: the probability of less
            law = a * log_rate + np.where(x <= SMALLEST, below, at)
            laws[k, i] = law.sum(axis=0) + known + stats.norm.logpdf(log_a, np.log(0.1), 1.0)
    weight = np.exp(laws - laws.max(axis=(1, 2), keepdims=True))
    weight /= weight.sum(axis=(1, 2), keepdims=True)
    of_shapes = weight.sum(axis=2) @ np.array(shapes)
    rest = [weight.sum(axis=1) @ each for each in (size, *slopes, slopes[0] ** 2, slopes[1] ** 2)]
    return np.array([of_shapes, *rest])


@pytest.mark.parametrize("prior", [KNOWN, LEARNED], ids=["known shape", "learned shape"])
def test_steps_given_values_have_the_posterior_that_a_grid_gives(prior):
    rng, value, hypers, found = np.random.default_rng(5), values(), prior.start(theta()), []
    for _ in range(2000):
        hypers = prior.draw_hypers(shared(), hypers, OFFSETS, value, rng)
        found.append(hypers[:, 0])
    found = np.array(found)
    logs = np.log(found[:, :2])
    size = logs[:, 0] - logs[:, 1]
    statistics = np.stack(
        [logs[:, 0], size, found[:, 2], found[:, 3], found[:, 2] ** 2, found[:, 3] ** 2], axis=1
    )
    batches = statistics.reshape(40, 50, 6, 2).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(40)
    z = (batches.mean(axis=0) - means_given_values(prior, value)) / np.maximum(error, 1e-9)
    if prior.shape is not None:
        assert found[:, 0] == pytest.approx(prior.shape)
        z = z[1:]
    assert np.abs(z).max() < stats.t.isf(FALSE_ALARM / 2 / z.size, 39)
    assert (np.diff(found[:, 2], axis=0) != 0.0).mean() > 0.9  # proposals are taken


def test_newton_steps_given_values_follow_the_slope():
    rng, log_a = np.random.default_rng(3), np.array([0.2, -1.0])
    seen, found = LEARNED.seen(OFFSETS, values()), rng.normal(0.0, 0.5, (3, 2))
    place, h = LEARNED.place(found, log_a, seen), 1e-5
    for p in range(3):
        change = h * np.eye(3)[p][:, None]
        more, less = (LEARNED.place(found + sign * change, log_a, seen) for sign in (1.0, -1.0))
        slope = (more.log_mass - less.log_mass) / (2.0 * h)
        own = np.einsum("kq,kq->k", place.curvature[:, p], place.aim - found.T)
        np.testing.assert_allclose(own, slope, rtol=1e-5)
    wild = LEARNED.place(np.array([[-30.0, 30.0], [40.0, -40.0], [40.0, 40.0]]), log_a, seen)
    assert np.isfinite(np.linalg.cholesky(wild.curvature)).all()


def test_entries_have_rates_that_covariates_and_offsets_change():
    hypers = np.array([[[0.3, 0.4]], [[1.0, 3.0]], [[0.5, 0.0]], [[-1.0, 2.0]]])
    shape, rate = LEARNED.gamma(hypers, OFFSETS)
    assert shape.tolist() == [[0.3, 0.4]]
    for d in range(7):
        slopes = DESIGN[d] @ hypers[2:, 0]
        np.testing.assert_allclose(rate[d], hypers[1, 0] * np.exp(-slopes) * OFFSETS[d])


def test_a_factor_given_its_counts_is_gamma():
    rng, (count, exposure) = np.random.default_rng(3), counts()
    hypers = np.array([[[0.3, 0.4]], [[1.0, 3.0]], [[0.5, 0.0]], [[-1.0, 2.0]]])
    given = theta(), hypers, OFFSETS, np.ones((7, 2)), count, exposure, rng
    draws = np.array([LEARNED.draw(*given) for _ in range(500)])
    shape, rate = LEARNED.gamma(hypers, OFFSETS)
    law = stats.gamma(shape + count, scale=1.0 / (rate + exposure))
    assert stats.kstest(law.cdf(draws).ravel(), "uniform").pvalue > FALSE_ALARM


def test_hyperparameters_start_without_effects():
    first = LEARNED.start(theta())
    assert first.shape == (4, 1, 2)
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
    assert found[:2] == (0.8, None)
    assert found.spread == 0.7
    assert found.design.shape == (1, 2)
    assert facts["design"] != LEARNED._replace(design=-DESIGN).facts()["design"]
    draws = np.arange(48.0).reshape(2, 3, 4, 1, 2)
    np.testing.assert_array_equal(LEARNED.reported_rates(draws), draws[:, :, 1])
    assert LEARNED.reported_shapes(draws) is None
