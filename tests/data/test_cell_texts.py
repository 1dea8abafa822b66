import pytest

from countveil.data.cell_texts import NumberFormat, interval_of, number_format, number_of

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
    for thousands, decimal, rule in (
        (".", ".", "must differ"),
        (None, ";", "--decimal must"),
        ("x", None, "--thou"),
    ):
        with pytest.raises(ValueError, match=rule):
            number_format([], thousands, decimal, ",")


@pytest.mark.parametrize(
    ("text", "form", "number"),
    [
        ("12", PLAIN, 12),
        ("-3.25", PLAIN, -3.25),
        ("−3", PLAIN, -3),
        ("1e5", PLAIN, 1e5),
        (".5", PLAIN, 0.5),
        ("3.", PLAIN, 3),
        ("1,234.5", NumberFormat(",", "."), 1234.5),
        ("1 234", NumberFormat(" ", "."), 1234),
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


@pytest.mark.parametrize(
    ("text", "rule"), [("9-1", "smaller number"), ("0.5-1", "whole numbers"), ("<0", "smaller")]
)
def test_impossible_intervals_are_refused(text, rule):
    with pytest.raises(ValueError, match=rule):
        interval_of(text, PLAIN)
