import math

import numpy as np
import pytest
from scipy import stats

from countveil.models.matrix import GammaPrior, matrix_model
from tests.joint import FALSE_ALARM


def test_a_given_rate_is_fixed_for_both_factors():
    model = matrix_model(4, 0.3, 2.5, mean_count=7.0)
    assert model.n_components == 4
    assert model.row_prior == model.column_prior == GammaPrior(0.3, 2.5, learned=False)
    assert model.row_prior.initial_rates(4).tolist() == [2.5] * 4


@pytest.mark.parametrize("mean_count", [0.02, 1.0, 300.0])
def test_learned_rates_start_where_the_components_add_up_to_the_mean_count(mean_count):
    prior = matrix_model(5, 0.1, None, mean_count).row_prior
    assert prior.learned
    assert 5 * (prior.shape / prior.rate) ** 2 == pytest.approx(mean_count)


def test_a_mean_count_of_zero_still_has_a_rate():
    assert math.isfinite(matrix_model(5, 0.1, None, 0.0).row_prior.rate)


def test_fixed_rates_are_not_drawn():
    rate, rng = np.array([1.0, 2.0]), np.random.default_rng(1)
    before = rng.bit_generator.state
    assert GammaPrior(0.5, 1.0, learned=False).draw_rates(rate, 10, np.ones(2), rng) is rate
    assert rng.bit_generator.state == before


def test_learned_rates_are_drawn_by_conjugacy():
    prior, rng = GammaPrior(0.4, 2.5, learned=True), np.random.default_rng(2)
    total = np.array([3.0, 0.01])
    draws = np.array([prior.draw_rates(np.ones(2), 7, total, rng) for _ in range(4000)])
    for k in range(2):
        # density of b_k: exp(-b/2.5) b^(0.4 * 7) exp(-b total_k)
        law = stats.gamma(1.0 + 0.4 * 7, scale=1.0 / (1.0 / 2.5 + total[k]))
        assert stats.kstest(draws[:, k], law.cdf).pvalue > FALSE_ALARM / 2
    assert abs(np.corrcoef(draws.T)[0, 1]) < stats.norm.isf(FALSE_ALARM) / np.sqrt(4000)
