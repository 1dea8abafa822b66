"""Debiased reports multiplied block by block, against a dense matrix of them."""

import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.engines.blocks import row_blocks
from countveil.kernels import start as kernels
from countveil.kernels.entries import MASKED

ROWS, COLUMNS, K = 9, 7, 5


def scene(kind):
    """(observations, arguments that say how masked cells are filled, S densely, which cells are masked)."""
    rng = np.random.default_rng(1)
    reports, mask = rng.integers(-3, 6, (ROWS, COLUMNS)), rng.random((ROWS, COLUMNS)) < 0.2
    mask[4], mask[5] = True, False
    given = rng.uniform(0.0, 0.9, {"row": ROWS, "cell": (ROWS, COLUMNS)}[kind])
    alpha = given if given.ndim == 2 else np.repeat(given[:, None], COLUMNS, axis=1)
    bias_d = np.zeros(ROWS) if kind == "cell" else given / (1.0 - given)
    fill_d, fill_v = rng.random(ROWS), rng.random(COLUMNS)
    dense = (1.0 + alpha) * np.maximum(reports, 0) - (alpha / (1.0 - alpha) if kind == "cell" else 0.0)
    filled = np.where(mask, np.outer(fill_d, fill_v) + bias_d[:, None], dense)
    return PrivatizedCounts(reports, given, mask), (bias_d, fill_d, fill_v), filled, mask


@pytest.mark.parametrize("size", [ROWS, 4])
@pytest.mark.parametrize("kind", ["row", "cell"])
def test_products_are_added_to_what_is_there(kind, size):
    observations, (bias_d, fill_d, fill_v), dense, _ = scene(kind)
    rng = np.random.default_rng(2)
    theta, phi = rng.random((ROWS, K)), rng.random((COLUMNS, K))
    by_row, by_column = np.full((ROWS, K), 2.0), np.full((COLUMNS, K), 3.0)
    for rows in row_blocks(ROWS, size):
        given = observations.block(rows), bias_d[rows], fill_d[rows], fill_v
        kernels.multiply_rows(*given, phi, by_row[rows])
        kernels.multiply_columns(*given, theta[rows], by_column)
    np.testing.assert_allclose(by_row, 2.0 + dense @ phi, rtol=1e-12)
    np.testing.assert_allclose(by_column, 3.0 + dense.T @ theta, rtol=1e-12)


@pytest.mark.parametrize("size", [ROWS, 4])
@pytest.mark.parametrize("kind", ["row", "cell"])
def test_sums_take_masked_cells_for_empty_ones(kind, size):
    observations, (bias_d, _, _), dense, mask = scene(kind)
    row_2d, column_2v = np.zeros((2, ROWS)), np.zeros((2, COLUMNS))
    for rows in row_blocks(ROWS, size):
        kernels.sum_rows(observations.block(rows), bias_d[rows], row_2d[:, rows], column_2v)
    empty = np.where(mask, bias_d[:, None], dense)
    np.testing.assert_allclose(row_2d, [empty.sum(axis=1), mask.sum(axis=1)], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(column_2v, [empty.sum(axis=0), mask.sum(axis=0)], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("report", "own_alpha", "value"), [(3, False, 4.5), (3, True, 3.5), (0, True, -1.0), (MASKED, True, 9.0)]
)
def test_one_report(report, own_alpha, value):
    assert kernels.debiased_report(report, 0.5, own_alpha, 9.0) == value
