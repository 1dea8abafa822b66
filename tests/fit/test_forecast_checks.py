"""Forecasts against rules of thumb, by reports alone."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.fit import forecast_checks
from countveil.fit.forecast_checks import LAST, MEAN, MODEL, SEASONAL, THREE, compared, estimates_of, judged
from tests.joint import draw_reports

NAN = np.nan
KNOWN = np.array([[1.0, 4.0], [2.0, NAN], [NAN, -3.0], [6.0, -1.0], [NAN, 5.0]])


def test_rules_look_back_to_steps_that_were_seen():
    found = forecast_checks.rules_of(KNOWN, 2)
    np.testing.assert_array_equal(found[LAST], [6.0, 5.0])
    np.testing.assert_allclose(found[THREE], [3.0, 1.0 / 3.0])
    np.testing.assert_array_equal(found[SEASONAL], [6.0, 0.0])  # steps 3 and 1, of which the second is below zero
    np.testing.assert_array_equal(forecast_checks.rules_of(KNOWN[:4], 3)[SEASONAL], [2.0, NAN])
    assert list(forecast_checks.rules_of(KNOWN, None)) == [LAST, THREE]


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_estimates_have_the_counts_for_their_mean_and_their_variance(alpha):
    rng, counts = np.random.default_rng(1), np.array([[0, 1, 4], [9, 0, 2]])
    draws = []
    for _ in range(4000):
        reports = counts + draw_reports(np.zeros(counts.shape), np.asarray(alpha), rng)
        mask = np.array([[False, False, True], [False] * 3])
        draws.append(estimates_of(cv.PrivatizedCounts(np.maximum(reports, 0), alpha, mask=mask)))
    found, variance = (np.array(each) for each in zip(*draws, strict=True))
    assert np.isnan(found[:, 0, 2]).all()
    left = np.ones(counts.shape, dtype=bool)
    left[0, 2] = False
    error = found.std(axis=0)[left] / np.sqrt(len(draws)) + 1e-12
    assert (np.abs(found.mean(axis=0)[left] - counts[left]) < 4.5 * error).all()
    np.testing.assert_allclose(variance.mean(axis=0)[left], found.var(axis=0)[left], rtol=0.15)


def test_hidden_counts_have_no_estimate():
    noise = SimpleNamespace(unbiased=False, in_words=lambda level: "Suppressed(1, 9)")
    data = SimpleNamespace(noise=noise, cell_level=1.0)
    with pytest.raises(ValueError, match="data must have reports with an unbiased estimate of each count"):
        estimates_of(data)


def perfect(truth, axis):
    """A model that knows the counts of a step, and refuses data in which it or a later one is shown."""

    def forecast(data, step):
        seen = ~np.isnan(np.moveaxis(estimates_of(data)[0], axis, 0)).reshape(len(truth), -1).all(axis=1)
        np.testing.assert_array_equal(seen, np.arange(len(truth)) < step)
        return truth[step], truth[step] + 3.0

    return forecast


@pytest.mark.parametrize("axis", [0, 2])
def test_the_noise_of_reports_is_taken_out_of_errors(axis):
    rng = np.random.default_rng(2)
    truth = rng.poisson(20.0, (14, 15, 20))
    reports = truth + draw_reports(np.zeros(truth.shape), np.asarray(0.6), rng)
    data = cv.PrivatizedCounts(np.moveaxis(reports, 0, axis), 0.6)
    found = compared(data, axis, 8, 4, perfect(truth, axis))
    errors = found.table.set_index("forecast")["error"]
    assert np.nan_to_num(errors[MODEL]) < 0.5  # of noise with a standard deviation of 2.2
    assert errors[MEAN] == pytest.approx(3.0, abs=0.25)
    variance = 2 * 0.6 / 0.4**2  # of the noise, which the rules repeat
    assert errors[LAST] == pytest.approx(np.sqrt(2 * 20.0 + variance), rel=0.05)
    assert errors[SEASONAL] == pytest.approx(errors[LAST], rel=0.05)
    assert errors[THREE] == pytest.approx(np.sqrt(4 / 3 * 20.0 + variance / 3), rel=0.05)
    assert found.verdict.startswith("Use the model's median: error ")


def test_a_verdict_needs_a_difference_of_two_standard_errors():
    steps = np.arange(6.0)
    losses = pd.DataFrame({MODEL: 5.0 + steps, MEAN: 6.0 + steps, LAST: 3.0 + steps[::-1] / 9, THREE: 9.0 + steps})
    assert judged(losses, 1.0, {}).verdict.startswith(
        "Use the last value: error 1.51 (last value) against 2.55 (model, median)"
    )
    remedies = {LAST: "Try levels.", SEASONAL: "Try a season."}
    assert judged(losses, 1.0, remedies).verdict.endswith(", 6 steps. Try levels.")
    assert judged(losses.rename(columns={LAST: SEASONAL}), 1.0, remedies).verdict.endswith(" Try a season.")
    assert judged(losses.rename(columns={LAST: THREE, THREE: LAST}), 1.0, remedies).verdict.endswith(", 6 steps.")
    near = losses.assign(**{LAST: losses[MODEL] + [1.0, -1.0, 1.0, -1.0, 1.0, -0.5]})
    assert judged(near, 1.0, {}).verdict.startswith("No clear difference between the model and the last value: ")
    assert judged(near, 1.0, remedies).verdict.endswith(", 6 steps.")
    worse = losses.assign(**{LAST: 9.0 + losses[MODEL]})
    assert judged(worse, 1.0, remedies).verdict.endswith(", 6 steps.")
    assert judged(losses, 50.0, {}).table["error"].isna().all()


@pytest.mark.parametrize("steps", [1, 3])
def test_steps_that_leave_too_few_before_them_are_refused(steps):
    data = cv.ExactCounts(np.ones((6, 2), int))
    with pytest.raises(ValueError, match="check must be from 2 to 2, so that 4 of 6 steps come before"):
        compared(data, 0, steps, 4, perfect(np.ones((6, 2)), 0))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_season_that_the_model_lacks_is_said_to_be_tried():
    counts = np.random.default_rng(3).poisson(20.0 + 15.0 * np.cos(np.arange(36)[:, None] / 6 * np.pi + np.arange(3)))
    data = cv.ExactCounts(
        pd.DataFrame(counts, index=[str(each) for each in pd.period_range("2001-01", periods=36, freq="M")])
    )
    brief = {"draws": 6, "tune": 4, "chains": 2, "seed": 1, "threads": 1, "progress": False}
    found = cv.DynamicModel(1, **brief).fit(data).check_forecasts(data, 12)
    assert found.verdict.startswith(f"Use the {SEASONAL}: ")
    assert found.verdict.endswith(", 12 steps. Try season=12 (--season 12).")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("season", [None, 3])
def test_a_model_is_fitted_anew_for_each_step(season):
    counts = np.random.default_rng(3).poisson(4.0, (9, 3))
    index = [str(month) for month in pd.period_range("2001-01", periods=9, freq="M")]
    data = cv.PrivatizedCounts(pd.DataFrame(counts, index=index), 0.3)
    brief = {"draws": 6, "tune": 4, "chains": 2, "seed": 1, "threads": 1, "progress": False}
    fit = cv.DynamicModel(2, season=season, **brief).fit(data)
    found = fit.check_forecasts(data, 2)
    rules = [LAST, THREE] if season is None else [LAST, SEASONAL, THREE]  # nine months have no whole year before
    assert list(found.table["forecast"]) == [MODEL, MEAN, *rules]
    assert found.steps == 2
    pd.testing.assert_frame_equal(fit.check_forecasts(data, 2).table, found.table)
