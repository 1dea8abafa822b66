"""Exposures of cells: which are offsets, which go by cell, and which are refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import countveil as cv
from countveil.data import exposures
from countveil.laws.counts import POISSON
from countveil.privacy.mechanisms import Suppression
from tests.joint import assert_same_bits

COUNTS = np.array([[3, 0, 1], [0, 12, 5]])
CELLS = np.array([[1.0, 2.0, 4.0], [3.0, 0.5, 10.0]])
KINDS = {
    "exact": cv.ExactCounts,
    "naive": cv.NaiveCounts,
    "private": lambda counts, **options: cv.PrivatizedCounts(counts, 0.5, **options),
    "reports": lambda counts, **options: cv.Reports(
        pd.DataFrame(counts).mask((counts > 0) & (counts < 4)), Suppression(4), **options
    ),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_exposures_by_row_or_column_are_offsets(make):
    rows, columns = np.array([2.0, 0.3]), np.array([1.0, 5.0, 7.0])
    same = [
        ({"exposure": rows[:, None]}, {"row_offset": rows}),
        ({"exposure": pd.Series(rows)}, {"row_offset": rows}),
        ({"exposure": columns[None, :]}, {"column_offset": columns}),
        ({"exposure": columns}, {"column_offset": columns}),
        ({"exposure": 3.0}, {"row_offset": [3.0, 3.0]}),
    ]
    for one, other in same:
        first, second = make(COUNTS, **one), make(COUNTS, **other)
        assert first.exposure is None
        for name in ("prior_scale_d", "prior_scale_v", "indptr", "columns", "reports", "level_d", "level_e"):
            assert_same_bits(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_exposures_by_cell_stay_with_their_cells(make):
    mask = np.zeros(COUNTS.shape, dtype=bool)
    mask[0, 2] = True
    data, plain = make(COUNTS, mask=mask, exposure=CELLS), make(COUNTS, mask=mask)
    rows, columns = np.indices(COUNTS.shape).reshape(2, -1)
    assert data.stores_all
    assert "exposure by cell" in repr(data)
    assert_same_bits(data.cells(rows, columns), plain.cells(rows, columns))
    assert_same_bits(data.exposure, CELLS)
    assert_same_bits(data.take(np.array([1])).exposure, CELLS[1:])
    hidden = data.hide(np.array([1]), np.array([2]))
    assert hidden.n_masked == 2
    assert_same_bits(hidden.exposure, CELLS)
    assert (data.prior_scale_d == 1.0).all()
    assert (data.prior_scale_v == 1.0).all()


def test_exposures_of_a_tensor_follow_its_axes():
    rng = np.random.default_rng(1)
    counts, exposure = rng.poisson(2.0, (3, 4, 2)), rng.gamma(2.0, 1.0, (3, 4, 2))
    data = cv.ExactCounts(counts, exposure=exposure)
    turned = data.matricized((0, 2), (1,))
    assert_same_bits(turned.exposure, exposure.transpose(0, 2, 1).reshape(6, 4))
    rows, columns = np.indices((6, 4)).reshape(2, -1)
    assert_same_bits(turned.cells(rows, columns)[0], counts.transpose(0, 2, 1).ravel())
    folded = cv.ExactCounts(counts.reshape(3, 8), exposure=exposure.reshape(3, 8)).folded((3, 4, 2))
    assert_same_bits(folded.matricized((0, 2), (1,)).exposure, turned.exposure)
    spread = cv.ExactCounts(counts, exposure=exposure[:1])
    assert_same_bits(spread.exposure, np.broadcast_to(exposure[:1], (3, 4, 2)).reshape(3, 8))
    assert cv.ExactCounts(counts, exposure=exposure[:, :1, :1]).exposure is None


def test_a_table_of_exposures_has_the_labels_of_the_reports():
    frame = pd.DataFrame(COUNTS, index=["a", "b"], columns=["x", "y", "z"])
    known = pd.DataFrame(CELLS, index=["a", "b"], columns=["x", "y", "z"])
    assert_same_bits(cv.ExactCounts(frame, exposure=known).exposure, CELLS)
    assert_same_bits(KINDS["reports"](frame, exposure=known).exposure, CELLS)
    with pytest.raises(
        ValueError, match="exposure must have the row labels of reports in their order, got 'b'"
    ):
        cv.ExactCounts(frame, exposure=known.loc[["b", "a"]])
    with pytest.raises(ValueError, match="exposure must have the column labels of reports in their order"):
        KINDS["reports"](frame, exposure=known[["y", "x", "z"]])
    by_row = pd.Series([2.0, 3.0], index=["b", "a"])
    with pytest.raises(ValueError, match="exposure must have the row labels"):
        cv.ExactCounts(frame, exposure=by_row)


@pytest.mark.parametrize(
    ("exposure", "said"),
    [
        (CELLS[:, :2], r"exposure must broadcast to the shape of the reports \(2, 3\), got shape \(2, 2\)"),
        (np.array([1.0, 2.0]), r"exposure must say whether it is of rows or of columns, got shape \(2,\)"),
        (np.where(CELLS == 0.5, 0.0, CELLS), r"positive and finite, got 0.0 at index \(1, 1\): mask a cell"),
        (np.where(CELLS == 0.5, np.nan, CELLS), r"exposure must be positive and finite, got nan"),
        (-1.0, r"exposure must be positive and finite, got -1.0"),
        ([["a", "b", "c"], ["d", "e", "f"]], "exposure must be numbers, got list"),
        (np.ma.masked_less(CELLS, 1.0), "exposure must have no masked entries"),
        (sp.csr_array(np.where(CELLS > 1.0, CELLS, 0.0)), "positive and finite, got 0.0"),
    ],
)
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_other_exposures_are_refused(make, exposure, said):
    with pytest.raises(ValueError, match=said):
        make(COUNTS, exposure=exposure)


def test_of_as_many_rows_as_columns_a_vector_could_be_either():
    with pytest.raises(ValueError, match="exposure must say whether it is of rows or of columns"):
        cv.ExactCounts(np.eye(3, dtype=int), exposure=[1.0, 2.0, 3.0])


def test_tables_that_are_too_large_are_refused(monkeypatch):
    from countveil.data import observations

    monkeypatch.setattr(observations, "MOST_CELLS", 5)
    with pytest.raises(
        ValueError, match=r"exposure by cell must be of 5 cells at most, .* got 6: give one of rows"
    ):
        cv.ExactCounts(COUNTS, exposure=CELLS)
    assert exposures.MOST_CELLS > 10**7
    assert cv.ExactCounts(COUNTS, exposure=[[1.0], [2.0]]).law(POISSON) is not None
