import math
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats

from countveil.data.simulation import simulate_release
from countveil.privacy import PrivacyLevel, Release

LEVEL = PrivacyLevel(1, 2)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_the_noise_is_the_difference_of_two_geometric_variables():
    counts = np.arange(24).reshape(2, 3, 4)
    release = simulate_release(counts, LEVEL, rng())
    again = rng()
    p = -math.expm1(-0.5)
    tau = (again.geometric(p, size=(2, 3, 4)) - 1) - (again.geometric(p, size=(2, 3, 4)) - 1)
    assert (release.reports - counts == tau).all()


def test_the_noise_follows_the_law():
    draws = simulate_release(np.zeros((1000, 100), dtype=int), LEVEL, rng()).reports.ravel()
    cells = np.arange(-12, 13)
    weights = math.tanh(0.25) * np.exp(-0.5 * np.abs(cells))
    weights[[0, -1]] = math.exp(-6) / (1 + math.exp(-0.5))
    observed = np.bincount(np.clip(draws, -12, 12) + 12, minlength=25)
    assert stats.chisquare(observed, draws.size * weights).pvalue > 1e-4
    assert stats.chisquare(observed[::-1] + observed[0], (observed[::-1] + observed[0]).sum() * weights).pvalue < 1e-4


def test_the_same_seed_gives_the_same_release():
    counts = np.full((50, 40), 3)
    assert (simulate_release(counts, LEVEL, rng()).reports == simulate_release(counts, LEVEL, rng()).reports).all()
    other = simulate_release(counts, LEVEL, np.random.default_rng(8))
    assert (other.reports != simulate_release(counts, LEVEL, rng()).reports).any()


@pytest.mark.parametrize("rows", [5, 3000])
def test_dense_and_sparse_counts_get_the_same_noise(rows):
    counts = np.zeros((rows, 1000), dtype=int)
    counts[::2, ::7] = 4
    signed = simulate_release(counts, LEVEL, rng()).reports
    sparse = simulate_release(sp.csr_array(counts), LEVEL, rng())
    assert sparse.truncated
    assert (sparse.reports.toarray() == np.maximum(signed, 0)).all()
    assert (simulate_release(counts, LEVEL, rng(), True).reports == np.maximum(signed, 0)).all()
    assert (simulate_release(sp.csr_array(counts), LEVEL, rng(), truncate=False).reports == signed).all()


def test_each_row_has_its_own_level():
    levels = [PrivacyLevel(1, 20), PrivacyLevel(1000, 1)]
    release = simulate_release([[5] * 500, [6] * 500], levels, rng())
    assert (release.reports[1] == 6).all()
    assert release.reports[0].std() == pytest.approx(math.sqrt(800), rel=0.2)
    assert release.levels == tuple(levels)


def test_it_says_that_it_protects_nobody(tmp_path):
    frame = pd.DataFrame([[1, 2]], index=["me"], columns=["a", "b"])
    release = simulate_release(frame, LEVEL, rng())
    assert release.labels == (("me",), ("a", "b"))
    release.save(tmp_path / "a.npz")
    for each in (release, Release.load(tmp_path / "a.npz")):
        assert each.simulated
        assert each.describe().startswith("SIMULATED research noise")
        assert "protects nobody" in each.describe().partition(". ")[0]
        assert "simulated" in repr(each)


@pytest.mark.parametrize("bad", [1, None, np.random.RandomState(1), np.random])
def test_rng_must_be_a_generator(bad):
    with pytest.raises(TypeError, match=r"^rng must be a numpy\.random\.Generator, got "):
        simulate_release([[1]], LEVEL, bad)


@pytest.mark.parametrize(
    ("counts", "level", "error", "text"),
    [
        ([[-1]], LEVEL, ValueError, "counts must be non-negative whole numbers, got a negative value at index (0, 0)"),
        (np.array([[0.5]]), LEVEL, ValueError, "counts must be non-negative whole numbers, got a fractional value"),
        (np.zeros((0, 2)), LEVEL, ValueError, "counts must have at least one row and one column"),
        ([[1]], [LEVEL, LEVEL], ValueError, "level must be one, or one for each of 1 rows, got 2"),
        ([[1]], 0.5, TypeError, "level must be a PrivacyLevel"),
    ],
)
def test_the_rules_are_those_of_privatize(counts, level, error, text):
    with pytest.raises(error, match="^" + re.escape(text)):
        simulate_release(counts, level, rng())


def test_a_simulated_network_says_its_kind():
    counts = np.triu(np.random.default_rng(1).poisson(2.0, (6, 6)))
    drawn = [
        simulate_release(counts, PrivacyLevel(1, 1), np.random.default_rng(2), directed=directed)
        for directed in (None, True, False)
    ]
    assert [each.directed for each in drawn] == [None, True, False]
    np.testing.assert_array_equal(drawn[2].reports, np.triu(drawn[0].reports))
    np.testing.assert_array_equal(drawn[1].reports, drawn[0].reports)
    with pytest.raises(ValueError, match="each pair once, above the diagonal"):
        simulate_release(counts.T, PrivacyLevel(1, 1), np.random.default_rng(2), directed=False)


@pytest.mark.parametrize("rho", ["0.5", "0.02"])
def test_discrete_gaussian_noise_follows_its_law(rho):
    level = PrivacyLevel.zcdp(rho)
    draws = simulate_release(np.zeros((1000, 100), dtype=int), level, rng()).reports.ravel()
    cells = np.arange(-200, 201)
    weights = np.exp(-float(level.rho) * cells.astype(float) ** 2)
    weights /= weights.sum()
    edge = int(3 / math.sqrt(float(level.rho) * 2))
    observed = np.bincount(np.clip(draws, -edge, edge) + edge)
    law = weights[np.abs(cells) <= edge]
    law[[0, -1]] += weights[cells > edge].sum()
    assert stats.chisquare(observed, draws.size * law).pvalue > 1e-4
    wrong = np.roll(law, 1)
    assert stats.chisquare(observed, draws.size * wrong).pvalue < 1e-4


def test_rows_may_have_levels_of_rho_of_their_own():
    levels = [PrivacyLevel.zcdp(10**-6), PrivacyLevel.zcdp(1000)] * 3
    release = simulate_release(np.ones((6, 50), dtype=int), levels, rng())
    assert (release.reports[1::2] == 1).all()
    assert np.abs(release.reports[::2]).mean() > 100
    assert release.simulated
    assert not simulate_release(sp.csr_array(np.eye(3, dtype=int)), levels[0], rng()).truncated
