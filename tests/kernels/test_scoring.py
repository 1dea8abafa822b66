"""Scores of cells in a list against sums over all counts."""

import numpy as np
import pytest

from countveil.bridges import protected_counts
from countveil.data.observations import PrivatizedCounts
from countveil.inference.scoring import tables_of
from countveil.inference.tokens import NO_CODES
from countveil.kernels import scoring, tiles
from countveil.kernels.scoring import log_likelihood_rows, score_cells, stored_rates
from countveil.kernels.tiles import is_dense
from countveil.kernels.windows import WindowLaw
from countveil.laws.counts import POISSON, NegativeBinomial
from tests.joint import LAW, LAWS, truncated_logpmf
from tests.kernels.test_tokens import REPORTS
from tests.laws.noise.codes import kernels_of_reports
from tests.laws.noise.laws import CASES

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
    np.testing.assert_allclose(scores, truncated_logpmf(reports, rates, np.zeros(200)), rtol=1e-11, atol=1e-13)


def test_what_comes_in_stays():
    given = scene()
    before = [values.copy() for values in given]
    score_cells(LAW, *PLACES, *given, np.empty(200))
    for values, kept in zip(given, before, strict=True):
        np.testing.assert_array_equal(values, kept)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_slopes_are_derivatives_of_scores(law, dense):
    rng = np.random.default_rng(3)
    theta, phi = rng.gamma(0.7, 2.0, (20, 2)), rng.gamma(0.7, 2.0, (15, 2))
    reports, mask = rng.integers(-3, 9, (20, 15)), rng.random((20, 15)) < 0.2
    level = np.where(np.arange(15) < 7, 0.3, 0.6)
    observations = PrivatizedCounts(reports, level[None, :], mask)
    entries, step = observations.block(slice(0, 20)), 1e-5
    rows = np.repeat(np.arange(20), np.diff(entries.indptr))
    slopes = np.full(entries.size, np.nan)
    log_likelihood_rows(law, entries, theta, phi, phi.sum(axis=0), dense, slopes)
    rates, levels = (theta @ phi.T)[rows, entries.columns], level[entries.columns]
    stored = np.maximum(reports, 0)[rows, entries.columns]
    up, down = (truncated_logpmf(stored, rates * (1.0 + h), levels) for h in (step, -step))
    derivative = np.where(mask[rows, entries.columns], 0.0, (up - down) / (2.0 * step * rates))
    np.testing.assert_allclose(slopes, derivative, rtol=1e-5, atol=1e-7)
    assert (slopes == 0.0).any()
    assert (stored == 0).any()


def test_rates_of_many_rows_at_once_change_nothing_but_rounding():
    rng = np.random.default_rng(4)
    n_rows = tiles.MOST_ROWS_OF_RATES + 6
    theta, phi = rng.gamma(0.7, 2.0, (n_rows, 2)), rng.gamma(0.7, 2.0, (15, 2))
    observations = PrivatizedCounts(rng.integers(-3, 9, (n_rows, 15)), 0.4)
    entries = observations.block(slice(0, n_rows))
    scores, slopes = [], np.full((2, entries.size), np.nan)
    for dense in (False, True):
        scores.append(log_likelihood_rows(LAW, entries, theta, phi, phi.sum(axis=0), dense, slopes[int(dense)]))
        assert scores[-1] == log_likelihood_rows(LAW, entries, theta, phi, phi.sum(axis=0), dense)
    assert scores[0] == pytest.approx(scores[1], rel=1e-12)
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-10)


@pytest.mark.parametrize(("share", "dense"), [(0.5, True), (0.02, False)])
def test_rates_are_those_of_the_entries(share, dense):
    rng, size = np.random.default_rng(1), (90, 40)
    theta, phi = rng.gamma(1.0, 1.0, (90, 7)), rng.gamma(1.0, 1.0, (40, 7))
    data = PrivatizedCounts(rng.binomial(1, share, size) * rng.integers(1, 3, size), 0.4)
    block, found = data.block(slice(4, 81)), np.full(data.indptr[81] - data.indptr[4], np.nan)
    assert is_dense(block, 40) == dense
    stored_rates(block, theta[4:81], phi, found)
    rows = np.repeat(np.arange(4, 81), np.diff(block.indptr))
    np.testing.assert_allclose(found, (theta @ phi.T)[rows, block.columns], rtol=1e-13)


RATES = np.concatenate([[1e-300, 1e-9], np.geomspace(1e-7, 3e5, 300)])


@pytest.mark.long
@pytest.mark.parametrize("p", [None, 0.6, 0.97])
def test_scores_are_those_of_sums(p):
    likelihood = POISSON if p is None else NegativeBinomial(p)
    for name in ("random rounding", "cut geometric", "discrete"):
        mechanism, report = CASES[name][0], REPORTS[name]
        law = WindowLaw(kernels_of_reports(mechanism, [report]), likelihood.counts)
        tables = tables_of(law, NO_CODES._replace(code_c=np.array([1])))
        found = [scoring.tabled_score(law, tables, 0, rate) for rate in RATES]
        wanted = protected_counts.expected(np.full(RATES.size, report), RATES, mechanism, p).log_probability
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)
