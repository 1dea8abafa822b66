"""Mechanisms from a file, by the value of a column or by ranges of it."""

import pytest

import countveil as cv
from countveil.cli.mechanism_tables import MechanismTable

m = cv.mechanisms
DATES = """date from,date to,mechanism,noise,alpha,sigma,above
,2023-02-05,thresholded,two-sided-geometric,0.9,,449
2023-02-06,,thresholded,gaussian,,10,89
"""


@pytest.fixture
def table(tmp_path):
    def made(text, name="m.csv"):
        (tmp_path / name).write_text(text)
        return MechanismTable(tmp_path / name)

    return made


def test_ranges_hold_both_ends(table):
    found = table(DATES)
    assert found.by == "date"
    stated = found.of(["2017-01-01", "2023-02-05", "2023-02-06", "2030-01-01"])
    before, after = m.Thresholded(m.TwoSidedGeometric(0.9), 449), m.Thresholded(m.Gaussian(10), 89)
    assert list(stated.values()) == [before, before, after, after]


def test_numbers_are_compared_as_numbers(table):
    found = table("year from,year to,mechanism,base\n1,9,rounding,5\n10,,random-rounding,3\n")
    assert found.of(["2", "10", "9", "100"]) == {
        "2": m.Rounding(5),
        "9": m.Rounding(5),
        "10": m.RandomRounding(3),
        "100": m.RandomRounding(3),
    }


def test_values_are_named(table):
    found = table(
        "regime,mechanism,below,hides-zero,base\nh,suppression,10,yes,\ns,suppression,5,no,\nr,rounding,,,5\n"
    )
    assert found.by == "regime"
    assert found.of(list("hsr")) == {
        "h": m.Suppression(10, shows_zero=False),
        "s": m.Suppression(5),
        "r": m.Rounding(5),
    }
    with pytest.raises(ValueError, match="one mechanism for every 'regime', got 0 for 'x'"):
        found.of(["x"])


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("mechanism,base\nrounding,5\n", "one column beside mechanism"),
        ("a,b,mechanism,base\n1,2,rounding,5\n", "one column beside mechanism"),
        ("a from,b to,mechanism,base\n1,2,rounding,5\n", "one column beside mechanism"),
        ("a,a,mechanism,base\n1,2,rounding,5\n", "one column beside mechanism"),
        ("a,mechanism,base\n1,sounding,5\n", "--mechanism must be one of"),
        ("a,mechanism,base\n1,rounding,\n", "must come with --base"),
        ("a,mechanism,below,hides-zero\n1,suppression,5,maybe\n", "yes, no or nothing"),
        ("a,base\n1,5\n", "none: add --mechanism random-rounding or rounding"),
    ],
)
def test_other_tables_are_refused(table, text, rule):
    with pytest.raises(ValueError, match=r"m\.csv must") as caught:
        table(text)
    assert rule in str(caught.value)


def test_only_one_range_may_hold_a_value(table):
    with pytest.raises(ValueError, match="got 2 for '5'"):
        table("a from,a to,mechanism,base\n1,5,rounding,5\n5,9,rounding,3\n").of(["5"])
    with pytest.raises(ValueError, match=r"must be a \.csv or \.tsv"):
        table("a", "m.txt")


@pytest.mark.parametrize(
    "dates", ["1/1/2023,6/30/2023,10/5/2023", "01/01/2023,06/30/2023,02/05/2024", "2,9,1x"]
)
def test_dates_that_text_does_not_order_are_refused(table, dates):
    first, last, value = dates.split(",")
    with pytest.raises(ValueError, match="larger units come first"):
        table(f"date from,date to,mechanism,base\n{first},{last},rounding,5\n").of([value])
