"""Matrices as people hand them over: every form of the same one is seen alike, and what does not fit is refused."""

import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import countveil as cv
from countveil.data import matrices
from countveil.data.observations import ExactCounts, NaiveCounts, PrivatizedCounts
from countveil.laws.counts import POISSON
from countveil.privacy.mechanisms import Suppression
from tests.data.same import ALPHA, REPORTS, assert_same
from tests.joint import assert_same_bits, dense_exposures, exposures_of


def with_explicit_zeros(matrix):
    rows, columns = np.indices(matrix.shape)
    return sp.csr_array((matrix.ravel(), (rows.ravel(), columns.ravel())), shape=matrix.shape)


def with_duplicates(matrix):
    coo = sp.coo_array(matrix)
    twice = (np.r_[coo.data - 1, np.ones_like(coo.data)], (np.tile(coo.row, 2), np.tile(coo.col, 2)))
    return sp.coo_array(twice, shape=matrix.shape)


def with_csr_duplicates(matrix):
    coo = with_duplicates(matrix)
    order = np.argsort(coo.row, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(coo.row, minlength=coo.shape[0]))])
    return sp.csr_array((coo.data[order], coo.col[order], indptr), shape=coo.shape)


def shuffled(matrix):
    csr = sp.csr_array(matrix)
    for d in range(csr.shape[0]):
        piece = slice(csr.indptr[d], csr.indptr[d + 1])
        csr.indices[piece], csr.data[piece] = csr.indices[piece][::-1].copy(), csr.data[piece][::-1].copy()
    csr.has_sorted_indices = False
    return csr


FORMS = {
    "list": lambda r: r.tolist(),
    "float": lambda r: r.astype(float),
    "int8": lambda r: r.astype(np.int8),
    "fortran": np.asfortranarray,
    "strided": lambda r: np.repeat(r, 2, axis=1)[:, ::2],
    "masked array": lambda r: np.ma.masked_array(r),
    "data frame": pd.DataFrame,
    "truncated": lambda r: np.maximum(r, 0),
    "unsigned": lambda r: np.maximum(r, 0).astype(np.uint64),
    "csr": sp.csr_array,
    "csr matrix": sp.csr_matrix,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "lil": sp.lil_array,
    "dok": sp.dok_array,
    "bsr": sp.bsr_array,
    "dia": sp.dia_array,
    "sparse float": lambda r: sp.csr_array(r.astype(float)),
    "sparse truncated": lambda r: sp.csr_array(np.maximum(r, 0)),
    "explicit zeros": with_explicit_zeros,
    "unsorted": shuffled,
}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("form", [with_duplicates, with_csr_duplicates])
def test_repeated_cells_are_summed_as_counts_and_refused_as_reports(form, masked):
    counts = np.abs(REPORTS)
    mask = (np.arange(16).reshape(4, 4) % 5 == 0) if masked else None
    given = form(counts)
    given.data.flags.writeable = False
    assert_same(ExactCounts(given, mask), ExactCounts(counts, mask))
    for make in (lambda: PrivatizedCounts(given, 0.5, mask), lambda: NaiveCounts(given, mask)):
        with pytest.raises(ValueError, match="reports must name each cell once, got a duplicate"):
            make()


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint8, np.int32, np.int64, np.float32])
@pytest.mark.parametrize("form", ["coo", "csc", "csr"])
def test_sums_of_repeated_cells_are_not_cut_to_a_narrow_type(form, dtype):
    largest = 2**24 - 1 if dtype == np.float32 else min(np.iinfo(dtype).max, 2**40)
    values, where = np.full(3, largest, dtype=dtype), np.ones(3, dtype=np.int32)
    ends = [0, 0, 3, 3]  # of compressed rows or columns
    given = {
        "coo": lambda: sp.coo_array((values, (where, where)), shape=(3, 3)),
        "csc": lambda: sp.csc_array((values, where, ends), shape=(3, 3)),
        "csr": lambda: sp.csr_array((values, where, ends), shape=(3, 3)),
    }[form]()
    assert ExactCounts(given).reports.tolist() == [3 * largest]
    assert given.dtype == dtype


