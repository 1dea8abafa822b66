from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from countveil.fit.topics import TOPICS
from countveil.report.browse.comparing import BESIDE, check_comparable, compared, needed, pairs_of
from countveil.report.browse.listings import Along, Kind


def kind(mean, names, part=TOPICS):
    axes = part.axes
    return Kind(part, pd.DataFrame(), [Along(axis, list(names), False, mean[:, :, None]) for axis in axes])


def test_pairs_are_those_whose_overlaps_are_largest_together():
    rng = np.random.default_rng(4)
    one, other = rng.dirichlet(np.full(6, 0.4), 4), rng.dirichlet(np.full(5, 0.4), 3)
    first, second = "abcdef", "fxbda"
    shares = np.zeros((4, 3))
    for i in range(4):
        for j in range(3):
            mine, its = dict(zip(first, one[i], strict=True)), dict(zip(second, other[j], strict=True))
            shares[i, j] = sum(min(mine.get(w, 0.0), its.get(w, 0.0)) for w in {*first, *second})
    best = max(permutations(range(4), 3), key=lambda rows: sum(shares[i, j] for j, i in enumerate(rows)))
    found = pairs_of(kind(one, first), kind(other, second))
    assert {(i, j) for i, j, _ in found} == {(i, j) for j, i in enumerate(best)}
    for i, j, share in found:
        assert share == pytest.approx(shares[i, j])


def test_the_same_fit_in_another_order_is_found_again():
    rng = np.random.default_rng(6)
    mean, order, words = rng.dirichlet(np.full(30, 0.2), 5), rng.permutation(5), rng.permutation(30)
    one = kind(mean, range(30))
    other = kind(mean[order][:, words], words.tolist())
    (pairs,), ours, _ = compared([one], [other])
    assert [(i, order[j], share, alike) for i, j, share, alike in pairs] == [
        (k, k, 1.0, True) for k in range(5)
    ]
    assert ours[0][0].sum(axis=1).tolist() == [BESIDE] * 5


def test_what_a_counterpart_lists_is_needed_of_both():
    mean = np.random.default_rng(7).dirichlet(np.ones(20), 2)
    one, other = kind(mean, range(20)), kind(mean[::-1], range(5, 25))
    (keep,) = needed(one, other, [(0, 1)])
    assert not keep[1].any()
    first = [5 + v for v in np.argsort(-mean[0])[:BESIDE]]
    assert np.flatnonzero(keep[0]).tolist() == sorted(v for v in first if v < 20)


def test_fits_that_have_nothing_in_common_are_refused():
    mean = np.full((2, 2), 0.5)
    with pytest.raises(ValueError, match="some of the same labels along word, got none"):
        check_comparable([kind(mean, "ab")], [kind(mean, "cd")])
    with pytest.raises(ValueError, match=r"components of the same kinds .*, got story beside topic"):
        check_comparable([kind(mean, "ab")], [kind(mean, "ab", TOPICS._replace(one="story"))])
    with pytest.raises(ValueError, match="got none beside none"):
        check_comparable([], [])
