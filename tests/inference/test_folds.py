"""Which cells are held out together, and which are never held out."""

import numpy as np
import pytest
import scipy.sparse as sp

import countveil as cv
from countveil.inference import folds
from countveil.inference.folds import folds_of, is_mirrored


def reports(shape, seed=1):
    return np.random.default_rng(seed).integers(-2, 4, shape)


def keys(found, n_columns):
    return [cells.rows * n_columns + cells.columns for cells in found]


def test_every_cell_that_all_have_seen_is_in_one_fold():
    mask = np.random.default_rng(2).random((9, 7)) < 0.2
    one = cv.PrivatizedCounts(reports((9, 7)), 0.5, mask)
    other = one.hide(np.array([0, 8]), np.array([0, 6]))
    mask[[0, 8], [0, 6]] = True
    found = folds_of([one, other], 4, np.random.default_rng(3))
    assert [cells.size for cells in found] == [len(x) for x in np.array_split(np.arange((~mask).sum()), 4)]
    assert sorted(np.concatenate(keys(found, 7))) == np.flatnonzero(~mask).tolist()
    assert all(np.unique(cells.rows).size > 2 for cells in found)  # at random, not by rows


def test_large_data_are_sampled_without_being_made_dense(monkeypatch):
    monkeypatch.setattr(folds, "MAX_CELLS", 50)
    huge = sp.csr_array(([3], ([5], [7])), shape=(10**6, 10**6))
    observations = cv.PrivatizedCounts(huge, 0.5).hide(np.array([1]), np.array([1]))
    found = folds_of([observations], 3, np.random.default_rng(1))
    assert [cells.size for cells in found] == [50, 50, 50]
    assert np.unique(np.concatenate(keys(found, 10**6))).size == 150
    # So are small ones where a fold holds no more.
    small = cv.PrivatizedCounts(reports((20, 20)), 0.5)
    assert [cells.size for cells in folds_of([small], 2, np.random.default_rng(1))] == [50, 50]


def test_of_a_mask_that_leaves_little_enough_cells_are_found(monkeypatch):
    monkeypatch.setattr(folds, "MAX_CELLS", 20)
    mask = np.ones((40, 40), dtype=bool)
    mask[:, :3] = False
    seen = cv.PrivatizedCounts(reports((40, 40)), 0.5, mask)
    found = folds_of([seen], 2, np.random.default_rng(1))
    assert [cells.size for cells in found] == [20, 20]
    assert max(cells.columns.max() for cells in found) < 3


def test_a_pair_of_actors_is_one_cell_above_the_diagonal():
    found = folds_of([cv.PrivatizedCounts(reports((6, 6)), 0.5)], 3, np.random.default_rng(1), pairs=True)
    assert sorted(np.concatenate(keys(found, 6))) == [6 * i + j for i in range(6) for j in range(i, 6)]
    rows, columns = found[0].both_directions()
    assert set(zip(rows, columns, strict=True)) == set(zip(columns, rows, strict=True))


def test_fewer_cells_than_folds_are_refused():
    mask = np.ones((3, 3), dtype=bool)
    mask[0, :2] = False
    with pytest.raises(ValueError, match="folds must be at most the number of cells that are seen, 2, got 3"):
        folds_of([cv.PrivatizedCounts(reports((3, 3)), 0.5, mask)], 3, np.random.default_rng(1))


def test_a_mirrored_matrix_is_known():
    values = reports((8, 8))
    assert not is_mirrored(cv.PrivatizedCounts(values, 0.5))
    upper = np.triu(values)
    assert not is_mirrored(cv.PrivatizedCounts(upper, 0.5))
    assert is_mirrored(cv.PrivatizedCounts(upper + np.triu(values, 1).T, 0.5))
    assert not is_mirrored(cv.PrivatizedCounts(np.zeros((8, 8), dtype=int), 0.5))
    assert not is_mirrored(cv.PrivatizedCounts(reports((8, 7)), 0.5))
