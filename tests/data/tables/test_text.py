import itertools
import sys
import zipfile

import pandas as pd
import pytest

from countveil.data.tables.text import Format, header_rows_of, read_text_table, text_of, units_said

NAMES = ["place", "Fälle 2021", "Fälle 2022"]
ROWS = [["Łódź, the city", "12", "1,5"], ["Köln | Mülheim; east", "0", "<5"], ["Århus", "340", ""]]
STYLES = b'<?xml version="1.0"?><styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"/>'
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def written(separator, rows, end="\n"):
    """Cells with a quote or a separator in them are quoted."""
    quoted = [[f'"{c}"' if any(s in c for s in SEPARATORS) else c for c in row] for row in rows]
    return "".join(separator.join(row) + end for row in quoted)


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt"])
def test_separators_are_found_whatever_a_file_is_called(tmp_path, separator, ending):
    path = tmp_path / f"t{ending}"
    for end in ("\n", "\r\n"):
        path.write_text(written(separator, [NAMES, *ROWS], end), encoding="utf-8", newline="")
        found = read_text_table(path)
        assert (found.names, found.rows, found.layout.separator) == (NAMES, ROWS, separator)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_encodings_are_found(tmp_path, encoding):
    path = tmp_path / "t.csv"
    rows = [[cell.replace("Łódź", "Lodz") for cell in row] for row in ROWS]
    path.write_text(written(";", [NAMES, *rows]), encoding=encoding)
    found = read_text_table(path)
    assert (found.names, found.rows) == (NAMES, rows)
    assert found.layout.encoding == encoding
    with pytest.raises(ValueError, match=r"must be ascii text, got byte 0x.. at"):
        read_text_table(path, Format(encoding="ascii"))
    with pytest.raises(ValueError, match="--encoding must be one that Python knows"):
        read_text_table(path, Format(encoding="morse"))


PREAMBLES = {
    "none": [],
    "a title": [["Deaths by county"]],
    "a title and a blank line": [["Deaths by county"], []],
    "padded": [["Deaths by county", "", ""], ["", "", ""]],
    "three lines": [["Table 1"], ["made up"], []],
}
FOOTERS = {
    "none": [],
    "a rule and notes": [["---"], ["Dataset: made up"], ["---"]],
    "underscores": [["__________"], ["(C)opyright"]],
    "notes": [[], ["Source: made up, 2020, 2021"], ["* preliminary"]],
    "padded": [["Source: made up", "", ""]],
    "as by the ABS": [[], ["Data Source: Census"], [], ["INFO", "Cells were adjusted."], ["Copyright"]],
}


@pytest.mark.parametrize(("above", "below"), list(itertools.product(PREAMBLES, FOOTERS)))
def test_lines_around_the_table_are_left_out_and_counted(tmp_path, above, below):
    path = tmp_path / "t.csv"
    path.write_text(written(",", [*PREAMBLES[above], NAMES, *ROWS, *FOOTERS[below]]))
    found = read_text_table(path)
    assert (found.names, found.rows) == (NAMES, ROWS)
    assert len(found.layout.preamble) == sum(any(row) for row in PREAMBLES[above])
    assert len(found.layout.footer) == sum(any(row) for row in FOOTERS[below])


HEADERS = {
    "one": ([["place", "a", "b"]], ["place", "a", "b"]),
    "years below names": ([["place", "a", "b"], ["", "2019", "2020"]], ["place", "a | 2019", "b | 2020"]),
    "merged": ([["place", "Male", ""], ["", "2019", "2020"]], ["place", "Male | 2019", "Male | 2020"]),
    "merged above": ([["", "Male", ""], ["place", "2019", "2020"]], ["place", "Male | 2019", "Male | 2020"]),
    "text": ([["place", "Male", ""], ["", "fire", "theft"]], ["place", "Male | fire", "Male | theft"]),
    "pandas": (
        [["sex", "M", "M"], ["year", "2019", "2020"], ["place", "", ""]],
        ["sex | year | place", "M | 2019", "M | 2020"],
    ),
    "three": ([["", "x", "x"], ["", "Male", ""], ["", "2019", "2020"]], ["", "x | Male | 2019", "x | Male | 2020"]),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADERS)
