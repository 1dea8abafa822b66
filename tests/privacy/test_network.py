"""Networks: whether the two directions of a pair of actors are counts of their own, or each pair has one."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from countveil.privacy import PrivacyLevel, Release, ReleaseError, _archive, _format, privatize

LEVEL = PrivacyLevel(1, 1)
QUIET = PrivacyLevel(1000, 1)  # whose noise is always 0
SYMMETRIC = np.array([[1, 3, 0], [3, 0, 5], [0, 5, 2]])
KINDS = {"array": lambda a: a, "sparse": sp.csr_array, "lists": lambda a: a.tolist()}


def dense(reports):
    return reports.toarray() if sp.issparse(reports) else np.asarray(reports)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counts", [SYMMETRIC, np.triu(SYMMETRIC)], ids=["both sides", "above"])
def test_undirected_pairs_are_reported_once(kind, counts, tmp_path):
    release = privatize(KINDS[kind](counts), QUIET, directed=False)
    np.testing.assert_array_equal(dense(release.reports), np.triu(SYMMETRIC))
    assert release.directed is False
    release.save(tmp_path / "network.npz")
    assert Release.load(tmp_path / "network.npz").directed is False
    assert "each pair is reported once, above the diagonal" in release.describe()


@pytest.mark.parametrize("kind", KINDS)
def test_directed_networks_keep_both_sides(kind, tmp_path):
    release = privatize(KINDS[kind](SYMMETRIC), QUIET, directed=True)
    np.testing.assert_array_equal(dense(release.reports), SYMMETRIC)
    release.save(tmp_path / "network.npz")
    assert Release.load(tmp_path / "network.npz").directed is True
    assert "the two directions of a pair" in release.describe()


@pytest.mark.parametrize("directed", [True, False])
def test_rows_and_columns_are_the_same_actors(directed):
    frame = pd.DataFrame(SYMMETRIC, list("abc"), list("abc"))
    assert privatize(frame, LEVEL, directed=directed).directed is directed
    for columns, said in (("abd", "'c' and 'd' at 2"), ("cba", "'a' and 'c' at 0")):
        with pytest.raises(ValueError, match=f"the same actors as rows and columns.* got {said}"):
            privatize(frame.set_axis(list(columns), axis=1), LEVEL, directed=directed)


def test_what_is_no_network_says_nothing_of_it(tmp_path):
    release = privatize(SYMMETRIC, LEVEL)
    assert release.directed is None
    assert b"directed" not in _format.members(release)[_format.META]
    release.save(tmp_path / "counts.npz")
    assert Release.load(tmp_path / "counts.npz").directed is None
    assert "actors" not in release.describe()


@pytest.mark.parametrize("kind", KINDS)
def test_counts_of_another_kind_are_refused_without_a_count(kind):
    for wrong in (np.array([[0, 71], [72, 0]]), np.array([[0, 0], [72, 0]])):
        with pytest.raises(
            ValueError,
            match=r"each pair once, .* different counts at index \(0, 1\) and \(1, 0\) .* give directed=True",
        ) as refused:
            privatize(KINDS[kind](wrong), LEVEL, directed=False)
        assert "7" not in str(refused.value)
        assert privatize(KINDS[kind](wrong), LEVEL, directed=True).directed is True
    for directed in (True, False):
        with pytest.raises(ValueError, match=r"must be square, one row and one column per actor, got 2 x 3"):
            privatize(KINDS[kind](np.ones((2, 3), dtype=int)), LEVEL, directed=directed)
    with pytest.raises(TypeError, match="directed must be True, False or None, got 'no'"):
        privatize(KINDS[kind](SYMMETRIC), LEVEL, directed="no")


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_is_what_it_says(kind):
    below = KINDS[kind](np.tril(SYMMETRIC))
    with pytest.raises(
        ReleaseError, match=r"undirected network must be 0 below the diagonal, got a nonzero report at index \(\d, \d\)"
    ):
        Release(below, LEVEL, True, directed=False)
    for shape in ((2, 3), (2,), (2, 2, 2)):
        with pytest.raises(ReleaseError, match="reports of a network must be square"):
            Release(np.zeros(shape, dtype=int), LEVEL, True, directed=True)
    with pytest.raises(ReleaseError, match="directed must be True, False or None, got 1"):
        Release(KINDS[kind](SYMMETRIC), LEVEL, True, directed=1)


@pytest.mark.parametrize(
    ("stated", "said"),
    [(None, "directed of type bool"), (0, "directed of type bool"), (False, "must be 0 below the diagonal")],
)
def test_a_file_that_says_something_else_is_refused(stated, said, tmp_path):
    members = _format.members(privatize(SYMMETRIC, QUIET, directed=True))
    members[_format.META] = _format.canonical(json.loads(members[_format.META]) | {"directed": stated})
    _archive.write(tmp_path / "bad.npz", members)
    with pytest.raises(ReleaseError, match=said):
        Release.load(tmp_path / "bad.npz")
