"""Weights of stacking, and what chains say of reports that they were not shown."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import countveil as cv
from countveil.inference.folds import Cells
from countveil.inference.stacking import cells_to_score, scores_left_out, stacking_weights
from countveil.laws.counts import POISSON

RNG = np.random.default_rng(1)
SCORES = np.log(RNG.dirichlet(np.full(5, 0.5), 300)[:, :4])


def objective(weights):
    return logsumexp(SCORES, axis=1, b=weights).mean()


def test_no_other_weights_are_better():
    found = stacking_weights(SCORES)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0.0).all()
    best = objective(found)
    for near in (0.5, 0.1, 0.01):
        for other in RNG.dirichlet(np.ones(4), 50):
            assert objective((1.0 - near) * found + near * other) <= best + 1e-8


def test_scores_of_any_size_and_of_one_chain_have_weights():
    shifts = RNG.normal(scale=2000.0, size=(300, 1))
    np.testing.assert_allclose(stacking_weights(SCORES + shifts), stacking_weights(SCORES), atol=1e-9)
    assert stacking_weights(SCORES[:, :1]).tolist() == [1.0]
    alike = np.repeat(SCORES[:, :1], 3, axis=1)
    np.testing.assert_allclose(stacking_weights(alike), 1 / 3)
    worse = np.stack([SCORES[:, 0], SCORES[:, 0] - 1.0], axis=1)
    np.testing.assert_allclose(stacking_weights(worse), [1.0, 0.0], atol=1e-6)


@pytest.mark.parametrize("bad", [np.empty((0, 2)), np.array([[0.0, -np.inf]]), np.array([[np.nan, 0.0]])])
def test_scores_that_are_no_numbers_are_refused(bad):
    with pytest.raises(ValueError, match="scores must be finite numbers of at least one cell"):
        stacking_weights(bad)


def data(mask=None):
    reports = np.random.default_rng(2).integers(-2, 5, (6, 6))
    return cv.PrivatizedCounts(reports, 0.4, mask)


def draws(n=7):
    rng = np.random.default_rng(4)
    return [((rng.gamma(1.0, 1.0, (6, 2)), rng.gamma(1.0, 1.0, (6, 2))), ()) for _ in range(n)]


def probability(observed, factors, row, column):
    """P(max(report, 0) | rate), from the slow law."""
    report = int(observed.cells(np.array([row]), np.array([column]))[0][0])
    rate = float(factors[0][row] @ factors[1][column])
    counts = stats.poisson.pmf(np.arange(80), rate)
    noise = 0.6 / 1.4 * 0.4 ** np.abs(np.arange(-80, 81)[:, None] - np.arange(80))  # by report and count
    reports = noise @ counts
    return reports[80 + report] if report > 0 else reports[:81].sum() + noise[0] @ counts * 0.4 / 0.6


def test_a_cell_is_left_out_by_the_harmonic_mean_of_its_probabilities():
    observed, cells = data(), Cells(np.array([5, 0, 2]), np.array([1, 3, 2]))
    found = scores_left_out(draws(), observed, POISSON, cells)
    for score, row, column in zip(found, cells.rows, cells.columns, strict=True):
        each = [probability(observed, factors, row, column) for factors, _ in draws()]
        assert np.exp(score) == pytest.approx(1.0 / np.mean(1.0 / np.array(each)), rel=1e-9)


def test_a_pair_is_left_out_as_a_whole_except_what_is_masked():
    mask = np.zeros((6, 6), dtype=bool)
    mask[3, 0] = True
    observed, cells = data(mask), Cells(np.array([0, 0, 2]), np.array([1, 3, 2]))
    found = scores_left_out(draws(), observed, POISSON, cells, pairs=True)
    both = [
        np.mean([1.0 / np.prod([probability(observed, f, *cell) for cell in pair]) for f, _ in draws()])
        for pair in ([(0, 1), (1, 0)], [(0, 3)], [(2, 2)])
    ]
    np.testing.assert_allclose(np.exp(-found), both, rtol=1e-9)


def test_cells_are_those_that_were_seen_by_the_seed():
    mask = np.zeros((6, 6), dtype=bool)
    mask[1] = True
    one, same, other = (cells_to_score(data(mask), seed, False) for seed in (1, 1, 2))
    assert sorted(one.rows * 6 + one.columns) == np.flatnonzero(~mask).tolist()
    np.testing.assert_array_equal(one.columns, same.columns)
    assert (one.columns != other.columns).any()
    pairs = cells_to_score(data(mask), 1, True)
    assert (pairs.rows <= pairs.columns).all()
    assert pairs.size == 16
