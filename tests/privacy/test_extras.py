"""Exposures of cells in releases: which fit, how files hold them, and what is said of them; extras of none."""

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel, Release, ReleaseError, _format, _npy
from countveil.privacy._archive import Reader
from countveil.privacy._extras import NO_EXTRAS, Extras, ReleasedExposure, checked_exposure, exposure_in_words
from countveil.privacy._format import read
from countveil.privacy.mechanisms import Rounding

COUNTS = np.array([[5, 0, 10], [0, 15, 5]])
CELLS = (1.0, 2.5, 4.0, 3.0, 0.5, 1e6)


def release(exposure, **options):
    return Release(COUNTS, Rounding(5), False, source="a test", extras=Extras(exposure=exposure), **options)


@pytest.mark.parametrize(
    "exposure",
    [ReleasedExposure(CELLS, (2, 3)), ReleasedExposure((2.0, 3.0), (2, 1)), ReleasedExposure([1, 2, 3], (1, 3))],
)
def test_exposures_come_back_from_a_file(tmp_path, exposure):
    made = release(exposure)
    made.save(tmp_path / "a.npz")
    found = Release.load(tmp_path / "a.npz")
    assert found.extras.exposure.shape == exposure.shape
    assert found.extras.exposure.values.dtype == np.float64
    np.testing.assert_array_equal(found.extras.exposure.values, exposure.values)
    with pytest.raises(ValueError, match="read-only"):
        found.extras.exposure.values[0] = 1.0
    found.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert "Expected counts are proportional to a known exposure" in found.describe()
    np.testing.assert_array_equal(np.load(tmp_path / "a.npz")["exposure"], exposure.values)


def test_files_without_exposures_have_no_extras(tmp_path):
    release(None).save(tmp_path / "a.npz")
    assert Release.load(tmp_path / "a.npz").extras == NO_EXTRAS


def test_everything_else_may_go_with_exposures(tmp_path):
    counts, mask = COUNTS.copy(), np.zeros((2, 3), dtype=bool)
    mask[0, 1] = True
    for totals in ([((1,), (15, 20))], [((1,), (15, 20)), ((0,), (5, 15, 15))]):
        extras = Extras(mask=mask, totals=totals, exposure=ReleasedExposure(CELLS, (2, 3)))
        made = Release(counts, Rounding(5), False, source="a test", extras=extras)
        made.save(tmp_path / "a.npz")
        found = Release.load(tmp_path / "a.npz")
        assert found.extras.totals == made.extras.totals
        np.testing.assert_array_equal(found.extras.mask, mask)


@pytest.mark.parametrize(
    ("exposure", "said"),
    [
        (ReleasedExposure(CELLS, (3, 2)), r"exposure must have a shape that broadcasts to \(2, 3\), got \(3, 2\)"),
        (ReleasedExposure(CELLS[:3], (2, 3)), "exposure must be 6 numbers, one for each of"),
        (ReleasedExposure((1.0, 0.0), (2, 1)), "exposure must be positive and finite, got 0.0 in entry 1"),
        (ReleasedExposure((1.0, np.nan), (2, 1)), "exposure must be positive and finite, got nan in entry 1"),
        (ReleasedExposure((1.0, np.inf), (2, 1)), "exposure must be positive and finite"),
    ],
)
@pytest.mark.parametrize("numpy", [True, False])
def test_other_exposures_are_refused(exposure, said, numpy, monkeypatch):
    if not numpy:
        monkeypatch.setattr(_npy, "optional", lambda name: None)
    with pytest.raises(ReleaseError, match=said):
        checked_exposure(exposure, (2, 3))


def test_without_numpy_exposures_are_a_tuple(monkeypatch):
    monkeypatch.setattr(_npy, "optional", lambda name: None)
    assert checked_exposure(ReleasedExposure([1, 2], (2, 1)), (2, 3)).values == (1.0, 2.0)


def test_only_imported_tables_have_them():
    given = ReleasedExposure(CELLS, (2, 3))
    with pytest.raises(ReleaseError, match="exposure must come with imported reports"):
        Release(COUNTS, PrivacyLevel(1, 1), False, extras=Extras(exposure=given))
    pairs = Extras(exposure=ReleasedExposure((2.0, 3.0), (2, 1)))
    with pytest.raises(ReleaseError, match="cannot have an exposure"):
        Release([[0, 5], [5, 0]], Rounding(5), False, source="a test", directed=True, extras=pairs)


def test_a_file_with_another_shape_of_exposures_is_refused(tmp_path, monkeypatch):
    release(ReleasedExposure(CELLS, (2, 3))).save(tmp_path / "a.npz")
    monkeypatch.setattr(_format, "exposure_fits", lambda own, shape: False)
    with pytest.raises(
        ReleaseError, match=r"must have an exposure whose shape broadcasts to \[2, 3\], .* got \[2, 3\]"
    ):
        read(Reader(tmp_path / "a.npz"))


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((2, 3, 4), "a known exposure of each cell, such as its population. "),
        ((2, 3, 1), "a known exposure, such as a population, which varies along axes 0 and 1. "),
        ((1, 1, 4), "a known exposure, such as a population, which varies along axis 2. "),
        ((1, 1, 1), "a known exposure, such as a population, the same for all cells. "),
    ],
)
def test_exposures_are_said_to_be_of_cells_or_to_vary_along_axes(shape, said):
    given = ReleasedExposure(np.ones(shape).ravel(), shape)
    assert exposure_in_words(given) == f"Expected counts are proportional to {said}"


def test_most_releases_have_none():
    assert Release(COUNTS, PrivacyLevel(1, 1), False).extras is NO_EXTRAS
    assert NO_EXTRAS.cells_in_words(2) == NO_EXTRAS.rows_in_words(None, None) == ""
    assert NO_EXTRAS.described(2) == NO_EXTRAS.arrays(2) == {}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a",), "2 strings or None"),
        ((None, None), "one of them a string"),
        ((1, "b"), "got 1"),
        (("", "b"), "got ''"),
        (("a\0", "b"), "in entry 0"),
        ("ab", "got 'ab'"),
    ],
)
def test_names_that_no_axis_has_are_refused(names, said):
    with pytest.raises(ReleaseError, match=f"names of axes must be.*{said}"):
        Release(COUNTS, Rounding(5), False, source="a test", extras=Extras(axis_names=names))


def test_names_of_axes_in_a_file_are_checked(tmp_path):
    Release(COUNTS, Rounding(5), False, source="a test", extras=Extras(axis_names=["a", None])).save(tmp_path / "a.npz")
    found = Release.load(tmp_path / "a.npz")
    assert found.extras.axis_names == ("a", None)
    assert found.schema_hash == Release(COUNTS, Rounding(5), False, source="a test").schema_hash
