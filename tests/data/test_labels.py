"""Labels: as text, of what comes beside the data, and of DataFrames, whose numbers are read with them."""

import re
from decimal import Decimal

import anndata
import networkx as nx
import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.data import labels
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
        anndata.AnnData(X=COUNTS.astype(np.float32), obs=pd.DataFrame(index=ROWS), var=pd.DataFrame(index=COLUMNS)),
        *given,
        **options,
    ),
    "CountTable": lambda *given, **options: PrivatizedCounts(CountTable(COUNTS, ROWS, COLUMNS), *given, **options),
    "long table": lambda *given, **options: PrivatizedCounts.from_frame(LONG, ["who", "what"], "n", *given, **options),
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
    message = f"{name} must have the {axis} labels of reports in their order, got '{got}' for '{first}' at {axis} 0"
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
    with pytest.raises(ValueError, match=r"alpha must have the row labels of reports .* got '0' for '2' at row 0"):
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
    graph = nx.DiGraph([("b", "a", {"weight": 1}), ("a", "c", {"weight": 1})])
    PrivatizedCounts.from_graph(graph, pd.Series(LEVELS, ["b", "a", "c"]))
    with pytest.raises(ValueError, match=r"alpha must have the row labels of reports .* got 'a' for 'b' at row 0"):
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
    phi = pd.Series(1.0, pd.Index(FRAME.columns, name="v")).to_frame("k").rename_axis("k", axis=1).stack().to_xarray()
    for wanted, values in ((True, phi.sel(v=list(FRAME.columns))), (False, phi.sel(v=list(FRAME.columns[::-1])))):
        model = cv.PoissonFactorization(
            "dk,vk->dv", {"k": 1}, names=["theta", "phi"], fixed={"phi": values}, alpha=0.3, draws=2, tune=1, chains=1,
            progress=False,
        )  # fmt: skip
        if wanted:
            model.fit(FRAME)
            continue
        with pytest.raises(ValueError, match="fixed factor 'phi' must have the v labels of reports in their order"):
            model.fit(FRAME)


TABLE = np.array([[3, 0, 1], [0, 5, 2], [4, 1, 0]])
LEVEL = cv.PrivacyLevel(1, 1)
BRIEF = {"draws": 2, "tune": 1, "chains": 1, "seed": 1, "progress": False}
REMEDY = "index_col=0 or use .set_index"


def frame(rows=("ann", "bob", "cy"), columns=("aid", "talk", "war")):
    return pd.DataFrame(TABLE, index=list(rows), columns=list(columns))


def same(found, wanted):
    """Whether the same cells are stored."""
    return all(
        np.array_equal(getattr(found, name), getattr(wanted, name))
        for name in ("indptr", "columns", "reports", "level_d")
    )


NUMBERS = {
    "int64": lambda f: f,
    "float": lambda f: f.astype(float),
    "small": lambda f: f.astype("uint8"),
    "mixed": lambda f: f.astype({"aid": float, "talk": "uint8"}),
    "Int64": lambda f: f.astype("Int64"),
    "mixed with Int64": lambda f: f.astype({"aid": "Int64", "talk": "Float64"}),
    "objects": lambda f: f.astype(object),
    "decimals": lambda f: f.map(Decimal),
    "categorical": lambda f: f.astype("category"),
    "sparse": lambda f: f.astype(pd.SparseDtype(int, 0)),
    "sparse of NaN": lambda f: f.astype(pd.SparseDtype(float, np.nan)),
    "partly sparse": lambda f: f.astype({"aid": pd.SparseDtype(int, 0)}),
}


@pytest.mark.parametrize("change", NUMBERS.values(), ids=NUMBERS)
def test_numbers_of_every_type_are_the_same_counts(change):
    for make in (ExactCounts, NaiveCounts, lambda data: PrivatizedCounts(data, 0.5)):
        found = make(change(frame()))
        assert same(found, make(TABLE))
        assert found.labels == (["ann", "bob", "cy"], ["aid", "talk", "war"])


