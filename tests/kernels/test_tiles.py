"""Exposures by matrix products against those entry by entry and against dense arrays."""

import numpy as np
import pytest

from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.inference.factors import row_blocks
from countveil.kernels import tiles as kernels
from tests.joint import LAW, dense_exposures, draw_reports, exposures_of

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
    kernels.add_exposures(LAW, block, phi, by_row, dense, True)
    kernels.add_exposures(LAW, block, theta, by_column, dense, False)
    np.testing.assert_allclose(by_row, 1.0 + excess @ phi, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(by_column, 1.0 + excess.T @ theta, rtol=1e-11, atol=1e-11)


def test_true_counts_are_exposed_like_their_row():
    counts = np.random.default_rng(2).poisson(1.0, (ROWS, 300))
    block, added = ExactCounts(counts).block(slice(0, ROWS)), np.zeros((ROWS, K))
    kernels.add_exposures(LAW, block, np.ones((300, K)), added, True, True)
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


ROWS_OF_EXPOSURES, COLUMNS, K_OF_EXPOSURES = 9, 7, 4


def scene_of_exposures(kind):
    """(theta, phi, dense exposures, observations), some cells masked."""
    rng = np.random.default_rng(1)
    theta, phi = (
        rng.gamma(1.0, 1.0, (ROWS_OF_EXPOSURES, K_OF_EXPOSURES)),
        rng.gamma(1.0, 1.0, (COLUMNS, K_OF_EXPOSURES)),
    )
    by_row = rng.uniform(0.0, 0.9, ROWS_OF_EXPOSURES)
    by_row[2] = 0.0
    given = {"row": by_row, "cell": rng.uniform(0.0, 0.9, (ROWS_OF_EXPOSURES, COLUMNS)), "exact": None}[kind]
    mask = rng.random((ROWS_OF_EXPOSURES, COLUMNS)) < 0.2
    mask[4] = True
    if given is None:
        observations = ExactCounts(rng.poisson(theta @ phi.T), mask)
        return theta, phi, (~mask).astype(float), observations
    alpha = np.broadcast_to(given if given.ndim == 2 else given[:, None], (ROWS_OF_EXPOSURES, COLUMNS))
    reports = draw_reports(theta @ phi.T, alpha, rng)
    reports[6] = np.minimum(reports[6], 0)
    return theta, phi, dense_exposures(reports, alpha, mask), PrivatizedCounts(reports, given, mask)


@pytest.mark.long
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("size", [ROWS_OF_EXPOSURES, 4])
@pytest.mark.parametrize("kind", ["row", "cell", "exact"])
def test_row_exposures_are_dense_sums(kind, size, dense):
    _, phi, exposures, observations = scene_of_exposures(kind)
    np.testing.assert_allclose(exposures_of(observations), exposures, atol=1e-15)
    found = np.full((ROWS_OF_EXPOSURES, K_OF_EXPOSURES), np.nan)
    for rows in row_blocks(ROWS_OF_EXPOSURES, size):
        block = observations.block(rows)
        found[rows] = block.exposure_d[:, None] * phi.sum(axis=0)
        kernels.add_exposures(LAW, block, phi, found[rows], dense, True)
    np.testing.assert_allclose(found, exposures @ phi, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("size", [ROWS_OF_EXPOSURES, 4])
@pytest.mark.parametrize("kind", ["row", "cell", "exact"])
def test_column_exposures_are_added_to_what_is_there(kind, size, dense):
    theta, _, exposures, observations = scene_of_exposures(kind)
    before = np.random.default_rng(2).random((COLUMNS, K_OF_EXPOSURES))
    found, total = before.copy(), np.full(K_OF_EXPOSURES, 3.0)
    for rows in row_blocks(ROWS_OF_EXPOSURES, size):
        block = observations.block(rows)
        kernels.add_baselines(block.exposure_d, theta[rows], total)
        kernels.add_exposures(LAW, block, theta[rows], found, dense, False)
    np.testing.assert_allclose(found + total, before + 3.0 + exposures.T @ theta, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(total, 3.0 + observations.exposure_d @ theta, rtol=1e-12)
