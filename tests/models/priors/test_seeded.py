"""Priors with seeds: the law of a learned shape against brute force on grids, draws, and what files keep."""

import numpy as np
import pytest
from scipy import special, stats

from countveil.models.priors import (
    Conditional,
    GammaPrior,
    LearnedShapePrior,
    SeededPrior,
    learned_shape,
    prior_of,
    seeded,
)
from tests.joint import FALSE_ALARM, matrix_model
from tests.models.priors.test_learned_shape import log_law_of_entry

CUT = 1e-7  # in place of the smallest number, so that entries are cut
OFFSETS = np.linspace(0.5, 2.0, 6)[:, None]
ADDED = np.zeros((6, 3))
ADDED[[0, 2, 2, 4], [0, 0, 1, 1]] = 0.8, 3.0, 0.3, 1.5
KNOWN = SeededPrior(LearnedShapePrior(None, 2.5), ADDED)
LEARNED = SeededPrior(LearnedShapePrior(0.8, None), ADDED)
FACTOR = matrix_model((4, 6), 3, 0.1, None, 1.0).factors[1]  # (6, 3)
GRID = np.log(np.array([0.02, 0.1, 0.5, 2.0]))


def entries(seed=1):
    """Values of shape .4, some of which are cut, seeded ones too."""
    value = np.random.default_rng(seed).gamma(0.4, 1.0, FACTOR.shape)
    value[[0, 0, -1], [0, 1, 2]] = 1e-9
    return np.maximum(value, CUT)


def law_of_shape(prior, value, scale):
    """log-densities of log a: its prior, and every entry's law, with each learned rate summed over a grid."""
    scales = np.broadcast_to(scale, FACTOR.shape)
    found = stats.norm.logpdf(GRID, np.log(learned_shape.MEDIAN), learned_shape.SPREAD)
    for i, a in enumerate(np.exp(GRID)):
        for k in range(3):
            log_b = np.linspace(np.log(1e-9), np.log(1e4), 2000)
            joint = stats.expon.logpdf(np.exp(log_b), scale=a / 0.8) + log_b
            if prior.usual.mean is None:
                log_b, joint = np.log([2.5]), np.zeros(1)
            for v in range(6):
                joint = joint + log_law_of_entry(value[v, k], a + ADDED[v, k], np.exp(log_b) * scales[v, k])
            found[i] += special.logsumexp(joint)
    return found


@pytest.mark.parametrize(("prior", "scale"), [(LEARNED, 1.0), (LEARNED, OFFSETS), (KNOWN, OFFSETS)])
def test_the_law_of_the_shape_is_that_of_all_entries(prior, scale, monkeypatch):
    for module in (learned_shape, seeded):
        monkeypatch.setattr(module, "SMALLEST", CUT)
    value = entries()
    found = prior.log_density(GRID, prior.given_entries(FACTOR, scale, value), value)
    np.testing.assert_allclose(np.diff(found), np.diff(law_of_shape(prior, value, scale)), rtol=1e-5)


@pytest.mark.parametrize("prior", [LEARNED, KNOWN])
def test_the_law_of_the_shape_given_counts_has_entries_summed_out(prior):
    rng, hypers = np.random.default_rng(5), prior.start(FACTOR)
    hypers[1] *= rng.gamma(5.0, 0.2, hypers[1].shape) if prior is LEARNED else 1.0
    count, exposure = rng.poisson(0.8, FACTOR.shape).astype(float), rng.gamma(2.0, 1.0, FACTOR.shape)
    found = prior.log_mass(GRID, prior.usual.given_counts(FACTOR, hypers, OFFSETS, count, exposure))
    expected = stats.norm.logpdf(GRID, np.log(learned_shape.MEDIAN), learned_shape.SPREAD)
    log_x = np.linspace(-1500.0, 6.0, 40_000)
    x = np.exp(log_x)
    for i, a in enumerate(np.exp(GRID)):
        rate = hypers[1] if prior is KNOWN else hypers[1] / hypers[0] * a  # the ratio stays
        rate = np.broadcast_to(rate * OFFSETS, FACTOR.shape)
        for at in np.ndindex(*FACTOR.shape):
            own = a + ADDED[at]
            log_law = own * (np.log(rate[at]) + log_x) - rate[at] * x - special.gammaln(own)
            expected[i] += special.logsumexp(log_law + count[at] * log_x - exposure[at] * x)
    expected += np.log(log_x[1] - log_x[0])
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-5)


