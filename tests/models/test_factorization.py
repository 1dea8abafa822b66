"""What a model says of itself: where its chains start, which factor rows have to themselves, its sums by component."""

import json

import numpy as np
import pytest

from countveil.laws.counts import POISSON, Poisson
from countveil.models.factorization import model_facts, model_of
from tests.factorizations import CASES
from tests.factorizations import model_of as made_of
from tests.joint import DrawsItself, assert_same_bits, draw_factors, mu_of, small_model, with_priors

ROWS_OF_THEIR_OWN = ["topics", "CP 3", "CP 4", "Tucker", "shapes and known"]  # all that are no networks


class WithParameters(Poisson):
    """A likelihood with a number for each cell of the matrix form's border."""

    def start(self, shape):
        return np.zeros(shape[0]), np.zeros(shape[1])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_hyperparameters_start_where_their_priors_do(case):
    model = made_of(case)
    for factor, hypers in zip(model.factors, model.initial_hypers(), strict=True):
        np.testing.assert_array_equal(hypers, factor.prior.start(factor))
        assert np.broadcast_shapes(hypers.shape, factor.shape) == factor.shape


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_parameters_start_where_the_likelihood_says_for_the_matrix(case):
    model = made_of(case)
    assert model.likelihood is POISSON
    assert model.initial_parameters() == ()
    rows, columns = model._replace(likelihood=WithParameters()).initial_parameters()
    assert (rows.size, columns.size) == (model.rows.shape[0], model.columns.shape[0])


@pytest.mark.parametrize("name", CASES)
def test_a_sweep_draws_the_factor_of_the_rows_where_its_entries_are_independent(name):
    model = made_of(CASES[name])
    assert (model.fused_factor is not None) == (name in ROWS_OF_THEIR_OWN)
    assert model.fused_factor == model.row_factor
    coupled = with_priors(model, lambda prior: DrawsItself(**vars(prior)))
    assert coupled.fused_factor is None
    assert coupled.row_factor == model.row_factor


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_sums_of_a_component_are_over_its_own_entries(case):
    for factor in made_of(case).factors:
        values = np.random.default_rng(1).random(factor.shape)
        own = np.broadcast_to(factor.weight, factor.shape) * values
        axes = tuple(i for i, n in enumerate(factor.component_shape) if n == 1)
        np.testing.assert_allclose(factor.component_sums(values), own.sum(axis=axes, keepdims=True))
        weights = np.broadcast_to(factor.weight, factor.shape)
        np.testing.assert_allclose(factor.component_sums(0.5), 0.5 * weights.sum(axis=axes, keepdims=True))
        assert factor.component_sums(values).shape == factor.component_shape


def test_the_same_model_for_other_rows():
    model = small_model((6, 5), 3)
    more = model.with_rows(9)
    assert more.factors[0].shape == (9, 3)
    assert more.factors[1] is model.factors[1]
    assert mu_of(draw_factors(more, np.random.default_rng(1))[0]).shape == (9, 5)
    with pytest.raises(ValueError, match="rows that come and go need a separate factor"):
        made_of(CASES["directed"]).with_rows(9)


def test_the_same_model_with_other_components():
    model = small_model((6, 5), 3, learned=True)
    more = model.with_components(7)
    assert [factor.shape for factor in more.factors] == [(6, 7), (5, 7)]
    assert [hypers.shape for hypers in more.initial_hypers()] == [(1, 7), (1, 7)]
    assert more.n_components == 7
    assert mu_of(draw_factors(more, np.random.default_rng(1))[0]).shape == (6, 5)
    assert [factor.shape[1] for factor in made_of(CASES["CP 3"]).with_components(5).factors] == [5, 5, 5]
    for name in ("directed", "Tucker", "shapes and known"):
        with pytest.raises(ValueError, match="components that come and go must be those of free factors"):
            made_of(CASES[name]).with_components(4)


def test_products_of_two_go_from_matrices_to_factors():
    known = [name for name, case in CASES.items() if made_of(case).product_of_two]
    assert known
    assert "directed" not in known
    for name in known:
        model = made_of(CASES[name])
        factors = draw_factors(model, np.random.default_rng(2))[0]
        assert_same_bits(model.of_matrices(*model.matrices(factors)), factors)


@pytest.mark.parametrize("name", ROWS_OF_THEIR_OWN)
def test_the_row_factor_goes_to_its_matrix_and_back(name):
    model = made_of(CASES[name])
    factor = draw_factors(model, np.random.default_rng(2))[0][model.row_factor]
    matrix = model.as_row_matrix(factor)
    assert matrix.flags.c_contiguous
    assert not np.shares_memory(matrix, factor)
    np.testing.assert_array_equal(model.as_row_factor(matrix), factor)


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
        assert_same_bits(tuple(vars(one.prior).values()), tuple(vars(other.prior).values()))
        assert (one.fixed is None) == (other.fixed is None)
    assert_same_bits(found.initial_hypers(), model.initial_hypers())
    factors = draw_factors(model, np.random.default_rng(1))[0]
    assert_same_bits(found.matrices(factors), model.matrices(factors))
