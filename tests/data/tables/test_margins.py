"""Totals in a table or beside it, matched by labels, and what a release of them is."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.data.importing import check_again
from countveil.data.reports import observations_of
from countveil.data.tables.cells import Words
from countveil.data.tables.margins import (
    by_side,
    family_of_frame,
    grouping_of_column,
    grouping_of_frame,
    margin_of_frame,
    read_margin,
    released_totals,
    sided,
    without_margins,
)
from countveil.data.tables.published import ProtectedTable
from countveil.privacy._extras import Extras
from tests.data.same import assert_same

m = cv.mechanisms
RNG = np.random.default_rng(3)
COUNTS = RNG.poisson(6.0, (4, 3))
ROWS, COLUMNS = list("abcd"), list("xyz")
LABELS = ROWS, COLUMNS
PUBLISHED = np.where((COUNTS > 0) & (COUNTS < 10), np.nan, COUNTS)
FRAME = pd.DataFrame(PUBLISHED, ROWS, COLUMNS)
MARGINS = np.vstack([np.column_stack([COUNTS, COUNTS.sum(1)]), [*COUNTS.sum(0), COUNTS.sum()]]).astype(float)
WIDE = ProtectedTable(MARGINS, [*ROWS[:2], "all", *ROWS[2:]], [*COLUMNS, "sum"])
WIDE = WIDE._replace(values=MARGINS[[0, 1, 4, 2, 3]])


@pytest.mark.long
@pytest.mark.parametrize("axis", [0, 1, (0, 1), -1])
def test_a_fit_of_a_release_has_the_same_bits_as_one_of_reports(axis, tmp_path):
    totals = [(axis, COUNTS.sum(axis))]
    cv.import_reports(FRAME, m.Suppression(10), "s", totals=totals).save(tmp_path / "r.npz")
    release = cv.Release.load(tmp_path / "r.npz")
    data = cv.Reports(FRAME, m.Suppression(10), totals=totals)
    found = observations_of(release)
    assert_same(found, data)
    np.testing.assert_array_equal(found.totals.groups[0], data.totals.groups[0])
    np.testing.assert_array_equal(found.totals.bounds[0], data.totals.bounds[0])
    short = {"draws": 4, "tune": 2, "chains": 1, "seed": 1, "threads": 1, "progress": False}
    fits = [cv.TopicModel(2, **short).fit(each) for each in (release, data)]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)
    tables = fits[0].predict_counts(5, np.random.default_rng(1), found).to_numpy()
    over = tuple(axis + 1 for axis in release.extras.totals[0].over)
    np.testing.assert_array_equal(tables.sum(axis=over), [COUNTS.sum(axis)] * 5)


NOISE, ROUNDING, HIDING = m.DiscreteGaussian(2), m.RandomRounding(5), m.Suppression(10)
GROUPS = np.repeat([[0], [0], [1], [2]], 3, axis=1)
IN_GROUPS = pd.Series([COUNTS[g == GROUPS].sum() for g in range(3)], ["one", "two", "three"]).astype(float)
SEVERAL = [
    (1, cv.simulate_reports(COUNTS.sum(1), NOISE, RNG), NOISE),
    (0, [*cv.simulate_reports(COUNTS.sum(0)[:2], ROUNDING, RNG), np.nan], ROUNDING),
    (GROUPS, IN_GROUPS.where(IN_GROUPS.index != "two"), "exact"),
    ((0, 1), COUNTS.sum()),
]


def test_several_families_of_a_release_are_read_as_those_of_reports(tmp_path):
    release = cv.import_reports(FRAME, m.Suppression(10), "s", totals=SEVERAL)
    release.save(tmp_path / "r.npz")
    found = observations_of(cv.Release.load(tmp_path / "r.npz"))
    data = cv.Reports(FRAME, m.Suppression(10), totals=SEVERAL)
    assert_same(found, data)
    for one, other in zip(found.totals.groups, data.totals.groups, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(found.totals.kernel, data.totals.kernel, strict=True):
        np.testing.assert_array_equal(one, other)
    assert found.totals.said == data.totals.said
    assert "2 totals with random rounding (base 5), sums over axis 0; 2 exact totals, sums over groups" in (
        found.totals.said
    )
    assert release.extras.totals[2].labels == ("one", "two", "three")


def test_geometric_noise_beside_totals_is_read_with_them():
    release = cv.import_reports(COUNTS, m.TwoSidedGeometric(0.4), "s", totals=[(1, COUNTS.sum(1))])
    np.testing.assert_array_equal(observations_of(release).totals.bounds[0], COUNTS.sum(1))
    with pytest.raises(ValueError, match="release must have no totals"):
        cv.PrivatizedCounts.from_release(release)
    assert cv.Reports.from_release(release, totals=False).totals is None


def test_totals_that_the_reports_do_not_allow_are_refused_again_from_a_file(tmp_path):
    totals = [(1, [10**6, *COUNTS.sum(1)[1:]])]
    with pytest.raises(ValueError, match="totals must be possible with the reports"):
        cv.import_reports(FRAME, m.Suppression(10), "s", totals=totals)
    release = cv.Release(
        PUBLISHED, m.Suppression(10), False, source="s", extras=Extras(totals=[((1,), (10**6, None, None, None))])
    )
    release.save(tmp_path / "r.npz")
    with pytest.raises(ValueError, match="totals must be possible with the reports"):
        check_again(cv.Release.load(tmp_path / "r.npz"))


def test_releases_with_totals_are_not_joined_for_their_own_totals_would_be_lost():
    release = cv.import_reports(FRAME, m.Suppression(10), "s", totals=[(1, COUNTS.sum(1))])
    with pytest.raises(ValueError, match="with totals cannot be joined"):
        cv.join([release, cv.import_reports(COUNTS // 2 * 2, m.Rounding(2), "t")])


@pytest.mark.parametrize(
    ("totals", "kind", "rule"),
    [
        ((1, [1]), TypeError, "list of \\(axis"),
        ([(1, [1], m.Rounding(3), 2)], TypeError, "length 4"),
        ([(1, [1, 2, 3, 4], "rounded")], TypeError, "exact"),
        ([(1, [1, 3, 3, 3], m.Rounding(3))], ValueError, "multiples of 3"),
        ([(np.zeros((4, 2), int), [1])], ValueError, "groups of totals must have the shape"),
        ([(np.full((4, 3), np.inf), [1])], ValueError, "groups of totals must be whole numbers, got others"),
        ([], ValueError, "at least one family"),
        ([(2, [1])], ValueError, "one of the 2 axes"),
        ([((0, 0), 1)], ValueError, "one of the 2 axes"),
        ([("rows", [1])], ValueError, "one of the 2 axes"),
        ([(1, [1, 2])], ValueError, "shape \\(4,\\), got \\(2,\\)"),
        ([(1, [1.5, 2, 3, 4])], ValueError, "whole numbers"),
    ],
)
def test_totals_that_are_none_are_refused(totals, kind, rule):
    with pytest.raises(kind, match=rule):
        released_totals(totals, (4, 3))


def test_labelled_totals_go_by_their_labels():
    series = pd.Series(COUNTS.sum(1), ROWS)
    assert cv.import_reports(FRAME, m.Suppression(10), "s", totals=[(1, series)]).extras.totals[0].values == tuple(
        COUNTS.sum(1).tolist()
    )
    with pytest.raises(ValueError, match="row labels of reports"):
        cv.import_reports(FRAME, m.Suppression(10), "s", totals=[(1, series[::-1])])


@pytest.mark.parametrize(
    ("row", "column", "of", "over", "wanted"),
    [("all", "sum", "rows", (1,), COUNTS.sum(1)), ("all", "sum", "columns", (0,), COUNTS.sum(0))],
)
def test_margins_of_a_wide_table_leave_it(row, column, of, over, wanted):
    table, (margin,) = without_margins(WIDE, row, column, of)
    np.testing.assert_array_equal(table.values, COUNTS)
    assert (table.row_labels, table.column_labels) == (ROWS, COLUMNS)
    assert (margin[0], margin[2]) == (over, "exact")
    np.testing.assert_array_equal(margin[1], wanted)


def test_one_margin_needs_no_word():
    table, (margin,) = without_margins(WIDE, None, "sum", None)
    assert margin[0] == (1,)
    assert table.values.shape == (5, 3)
    assert without_margins(WIDE, "all", None, None)[1][0][0] == (0,)
    assert without_margins(WIDE, None, None, None) == (WIDE, [])


def test_both_margins_come_with_the_total_of_the_table_where_it_says_more():
    families = without_margins(WIDE, "all", "sum", "both")[1]
    assert [family[0] for family in families] == [(1,), (0,)]
    families = without_margins(WIDE, "all", "sum", "both", ROUNDING)[1]
    assert [family[0] for family in families] == [(1,), (0,), (0, 1)]
    assert {family[2] for family in families} == {ROUNDING}
    assert families[2][1] == COUNTS.sum()
    values = WIDE.values.copy()
    values[0, 3] = np.nan  # a total of a row that is not known; all columns have theirs
    assert len(without_margins(WIDE._replace(values=values), "all", "sum", "both")[1]) == 2
    values[2, 0] = np.nan
    assert len(without_margins(WIDE._replace(values=values), "all", "sum", "both")[1]) == 3
    values = WIDE.values.copy()
    values[2, 3] += 1
    with pytest.raises(ValueError, match="totals of rows must add up to the total of the table"):
        without_margins(WIDE._replace(values=values), "all", "sum", "both")


def test_a_total_that_was_never_reported_is_in_no_group_where_nan_is_a_hidden_one():
    values = np.ma.masked_array(WIDE.values.copy(), np.zeros(WIDE.values.shape, bool))
    values[0, 3], values[1, 3] = np.ma.masked, np.nan
    table, (family,) = without_margins(WIDE._replace(values=values), "all", "sum", "rows", m.Suppression(10))
    assert not np.ma.isMaskedArray(table.values)
    group, found, mechanism = family
    np.testing.assert_array_equal(group[:, 0], [-1, 0, 1, 2])
    np.testing.assert_array_equal(found, [np.nan, *COUNTS.sum(1)[2:]])
    assert mechanism == m.Suppression(10)


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        (("all", "sum", None), "states whose totals are kept"),
        (("all", None, "rows"), "must come with --total-column"),
        ((None, "sum", "columns"), "must come with --total-row"),
        (("none", None, None), "--total-row must be the name of one in the table, got 'none', which 0 have"),
        ((None, "none", None), "--total-column must be the name of one"),
    ],
)
def test_margins_that_are_not_there_are_refused(asked, rule):
    with pytest.raises(ValueError, match=rule):
        without_margins(WIDE, *asked)


def long(rows, columns=("x", "n")):
    return pd.DataFrame(rows, columns=columns)


def test_totals_of_a_long_table_are_matched_by_labels_and_may_be_missing():
    labels = (ROWS, COLUMNS, ["u", "v"])
    shape = (4, 3, 2)
    over, values, _ = margin_of_frame(long([("z", 5), ("x", 3)]), ["r", "x", "t"], labels, "n", shape)
    assert over == (0, 2)
    np.testing.assert_array_equal(values, [3, np.nan, 5])
    frame = long([("v", "b", 7)], ("t", "r", "n"))
    over, values, _ = margin_of_frame(frame, ["r", "x", "t"], labels, "n", shape)
    assert over == (1,)
    assert values.shape == (4, 2)
    assert values[1, 1] == np.nansum(values) == 7


@pytest.mark.parametrize(
    ("frame", "rule"),
    [
        (long([("q", 5)]), "must use labels of the table's 'x', got 'q'"),
        (long([("x", 5), ("x", 6)]), "one row each, got several of x"),
        (long([("x", "y", 5)], ("x", "else", "n")), "got 'else': leave out"),
        (long([("x", 5)], ("x", "m")), "got 'm'"),
        (long([("x",)], ("x",)), "must have one column 'n'"),
        (long([(5,), (6,)], ("n",)), "one row without any, got \\[\\] and 2 rows"),
        (long([("a", "x", 5)], ("r", "x", "n")), "not all, or one row"),
    ],
)
def test_totals_that_match_no_cells_are_refused_by_name(frame, rule):
    with pytest.raises(ValueError, match=rule):
        margin_of_frame(frame, ["r", "x"], (ROWS, COLUMNS), "n", (4, 3))


def test_files_of_totals(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("county,all\n b ,12\nc,Suppressed\n")
    found = read_margin(path, "totals", Words(("Suppressed",)), of="rows")
    assert list(found.columns) == ["rows", "totals"]
    over, values, _ = margin_of_frame(found, ["rows", "columns"], (ROWS, COLUMNS), "totals", (4, 3))
    np.testing.assert_array_equal(values, [np.nan, 12, np.nan, np.nan])
    assert over == (1,)
    with pytest.raises(ValueError, match="one column 'n'"):
        read_margin(path, "n")
    assert len(read_margin(path, "totals", Words(missing=("Suppressed",)), of="rows")) == 1
    with pytest.raises(ValueError, match="must hold a total or more"):
        read_margin(path, "totals", Words(missing=("Suppressed", "12")), of="rows")
    path.write_text("county,x,y\na,1,2\n")
    with pytest.raises(ValueError, match="two columns, labels and totals, got 3"):
        read_margin(path, "totals", of="rows")


def test_import_long_takes_totals_of_some_axes():
    cells = FRAME.rename_axis("r").reset_index().melt("r", var_name="x", value_name="n")
    totals = long(list(zip(COLUMNS, COUNTS.sum(0), strict=True)))
    release = cv.import_long(cells, ["r", "x"], "n", m.Suppression(10), "s", totals=totals)
    assert release.extras.totals[0][:2] == ((0,), tuple(COUNTS.sum(0).tolist()))


def test_totals_of_a_label_that_several_rows_have_are_refused():
    frame = pd.DataFrame({"rows": ["a"], "n": [15.0]})
    with pytest.raises(ValueError, match="'rows' must have the label of every total once, got 'a' twice"):
        margin_of_frame(frame, ("rows", "columns"), (["a", "a", "b"], ["x", "y"]), "n", (3, 2))


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
    group, values, _ = of(frame(x=["y", "x", "y"], n=[1.0, 2.0, 3.0], state=["north", "south", "south"]), STATES)
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
    with pytest.raises(ValueError, match="'state' must have one value for each label of some axis"):
        grouping_of_column(cells.assign(state=["s", "t", "u", "v"], x="x", r="a"), "state", AXES, LABELS)
    with pytest.raises(ValueError, match="or columns of the table, got 'county'"):
        grouping_of_column(cells, "county", AXES, LABELS)


@pytest.mark.parametrize(
    ("totals", "rule"),
    [
        (frame(state=["west"], n=[1.0]), "must use labels of the table's 'state', got 'west'"),
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
        (frame(r=["q"], state=["s"]), "must use labels of the table's 'r', got 'q'"),
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
        [(r, x, "s" if r in "ab" else "t", counts[i, j]) for i, r in enumerate(ROWS) for j, x in enumerate(COLUMNS)],
        columns=["r", "x", "state", "n"],
    )
    by_state = cells.groupby("state", as_index=False)["n"].sum()
    by_age = cells.groupby("x", as_index=False)["n"].sum()
    cells["n"] = counts.ravel() // 3 * 3
    release = cv.import_long(
        cells, AXES, "n", m.RandomRounding(3), "s", totals=[(by_state,), (by_age, m.DiscreteGaussian(2))]
    )
    assert [each.over for each in release.extras.totals] == [None, (0,)]
    assert release.extras.totals[0].values == (int(counts[:2].sum()), int(counts[2:].sum()))
    assert release.extras.totals[0].labels == ("s", "t")
    assert release.extras.totals[1].mechanism == m.DiscreteGaussian(2)
    with pytest.raises(TypeError, match="a DataFrame, or a list"):
        cv.import_long(cells, AXES, "n", m.RandomRounding(3), "s", totals=[by_state])
