import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import countveil as cv
from countveil.data.observations import (
    ExactCounts,
    NaiveCounts,
    Observations,
    PrivatizedCounts,
    observations_of,
)
from countveil.noise import TWO_SIDED_GEOMETRIC
from countveil.noise.two_sided_geometric.noise import TwoSidedGeometricNoise
from countveil.privacy import PrivacyLevel, Release, privatize
from countveil.simulation import simulate_release
from tests.joint import dense_exposures, exposures_of

REPORTS = np.array([[3, 0, -2, 1], [0, 5, 0, -1], [-4, 0, 0, 0], [7, 1, 2, 40]])
PARTS = ("indptr", "columns", "reports", "level_e", "level_d", "exposure_d")


def assert_same(one, other):
    assert one.shape == other.shape
    for name in PARTS:
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype, name
        np.testing.assert_array_equal(a, b, err_msg=name)


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
        with pytest.raises(ValueError, match="reports must name each cell once, got one twice"):
            make()


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


ALPHA = np.array([0.5, 0.2, 0.9, 0.0])


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


@settings(derandomize=True, deadline=None)
@given(st.data())
def test_exposures_and_reports_equal_the_dense_ones(data):
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=6))
    reports = data.draw(hnp.arrays(np.int64, shape, elements=st.integers(-3, 5)))
    kind = data.draw(st.sampled_from(["scalar", "row", "cell"]))
    levels = st.floats(0.01, 0.99)
    lead = {"scalar": (), "row": shape[:1], "cell": shape}[kind]
    alpha = data.draw(hnp.arrays(np.float64, lead, elements=levels))
    mask = data.draw(st.none() | hnp.arrays(np.bool_, shape))
    sparse = data.draw(st.booleans())
    found = PrivatizedCounts(sp.csr_array(reports) if sparse else reports, alpha, mask)
    dense_alpha = np.broadcast_to(alpha[:, None] if kind == "row" else alpha, shape)
    np.testing.assert_allclose(
        exposures_of(found), dense_exposures(reports, dense_alpha, mask), rtol=0, atol=1e-15
    )
    stored = sp.csr_array((found.reports, found.columns, found.indptr), shape=shape).toarray()
    seen = reports if mask is None else np.where(mask, 0, reports)
    np.testing.assert_array_equal(np.maximum(stored, 0), np.maximum(seen, 0))
    assert found.n_masked == (0 if mask is None else mask.sum())


@settings(derandomize=True, deadline=None)
@given(st.data())
def test_blocks_put_together_are_the_whole(data):
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=8))
    reports = data.draw(hnp.arrays(np.int64, shape, elements=st.integers(-3, 5)))
    alpha = data.draw(
        hnp.arrays(np.float64, data.draw(st.sampled_from([shape[:1], shape])), elements=st.floats(0.1, 0.9))
    )
    found = PrivatizedCounts(reports, alpha)
    size = data.draw(st.integers(1, shape[0]))
    parts = [found.block(slice(start, min(start + size, shape[0]))) for start in range(0, shape[0], size)]
    lengths = np.concatenate([np.diff(part[0]) for part in parts])
    np.testing.assert_array_equal(lengths, np.diff(found.indptr))
    assert all(part[0][0] == 0 for part in parts)
    for i, name in enumerate(PARTS[1:], start=1):
        np.testing.assert_array_equal(np.concatenate([part[i] for part in parts]), getattr(found, name))


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


def test_large_reports_are_kept_whole():
    for largest, dtype in (
        (2**15 - 1, np.int16),
        (2**15, np.int32),
        (2**31 - 1, np.int32),
        (2**31, np.int64),
    ):
        for reports in ([[largest, 1]], sp.csr_array([[largest, 1]])):
            found = PrivatizedCounts(reports, 0.5)
            assert found.reports.dtype == dtype
            assert found.reports.tolist() == [largest, 1]
    found = PrivatizedCounts([[2**53, 1]], 0.5)
    assert found.reports.tolist() == [2**53, 1]


def test_labels_of_a_data_frame_are_kept_unless_others_are_given():
    frame = pd.DataFrame(REPORTS, index=[10, 20, 30, 40], columns=list("wxyz"))
    found = PrivatizedCounts(frame, 0.5)
    assert found.row_labels == ["10", "20", "30", "40"]
    assert found.column_labels == list("wxyz")
    found = PrivatizedCounts(frame, 0.5, column_labels=["a", "b", "c", 4])
    assert found.column_labels == ["a", "b", "c", "4"]
    assert PrivatizedCounts(REPORTS, 0.5).row_labels is None


