import math

import numpy as np
import pytest
from scipy import stats

from countveil.models.factorization import factorization, typical_priors
from countveil.models.priors import GammaPrior
from countveil.models.spec import axis_sizes, parse_spec
from tests.joint import FALSE_ALARM, matrix_model

SIZE = (6, 4)


def test_a_given_rate_is_fixed_for_both_factors():
    model = matrix_model(SIZE, 4, 0.3, 2.5, mean_count=7.0)
    assert model.n_components == 4
    assert [factor.prior for factor in model.factors] == [GammaPrior(0.3, 2.5, learned=False)] * 2
    assert [np.broadcast_to(rate, (1, 4)).tolist() for rate in model.initial_hypers()] == [[[2.5] * 4]] * 2


@pytest.mark.parametrize("mean_count", [0.02, 1.0, 300.0])
def test_learned_rates_start_where_the_components_add_up_to_the_mean_count(mean_count):
    model = matrix_model(SIZE, 5, 0.1, None, mean_count)
    prior = model.factors[0].prior
    assert prior.learned
    assert 5 * (prior.shape / prior.rate) ** 2 == pytest.approx(mean_count)
    assert [rate.shape for rate in model.initial_hypers()] == [(1, 5)] * 2
    assert all((rate == prior.rate).all() for rate in model.initial_hypers())


def test_factors_of_their_mean_make_a_tensor_of_the_mean_count():
    spec = parse_spec("ic,jd,ak,cdk->ija", names=("theta", "phi", "psi", "core"))
    sizes = axis_sizes(spec, (3, 4, 5), {"c": 2, "d": 3, "k": 4})
    priors = typical_priors(spec, sizes, 0.1, None, 7.0)
    model = factorization(spec, sizes, priors)
    means = [np.full(f.shape, f.prior.shape / f.prior.rate) for f in model.factors]
    theta, phi = model.matrices(means)
    np.testing.assert_allclose(theta @ phi.T, 7.0, rtol=1e-12)
    assert [rate.shape for rate in model.initial_hypers()] == [(1, 2), (1, 3), (1, 4), (1, 1, 1)]


def test_a_mean_count_of_zero_still_has_a_rate():
    assert math.isfinite(matrix_model(SIZE, 5, 0.1, None, 0.0).factors[0].prior.rate)


def test_fixed_rates_are_not_drawn():
    rate, rng = np.array([[1.0, 2.0]]), np.random.default_rng(1)
    before = rng.bit_generator.state
    size = np.full((1, 2), 10.0)
    assert GammaPrior(0.5, 1.0, learned=False).draw_rates(rate, size, np.ones((1, 2)), rng) is rate
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("shape", [0.4, np.array([[0.1], [0.9], [0.2], [0.3], [0.7], [0.4], [0.6]])])
def test_learned_rates_are_drawn_by_conjugacy(shape):
    prior, rng = GammaPrior(shape, 2.5, learned=True), np.random.default_rng(2)
    factor = matrix_model((7, 4), 2, 0.1, None, 1.0).factors[0]._replace(prior=prior)
    values = np.outer(np.arange(7.0), [3.0 / 21.0, 0.01 / 21.0])
    size, total = factor.component_sums(prior.shape), factor.component_sums(values)
    np.testing.assert_allclose(total, [[3.0, 0.01]])
    sum_of_shapes = 7 * 0.4 if np.ndim(shape) == 0 else shape.sum()
    draws = np.array([prior.draw_rates(np.ones((1, 2)), size, total, rng)[0] for _ in range(4000)])
    for k in range(2):
        # density of b_k: exp(-b/2.5) b^(sum of shapes) exp(-b total_k)
        law = stats.gamma(1.0 + sum_of_shapes, scale=1.0 / (1.0 / 2.5 + total[0, k]))
        assert stats.kstest(draws[:, k], law.cdf).pvalue > FALSE_ALARM / 4
    assert abs(np.corrcoef(draws.T)[0, 1]) < stats.norm.isf(FALSE_ALARM) / np.sqrt(4000)
