"""Groups by annealing, against what blocks explain by least squares with rates that are not negative."""

import itertools

import numpy as np
import pytest

from countveil.kernels import grouping

N, C = 14, 3


def scene(symmetric):
    """(cells, squares of weights, groups)."""
    rng = np.random.default_rng(1)
    cells, square = rng.standard_normal((N, N)), rng.gamma(2.0, 0.5, N)
    return cells + cells.T if symmetric else cells, square / square.mean(), rng.integers(0, C, N)


def explained(cells, square, group):
    """Equation 10.5, over all cells but the diagonal."""
    found, off = 0.0, 1.0 - np.eye(N)
    for c in range(C):
        for d in range(C):
            block = np.outer(group == c, group == d) * off
            a, q = (block * cells).sum(), (block * np.outer(square, square)).sum()
            found += 0.5 * max(a, 0.0) ** 2 / q if q > 0.0 else 0.0
    return found


def anneal(cells, square, group, temperatures, seed=2):
    uniforms = np.random.default_rng(seed).random((len(temperatures), N))
    received = np.ascontiguousarray(cells.T)
    return grouping.anneal(cells, received, square, group, C, np.array(temperatures, dtype=float), uniforms)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("n_sweeps", [0, 1, 7])
def test_what_is_explained_is_that_of_the_new_groups(symmetric, n_sweeps):
    cells, square, group = scene(symmetric)
    found = anneal(cells, square, group, [1.0] * n_sweeps)
    assert found == pytest.approx(explained(cells, square, group), rel=1e-9)


def test_an_empty_group_explains_nothing():
    cells, square, _ = scene(False)
    group = np.zeros(N, dtype=np.int64)
    found = anneal(cells, square, group, [])
    assert found == pytest.approx(explained(cells, square, group))
    assert found < 1e6


@pytest.mark.parametrize("symmetric", [False, True])
def test_an_actor_goes_to_each_group_as_often_as_what_is_explained_says(symmetric):
    cells, square, group = scene(symmetric)
    weights = np.empty(C)
    for c in range(C):
        moved = group.copy()
        moved[0] = c
        weights[c] = explained(cells, square, moved)
    expected = np.exp((weights - weights.max()) / 2.0)
    expected /= expected.sum()
    uniforms = (np.arange(1000) + 0.5) / 1000.0
    seen = np.zeros(C)
    for uniform in uniforms:
        one = group.copy()
        rest = np.ones((1, N)) * uniform
        grouping.anneal(cells, np.ascontiguousarray(cells.T), square, one, C, np.array([2.0]), rest)
        seen[one[0]] += 1.0 / 1000.0
    np.testing.assert_allclose(seen, expected, atol=2e-3)


@pytest.mark.parametrize("symmetric", [False, True])
def test_without_chance_every_step_explains_more(symmetric):
    cells, square, group = scene(symmetric)
    path = [explained(cells, square, group)]
    for _ in range(5):
        path.append(anneal(cells, square, group, [1e-3]))
    assert all(later >= earlier - 1e-9 for earlier, later in itertools.pairwise(path))
    assert path[-1] > path[0]