def test_naive_counts_are_truncated_and_believed():
    for reports in (REPORTS, sp.csr_array(REPORTS), pd.DataFrame(REPORTS), np.ma.masked_array(REPORTS)):
        assert_same(NaiveCounts(reports), ExactCounts(np.maximum(REPORTS, 0)))
    mask = REPORTS < -3
    assert_same(NaiveCounts(REPORTS, mask), ExactCounts(np.maximum(REPORTS, 0), mask))
    assert NaiveCounts(pd.DataFrame(REPORTS, columns=list("wxyz"))).column_labels == list("wxyz")
    assert (NaiveCounts(REPORTS).kind, ExactCounts([[1]]).kind) == ("naive", "exact")
    assert PrivatizedCounts(REPORTS, 0.5).kind == "private"


@pytest.mark.parametrize("truncate", [False, True])
def test_a_release_brings_its_noise_level_and_its_labels(truncate):
    counts = np.random.default_rng(1).poisson(1.0, (3, 4))
    levels = [PrivacyLevel(1, 1), PrivacyLevel(1, 2), PrivacyLevel(3, 1)]
    labels = {"row_labels": list("abc"), "column_labels": list("wxyz")}
    release = simulate_release(counts, levels, np.random.default_rng(2), truncate, **labels)
    found = observations_of(release)
    np.testing.assert_array_equal(found.level_d, np.exp([-1.0, -0.5, -3.0]))
    assert_same(found, PrivatizedCounts(release.reports, release.alpha))
    assert found.row_labels == list("abc")
    assert found.column_labels == list("wxyz")
    naive = NaiveCounts(release)
    assert_same(naive, NaiveCounts(release.reports))
    assert naive.column_labels == list("wxyz")
    assert NaiveCounts(release, row_labels=list("def")).row_labels == list("def")


def test_a_sparse_and_a_signed_release_see_the_same():
    counts = np.random.default_rng(3).poisson(1.0, (3, 4))
    signed = simulate_release(counts, PrivacyLevel(1, 1), np.random.default_rng(4), truncate=False)
    positive = sp.csr_array(np.maximum(signed.reports, 0))
    sparse = Release(positive, PrivacyLevel(1, 1), truncated=True)
    assert_same(observations_of(signed), observations_of(sparse))
    assert observations_of(privatize(sp.csr_array(counts), PrivacyLevel(1, 1))).shape == (3, 4)


def test_observations_are_taken_as_they_are():
    found = PrivatizedCounts(REPORTS, 0.5)
    assert observations_of(found) is found


@pytest.mark.parametrize(
    "data", [REPORTS, REPORTS.tolist(), sp.csr_array(REPORTS), pd.DataFrame(REPORTS), None]
)
def test_reports_without_a_noise_level_are_refused(data):
    with pytest.raises(
        TypeError, match=rf"noise level.*PrivatizedCounts\(reports, alpha\).*{type(data).__name__}"
    ):
        observations_of(data)


def test_repr_tells_sizes_and_noise_but_no_report():
    assert repr(PrivatizedCounts(REPORTS, 0.5)) == "PrivatizedCounts(4 x 4, alpha=0.5)"
    assert repr(PrivatizedCounts(np.abs(REPORTS), ALPHA)) == "PrivatizedCounts(4 x 4, alpha from 0 to 0.9)"
    cells = np.linspace(0.1, 0.4, 16).reshape(4, 4)
    mask = REPORTS == 40
    assert (
        repr(PrivatizedCounts(REPORTS, cells, mask))
        == "PrivatizedCounts(4 x 4, alpha from 0.1 to 0.4, 1 masked)"
    )


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
        "reports must be whole numbers, got nan at index (1, 0)",
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
    (
        lambda: ExactCounts([[2**53 + 1]]),
        "counts must be at most 2^53 in size, got one that is not at index (0, 0)",
    ),
    (lambda: PrivatizedCounts([[1]], 1.0), "alpha must be in [0, 1), got 1.0"),
    (lambda: PrivatizedCounts([[1]], -0.1), "alpha must be in [0, 1), got -0.1"),
    (lambda: PrivatizedCounts([[1]], np.nan), "alpha must be in [0, 1), got nan"),
    (lambda: PrivatizedCounts([[1], [2]], [0.5, 2.0]), "alpha must be in [0, 1), got 2.0 at index (1,)"),
    (
        lambda: PrivatizedCounts([[1, 2]], [[0.5, -1.0]]),
        "alpha must be in [0, 1), got -1.0 at index (0, 1)",
    ),
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
    (
        lambda: PrivatizedCounts([[1, 2]], 0.5, [True, False]),
        "mask must have the shape of reports (1, 2), got (2,)",
    ),
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