def test_a_sparse_frame_stays_sparse(monkeypatch):
    monkeypatch.setattr(pd.DataFrame, "to_numpy", None)
    assert same(ExactCounts(frame().astype(pd.SparseDtype(int, 0))), ExactCounts(TABLE))


@pytest.mark.parametrize("kind", ["bool", "boolean"])
def test_booleans_count_as_zero_and_one(kind):
    assert same(ExactCounts((frame() > 0).astype(kind)), ExactCounts((TABLE > 0).astype(int)))
    partly = frame().astype(object)
    partly["aid"] = (frame()["aid"] > 0).astype(kind)
    assert same(ExactCounts(partly), ExactCounts(np.column_stack([TABLE[:, 0] > 0, TABLE[:, 1:]])))


MISSING = {
    "float": frame().where(TABLE > 0),
    "Int64": frame().astype("Int64").where(TABLE > 0),
    "objects": frame().astype(object).where(TABLE > 0, None),
    "sparse": frame().astype(float).where(TABLE > 0).astype(pd.SparseDtype(float)),
}


@pytest.mark.parametrize("data", MISSING.values(), ids=MISSING)
def test_missing_reports_are_refused_and_the_mask_that_is_named_takes_them(data):
    message = r"got nan at index \(0, 1\): mask cells without a report, mask=frame.isna\(\)"
    for make in (ExactCounts, NaiveCounts, lambda *given: PrivatizedCounts(given[0], 0.5, *given[1:])):
        with pytest.raises(ValueError, match=message):
            make(data)
        for mask in (data.isna(), data.isna().astype("boolean"), data.isna().to_numpy()):
            assert same(make(data, mask), make(TABLE, TABLE == 0))
    with pytest.raises(ValueError, match=r"X must have no missing values.*mask=X.isna\(\)"):
        cv.TopicModel(2, alpha=0.5, **BRIEF).fit(data)
    message = r"missing value \(NaN\) at index .*; put 0 where nothing was counted"
    if data.dtypes.iloc[0].kind == "O":
        message = "something that is not a number"
    with pytest.raises(ValueError, match=message):
        cv.privatize(data, LEVEL)


def test_a_mask_with_other_labels_is_refused():
    data = frame()
    for mask, axis in ((data.iloc[::-1] == 0, "row"), (data.iloc[:, ::-1] == 0, "column")):
        with pytest.raises(ValueError, match=f"mask must have the {axis} labels of reports in their order"):
            ExactCounts(data, mask)
    assert ExactCounts(data, pd.DataFrame(TABLE == 0)).n_masked == 3


def saved(data):
    """A frame that was written to a file with its index, and read without it."""
    return data.reset_index().rename(columns={"index": "Unnamed: 0"})


FORGOTTEN = {
    "text": (frame().reset_index(), "text in"),
    "categories": (frame().reset_index().astype({"index": "category"}), "text in column 0"),
    "numbers as text": (frame(rows="123").reset_index(), "text in"),
    "saved": (saved(frame(rows=[0, 1, 2])), "column called 'Unnamed: 0'"),
    "saved sparse": (saved(frame(rows=[0, 1, 2])).astype(pd.SparseDtype(int, 0)), "called 'Unnamed: 0'"),
    "reset": (frame(rows=[5, 6, 8]).reset_index(), "column called 'index'"),
}


@pytest.mark.parametrize(("data", "message"), FORGOTTEN.values(), ids=FORGOTTEN)
def test_an_index_among_the_columns_is_refused_and_the_remedy_named(data, message):
    for make in (ExactCounts, NaiveCounts, lambda data: PrivatizedCounts(data, 0.5)):
        with pytest.raises(ValueError, match=f"{re.escape(message)}.*{REMEDY}"):
            make(data)
    if "categor" not in str(data.dtypes.iloc[0]):
        with pytest.raises(ValueError, match=f"{re.escape(message)}.*{REMEDY}"):
            cv.privatize(data, LEVEL)
    assert ExactCounts(data.set_index(data.columns[0])).column_labels == ["aid", "talk", "war"]


