"""Dates of rows: which steps they make, in which order rows are put; labels that are dates; what is refused."""

import datetime

import numpy as np
import pandas as pd
import pytest

from countveil.data.dates import MOST_STEPS, dates_of, in_usual_order, read_dates, steps_in_time


def steps(values, labels=None):
    """(names, steps of rows) as lists."""
    found = read_dates(values, labels, len(values))
    return list(found.names), found.step.tolist()


@pytest.mark.parametrize(
    ("values", "names", "step"),
    [
        ([1994, 1990, 1996], [1990, 1992, 1994, 1996], [2, 0, 3]),
        ([3.0, 1.0], [1, 3], [1, 0]),
        ([-5, 10, 0], [-5, 0, 5, 10], [0, 3, 1]),
        (["2000", "1997", "1998"], [1997, 1998, 1999, 2000], [3, 0, 1]),
        (["1998-03", "1997-12"], ["1997-12", "1998-01", "1998-02", "1998-03"], [3, 0]),
        (["1998Q1", "1997-Q3"], ["1997Q3", "1997Q4", "1998Q1"], [2, 0]),
        (["1998 q1", "1997q3"], ["1997 q3", "1997 q4", "1998 q1"], [2, 0]),
        (["March 1998", "May 1998"], ["March 1998", "April 1998", "May 1998"], [0, 2]),
        (["11/1998", "12/1998", "01/1999"], ["11/1998", "12/1998", "01/1999"], [0, 1, 2]),
        (["11-1998", "01-1999"], ["11-1998", "12-1998", "01-1999"], [0, 2]),
        (["Nov1998", "Jan1999"], ["Nov1998", "Dec1998", "Jan1999"], [0, 2]),
        (["Q4 1998", "Q1 1999"], ["Q4 1998", "Q1 1999"], [0, 1]),
        (["2020-W53", "2021-W2"], ["2020-W53", "2021-W1", "2021-W2"], [0, 2]),
        (["2019/20", "2017/18"], ["2017/18", "2018/19", "2019/20"], [2, 0]),
        (["01.12.2019", "01.11.2019"], ["2019-11", "2019-12"], [1, 0]),
        (["12/25/2019", "1/25/2020"], ["2019", "2020"], [0, 1]),
        ([" 1999", "1998 "], [1998, 1999], [1, 0]),
        ([199811, 199899], [199811, 199899], [0, 1]),
        (["wave a", "wave b", "wave a"], ["wave a", "wave b"], [0, 1, 0]),
        (pd.Categorical(["z", "a"], ["a", "x", "z"], ordered=True), ["a", "x", "z"], [2, 0]),
        (pd.Categorical(["2", "10"]), [2, 10], [0, 1]),
        (["2001-05-03", "1999-05-03"], ["1999", "2000", "2001"], [2, 0]),
        (["2001-05-03", "2001-05-06 12:30", "2001-05-04"], [f"2001-05-0{d}" for d in range(3, 7)], [0, 3, 1]),
        (pd.to_datetime(["2001-03-01", "2001-01-01", "2001-02-01"]), ["2001-01", "2001-02", "2001-03"], [2, 0, 1]),
        ([datetime.date(2001, 1, 1), datetime.date(2001, 7, 1)], ["2001Q1", "2001Q2", "2001Q3"], [0, 2]),
        (pd.to_datetime(["2001-01-01", "2003-01-01"], utc=True), ["2001", "2002", "2003"], [0, 2]),
        (pd.PeriodIndex(["2001", "2003"], freq="Y"), ["2001", "2002", "2003"], [0, 2]),
        (np.array(["2001-01", "2001-03"], dtype="datetime64[M]"), ["2001-01", "2001-02", "2001-03"], [0, 2]),
    ],
)  # fmt: skip
def test_steps_are_of_one_length_from_the_first_date_to_the_last(values, names, step):
    assert steps(values) == (names, step)


def test_text_in_another_order_than_that_of_its_letters_is_told_of():
    with pytest.warns(UserWarning, match=r"in alphabetical order \(spring, summer\): .* an ordered pandas"):
        assert steps(["summer", "spring", "summer"]) == (["spring", "summer"], [1, 0, 1])


