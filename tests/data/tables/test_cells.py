from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countveil.data.tables import cells as module
from countveil.data.tables.cells import (
    HIDDEN,
    MASKED,
    NO_WORDS,
    NumberFormat,
    Words,
    by_cell,
    by_row,
    interval_of,
    mechanism_of_intervals,
    number_format,
    number_of,
    read_cells,
    shows_counts,
)
from countveil.privacy.mechanisms import Interval, RandomRounding, Suppression

PATH = Path("t.csv")


def read(cells, words=NO_WORDS, **options):
    return read_cells(PATH, [cells], ["n"], words, **options)


def test_how_many_columns_are_read_together_changes_nothing(monkeypatch):
    columns = [
        ["1", "<5", None, " 7 "],
        pd.Series([1, 2, None, 4], dtype="Int64"),
        [True, 1.0, float("nan"), "1"],
        pd.Series([2.5, np.nan, 1.0, 4.0]),
        ["", "7", "X", "<5"],
        [30, "30", 30.0, "X"],
    ]
    found = []
    for at_once in (1, 9, 100_000):  # one column, two, and all
        monkeypatch.setattr(module, "CELLS_AT_ONCE", at_once)
        found.append(read_cells(PATH, columns, list("abcdef"), Words(("X",))))
    for each in found[1:]:
        assert each.texts == found[0].texts
        for field in ("code", "kind", "value", "bounds"):
            np.testing.assert_array_equal(getattr(each, field), getattr(found[0], field))
    assert [found[0].texts[code] for code in found[0].code[:, 0]] == ["1", "<5", "", "7"]
    assert found[0].values[:, 5].tolist()[:3] == [30.0, 30.0, 30.0]
    assert found[0].values[1, 4] == 7.0


def test_every_cell_is_accounted_for():
    cells = read(["1", "<5", "X", "", "-", "N/A", "n/a", 2.5], Words(("X",), ("n/a",), ("-",)))
    np.testing.assert_array_equal(cells.values[:, 0], [1, *[np.nan] * 3, 0, np.nan, np.nan, 2.5])
    assert cells.masked[:, 0].tolist() == [False, False, False, True, False, True, True, False]
    assert cells.intervals[1, 0].tolist() == [0, 4]
    assert cells.describe(3) == (
        "11 cells: 3 counts, 1 in intervals (1 '<5'), 1 hidden (1 'X'), 3 masked (1 empty, 1 'N/A', 1 'n/a'), "
        "3 in totals."
    )


@pytest.mark.parametrize(
    ("cells", "words", "kind"),
    [
        (["1", ""], Words(), HIDDEN),  # nothing else can be
        (["1", "X", ""], Words(("X",)), MASKED),
        (["1", ""], Words(("X",)), MASKED),  # also where the word does not occur
        (["1", "<5", ""], Words(), MASKED),
        (["1", "X", ""], Words(("X", "")), HIDDEN),
        (["1", ""], Words(missing=("",)), MASKED),
    ],
)
def test_blanks_are_masked_next_to_words(cells, words, kind):
    found = read(cells, words)
    assert found.kind[found.code[-1, 0]] == kind


@pytest.mark.parametrize(
    ("cells", "rule"),
    [
        (["1", "few"], "got 'few' in row 2, column 'n'"),
        (["1.021", "2"], "t.csv: numbers such as '1.021'"),
        (["9-1"], "t.csv: intervals must begin with the smaller number"),
    ],
)
def test_other_cells_are_refused_by_name(cells, rule):
    with pytest.raises(ValueError, match=rule):
        read(cells)


def test_cells_without_a_row_are_in_the_tally():
    read = read_cells(Path("t.csv"), [["3", ""]], ["n"], NO_WORDS)
    assert read.describe(no_row="2 cells without a row (hidden)") == (
        "2 cells: 1 count, 1 hidden (1 empty), 0 masked, 0 in totals; 2 cells without a row (hidden)."
    )


PLAIN = NumberFormat(None, ".")


@pytest.mark.parametrize(
    ("texts", "separator", "found"),
    [
        (["1", "20"], ",", (None, ".")),
        (["1.5", "20"], ",", (None, ".")),
        (["1,5", "20"], ";", (None, ",")),
        (["1.234.567", "3.000"], ";", (".", ",")),
        (["1,234", "20"], ",", (",", ".")),
        (["1,234,567", "3,000"], "\t", (",", ".")),
        (["1,23,456", "3,000"], ";", (",", ".")),
        (["1,234.5", "3,000"], ";", (",", ".")),
        (["1.234,5", "3.000"], ";", (".", ",")),
        (["1 234", "3.5"], ";", (" ", ".")),
        (["1\u00a0234", "1\u202f000"], ";", (" ", ".")),
        (["1'234", "3.125"], ";", ("'", ".")),
        (["0.125", "3.125"], ",", (None, ".")),
        (["1234.125"], ",", (None, ".")),
        (["-3.25", "1e5", "1.000"], ",", (None, ".")),
        (["1.021", "3,5"], ";", (".", ",")),
        (["1,000-9,999", "<1,000"], ",", (",", ".")),
    ],
)
def test_formats_that_the_texts_prove(texts, separator, found):
    assert number_format(texts, None, None, separator) == NumberFormat(*found)