def test_header_rows_are_found(tmp_path, name):
    path, (rows, names) = tmp_path / "t.csv", HEADERS[name]
    path.write_text(written(",", [*rows, ["Ada", "12", "x"], ["Bo", "x", "2020"]]))
    found = read_text_table(path)
    assert (found.names, found.layout.header_rows, len(found.rows)) == (names, len(rows), 2)
    assert read_text_table(path, Format(header_rows=1)).names == rows[0]
    assert read_text_table(path, Format(header_rows=0)).names is None
    assert len(read_text_table(path, header=False).rows) == len(rows) + 2


@pytest.mark.parametrize(
    "record", [["Ada", "2019", "2020"], ["", "12", "13"], ["", "X", "X"], ["", "<5", "2019"], ["", "201912", "2020"]]
)
def test_records_are_no_headers(record):
    assert header_rows_of([["place", "a", "b"], record, ["Bo", "X", "<5"]]) == 1


def test_what_is_stated_is_not_looked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("made;up\n1;2\na;b\n3;4\n")
    assert read_text_table(path, Format(skip=2)).names == ["a", "b"]
    assert read_text_table(path, Format(separator=",")).names == ["made;up"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a,b\nrow1,1,2\nrow2,3,4\n", "if these are names of columns, add one for the row labels"),
        (",x,y\nr1,1,2\n---\n,x,y\nr1,1,2\n", "must hold one table"),
        ("a,b\nr1,1\n---\nr2,2\n", "must hold one table"),
        ("a,b\n1\n2,3\n", "must have 2 cells in every row, got 1 in row 2: an absent report is an empty cell"),
        ("a,b,c\nr1,1,2,\nr2,3,4,\n", "delete the separator at the end of every other row, .* or, if these are names"),
        ("a,b,c\nr1,1,2\nr2,3,4\n\nid,Footnote\n1,made up\n", "got 2 in row 4: delete 'id' if it is a title or a note"),
        ("a,b,c\nr1,1,2\nmade up\nr2,3,4\n", "got 1 in row 3: delete 'made up' if it is a title or a note"),
        ("a,b\n", "a header row and at least one row of reports"),
        ("", "must hold a table"),
        ("\x00\x01\x02\x03", "not text"),
    ],
)
def test_files_that_may_be_read_in_two_ways_are_refused(tmp_path, text, rule):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode() if "\x01" not in text else b"\xff\x00\x01\x02\xfe")
    with pytest.raises(ValueError, match=rule):
        read_text_table(path)