def test_many_different_days_go_by_the_shortest_period_of_at_most_sixty_steps():
    for days, first, n_steps in (
        (60, "2000-01-01", 60), (100, "1999-12-27/2000-01-02", 15), (1000, "2000-01", 33), (9000, "2000", 25)
    ):  # fmt: skip
        every = pd.date_range("2000-01-01", periods=days)
        found = read_dates(every, None, days)
        assert (found.names[0], len(found.names)) == (first, n_steps)
        assert (np.diff(found.step) >= 0).all()
        assert found.step[-1] == len(found.names) - 1


def test_rows_go_by_their_labels_and_else_by_position():
    labels = ["a", "b", "c"]
    wanted = ([1, 2, 3], [0, 2, 1])
    assert steps(pd.Series([3, 1, 2], index=["b", "a", "c"]), labels) == wanted
    assert steps({"b": 3, "c": 2, "a": 1}, labels) == wanted
    assert steps([1, 3, 2], labels) == wanted
    assert steps(pd.Series([1, 3, 2]), labels) == wanted
    assert steps(pd.Series([1, 3, 2], index=["x", "y", "z"])) == wanted


@pytest.mark.parametrize(
    ("values", "labels", "said"),
    [
        ([2001, None, 2003], ["a", "b", "c"], "no missing dates, got 1, the first in row b"),
        (pd.to_datetime(["2001-01-01", None, None]), None, "no missing dates, got 2, the first in row 1"),
        ([2001.5, 2002.0], None, "time must be whole numbers, dates or text, got 2001.5"),
        (["3/5/1998", "4/5/1998"], None, "the day or the month comes first, got '3/5/1998': .*dayfirst=True"),
        (["1998-03", "1998-03-05"], None, "in one form.*got '1998-03' and '1998-03-05'"),
        (["Mar 1998", "later"], None, "in one form.*got 'Mar 1998' and 'later'"),
        (["Nov 19", "Dec 19"], None, "a year with four digits, got 'Nov 19'"),
        (["week 9", "week 10"], None, "got 'week 9': for other steps, pass an ordered"),
        (["1998Q4", "1998", "1999Q1"], None, "in one form.*got '1998Q4'"),
        ([199811, 199812, 199901], None, "in the form 1998-03 or 1998-03-05 for months or days, got 199811"),
        (["19981101", "19981201"], None, "in the form 1998-03 or 1998-03-05 for months or days, got 19981101"),
        (["1998-12", "1998-13"], None, "dates must exist, got '1998-13'"),
        (["1998-02-31", "1998-03-01"], None, "dates must exist, got '1998-02-31'"),
        (["0001-01-01", "1998-03-01"], None, "dates from 1678 to 2261, got one outside: "),
        ([datetime.date(1, 1, 1), datetime.date(1998, 3, 1)], None, "dates from 1678 to 2261"),
        (["", "1998", "1999"], None, "no missing dates, got 1, the first in row 0"),
        (["2020-01-01T01:00", "2020-01-01T09:00"], None, "none shorter than a day, got 2020 alone"),
        ([2001, 2001], None, "none shorter than a day, got 2001 alone"),
        ([0, 1, 10**6], None, f"at most {MOST_STEPS} steps, got 1000001"),
        (pd.period_range("1990-01-01", "2020-01-01", freq="D"), None, "at most 1000 steps, got 10958"),
        ([[1, 2], [3, 4]], None, "one axis, got 2"),
        (pd.Series([1, 2], index=["a", "z"]), ["a", "b"], "none for 'b'"),
        (pd.Series([1, 2, 3], index=["a", "b", "a"]), ["a", "b", "c"], "'a' twice"),
        ({"a": 1, "b": 2}, None, "sequence for data without labels"),
    ],
)  # fmt: skip
def test_what_is_refused(values, labels, said):
    with pytest.raises(ValueError, match=said):
        read_dates(values, labels, len(values))


def test_other_lengths_and_types_are_refused():
    with pytest.raises(ValueError, match="time must have a row for each of 3 rows of the data, got 2"):
        read_dates([1, 2], None, 3)
    for values in ("2001", pd.DataFrame({"a": [1]}), 3, [True, False], [1, "a"]):
        with pytest.raises(TypeError, match="time must be"):
            read_dates(values, None, 2)


