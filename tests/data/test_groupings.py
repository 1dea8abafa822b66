"""Totals over groups of cells, matched by the names of groups."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.data.groupings import by_side, family_of_frame, grouping_of_column, grouping_of_frame, sided

m = cv.mechanisms
ROWS, COLUMNS = list("abcd"), list("xyz")
LABELS = ROWS, COLUMNS
STATES = pd.DataFrame({"r": ["c", "a", "b"], "state": ["north", "south", "south"]})
AXES = ["r", "x"]


def frame(**columns):
    return pd.DataFrame(columns)


def of(totals, *groups, mechanism=None):
    groupings = dict(grouping_of_frame(each, AXES, LABELS) for each in groups)
    return family_of_frame(totals, AXES, LABELS, "n", (4, 3), mechanism, groupings)


def test_totals_of_groups_are_matched_by_name_and_may_be_missing():
    group, values, stated = of(frame(state=["south", "north"], n=[7.0, 5.0]), STATES)
    np.testing.assert_array_equal(group[:, 0], [0, 0, 1, -1])  # d is in no state
    assert (group == group[:, :1]).all()
    assert list(values.index) == ["south", "north"]
    assert stated == "exact"
    group, values, stated = of(frame(n=[7.0], state=["south"]), STATES, mechanism=m.Rounding(5))
    np.testing.assert_array_equal(group[:, 0], [0, 0, -1, -1])
    assert stated == m.Rounding(5)


def test_totals_without_a_row_are_refused():
    with pytest.raises(ValueError, match="totals must have at least one row, got none"):
        of(frame(state=[], n=[]), STATES)


def test_totals_of_groups_by_an_axis():
    group, values, _ = of(
        frame(x=["y", "x", "y"], n=[1.0, 2.0, 3.0], state=["north", "south", "south"]), STATES
    )
    wanted = np.full((4, 3), -1)
    wanted[2, 1], wanted[:2, 0], wanted[:2, 1] = 0, 1, 2
    np.testing.assert_array_equal(group, wanted)
    assert values.index[2] == "y, south"


def test_groups_of_cells_and_of_two_kinds():
    cells = frame(x=["x", "y"], r=["b", "a"], kind=["one", "two"])
    group, _, _ = of(frame(kind=["two", "one"], n=[1.0, 2.0]), cells)
    wanted = np.full((4, 3), -1)
    wanted[0, 1], wanted[1, 0] = 0, 1
    np.testing.assert_array_equal(group, wanted)
    ages = frame(x=["x", "y", "z"], age=["young", "", "old"])
    group, _, _ = of(frame(age=["old"], state=["south"], n=[4.0]), STATES, ages)
    assert np.argwhere(group == 0).tolist() == [[0, 2], [1, 2]]


def test_a_column_of_the_table_that_goes_by_an_axis_is_a_grouping():
    cells = frame(r=["a", "b", "b", "d"], x=["x", "x", "y", "z"], state=["s", "t", "t", None], n=[1, 2, 3, 4])
    found = grouping_of_column(cells, "state", AXES, LABELS)
    assert (found.axes, found.names) == ((0,), ("s", "t"))
    np.testing.assert_array_equal(found.place, [0, 1, -1, -1])
    cells = cells.assign(state=["s", "s", "t", "s"])
    assert grouping_of_column(cells, "state", AXES, LABELS).axes == (1,)
    with pytest.raises(ValueError, match="'state' must have one value for every label of an axis"):
        grouping_of_column(cells.assign(state=["s", "t", "u", "v"], x="x", r="a"), "state", AXES, LABELS)
    with pytest.raises(ValueError, match="or columns of the table, got 'county'"):
        grouping_of_column(cells, "county", AXES, LABELS)


@pytest.mark.parametrize(
    ("totals", "rule"),
    [
        (frame(state=["west"], n=[1.0]), "must be of the table's 'state', got 'west'"),
        (frame(state=["north"] * 2, n=[1.0, 2.0]), "one row each, got several of north"),
        (frame(state=["north"], else_=["q"], n=[1.0]), "got 'else_'"),
        (frame(state=["north"], m=[1.0]), "got 'm'"),
    ],
)
def test_totals_of_no_group_or_of_one_twice_are_refused_by_name(totals, rule):
    with pytest.raises(ValueError, match=rule):
        of(totals, STATES)


@pytest.mark.parametrize(
    ("groups", "rule"),
    [
        (frame(r=["q"], state=["s"]), "must be of the table's 'r', got 'q'"),
        (frame(r=["a", "a"], state=["s", "t"]), "one row each, got several of a"),
        (frame(r=["a"]), "groups must have columns among"),
        (frame(state=["a"]), "groups must have columns among"),
        (frame(r=["a"], state=["s"], more=["t"]), "groups must have columns among"),
        (frame(r=["a"], state=[""]), "named in the column 'state', got none"),
    ],
)
def test_groups_of_no_label_or_of_one_twice_are_refused_by_name(groups, rule):
    with pytest.raises(ValueError, match=rule):
        grouping_of_frame(groups, AXES, LABELS)


def test_groups_of_a_wide_table_are_of_the_side_that_has_their_labels():
    assert list(sided(frame(county=["a", "d"], state=["s", "t"]), LABELS).columns) == ["rows", "state"]
    assert list(sided(frame(age=["z"], kind=["s"]), LABELS).columns) == ["columns", "kind"]
    assert list(sided(frame(columns=["z"], kind=["s"]), (ROWS, ROWS)).columns) == ["columns", "kind"]
    assert list(sided(frame(p=["a"], q=["z"], kind=["s"]), LABELS).columns) == ["rows", "columns", "kind"]
    with pytest.raises(ValueError, match="labels of both"):
        sided(frame(county=["a"], state=["s"]), (ROWS, ROWS))
    with pytest.raises(ValueError, match="got 'q', which is not"):
        sided(frame(county=["a", "q"], state=["s", "s"]), LABELS)


def test_totals_of_both_sides_are_told_apart_by_their_labels():
    rows, columns = by_side(frame(both=["x", "b", "a"], n=[1.0, 2.0, 3.0]), LABELS, "n")
    assert rows.to_dict("list") == {"rows": ["b", "a"], "n": [2.0, 3.0]}
    assert columns.to_dict("list") == {"columns": ["x"], "n": [1.0]}
    with pytest.raises(ValueError, match="got 'q', which neither has"):
        by_side(frame(both=["x", "q"], n=[1.0, 2.0]), LABELS, "n")
    with pytest.raises(ValueError, match="got 'x', which both have"):
        by_side(frame(both=["x", "a"], n=[1.0, 2.0]), (["a", "x"], COLUMNS), "n")
    with pytest.raises(ValueError, match="got none of rows"):
        by_side(frame(both=["x"], n=[1.0]), LABELS, "n")


def test_import_long_takes_totals_of_several_kinds():
    rng = np.random.default_rng(1)
    counts = rng.poisson(20.0, (4, 3))
    cells = pd.DataFrame(
        [
            (r, x, "s" if r in "ab" else "t", counts[i, j])
            for i, r in enumerate(ROWS)
            for j, x in enumerate(COLUMNS)
        ],
        columns=["r", "x", "state", "n"],
    )
    by_state = cells.groupby("state", as_index=False)["n"].sum()
    by_age = cells.groupby("x", as_index=False)["n"].sum()
    cells["n"] = counts.ravel() // 3 * 3
    release = cv.import_long(
        cells, AXES, "n", m.RandomRounding(3), "s", totals=[(by_state,), (by_age, m.DiscreteGaussian(2))]
    )
    assert [each.over for each in release.totals] == [None, (0,)]
    assert release.totals[0].values == (int(counts[:2].sum()), int(counts[2:].sum()))
    assert release.totals[0].labels == ("s", "t")
    assert release.totals[1].mechanism == m.DiscreteGaussian(2)
    with pytest.raises(TypeError, match="a DataFrame, or a list"):
        cv.import_long(cells, AXES, "n", m.RandomRounding(3), "s", totals=[by_state])