def test_events_are_counted():
    events = sp.coo_array((np.ones(3, dtype=bool), ([0, 0, 1], [1, 1, 2])), shape=(2, 3))
    np.testing.assert_array_equal(ExactCounts(events).reports, [2, 1])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_reports_is_seen_alike(form, masked):
    mask = (np.arange(16).reshape(4, 4) % 5 == 0) if masked else None
    given = FORMS[form](REPORTS)
    kept = given.copy()
    if getattr(given, "format", "") in ("csr", "coo"):
        given.data.flags.writeable = False
    found = PrivatizedCounts(given, 0.5, mask)
    assert_same(found, PrivatizedCounts(REPORTS, 0.5, mask))
    np.testing.assert_allclose(exposures_of(found), dense_exposures(REPORTS, 0.5, mask))
    if hasattr(given, "toarray"):
        np.testing.assert_array_equal(given.toarray(), kept.toarray())
    elif not isinstance(given, list):
        np.testing.assert_array_equal(np.asarray(given), np.asarray(kept))


@pytest.mark.parametrize("form", ["list", "row", "column", "full", "fractions"])
def test_every_form_of_the_same_alpha_is_seen_alike(form):
    reports = np.maximum(REPORTS, 0)
    alpha = {
        "list": ALPHA.tolist(),
        "row": ALPHA,
        "column": ALPHA[:, None],
        "full": np.repeat(ALPHA[:, None], 4, axis=1),
        "fractions": [Fraction(1, 2), Fraction(0.2), Fraction(0.9), 0],
    }[form]
    assert_same(PrivatizedCounts(reports, alpha), PrivatizedCounts(reports, ALPHA))


def test_a_vector_of_alphas_belongs_to_rows_even_if_the_matrix_is_square():
    found = PrivatizedCounts(np.maximum(REPORTS, 0), ALPHA)
    np.testing.assert_array_equal(found.level_d, ALPHA)
    np.testing.assert_array_equal(found.exposure_d, 1.0 - ALPHA)


def test_what_is_under_the_mask_is_never_read():
    mask = REPORTS == 40
    under = np.where(mask, np.nan, REPORTS)
    assert_same(PrivatizedCounts(under, 0.5, mask), PrivatizedCounts(REPORTS, 0.5, mask))
    assert_same(PrivatizedCounts(np.ma.masked_array(under, mask), 0.5), PrivatizedCounts(REPORTS, 0.5, mask))
    sparse = sp.csr_array(np.where(mask, np.inf, REPORTS))
    assert_same(PrivatizedCounts(sparse, 0.5, sp.csr_array(mask)), PrivatizedCounts(REPORTS, 0.5, mask))
    negative = np.where(mask, -7, np.maximum(REPORTS, 0))
    assert_same(ExactCounts(negative, mask), ExactCounts(np.maximum(REPORTS, 0), mask))


def test_masks_of_a_masked_array_and_of_the_call_add_up():
    one, other = REPORTS == 40, REPORTS == 7
    for second in (other, sp.csr_array(other)):
        found = PrivatizedCounts(np.ma.masked_array(REPORTS, one), 0.5, second)
        assert_same(found, PrivatizedCounts(REPORTS, 0.5, one | other))


def test_a_mask_that_hides_nothing_changes_nothing():
    assert_same(PrivatizedCounts(REPORTS, 0.5, np.zeros((4, 4), dtype=bool)), PrivatizedCounts(REPORTS, 0.5))


