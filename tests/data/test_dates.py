"""Dates of rows: which steps they make, in which order rows are put, and what is refused by name."""

import datetime

import numpy as np
import pandas as pd
import pytest

from countveil.data.dates import MOST_STEPS, read_dates


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
