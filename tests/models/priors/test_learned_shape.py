"""Learned shapes: the law of shape and rates given a factor against brute force on grids, and what is kept of it."""

import numpy as np
import pytest
from scipy import special, stats

from countveil.models.priors import Conditional, LearnedShapePrior, learned_shape
from tests.factorizations import CASES, model_of
from tests.joint import FALSE_ALARM, matrix_model

CUT = 1e-7  # in place of the smallest number, so that entries are cut
OFFSETS = np.linspace(0.5, 2.0, 7)[:, None]
KNOWN, LEARNED = LearnedShapePrior(None, 2.5), LearnedShapePrior(0.8, None)
ENTRYWISE = LearnedShapePrior(None, np.linspace(0.5, 3.0, 14).reshape(7, 2))


def theta():
    """(7, 2), one rate for each of two components if they are learned."""
    return matrix_model((7, 4), 2, 0.1, None, 1.0).factors[0]


def symmetric():
    """(2, 2), equal to its transpose; one rate if it is learned."""
    model = model_of(CASES["undirected"])
    return model.factors[model.spec.names.index("pi")]


def entries(factor, seed=1):
    """Values of shape .4, those below CUT set to it."""
    value = np.random.default_rng(seed).gamma(0.4, 1.0, factor.shape)
    value[0, 0] = value[-1, -1] = 1e-9
    value = np.triu(value) + np.triu(value, 1).T if factor.symmetric else value
    return np.maximum(value, CUT)


def log_law_of_entry(x, a, b):
    """An entry that was cut is one of those below."""
    law = stats.gamma(a, scale=1.0 / b)
    return law.logcdf(CUT) if x <= CUT else law.logpdf(x)


def brute_force(prior, factor, value, scale, log_a):
    """log-densities of log a: its prior, and every entry's law, with each learned rate summed over a grid."""
    scales, seen = np.broadcast_to(scale, factor.shape), np.broadcast_to(factor.weight, factor.shape) > 0
    found = stats.norm.logpdf(log_a, np.log(learned_shape.MEDIAN), learned_shape.SPREAD)
    log_b = np.linspace(np.log(1e-9), np.log(1e4), 2000)
    components = np.broadcast_to(
        np.arange(np.prod(factor.component_shape)).reshape(factor.component_shape), factor.shape
    )
    for i, a in enumerate(np.exp(log_a)):
        if prior.mean is None:
            rate = np.broadcast_to(prior.rate, factor.shape)
            found[i] += sum(
                log_law_of_entry(value[at], a, rate[at] * scales[at]) for at in zip(*np.nonzero(seen), strict=True)
            )
            continue
        for k in np.unique(components):
            b, joint = np.exp(log_b), stats.expon.logpdf(np.exp(log_b), scale=a / prior.mean) + log_b
            for at in zip(*np.nonzero(seen & (components == k)), strict=True):
                joint = joint + log_law_of_entry(value[at], a, b * scales[at])
            found[i] += special.logsumexp(joint) + np.log(log_b[1] - log_b[0])
    return found


@pytest.fixture
def cut(monkeypatch):
    monkeypatch.setattr(learned_shape, "SMALLEST", CUT)


@pytest.mark.parametrize(
    ("prior", "kind", "scale"),
    [
        (LEARNED, theta, 1.0), (LEARNED, theta, OFFSETS), (LEARNED, symmetric, 1.0), (KNOWN, theta, 1.0),
        (KNOWN, symmetric, 1.0), (ENTRYWISE, theta, OFFSETS),
    ],
)  # fmt: skip
def test_the_law_of_the_shape_is_that_of_all_entries(prior, kind, scale, cut):
    factor, log_a = kind(), np.log(np.array([0.02, 0.1, 0.5, 2.0]))
    value = entries(factor)
    evidence = prior.given_entries(factor, scale, value)
    assert 0 < evidence.cut < evidence.sizes.sum()
    found, expected = prior.log_density(log_a, evidence), brute_force(prior, factor, value, scale, log_a)
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-5, atol=1e-5)