SPELLINGS = [
    ["2019-11", "2019-12", "2020-01", "2020-02"],
    ["2019/11", "2019/12", "2020/01", "2020/02"],
    ["11/2019", "12/2019", "1/2020", "2/2020"],
    ["11.2019", "12.2019", "01.2020", "02.2020"],
    ["2019M11", "2019M12", "2020M01", "2020M02"],
    ["201911", "201912", "202001", "202002"],
    ["Nov 2019", "Dec 2019", "Jan 2020", "Feb 2020"],
    ["NOV 2019", "DEC 2019", "JAN 2020", "FEB 2020"],
    ["nov2019", "dec2019", "jan2020", "feb2020"],
    ["Nov-19", "Dec-19", "Jan-20", "Feb-20"],
    ["2019 Nov", "2019 Dec", "2020 Jan", "2020 Feb"],
    ["November 2019", "December 2019", "January 2020", "February 2020"],
    ["November 2019", "Dezember 2019", "Januar 2020", "Februar 2020"],
    ["2019-11-01", "2019-12-01", "2020-01-01", "2020-02-01"],
    ["2019-11-30", "2019-12-31", "2020-01-31", "2020-02-29"],
    ["2019-11-01 00:00:00", "2019-12-01 00:00:00", "2020-01-01 00:00:00", "2020-02-01 00:00:00"],
    ["2019/11/01", "2019/12/01", "2020/01/01", "2020/02/01"],
    ["20191101", "20191201", "20200101", "20200201"],
    ["01.11.2019", "01.12.2019", "01.01.2020", "01.02.2020"],
    ["1.11.19", "1.12.19", "1.1.20", "1.2.20"],
    ["11/30/2019", "12/30/2019", "1/30/2020", "2/29/2020"],
    ["30/11/2019", "30/12/2019", "30/01/2020", "29/02/2020"],
    ["1 Nov 2019", "1 Dec 2019", "1 Jan 2020", "1 Feb 2020"],
    ["1. Nov. 2019", "1. Dez. 2019", "1. Jan. 2020", "1. Feb. 2020"],
    ["01NOV2019", "01DEC2019", "01JAN2020", "01FEB2020"],
    ["Nov 1, 2019", "Dec 1, 2019", "Jan 1, 2020", "Feb 1, 2020"],
]
"""The same four months, each in another style."""
OTHERS = [
    ["1999", "2000", "2001", "2002"],
    ["1999.0", "2000.0", "2001.0", "2002.0"],
    ["1998-99", "1999-00", "2000-01", "2001-02"],
    ["2009/2010", "2010/2011", "2011/2012", "2012/2013"],
    ["2019H2", "2020H1", "2020H2", "2021H1"],
    ["2019Q4", "2020Q1", "2020Q2", "2020Q3"],
    ["2019-Q4", "2020-Q1", "2020-Q2", "2020-Q3"],
    ["Q4 2019", "Q1 2020", "Q2 2020", "Q3 2020"],
    ["2019K4", "2020K1", "2020K2", "2020K3"],
    ["2020U52", "2020U53", "2021U01", "2021U02"],
    ["novembre 2019", "décembre 2019", "janvier 2020", "février 2020"],
    ["2020-W52", "2020-W53", "2021-W01", "2021-W02"],
    ["2020-W52", "2020-W53", "2021-W1", "2021-W2"],
    ["KW 52/2020", "KW 53/2020", "KW 1/2021", "KW 2/2021"],
    ["2001-12-24/2001-12-30", "2001-12-31/2002-01-06", "2002-01-07/2002-01-13", "2002-01-14/2002-01-20"],
    ["2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"],
    ["28/2/2024", "29/2/2024", "1/3/2024", "2/3/2024"],
    ["2001-01-01 22:00", "2001-01-01 23:00", "2001-01-02 00:00", "2001-01-02 01:00"],
    [f"2001-01-0{day}T12:00:00+02:00" for day in range(1, 5)],
    ["1990", "2000", "2010", "2020"],
    ["2024-01-05", "2024-01-12", "2024-01-19", "2024-01-26"],
]  # fmt: skip


