import html
import math
import re
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from tests.privacy.toy import Divided

from countveil.privacy import PrivacyLevel, Release, ReleaseError, privatize
from countveil.privacy.mechanisms import TwoSidedGeometric

LEVEL = PrivacyLevel("0.1", 3)


def small() -> Release:
    """A release with everything in it: sparse, labelled, two levels."""
    reports = sp.csr_array(np.array([[0, 5, 0], [7, 0, 2]]))
    return Release(reports, (LEVEL, PrivacyLevel(1, 1)), True, (("ann", "bo"), ("x", "é", "\U0001f512")))


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
    for given in (
        levels,
        list(levels),
        tuple(level.mechanism for level in levels),
        (each for each in levels),
    ):
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
    schema = [
        privatize([[n, 0]] * n, LEVEL, row_labels=range(n), column_labels=["a", "b"]) for n in (1, 2, 3)
    ]
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
        ((np.array([[-1]]), LEVEL, True), "truncated reports must not be negative"),
        (([[-1]], LEVEL, True), "truncated reports must not be negative"),
        ((np.array([[0.5]]), LEVEL, False), "reports must be integers"),
        ((np.zeros((0, 1), dtype=int), LEVEL, False), "reports must be integers with at least one row"),
        (([[1], [2, 3]], LEVEL, False), "reports must be rectangular"),
        (([[2**63]], LEVEL, False), "reports must be 64-bit whole numbers"),
        (([[True]], LEVEL, False), "reports must be 64-bit whole numbers"),
        (([], LEVEL, False), "reports must be rectangular and not empty"),
        (("text", LEVEL, False), "reports must be an array"),
        ((sp.csr_array(np.eye(2, dtype=int)), LEVEL, False), "sparse reports must be truncated"),
        ((sp.csr_array(-np.eye(2, dtype=int)), LEVEL, True), "sparse reports must store only positive"),
        ((sp.csr_array(np.eye(2)), LEVEL, True), "sparse reports must be an integer csr_array"),
        ((sp.csr_array((0, 2), dtype=int), LEVEL, True), "reports must have at least one row"),
        (
            (sp.csr_array(([1, 1], [1, 0], [0, 2]), shape=(1, 2)), LEVEL, True),
            "sparse reports must have sorted",
        ),
        ((np.ones((2, 1), dtype=int), (LEVEL,), False), "mechanism must be one, or one for each of 2 rows"),
        ((np.ones((1, 1), dtype=int), (0.5,), False), "mechanism must be one, or one for each of 1 rows"),
        ((np.ones((1, 1), dtype=int), 0.5, False), "mechanism must be"),
        (
            (np.ones((1, 1), dtype=int), PrivacyLevel(1, 2**41), False),
            "mechanism must have a rate of at least",
        ),
        ((np.ones((1, 1), dtype=int), TwoSidedGeometric(0.5), False), "mechanism must state its epsilon and"),
        (
            (np.ones((1, 1), dtype=int), LEVEL, False, (None,)),
            "labels must have one entry for each of 2 axes",
        ),
        ((np.ones((1, 1), dtype=int), LEVEL, False, (("a", "b"), None)), "labels of axis 0 must number 1"),
        (
            (np.ones((1, 1), dtype=int), LEVEL, False, ((1,), None)),
            "labels of axis 0 must be a tuple of strings",
        ),
        ((np.ones((1, 2), dtype=int), LEVEL, False, (None, ("a", "a"))), "labels of axis 1 must differ"),
        (
            (np.ones((1, 1), dtype=int), LEVEL, False, (("a\0",), None)),
            "labels of axis 0 must be Unicode text",
        ),
        (
            (np.ones((1, 2), dtype=int), LEVEL, False, (None, ("a", "\ud800"))),
            "labels of axis 1 must be Unicode",
        ),
        ((np.ones((1, 2), dtype=int), LEVEL, 1), "truncated must be True or False, got 1"),
    ],
)
def test_parts_must_fit(arguments, rule):
    with pytest.raises(ReleaseError, match=f"^{rule}"):
        Release(*arguments)