def test_shape_and_rates_are_drawn_from_their_joint_law():
    prior, factor, rng = LEARNED, theta(), np.random.default_rng(2)
    value, grid = entries(factor), np.linspace(np.log(0.01), np.log(10.0), 400)
    evidence, hypers, drawn = prior.given_entries(factor, 1.0, value), prior.start(factor), []
    for _ in range(1500):
        hypers = prior.draw_hypers(factor, hypers, 1.0, value, rng)
        drawn.append(hypers)
    drawn = np.array(drawn)[::3]  # neighbours are alike
    shapes, rates = drawn[:, 0, 0, 0], drawn[:, 1, 0]
    np.testing.assert_array_equal(drawn[:, 0, 0, 1], shapes)
    density = np.exp(prior.log_density(grid, evidence))
    below = np.cumsum(density) / density.sum()
    places = np.interp(np.log(shapes), grid, below)
    assert stats.kstest(places, "uniform").pvalue > FALSE_ALARM / 3
    for k in range(2):
        law = stats.gamma(1.0 + 7.0 * shapes, scale=1.0 / (0.8 / shapes + value[:, k].sum()))
        assert stats.kstest(law.cdf(rates[:, k]), "uniform").pvalue > FALSE_ALARM / 3


def brute_force_given_counts(prior, factor, hypers, scale, count, exposure, log_a):
    """log-densities of log a: every entry summed out of Gamma(a, rate) times its counts' and exposure's likelihood."""
    found = stats.norm.logpdf(log_a, np.log(learned_shape.MEDIAN), learned_shape.SPREAD)
    weight, scales = (np.broadcast_to(x, factor.shape) for x in (factor.weight, scale))
    log_x = np.linspace(-400.0, 6.0, 40_000)
    for i, a in enumerate(np.exp(log_a)):
        rate = hypers[1] if prior.mean is None else hypers[1] / hypers[0] * a  # the ratio stays
        rate = np.broadcast_to(rate, factor.shape) * scales
        for at in zip(*np.nonzero(weight), strict=True):
            x = np.exp(log_x)
            log_law = a * np.log(rate[at]) + a * log_x - rate[at] * x - special.gammaln(a)
            terms = log_law + count[at] * log_x - exposure[at] * x
            found[i] += special.logsumexp(terms) + np.log(log_x[1] - log_x[0])
    return found


@pytest.mark.parametrize(
    ("prior", "kind", "scale"),
    [(LEARNED, theta, OFFSETS), (LEARNED, symmetric, 1.0), (KNOWN, theta, 1.0), (ENTRYWISE, theta, OFFSETS)],
)
def test_the_law_of_the_shape_given_counts_has_entries_summed_out(prior, kind, scale):
    factor, rng, log_a = kind(), np.random.default_rng(5), np.log(np.array([0.1, 0.5, 2.0]))
    hypers = prior.start(factor)
    hypers[1] *= rng.gamma(5.0, 0.2, hypers[1].shape) if prior is LEARNED else 1.0
    count, exposure = rng.poisson(0.8, factor.shape).astype(float), rng.gamma(2.0, 1.0, factor.shape)
    if factor.symmetric:
        count, exposure = count + count.T, exposure + exposure.T
    told = prior.given_counts(factor, hypers, scale, count, exposure)
    expected = brute_force_given_counts(prior, factor, hypers, scale, count, exposure, log_a)
    np.testing.assert_allclose(np.diff(prior.log_mass(log_a, told)), np.diff(expected), rtol=1e-6)


def test_exposures_far_beyond_their_rates_still_have_a_density():
    factor, hypers = theta(), LEARNED.start(theta())
    hypers[1] *= 1e-150
    count, exposure = np.ones(factor.shape), np.full(factor.shape, 1e100)
    exposure.ravel()[::2] = 1e-15  # a product that is large, and not yet so large that its logarithm is taken
    told = LEARNED.given_counts(factor, hypers, 1.0, count, exposure)
    assert np.isfinite(LEARNED.log_mass(np.log([1e-4, 1.0, 1e4]), told)).all()