@pytest.mark.parametrize(
    ("texts", "separator", "rule"),
    [
        (["12.000", "3.000"], "\t", "state --thousands . if it is 12000, or --decimal ."),
        (["1.021", "12"], ",", "may be thousands or decimals"),
        (["1,021", "12"], ";", "state --thousands , if it is 1021, or --decimal ,"),
        (["<1.000", "5"], ";", "may be thousands or decimals"),
        (["1.234.567", "1.5"], ";", "must have one format, got '1.5' and '1.234.567'"),
        (["1.5", "1,5"], ";", "must have one format"),
    ],
)
def test_ambiguous_and_contradicting_numbers_are_refused(texts, separator, rule):
    with pytest.raises(ValueError, match=rule.replace(".", r"\.")):
        number_format(texts, None, None, separator)


def test_stated_formats():
    assert number_format(["1.021"], ".", None, ",") == NumberFormat(".", ",")
    assert number_format(["1.021"], None, ".", ",") == NumberFormat(",", ".")
    assert number_format(["1.021"], "point", "comma", ",") == NumberFormat(".", ",")
    for thousands, decimal, rule in ((".", ".", "must differ"), (None, ";", "--decimal must"), ("x", None, "--thou")):
        with pytest.raises(ValueError, match=rule):
            number_format([], thousands, decimal, ",")


@pytest.mark.parametrize(
    ("text", "form", "number"),
    [
        ("12", PLAIN, 12),
        ("-3.25", PLAIN, -3.25),
        ("−3", PLAIN, -3),
        ("１２３", PLAIN, 123),
        ("－１．５", PLAIN, -1.5),
        ("１，２３４", NumberFormat(",", "."), 1234),
        ("١٢", PLAIN, 12),
        ("۱۲", PLAIN, 12),
        ("1²", PLAIN, None),
        ("1e5", PLAIN, 1e5),
        (".5", PLAIN, 0.5),
        ("3.", PLAIN, 3),
        ("1,234.5", NumberFormat(",", "."), 1234.5),
        ("1 234", NumberFormat(" ", "."), 1234),
        ("1,23,456", NumberFormat(",", "."), 123456),
        ("12,34,56,789.5", NumberFormat(",", "."), 123456789.5),
        ("1,23,45", NumberFormat(",", "."), None),
        ("123,45,678", NumberFormat(",", "."), None),
        ("1.23.456", NumberFormat(".", ","), None),
        ("1.021", NumberFormat(".", ","), 1021),
        ("1234", NumberFormat(",", "."), 1234),
        ("12,34", NumberFormat(",", "."), None),
        ("1,021", PLAIN, None),
        ("1_0", PLAIN, None),
        ("inf", PLAIN, None),
        ("12 b", PLAIN, None),
        ("", PLAIN, None),
    ],
)
def test_numbers_in_a_format(text, form, number):
    assert number_of(text, form) == number


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("1-9", (1, 9)),
        ("10 - 50", (10, 50)),
        ("10–50", (10, 50)),
        ("1 to 9", (1, 9)),
        ("1000-9999", (1000, 9999)),
        ("1,000-9,999", (1000, 9999)),
        ("<5", (0, 4)),
        ("< 5", (0, 4)),
        ("under 5", (0, 4)),
        ("Fewer than 5", (0, 4)),
        ("≤5", (0, 5)),
        ("<=5", (0, 5)),
        ("5 or less", (0, 5)),
        ("10+", (10, None)),
        ("10 or more", (10, None)),
        ("≥90", (90, None)),
        (">=90", (90, None)),
        (">90", (91, None)),
        ("5", None),
        ("-5", None),
        ("a-b", None),
        ("2020-W1", None),
        ("2019-11-01", None),
    ],
)
def test_intervals_are_what_they_say(text, ends):
    assert interval_of(text, NumberFormat(",", ".")) == ends


@pytest.mark.parametrize(("text", "rule"), [("9-1", "smaller number"), ("0.5-1", "whole numbers"), ("<0", "smaller")])
def test_impossible_intervals_are_refused(text, rule):
    with pytest.raises(ValueError, match=rule):
        interval_of(text, PLAIN)


NAN = np.nan
BOUNDS = np.array([[[NAN, NAN], [1, 9]], [[10, np.inf], [0, 9]]])


def test_intervals_have_mechanisms_of_their_own():
    found = by_cell(RandomRounding(3), BOUNDS)
    assert found.tolist() == [[RandomRounding(3), Interval(1, 9)], [Interval(10), Interval(0, 9)]]
    assert by_cell(RandomRounding(3), np.full((2, 2, 2), NAN)) == RandomRounding(3)
    columns = np.array([[Suppression(10), Suppression(5)]], dtype=object)
    assert by_cell(columns, BOUNDS).tolist() == [[Suppression(10), Interval(1, 9)], [Interval(10), Interval(0, 9)]]


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
    with pytest.raises(ValueError, match=r"--mechanism must state .*got 1 cells \(1 'X'\)"):
        mechanism_of_intervals(cells("1-9", "X"))


def test_numbers_that_are_counts():
    assert shows_counts([Suppression(10), Interval(0)])
    assert not shows_counts([Suppression(10), RandomRounding(3)])
