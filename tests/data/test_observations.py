from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import countveil as cv
from countveil.data.observations import ExactCounts, NaiveCounts, Observations, PrivatizedCounts
from countveil.data.reports import observations_of
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from countveil.laws.noise.two_sided_geometric.noise import TwoSidedGeometricNoise
from tests.data.same import ALPHA, PARTS, REPORTS, assert_same
from tests.joint import dense_exposures, exposures_of


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
    np.testing.assert_allclose(exposures_of(found), dense_exposures(reports, dense_alpha, mask), rtol=0, atol=1e-15)
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


def test_large_reports_are_kept_whole():
    for largest, dtype in ((2**15 - 1, np.int16), (2**15, np.int32), (2**31 - 1, np.int32), (2**31, np.int64)):
        for reports in ([[largest, 1]], sp.csr_array([[largest, 1]])):
            found = PrivatizedCounts(reports, 0.5)
            assert found.reports.dtype == dtype
            assert found.reports.tolist() == [largest, 1]
    found = PrivatizedCounts([[2**53, 1]], 0.5)
    assert found.reports.tolist() == [2**53, 1]


def test_naive_counts_are_truncated_and_believed():
    for reports in (REPORTS, sp.csr_array(REPORTS), pd.DataFrame(REPORTS), np.ma.masked_array(REPORTS)):
        assert_same(NaiveCounts(reports), ExactCounts(np.maximum(REPORTS, 0)))
    mask = REPORTS < -3
    assert_same(NaiveCounts(REPORTS, mask), ExactCounts(np.maximum(REPORTS, 0), mask))
    assert NaiveCounts(pd.DataFrame(REPORTS, columns=list("wxyz"))).column_labels == list("wxyz")
    assert (NaiveCounts(REPORTS).kind, ExactCounts([[1]]).kind) == ("naive", "exact")
    assert PrivatizedCounts(REPORTS, 0.5).kind == "private"


def test_observations_are_taken_as_they_are():
    found = PrivatizedCounts(REPORTS, 0.5)
    assert observations_of(found) is found


@pytest.mark.parametrize("data", [REPORTS, REPORTS.tolist(), sp.csr_array(REPORTS), pd.DataFrame(REPORTS), None])
def test_reports_without_a_noise_level_are_refused(data):
    with pytest.raises(TypeError, match=rf"noise level.*PrivatizedCounts\(reports, alpha\).*{type(data).__name__}"):
        observations_of(data)


def test_repr_tells_sizes_and_noise_but_no_report():
    assert repr(PrivatizedCounts(REPORTS, 0.5)) == "PrivatizedCounts(4 x 4, alpha=0.5)"
    assert repr(PrivatizedCounts(np.abs(REPORTS), ALPHA)) == "PrivatizedCounts(4 x 4, alpha from 0 to 0.9)"
    cells = np.linspace(0.1, 0.4, 16).reshape(4, 4)
    mask = REPORTS == 40
    assert repr(PrivatizedCounts(REPORTS, cells, mask)) == "PrivatizedCounts(4 x 4, alpha from 0.1 to 0.4, 1 masked)"


def test_empty_rows_and_columns_are_data_like_any_other():
    reports = REPORTS.copy()
    reports[1], reports[:, 2] = 0, -3
    found = PrivatizedCounts(reports, 0.5)
    np.testing.assert_array_equal(exposures_of(found), dense_exposures(reports, 0.5))
    assert np.diff(found.indptr).tolist() == [2, 0, 0, 3]


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


PLACES = np.array([2, 0, -1, 3, 1])
"""Of an axis of four entries: another order, and a masked one in the third place."""


def moved(values, axis, missing=0):
    """The entries of an axis at ``PLACES``."""
    found = np.take(values, PLACES, axis)
    found[(slice(None),) * axis + (2,)] = missing
    return found


def signed(shape):
    """Reports, some of them negative."""
    return np.random.default_rng(4).integers(-3, 6, shape)


