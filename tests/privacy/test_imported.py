"""What imported releases may hold, checked with the standard library and with NumPy alike."""

import math

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel, Release, ReleaseError, _npy
from countveil.privacy import mechanisms as m

NAN = math.nan


@pytest.fixture(params=["lists", "arrays"])
def made(request, monkeypatch):
    """Makes a release of lists, without NumPy, or of an array."""
    if request.param == "lists":
        monkeypatch.setattr(_npy, "optional", lambda name: None)
        return lambda reports, *more, **named: Release(reports, *more, **named)
    return lambda reports, *more, **named: Release(np.array(reports), *more, **named)


@pytest.mark.parametrize(
    ("reports", "mechanism", "said"),
    [
        ([[NAN, 12.0]], m.Rounding(3), "must not be missing, because rounding"),
        ([[0.5, 12.0]], m.Suppression(10), "whole numbers with suppression, got a fraction"),
        ([[NAN, 12.0], [NAN, 3.0]], [m.Suppression(10), m.RandomRounding(3)], "must not be missing"),
        ([[math.inf, 1.0]], m.Gaussian(1), "reports must be"),
        ([[NAN, 1.0]], m.Gaussian(1), "must not be missing"),
        ([[2.0, NAN]], m.TwoSidedGeometric(0.5), "must not be missing"),
    ],
)
def test_fractions_and_missing_reports_are_those_of_the_mechanism(made, reports, mechanism, said):
    with pytest.raises(ReleaseError, match=said):
        made(reports, mechanism, False, source="s")


def test_every_row_by_its_own_mechanism(made, tmp_path):
    each = [m.Suppression(10), m.Laplace(1), m.Thresholded(m.Gaussian(2), 4)]
    rows = [[NAN, 12.0], [-0.5, 3.25], [NAN, 4.5]]
    release = made(rows, each, False, source="s")
    release.save(tmp_path / "r.npz")
    found = Release.load(tmp_path / "r.npz")
    found.save(tmp_path / "again.npz")
    assert (tmp_path / "r.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    assert found.mechanism == tuple(each)
    values = [list(map(float, row)) for row in found.reports]
    np.testing.assert_array_equal(values, rows)


def test_files_with_numpy_and_without_have_the_same_bytes(monkeypatch, tmp_path):
    rows = [[NAN, 12.0], [0.0, 11.0]]
    Release(np.array(rows), m.Suppression(10), False, source="s").save(tmp_path / "a.npz")
    monkeypatch.setattr(_npy, "optional", lambda name: None)
    Release(rows, m.Suppression(10), False, source="s").save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("source", ["", " ", "two\nlines", "x" * 201, 3, "\u202e"])
def test_a_source_is_one_line_that_can_be_printed(source):
    with pytest.raises(ReleaseError, match="source must be"):
        Release([[2]], m.Rounding(2), False, source=source)


def test_who_vouches_is_said_of_imported_reports_alone():
    level = PrivacyLevel(1, 1)
    own, imported = Release([[2]], level, False), Release([[2]], level, False, source="Others, 2020")
    assert "vouches" not in own.describe()
    assert (
        "Imported from: Others, 2020. Whoever imported them vouches for the mechanism" in imported.describe()
    )
    assert "imported" in repr(imported)
    assert "imported from" in imported._repr_html_()
    assert own.source is None
    hidden = Release([[12]], m.Suppression(10), False, source="s")
    assert repr(hidden) == "<Release: 1 x 1 reports, imported, Suppression(10, shows_zero=True)>"
    assert "signed" not in hidden.describe() + hidden._repr_html_()
