from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countveil.data.cell_kinds import Words, read_cells
from countveil.data.cell_mechanisms import by_cell, by_row, mechanism_of_intervals, shows_counts
from countveil.privacy.mechanisms import Interval, RandomRounding, Suppression

NAN = np.nan
BOUNDS = np.array([[[NAN, NAN], [1, 9]], [[10, np.inf], [0, 9]]])


def test_intervals_have_mechanisms_of_their_own():
    found = by_cell(RandomRounding(3), BOUNDS)
    assert found.tolist() == [[RandomRounding(3), Interval(1, 9)], [Interval(10), Interval(0, 9)]]
    assert by_cell(RandomRounding(3), np.full((2, 2, 2), NAN)) == RandomRounding(3)
    columns = np.array([[Suppression(10), Suppression(5)]], dtype=object)
    assert by_cell(columns, BOUNDS).tolist() == [
        [Suppression(10), Interval(1, 9)],
        [Interval(10), Interval(0, 9)],
    ]


def test_what_suppression_hides_is_no_other_interval():
    assert by_cell(Suppression(10), BOUNDS).tolist() == [
        [Suppression(10), Suppression(10)],
        [Interval(10), Suppression(10)],
    ]
    assert by_cell(Suppression(5), BOUNDS)[0, 1] == Interval(1, 9)


def test_rows_of_a_long_table():
    frame = pd.DataFrame({"a": ["x", "y"], "n": [3.0, NAN]})
    bounds = np.array([[NAN, NAN], [1, 9]])
    found, stated, by = by_row(frame, RandomRounding(3), None, bounds)
    assert [stated[key] for key in found[by]] == [RandomRounding(3), Interval(1, 9)]
    _, stated, by = by_row(frame, {"x": Suppression(3), "y": Suppression(10)}, "a", bounds)
    assert list(stated.values()) == [Suppression(3), Suppression(10)]
    assert by_row(frame, RandomRounding(3), None, bounds * NAN) == (frame, RandomRounding(3), None)


def test_a_table_without_a_stated_mechanism():
    def cells(*texts):
        return read_cells(Path("t.csv"), [list(texts)], ["n"], Words(("X",)))

    assert mechanism_of_intervals(cells("1", "1-9")) == Interval(1, 9)
    assert mechanism_of_intervals(cells("1", "2")) is None
    with pytest.raises(ValueError, match=r"--mechanism must say .*got 1 cells \(1 'X'\)"):
        mechanism_of_intervals(cells("1-9", "X"))


def test_numbers_that_are_counts():
    assert shows_counts([Suppression(10), Interval(0)])
    assert not shows_counts([Suppression(10), RandomRounding(3)])
