"""The table of priors, which come back from their facts; priors of the size that data of a given mean count want."""

import json
import math

import numpy as np
import pytest

from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import factorization, typical_priors
from countveil.models.priors import (
    PRIORS,
    DatedRowsPrior,
    DirichletPrior,
    GammaChainPrior,
    GammaPrior,
    LayeredRowsPrior,
    LearnedShapePrior,
    LevelPrior,
    RegressionPrior,
    SeededPrior,
    prior_of,
    typical_prior,
    typical_scale,
)
from tests.joint import matrix_model

SIZE = (6, 4)


def test_every_prior_goes_by_its_kind():
    assert PRIORS["gamma"] is GammaPrior
    facts = GammaPrior(0.3, 2.0, True).facts() | LearnedShapePrior(0.8, None).facts()
    facts |= DirichletPrior(None).facts() | GammaChainPrior(0.8, steady=True).facts()
    facts |= RegressionPrior(0.8, None, np.zeros((3, 1))).facts()
    facts |= SeededPrior(GammaPrior(0.3, 2.0, True), np.ones((2, 1))).facts()
    facts |= DatedRowsPrior(0.8, 50.0, np.zeros(3, dtype=np.int64), 1).facts()
    facts |= LayeredRowsPrior(0.8, 50.0, (3, 2)).facts()
    facts |= LevelPrior(0).facts()
    for kind in PRIORS:
        assert prior_of(facts | {"kind": kind}).kind == kind


@pytest.mark.parametrize(
    "prior",
    [
        GammaPrior(0.3, 2.5, learned=False),
        GammaPrior(0.3, 0.1, learned=True),
        GammaPrior(np.array([[0.7], [2.0]]), np.array([0.5, 1.0, 2.0]), learned=False),
        LearnedShapePrior(0.8, None),
        LearnedShapePrior(None, np.array([0.5, 1.0, 2.0])),
        DirichletPrior(None),
        DirichletPrior(0.3),
        GammaChainPrior(0.8, steady=False),
        LayeredRowsPrior(0.8, 50.0, (3, 2)),
        LevelPrior(1),
    ],
)
def test_a_prior_comes_back_from_its_facts(prior):
    found = prior_of(json.loads(json.dumps(prior.facts())))
    assert type(found) is type(prior)
    for one, other in zip(vars(found).values(), vars(prior).values(), strict=True):
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other)


def test_a_prior_of_another_kind_is_refused():
    with pytest.raises(ValueError, match=r"must be of a kind among \['dirichlet', 'gamma', .*\], got 'lognormal'$"):
        prior_of({"kind": "lognormal"})


def test_a_shape_is_learned_with_seeds_and_without():
    known, learned = GammaPrior(0.3, 2.0, True), LearnedShapePrior(0.8, None)
    for prior in (known, DirichletPrior(None), SeededPrior(known, np.ones((2, 1)))):
        assert not prior.learns_shape
    for prior in (learned, SeededPrior(learned, np.ones((2, 1)))):
        assert prior.learns_shape


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
