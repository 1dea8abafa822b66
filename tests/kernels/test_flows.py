"""Flows within bounds, against all tables of small counts."""

import itertools

import numpy as np
import pytest

from countveil.data.totals import NONE, flows_of
from countveil.kernels.flows import meet_bounds

ROWS, COLUMNS, MOST = 2, 3, 2
ROW, COLUMN = (axis.ravel() for axis in np.indices((ROWS, COLUMNS)))
WHOLE = ROWS + COLUMNS  # the number of the total of all cells; those of rows and columns come before it
TABLES = np.array(list(itertools.product(range(MOST + 1), repeat=ROWS * COLUMNS)))


def totals_of(tables):
    table = tables.reshape(-1, ROWS, COLUMNS)
    return np.concatenate([table.sum(axis=2), table.sum(axis=1), table.sum(axis=(1, 2))[:, None]], axis=1)


def moved(low, high, counts):
    """(whether bounds of all totals can be met, counts moved to meet them)."""
    side = np.stack([ROW, ROWS + COLUMN], axis=1)
    parents = np.full((2, WHOLE + 1), NONE)
    parents[0, :ROWS], parents[0, WHOLE], parents[1, ROWS:WHOLE] = WHOLE, WHOLE + 1, WHOLE + 1
    graph = flows_of(side, parents)
    flow = np.concatenate([totals_of(counts)[0], counts])
    least, most = np.zeros(counts.size, dtype=np.int64), np.full(counts.size, MOST)
    met = meet_bounds(graph, np.concatenate([low, least]), np.concatenate([high, most]), flow)
    np.testing.assert_array_equal(flow[: WHOLE + 1], totals_of(flow[WHOLE + 1 :])[0])
    return met, flow[WHOLE + 1 :]


@pytest.mark.parametrize("wide", [0, 1, 3])
def test_bounds_are_met_if_any_counts_meet_them(wide):
    rng, possible, every = np.random.default_rng(wide), 0, totals_of(TABLES)
    for _ in range(150):
        low = np.maximum(totals_of(rng.choice(TABLES))[0] + rng.integers(-1, 2, WHOLE + 1), 0)
        if rng.random() < 0.5:
            low = totals_of(rng.choice(TABLES))[0]
        high = low + rng.integers(0, wide + 1, WHOLE + 1)
        met, counts = moved(low, high, rng.choice(TABLES))
        assert met == ((low <= every) & (every <= high)).all(axis=1).any()
        possible += met
        if met:
            assert ((low <= totals_of(counts)[0]) & (totals_of(counts)[0] <= high)).all()
            assert counts.min() >= 0
            assert counts.max() <= MOST
    assert 30 < possible < 145


def test_counts_that_meet_all_bounds_stay():
    counts = np.array([2, 0, 1, 1, 1, 0])
    met, found = moved(totals_of(counts)[0], totals_of(counts)[0], counts)
    assert met
    np.testing.assert_array_equal(found, counts)
