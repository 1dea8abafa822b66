"""Debiased reports multiplied block by block, against a dense matrix of them; and descent, entry by entry."""

import numpy as np
import pytest
from scipy import optimize

from countveil.data.observations import PrivatizedCounts
from countveil.engines.blocks import row_blocks
from countveil.kernels import start as kernels
from countveil.kernels.entries import MASKED
from countveil.kernels.tiles import COLUMNS_PER_TILE
from countveil.laws.noise.two_sided_geometric.noise import TwoSidedGeometricKernel

ROWS, K = 9, 5
NOISE = TwoSidedGeometricKernel()


def scene(kind, n_columns=7):
    """(observations, bias_d, what masked cells are filled with, S densely, which cells are masked)."""
    rng, shape = np.random.default_rng(1), (ROWS, n_columns)
    reports, mask = rng.integers(-3, 6, shape), rng.random(shape) < 0.2
    mask[4], mask[5] = True, False
    given = rng.uniform(0.0, 0.9, {"row": ROWS, "cell": shape}[kind])
    alpha = given if given.ndim == 2 else np.repeat(given[:, None], n_columns, axis=1)
    bias_d = np.zeros(ROWS) if kind == "cell" else given / (1.0 - given)
    fill_d, fill_v = rng.random(ROWS), rng.random(n_columns)
    dense = (1.0 + alpha) * np.maximum(reports, 0) - (alpha / (1.0 - alpha) if kind == "cell" else 0.0)
    filled = np.where(mask, np.outer(fill_d, fill_v) + bias_d[:, None], dense)
    return PrivatizedCounts(reports, given, mask), bias_d, (fill_d, fill_v), filled, mask


@pytest.mark.parametrize("n_columns", [7, COLUMNS_PER_TILE + 3])
@pytest.mark.parametrize("by_tiles", [False, True])
@pytest.mark.parametrize("size", [ROWS, 4])
@pytest.mark.parametrize("kind", ["row", "cell"])
def test_products_are_added_to_what_is_there(kind, size, by_tiles, n_columns):
    observations, _, (fill_d, fill_v), dense, _ = scene(kind, n_columns)
    rng = np.random.default_rng(2)
    theta, phi = rng.random((ROWS, K)), rng.random((n_columns, K))
    by_row, by_column = np.full((ROWS, K), 2.0), np.full((n_columns, K), 3.0)
    for rows in row_blocks(ROWS, size):
        given = NOISE, observations.block(rows), fill_d[rows], fill_v
        kernels.multiply(*given, phi, by_row[rows], by_tiles, True)
        kernels.multiply(*given, theta[rows], by_column, by_tiles, False)
    np.testing.assert_allclose(by_row, 2.0 + dense @ phi, rtol=1e-12)
    np.testing.assert_allclose(by_column, 3.0 + dense.T @ theta, rtol=1e-12)


@pytest.mark.parametrize("size", [ROWS, 4])
@pytest.mark.parametrize("kind", ["row", "cell"])
def test_debiased_reports_are_zero_in_masked_cells(kind, size):
    observations, bias_d, _, dense, mask = scene(kind)
    found = np.full(dense.shape, np.nan)
    for rows in row_blocks(ROWS, size):
        kernels.debias(NOISE, observations.block(rows), found[rows])
    np.testing.assert_allclose(found, np.where(mask, 0.0, dense - bias_d[:, None]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [ROWS, 4])
@pytest.mark.parametrize("kind", ["row", "cell"])
def test_sums_take_masked_cells_for_empty_ones(kind, size):
    observations, bias_d, _, dense, mask = scene(kind)
    row_2d, column_2v, total = np.zeros((2, ROWS)), np.zeros((2, 7)), 0.0
    for rows in row_blocks(ROWS, size):
        total += kernels.sum_rows(NOISE, observations.block(rows), row_2d[:, rows], column_2v)
    empty = np.where(mask, bias_d[:, None], dense)
    np.testing.assert_allclose(row_2d, [empty.sum(axis=1), mask.sum(axis=1)], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(column_2v, [empty.sum(axis=0), mask.sum(axis=0)], rtol=1e-12, atol=1e-12)
    reports, alpha = observations.cells(*np.nonzero(~mask))
    counted = np.where(reports > 0, reports, -alpha / (1.0 - alpha))
    assert total == pytest.approx(counted.sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("report", "own_alpha", "value"), [(3, False, 4.5), (3, True, 3.5), (0, True, -1.0), (MASKED, True, 9.0)]
)
def test_one_report(report, own_alpha, value):
    assert kernels.entry_of_s(NOISE, report, 0.5, own_alpha, 9.0) == value


def test_descent_goes_to_the_exact_minimum_of_one_entry_after_another():
    rng = np.random.default_rng(3)
    phi, rows = rng.standard_normal((12, K)), rng.standard_normal((ROWS, 12))
    start = rng.random((ROWS, K)) * (rng.random((ROWS, K)) < 0.5)
    gram, target = phi.T @ phi, rows @ phi
    slow = start.copy()
    for _ in range(2):
        for k in range(K):
            slow[:, k] += (target[:, k] - slow @ gram[:, k]) / gram[k, k]
            slow[:, k] = np.maximum(slow[:, k], 0.0)
    found = start.copy()
    kernels.descend(found, gram, target, 2)
    np.testing.assert_allclose(found, slow, rtol=1e-9, atol=1e-12)
    kernels.descend(found, gram, target, 500)
    np.testing.assert_allclose(found, [optimize.nnls(phi, row)[0] for row in rows], atol=1e-9)


def test_descent_leaves_a_component_that_is_nowhere():
    gram, factor = np.diag([2.0, 0.0]), np.array([[1.0, 3.0]])
    kernels.descend(factor, gram, np.array([[4.0, 7.0]]), 3)
    assert factor.tolist() == [[2.0, 3.0]]


@pytest.mark.parametrize("kind", ["row", "cell"])
def test_pulls_are_those_of_stored_cells(kind):
    observations, bias_d, _, _, mask = scene(kind)
    rng = np.random.default_rng(4)
    theta, phi = rng.random((ROWS, K)), rng.random((7, K))
    reports, alpha = (x.reshape(ROWS, 7) for x in observations.cells(*(i.ravel() for i in np.indices((ROWS, 7)))))
    up = np.where(mask, 0.0, (1.0 + alpha) * reports)
    own = alpha / (1.0 - alpha) if kind == "cell" else 0.0
    down = np.where(mask, -(theta @ phi.T + bias_d[:, None]), own)
    found = [np.ones((ROWS, K)), np.ones((ROWS, K)), np.ones((7, K)), np.ones((7, K))]
    for rows in row_blocks(ROWS, 4):
        block = observations.block(rows)
        kernels.pull(NOISE, block, theta[rows], phi, found[0][rows], found[1][rows], True)
        kernels.pull(NOISE, block, theta[rows], phi, found[2], found[3], False)
    for values, exact in zip(found, (up @ phi, down @ phi, up.T @ theta, down.T @ theta), strict=True):
        np.testing.assert_allclose(values, 1.0 + exact, rtol=1e-12, atol=1e-12)
