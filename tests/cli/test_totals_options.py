import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

import countveil as cv
from countveil.privacy._extras import Extras
from tests.commands import fails, run

m = cv.mechanisms
SHORT = ["--topics", "2", "--draws", "4", "--tune", "2", "--chains", "1", "--seed", "1", "--threads", "1"]
RNG = np.random.default_rng(8)
COUNTS = RNG.poisson(RNG.gamma(0.8, 20.0, (8, 3)))
ROWS, COLUMNS = [f"county {i}" for i in range(8)], ["young", "middle", "old"]
STATES = ["north"] * 3 + ["south"] * 5
BY_STATE = [int(COUNTS[:3].sum()), int(COUNTS[3:].sum())]
HIDDEN = ("--mechanism", "suppression", "--below", "10", "--absent", "Suppressed", "--source", "Others")
LONG = ("import", "long.csv", "-o", "r.npz", *HIDDEN, "--long", "county,age", "--value", "deaths")
WIDE = ("import", "wide.csv", "-o", "r.npz", *HIDDEN)


def words(value):
    return "Suppressed" if 0 < value < 10 else str(value)


def write(path, **columns):
    pd.DataFrame(columns).to_csv(path, index=False)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a table, wide and long, and files of totals."""
    monkeypatch.chdir(tmp_path)
    shown = [[words(n) for n in row] for row in COUNTS]
    pd.DataFrame(shown, ROWS, COLUMNS).to_csv("wide.csv", index_label="county")
    cells = [(r, a, s, shown[i][j]) for i, (r, s) in enumerate(zip(ROWS, STATES, strict=True))
             for j, a in enumerate(COLUMNS)]  # fmt: skip
    pd.DataFrame(cells, columns=["county", "age", "state", "deaths"]).to_csv("long.csv", index=False)
    write("states.csv", county=ROWS[::-1], state=STATES[::-1])
    write("by_state.csv", state=["south", "north"], deaths=BY_STATE[::-1])
    rounded = cv.simulate_reports(COUNTS.sum(0), m.RandomRounding(5), np.random.default_rng(1))
    write("by_age.csv", age=COLUMNS[::-1], deaths=rounded[::-1].astype(int))
    write("named.csv", county=ROWS, totals=STATES)
    write("by_county.csv", county=ROWS[1:], deaths=[words(n) for n in COUNTS.sum(1)[1:]])
    return tmp_path


def families():
    """(axes, mechanism, values, labels) of the totals in the release."""
    return [(each.over, each.mechanism, each.values, each.labels) for each in cv.Release.load("r.npz").extras.totals]


def rounded_ages():
    return tuple(map(int, cv.simulate_reports(COUNTS.sum(0), m.RandomRounding(5), np.random.default_rng(1))))


@pytest.mark.long
def test_three_families_of_a_wide_table_are_kept_fitted_shown_and_reported(here):
    given = ("--totals", "by_state.csv", "--totals-of", "states.csv", "--totals-mechanism", "exact",
             "--totals", "by_age.csv", "--totals-of", "columns", "--totals-mechanism", "random-rounding --base 5",
             "--totals", "by_county.csv", "--totals-of", "rows",
             "--totals-mechanism", "suppression --below=10")  # fmt: skip
    said = run(*WIDE, *given).stdout
    assert "2 exact totals, sums over groups of cells; 3 totals with random rounding (base 5)" in said
    state, age, county = families()
    assert state == (None, None, (BY_STATE[1], BY_STATE[0]), ("south", "north"))
    assert age == ((0,), m.RandomRounding(5), rounded_ages(), None)
    assert county[:2] == (None, m.Suppression(10))  # county 0 has no row: not known
    assert county[2] == tuple(None if 0 < n < 10 else int(n) for n in COUNTS.sum(1)[1:])
    said = run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT).stdout
    used = "Totals used: 2 exact totals, sums over groups of cells; 3 totals with random rounding (base 5)"
    assert used in said
    assert used in run("show", "f.nc").stdout
    run("report", "f.nc", "-o", "f.html", "--release", "r.npz")
    assert "3 totals with random rounding (base 5), sums over axis 0" in (here / "f.html").read_text()


def test_totals_of_a_long_table_go_by_its_columns_or_by_files_of_groups(here):
    given = ("--totals", "by_state.csv", "--totals", "by_age.csv",
             "--totals-mechanism", "exact", "--totals-mechanism", "random-rounding --base 5")  # fmt: skip
    run(*LONG, *given)
    state, age = families()
    assert state == (None, None, (BY_STATE[1], BY_STATE[0]), ("south", "north"))
    order = [COLUMNS.index(label) for label in cv.Release.load("r.npz").column_labels]
    assert age == ((0,), m.RandomRounding(5), tuple(rounded_ages()[j] for j in order), None)
    groups = [tuple(each.groups) for each in cv.Release.load("r.npz").extras.totals[:1]]
    cells = pd.read_csv("long.csv").drop(columns="state")
    cells.to_csv("long.csv", index=False)
    assert "got columns" in fails(*LONG[:3], "s.npz", *LONG[4:], *given)
    run(*LONG[:3], "s.npz", *LONG[4:], *given, "--totals-of", "states.csv")
    assert [tuple(each.groups) for each in cv.Release.load("s.npz").extras.totals[:1]] == groups


def test_both_margins_of_a_wide_table_are_kept(here):
    table = pd.DataFrame([[words(n) for n in row] for row in COUNTS], ROWS, COLUMNS)
    table["all"] = COUNTS.sum(1)
    table.loc["total"] = [*COUNTS.sum(0), COUNTS.sum()]
    table.to_csv("margins.csv", index_label="county")
    inside = ("--total-row", "total", "--total-column", "all", "--totals-of", "both")
    run("import", "margins.csv", "-o", "r.npz", *HIDDEN, *inside)
    wanted = [((1,), None, tuple(COUNTS.sum(1)), None), ((0,), None, tuple(COUNTS.sum(0)), None)]
    assert families() == wanted
    run("import", "margins.csv", "-o", "s.npz", *HIDDEN, *inside, "--totals-mechanism", "discrete-gaussian --sigma 3")
    assert len(cv.Release.load("s.npz").extras.totals) == 3
    write("both.csv", label=[*ROWS, *COLUMNS], deaths=[*COUNTS.sum(1), *COUNTS.sum(0)])
    run(*WIDE, "--force", "--totals", "both.csv", "--totals-of", "both")
    assert families() == wanted
    write("all.csv", all=["all"], deaths=[COUNTS.sum()])
    run(*WIDE, "--force", "--totals", "all.csv", "--totals-of", "table", "--totals-mechanism", "exact")
    assert families() == [((0, 1), None, (COUNTS.sum(),), None)]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (("--totals", "by_state.csv", "--totals-of", "rows"), "must use labels of the table's 'rows', got 'south'"),
        (("--totals", "by_county.csv", "--totals-of", "states.csv"), "the table's 'state', got 'county 1'"),
        (("--totals", "by_state.csv", "--totals-of", "long.csv"), "groups must have columns among"),
        (("--totals", "by_state.csv", "--totals-of", "none.csv"), "or a file of groups, got 'none.csv'"),
        (("--totals-mechanism", "exact"), "--totals-mechanism must come with --totals"),
        (
            ("--totals", "by_age.csv", "--totals-of", "rows", "--totals-of", "columns"),
            "given once, or once for each of 1 files of totals, got it 2 times",
        ),
        (
            ("--totals", "by_age.csv", "--totals-of", "columns", "--totals-mechanism", "rounding --base 7"),
            "reports must be multiples of 7",
        ),
        (
            ("--totals", "by_age.csv", "--totals-of", "columns", "--totals-mechanism", "rounding"),
            "--totals-mechanism 'rounding': --mechanism rounding must come with --base",
        ),
        (
            ("--totals", "by_age.csv", "--totals-of", "columns", "--totals-mechanism", "exact --base 3"),
            "--totals-mechanism 'exact --base 3': --mechanism must be one of",
        ),
        (
            ("--totals", "by_age.csv", "--totals-of", "columns", "--totals-mechanism", "rounding base 3"),
            "a mechanism with its options, such as",
        ),
        (
            ("--total-row", "county 1", "--totals-of", "states.csv"),
            "--totals-of must be rows, columns or both with --total-row and --total-column, got 'states.csv'",
        ),
        (("--totals", "by_age.csv", "--totals-of", "named.csv"), "must not call its groups 'totals'"),
    ],
)
def test_what_is_wrong_with_totals_is_said_in_one_line_and_nothing_is_written(here, options, rule):
    assert rule in fails(*WIDE, *options)
    assert not (here / "r.npz").exists()


@pytest.mark.parametrize("options", [("--total-row", "all"), ("--totals", "by_age.csv", "--totals-of", "columns")])
@pytest.mark.parametrize(("shape", "rule"), [((3,), "two axes, rows and columns, got 1"),
                                             ((2, 2, 2), "two axes, rows and columns, got 3")])  # fmt: skip
def test_arrays_without_rows_and_columns_have_no_totals(here, options, shape, rule):
    np.save("cells.npy", np.full(shape, 12))
    assert rule in fails("import", "cells.npy", "-o", "r.npz", *HIDDEN, *options)


def test_a_sparse_matrix_has_no_row_that_is_called_as_the_totals(here):
    scipy.io.mmwrite("cells.mtx", sp.csr_array(np.diag([12, 30])))
    assert "--total-row must be the name of one" in fails("import", "cells.mtx", "-o", "r.npz", *HIDDEN,
                                                          "--total-row", "all")  # fmt: skip


@pytest.mark.parametrize(
    ("groups", "rule"),
    [
        (("states.csv", "states.csv"), "different names in different tables, got 'state' in two"),
        (("states.csv", "named.csv"), "have the name of a column in a table of totals, got 'totals'"),
    ],
)
def test_files_of_groups_that_no_totals_are_of_are_refused(here, groups, rule):
    given = ("--totals", "by_state.csv", *(word for path in groups for word in ("--totals-of", path)))
    assert rule in fails(*LONG, *given)


def test_totals_that_contradict_each_other_are_refused_when_imported_and_again_from_a_file(here):
    write("wrong.csv", state=["south", "north"], deaths=[BY_STATE[1] + 10**6, BY_STATE[0]])
    given = ("--totals", "wrong.csv", "--totals-of", "states.csv")
    assert "totals must be possible with the reports" in fails(*WIDE, *given)
    groups = [place for state in STATES for place in [STATES.index(state) // 3] * 3]
    values = np.array([[np.nan if 0 < n < 10 else n for n in row] for row in COUNTS])
    wrong = [(None, tuple(BY_STATE), None, groups), ((0, 1), (sum(BY_STATE) + 1,))]
    cv.Release(values, m.Suppression(10), False, source="s", extras=Extras(totals=wrong)).save("r.npz")
    assert "totals must agree" in fails("fit", "topics", "r.npz", "-o", "f.nc", *SHORT)
