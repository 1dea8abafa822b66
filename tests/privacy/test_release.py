import html
import json
import math
import re
import zipfile
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from tests.privacy.test_format import small
from tests.privacy.toy import Divided

from countveil.privacy import PrivacyLevel, Release, ReleaseError, _archive, _npy, privatize
from countveil.privacy import mechanisms as m
from countveil.privacy.mechanisms import TwoSidedGeometric

LEVEL = PrivacyLevel("0.1", 3)


def test_a_release_knows_what_was_done():
    release = privatize(np.zeros((2, 3), dtype=int), LEVEL, column_labels=["a", "b", "c"])
    assert release.alpha == LEVEL.alpha
    assert release.epsilon == Fraction(1, 10)
    assert release.precision == 3
    assert release.shape == (2, 3)
    assert release.levels == LEVEL
    assert release.mechanism == TwoSidedGeometric.keeping("0.1", 3)
    assert release.row_labels is None
    assert release.column_labels == ("a", "b", "c")
    assert (release.truncated, release.simulated) == (False, False)
    both = small()
    assert both.alpha.dtype == np.float64
    assert both.alpha.tolist() == [LEVEL.alpha, math.exp(-1)]
    assert both.epsilon == (Fraction(1, 10), 1)
    assert both.precision == (3, 1)
    assert both.levels == (LEVEL, PrivacyLevel(1, 1))
    assert both.mechanism == (LEVEL.mechanism, PrivacyLevel(1, 1).mechanism)


def test_a_release_is_made_of_levels_or_of_the_mechanisms_that_keep_them():
    levels = (LEVEL, PrivacyLevel(1, 1), LEVEL)
    for given in (levels, list(levels), tuple(level.mechanism for level in levels), (each for each in levels)):
        release = Release([[1], [2], [3]], given, False)
        assert release.mechanism == tuple(level.mechanism for level in levels)
        assert release.levels == levels
    one = Release([[1], [2], [3]], LEVEL.mechanism, False)
    assert (one.mechanism, one.levels, one.alpha) == (LEVEL.mechanism, LEVEL, LEVEL.alpha)


def test_a_release_does_not_change():
    for release in (small(), privatize(np.ones((2, 2), dtype=int), LEVEL)):
        for name in ("reports", "levels", "truncated", "simulated", "alpha", "mechanism"):
            with pytest.raises((FrozenInstanceError, AttributeError)):
                setattr(release, name, 1)
        stored = release.reports.data if sp.issparse(release.reports) else release.reports
        with pytest.raises(ValueError, match="read-only"):
            stored[0] = 1
    mine = np.ones((2, 2), dtype=int)
    Release(mine, LEVEL, False)
    mine[0, 0] = 2  # the caller's own array stays writable


def test_read_only_sparse_reports_can_be_computed_with():
    reports = small().reports
    assert (reports @ np.ones(3)).tolist() == [5, 9]
    assert reports.T.tocsr()[1:].toarray().tolist() == [[5, 0], [0, 2]]
    assert (reports.tocsc().sum(axis=0) == [7, 5, 2]).all()
    assert (reports * 2).toarray().max() == 14
    assert reports[[1]].toarray().tolist() == [[7, 0, 2]]


def test_the_schema_is_the_same_for_every_participant():
    schema = [privatize([[n, 0]] * n, LEVEL, row_labels=range(n), column_labels=["a", "b"]) for n in (1, 2, 3)]
    assert len({release.schema_hash for release in schema}) == 1
    others = [
        privatize([[0, 0]], LEVEL),
        privatize([[0, 0]], LEVEL, column_labels=["b", "a"]),
        privatize([[0, 0, 0]], LEVEL),
        privatize([0, 0], LEVEL),
        privatize([[[0, 0]]], LEVEL),
    ]
    assert len({release.schema_hash for release in (*schema, *others)}) == 6
    text = b'{"columns":[{"labels":["a","b"],"size":2}]}'
    import hashlib

    assert schema[0].schema_hash == hashlib.sha256(text).hexdigest()


def test_describe_is_plain_and_complete():
    text = privatize(np.zeros((2, 3), dtype=int), PrivacyLevel(1, 1)).describe()
    for part in ("2 x 3 counts", "signed", "alpha is 0.3679", "standard deviation 1.36", "26.89%"):
        assert part in text
    assert PrivacyLevel(1, 1).describe() in text
    assert "truncated at zero, which loses nothing" in small().describe()
    assert "from 1/30 to 1;" in small().describe()
    assert PrivacyLevel(1, 1).describe() in small().describe()
    assert "SIMULATED" not in text


def test_a_release_says_of_another_mechanism_what_is_known_of_it_and_no_more():
    one, each = Release([[1], [2]], Divided(3), False), Release([[1], [2]], (Divided(3), Divided(5)), True)
    assert one.describe() == "2 x 1 counts with division by a number (version 7), signed. Divided by 3."
    assert "truncated at zero. Every row has its own mechanism" in each.describe()
    assert repr(one) == "<Release: 2 x 1 reports, signed, Divided(divisor=3)>"
    assert repr(each) == "<Release: 2 x 1 reports, truncated, one mechanism per row>"
    assert ">division<" in one._repr_html_()
    mixed = Release([[1], [2]], (Divided(3), LEVEL), False)
    assert "with division by a number (version 7) or two-sided geometric noise (version 1), signed. " in (
        mixed.describe()
    )
    for release in (one, each, mixed):
        for name in ("levels", "alpha", "epsilon", "precision"):
            with pytest.raises(ReleaseError, match=r"^levels must be kept by the mechanism, got div"):
                getattr(release, name)


