import sys

import numpy as np
import openpyxl
import pandas as pd
import pytest

from countveil.data.tables.cells import Words
from countveil.data.tables.published import UNCALCULATED, read_long, read_protected
from countveil.data.tables.text import Format

WIDE = 'county,old,young\nAda,12,"<10"\nBo,-3,\nCy,0.5,NA\n'
LONG = 'county,age,n\nAda,old,12\nAda, young,Suppressed\nBo,"old",30\n'


def test_words_stand_for_counts_without_a_report(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(WIDE.replace("<10", "few"))
    found = read_protected(path, words=Words(("few",)))
    np.testing.assert_array_equal(found.values.data, [[12, np.nan], [-3, np.nan], [0.5, np.nan]])
    assert found.values.mask.tolist() == [[False, False], [False, True], [False, True]]
    assert (found.row_labels, found.column_labels) == (["Ada", "Bo", "Cy"], ["old", "young"])
    with pytest.raises(ValueError, match=r"--absent .*, got 'few' in row 1, column 'young'.*`countveil look t.csv`"):
        read_protected(path)


def test_tabs_numbered_rows_and_files_without_a_header(tmp_path):
    (tmp_path / "t.tsv").write_text("id\tx\n7\t3\n8\t6\n")
    found = read_protected(tmp_path / "t.tsv", row_labels="id")
    assert found.row_labels == ["7", "8"]
    np.testing.assert_array_equal(found.values, [[3], [6]])
    (tmp_path / "t.csv").write_text("3,6\n0,9\n")
    bare = read_protected(tmp_path / "t.csv", header=False)
    np.testing.assert_array_equal(bare.values, [[3, 6], [0, 9]])
    assert bare.row_labels is None
    assert bare.column_labels is None


def test_arrays_of_numpy_are_read(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[[1.5, np.nan]]]))
    assert read_protected(tmp_path / "t.npy").values.shape == (1, 1, 2)
    (tmp_path / "u.npy").write_bytes(b"no array")
    with pytest.raises(ValueError, match="must hold an array"):
        read_protected(tmp_path / "u.npy")


def test_long_tables_are_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(LONG)
    found = read_long(path, ["county", "age"], "n", Words(("Suppressed",)))
    assert not found.masked.any()
    assert list(found.frame["age"]) == ["old", "young", "old"]
    np.testing.assert_array_equal(found.frame["n"], [12, np.nan, 30])
    with pytest.raises(ValueError, match="one column 'year'"):
        read_long(path, ["county", "year"], "n")


@pytest.mark.parametrize("row_labels", [None, "county"])
def test_parquet_is_typed(tmp_path, monkeypatch, row_labels):
    frame = pd.DataFrame({"county": ["Ada", "Bo"], "n": pd.array([12, None], dtype="Int64")})
    (tmp_path / "t.parquet").write_bytes(b"columns")
    monkeypatch.setattr(pd, "read_parquet", lambda path: frame)
    found = read_protected(tmp_path / "t.parquet", row_labels=row_labels)
    np.testing.assert_array_equal(found.values, [[12], [np.nan]])
    assert found.row_labels == ["Ada", "Bo"]
    long = read_long(tmp_path / "t.parquet", ["county"], "n")
    np.testing.assert_array_equal(long.frame["n"], [12, np.nan])


def test_parquet_without_its_reader_says_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"columns")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "fastparquet", None)
    with pytest.raises(ValueError, match=r"pyarrow, which is not installed: pip install '.\[tables\]'"):
        read_protected(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", {}, "must hold a table"),
        ("\n\n", {}, "must hold a table"),
        ('a,b\n"1,2\n', {}, "must hold a table"),
        (f"a,b\n1,{'2' * 200_000}\n", {}, "must hold a table"),
        ("a,b\n1,2,3\n", {}, "2 cells in every row, got 3 in row 2: a cell with a separator in it needs quotes"),
        ("a,b\n", {}, "header row and at least one row"),
        ("name\nx\ny\n", {}, "at least one column of reports"),
        ("a,b\n1,2\n", {"row_labels": "c"}, "one column 'c'"),
        ("a,b\n1,inf\n", {}, "must hold numbers"),
        ("a,b\n1,1_0\n", {}, "must hold numbers"),
    ],
)
def test_other_files_are_refused(tmp_path, text, options, said):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_protected(path, **options)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="no table at"):
        read_protected(tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"must be a .csv"):
        read_long(tmp_path / "t.npz", ["a", "b"], "n")


