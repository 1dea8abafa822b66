import pytest

from countveil.data.tables.formats import beside_status, is_eurostat, long_of_eurostat, statuses_of
from countveil.data.tables.published import read_long

NAMES = ["freq,geo\\TIME_PERIOD", "2019 ", "2020 "]


def test_a_eurostat_table_has_a_row_for_each_cell():
    assert is_eurostat(NAMES)
    assert not is_eurostat(["geo", "2019"])
    assert not is_eurostat(None)
    names, rows = long_of_eurostat(NAMES, [["A,AT", "12 b", ": c"], ["A,LU", ": ", "3"]])
    assert names == ["freq", "geo", "TIME_PERIOD", "OBS_VALUE", "OBS_FLAG"]
    assert rows == [
        ["A", "AT", "2019", "12", "b"],
        ["A", "AT", "2020", ":", "c"],
        ["A", "LU", "2019", ":", ""],
        ["A", "LU", "2020", "3", ""],
    ]
    with pytest.raises(ValueError, match="row 1 must have 2 labels in its first cell, got 'AT'"):
        long_of_eurostat(NAMES, [["AT", "1", "2"]])


@pytest.mark.parametrize(
    ("value", "status", "flag", "cell", "kind"),
    [
        ("12", "", "", "12", None),
        ("", "C", "", "C", "hidden"),
        ("", "A", "", "A", "hidden"),
        ("", "N", "", "N", "hidden"),
        ("", "D", "", "D", "masked"),  # for the sake of another cell
        ("", "S", "", "S", "masked"),
        ("", "F", "", ":", "masked"),
        ("", "", "", ":", "masked"),
        (":", "", "c", "c", "hidden"),
        (":", "", "cd", "c", "hidden"),
        (":", "", "z", ":", "masked"),
        ("NaN", "", "", ":", "masked"),
        ("", "", "Q", "Q", "hidden"),
        ("", "", "M", "M", "masked"),
        ("0", "C", "", "C", "hidden"),  # no exact count beside a word that says it is hidden
        ("0", "D", "", "D", "masked"),
        ("0", "", "c", "c", "hidden"),
        ("12", "F", "p", "12", None),
    ],
)
def test_why_a_cell_has_no_number(value, status, flag, cell, kind):
    found = statuses_of([value], {"CONF_STATUS": [status], "OBS_FLAG": [flag]})
    assert found.cells == [cell]
    assert (cell in found.hidden) == (kind == "hidden")
    assert (cell in found.masked) == (kind == "masked")


def test_missing_values_have_the_code_of_the_file():
    found = statuses_of(["5", "", "9", "", ""], {"OBS_STATUS": ["A", "M", "A", "Q", "A"]})
    assert found.cells == ["5", "M", "9", "Q", ":"]
    assert (found.hidden, found.masked, found.n_dropped) == (("Q",), (":", "M"), 0)


def test_flags_of_numbers_are_counted():
    found = statuses_of(
        ["1", "2", "3", ""],
        {"CONF_STATUS": ["F", "", "", "C"], "OBS_FLAG": ["bp", "", "e", ""], "OBS_STATUS": ["A", "", "E", ""]},
    )
    assert found.flags == {"b": 1, "p": 1, "e": 1, "E": 1}
    assert beside_status(["1", "", ""], ["E", "x", ""]) == (["1", "x", ""], {"E": 1}, 0)
    assert beside_status(["1", "0", "x"], ["E", "x", "x"], ("x",)) == (["1", "x", "x"], {"E": 1}, 1)


def test_values_in_thousands_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("geo,sex,OBS_VALUE,UNIT_MULT\nA,M,12,0\nA,F,9,3: Thousands\nB,M,7,\nB,F,5,0\n")
    with pytest.raises(
        ValueError, match=r"UNIT_MULT '3': multiply OBS_VALUE by 1000 .* --mechanism rounding --base 1000$"
    ):
        read_long(path, ["geo", "sex"], "OBS_VALUE")
    for power, remedy in (
        ("-3", "divide OBS_VALUE by 1000 in these rows, and set UNIT_MULT to 0$"),
        ("thousands", "UNIT_MULT 'thousands': it must be a whole number"),
    ):
        path.write_text(path.read_text().replace("3: Thousands", power))
        with pytest.raises(ValueError, match=remedy):
            read_long(path, ["geo", "sex"], "OBS_VALUE")
        path.write_text(path.read_text().replace(power, "3: Thousands"))
    path.write_text(path.read_text().replace("3: Thousands", "0: Units").replace("7,\n", "7,0.0\n"))
    assert read_long(path, ["geo", "sex"], "OBS_VALUE").frame["OBS_VALUE"].tolist() == [12, 9, 7, 5]
