"""Masks and mechanisms by cell of imported releases: in memory, in files, with NumPy and without."""

import json
import math
import zipfile

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel, Release, ReleaseError, _archive, _npy
from countveil.privacy import mechanisms as m
from countveil.privacy._cells import ByCell
from countveil.privacy._extras import Extras

NAN = math.nan
ROWS = [[NAN, 12.5, 0.0], [11.0, -0.25, 15.0]]
MASK = [[False, False, True], [False, False, False]]
KNOWN = (m.Suppression(10), m.Laplace(1), m.RandomRounding(3))
BY_COLUMN = ByCell(KNOWN, (0, 1, 2), (1, 3))
BY_CELL = ByCell(KNOWN, (0, 1, 1, 0, 1, 2), (2, 3))


def release(mechanism=BY_COLUMN, mask=MASK, arrays=True, **options):
    rows = np.array(ROWS) if arrays else ROWS
    return Release(rows, mechanism, False, source="s", extras=Extras(mask=mask), **options)


@pytest.mark.parametrize("mechanism", [BY_COLUMN, BY_CELL, [m.Thresholded(m.Gaussian(9), -9), m.Laplace(1)]])
def test_files_hold_them_with_numpy_and_without(mechanism, tmp_path, monkeypatch):
    release(mechanism).save(tmp_path / "a.npz")
    found = Release.load(tmp_path / "a.npz")
    np.testing.assert_array_equal(found.extras.mask, MASK)
    if isinstance(mechanism, ByCell):
        assert (found.mechanism.mechanisms, found.mechanism.shape) == (mechanism.mechanisms, mechanism.shape)
        assert tuple(found.mechanism.of_cell) == mechanism.of_cell
    with pytest.raises(ValueError, match="read-only"):
        found.extras.mask[0, 0] = True
    found.save(tmp_path / "again.npz")
    monkeypatch.setattr(_npy, "optional", lambda name: None)
    release(mechanism, arrays=False).save(tmp_path / "b.npz")
    again = Release.load(tmp_path / "a.npz")
    assert again.extras.mask == MASK
    again.save(tmp_path / "c.npz")
    assert len({(tmp_path / f"{name}.npz").read_bytes() for name in ("a", "b", "c", "again")}) == 1


def test_a_mask_of_nothing_is_none():
    plain = Release([[0.5]], m.Laplace(1), False, source="s", extras=Extras(mask=[[False]]))
    assert plain.extras.mask is None


def test_a_release_says_so():
    said = release().describe()
    assert "1 cell was never reported, for reasons that have nothing to do with their counts." in said
    assert "Cells have different mechanisms; what follows is said of the least protected." in said
    assert repr(release()) == "<Release: 2 x 3 reports, imported, mechanisms by cell>"
    assert "never reported" not in release(mask=None).describe()
    assert repr(BY_COLUMN).startswith("ByCell(Suppression(10")
    for name in ("levels", "alpha", "epsilon", "precision"):
        with pytest.raises(ReleaseError, match="got of mechanisms by cell"):
            getattr(release(), name)