def test_text_and_dates_in_later_columns_are_refused():
    with pytest.raises(ValueError, match="got text in column 2"):
        ExactCounts(frame().assign(war=["1", "2", "3"]))
    with pytest.raises(ValueError, match="got values of type Timestamp in column 1"):
        ExactCounts(frame().assign(talk=pd.date_range("2020", periods=3)))
    with pytest.raises(ValueError, match="got dtype complex128"):
        ExactCounts(frame().astype(complex))


def counted(first, **options):
    """A frame of twelve rows with this first column."""
    rest = np.random.default_rng(1).poisson(3.0, (12, 2))
    return pd.DataFrame({"count": first, "aid": rest[:, 0], "talk": rest[:, 1]}, **options)


WARNED = {
    "increases": (counted([7 * i * i for i in range(12)]), "the first column increases from row to row"),
    "increases, floats": (counted([7.0 * i * i for i in range(12)]), "the first column increases"),
    "numbers the rows": (counted(range(12), index=list("abcdefghijkl")), "column 0 holds consecutive numbers"),
    "numbers the rows, floats": (
        counted(range(12))[["aid", "count", "talk"]].astype({"count": float}),
        "column 1 holds consecutive numbers",
    ),
    "ids": (counted([7 * i * i for i in range(12)][::-1]).rename(columns={"count": "doc_id"}), "column 'doc_id'"),
}


@pytest.mark.parametrize(("data", "message"), WARNED.values(), ids=WARNED)
def test_a_column_that_looks_like_an_index_is_warned_of(data, message):
    for make in (ExactCounts, lambda data: cv.privatize(data, LEVEL)):
        with pytest.warns(UserWarning, match=f"{message}.*{REMEDY}"):
            make(data)
        make(data.set_index(next(name for name in data if name in ("count", "doc_id"))))


def test_a_column_of_counts_that_could_be_an_index_is_not_warned_of():
    increasing = [7 * i * i for i in range(12)]
    for make in (ExactCounts, lambda data: cv.privatize(data, LEVEL)):
        make(counted(increasing, index=[f"row {i}" for i in range(12)]))
        make(counted(range(12))[:9])
        make(counted([*increasing[:-1], 0]))


def test_a_table_that_was_saved_twice_with_its_index_is_refused(tmp_path):
    path = tmp_path / "table.csv"
    frame(rows=range(3)).to_csv(path)
    pd.read_csv(path).to_csv(path)
    for make in (ExactCounts, lambda data: cv.privatize(data, LEVEL)):
        for options in ({}, {"index_col": 0}):
            with pytest.raises(ValueError, match=r"column called 'Unnamed: 0(\.1)?'.*or leave it out"):
                make(pd.read_csv(path, **options))


LABELS = {
    "text": (["x", "y", "z"], ["x", "y", "z"]),
    "numbers": ([5, 6, 8], ["5", "6", "8"]),
    "dates": (pd.date_range("2020-01-01", periods=3), [f"2020-01-0{i} 00:00:00" for i in (1, 2, 3)]),
    "months": (pd.period_range("2020-01", periods=3, freq="M"), ["2020-01", "2020-02", "2020-03"]),
    "categories": (pd.CategoricalIndex(["x", "y", "z"]), ["x", "y", "z"]),
    "levels": (pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1)]), ["x | 1", "x | 2", "y | 1"]),
    "missing": (["x", None, np.nan], ["x", "None", "nan"]),
    "empty text": (["", "y", "z"], ["", "y", "z"]),
}