def test_empty_rows_and_columns_are_data_like_any_other():
    reports = REPORTS.copy()
    reports[1], reports[:, 2] = 0, -3
    found = PrivatizedCounts(reports, 0.5)
    np.testing.assert_array_equal(exposures_of(found), dense_exposures(reports, 0.5))
    assert np.diff(found.indptr).tolist() == [2, 0, 0, 3]


def test_one_alpha_per_column_is_the_same_as_one_per_cell():
    rng = np.random.default_rng(5)
    reports, alpha = rng.integers(-2, 6, (4, 3)), np.array([[0.1, 0.5, 0.9]])
    by_column = PrivatizedCounts(reports, alpha)
    by_cell = PrivatizedCounts(reports, np.repeat(alpha, 4, axis=0))
    np.testing.assert_array_equal(by_column.level_e, by_cell.level_e)
    np.testing.assert_array_equal(by_column.level_e.reshape(4, 3)[2], alpha[0])


def test_a_release_is_held_once():
    counts = sp.random_array((60, 50), density=0.1, rng=np.random.default_rng(1))
    counts.data[:] = 3.0
    release = cv.privatize(sp.csr_array(counts).astype(int), cv.PrivacyLevel(1, 1))
    found = observations_of(release)
    assert np.shares_memory(found.reports, release.reports.data)
    assert np.shares_memory(found.columns, release.reports.indices)
    assert not release.reports.data.flags.writeable
    assert found.reports.flags.writeable  # so that kernels have one type of array to be compiled for
    own = release.reports.astype(np.int16)
    mine = PrivatizedCounts(own, release.alpha)
    own.data[:] = 7
    assert_same(mine, found)
    foreign = sp.csr_array(release.reports)
    foreign.data = np.frombuffer(foreign.data.tobytes(), dtype=np.int16)
    assert_same(PrivatizedCounts(foreign, release.alpha), found)


@pytest.mark.parametrize("alpha", [0.5, [0.0, 0.3, 0.6, 0.9], np.linspace(0.0, 0.9, 16).reshape(4, 4)])
def test_every_stored_entry_has_its_row_and_its_level(alpha):
    found = PrivatizedCounts(np.abs(REPORTS), alpha)
    levels = np.array(alpha)[:, None] if np.ndim(alpha) == 1 else np.array(alpha)
    levels = np.broadcast_to(levels, REPORTS.shape)
    dense = np.zeros(REPORTS.shape, dtype=int)
    dense[found.row_numbers, found.columns] = found.reports
    np.testing.assert_array_equal(dense, np.abs(REPORTS))
    np.testing.assert_array_equal(found.entry_levels, levels[found.row_numbers, found.columns])
    np.testing.assert_array_equal(np.broadcast_to(found.cell_level, REPORTS.shape), levels)
    assert found.stores_all == (np.ndim(alpha) == 2)


@pytest.mark.parametrize(
    ("data", "noisy"),
    [
        (ExactCounts([[1, 2]]), False),
        (NaiveCounts([[1, -2]]), False),
        (PrivatizedCounts([[1, 2]], 0.0), False),
        (PrivatizedCounts([[1, 2], [0, 1]], [0.0, 0.1]), True),
        (PrivatizedCounts([[1, 2], [0, 1]], [[0.0, 0.0], [0.0, 0.1]]), True),
    ],
)
def test_any_level_above_zero_is_noise(data, noisy):
    assert data.is_noisy == noisy
    assert data.noise is TWO_SIDED_GEOMETRIC


class OtherNoise(TwoSidedGeometricNoise):
    """The same noise with levels of another name and range."""

    level = "scale"
    levels_below = 5.0


def test_levels_are_called_and_bounded_as_the_noise_says():
    found = Observations([[1, 2]], 0.5, noise=OtherNoise())
    assert repr(found) == "Observations(1 x 2, scale=0.5)"
    with pytest.raises(ValueError, match=r"^scale must be in \[0, 5\), got 5\.0"):
        Observations([[1, 2]], 5.0, noise=OtherNoise())