@pytest.fixture(params=[True, False])
def numpy_or_not(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(_npy, "optional", lambda name: None)
    return request.param


@pytest.mark.parametrize(
    ("mechanism", "mask", "rule"),
    [
        (
            BY_COLUMN,
            [[True, False, False], [False] * 3],
            r"reports must be 0 where they are masked, got nan at index \(0, 0\)",
        ),
        (BY_COLUMN, [[False] * 3], "mask must be booleans of shape"),
        (
            BY_COLUMN,
            [[False] * 3, [False] * 2],
            r"mask must be booleans of shape \(2, 3\), got \[\[False, False, False\]",
        ),
        (
            BY_COLUMN,
            [[0] * 3, [0] * 3],
            r"mask must be booleans of shape \(2, 3\), got (int64 of shape \(2, 3\)|\[\[0, 0, 0\])",
        ),
        (BY_COLUMN, True, r"mask must be booleans of shape \(2, 3\), got (bool of shape \(\)|True)"),
        (BY_COLUMN, [[True] * 3] * 2, "mask must leave a report"),
        (ByCell(KNOWN, (0, 1, 2), (3, 1)), None, "broadcasts to"),
        (ByCell(KNOWN, (0, 1, 2), (3,)), None, "broadcasts to"),
        (ByCell(KNOWN, (0, 1), (1, 3)), None, "must be 3, one for each"),
        (ByCell(KNOWN, (0, 2, 1), (1, 3)), None, r"in order of first use, .* got \[0, 2, 1\]"),
        (ByCell(KNOWN, (0, 1, 1), (1, 3)), None, "in order of first use"),
        (ByCell(KNOWN, (0, 1, -1), (1, 3)), None, "in order of first use"),
        (ByCell(KNOWN, (0, 1, 0.5), (1, 3)), None, "must be numbered by whole numbers, got (float64|0.5 in entry 2)"),
        (ByCell(KNOWN[:1], (0, 0, 0), (1, 3)), None, "two or more different mechanisms, got 1"),
        (ByCell((*KNOWN[:2], KNOWN[0]), (0, 1, 2), (1, 3)), None, "different mechanisms, got Suppression.* twice"),
        (ByCell((*KNOWN[:2], 3), (0, 1, 2), (1, 3)), None, "different mechanisms, got 3 in entry 2"),
        (ByCell(KNOWN[1:], (0, 1, 1), (1, 3)), None, "must not be missing, because Laplace"),
        (ByCell(KNOWN[::2], (0, 1, 1), (1, 3)), None, "whole numbers with random rounding"),
    ],
)
def test_what_does_not_fit_is_refused(mechanism, mask, rule, numpy_or_not):
    with pytest.raises(ReleaseError, match=rule):
        release(mechanism, mask, arrays=numpy_or_not)


def test_they_are_of_imported_tables_alone():
    level = PrivacyLevel(1, 1)
    with pytest.raises(ReleaseError, match="mask must be of imported"):
        Release([[0, 1]], level, False, extras=Extras(mask=[[True, False]]))
    two = ByCell((level.mechanism, PrivacyLevel(1, 2).mechanism), (0, 1), (1, 2))
    with pytest.raises(ReleaseError, match="unless reports are imported"):
        Release([[0, 1]], two, False)
    with pytest.raises(ReleaseError, match="of networks"):
        Release(
            [[0, 3], [0, 0]],
            KNOWN[2],
            False,
            source="s",
            directed=True,
            extras=Extras(mask=[[True, False], [False] * 2]),
        )


def forged(path, change):
    """Writes a release with its description and its members changed, and seals it again."""
    release(BY_CELL).save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    meta = json.loads(members["meta.json"])
    change(meta, members)
    members["meta.json"] = json.dumps(meta, sort_keys=True, separators=(",", ":")).encode()
    _archive.write(path, members)


def put(**values):
    return lambda meta, members: meta.update(values)


def member(name, *values):
    return lambda meta, members: members.update({f"{name}.npy": _npy.encode(list(values), (len(values),))})


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (put(masked=2), "masked_cells of shape (2,) in 132 or 136 or 144 bytes, got 130 bytes"),
        (put(masked=0), "some but not all of 6, got 0"),
        (put(masked=6), "some but not all of 6, got 6"),
        (put(masked=True), "masked of type int"),
        (put(masked=-1), "some but not all of 6, got -1"),
        (put(mechanism_shape=[1, 3]), "must hold arrays as described"),
        (put(mechanism_shape=[6, 1]), "broadcast to its shape, [2, 3], got [6, 1]"),
        (put(mechanism_shape=[2.0, 3]), "broadcast to its shape"),
        (put(mechanism_shape=[2]), "broadcast to its shape"),
        (put(mechanism_shape=6), "mechanism_shape of type list"),
        (put(mechanism_per_row=True), "by cell or by row, got both"),
        (member("masked_cells", 6), "numbered from 0 to 5, rising, got [6]"),
        (member("masked_cells", -1), "numbered from 0 to 5"),
        (member("masked_cells", 1), "reports must be 0 where they are masked, got 12.5 at index (0, 1)"),
        (member("mechanism_of_cell", 0, 1, 1, 0, 1, 3), "in order of first use"),
        (member("mechanism_of_cell", 0, 2, 1, 0, 1, 2), "in order of first use"),
        (member("mechanism_of_cell", 0, 0, 1, 0, 1, 2), "whole numbers with suppression, got 12.5"),
        (
            lambda meta, members: [
                meta.pop("masked"),
                meta.pop("mechanism_shape"),
                meta.update(mechanisms=meta["mechanisms"][:1]),
            ],
            "must hold",
        ),
        (lambda meta, members: meta.pop("masked"), "must hold"),
        (lambda meta, members: members.pop("masked_cells.npy"), "must hold"),
        (lambda meta, members: meta.pop("source"), "must hold arrays as described"),
    ],
)
def test_a_forged_file_is_refused_by_name(tmp_path, change, rule):
    forged(tmp_path / "a.npz", change)
    with pytest.raises(ReleaseError, match=r"^release file .*a\.npz must ") as caught:
        Release.load(tmp_path / "a.npz")
    assert rule in str(caught.value)


def test_masked_cells_rise(tmp_path):
    rows = np.zeros((1, 3))
    Release(rows, m.Laplace(1), False, source="s", extras=Extras(mask=[[True, True, False]])).save(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for cells in ([1, 0], [1, 1]):
        members["masked_cells.npy"] = _npy.encode(cells, (2,))
        _archive.write(tmp_path / "a.npz", members)
        with pytest.raises(ReleaseError, match=rf"rising, got \[1, {cells[1]}\]"):
            Release.load(tmp_path / "a.npz")