def test_hidden_counts_are_no_labels_and_short_rows_no_hidden_counts(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n<10,15\n<10,20\n")
    found = read_protected(path, words=Words(("<10",)))
    assert found.row_labels is None
    np.testing.assert_array_equal(found.values, [[np.nan, 15], [np.nan, 20]])
    assert read_protected(path).cells.intervals[:, 0].tolist() == [[0, 9], [0, 9]]
    path.write_text("age,y\n0-17,15\n18-64,20\n")
    assert read_protected(path).row_labels == ["0-17", "18-64"]
    path.write_text(",x,y,z\nr1,10,20,30\n\nr2,30\n")
    with pytest.raises(ValueError, match="must have 4 cells in every row, got 2 in row 3"):
        read_protected(path)
    path.write_text("x\n12\n\n15\n")
    np.testing.assert_array_equal(read_protected(path).values, [[12], [np.nan], [15]])


def test_words_for_cells_that_were_never_reported(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("county,a,b\nAda,12,n/a\nBo,few,\n")
    few = Words(("few",), ("n/a",))
    found = read_protected(path, words=few)
    np.testing.assert_array_equal(found.values.mask, [[False, True], [False, True]])
    np.testing.assert_array_equal(found.values.data, [[12, np.nan], [np.nan, np.nan]])
    stated = read_protected(path, words=Words(("few", ""), ("n/a",)))
    np.testing.assert_array_equal(stated.values.mask, [[False, True], [False, False]])
    assert not np.ma.isMaskedArray(read_protected(path, words=Words(("few", "n/a", ""))).values)
    with pytest.raises(ValueError, match="got 'n/a' in both"):
        read_protected(path, words=Words(("n/a",), (" n/a",)))
    (tmp_path / "l.csv").write_text("c,day,n\nx,1,n/a\nx,2,\ny,1,4\n")
    found = read_long(tmp_path / "l.csv", ["c", "day"], "n", Words(missing=("n/a",)), ["day"])
    assert list(found.frame.columns) == ["c", "day", "n"]
    assert found.masked.tolist() == [True, False, False]
    assert read_long(tmp_path / "l.csv", ["c"], "n", Words(missing=("n/a", ""))).masked.tolist() == [True, True, False]


def test_years_in_order_are_labels_and_other_numbers_are_not(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("when,a,b\n2001,3,4\n2002,5,6\n2005,7,8\n")
    found = read_protected(path)
    assert (found.row_labels, found.column_labels) == (["2001", "2002", "2005"], ["a", "b"])
    path.write_text("a,b\n3,2001\n4,2005\n6,2002\n")
    assert read_protected(path).row_labels is None


@pytest.mark.parametrize(
    ("text", "remedy", "labels"),
    [
        ("Year,a\n2021,3\n2020,4\n", "state --row-labels Year;", ["2021", "2020"]),
        ("a,b\n2001,4\n2005,6\n2002,8\n", "state --row-labels a;", ["2001", "2005", "2002"]),
        ("fips,a\n01001,3\n01003,4\n", "state --row-labels fips;", ["01001", "01003"]),
        ("id,place,a\n7,Ada,3\n9,Bo,4\n", "--row-labels id,place, or --row-labels place", ["7 Ada", "9 Bo"]),
    ],
)
def test_years_and_codes_are_no_counts(tmp_path, text, remedy, labels):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="which looks like labels") as refusal:
        read_protected(path)
    assert remedy in str(refusal.value)
    columns = str(refusal.value).split("--row-labels ")[1].split(";")[0].removesuffix(", or ")
    assert read_protected(path, row_labels=columns).row_labels == labels


def test_numbers_that_may_be_codes_of_records_are_warned_of(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("kommun,a\n301,1400\n1103,900\n4601,2\n")
    with pytest.warns(UserWarning, match="'kommun' has .* if it names the rows, state --row-labels kommun"):
        assert read_protected(path).values.shape == (3, 2)
    assert read_protected(path, row_labels="kommun").row_labels == ["301", "1103", "4601"]
    path.write_text("75056,14\n13055,9\n69123,90\n")
    with pytest.raises(ValueError, match="add a row of names, and state --row-labels"):
        read_protected(path, header=False)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("area,age,year,population,deaths\nA,0-4,2019,9,5\nA,5-9,2019,8,6\nB,0-4,2019,7,9\n", "area,age deaths"),
        ("county,age,n\n1001,15-24,5\n1001,25-34,7\n1003,15-24,3\n1003,25-34,9\n", "county,age n"),
        ("week,area,n\n1,A,5\n1,B,7\n2,A,3\n2,B,9\n", "week,area n"),
        ("region,year,n\nA,2019,2001\nA,2020,2003\nB,2019,2010\nB,2020,1999\n", "region,year n"),
        ("year,region,flu,cold\n2019,A,1,3\n2019,B,2,7\n2020,A,2,4\n", "year,region flu"),
    ],
)
def test_a_table_with_a_row_for_each_cell_is_not_read_as_one_of_records(tmp_path, text, options):
    path = tmp_path / "t.csv"
    path.write_text(text)
    axes, value = options.split()
    with pytest.raises(ValueError, match=f"state --long {axes} --value {value}, or --row-labels {axes} if"):
        read_protected(path)
    assert len(read_long(path, axes.split(","), value).frame) == text.count("\n") - 1
    assert read_protected(path, row_labels=axes).row_labels is not None


def test_labels_in_the_first_row_of_a_group_only_are_no_totals(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("area,age,n\nA,young,5\n,mid,7\n,old,9\nB,young,8\n,mid,9\n,old,6\n")
    for read in (
        lambda: read_protected(path),
        lambda: read_protected(path, row_labels="area,age"),
        lambda: read_long(path, ["area", "age"], "n"),
    ):
        with pytest.raises(ValueError, match=r"label in every row of column 'area'.*as in pivot tables"):
            read()
    path.write_text("area,age,n\nA,young,5\nA,old,7\n,,12\nB,young,8\nB,old,9\n,young,13\n,old,16\n")
    assert len(read_long(path, ["area", "age"], "n").frame) == 7


def test_several_columns_of_labels(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("code,place,a\n01,Ada,4\n02,Bo,6\n")
    found = read_protected(path, row_labels="code,place")
    assert (found.row_labels, found.column_labels) == (["01 Ada", "02 Bo"], ["a"])


def test_a_status_stands_for_a_number_that_is_not_there(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("GEO,day,VALUE,STATUS\nA,1,12,\nA,2,,x\nB,1,,..\nB,2,30,E\n")
    found = read_long(path, ["GEO", "day"], "VALUE", Words(("x",), ("..",)), status="STATUS")
    np.testing.assert_array_equal(found.frame["VALUE"], [12, np.nan, np.nan, 30])
    assert found.masked.tolist() == [False, False, True, False]
    assert found.flags == {"E": 1}
    with pytest.raises(ValueError, match=r"got 'x' in row 2"):
        read_long(path, ["GEO", "day"], "VALUE", status="STATUS")


def test_years_and_codes_that_no_option_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",id,a\nA,7,3\nB,9,4\n")
    with pytest.raises(ValueError, match="give the first column a name"):
        read_protected(path)
    path.write_text("2021,3\n2020,4\n")
    with pytest.raises(ValueError, match="add a row of names, and state --row-labels"):
        read_protected(path, header=False)


GERMAN = "area;age;population;deaths;s\nA;x;10.000;1.005;1.500\nA;y;999;2.106;0,5\n"


@pytest.mark.parametrize("stated", [Format(thousands="."), Format(decimal=","), Format()])
def test_columns_of_numbers_are_in_the_format_of_the_reports(tmp_path, stated):
    (tmp_path / "t.csv").write_text(GERMAN)
    read = read_long(tmp_path / "t.csv", ["area", "age"], "deaths", numbers=["population", "s"], stated=stated)
    assert read.frame["deaths"].tolist() == [1005, 2106]
    assert read.frame["population"].astype(float).tolist() == [10_000, 999]
    assert read.frame["s"].astype(float).tolist() == [1500, 0.5]


def test_a_column_of_numbers_that_may_be_thousands_or_decimals_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("area,age,population,deaths\nA,x,1.000,5\nA,y,2.000,6\n")
    read = {"axes": ["area", "age"], "value": "deaths", "numbers": ["population"]}
    with pytest.raises(ValueError, match=r"'1.000' may be thousands or decimals.*--thousands \. if it is 1000"):
        read_long(tmp_path / "t.csv", **read)
    (tmp_path / "u.csv").write_text('area,age,population,deaths\nA,x,"1,000",5\nA,y,"2,000",6\n')
    found = read_long(tmp_path / "u.csv", **read, stated=Format(thousands=","))
    assert found.frame["population"].astype(float).tolist() == [1000, 2000]


def test_numbers_of_a_parquet_keep_their_values(tmp_path):
    frame = pd.DataFrame({"a": ["A", "B"], "b": ["x", "y"], "n": [5, 6], "e": [1.5, None]})
    frame.to_parquet(tmp_path / "t.parquet")
    stated = Format(thousands=".")
    found = read_long(tmp_path / "t.parquet", ["a", "b"], "n", numbers=["e"], stated=stated)
    assert found.frame["e"].iloc[0] == "1.5"


def test_other_columns_of_a_parquet_may_be_empty_and_its_rows_have_any_index(tmp_path):
    frame = pd.DataFrame({"a": ["A", "B"], "b": ["x", "y"], "n": [5, 6], "unit": ["persons"] * 2}, index=[7, 8])
    frame["nothing"] = pd.array([None, None], dtype="Int64")
    frame.to_parquet(tmp_path / "t.parquet")
    assert read_long(tmp_path / "t.parquet", ["a", "b"], "n").frame["n"].tolist() == [5, 6]


def test_a_column_with_decimals_is_named_by_its_number_if_there_is_no_header(tmp_path):
    (tmp_path / "t.csv").write_text("A,12,3.5\nB,4,2.25\nC,9,1.5\n")
    with pytest.warns(UserWarning, match="^'3' has decimals, unlike the other columns"):
        read_protected(tmp_path / "t.csv", header=False)


def test_a_number_beside_a_word_for_hidden_counts_is_left_out_with_a_warning(tmp_path):
    (tmp_path / "t.csv").write_text("area,age,n,status\nA,x,0,suppressed\nA,y,6,\nB,x,9,E\nB,y,0,..\n")
    words = Words(("suppressed",), ("..",))
    with pytest.warns(UserWarning, match="2 numbers left out, because the status says that there is none"):
        read = read_long(tmp_path / "t.csv", ["area", "age"], "n", words, status="status")
    np.testing.assert_array_equal(read.frame["n"], [np.nan, 6, 9, np.nan])
    assert read.masked.tolist() == [False, False, False, True]
    assert read.flags == {"E": 1}


def test_formulas_that_were_never_calculated_are_refused(tmp_path):
    book = openpyxl.Workbook()
    for row in (["region", "flu", "cold"], ["A", 5, "=B2*2"], ["B", 12, 9]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match="values of its formulas, got none in cell C2: open and save it in Excel"):
        read_protected(tmp_path / "t.xlsx")
    book.active["C2"] = 10
    book.save(tmp_path / "t.xlsx")
    assert read_protected(tmp_path / "t.xlsx").values.tolist() == [[5, 10], [12, 9]]


@pytest.mark.parametrize(
    ("cell", "calculated"),
    [
        (b'<c r="C2"><f>B2*2</f><v /></c>', False),
        (b'<c r="C2" s="1"><f t="shared" si="0"/></c>', False),
        (b'<c r="C2"><f>B2*2</f><v>10</v></c>', True),
        (b'<c r="C2" t="str"><f>IF(B2,B2,"")</f><v></v></c>', True),  # an empty text
        (b'<c r="B2"><v>1</v></c><c r="C2"/>', True),
    ],
)
def test_what_is_calculated(cell, calculated):
    assert (UNCALCULATED.search(cell) is None) == calculated
