"""Priors of the size that data of a given mean count want."""

import math

import numpy as np
import pytest

from countveil.models.factorization import factorization, typical_priors
from countveil.models.priors import GammaPrior, typical_prior, typical_scale
from countveil.models.spec import axis_sizes, parse_spec
from tests.joint import matrix_model

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


@pytest.mark.parametrize(("n_terms", "n_factors"), [(1, 1), (5, 2), (12, 4)])
def test_terms_of_entries_of_this_size_add_up_to_the_mean_count(n_terms, n_factors):
    scale = typical_scale(7.0, n_terms, n_factors)
    assert n_terms * scale**n_factors == pytest.approx(7.0)
    prior = typical_prior(0.3, None, scale)
    assert prior.learned
    assert prior.shape / prior.rate == pytest.approx(scale)
    assert typical_prior(0.3, 2.5, scale) == GammaPrior(0.3, 2.5, learned=False)
