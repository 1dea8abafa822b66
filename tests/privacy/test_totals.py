"""Exact totals beside imported reports: which a release may state, in memory and in its file."""

import json
import math
import zipfile

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel, Release, ReleaseError, _archive, _npy
from countveil.privacy import mechanisms as m
from countveil.privacy._extras import Extras
from countveil.privacy._totals import ReleasedTotals

HIDDEN = np.array([[math.nan, 12.0, 0.0], [11.0, math.nan, math.nan]])


def made(totals=((1,), (15, None)), source="Others", **options):
    return Release(
        HIDDEN,
        m.Suppression(10),
        False,
        source=source,
        extras=Extras(totals=None if totals is None else [totals]),
        **options,
    )


@pytest.mark.parametrize("totals", [((1,), (15, None)), ((0,), (12, None, 2**53 - 1)), ((0, 1), (40,))])
def test_totals_are_kept_in_the_file_with_numpy_and_without(totals, tmp_path, monkeypatch):
    made(totals).save(tmp_path / "r.npz")
    found = Release.load(tmp_path / "r.npz")
    assert found.extras.totals == (ReleasedTotals(*totals),)
    monkeypatch.setattr(_npy, "optional", lambda name: None)
    again = Release.load(tmp_path / "r.npz")
    assert again.extras.totals == found.extras.totals
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "r.npz").read_bytes()


def test_a_release_says_how_many_totals_it_has():
    said = "Totals were published alongside them: 1 exact total, sum over axis 1 (1 more are not known)."
    assert said in made().describe()
    assert "3 exact totals, sums over axis 0." in made(((0,), (1, 2, 3))).describe()
    assert "total" not in made(None).describe()


@pytest.mark.parametrize(
    ("totals", "rule"),
    [
        (((2,), (1, 2)), r"axes from 0 to 1, rising, got \(2,\)"),
        (((1, 0), (1,)), r"rising, got \(1, 0\)"),
        (((), ()), "rising"),
        (((1, 1), (1, 1)), "rising"),
        (((True,), (1, 1)), "axes from 0"),
        (((1,), (1, 2, 3)), "must be 2, one for each cell that remains, got 3"),
        (((1,), (1, -2)), "whole numbers from 0 .* got -2 in entry 1"),
        (((1,), (1, 2.0)), "whole numbers from 0 .* got 2.0 in entry 1"),
        (((1,), (1, 2**53)), "whole numbers from 0"),
        (((1,), (None, None)), "at least one total must be known"),
    ],
)
def test_totals_that_do_not_fit_are_refused(totals, rule):
    with pytest.raises(ReleaseError, match=rule):
        made(totals)


def test_exact_totals_break_the_promise_of_reports_of_ones_own():
    with pytest.raises(ReleaseError, match="exact ones break the promise of noise"):
        Release([[2, 3]], PrivacyLevel(1, 1), False, extras=Extras(totals=[((1,), (5,))]))


def test_a_network_has_no_totals():
    with pytest.raises(ReleaseError, match="of networks and of studies in waves cannot have totals"):
        Release(
            [[0, 3], [0, 0]], m.Rounding(3), False, directed=True, source="s", extras=Extras(totals=[((1,), (3, 0))])
        )  # fmt: skip


EXACT = {"over": [1], "groups": False, "labels": None, "mechanism": None, "size": 2}


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
        content["totals_0.npy"] = member
    _archive.write(path, content)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"meta": {"totals": [EXACT | {"over": [0]}]}}, r"as cells that are left, got 2 over \[0\] in family 0"),
        ({"meta": {"totals": [EXACT | {"over": [0], "size": 3}]}}, r"totals_0 of shape \(3,\) .* got 132 bytes"),
        ({"meta": {"totals": [EXACT | {"over": [5]}]}}, "axes from 0 to 1"),
        ({"meta": {"totals": [1]}}, "must describe every family .* got 1 in family 0"),
        ({"meta": {"totals": 1}}, "totals of type list"),
        ({"drop": "totals_0.npy"}, "must hold"),
        ({"member": _npy.encode([15, -2], (2,))}, "whole numbers from 0"),
        ({"member": _npy.encode([-1, -1], (2,))}, "at least one total must be known"),
        (
            {"member": _npy.encode([1, 2, 3], (3,))},
            r"totals_0 of shape \(2,\) in 132 or 136 or 144 bytes, got 134 bytes",
        ),
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
    place = content.rfind(b"totals_0.npy", 0, content.find(b"PK\x01\x02"))
    content[place + 12 + 128] ^= 1
    path.write_bytes(content)
    with pytest.raises(ReleaseError):
        Release.load(path)