@pytest.mark.parametrize(("labels", "texts"), LABELS.values(), ids=LABELS)
@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_labels_are_kept_from_the_owner_to_the_results(labels, texts):
    data = pd.DataFrame(TABLE, index=labels, columns=labels)
    release = cv.privatize(data, LEVEL)
    assert release.labels == (tuple(texts), tuple(texts))
    fit = cv.TopicModel(2, **BRIEF).fit(release)
    assert fit.posterior["posterior"]["doc"].to_numpy().tolist() == texts
    assert set(fit.parts.members("word", 3)["member"]) == set(texts)
    assert fit.transform(PrivatizedCounts(data, 0.5)).shape == (3, 2)
    with pytest.raises(ValueError, match="columns of the fit in their order"):
        fit.transform(PrivatizedCounts(data.iloc[:, ::-1], 0.5))


def test_levels_of_columns_fold_into_axes():
    columns = pd.MultiIndex.from_product([["aid", "war"], [1990, 1991]])
    data = ExactCounts(pd.DataFrame(np.arange(12).reshape(3, 4), columns=columns)).folded()
    assert data.labels == (None, ["aid", "war"], ["1990", "1991"])


@pytest.mark.parametrize("axis", ["row", "column"])
def test_labels_that_are_the_same_text_are_refused(axis):
    labels = {f"{axis}s": [1, "1", 2]}
    with pytest.raises(ValueError, match=f"{axis} labels must differ as text, got 1 and '1'"):
        ExactCounts(frame(**labels))
    with pytest.raises(ValueError, match="labels must differ"):
        cv.privatize(frame(**labels), LEVEL)


@pytest.mark.parametrize("labels", [[("a | b", "c"), ("a", "b | c"), ("x", "y")], [(1, "c"), ("1", "c"), ("x", "y")]])
def test_labels_of_several_levels_that_are_joined_to_the_same_text_are_refused(labels):
    table = frame().set_axis(pd.MultiIndex.from_tuples(labels))
    with pytest.raises(ValueError, match=r"labels must differ as text, got \(.*\) and \("):
        ExactCounts(table)
    with pytest.raises(ValueError, match=r"got two that do not, once their levels are joined by ' \| '$"):
        cv.privatize(table, LEVEL)


def test_columns_must_differ_and_rows_need_not():
    with pytest.raises(ValueError, match="column labels must differ, got 'x' twice"):
        ExactCounts(frame(columns=["y", "x", "x"]))
    assert ExactCounts(frame(rows=["x", "x", "y"])).row_labels == ["x", "x", "y"]
    assert ExactCounts(frame(rows=[np.nan, np.nan, "y"])).row_labels == ["nan", "nan", "y"]
    assert ExactCounts(frame(columns="xxx"), column_labels=["a", "b", "c"]).column_labels == ["a", "b", "c"]


@pytest.mark.parametrize("axis", ["row", "column"])
def test_labels_that_differ_in_white_space_are_warned_of_and_kept(axis):
    labels = ["aid", "aid ", "war"]
    message = f"{axis} labels 'aid' and 'aid ' differ only in white space"
    with pytest.warns(UserWarning, match=message) as caught:
        found = ExactCounts(frame(**{f"{axis}s": labels}))
    assert len(caught) == 1
    assert getattr(found, f"{axis}_labels") == labels


@pytest.mark.parametrize("data", [pd.DataFrame(), frame().iloc[:0], frame().iloc[:, :0]])
def test_frames_without_rows_or_columns_are_refused(data):
    for change in (lambda f: f, lambda f: f.astype(pd.SparseDtype(int, 0))):
        with pytest.raises(ValueError, match="at least one row and one column, got an empty matrix"):
            ExactCounts(change(data))
        with pytest.raises(ValueError, match="at least one row and one column"):
            cv.privatize(change(data), LEVEL)


def test_the_separator_is_that_of_count_tables():
    from countveil.data import frames
    from countveil.privacy import _counts

    assert labels.SEPARATOR == frames.SEPARATOR == _counts._BETWEEN_LEVELS
