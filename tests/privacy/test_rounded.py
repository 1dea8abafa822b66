"""Random rounding of one's own counts: the exact law, whatever holds them, and what it says of itself."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import countveil as cv
from countveil.data.importing import check_again
from countveil.data.reports import observations_of
from countveil.privacy import Release, ReleaseError, round_randomly
from countveil.privacy import mechanisms as m

CRITICAL = 1e-7  # the noise cannot be seeded


def share_up(counts, base, made):
    """Of every count, how many of its reports were rounded up."""
    return np.asarray(round_randomly(made(counts), base).reports).reshape(np.shape(counts)) > np.asarray(counts)


@pytest.mark.parametrize("made", [np.asarray, lambda x: x.tolist(), sp.csr_array], ids=["array", "lists", "sparse"])
@pytest.mark.parametrize("base", [2, 3, 10])
def test_the_chance_to_round_up_is_what_is_left_over(made, base):
    counts = np.repeat(np.arange(40, 40 + base), 2_000).reshape(base, -1)
    up = share_up(counts, base, made)
    for row, count in zip(up, counts[:, 0], strict=True):
        chance = count % base / base
        assert stats.binomtest(int(row.sum()), row.size, chance).pvalue > CRITICAL
        wrong = (chance + 0.3) % 1  # the negative control
        assert stats.binomtest(int(row.sum()), row.size, wrong).pvalue < CRITICAL


def test_reports_are_the_multiples_on_both_sides():
    counts = np.array([[0, 1, 2, 3], [2**62 - 1, 7, 9, 10**12 + 1]])
    found = round_randomly(counts, 3, row_labels=["a", "b"])
    assert found.row_labels == ("a", "b")
    assert (found.reports % 3 == 0).all()
    assert (abs(found.reports - counts) < 3).all()
    assert (found.reports[counts % 3 == 0] == counts[counts % 3 == 0]).all()
    assert round_randomly(np.full((2, 2), 5), 2**32).reports.max() in (0, 2**32)


def test_it_says_that_it_is_no_differential_privacy(tmp_path):
    found = round_randomly(np.arange(12).reshape(3, 4), 5)
    assert "This is not differential privacy" in found.describe()
    assert "vouches" not in found.describe()
    assert found.source is None
    with pytest.raises(ReleaseError, match="which keeps none"):
        _ = found.levels
    found.save(tmp_path / "r.npz")
    again = Release.load(tmp_path / "r.npz")
    assert again.mechanism == m.RandomRounding(5)
    check_again(again)
    np.testing.assert_array_equal(observations_of(again).noise.mechanisms[0].base, 5)
    with pytest.raises(ValueError, match="multiples of 5"):
        check_again(Release([[3]], m.RandomRounding(5), False))


@pytest.mark.parametrize(("counts", "base"), [([[-1]], 3), ([[0.5]], 3), ([[1]], 1), ([[1]], 2**32 + 1), ([[1]], 2.5)])
def test_what_cannot_be_rounded_is_refused(counts, base):
    with pytest.raises(ValueError, match=r"counts must|base must"):
        cv.round_randomly(counts, base)
