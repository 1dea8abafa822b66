"""Fans of forecasts, as forecasts and tables have them."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import countveil as cv
from countveil import plotting
from tests.plotting.conftest import QUICK

COUNTS = np.random.default_rng(7).poisson([3.0, 1.0, 9.0], (3, 12, 3))


@pytest.fixture(scope="module")
def fit():
    modes = {"modes": ["place", "time", "item"]}
    return cv.DynamicModel(2, **modes, **QUICK).fit(cv.PrivatizedCounts(COUNTS, 0.3))


def bands(ax):
    return [each for each in ax.collections if isinstance(each, PolyCollection)]


def test_lines_bands_and_dots_are_those_of_tables_forecasts_and_reports(fit):
    ahead, reports = fit.forecast(4), COUNTS.sum((0, 2))
    ax = plotting.forecast(fit, ahead, 1, along="place", reports=reports)
    past, to_come, dots = ax.get_lines()
    trend = fit.trend("place").query("place == 1")
    draws = ahead.counts.sum("item").sel(place=1).to_numpy()
    np.testing.assert_allclose(past.get_ydata(), trend["rate"])
    np.testing.assert_allclose(to_come.get_ydata(), np.median(draws, axis=0))
    np.testing.assert_array_equal(to_come.get_xdata(), [12, 13, 14, 15])
    np.testing.assert_array_equal(dots.get_ydata(), reports)
    assert ax.get_title() == "place 1"
    assert "90% intervals" in ax.get_ylabel()
    until_now, wide, narrow = (each.get_paths()[0].vertices[:, 1] for each in bands(ax))
    assert (until_now.min(), until_now.max()) == pytest.approx((trend["lower"].min(), trend["upper"].max()))
    for heights, (low, high) in ((wide, (0.05, 0.95)), (narrow, (0.25, 0.75))):
        ends = np.quantile(draws, [low, high], axis=0)
        assert (heights.min(), heights.max()) == pytest.approx((ends[0].min(), ends[1].max()))


def test_the_largest_of_the_last_axis_is_drawn_unless_another_is_named(fit):
    assert plotting.forecast(fit, fit.forecast(2)).get_title() == "item 2"


def test_a_naive_fit_has_no_bands():
    fit = cv.DynamicModel(2, **QUICK).fit(cv.NaiveCounts(COUNTS[0]))
    ax = plotting.forecast(fit, fit.forecast(2))
    assert not bands(ax)
    assert "no intervals" in ax.get_ylabel()


def test_what_is_unknown_is_refused_by_name(fit, tensor_fit):
    ahead = fit.forecast(2)
    with pytest.raises(TypeError, match="fit must be a DynamicModel, got TensorModel"):
        plotting.forecast(tensor_fit, ahead)
    with pytest.raises(ValueError, match="along must be one of"):
        plotting.forecast(fit, ahead, along="time")
    with pytest.raises(ValueError, match="label must be one of the item axis, got 7"):
        plotting.forecast(fit, ahead, 7)
    with pytest.raises(ValueError, match="reports must be 12 to 14 numbers, one per step"):
        plotting.forecast(fit, ahead, reports=COUNTS[0])


def test_only_the_last_steps_are_drawn_if_asked(fit):
    ahead, reports = fit.forecast(2), COUNTS.sum((0, 2))
    lines = plotting.forecast(fit, ahead, 1, along="place", reports=reports, last=5).get_lines()
    whole = plotting.forecast(fit, ahead, 1, along="place", reports=reports).get_lines()
    for short, long, start in zip(lines, whole, (7, 0, 7), strict=True):
        np.testing.assert_allclose(short.get_ydata(), long.get_ydata()[start:])
    assert lines[1].get_xdata().tolist() == [5, 6]
    with pytest.raises(ValueError, match="last must be 1 or more, got 0"):
        plotting.forecast(fit, ahead, last=0)
