"""Releases of a study in waves: which rows they may have, and what one person's come to."""

import re
from fractions import Fraction

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel, Release, ReleaseError
from countveil.privacy._extras import Extras
from countveil.privacy._waves import Waves, by_person

STRONG, WEAK = PrivacyLevel(1, 10), PrivacyLevel(2, 1)
NAMES = ("spring", "summer", "autumn")
PEOPLE = ("ann", "ann", "bob", "ann")


def made(waves=(NAMES, (0, 1, 1, 2)), people=PEOPLE, levels=(STRONG, STRONG, WEAK, STRONG), **options):
    return Release(
        np.arange(8).reshape(4, 2), levels, True, (people, ("a", "b")), extras=Extras(waves=waves), **options
    )


def test_waves_are_kept_in_the_file(tmp_path):
    release = made()
    release.save(tmp_path / "r.npz")
    again = Release.load(tmp_path / "r.npz")
    assert again.extras.waves == release.extras.waves == Waves(NAMES, (0, 1, 1, 2))
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "r.npz").read_bytes()
    assert Release([[1]], STRONG, True).extras.waves is None


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"waves": (("a", "a"), (0, 0, 0, 1))}, "names that differ from each other, got 'a' twice"),
        ({"waves": ((), ())}, "at least one name, .* got none"),
        ({"waves": ((["a"], "b"), (0, 0, 0, 1))}, r"got \['a'\] in entry 0"),
        ({"waves": (NAMES, (0, 1, 1))}, "each of 4 rows from 0 to 2, got 3 numbers"),
        ({"waves": (NAMES, (0, 1, 1, 3))}, "each of 4 rows from 0 to 2, got 3 in entry 3"),
        ({"waves": (NAMES, (0, 1, 1, 1))}, "got two with the same label"),
        ({"people": None}, "come with row labels, .* got no row labels"),
    ],
)
def test_waves_that_do_not_fit_are_refused(changes, rule):
    with pytest.raises(ReleaseError, match=rule):
        made(**changes)


def test_what_one_person_reports_adds_up():
    assert by_person(PEOPLE, (STRONG, STRONG, WEAK, STRONG)) == {"ann": STRONG.repeated(3), "bob": WEAK}
    rho = PrivacyLevel.zcdp("0.5")
    assert by_person(("ann", "ann"), (rho, rho))["ann"] == PrivacyLevel.zcdp(1)
    mixed = by_person(("ann", "ann"), (WEAK, STRONG))["ann"]
    assert (mixed.epsilon, mixed.precision) == (2 + Fraction(1, 10), 1)


@pytest.mark.parametrize("other", ["Ann", "ann ", " a\u200bnn"])
def test_one_person_in_two_spellings_is_one_person(other):
    people = ("ann", other, "bob", "ann")
    assert by_person(people, (STRONG, STRONG, WEAK, STRONG)) == {"ann": STRONG.repeated(3), "bob": WEAK}
    said = made(people=people, levels=STRONG).describe()
    assert "Rows are reports of 2 people in 3 waves" in said
    assert "come to at most epsilon 3 at N = 10." in said
    assert made(people=people).row_labels == people
    rule = r"waves must have one row of each person at most, got two called .* if they are two people"
    with pytest.raises(ReleaseError, match=rule):
        made(people=("ann", other, "bob", "ann"), waves=(NAMES, (0, 0, 1, 2)))


def test_a_release_says_what_all_reports_of_one_person_come_to():
    said = made().describe()
    assert "Rows are reports of 2 people in 3 waves" in said
    assert "come to at most epsilon 2 at N = 1." in said  # bob's one, at a weak level
    said = made(levels=STRONG).describe()
    assert "come to at most epsilon 3 at N = 10." in said  # ann's three, and not her first alone
    assert re.search(r"e\^3 \(about 20\.1\)", said)
    assert "people" not in Release([[1]], STRONG, True, (("ann",), None)).describe()