def test_spaces_separate_where_nothing_else_does(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text('region   flu   cold\nNorth     12    18\n"South B"  7    11\n\nSource: made up\n')
    found = read_text_table(path)
    assert (found.names, found.rows) == (["region", "flu", "cold"], [["North", "12", "18"], ["South B", "7", "11"]])
    assert "space-separated" in found.layout.describe()
    path.write_text("Obs  region  n\n\n  1  North  12\n  2  South   7\n")
    assert read_text_table(path).rows == [["1", "North", "12"], ["2", "South", "7"]]
    for text, rows in (
        ("n\n12 345\n7 890\n", [["12 345"], ["7 890"]]),
        ("a b,n\nx y,1 234\nz w,2 345\n", [["x y", "1 234"], ["z w", "2 345"]]),
        ("name\nNew York\nSan Jose\n", [["New York"], ["San Jose"]]),
        ("n\n< 5\n12\n< 5\n7\n8\n", [["< 5"], ["12"], ["< 5"], ["7"], ["8"]]),
    ):
        path.write_text(text)
        assert read_text_table(path).rows == rows


def test_a_workbook_without_styles_is_read_without_a_warning(tmp_path):
    pd.DataFrame({"r": ["A", "B"], "a": [5, 8]}).to_excel(tmp_path / "t.xlsx", index=False)
    with zipfile.ZipFile(tmp_path / "t.xlsx") as book, zipfile.ZipFile(tmp_path / "bare.xlsx", "w") as bare:
        for name in book.namelist():
            bare.writestr(name, STYLES if name == "xl/styles.xml" else book.read(name))
    assert read_text_table(tmp_path / "bare.xlsx").rows == [["A", 5], ["B", 8]]


def test_separators_at_the_end_of_every_line_make_no_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,\n1,2,\n3,4,\n")
    assert read_text_table(path)[:2] == (["a", "b"], [["1", "2"], ["3", "4"]])


def test_a_merged_heading_does_not_reach_beyond_the_last_column(tmp_path):
    """As Statistics Poland ends the lines of its tables."""
    path = tmp_path / "t.csv"
    path.write_text("Kod;Nazwa;razem;;kobiety;;\n;;2019;2020;2019;2020;\n02;A;120;131;60;66;\n04;B;80;92;41;45;\n")
    table = read_text_table(path)
    assert table.names == ["Kod", "Nazwa", "razem | 2019", "razem | 2020", "kobiety | 2019", "kobiety | 2020"]
    assert table.rows[1] == ["04", "B", "80", "92", "41", "45"]


def test_columns_that_are_empty_for_looks_are_none(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",x,,y\nA,1,,2\nB,3,,4\n")
    assert read_text_table(path)[:2] == (["", "x", "y"], [["A", "1", "2"], ["B", "3", "4"]])
    path.write_text(",x,,y\nA,1,,2\nB,3,c,4\n")
    assert read_text_table(path).names == ["", "x", "", "y"]


def test_what_stands_below_a_note_is_one(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("place,x,y\nA,1,2\nB,,\nNotes,,\n[c] = confidential,,\nMade up,,\n")
    found = read_text_table(path)
    assert [row[0] for row in found.rows] == ["A", "B"]
    assert found.layout.footer == ("Notes", "[c] = confidential", "Made up")
    path.write_text("x\n12\n*\n15\n")
    assert len(read_text_table(path).rows) == 3


def test_hidden_sheets_are_read_when_asked_for(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    for title, number in (("Sheet", 1), ("new", 5)):
        sheet = book[title] if title in book.sheetnames else book.create_sheet(title)
        for row in (["place", "x"], ["A", number], ["B", 7]):
            sheet.append(row)
    book["Sheet"].sheet_state = "hidden"
    book.save(tmp_path / "t.xlsx")
    assert read_text_table(tmp_path / "t.xlsx").rows == [["A", 5], ["B", 7]]
    assert read_text_table(tmp_path / "t.xlsx", Format(sheet="Sheet")).rows == [["A", 1], ["B", 7]]


def test_a_workbook_is_read_by_its_types(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    for row in (
        ["Deaths by county"],
        ["place", "Male", None],
        [None, 2019, 2020],
        ["Ada", 12, 1.021],
        ["Bo", "X", None],
    ):
        sheet.append(row)
    sheet.append(["Source: made up"])
    sheet.merge_cells("B2:C2")
    book.create_sheet("notes").append(["none"])
    book.save(tmp_path / "t.xlsx")
    found = read_text_table(tmp_path / "t.xlsx")
    assert found.names == ["place", "Male | 2019", "Male | 2020"]
    assert found.rows == [["Ada", 12, 1.021], ["Bo", "X", ""]]
    around = "1 line above the table left out, 1 line below the table left out"
    assert found.layout.describe() == f"sheet 'Sheet', 1 more not read, 2 header rows, {around}"
    (tmp_path / "u.xlsx").write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(ValueError, match="must be a workbook"):
        read_text_table(tmp_path / "u.xlsx")


def test_cells_as_text():
    assert [text_of(cell) for cell in (" a ", 12, 12.0, 1.5, None, float("nan"))] == ["a", "12", "12", "1.5", "", ""]


def test_a_workbook_without_its_reader_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ValueError, match=r"openpyxl, which is not installed: pip install '.\[tables\]'"):
        read_text_table(tmp_path / "t.xlsx")


@pytest.mark.parametrize("last", ["*Isles,8,6", "Source water,8,6", "dataset,8,6", "†Wales,<5,*", "A" * 70 + ",,"])
def test_a_last_row_with_reports_is_a_record(tmp_path, last):
    path = tmp_path / "t.csv"
    path.write_text(f"region,a,b\n{'B' * 80},5,<5\nB,*,9\n{last}\n")
    found = read_text_table(path)
    assert (len(found.rows), found.layout.footer) == (3, ())
    path.write_text("region,a\nA,5\nB,9\nSource: an office, 2020\n")
    assert read_text_table(path).layout.footer == ("Source: an office 2020",)


def test_a_header_row_that_occurs_again_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("region,2019,2020\nA,5,13\n\nregion,2019,2020\nB,7,8\n")
    with pytest.raises(ValueError, match="header row once, got it again in row 4"):
        read_text_table(path)


@pytest.mark.parametrize("first", ["A,5,13", "2019,10,13", "0-4,5,*", "7,5,13"])
def test_a_header_of_numbers_may_be_a_record(tmp_path, first):
    path = tmp_path / "t.csv"
    path.write_text(f"{first}\nB,12,27\n")
    with pytest.raises(ValueError, match=r"state --header-rows 0 if .*, or --header-rows 1 if"):
        read_text_table(path)
    assert len(read_text_table(path, Format(header_rows=0)).rows) == 2
    assert read_text_table(path, Format(header_rows=1)).names == first.split(",")


@pytest.mark.parametrize("first", ["place,2019,2020", "age,1,2,3", ",7,9"])
def test_years_and_numbers_in_order_are_names(tmp_path, first):
    path = tmp_path / "t.csv"
    path.write_text(f"{first}\nB{',12' * first.count(',')}\n")
    assert read_text_table(path).names == first.split(",")


@pytest.mark.parametrize(
    "said",
    [
        "Employed (in thousands)",
        "Persons ('000)",
        "Persons (000s)",
        "Jobs 000s",
        "Erwerbstätige in Tausend",
        "Erwerbstätige (1 000)",
        "Angaben in 1.000",
        "Bevölkerung in Tsd.",
        "thousands of persons",
        "Persons, Thousands",
        "Emplois en milliers",
        "Empleo en miles",
        "THS_PER",
        "values in millions",
        "Umsatz in Mio. Euro",
    ],
)
def test_units_are_found_wherever_they_stand(tmp_path, said):
    path = tmp_path / "t.csv"
    for text, constant in (
        (f'"{said}"\nplace,a\nA,12\nB,7\n', ()),
        (f'place,a\nA,12\nB,7\n"Note: {said}"\n', ()),
        (f'place,"a, {said}"\nA,12\nB,7\n', ()),
        ("place,a\nA,12\nB,7\n", (said,)),
    ):
        path.write_text(text)
        found = read_text_table(path)
        assert units_said(found.names, found.layout, constant) != []


@pytest.mark.parametrize("title", ["Rate per 1,000", "Fälle je 100.000", "Deaths per thousand", "pour 1 000"])
def test_rates_are_found_in_titles(tmp_path, title):
    path = tmp_path / "t.csv"
    path.write_text(f'"{title}"\nplace,a\nA,12\nB,7\n')
    found = read_text_table(path)
    assert units_said(found.names, found.layout) == [title]
    path.write_text(f'place,a\nA,12\nB,7\n"Notes: rates are {title}"\n')
    found = read_text_table(path)
    assert units_said(found.names, found.layout) == []  # of other numbers


def test_names_that_are_no_units(tmp_path):
    path = tmp_path / "t.csv"
    for title in ("Deaths in Thousand Oaks, 2,000 miles from here, in 2000", "Places above 1'000 and 1’000'000"):
        path.write_text(f'"{title}"\nplace,thousands\nA,12\nB,7\n')
        found = read_text_table(path)
        assert units_said(found.names, found.layout) == []
