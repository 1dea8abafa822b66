"""Priors come back from what they say of themselves."""

import json

import numpy as np
import pytest

from countveil.models.priors import (
    PRIORS,
    DatedRowsPrior,
    DirichletPrior,
    GammaChainPrior,
    GammaPrior,
    LearnedShapePrior,
    RegressionPrior,
    SeededPrior,
    learns_shape,
    prior_of,
)


def test_every_prior_goes_by_its_kind():
    assert PRIORS["gamma"] is GammaPrior
    facts = GammaPrior(0.3, 2.0, True).facts() | LearnedShapePrior(0.8, None).facts()
    facts |= DirichletPrior(None).facts() | GammaChainPrior(0.8, steady=True).facts()
    facts |= RegressionPrior(0.8, None, np.zeros((3, 1))).facts()
    facts |= SeededPrior(GammaPrior(0.3, 2.0, True), np.ones((2, 1))).facts()
    facts |= DatedRowsPrior(0.8, 50.0, np.zeros(3, dtype=np.int64), 1).facts()
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
    ],
)
def test_a_prior_comes_back_from_its_facts(prior):
    found = prior_of(json.loads(json.dumps(prior.facts())))
    assert type(found) is type(prior)
    for one, other in zip(found, prior, strict=True):
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other)


def test_a_prior_of_another_kind_is_refused():
    with pytest.raises(
        ValueError, match=r"must be of a kind among \['dirichlet', 'gamma', .*\], got 'lognormal'$"
    ):
        prior_of({"kind": "lognormal"})


def test_a_shape_is_learned_with_seeds_and_without():
    known, learned = GammaPrior(0.3, 2.0, True), LearnedShapePrior(0.8, None)
    for prior in (known, DirichletPrior(None), SeededPrior(known, np.ones((2, 1)))):
        assert not learns_shape(prior)
    for prior in (learned, SeededPrior(learned, np.ones((2, 1)))):
        assert learns_shape(prior)