def test_labels_of_a_data_frame_are_kept_unless_others_are_given():
    frame = pd.DataFrame(REPORTS, index=[10, 20, 30, 40], columns=list("wxyz"))
    found = PrivatizedCounts(frame, 0.5)
    assert found.row_labels == ["10", "20", "30", "40"]
    assert found.column_labels == list("wxyz")
    found = PrivatizedCounts(frame, 0.5, column_labels=["a", "b", "c", 4])
    assert found.column_labels == ["a", "b", "c", "4"]
    assert PrivatizedCounts(REPORTS, 0.5).row_labels is None


MASK_IT = "mask cells without a report, mask=frame.isna() or mask=numpy.isnan(array)"
EMPTY = "at least one row and one column, got an empty matrix"
ERRORS = [
    (lambda: PrivatizedCounts(np.zeros((0, 3)), 0.5), f"reports must have {EMPTY} 0 x 3"),
    (lambda: PrivatizedCounts(sp.csr_array((3, 0)), 0.5), f"reports must have {EMPTY} 3 x 0"),
    (lambda: ExactCounts(np.zeros((0, 3))), f"reports must have {EMPTY} 0 x 3"),
    (lambda: NaiveCounts(np.zeros((2, 0))), f"reports must have {EMPTY} 2 x 0"),
    (lambda: PrivatizedCounts([1, 2], 0.5), "reports must have 2 dimensions or more, got 1"),
    (lambda: PrivatizedCounts([[1, 2.5]], 0.5), "reports must be whole numbers, got 2.5 at index (0, 1)"),
    (
        lambda: PrivatizedCounts([[1], [np.nan]], 0.5),
        f"reports must be whole numbers, got nan at index (1, 0): {MASK_IT}",
    ),
    (lambda: PrivatizedCounts([[np.inf]], 0.5), "reports must be whole numbers, got inf at index (0, 0)"),
    (lambda: PrivatizedCounts([[1e300]], 0.5), "reports must be whole numbers, got 1e+300 at index (0, 0)"),
    (
        lambda: PrivatizedCounts(sp.csr_array([[0, 0, 1.0], [0, 0.5, 0]]), 0.5),
        "reports must be whole numbers, got 0.5 at index (1, 1)",
    ),
    (lambda: PrivatizedCounts([["a"]], 0.5), "reports must be whole numbers, got dtype <U1"),
    (lambda: PrivatizedCounts([[1j]], 0.5), "reports must be whole numbers, got dtype complex128"),
    (
        lambda: PrivatizedCounts(np.array([[1, 2**63]], dtype=np.uint64), 0.5),
        "reports must be at most 2^53 in size, got 9223372036854775808 at index (0, 1)",
    ),
    (
        lambda: PrivatizedCounts(sp.csr_array([[0, 1], [0, 2**53 + 1]]), 0.5),
        "reports must be at most 2^53 in size, got 9007199254740993 at index (1, 1)",
    ),
    (lambda: ExactCounts([[2**53 + 1]]), "counts must be at most 2^53 in size, got one that is not at index (0, 0)"),
    (lambda: PrivatizedCounts([[1]], 1.0), "alpha must be in [0, 1), got 1.0"),
    (lambda: PrivatizedCounts([[1]], -0.1), "alpha must be in [0, 1), got -0.1"),
    (lambda: PrivatizedCounts([[1]], np.nan), "alpha must be in [0, 1), got nan"),
    (lambda: PrivatizedCounts([[1], [2]], [0.5, 2.0]), "alpha must be in [0, 1), got 2.0 at index (1,)"),
    (lambda: PrivatizedCounts([[1, 2]], [[0.5, -1.0]]), "alpha must be in [0, 1), got -1.0 at index (0, 1)"),
    (
        lambda: PrivatizedCounts(np.ones((3, 4)), np.full(4, 0.5)),
        "alpha must be a number, one per row (3,), one per column (1, 4) or one per cell (3, 4), got shape (4,)",
    ),
    (
        lambda: PrivatizedCounts([[1, -2]], 0.0),
        "counts seen without noise (alpha = 0) must not be negative, got a negative one at index (0, 1)",
    ),
    (
        lambda: PrivatizedCounts([[-1, 2], [1, -3]], [0.5, 0.0]),
        "counts seen without noise (alpha = 0) must not be negative, got a negative one at index (1, 1)",
    ),
    (
        lambda: PrivatizedCounts([[-1, 2], [1, -3]], [[0.5, 0.5], [0.5, 0.0]]),
        "counts seen without noise (alpha = 0) must not be negative, got a negative one at index (1, 1)",
    ),
    (
        lambda: ExactCounts(sp.csr_array([[0, 1], [-4, 0]])),
        "counts seen without noise (alpha = 0) must not be negative, got a negative one at index (1, 0)",
    ),
    (
        lambda: PrivatizedCounts(sp.csr_array([[-1, 2], [1, -3]]), [[0.5, 0.5], [0.5, 0.0]]),
        "counts seen without noise (alpha = 0) must not be negative, got a negative one at index (1, 1)",
    ),
    (
        lambda: PrivatizedCounts([[1, 2]], 0.5, [[0, 1]]),
        "mask must be boolean (True where a cell is held out), got dtype int64",
    ),
    (lambda: PrivatizedCounts([[1, 2]], 0.5, [True, False]), "mask must have the shape of reports (1, 2), got (2,)"),
    (
        lambda: PrivatizedCounts(np.ma.masked_array([[1, 2], [3, 4]]), 0.5, [True, False]),
        "mask must have the shape of reports (2, 2), got (2,)",
    ),
    (lambda: PrivatizedCounts([[1, 2]], 0.5, row_labels=["a", "b"]), "row_labels must have 1 entries, got 2"),
    (lambda: ExactCounts([[1, 2]], column_labels=["a"]), "column_labels must have 2 entries, got 1"),
]