def test_shape_and_rates_are_drawn_from_their_joint_law():
    rng, value, grid = np.random.default_rng(2), entries(), np.linspace(np.log(0.01), np.log(10.0), 400)
    hypers, drawn = LEARNED.start(FACTOR), []
    for _ in range(1200):
        hypers = LEARNED.draw_hypers(FACTOR, hypers, 1.0, value, rng)
        drawn.append(hypers)
    drawn = np.array(drawn)[::3]  # neighbours are alike
    shapes, rates = drawn[:, 0, 0, 0], drawn[:, 1, 0]
    density = np.exp(LEARNED.log_density(grid, LEARNED.given_entries(FACTOR, 1.0, value), value))
    places = np.interp(np.log(shapes), grid, np.cumsum(density) / density.sum())
    assert stats.kstest(places, "uniform").pvalue > FALSE_ALARM / 4
    for k in range(3):
        size = 1.0 + 6.0 * shapes + ADDED[:, k].sum()
        law = stats.gamma(size, scale=1.0 / (0.8 / shapes + value[:, k].sum()))
        assert stats.kstest(law.cdf(rates[:, k]), "uniform").pvalue > FALSE_ALARM / 4


def test_a_shape_given_counts_takes_learned_rates_along():
    rng, hypers = np.random.default_rng(6), LEARNED.start(FACTOR)
    count, exposure = rng.poisson(2.0, FACTOR.shape), rng.gamma(2.0, 1.0, FACTOR.shape)
    drawn = LEARNED.draw_hypers_given_counts(FACTOR, hypers, Conditional(1.0, count, count, exposure), rng)
    assert drawn[0, 0, 0] != hypers[0, 0, 0]
    np.testing.assert_allclose(drawn[1] / drawn[0], hypers[1] / hypers[0])


def test_a_known_shape_is_that_of_gammas_whose_shapes_vary():
    plain = SeededPrior(GammaPrior(0.3, 0.5, learned=True), ADDED)
    varied, hypers, value = GammaPrior(0.3 + ADDED, 0.5, learned=True), plain.start(FACTOR), entries()
    np.testing.assert_array_equal(hypers, varied.start(FACTOR))
    for one, other in zip(plain.gamma(hypers, OFFSETS), varied.gamma(hypers, OFFSETS), strict=True):
        np.testing.assert_array_equal(one, other)
    drawn = [prior.draw_hypers(FACTOR, hypers, OFFSETS, value, np.random.default_rng(1)) for prior in (plain, varied)]
    np.testing.assert_array_equal(*drawn)
    given = plain.draw_hypers_given_counts(
        FACTOR, hypers, Conditional(1.0, value, value, value), np.random.default_rng(1)
    )
    np.testing.assert_array_equal(given, hypers)
    np.testing.assert_array_equal(plain.estimate(FACTOR, OFFSETS, value), varied.estimate(FACTOR, OFFSETS, value))
    assert plain.reported(FACTOR, hypers[None, None]) == {}


def test_estimated_rates_make_means_add_up():
    value = entries()
    shape, rate = LEARNED.gamma(LEARNED.estimate(FACTOR, 1.0, value), 1.0)
    np.testing.assert_allclose((shape / rate).sum(axis=0), value.sum(axis=0))
    shape, rate = KNOWN.gamma(KNOWN.estimate(FACTOR, 1.0, value), 1.0)
    assert rate == 2.5


def test_draws_are_gammas():
    rng, hypers = np.random.default_rng(3), LEARNED.start(FACTOR)
    count, exposure = np.ones(FACTOR.shape), np.full(FACTOR.shape, 2.0)
    given = Conditional(1.0, count, count, exposure)
    drawn = np.array([LEARNED.draw(FACTOR, hypers, given, rng)[0] for _ in range(4000)])
    shape, rate = (learned_shape.MEDIAN + ADDED + 1.0), learned_shape.MEDIAN / 0.8 + 2.0
    np.testing.assert_allclose(drawn.mean(axis=0), shape / rate, rtol=0.1)


def test_files_keep_a_digest_of_the_seeds():
    facts = LEARNED.facts()
    found = prior_of(facts)
    assert (found.usual, found.n_seeded, LEARNED.n_seeded) == (LEARNED.usual, 0, 2)
    assert SeededPrior(LEARNED.usual, 2.0 * ADDED).facts()["added"] != facts["added"]
    with pytest.raises(ValueError, match="usual prior must be of a kind among"):
        prior_of({**facts, "usual": {"kind": "dirichlet", "concentration": 1.0}})
