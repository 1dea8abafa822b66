"""The stored entries of a block: their levels, one of each row or one of each, and how many there are."""

import itertools

import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.kernels.entries import BATCH, MASKED, Entries, level_at, new_batch, new_expectations

REPORTS = np.array([[3, 0, -2], [0, 5, 4], [-1, 0, 0]])
BY_ROW = np.array([0.1, 0.5, 0.9])
BY_CELL = np.linspace(0.1, 0.9, 9).reshape(3, 3)


def entries_of(alpha, mask=None, rows=slice(0, 3)):
    return PrivatizedCounts(REPORTS, alpha, mask).block(rows)


@pytest.mark.parametrize("alpha", [BY_ROW, BY_CELL], ids=["row", "cell"])
def test_every_stored_entry_has_the_level_of_its_cell(alpha):
    levels = np.broadcast_to(alpha if alpha.ndim == 2 else alpha[:, None], REPORTS.shape)
    entries = entries_of(alpha)
    assert isinstance(entries, Entries)
    for d in range(entries.n_rows):
        for e in range(entries.indptr[d], entries.indptr[d + 1]):
            assert level_at(entries.level_d, entries.level_e, d, e) == levels[d, entries.columns[e]]


def test_positive_reports_and_masked_cells_are_stored():
    mask = np.zeros((3, 3), dtype=bool)
    mask[2, 1] = mask[0, 0] = True
    entries = entries_of(BY_ROW, mask)
    assert (entries.n_rows, entries.size) == (3, 4)
    assert entries.indptr.tolist() == [0, 1, 3, 4]
    assert entries.columns.tolist() == [0, 1, 2, 1]
    assert entries.reports.tolist() == [MASKED, 5, 4, MASKED]
    np.testing.assert_array_equal(entries.exposure_d, 1.0 - BY_ROW)


def test_all_cells_are_stored_where_levels_vary_within_rows():
    entries = entries_of(BY_CELL)
    assert (entries.n_rows, entries.size) == (3, 9)
    np.testing.assert_array_equal(entries.reports, np.maximum(REPORTS, 0).ravel())
    np.testing.assert_array_equal(entries.level_e, BY_CELL.ravel())


@pytest.mark.parametrize("alpha", [BY_ROW, BY_CELL], ids=["row", "cell"])
def test_a_run_of_rows_has_their_entries_alone(alpha):
    whole, part = entries_of(alpha), entries_of(alpha, rows=slice(1, 3))
    first = whole.indptr[1]
    assert part.n_rows == 2
    np.testing.assert_array_equal(part.indptr, whole.indptr[1:] - first)
    for name in ("columns", "reports"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[first:])
    for d in range(2):
        for e in range(part.indptr[d], part.indptr[d + 1]):
            level = level_at(whole.level_d, whole.level_e, d + 1, first + e)
            assert level_at(part.level_d, part.level_e, d, e) == level


@pytest.mark.parametrize(("space", "inner"), [(new_batch, 6), (new_expectations, 5)])
def test_each_array_has_room_of_its_own(space, inner):
    *arrays, rest = space()
    assert len(arrays) == 5
    assert len(rest) == inner
    assert {array.shape for array in (*arrays, *rest)} == {(BATCH,)}
    pairs = itertools.combinations((*arrays, *rest), 2)
    assert not any(np.shares_memory(one, other) for one, other in pairs)
    other, *_ = space()
    assert not np.shares_memory(arrays[0], other)
