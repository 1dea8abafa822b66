"""Log-likelihoods and total rates against sums over every cell and every count."""

import numpy as np
import pytest

from countveil.engines import blocks
from countveil.engines.threads import ThreadEngine
from countveil.inference import scoring
from tests.factorizations import CASES, alpha_of, mask_of, model_of, observe, rates_of
from tests.joint import LAW, SERIAL, draw_factors, draw_reports, planted, small_model, truncated_logpmf


def scene(case, seed=3):
    """(model, factors, observations, reports, mask)."""
    rng, model, mask = np.random.default_rng(seed), model_of(case), mask_of(case)
    found = draw_factors(model, rng)[0]
    reports = draw_reports(rates_of(model, found), alpha_of(case), rng)
    return model, found, observe(model, case, reports, mask), reports, mask


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_log_likelihood_is_that_of_every_cell_that_is_seen(case):
    model, found, observations, reports, mask = scene(case)
    cells = truncated_logpmf(reports, rates_of(model, found), alpha_of(case))
    score = scoring.log_likelihood(found, observations, model, SERIAL)
    assert score == pytest.approx(cells[~mask].sum(), rel=1e-11)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_total_rate_is_that_of_all_cells(case):
    model, found, *_ = scene(case)
    assert scoring.total_rate(model, found) == pytest.approx(rates_of(model, found).sum(), rel=1e-12)


def test_blocks_and_threads_add_up_to_the_same(monkeypatch):
    _, _, observations, _ = planted(300, 40, 3, 0.5, seed=1)
    model = small_model((300, 40), 3)
    found = draw_factors(model, np.random.default_rng(1))[0]
    one = scoring.log_likelihood(found, observations, model, SERIAL)
    monkeypatch.setattr(blocks, "MIN_CELLS_PER_BLOCK", 1)
    many = [scoring.log_likelihood(found, observations, model, engine) for engine in (SERIAL, ThreadEngine(3))]
    assert many[0] == many[1] == pytest.approx(one, rel=1e-12)


def test_scores_of_a_list_of_cells():
    rng = np.random.default_rng(2)
    reports, rates, levels = rng.integers(-3, 9, 60), rng.gamma(0.5, 4.0, 60), rng.choice([0.2, 0.7], 60)
    rows = columns = np.zeros(60, dtype=np.int64)
    found = scoring.report_scores(LAW, rows, columns, reports, levels, rates)
    np.testing.assert_allclose(found, truncated_logpmf(reports, rates, levels), rtol=1e-11)
    one = scoring.report_scores(LAW, rows, columns, reports, np.array(0.2), rates)
    np.testing.assert_allclose(one, truncated_logpmf(reports, rates, np.array(0.2)), rtol=1e-11)


def test_a_rate_of_zero_leaves_the_report_to_the_noise():
    rows = columns = np.zeros(3, dtype=np.int64)
    found = scoring.report_scores(LAW, rows, columns, np.array([0, 1, 3]), np.array(0.5), np.zeros(3))
    np.testing.assert_allclose(found, np.log([2 / 3, 0.5 / 3, 0.125 / 3]), rtol=1e-12)
