"""Noise levels, offsets and masks with labels: those of the data in their order, or refused."""

import re

import anndata
import networkx as nx
import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.data.io import CountTable
from countveil.data.observations import ExactCounts, NaiveCounts, PrivatizedCounts
from tests.data.same import assert_same

COUNTS = np.array([[3, 0, 1], [0, 5, 2], [4, 1, 0]])
ROWS, COLUMNS = list("abc"), list("xyz")
LEVELS = np.array([0.1, 0.5, 0.9])
CELLS = np.linspace(0.1, 0.9, 9).reshape(3, 3)
BOTH = {"row_labels": ROWS, "column_labels": COLUMNS}
FRAME = pd.DataFrame(COUNTS, index=ROWS, columns=COLUMNS)
LONG = FRAME.stack().rename("n").rename_axis(["who", "what"]).reset_index()


def table(values, rows=ROWS, columns=COLUMNS):
    return pd.DataFrame(values, index=rows, columns=columns)


LABELLED = {
    "table": lambda *given, **options: PrivatizedCounts(FRAME, *given, **options),
    "array": lambda *given, **options: PrivatizedCounts(COUNTS, *given, **options, **BOTH),
    "labels": lambda *given, **options: PrivatizedCounts(COUNTS, *given, **options, labels=[ROWS, COLUMNS]),
    "AnnData": lambda *given, **options: PrivatizedCounts(
        anndata.AnnData(
            X=COUNTS.astype(np.float32), obs=pd.DataFrame(index=ROWS), var=pd.DataFrame(index=COLUMNS)
        ),
        *given,
        **options,
    ),
    "CountTable": lambda *given, **options: PrivatizedCounts(
        CountTable(COUNTS, ROWS, COLUMNS), *given, **options
    ),
    "long table": lambda *given, **options: PrivatizedCounts.from_frame(
        LONG, ["who", "what"], "n", *given, **options
    ),
}
BESIDE = {
    "alpha of rows": ("alpha", pd.Series(LEVELS, ROWS), "row"),
    "alpha of rows in a table": ("alpha", table(LEVELS[:, None], columns=["alpha"]), "row"),
    "alpha of columns": ("alpha", table(LEVELS[None, :], rows=["alpha"]), "column"),
    "alpha of cells, by row": ("alpha", table(CELLS), "row"),
    "alpha of cells, by column": ("alpha", table(CELLS), "column"),
    "row_offset": ("row_offset", pd.Series(LEVELS, ROWS), "row"),
    "column_offset": ("column_offset", pd.Series(LEVELS, COLUMNS), "column"),
    "mask, by row": ("mask", table(CELLS < 0.3), "row"),
    "mask, by column": ("mask", table(CELLS < 0.3), "column"),
    "mask of nullable booleans": ("mask", table(CELLS < 0.3).astype("boolean"), "row"),
}


def turned(value, axis):
    """A pandas object with its entries along an axis the other way round."""
    return value.iloc[::-1] if axis == "row" or value.ndim == 1 else value.iloc[:, ::-1]


def given(make, name, value):
    return make(value) if name == "alpha" else make(0.5, **{name: value})


@pytest.mark.parametrize("make", LABELLED.values(), ids=LABELLED)
@pytest.mark.parametrize(("name", "value", "axis"), BESIDE.values(), ids=BESIDE)
def test_labels_in_another_order_are_refused_and_the_first_is_named(make, name, value, axis):
    found = given(make, name, value)
    plain = value.to_numpy(dtype=bool) if name == "mask" else value.to_numpy()
    wanted = given(make, name, plain)
    assert_same(found, wanted)
    for each in ("prior_scale_d", "prior_scale_v"):
        np.testing.assert_array_equal(getattr(found, each), getattr(wanted, each))
    got, first = ("c", "a") if axis == "row" else ("z", "x")
    message = (
        f"{name} must have the {axis} labels of reports in their order, got '{got}' for '{first}' at {axis} 0"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        given(make, name, turned(value, axis))


@pytest.mark.parametrize("name", ["mask", "row_offset", "column_offset"])
@pytest.mark.parametrize("make", [ExactCounts, NaiveCounts])
def test_counts_without_noise_check_what_comes_beside_them(make, name):
    value, axis = next((value, axis) for each, value, axis in BESIDE.values() if each == name)
    for data, options in ((FRAME, {}), (COUNTS, BOTH), (COUNTS, {"labels": [ROWS, COLUMNS]})):
        make(data, **{name: value}, **options)
        with pytest.raises(ValueError, match=f"{name} must have the {axis} labels of reports"):
            make(data, **{name: turned(value, axis)}, **options)


def test_a_label_that_the_data_do_not_have_is_named():
    with pytest.raises(ValueError, match="got 'dan' for 'b' at row 1"):
        PrivatizedCounts(FRAME, pd.Series(LEVELS, ["a", "dan", "c"]))


def test_without_labels_on_one_side_it_goes_by_position():
    wanted = PrivatizedCounts(COUNTS, LEVELS)
    assert_same(PrivatizedCounts(COUNTS, pd.Series(LEVELS, ROWS)), wanted)
    assert_same(PrivatizedCounts(FRAME, pd.Series(LEVELS)), wanted)
    assert_same(PrivatizedCounts(pd.DataFrame(COUNTS), pd.Series(LEVELS, ROWS)), wanted)
    assert_same(PrivatizedCounts(FRAME, pd.Series(LEVELS, ROWS).to_numpy()), wanted)


def test_a_default_numbering_is_a_label_where_the_data_have_the_same_numbers_in_another_order():
    shuffled = pd.DataFrame(COUNTS).iloc[[2, 0, 1]]
    levels = pd.Series(LEVELS)
    with pytest.raises(
        ValueError, match=r"alpha must have the row labels of reports .* got '0' for '2' at row 0"
    ):
        PrivatizedCounts(shuffled, levels)
    with pytest.raises(ValueError, match="got '2' for '0' at row 0"):
        PrivatizedCounts(pd.DataFrame(COUNTS), levels.iloc[[2, 0, 1]])
    found = PrivatizedCounts(shuffled, levels.loc[shuffled.index])
    np.testing.assert_array_equal(found.level_d, LEVELS[[2, 0, 1]])


def test_one_row_for_all_needs_no_label_of_the_data():
    found = PrivatizedCounts(FRAME[:1], table(LEVELS[None, :], rows=["alpha"]))
    np.testing.assert_array_equal(found.level_e, LEVELS)
    with pytest.raises(ValueError, match="got 'z' for 'x' at column 0"):
        PrivatizedCounts(FRAME[:1], table(LEVELS[None, :], rows=["alpha"], columns=COLUMNS[::-1]))


def test_labels_of_the_data_or_those_given_beside_them_will_do():
    names = ["ann", "bob", "cy"]
    for index in (ROWS, names):
        PrivatizedCounts(FRAME, pd.Series(LEVELS, index), row_labels=names)
    with pytest.raises(ValueError, match="got 'eve' for 'a' at row 0"):
        PrivatizedCounts(FRAME, pd.Series(LEVELS, ["eve", "bob", "cy"]), row_labels=names)


def test_levels_of_labels_are_compared_as_they_are_joined():
    index = pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1)])
    data = FRAME.set_axis(index)
    PrivatizedCounts(data, pd.Series(LEVELS, index))
    with pytest.raises(ValueError, match=re.escape("got 'y | 1' for 'x | 1' at row 0")):
        PrivatizedCounts(data, pd.Series(LEVELS, index[::-1]))


