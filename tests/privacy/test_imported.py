"""What imported releases may hold, checked with the standard library and with NumPy alike."""

import json
import math
import zipfile

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel, Release, ReleaseError, _archive, _npy
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


def forged(path, change):
    """Writes an imported release, with its description and its reports changed, and seals it again."""
    rows = np.array([[NAN, 12.0], [0.0, 11.0]])
    Release(rows, m.Suppression(10), False, source="s").save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    meta = json.loads(members["meta.json"])
    members["reports.npy"] = change(meta, members["reports.npy"]) or members["reports.npy"]
    members["meta.json"] = json.dumps(meta, sort_keys=True, separators=(",", ":")).encode()
    _archive.write(path, members)


def reports(*values):
    return _npy.encode_real(list(values), (2, 2))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda meta, _: meta.pop("source") and None, "must hold arrays as described"),
        (lambda meta, _: meta.update(source=""), "source must be"),
        (lambda meta, _: meta.update(source="a\nb"), "source must be one line"),
        (lambda meta, _: meta.update(source=3), "source of type str, got int"),
        (lambda meta, _: meta.update(source=None), "source of type str"),
        (lambda meta, _: reports(0.5, 12, 0, 11), "whole numbers with suppression"),
        (lambda meta, _: reports(math.inf, 12, 0, 11), "must be finite"),
        (lambda meta, _: meta.update(mechanisms=[m.Rounding(3).to_json()]), "must not be missing"),
        (lambda meta, _: meta.update(truncated=True) or reports(-12, 12, 0, 11), "must not be negative"),
        (lambda meta, _: reports(0, 12, 0, 11)[:-1], "of shape (2, 2), got another size"),
        (lambda meta, content: content.replace(b"<f8", b">f8"), "must hold arrays as described"),
        (lambda meta, content: content.replace(b"<f8", b"|O8"), "must hold arrays as described"),
    ],
)
def test_a_forged_file_is_refused_by_name(tmp_path, change, said):
    forged(tmp_path / "a.npz", change)
    with pytest.raises(ReleaseError, match=r"^release file .*a\.npz must ") as caught:
        Release.load(tmp_path / "a.npz")
    assert said in str(caught.value)


def test_every_missing_report_has_the_same_bits(tmp_path):
    one, other = np.array([[NAN, 12.0]]), np.array([[0.0, 12.0]])
    other.view(np.int64)[0, 0] = -1  # another NaN
    for values, name in ((one, "a"), (other, "b")):
        Release(values, m.Suppression(10), False, source="s").save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_owners_release_states_no_source(tmp_path):
    Release([[2]], PrivacyLevel(1, 1), False).save(tmp_path / "r.npz")
    with zipfile.ZipFile(tmp_path / "r.npz") as archive:
        assert b"source" not in archive.read("meta.json")
