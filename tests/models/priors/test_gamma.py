"""The gamma prior: its draws against their laws, its bound against integrals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from countveil.models.priors import Conditional, GammaPrior
from tests.factorizations import CASES, model_of
from tests.joint import FALSE_ALARM, matrix_model

FIXED, LEARNED = GammaPrior(0.4, 2.5, learned=False), GammaPrior(0.4, 2.5, learned=True)
SHAPES = np.array([[0.1], [0.9], [0.2], [0.3], [0.7], [0.4], [0.6]])


def factor_of(prior):
    """(7, 2) theta."""
    return matrix_model((7, 4), 2, 0.1, None, 1.0).factors[0]._replace(prior=prior)


def symmetric_factor(prior):
    """(2, 2), equal to its transpose."""
    model = model_of(CASES["undirected"])
    return model.factors[model.spec.names.index("pi")]._replace(prior=prior)


def test_rates_start_as_given_one_a_component_where_they_are_learned():
    assert LEARNED.start(factor_of(LEARNED)).tolist() == [[2.5, 2.5]]
    assert FIXED.start(factor_of(FIXED)).tolist() == 2.5
    own = np.linspace(1.0, 2.0, 14).reshape(7, 2)
    np.testing.assert_array_equal(replace(FIXED, rate=own).start(factor_of(FIXED)), own)
    assert LEARNED.start(symmetric_factor(LEARNED)).tolist() == [[2.5]]


def test_entries_have_the_prior_rate_times_the_scale():
    shape, rate = LEARNED.gamma(np.array([[1.0, 3.0]]), np.array([[2.0], [0.5]]))
    assert shape == 0.4
    assert rate.tolist() == [[2.0, 6.0], [0.5, 1.5]]


@pytest.mark.parametrize("prior", [FIXED, replace(LEARNED, shape=SHAPES)])
def test_a_factor_given_its_counts_is_gamma(prior):
    rng, hypers = np.random.default_rng(3), np.array([[1.0, 3.0]])
    count, exposure, scale = rng.poisson(1.0, (7, 2)), rng.random((7, 2)), rng.random((7, 1))
    given = Conditional(scale, np.ones((7, 2)), count, exposure)
    draws = np.array([prior.draw(factor_of(prior), hypers, given, rng)[0] for _ in range(2000)])
    law = stats.gamma(prior.shape + count, scale=1.0 / (hypers * scale + exposure))
    assert stats.kstest(law.cdf(draws).ravel(), "uniform").pvalue > FALSE_ALARM
    wrong = stats.gamma(prior.shape + count, scale=1.0 / (hypers + exposure))
    assert stats.kstest(wrong.cdf(draws).ravel(), "uniform").pvalue < FALSE_ALARM


def test_fixed_rates_are_not_drawn():
    rate, rng = np.array([[1.0, 2.0]]), np.random.default_rng(1)
    before = rng.bit_generator.state
    assert FIXED.draw_hypers(factor_of(FIXED), rate, 1.0, np.ones((7, 2)), rng) is rate
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("scale", [1.0, np.linspace(0.5, 2.0, 7)[:, None]], ids=["plain", "offsets"])
@pytest.mark.parametrize("shape", [0.4, SHAPES], ids=["one shape", "shapes"])
def test_learned_rates_are_drawn_by_conjugacy(shape, scale):
    prior, rng = GammaPrior(shape, 2.5, learned=True), np.random.default_rng(2)
    factor = factor_of(prior)
    values = np.outer(np.arange(7.0), [3.0 / 21.0, 0.01 / 21.0])
    total = (scale * values).sum(axis=0)
    sum_of_shapes = 7 * 0.4 if np.ndim(shape) == 0 else shape.sum()
    draws = np.array([prior.draw_hypers(factor, np.ones((1, 2)), scale, values, rng)[0] for _ in range(4000)])
    for k in range(2):
        # density of b_k: exp(-b/2.5) b^(sum of shapes) exp(-b total_k)
        law = stats.gamma(1.0 + sum_of_shapes, scale=1.0 / (1.0 / 2.5 + total[k]))
        assert stats.kstest(draws[:, k], law.cdf).pvalue > FALSE_ALARM / 4
    assert abs(np.corrcoef(draws.T)[0, 1]) < stats.norm.isf(FALSE_ALARM) / np.sqrt(4000)


def test_rates_of_a_symmetric_factor_count_each_pair_once():
    factor, rng = symmetric_factor(LEARNED), np.random.default_rng(4)
    value = np.array([[1.0, 0.2], [0.2, 3.0]])
    draws = [LEARNED.draw_hypers(factor, np.ones((1, 1)), 1.0, value, rng)[0, 0] for _ in range(4000)]
    law = stats.gamma(1.0 + 3 * 0.4, scale=1.0 / (1.0 / 2.5 + 4.2))
    assert stats.kstest(draws, law.cdf).pvalue > FALSE_ALARM


def test_estimated_rates_have_the_entries_for_their_means():
    values = np.random.default_rng(5).gamma(1.0, 1.0, (7, 2))
    rates = LEARNED.estimate(factor_of(LEARNED), 1.0, values)
    np.testing.assert_allclose(7 * 0.4 / rates, values.sum(axis=0, keepdims=True))
    assert FIXED.estimate(factor_of(FIXED), 1.0, values).tolist() == 2.5
    assert np.isfinite(LEARNED.estimate(factor_of(LEARNED), 1.0, np.zeros((7, 2)))).all()


def test_estimated_rates_are_those_before_known_offsets():
    values, offset = np.random.default_rng(5).gamma(1.0, 1.0, (7, 2)), np.linspace(0.1, 30.0, 7)[:, None]
    before = LEARNED.estimate(factor_of(LEARNED), 1.0, values)
    np.testing.assert_allclose(LEARNED.estimate(factor_of(LEARNED), 1.0 / offset, offset * values), before)


def test_new_rows_have_one_shape():
    rates = np.array([2.0, 5.0])
    shape, rate = LEARNED.gamma_of_new_rows(rates, None, 3.0)
    assert shape.tolist() == [0.4]
    assert rate.tolist() == [6.0, 15.0]
    with pytest.raises(ValueError, match="shape must be one number for new rows, got 7 of them"):
        replace(LEARNED, shape=SHAPES).gamma_of_new_rows(rates, None, 3.0)


def test_rates_are_reported_unless_every_entry_has_its_own():
    draws = np.ones((2, 3, 1, 2))
    assert LEARNED.reported_rates(draws) is draws
    assert FIXED.reported_rates(draws) is draws
    assert replace(FIXED, rate=np.array([1.0, 2.0])).reported_rates(draws) is None


@pytest.mark.parametrize("prior", [FIXED, LEARNED])
def test_q_starts_at_the_rates_that_chains_start_from(prior):
    q = prior.start_q(factor_of(prior))
    np.testing.assert_array_equal(q[0] / q[1], prior.start(factor_of(prior)))


def test_q_of_fixed_rates_stays():
    q, factor = FIXED.start_q(factor_of(FIXED)), factor_of(FIXED)
    assert FIXED.update_q(factor, q, 1.0, np.ones((7, 2))) is q
    assert FIXED.grow_q(q, 3.0) is q


def test_q_of_learned_rates_is_the_conjugate_law_of_the_means():
    factor, rng = factor_of(LEARNED), np.random.default_rng(6)
    q, mean, scale = rng.random((2, 1, 2)), rng.random((7, 2)), rng.random((7, 1))
    optimum = 1.0 / 2.5 + (scale * mean).sum(axis=0, keepdims=True)
    np.testing.assert_allclose(LEARNED.update_q(factor, q, scale, mean), [[[1 + 2.8] * 2], optimum])
    copies = 1.0 / 2.5 + 3.0 * (scale * mean).sum(axis=0, keepdims=True)
    found = LEARNED.update_q(factor, q, scale, mean, copies=3.0, weight=0.25)
    np.testing.assert_allclose(found, [[[1 + 3 * 2.8] * 2], 0.75 * q[1] + 0.25 * copies])


def test_q_grows_as_if_more_rows_had_said_the_same():
    factor, mean = factor_of(LEARNED), np.random.default_rng(7).random((7, 2))
    once = LEARNED.update_q(factor, LEARNED.start_q(factor), 1.0, mean)
    thrice = LEARNED.update_q(factor, LEARNED.start_q(factor), 1.0, mean, copies=3.0)
    np.testing.assert_allclose(LEARNED.grow_q(once, 3.0), thrice)


def bound_by_integrals(prior, factor, shape, rate, q, scale):
    """E log p(factor | b) p(b) - E log q, entry by entry, the means of x, log x and log q as integrals."""
    total, b_k = 0.0, np.broadcast_to(q[0] / q[1], factor.shape)
    log_b_k = np.log(b_k)
    if prior.learned:
        laws = [stats.gamma(a, scale=1.0 / b) for a, b in zip(q[0].ravel(), q[1].ravel(), strict=True)]
        logs = np.reshape([law.expect(np.log) for law in laws], q[0].shape)
        log_b_k = np.broadcast_to(logs, factor.shape)
        for law in laws:
            total += law.expect(lambda b: stats.expon.logpdf(b, scale=prior.rate)) + law.entropy()
    scales = np.broadcast_to(scale, factor.shape)
    for entry in np.argwhere(np.broadcast_to(factor.weight, factor.shape) > 0.0):
        at = tuple(entry)
        law, s = stats.gamma(shape[at], scale=1.0 / rate[at]), scales[at]
        total += prior.shape * (log_b_k[at] + np.log(s)) - np.log(special.gamma(prior.shape)) + law.entropy()
        total += (prior.shape - 1) * law.expect(np.log) - b_k[at] * s * law.expect()
    return total


@pytest.mark.parametrize("kind", [factor_of, symmetric_factor])
@pytest.mark.parametrize("prior", [FIXED, LEARNED], ids=["fixed", "learned"])
def test_the_bound_is_that_of_integrals(prior, kind):
    factor, rng = kind(prior), np.random.default_rng(8)
    shape, rate = rng.gamma(4.0, 1.0, (2, *factor.shape)) + 1.0
    scale = 1.0 if factor.symmetric else rng.random((7, 1)) + 0.5
    q = prior.start_q(factor)
    q = rng.gamma(9.0, 1.0, (2, *factor.component_shape)) if prior.learned else q
    expected = bound_by_integrals(prior, factor, shape, rate, q, scale)
    assert prior.bound(factor, shape, rate, q, scale) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("kind", [factor_of, symmetric_factor])
@pytest.mark.parametrize("prior", [FIXED, LEARNED], ids=["fixed", "learned"])
def test_the_penalty_is_greatest_where_the_updates_lead(prior, kind):
    """Of the means m and of b: a / m - s b = 0 and (1 + sum of shapes) / b - 1/scale - sum of s m = 0."""
    factor, rng = kind(prior), np.random.default_rng(9)
    scale = 1.0 if factor.symmetric else rng.random((7, 1)) + 0.5
    mean = rng.gamma(2.0, 1.0, factor.shape)
    mean = np.triu(mean) + np.triu(mean, 1).T if factor.symmetric else mean
    q = prior.update_q(factor, prior.start_q(factor), scale, mean)

    def penalty(mean, q):
        return prior.penalty(factor, mean, np.ones_like(mean), q, scale)

    step, at = 1e-5, (0, 1)
    moved = [np.array(mean), np.array(mean)]
    for sign, array in zip((1, -1), moved, strict=True):
        array[at] += sign * step
    slope = (penalty(moved[0], q) - penalty(moved[1], q)) / (2 * step)
    b = np.broadcast_to(q[0] / q[1], factor.shape)[at]
    assert slope == pytest.approx(prior.shape / mean[at] - np.broadcast_to(scale, factor.shape)[at] * b, rel=1e-5)
    if prior.learned:
        grown = [np.stack([q[0], q[1] / size]) for size in (1 + step, 1 - step)]
        assert abs(penalty(mean, grown[0]) - penalty(mean, grown[1])) / (2 * step) < 1e-4