def test_describe_counts_the_labels_and_shows_none():
    text = small().describe()
    assert text.endswith(" 2 row labels and 3 column labels are published as they are, without noise.")
    assert not re.search(r"\bann\b|\bbo\b|é", text)
    assert "published" not in privatize([[1]], LEVEL).describe()
    one = privatize([[1]], LEVEL, row_labels=["a"])
    assert one.describe().endswith(" 1 row label is published as it is, without noise.")
    deep = Release([[[1, 2]]], LEVEL, False, (("a",), ("b",), ("c", "d")))
    assert "1 row label, 1 column label and 2 labels of axis 2 are published" in deep.describe()


def test_repr_never_shows_reports():
    release = privatize(np.full((100, 100), 777777), LEVEL)
    assert repr(release) == "<Release: 100 x 100 reports, signed, epsilon=0.1, precision=3>"
    assert repr(small()) == "<Release: 2 x 3 reports, truncated, one level per row>"
    assert "7777" not in release._repr_html_()


def test_a_notebook_is_shown_sizes_and_noise():
    shown = small()._repr_html_()
    assert "2 × 3" in shown
    assert "truncated at zero" in shown
    assert ", by row" in shown
    assert html.escape(small().describe()) in shown
    secret = Release([[1]], LEVEL, True, (("<b>who",), ("<script>",)))._repr_html_()
    assert "who" not in secret
    assert "script" not in secret
    simulated = Release([[1]], LEVEL, True, simulated=True)._repr_html_()
    assert "SIMULATED" in simulated


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ((np.array([[-1]]), LEVEL, True), "truncated reports must not be negative, got -1"),
        (([[-1]], LEVEL, True), "truncated reports must not be negative, got -1"),
        ((np.array([[0.5]]), LEVEL, False), "reports must be integers"),
        ((np.zeros((0, 1), dtype=int), LEVEL, False), "reports must be integers with at least one row"),
        (([[1], [2, 3]], LEVEL, False), "reports must be rectangular and not empty, got rows of 1 and of 2 entries"),
        (([[2**63]], LEVEL, False), r"reports must be 64-bit whole numbers, got 9223372036854775808 at index \(0, 0\)"),
        (([[True]], LEVEL, False), "reports must be 64-bit whole numbers"),
        (([], LEVEL, False), "reports must be rectangular and not empty, got an empty list"),
        (("text", LEVEL, False), "reports must be an array"),
        ((sp.csr_array(np.eye(2, dtype=int)), LEVEL, False), "sparse reports must be truncated"),
        ((sp.csr_array(-np.eye(2, dtype=int)), LEVEL, True), "sparse reports must store only positive"),
        ((sp.csr_array(np.eye(2)), LEVEL, True), "sparse reports must be an integer csr_array"),
        ((sp.csr_array((0, 2), dtype=int), LEVEL, True), "reports must have at least one row"),
        ((sp.csr_array(([1, 1], [1, 0], [0, 2]), shape=(1, 2)), LEVEL, True), "sparse reports must have sorted"),
        ((np.ones((2, 1), dtype=int), (LEVEL,), False), "mechanism must be one, or one for each of 2 rows, got 1"),
        (
            (np.ones((1, 1), dtype=int), (0.5,), False),
            "mechanism must be one, or one for each of 1 rows, got 0.5 in entry 0",
        ),
        ((np.ones((1, 1), dtype=int), 0.5, False), "mechanism must be one, or one for each of 1 rows, got 0.5$"),
        ((np.ones((1, 1), dtype=int), PrivacyLevel(1, 2**41), False), "mechanism must have a rate of at least"),
        ((np.ones((1, 1), dtype=int), TwoSidedGeometric(0.5), False), "mechanism must state its epsilon and"),
        ((np.ones((1, 1), dtype=int), LEVEL, False, (None,)), "labels must have one entry for each of 2 axes"),
        ((np.ones((1, 1), dtype=int), LEVEL, False, (("a", "b"), None)), "labels of axis 0 must number 1"),
        (
            (np.ones((1, 1), dtype=int), LEVEL, False, ((1,), None)),
            "labels of axis 0 must be a tuple of strings, got 1 in entry 0",
        ),
        ((np.ones((1, 2), dtype=int), LEVEL, False, (None, ("a", "a"))), "labels of axis 1 must differ"),
        (
            (np.ones((1, 1), dtype=int), LEVEL, False, (("a\0",), None)),
            r"labels of axis 0 must be Unicode text .* got 'a.x00' in entry 0",
        ),
        ((np.ones((1, 2), dtype=int), LEVEL, False, (None, ("a", "\ud800"))), "labels of axis 1 must be Unicode"),
        ((np.ones((1, 2), dtype=int), LEVEL, 1), "truncated must be True or False, got 1"),
    ],
)
def test_parts_must_fit(arguments, rule):
    with pytest.raises(ReleaseError, match=f"^{rule}"):
        Release(*arguments)


def test_extras_must_be_those_of_a_release():
    with pytest.raises(ReleaseError, match=r"^extras must be the extras of a release.*got a dict"):
        Release(np.ones((1, 2), dtype=int), LEVEL, False, extras={"covariates": None})


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
        ([[0.5, 12.0]], m.Suppression(10), "whole numbers with suppression, got 0.5"),
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
    assert "Imported from: Others, 2020. Whoever imported them vouches for the mechanism" in imported.describe()
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
        (lambda meta, _: reports(0, 12, 0, 11)[:-1], "of shape (2, 2) in 136 or 144 or 160 bytes, got 159 bytes"),
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
