"""Labels of later time steps."""

import numpy as np
import pandas as pd
import pytest

from countveil.data.frames import texts_of
from countveil.estimators.time_labels import continued


@pytest.mark.parametrize(
    ("names", "later"),
    [
        (["2001", "2002", "2003"], ["2004", "2005"]),
        (["1990", "2000"], ["2010", "2020"]),
        (np.arange(4), [4, 5]),
        (["7"], ["8", "9"]),
        (["08", "09", "10"], ["11", "12"]),
        (["01", "02", "03"], ["04", "05"]),
        ([1.0, 2.0, 3.0], [4.0, 5.0]),
        (["a", "t+1"], ["t+2", "t+3"]),
        (["t+1", "t+2"], ["t+3", "t+4"]),
        (
            texts_of(pd.date_range("2001-01-01", periods=4, freq="MS")),
            ["2001-05-01 00:00:00", "2001-06-01 00:00:00"],
        ),
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


@pytest.mark.parametrize(
    "names", [["2001-01-07", "2001-01-14", "2001-01-21"], ["2001-11", "2001-12", "2002-01"]]
)
def test_steps_beyond_all_dates_are_refused(names):
    said = rf"steps must end by 2262-04-11, the last date there is, got 2000000 after {names[-1]}"
    with pytest.raises(ValueError, match=said):
        continued(names, 2_000_000)
