"""DataFrames as people have them: every type of column and label, masks, and an index among the columns."""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.data import frames
from countveil.data.observations import ExactCounts, NaiveCounts, PrivatizedCounts

COUNTS = np.array([[3, 0, 1], [0, 5, 2], [4, 1, 0]])
LEVEL = cv.PrivacyLevel(1, 1)
BRIEF = {"draws": 2, "tune": 1, "chains": 1, "seed": 1, "progress": False}
REMEDY = "index_col=0 or use .set_index"


def frame(rows=("ann", "bob", "cy"), columns=("aid", "talk", "war")):
    return pd.DataFrame(COUNTS, index=list(rows), columns=list(columns))


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
        assert same(found, make(COUNTS))
        assert found.labels == (["ann", "bob", "cy"], ["aid", "talk", "war"])


def test_a_sparse_frame_stays_sparse(monkeypatch):
    monkeypatch.setattr(pd.DataFrame, "to_numpy", None)
    assert same(ExactCounts(frame().astype(pd.SparseDtype(int, 0))), ExactCounts(COUNTS))


@pytest.mark.parametrize("kind", ["bool", "boolean"])
def test_booleans_count_as_zero_and_one(kind):
    assert same(ExactCounts((frame() > 0).astype(kind)), ExactCounts((COUNTS > 0).astype(int)))
    partly = frame().astype(object)
    partly["aid"] = (frame()["aid"] > 0).astype(kind)
    assert same(ExactCounts(partly), ExactCounts(np.column_stack([COUNTS[:, 0] > 0, COUNTS[:, 1:]])))


MISSING = {
    "float": frame().where(COUNTS > 0),
    "Int64": frame().astype("Int64").where(COUNTS > 0),
    "objects": frame().astype(object).where(COUNTS > 0, None),
    "sparse": frame().astype(float).where(COUNTS > 0).astype(pd.SparseDtype(float)),
}


@pytest.mark.parametrize("data", MISSING.values(), ids=MISSING)
def test_missing_reports_are_refused_and_the_mask_that_is_named_takes_them(data):
    message = r"got nan at index \(0, 1\): mask cells without a report, mask=frame.isna\(\)"
    for make in (ExactCounts, NaiveCounts, lambda *given: PrivatizedCounts(given[0], 0.5, *given[1:])):
        with pytest.raises(ValueError, match=message):
            make(data)
        for mask in (data.isna(), data.isna().astype("boolean"), data.isna().to_numpy()):
            assert same(make(data, mask), make(COUNTS, COUNTS == 0))
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
    assert ExactCounts(data, pd.DataFrame(COUNTS == 0)).n_masked == 3


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
    "numbers the rows": (
        counted(range(12), index=list("abcdefghijkl")),
        "column 0 holds consecutive numbers",
    ),
    "numbers the rows, floats": (
        counted(range(12))[["aid", "count", "talk"]].astype({"count": float}),
        "column 1 holds consecutive numbers",
    ),
    "ids": (
        counted([7 * i * i for i in range(12)][::-1]).rename(columns={"count": "doc_id"}),
        "column 'doc_id'",
    ),
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
    data = pd.DataFrame(COUNTS, index=labels, columns=labels)
    release = cv.privatize(data, LEVEL)
    assert release.labels == (tuple(texts), tuple(texts))
    fit = cv.TopicModel(2, **BRIEF).fit(release)
    assert fit.posterior["posterior"]["doc"].to_numpy().tolist() == texts
    assert set(fit.members("word", 3)["member"]) == set(texts)
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


@pytest.mark.parametrize(
    "labels", [[("a | b", "c"), ("a", "b | c"), ("x", "y")], [(1, "c"), ("1", "c"), ("x", "y")]]
)
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
    message = f"{axis} labels 'aid' and 'aid ' differ in white space alone"
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
    from countveil.data import tables
    from countveil.privacy import _counts

    assert frames.SEPARATOR == tables.SEPARATOR == _counts._BETWEEN_LEVELS
