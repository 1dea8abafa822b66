"""The matrix form of a rate, and the derivatives that carry exposures back, against one einsum over all indices."""

from itertools import permutations

import numpy as np
import pytest

from countveil.models.einsum import contract
from tests.factorizations import CASES, Case, as_matrix, model_of, rates_of
from tests.joint import draw_factors

ODD = {
    "two factors a row": Case("ik,il,jkl->ij", (5, 4), {}),
    "a chain": Case("ia,ab,bc,cd,jd->ij", (4, 3), {}),
    "one term with two axes of the data": Case("ik,jtk->ijt", (3, 2, 4), {}),
    "nothing shared between the sides": Case("i,j->ij", (3, 4), {}),
    "everything in the rows": Case("ik,ijk->ij", (3, 4), {}),
    "rest before the receiver": Case("ic,tk,cdk,jd->itj", (3, 2, 3), {}, {"shared": {"jd": "ic"}}),
    "one factor and itself": Case("ic,jc->ij", (4, 4), {}, {"shared": {"jc": "ic"}}),
    "itself and a time": Case("ic,jc,tc->ijt", (4, 4, 2), {}, {"shared": {"jc": "ic"}}),
    "senders come second": Case("dk,ek,vk->edv", (3, 2, 4), {}),
}
ALL = CASES | ODD
SIZES = {"a": 3, "b": 2, "c": 2, "d": 3, "k": 3, "l": 2, "r": 2}


def scene(case, seed=4):
    """(model, factors drawn from the prior); latent axes of different sizes, but for those that are tied."""
    tied = case.options.get("shared") or case.known
    model = model_of(case, **{a: 2 if tied and a in "cd" else n for a, n in SIZES.items()})
    return model, draw_factors(model, np.random.default_rng(seed))[0]


def some_weights(model, seed=5):
    return np.random.default_rng(seed).random((model.rows.shape[0], model.columns.shape[0]))


def total(model, factors, weights):
    """sum of weights times rates, by brute force."""
    return float((as_matrix(model, rates_of(model, factors)) * weights).sum())


@pytest.mark.parametrize("case", ALL.values(), ids=ALL)
def test_rates_are_those_of_one_einsum(case):
    model, factors = scene(case)
    theta, phi = model.matrices(factors)
    assert (theta.shape, phi.shape) == (model.rows.shape, model.columns.shape)
    assert theta.flags.c_contiguous
    assert phi.flags.c_contiguous
    np.testing.assert_allclose(theta @ phi.T, as_matrix(model, rates_of(model, factors)), rtol=1e-12)


@pytest.mark.parametrize("case", ALL.values(), ids=ALL)
def test_gradients_are_differences(case):
    """Rates are linear in each use of a factor: the derivative is what one more of an entry adds."""
    model, factors = scene(case)
    weights = some_weights(model)
    theta, phi = model.matrices(factors)
    found = dict.fromkeys(range(len(factors)), 0.0)
    for side, matrix in ((model.rows, weights @ phi), (model.columns, weights.T @ theta)):
        values = side.forward(factors)
        for u, use in enumerate(side.uses):
            found[use.factor] = found[use.factor] + side.gradient(u, values, matrix)
    for f, gradient in found.items():
        assert gradient.shape == model.factors[f].shape
        for entry in np.ndindex(gradient.shape):
            slope = total_slope(model, factors, weights, f, entry)
            assert gradient[entry] == pytest.approx(slope, rel=1e-9)


def total_slope(model, factors, weights, f, entry):
    """Derivative with respect to one entry, by a symmetric difference: exact up to squares."""
    ends = []
    for change in (1.0, -1.0):
        moved = [np.array(factor) for factor in factors]
        moved[f][entry] += change
        ends.append(total(model, moved, weights))
    return (ends[0] - ends[1]) / 2.0


@pytest.mark.parametrize("name", [n for n, case in ALL.items() if case.options.get("shared")])
def test_the_middle_is_what_couples_a_factor_with_itself(name):
    model, factors = scene(ALL[name])
    theta, middle = factors[model.shared], model.middle(model.columns.forward(factors))
    rates = np.einsum("ic,jd,rcd->ijr", theta, theta, middle)
    matrix = as_matrix(model, rates_of(model, factors))
    np.testing.assert_allclose(rates.reshape(matrix.shape), matrix, rtol=1e-12)
    turned = np.einsum("ic,jd,rdc->ijr", theta, theta, middle)
    one_to_one = name in ("one factor and itself", "itself and a time")
    assert np.allclose(turned, rates) == (one_to_one or bool(model.spec.symmetric))


@pytest.mark.parametrize("right", ["bc", "b", "cab", "ad", "d", ""])
@pytest.mark.parametrize("left", ["ab", "abc", "c", "acd", ""])
def test_two_operands_are_contracted_as_by_einsum(left, right):
    rng, sizes = np.random.default_rng(0), {"a": 3, "b": 4, "c": 2, "d": 5}
    one, other = (rng.random([sizes[a] for a in axes]) for axes in (left, right))
    axes = sorted(set(left + right))
    for n in range(len(axes) + 1):
        for out in map("".join, permutations(axes, n)):
            expected = np.einsum(f"{left},{right}->{out}", one, other)
            np.testing.assert_allclose(contract(left, one, right, other, out), expected, rtol=1e-12)
