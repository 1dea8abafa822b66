"""Data in two parts: every cell that was seen is in one of them."""

import numpy as np
import pytest

import countveil as cv
from countveil.selection import holding_out
from countveil.selection.holding_out import hold_out, seen_cells

REPORTS = np.random.default_rng(1).integers(-2, 4, (9, 7))
MASK = np.random.default_rng(2).random((9, 7)) < 0.2


def seen(observed):
    rows, columns = seen_cells(observed)
    found = np.zeros(observed.shape, dtype=bool)
    found[rows, columns] = True
    return found


def test_every_cell_that_was_seen_is_in_one_part():
    data = cv.PrivatizedCounts(REPORTS, 0.5, MASK)
    training, held_out = hold_out(data, 0.25, seed=3)
    np.testing.assert_array_equal(seen(training) ^ seen(held_out), ~MASK)
    assert not (seen(training) & seen(held_out)).any()
    assert seen(held_out).sum() == round(0.25 * (~MASK).sum())
    rows, columns = np.nonzero(seen(held_out))
    np.testing.assert_array_equal(held_out.cells(rows, columns)[0], np.maximum(REPORTS, 0)[rows, columns])
    again = hold_out(data, 0.25, seed=3)[1]
    np.testing.assert_array_equal(seen(again), seen(held_out))
    assert (seen(hold_out(data, 0.25, seed=4)[1]) != seen(held_out)).any()


def test_pairs_of_actors_stay_together():
    counts = np.triu(np.random.default_rng(4).integers(0, 5, (8, 8)), 1)
    training, held_out = hold_out(cv.PrivatizedCounts(counts + counts.T, 0.5), 0.3, seed=1)
    for part in (training, held_out):
        np.testing.assert_array_equal(seen(part), seen(part).T)
    release = cv.privatize(counts, cv.PrivacyLevel(1, 1), directed=False)
    training, held_out = hold_out(release, 0.3, seed=1)
    assert not np.tril(seen(training) | seen(held_out), -1).any()
    assert seen(held_out).any()


@pytest.mark.parametrize("share", [0.0, 1.0, True, "half", 0.001, 0.999])
def test_a_share_that_leaves_a_part_empty_is_refused(share):
    with pytest.raises(ValueError, match=r"share must"):
        hold_out(cv.PrivatizedCounts(REPORTS, 0.5), share, seed=1)


def test_other_data_are_refused(monkeypatch):
    with pytest.raises(TypeError, match="must carry its noise level"):
        hold_out(REPORTS)
    with pytest.raises(ValueError, match="seed must be a whole number"):
        hold_out(cv.PrivatizedCounts(REPORTS, 0.5), seed=-1)
    monkeypatch.setattr(holding_out, "MAX_CELLS", 60)
    with pytest.raises(ValueError, match="at most 60 cells, got 9 x 7"):
        hold_out(cv.PrivatizedCounts(REPORTS, 0.5))
