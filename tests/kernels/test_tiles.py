"""Exposures by matrix products against those entry by entry and against dense arrays."""

import numpy as np
import pytest

from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.kernels import tiles as kernels
from tests.joint import LAW, dense_exposures, draw_reports

ROWS, K = 30, 4


def scene(alpha_kind, n_columns=2 * kernels.COLUMNS_PER_TILE + 7):
    """(exposures above the rows' baseline (D, V), observations, theta, phi)."""
    rng = np.random.default_rng(1)
    theta, phi = rng.gamma(0.5, 1.0, (ROWS, K)), rng.gamma(0.5, 1.0, (n_columns, K))
    per_row = rng.uniform(0.0, 0.8, ROWS)
    per_row[3] = 0.0
    alpha = per_row[:, None] if alpha_kind == "row" else rng.uniform(0.0, 0.9, (ROWS, n_columns))
    alpha = np.broadcast_to(alpha, (ROWS, n_columns))
    reports, mask = draw_reports(theta @ phi.T, alpha, rng), rng.random((ROWS, n_columns)) < 0.1
    observations = PrivatizedCounts(reports, per_row if alpha_kind == "row" else alpha, mask)
    excess = dense_exposures(reports, alpha, mask) - observations.exposure_d[:, None]
    return excess, observations, theta, phi


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("alpha_kind", ["row", "cell"])
def test_exposures_are_added_as_dense_arrays_say(alpha_kind, dense):
    excess, observations, theta, phi = scene(alpha_kind)
    block = observations.block(slice(0, ROWS))
    by_row, by_column = np.ones_like(theta), np.ones_like(phi)
    kernels.add_row_exposures(LAW, block, phi, by_row, dense)
    kernels.add_column_exposures(LAW, block, theta, by_column, dense)
    np.testing.assert_allclose(by_row, 1.0 + excess @ phi, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(by_column, 1.0 + excess.T @ theta, rtol=1e-11, atol=1e-11)


def test_true_counts_are_exposed_like_their_row():
    counts = np.random.default_rng(2).poisson(1.0, (ROWS, 300))
    block, added = ExactCounts(counts).block(slice(0, ROWS)), np.zeros((ROWS, K))
    kernels.add_row_exposures(LAW, block, np.ones((300, K)), added, True)
    assert (added == 0.0).all()


def test_blocks_with_many_stored_entries_are_dense():
    def block(share, n_columns):
        stored = np.zeros((20, n_columns), dtype=int)
        stored.ravel()[: round(share * stored.size)] = 1
        return ExactCounts(stored).block(slice(0, 20))

    for n_columns, share, dense in (
        (500, 1.1 * kernels.DENSE_SHARE, True),
        (500, 0.9 * kernels.DENSE_SHARE, False),
        (kernels.CELLS_OF_RATES // kernels.LEAST_ROWS_OF_RATES + 1, 0.5, False),
    ):
        assert kernels.is_dense(block(share, n_columns), n_columns) == dense


@pytest.mark.parametrize("n_columns", [1, 100, 5000, 20_000, kernels.CELLS_OF_RATES])
def test_rates_of_a_few_rows_fit_into_the_cache(n_columns):
    rows = kernels.rows_of_rates(n_columns)
    assert kernels.LEAST_ROWS_OF_RATES <= rows <= kernels.MOST_ROWS_OF_RATES
    assert rows == kernels.LEAST_ROWS_OF_RATES or rows * n_columns <= kernels.CELLS_OF_RATES