@pytest.mark.parametrize("labels", SPELLINGS + OTHERS)
def test_labels_are_put_in_order_and_a_gap_is_named_in_their_style(labels):
    whole = steps_in_time(labels)
    assert (whole.labels, whole.places.tolist(), whole.note) == (labels, [0, 1, 2, 3], "")
    turned = steps_in_time([labels[3], labels[0], labels[1]])
    assert turned.labels == labels
    assert turned.places.tolist() == [1, 2, -1, 0]
    assert turned.note.startswith(f"Time steps are put in order, from {labels[0]} to {labels[3]}. 1 of 4 ")
    assert turned.note.endswith(f" has no data: {labels[2]} is treated as missing.")


@pytest.mark.parametrize("labels", SPELLINGS)
def test_every_spelling_names_the_same_months(labels):
    found = dates_of(labels)
    assert [(day.year, day.month) for day in found.first_day] == [(2019, 11), (2019, 12), (2020, 1), (2020, 2)]
    assert np.diff(found.number).tolist() == [1, 1, 1]
    assert found.unit == "month"


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["2001", "2002", "2003", "2005"], "1 of 5 years has no data: 2004 is treated as missing."),
        (["1990", "2000", "2020"], "1 of 4 time steps has no data: 2010 is"),
        (["2020-01-06", "2020-01-13", "2020-01-27"], "1 of 4 weeks has no data: 2020-01-20 is"),
        (["2020-12-31", "2021-12-31", "2023-12-31"], "1 of 4 years has no data: 2022-12-31 is"),
        (["2020-03-31", "2020-06-30", "2020-12-31"], "1 of 4 quarters has no data: 2020-09-30 is"),
        (["2001-04-30", "2001-06-30", "2001-07-31"], "1 of 4 months has no data: 2001-05-31 is"),
        (["MAR 2020", "MAI 2020", "JUN 2020"], "1 of 4 months has no data: APR 2020 is"),
        (
            [str(year) for year in (*range(2000, 2010), 2017, 2018)],
            "7 of 19 years have no data: 2010, 2011, 2012, 2013, 2014, ... are treated as missing.",
        ),
    ],
)
def test_steps_without_data_are_named(labels, words):
    assert steps_in_time(labels).note.startswith(words)


def test_dates_at_irregular_distances_are_consecutive_steps():
    labels = ["2001-03-01", "2001-01-09", "2001-01-01", "2001-03-04"]
    found = steps_in_time(labels)
    assert found.places.tolist() == [2, 1, 0, 3]
    assert found.note.endswith("Time steps are at irregular distances, and treated as consecutive.")
    assert steps_in_time(["2001", "2002", "2010"]).places.tolist() == [0, 1, 2]
    assert steps_in_time(["2000", "2001", "2005"]).places.tolist() == [0, 1, -1, -1, -1, 2]


@pytest.mark.parametrize(
    "labels",
    [
        ["spring", "summer"],
        ["11", "12", "1"],
        ["w2", "w1"],
        ["week 9", "week 10"],
        ["998", "999", "1000"],
        ["2019", "2020", "before"],
        ["may", "august", "b"],
        ["1-2", "3-4"],
        ["2019-1", "2019-2"],
        ["202001", "202052"],
        ["v1.2.3", "v1.2.4"],
        [],
    ],
)
def test_other_labels_are_not_dates(labels):
    assert dates_of(labels) is None
    assert steps_in_time(labels) is None


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["11/1/2019", "12/1/2019", "1/1/2020"], "got '11/1/2019': state day_first=True or day_first=False"),
        (["1-2-2019", "1-3-2019"], r"got '1-2-2019': state .* \(--day-first or --month-first\)"),
        (["13/1/2019", "1/13/2019"], "dates must exist, got '13/1/2019'"),
        (["11/1/19", "12/1/19"], "a year with four digits, got '11/1/19'"),
        (["19-Nov", "20-Nov"], "a year with four digits, got '19-Nov'"),
        (["Nov 19", "Dec 19"], "a year with four digits, got 'Nov 19'"),
        (["2019-11", "2019"], "in one form, such as 2019-11-01, got '2019-11' and '2019'"),
        (["Nov 2019", "2019-12"], "in one form, .* got 'Nov 2019' and '2019-12'"),
        (["01.11.2019", "12/1/2019"], "in one form, .* got '01.11.2019' and '12/1/2019'"),
        (["2019-11-01", "baseline"], "in one form, .* got '2019-11-01' and 'baseline'"),
        (["2019-13", "2019-12"], "dates must exist, got '2019-13'"),
        (["2019-02-29", "2019-03-01"], "dates must exist, got '2019-02-29'"),
        (["2021-W52", "2021-W53"], "dates must exist, got '2021-W53'"),
        (["2020-W1", "2020-W01", "2020-W2"], "one label each, got '2020-W1' and '2020-W01': leave one"),
        (["2007", "2007", "2008"], "one label each, got '2007' and '2007'"),
        (["2001-01-01/2001-01-08", "2001-01-08/2001-01-15"], "weeks if they are ranges of two days"),
        (["2001-01-01 01:00", "2001-01-01 02:00Z"], "a time zone, or none"),
        (["2001-01-01 01:00", "2001-01-01 25:00"], "times that exist"),
    ],
)
def test_labels_that_are_refused(labels, words):
    with pytest.raises(ValueError, match=words):
        steps_in_time(labels)


