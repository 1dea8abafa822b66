"""Models written into files and read back."""

import json

import numpy as np
import pytest

from countveil.models.portable import model_facts, model_of
from tests.factorizations import CASES
from tests.factorizations import model_of as made_of
from tests.joint import arrays_of, assert_same_bits, draw_factors


def written(model):
    """What a file holds of it."""
    return json.loads(json.dumps(model_facts(model)))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_model_comes_back(case):
    model = made_of(case)
    found = model_of(written(model))
    for name in ("spec", "rows", "columns", "shared", "self_loops", "likelihood"):
        assert getattr(found, name) == getattr(model, name)
    for one, other in zip(found.factors, model.factors, strict=True):
        assert one[:4] == other[:4]
        assert one.symmetric == other.symmetric
        assert_same_bits(tuple(one.prior), tuple(other.prior))
        assert (one.fixed is None) == (other.fixed is None)
    assert_same_bits(found.initial_hypers(), model.initial_hypers())
    factors = draw_factors(model, np.random.default_rng(1))[0]
    assert_same_bits(found.matrices(factors), model.matrices(factors))


def test_a_file_of_an_earlier_version_has_its_priors_as_lists_and_poisson_counts():
    model = made_of(CASES["shapes and known"])
    facts = written(model)
    del facts["likelihood"]
    for each in facts["factors"]:
        prior = each["prior"]
        each["prior"] = [prior["shape"], prior["rate"], prior["learned"]]
    found = model_of(facts)
    assert found.likelihood is model.likelihood
    for one, other in zip(found.factors, model.factors, strict=True):
        assert_same_bits(tuple(arrays_of(tuple(one.prior))), tuple(arrays_of(tuple(other.prior))))
