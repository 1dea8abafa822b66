"""Exposures of row and column factors against dense arrays."""

import numpy as np
import pytest

from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.inference.factors import row_blocks
from countveil.kernels import exposures as kernels
from tests.joint import LAW, dense_exposures, draw_reports, exposures_of

ROWS, COLUMNS, K = 9, 7, 4


def scene(kind):
    """(theta, phi, dense exposures, observations), some cells masked."""
    rng = np.random.default_rng(1)
    theta, phi = rng.gamma(1.0, 1.0, (ROWS, K)), rng.gamma(1.0, 1.0, (COLUMNS, K))
    by_row = rng.uniform(0.0, 0.9, ROWS)
    by_row[2] = 0.0
    given = {"row": by_row, "cell": rng.uniform(0.0, 0.9, (ROWS, COLUMNS)), "exact": None}[kind]
    mask = rng.random((ROWS, COLUMNS)) < 0.2
    mask[4] = True
    if given is None:
        observations = ExactCounts(rng.poisson(theta @ phi.T), mask)
        return theta, phi, (~mask).astype(float), observations
    alpha = np.broadcast_to(given if given.ndim == 2 else given[:, None], (ROWS, COLUMNS))
    reports = draw_reports(theta @ phi.T, alpha, rng)
    reports[6] = np.minimum(reports[6], 0)
    return theta, phi, dense_exposures(reports, alpha, mask), PrivatizedCounts(reports, given, mask)


@pytest.mark.long
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("size", [ROWS, 4])
@pytest.mark.parametrize("kind", ["row", "cell", "exact"])
def test_row_exposures_are_dense_sums(kind, size, dense):
    _, phi, exposures, observations = scene(kind)
    np.testing.assert_allclose(exposures_of(observations), exposures, atol=1e-15)
    found = np.full((ROWS, K), np.nan)
    for rows in row_blocks(ROWS, size):
        kernels.row_exposures(LAW, observations.block(rows), phi, phi.sum(axis=0), found[rows], dense)
    np.testing.assert_allclose(found, exposures @ phi, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("size", [ROWS, 4])
@pytest.mark.parametrize("kind", ["row", "cell", "exact"])
def test_column_exposures_are_added_to_what_is_there(kind, size, dense):
    theta, _, exposures, observations = scene(kind)
    before = np.random.default_rng(2).random((COLUMNS, K))
    found, total = before.copy(), np.full(K, 3.0)
    for rows in row_blocks(ROWS, size):
        kernels.column_exposures(LAW, observations.block(rows), theta[rows], found, total, dense)
    np.testing.assert_allclose(found + total, before + 3.0 + exposures.T @ theta, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(total, 3.0 + observations.exposure_d @ theta, rtol=1e-12)