def test_the_shape_given_counts_is_drawn_from_its_law():
    factor, rng, hypers = theta(), np.random.default_rng(6), LEARNED.start(theta())
    count, exposure = rng.poisson(2.0, factor.shape), rng.gamma(2.0, 1.0, factor.shape)
    ratio, grid, drawn = hypers[1] / hypers[0], np.linspace(np.log(0.003), np.log(30.0), 400), []
    told = LEARNED.given_counts(factor, hypers, 1.0, count, exposure)
    for _ in range(1500):
        given = Conditional(1.0, count, count, exposure)
        hypers = LEARNED.draw_hypers_given_counts(factor, hypers, given, rng)
        np.testing.assert_allclose(hypers[1] / hypers[0], ratio)
        drawn.append(np.log(hypers[0, 0, 0]))
    density = np.exp(LEARNED.log_mass(grid, told) - LEARNED.log_mass(grid, told).max())
    places = np.interp(drawn[::5], grid, np.cumsum(density) / density.sum())
    assert stats.kstest(places, "uniform").pvalue > FALSE_ALARM


def test_known_rates_stay():
    factor, rng = theta(), np.random.default_rng(3)
    for prior in (KNOWN, ENTRYWISE):
        first = prior.start(factor)
        new = prior.draw_hypers(factor, first, OFFSETS, entries(factor), rng)
        np.testing.assert_array_equal(new[1], first[1])
        assert (new[0] != first[0]).all()


def test_hyperparameters_start_at_the_usual_shape_and_size():
    first = LEARNED.start(theta())
    assert first.shape == (2, 1, 2)
    np.testing.assert_allclose(first[0] / first[1], 0.8)
    assert (first[0] == learned_shape.MEDIAN).all()
    assert KNOWN.start(theta()).tolist() == [learned_shape.MEDIAN, 2.5]
    assert LEARNED.start(symmetric()).shape == (2, 1, 1)


def test_entries_have_the_learned_shape_and_the_rate_times_the_scale():
    shape, rate = LEARNED.gamma(np.array([[[0.3, 0.3]], [[1.0, 3.0]]]), np.array([[2.0], [0.5]]))
    assert shape.tolist() == [[0.3, 0.3]]
    assert rate.tolist() == [[2.0, 6.0], [0.5, 1.5]]


def test_a_factor_given_its_counts_is_gamma():
    rng, hypers = np.random.default_rng(3), np.array([[[0.4, 0.4]], [[1.0, 3.0]]])
    count, exposure = rng.poisson(1.0, (7, 2)), rng.random((7, 2))
    given = Conditional(OFFSETS, np.ones((7, 2)), count, exposure)
    draws = np.array([LEARNED.draw(theta(), hypers, given, rng)[0] for _ in range(500)])
    law = stats.gamma(0.4 + count, scale=1.0 / (hypers[1] * OFFSETS + exposure))
    assert stats.kstest(law.cdf(draws).ravel(), "uniform").pvalue > FALSE_ALARM


def test_an_estimate_has_the_entries_for_its_means():
    value = entries(theta())
    shape, rate = LEARNED.estimate(theta(), OFFSETS, value)
    np.testing.assert_allclose(7 * shape / rate, (OFFSETS * value).sum(axis=0, keepdims=True))
    assert KNOWN.estimate(theta(), 1.0, value).tolist() == KNOWN.start(theta()).tolist()


def test_shapes_are_reported_and_rates_unless_every_entry_has_its_own():
    draws = np.arange(24.0).reshape(2, 3, 2, 1, 2)
    np.testing.assert_array_equal(LEARNED.reported_rates(draws), draws[:, :, 1])
    for prior, own in ((LEARNED, draws), (KNOWN, draws[..., 0, 0])):
        axes, shapes = prior.reported(theta(), own)["_shape"]
        assert axes == ()
        np.testing.assert_array_equal(shapes, draws[:, :, 0, 0, 0])
        np.testing.assert_array_equal(prior.summaries(theta(), own)[0], shapes)
    assert ENTRYWISE.reported_rates(draws) is None


def test_new_rows_have_the_shape_of_a_draw():
    shape, rate = LEARNED.gamma_of_new_rows(np.array([2.0, 5.0]), 0.3, 3.0)
    assert (shape.tolist(), rate.tolist()) == ([0.3], [6.0, 15.0])