FAMILIES = [
    ((1,), (15, None)),
    ((0,), (-3, 14, None), m.DiscreteGaussian(2)),
    ((0,), (0.5, 14.0, -2.0), m.Gaussian(2)),
    (None, (20, None), m.Suppression(10), [0, 0, 1, 1, -1, -1], ("north", "south")),
    (None, (30, 9), m.Rounding(3), [1, 0, -1, 1, 0, -1], None),
    ((0, 1), (40,)),
]


def of_families(families=FAMILIES, **extras):
    return Release(HIDDEN, m.Suppression(10), False, source="Others", extras=Extras(totals=families, **extras))


def plain(totals):
    """Families with groups as tuples, for comparisons."""
    return tuple(each._replace(groups=None if each.groups is None else tuple(map(int, each.groups))) for each in totals)


def test_several_families_come_back_from_the_file_with_numpy_and_without(tmp_path, monkeypatch):
    made_here = of_families()
    made_here.save(tmp_path / "r.npz")
    found = Release.load(tmp_path / "r.npz")
    wanted = tuple(ReleasedTotals(*family) for family in FAMILIES)
    wanted = tuple(each._replace(groups=None if each.groups is None else tuple(each.groups)) for each in wanted)
    assert plain(found.extras.totals) == plain(made_here.extras.totals) == wanted
    assert found.describe() == made_here.describe()
    monkeypatch.setattr(_npy, "optional", lambda name: None)
    again = Release.load(tmp_path / "r.npz")
    assert again.extras.totals == wanted
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "r.npz").read_bytes()


def test_a_file_describes_one_exact_family_as_it_does_others(tmp_path):
    made().save(tmp_path / "r.npz")
    stated = json.loads(zipfile.ZipFile(tmp_path / "r.npz").read("meta.json"))
    assert stated["totals"] == [EXACT]


def test_a_file_may_hold_families_and_masked_cells(tmp_path):
    mask = np.array([[False, False, True], [False] * 3])
    of_families(mask=mask).save(tmp_path / "r.npz")
    found = Release.load(tmp_path / "r.npz")
    assert len(found.extras.totals) == len(FAMILIES)
    np.testing.assert_array_equal(found.extras.mask, mask)


def test_a_release_says_what_each_family_is_of():
    said = of_families().describe()
    assert "1 exact total, sum over axis 1 (1 more are not known); 2 totals with discrete Gaussian noise" in said
    assert "1 total with suppression of 1 to 9, sum over groups of cells (1 more are hidden)" in said
    assert "does not protect exact totals" in said
    assert "exact" not in of_families(FAMILIES[1:2]).describe()


