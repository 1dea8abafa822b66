"""Exact totals beside imported reports: which a release may state, in memory and in its file."""

import json
import math
import zipfile

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel, Release, ReleaseError, _archive, _npy
from countveil.privacy import mechanisms as m
from countveil.privacy._totals import KnownTotals

HIDDEN = np.array([[math.nan, 12.0, 0.0], [11.0, math.nan, math.nan]])


def made(totals=((1,), (15, None)), source="Others", **options):
    return Release(HIDDEN, m.Suppression(10), False, source=source, totals=totals, **options)


@pytest.mark.parametrize("totals", [((1,), (15, None)), ((0,), (12, None, 2**53 - 1)), ((0, 1), (40,))])
def test_totals_are_kept_in_the_file_with_numpy_and_without(totals, tmp_path, monkeypatch):
    made(totals).save(tmp_path / "r.npz")
    found = Release.load(tmp_path / "r.npz")
    assert found.totals == KnownTotals(*totals)
    monkeypatch.setattr(_npy, "optional", lambda name: None)
    again = Release.load(tmp_path / "r.npz")
    assert again.totals == found.totals
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "r.npz").read_bytes()


def test_a_release_says_how_many_totals_it_has():
    assert "One exact total was published beside them, a sum over axis 1 (1 more are not known)." in (
        made().describe()
    )
    assert (
        "3 exact totals were published beside them, sums over axis 0." in made(((0,), (1, 2, 3))).describe()
    )
    assert "total" not in made(None).describe()


@pytest.mark.parametrize(
    ("totals", "rule"),
    [
        (((2,), (1, 2)), "axes from 0 to 1"),
        (((1, 0), (1,)), "rising"),
        (((), ()), "rising"),
        (((1, 1), (1, 1)), "rising"),
        (((True,), (1, 1)), "axes from 0"),
        (((1,), (1, 2, 3)), "must be 2, one for each cell that is left, got 3"),
        (((1,), (1, -2)), "whole numbers from 0"),
        (((1,), (1, 2.0)), "whole numbers from 0"),
        (((1,), (1, 2**53)), "whole numbers from 0"),
        (((1,), (None, None)), "known, at least one"),
    ],
)
def test_totals_that_do_not_fit_are_refused(totals, rule):
    with pytest.raises(ReleaseError, match=rule):
        made(totals)


def test_exact_totals_break_the_promise_of_reports_of_ones_own():
    with pytest.raises(ReleaseError, match="exact ones break the promise of noise"):
        Release([[2, 3]], PrivacyLevel(1, 1), False, totals=((1,), (5,)))


def test_a_network_has_no_totals():
    with pytest.raises(ReleaseError, match="of no network"):
        Release(
            [[0, 3], [0, 0]], m.Rounding(3), False, directed=True, source="s", totals=((1,), (3, 0))
        )  # fmt: skip


def changed(path, meta=None, drop=None, member=None):
    """The file with another description or other totals, under a seal that holds."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    if meta is not None:
        known = json.loads(content["meta.json"]) | meta
        content["meta.json"] = json.dumps(known, sort_keys=True, separators=(",", ":")).encode()
    if drop is not None:
        del content[drop]
    if member is not None:
        content["totals.npy"] = member
    _archive.write(path, content)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"meta": {"totals": [0]}}, "must hold totals of shape \\(3,\\), got another size"),
        ({"meta": {"totals": [5]}}, "axes from 0 to 1"),
        ({"meta": {"totals": [[1]]}}, "axes from 0 to 1"),
        ({"meta": {"totals": 1}}, "totals of type list"),
        ({"drop": "totals.npy"}, "must hold"),
        ({"member": _npy.encode([15, -2], (2,))}, "whole numbers from 0"),
        ({"member": _npy.encode([-1, -1], (2,))}, "known, at least one"),
        ({"member": _npy.encode([1, 2, 3], (3,))}, "another size"),
    ],
)
def test_files_that_were_changed_are_refused_in_words(change, rule, tmp_path):
    path = tmp_path / "r.npz"
    made().save(path)
    changed(path, **change)
    with pytest.raises(ReleaseError, match=rule):
        Release.load(path)


def test_a_byte_of_the_totals_that_was_changed_breaks_the_seal(tmp_path):
    path = tmp_path / "r.npz"
    made().save(path)
    content = bytearray(path.read_bytes())
    place = content.rfind(b"totals.npy", 0, content.find(b"PK\x01\x02"))
    content[place + 10 + 128] ^= 1
    path.write_bytes(content)
    with pytest.raises(ReleaseError):
        Release.load(path)
