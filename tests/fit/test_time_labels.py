"""Labels of later time steps."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.data.labels import texts_of
from countveil.fit.time_labels import continued, named_seasons, season_of


@pytest.mark.parametrize(
    ("names", "later"),
    [
        (["2001", "2002", "2003"], ["2004", "2005"]),
        (["1990", "2000"], ["2010", "2020"]),
        (np.arange(4), [4, 5]),
        (["7"], ["8", "9"]),
        (["08", "09", "10"], ["11", "12"]),
        (["01", "02", "03"], ["04", "05"]),
        (["12", "11", "10"], ["9", "8"]),
        (["-10", "-5", "0"], ["5", "10"]),
        ([1.0, 2.0, 3.0], [4.0, 5.0]),
        (["200110", "200111", "200112"], ["200201", "200202"]),
        ([200106, 200109, 200112], [200203, 200206]),
        (["20011229", "20011230", "20011231"], ["20020101", "20020102"]),
        ([200112, 200113, 200114], [200115, 200116]),
        (["200112"] * 3, ["t+1", "t+2"]),
        (["a", "t+1"], ["t+2", "t+3"]),
        (["t+1", "t+2"], ["t+3", "t+4"]),
        (texts_of(pd.date_range("2001-01-01", periods=4, freq="MS")), ["2001-05-01 00:00:00", "2001-06-01 00:00:00"]),
        (["2001-01-31", "2001-02-28", "2001-03-31"], ["2001-04-30", "2001-05-31"]),
        (["2001-11", "2001-12", "2002-01"], ["2002-02", "2002-03"]),
        (["2024-02-27", "2024-02-28", "2024-02-29"], ["2024-03-01", "2024-03-02"]),
        (["2024-01-05", "2024-01-12", "2024-01-19"], ["2024-01-26", "2024-02-02"]),
        (texts_of(pd.period_range("2001Q1", periods=5, freq="Q")), ["2002Q2", "2002Q3"]),
        (
            texts_of(pd.period_range("2001-12-10", periods=3, freq="W")),
            ["2001-12-31/2002-01-06", "2002-01-07/2002-01-13"],
        ),
        (["2001-01-01/2001-01-07", "2001-01-08/2001-01-14", "2001-01-22/2001-01-28"], ["t+1", "t+2"]),
        (["2001-01-01/2001-01-08", "2001-01-08/2001-01-15", "2001-01-15/2001-01-22"], ["t+1", "t+2"]),
        (
            texts_of(pd.date_range("2001-01-01", periods=3, tz="UTC")),
            ["2001-01-04 00:00:00+00:00", "2001-01-05 00:00:00+00:00"],
        ),
        (["2001", "2002", "2004"], ["t+1", "t+2"]),
        (["2001-01-01", "2001-01-09", "2001-03-01"], ["t+1", "t+2"]),
        (["spring", "summer", "autumn"], ["t+1", "t+2"]),
        (["1", "1", "1"], ["t+1", "t+2"]),
        (["9" * 30, "b", "c"], ["t+1", "t+2"]),
    ],
)
def test_labels_go_on_as_they_went(names, later):
    assert continued(names, 2) == later


@pytest.mark.parametrize("names", [["2001-01-07", "2001-01-14", "2001-01-21"], ["2001-11", "2001-12", "2002-01"]])
def test_steps_beyond_all_dates_are_refused(names):
    said = rf"steps must end by 2262-04-11, the last date there is, got 2000000 after {names[-1]}"
    with pytest.raises(ValueError, match=said):
        continued(names, 2_000_000)


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
    with pytest.raises(ValueError, match=r"season must be a number for steps that are no days, .*\(--season 12\)"):
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