STORED = "indptr", "columns", "reports", "level_d", "level_e", "exposure_d"
LEVELS = {
    "one": lambda shape: 0.3,
    "row": lambda shape: np.linspace(0.1, 0.4, shape[0]).reshape(-1, *[1] * (len(shape) - 1)),
    "cell": lambda shape: np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape),
}


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", list(LEVELS))
@pytest.mark.parametrize("sparse", [False, True])
def test_steps_at_other_places_are_those_of_data_read_in_that_order(axis, kind, sparse):
    shape = [(4, 3, 2), (3, 4, 2), (3, 2, 4)][axis]
    values, level = signed(shape), LEVELS[kind](shape)
    hidden = values == 5
    after = moved(hidden, axis, True)
    later = moved(np.broadcast_to(level, shape), axis)
    near = (slice(None),) * axis
    later[(*near, 2)] = later[(*near, 1)]  # a masked entry has the level of the one before
    if kind != "cell":
        later = later[:, :1, :1]
    made = sp.coo_array if sparse else np.asarray
    found = cv.PrivatizedCounts(made(values), level, mask=hidden).with_steps(axis, PLACES, list("vwxyz"))
    wanted = cv.PrivatizedCounts(made(moved(values, axis)), later, mask=after)
    assert found.mode_shape == wanted.mode_shape
    assert found.labels[axis] == list("vwxyz")
    for name in ("shape", *STORED):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    below = [each.toarray() if sp.issparse(each) else each for each in (found.below_zero, wanted.below_zero)]
    np.testing.assert_array_equal(*below)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", list(LEVELS))
@pytest.mark.parametrize("sparse", [False, True])
def test_signed_and_truncated_reports_are_stored_alike(kind, sparse, masked):
    """So every method finds the same: the sizes of negative reports are all that differs."""
    values, made = signed((6, 5)), sp.coo_array if sparse else np.asarray
    one, other = (
        cv.PrivatizedCounts(made(each), LEVELS[kind](values.shape), mask=values == 5 if masked else None)
        for each in (values, np.maximum(values, 0))
    )
    assert (one.below_zero.sum(), other.below_zero) == (-np.minimum(values, 0).sum(), None)
    assert vars(one).keys() == vars(other).keys()
    for name in STORED:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("kind", list(LEVELS))
def test_what_is_under_a_mask_is_not_stored(kind):
    """So every method finds the same, whatever stands there."""
    values, level = np.abs(signed((6, 5))), LEVELS[kind]((6, 5))
    mask = values == 5
    data = cv.PrivatizedCounts(values, level, mask)
    alike = [np.where(mask, value, values) for value in (-(10**9), np.nan)]
    alike += [sp.csr_array(np.where(mask, value, values)) for value in (0, 2**40)]
    for each in alike:
        found = cv.PrivatizedCounts(each, level, mask)
        assert found.below_zero is data.below_zero is None
        for name in STORED:
            np.testing.assert_array_equal(getattr(found, name), getattr(data, name), err_msg=name)
    mask[np.unravel_index(mask.argmax(), mask.shape)] = False
    assert not np.array_equal(cv.PrivatizedCounts(values, level, mask).reports, data.reports)


@pytest.mark.parametrize("part", ["engines", "inference", "kernels", "laws/counts", "models", "selection"])
def test_what_fits_never_reads_sizes_of_negative_reports(part):
    files = list((Path(cv.__file__).parent / part).rglob("*.py"))
    assert files
    assert [path.name for path in files if "below_zero" in path.read_text(encoding="utf-8")] == []


def test_offsets_of_moved_steps_go_with_them():
    data = cv.ExactCounts(np.ones((4, 4), int), row_offset=[1.0, 2.0, 4.0, 8.0], column_offset=[1.0, 2.0, 4.0, 8.0])
    for axis, name in ((0, "prior_scale_d"), (1, "prior_scale_v")):
        found = data.with_steps(axis, PLACES, list("vwxyz"))
        np.testing.assert_array_equal(1 / getattr(found, name), [4.0, 1.0, 1.0, 8.0, 2.0])
