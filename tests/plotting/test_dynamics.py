"""Components over time, as tables have them."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import countveil as cv
from countveil import plotting
from tests.plotting.conftest import QUICK

COUNTS = np.random.default_rng(7).poisson(3.0, (20, 4))


@pytest.fixture(scope="module")
def fit():
    return cv.DynamicModel(3, **QUICK).fit(cv.PrivatizedCounts(COUNTS, 0.3))


def bands(ax):
    return [each for each in ax.collections if isinstance(each, PolyCollection)]


def test_lines_and_bands_are_those_of_the_table(fit):
    ax = plotting.activity(fit, which=[2, 0], interval=0.8)
    table = fit.activity(0.8)
    for k, line, band in zip([2, 0], ax.get_lines(), bands(ax), strict=True):
        rows = table[table["component"] == k]
        np.testing.assert_allclose(line.get_ydata(), rows["rate"])
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.min() == pytest.approx(rows["lower"].min())
        assert heights.max() == pytest.approx(rows["upper"].max())
        assert line.get_label() == f"component {k}"
    assert "80% intervals" in ax.get_ylabel()
    assert len(ax.get_xticks()) <= 12
    assert len(plotting.activity(fit).get_lines()) == 3


def test_seasons_are_those_of_the_table():
    data = cv.PrivatizedCounts(COUNTS, 0.3)
    fit = cv.DynamicModel(2, season=4, **QUICK).fit(data)
    ax, table = plotting.seasons(fit, which=[1]), fit.seasons()
    rows = table[table["component"] == 1]
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), rows["factor"])
    assert [each.get_text() for each in ax.get_xticklabels()] == ["1", "2", "3", "4"]
    assert "factor of the season" in ax.get_ylabel()
    assert len(bands(ax)) == 1


def test_a_naive_fit_has_no_bands():
    ax = plotting.activity(cv.DynamicModel(2, **QUICK).fit(cv.NaiveCounts(COUNTS)))
    assert not bands(ax)
    assert "no intervals" in ax.get_ylabel()


def test_what_has_no_time_or_is_unknown_is_refused(fit, tensor_fit):
    with pytest.raises(TypeError, match="fit must be a DynamicModel, got TensorModel"):
        plotting.activity(tensor_fit)
    with pytest.raises(TypeError, match="fit must be a DynamicModel, got TensorModel"):
        plotting.seasons(tensor_fit)
    with pytest.raises(ValueError, match="season must be given"):
        plotting.seasons(fit)
    with pytest.raises(ValueError, match="which must be numbers from 0 to 2, got"):
        plotting.activity(fit, which=[7])
    with pytest.raises(ValueError, match="interval"):
        plotting.activity(fit, interval=2.0)