def test_a_tensor_checks_the_labels_of_its_rows_and_of_its_last_two_axes():
    labels = [ROWS, ["p", "q"], ["one", "two"]]
    reports = np.arange(12).reshape(3, 2, 2)
    PrivatizedCounts(reports, pd.Series(LEVELS, ROWS), labels=labels)
    with pytest.raises(ValueError, match="alpha must have the row labels"):
        PrivatizedCounts(reports, pd.Series(LEVELS, ROWS[::-1]), labels=labels)
    levels = table(CELLS[:2, :2], ["p", "q"], ["two", "one"])
    PrivatizedCounts(reports, levels[["one", "two"]], labels=labels)
    with pytest.raises(ValueError, match="the axis 2 labels of reports in their order, got 'two' for 'one'"):
        PrivatizedCounts(reports, levels, labels=labels)


def test_releases_and_graphs_check_what_comes_beside_them():
    release = cv.privatize(FRAME, cv.PrivacyLevel(1, 1))
    for make in (PrivatizedCounts.from_release, NaiveCounts):
        make(release, row_offset=pd.Series(LEVELS, ROWS))
        with pytest.raises(ValueError, match="row_offset must have the row labels"):
            make(release, row_offset=pd.Series(LEVELS, ROWS[::-1]))
    graph = nx.DiGraph([("b", "a"), ("a", "c")])
    PrivatizedCounts.from_graph(graph, pd.Series(LEVELS, ["b", "a", "c"]))
    with pytest.raises(
        ValueError, match=r"alpha must have the row labels of reports .* got 'a' for 'b' at row 0"
    ):
        PrivatizedCounts.from_graph(graph, pd.Series(LEVELS, ROWS))


def test_data_arrays_are_read_as_tables_are():
    levels = pd.Series(LEVELS, pd.Index(ROWS, name="row"))
    PrivatizedCounts(FRAME, levels.to_xarray())
    with pytest.raises(ValueError, match="alpha must have the row labels of reports in their order"):
        PrivatizedCounts(FRAME, levels[::-1].to_xarray())
    numbered = levels.set_axis(pd.Index(range(len(ROWS)), name="row"))
    PrivatizedCounts(FRAME, numbered.to_xarray())
    rates = FRAME.astype(float) + 1.0
    asked = FRAME.rename_axis("row").rename_axis("column", axis=1)
    named = rates.rename_axis("row").rename_axis("column", axis=1).stack().to_xarray()
    known = named.sel(row=list(FRAME.index), column=list(FRAME.columns))
    assert cv.expected_true_counts(asked, known, 0.5).shape == FRAME.shape
    with pytest.raises(ValueError, match="rate must have the row labels of reports in their order"):
        cv.expected_true_counts(asked, known[::-1], 0.5)


def test_a_fixed_factor_in_a_data_array_has_the_labels_of_the_data():
    phi = (
        pd.Series(1.0, pd.Index(FRAME.columns, name="v"))
        .to_frame("k")
        .rename_axis("k", axis=1)
        .stack()
        .to_xarray()
    )
    for wanted, values in (
        (True, phi.sel(v=list(FRAME.columns))),
        (False, phi.sel(v=list(FRAME.columns[::-1]))),
    ):
        model = cv.PoissonFactorization(
            "dk,vk->dv", {"k": 1}, names=["theta", "phi"], fixed={"phi": values}, alpha=0.3, draws=2, tune=1, chains=1,
            progress=False,
        )  # fmt: skip
        if wanted:
            model.fit(FRAME)
            continue
        with pytest.raises(
            ValueError, match="fixed factor 'phi' must have the v labels of reports in their order"
        ):
            model.fit(FRAME)