@pytest.mark.parametrize(
    ("family", "rule"),
    [
        ((None, (1,)), "over axes or over groups, got neither"),
        (((1,), (1, 2), None, [0] * 6), "over axes or over groups, got both"),
        (((1,), (1, 2), "rounded"), "must be exact or have a mechanism, got str"),
        (((1,), (1.5, 2), m.Rounding(3)), "whole numbers with rounding, got 1.5 in entry 0"),
        (((1,), (math.inf, 2), m.Gaussian(3)), "numbers below 2\\^53 .* got inf in entry 0"),
        (((1,), (None, None), m.Rounding(3)), "at least one total must be known"),
        (((1,), (1, 2), None, None, ("a", "b")), "labels other than those of the axes"),
        ((None, (1, 2), None, [0, 1]), "6 whole numbers, one for each cell, got 2"),
        ((None, (1, 2), None, [0, 1, 2, 0, 0, 0]), "from -1 to 1, got 2"),
        ((None, (1, 2), None, [-2, 1, 1, 0, 0, 0]), "from -1 to 1, got -2"),
        ((None, (1, 2), None, [-1] * 6), "must contain at least one cell"),
        ((None, (1, 2), None, [0.0, 1, 0, 1, 0, 1]), "6 whole numbers, .* got float64"),
        ((None, (1, 2), None, [0, 1, 0, 1, 0, 1], ("a",)), "must be 2 strings, got 1"),
        ((None, (1, 2), None, [0, 1, 0, 1, 0, 1], ("a", 7)), "must be 2 strings, got 7 in entry 1"),
        ((None, (1, 2), None, [0, 1, 0, 1, 0, 1], ("a", "a")), "differ from each other, got 'a' twice"),
        ((None, (1, 2), None, [0, 1, 0, 1, 0, 1], ("a", "b\0")), "Unicode text without NUL .* got 'b.*' in entry 1"),
        (((1,), (1, 2), None, None, None, 5), r"list of families, .* got \[\(\(1,\)"),
    ],
)
def test_families_that_do_not_fit_are_refused(family, rule):
    with pytest.raises(ReleaseError, match=rule):
        of_families([family])


def one(change):
    """A change of the file's first family."""

    def changed_meta(stated):
        stated["totals"][0] |= change
        return stated

    return changed_meta


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (one({"over": [0]}), r"as many totals as cells that are left, got 2 over \[0\] in family 0"),
        (one({"over": None}), "over axes or groups, .* got over None, groups False and size 2 in family 0"),
        (one({"size": True}), "of a positive size, got .* size True in"),
        (one({"size": 10**30}), "of a positive size, got .* size 1000"),
        (one({"groups": 1}), "of a positive size, got .* groups 1 and"),
        (one({"labels": "a"}), "labels of groups as a list, got 'a' in family 0"),
        (one({"mechanism": {"name": "rounding"}}), "known mechanisms of totals"),
        (one({"more": 1}), "must describe every family .* got an unknown 'more' in family 0"),
        (lambda stated: stated | {"totals": []}, "at least one family of totals"),
        (lambda stated: stated | {"totals": [5] * 6}, "must describe every family .* got 5 in family 0"),
        (lambda stated: stated | {"totals": stated["totals"][:5]}, "must hold"),
    ],
)
def test_descriptions_of_families_that_were_changed_are_refused_in_words(change, rule, tmp_path):
    path = tmp_path / "r.npz"
    of_families().save(path)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    known = change(json.loads(content["meta.json"]))
    content["meta.json"] = json.dumps(known, sort_keys=True, separators=(",", ":")).encode()
    _archive.write(path, content)
    with pytest.raises(ReleaseError, match=rule):
        Release.load(path)


@pytest.mark.parametrize(
    ("name", "member", "rule"),
    [
        ("total_of_cell_3", _npy.encode([0, 0, 2, 1, -1, -1], (6,)), "from -1 to 1, got 2"),
        ("totals_1", _npy.encode_real([0.5, 14.0, math.nan], (3,)), "whole numbers with discrete Gaussian, got 0.5 in"),
        ("totals_0", _npy.encode_real([15.0, 2.0], (2,)), "whole numbers from 0 .* got 15.0 in"),
        ("totals_0", _npy.encode([15, -4], (2,)), "whole numbers from 0 .* got -4 in entry 1"),
        ("totals_4", _npy.encode([30], (1,)), "got 130 bytes"),
    ],
)
def test_arrays_of_families_that_were_changed_are_refused_in_words(name, member, rule, tmp_path):
    path = tmp_path / "r.npz"
    of_families().save(path)
    with zipfile.ZipFile(path) as archive:
        content = {each: archive.read(each) for each in archive.namelist()}
    _archive.write(path, content | {f"{name}.npy": member})
    with pytest.raises(ReleaseError, match=rule):
        Release.load(path)