def test_the_order_of_day_and_month_may_be_stated():
    labels = ["3/4/2019", "1/5/2019", "2/5/2019"]
    assert steps_in_time(labels, True).labels == labels
    assert steps_in_time(labels, False).labels == [labels[1], labels[2], labels[0]]
    for wrong in (True, False):
        other = ["12/25/2019", "1/1/2020"] if wrong else ["25/12/2019", "1/1/2020"]
        assert steps_in_time(other).labels == other
        with pytest.raises(ValueError, match=f"dates must exist, got '{other[0]}'"):
            steps_in_time(other, wrong)
    assert steps_in_time(["01.02.2020", "01.01.2020"], False).places.tolist() == [1, 0]  # dots: the day first


def test_zones_are_read():
    labels = ["2001-10-28 02:30:00+01:00", "2001-10-28 02:00:00+02:00", "2001-10-28 03:30:00+01:00"]
    assert steps_in_time(labels).places.tolist() == [1, 0, 2]
    assert steps_in_time(["2001-01-01 00:00:00.5", "2001-01-01 00:00:00.25"]).places.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        (["Dec 2019", "Jan 2020", "Nov 2019"], [2, 0, 1]),
        (["2020-W1", "2020-W10", "2020-W2"], [0, 2, 1]),
        (["1", "10", "2"], [0, 2, 1]),
        (["week 10", "week 9"], [1, 0]),
        (["1/1/2020", "11/1/2019"], [0, 1]),  # unclear until somebody takes them as time
        (["2019-11-01", "all"], [0, 1]),
        (["b2 x1", "b10 x1"], [1, 0]),
        (["b", "a"], [1, 0]),
        (["46.73.10", "01.11.20"], [1, 0]),
    ],
)
def test_the_usual_order_of_labels(texts, order):
    assert in_usual_order(texts) == [texts[i] for i in order]


def test_months_without_a_year_are_in_calendar_order_or_follow_each_other():
    steps = steps_in_time(["Apr", "Feb", "Jan", "Jun", "Mar"])
    assert steps.labels == ["Jan", "Feb", "Mar", "Apr", "May", "Jun"]
    assert steps.places.tolist() == [2, 1, 4, 0, -1, 3]
    winter = ["November", "December", "January", "February"]
    assert steps_in_time(winter).labels == winter
    assert in_usual_order(["Mar", "Jan", "Feb"]) == ["Jan", "Feb", "Mar"]
    assert in_usual_order(winter) == winter
    assert steps_in_time(["Jan", "total"]) is None


@pytest.mark.parametrize(
    "labels", [["FY2016", "FY2017", "FY2018"], ["FY16", "FY17", "FY18"], ["FY 2016/17", "FY 2017/18"]]
)
def test_fiscal_years_are_years(labels):
    assert steps_in_time(labels[::-1]).labels == labels
    assert dates_of(labels).unit == "year"


def test_labels_of_an_axis_of_time_stay_in_their_order():
    seasons = ["spring", "summer", "autumn"]
    assert in_usual_order(seasons, "Season of birth") == seasons
    assert in_usual_order(seasons, "reason") == sorted(seasons)