@pytest.mark.parametrize(("make", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_errors_name_what_the_rule_and_the_value_are(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


def test_one_alpha_per_column_is_the_same_as_one_per_cell():
    rng = np.random.default_rng(5)
    reports, alpha = rng.integers(-2, 6, (4, 3)), np.array([[0.1, 0.5, 0.9]])
    by_column = PrivatizedCounts(reports, alpha)
    by_cell = PrivatizedCounts(reports, np.repeat(alpha, 4, axis=0))
    np.testing.assert_array_equal(by_column.level_e, by_cell.level_e)
    np.testing.assert_array_equal(by_column.level_e.reshape(4, 3)[2], alpha[0])


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
    with pytest.raises(ValueError, match="exposure must have the row labels of reports in their order, got 'b'"):
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
        (np.array([1.0, 2.0]), r"exposure must show whether it belongs to rows or to columns, got shape \(2,\)"),
        (np.where(CELLS == 0.5, 0.0, CELLS), r"positive and finite, got 0.0 at index \(1, 1\): mask a cell"),
        (np.where(CELLS == 0.5, np.nan, CELLS), r"exposure must be positive and finite, got nan"),
        (-1.0, r"exposure must be positive and finite, got -1.0"),
        (1e300, r"exposure must be positive and finite, got 1e\+300 .* units in which all are from 1e-100 to 1e\+100$"),
        (1e-300, r"exposure must be positive and finite, got 1e-300 .* units in which all are from 1e-100"),
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
    with pytest.raises(ValueError, match="exposure must show whether it belongs to rows or to columns"):
        cv.ExactCounts(np.eye(3, dtype=int), exposure=[1.0, 2.0, 3.0])


def test_tables_that_are_too_large_are_refused(monkeypatch):
    from countveil.data import observations

    monkeypatch.setattr(observations, "MOST_CELLS", 5)
    with pytest.raises(ValueError, match=r"exposure by cell must have at most 5 cells, .* got 6: give one of rows"):
        cv.ExactCounts(COUNTS, exposure=CELLS)
    assert matrices.MOST_CELLS > 10**7
    assert cv.ExactCounts(COUNTS, exposure=[[1.0], [2.0]]).law(POISSON) is not None
