"""Text of others, made harmless."""

import csv
import io

import pytest

from countveil.privacy._text import cell, listed, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢字", "plain é 漢字"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb\u2066c\u200fd", "a\\u202eb\\u2066c\\u200fd"),
        ("\ud800", "\\ud800"),
        ("a\tb\rc\u2028d\x7f", "a\\tb\\rc\\u2028d\\x7f"),
        ("می\u200cخواهم a\u00a0b", "می\u200cخواهم a\u00a0b"),
    ],
)
def test_control_characters_are_written_out(text, shown):
    assert plain(text) == shown
    assert plain(shown) == shown


def test_line_ends_stay_where_asked():
    assert plain("a\n\x1bb", lines=True) == "a\n\\x1bb"
    assert plain("a\n\x1bb") == "a\\n\\x1bb"


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "  =1", "\t=1", "\r=1", "\ta", "＝1", "\n=1"])
def test_no_cell_is_a_formula(text):
    assert cell(text).startswith("'")
    assert next(csv.reader(io.StringIO(cell(text)))) == [cell(text)]


@pytest.mark.parametrize(
    "text",
    [
        "x;=1",
        "x;=HYPERLINK(1)",
        'x; "=1',
        'x";=1',
        "x;;@a",
        "a;b;-1+2",
        "=a;=b",
        ";=1",
        "x;\u3000=1",
        "x;\u00a0＝1",
        "a,b;=1",
    ],
)
def test_no_cell_is_a_formula_where_semicolons_separate(text):
    """As a spreadsheet opens the file in a language that writes decimals with commas."""
    line = io.StringIO()
    csv.writer(line).writerow([1, cell(text), cell(text)])
    for found in next(csv.reader(io.StringIO(line.getvalue()), delimiter=";")):
        assert not found.lstrip(' \u3000\u00a0"').startswith(("=", "+", "-", "@", "＝"))
    assert cell(text).replace("'", "") == text


@pytest.mark.parametrize("text", ["word", "1-2", "a=b", "", "'", "a; b", "a;b=c", "x, -1", "chad | -1"])
def test_other_cells_stay(text):
    assert cell(text) == text


@pytest.mark.parametrize(
    ("names", "said"), [([], ""), (["a"], "a"), (["a", "b"], "a or b"), (["a", "b", "c"], "a, b or c")]
)
def test_names_in_a_sentence(names, said):
    assert listed(names, "or") == said
    assert listed(names) == said.replace(" or ", " and ")
