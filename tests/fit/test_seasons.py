"""Seasons: how long they are by dates, what their steps are called, and what is refused."""

import pandas as pd
import pytest

import countveil as cv
from countveil.fit.seasons import named_seasons, season_of


def labels(freq, start="2001-03-05", periods=30):
    return [str(each) for each in pd.period_range(start, periods=periods, freq=freq)]


@pytest.mark.parametrize(
    ("texts", "steps"),
    [
        (labels("M"), 12),
        (labels("Q"), 4),
        (labels("W"), 52),
        ([f"2001-W{week}" for week in range(10, 40)], 52),
        (labels("D"), 7),
        (labels("M")[::3], 4),
        (labels("D", periods=70)[::7], 52),
        (["Nov", "Dec", "Jan", "Feb"], 12),
        (["2001 H1", "2001 H2", "2002 H1"], 2),
    ],
)
def test_seasons_are_found_in_dates(texts, steps):
    assert season_of("auto", texts, None) == steps
    assert season_of(5, texts, None) == 5
    assert season_of(None, texts, None) is None


@pytest.mark.parametrize("texts", [labels("Y"), ["a", "b", "c"], None, ["1", "2", "3"], labels("M")[::5]])
def test_what_shows_no_season_is_refused_in_words(texts):
    with pytest.raises(
        ValueError, match=r"season must be a number for steps that are no days, .*\(--season 12\)"
    ):
        season_of("auto", texts, None)
    assert season_of(12, texts, None) == 12


@pytest.mark.parametrize("season", [12, "auto"])
def test_irregular_steps_have_no_season(season):
    with pytest.raises(ValueError, match="season must be None for time steps at irregular distances, got"):
        season_of(season, ["2001-01-03", "2001-02-27", "2001-09-01"], None)


@pytest.mark.parametrize("season", [1, 2.5, "yes", True])
def test_what_is_no_season_is_refused(season):
    with pytest.raises(ValueError, match="season must be"):
        cv.DynamicModel(2, season=season).fit(cv.ExactCounts([[1, 2], [3, 4]]))


def test_a_season_longer_than_the_series_is_refused():
    with pytest.raises(ValueError, match="season must be at most the number of time steps, 2, got 12"):
        cv.DynamicModel(2, season=12).fit(cv.ExactCounts([[1, 2], [3, 4]]))


def test_steps_of_a_season_have_the_names_and_the_order_of_the_calendar():
    names, order = named_seasons(labels("M"), 12, None)
    assert names[:3] == ["Jan", "Feb", "Mar"]
    assert order == [10, 11, *range(10)]  # the series begins in March
    assert named_seasons(labels("Q"), 4, None) == (["Q1", "Q2", "Q3", "Q4"], [0, 1, 2, 3])
    names, order = named_seasons(labels("D", "2001-03-07"), 7, None)  # a Wednesday
    assert (names[0], order[0]) == ("Mon", 5)
    assert named_seasons(labels("M"), 3, None) == (["1", "2", "3"], [0, 1, 2])
    assert named_seasons([0, 1, 2, 3], 2, None) == (["1", "2"], [0, 1])
    assert named_seasons(labels("W", periods=60), 52, None)[0][-1] == "52"
