"""Scores of cells in a list against sums over all counts."""

import numpy as np

from countveil.kernels.scoring import score_cells
from tests.joint import LAW, truncated_logpmf

PLACES = np.zeros((2, 200), dtype=np.int64)


def scene():
    """Cells of every sort: (reports, rates, levels)."""
    rng = np.random.default_rng(1)
    reports, rates = rng.integers(-3, 30, 200), rng.gamma(0.7, 8.0, 200)
    return reports, rates, rng.choice([0.05, 0.4, 0.9], 200)


def test_scores_are_sums_over_all_counts():
    reports, rates, levels = scene()
    assert (reports > 0).any()
    assert (reports == 0).any()
    assert (reports < 0).any()
    scores = np.full(200, np.nan)
    score_cells(LAW, *PLACES, reports, rates, levels, scores)
    np.testing.assert_allclose(scores, truncated_logpmf(reports, rates, levels), rtol=1e-11)


def test_scores_without_noise_are_those_of_the_counts():
    _, rates, _ = scene()
    reports, scores = np.random.default_rng(2).poisson(rates), np.empty(200)
    score_cells(LAW, *PLACES, reports, rates, np.zeros(200), scores)
    np.testing.assert_allclose(
        scores, truncated_logpmf(reports, rates, np.zeros(200)), rtol=1e-11, atol=1e-13
    )


def test_what_comes_in_stays():
    given = scene()
    before = [values.copy() for values in given]
    score_cells(LAW, *PLACES, *given, np.empty(200))
    for values, kept in zip(given, before, strict=True):
        np.testing.assert_array_equal(values, kept)
