from functools import partial

import pandas as pd
import pytest
from typer.main import get_command

import countveil as cv
from countveil.cli.app import app
from countveil.cli.mechanism_options import (
    KINDS,
    MechanismOptions,
    MechanismTable,
    check_in_column,
    of_column,
    stated_mechanism,
)

m = cv.mechanisms


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        (None, {"alpha": "0.37"}, m.TwoSidedGeometric(0.37)),
        (None, {"epsilon": "0.5", "precision": "2"}, m.TwoSidedGeometric.keeping("0.5", 2)),
        (
            "thresholded --noise two-sided-geometric --epsilon 1 --precision 30 --above 450",
            {},
            m.Thresholded(m.TwoSidedGeometric.keeping(1, 30), 450),
        ),
        ("discrete-gaussian", {"sigma": "5"}, m.DiscreteGaussian(5)),
        ("gaussian", {"sigma": "0.1"}, m.Gaussian("0.1")),
        ("laplace", {"scale": "30"}, m.Laplace(30)),
        ("skellam", {"l1": "2", "l2": "1"}, m.Skellam(2, 1)),
        ("random-rounding", {"base": "3"}, m.RandomRounding(3)),
        ("rounding", {"base": "10"}, m.Rounding(10)),
        ("rounding-half-even", {"base": "10"}, m.Rounding(10, "even")),
        ("rounding-midpoint", {"base": "6"}, m.Rounding(6, "midpoint")),
        ("nhs-hes", {}, m.Composed(m.Suppression(8), m.Rounding(5))),
        (
            "random-rounding --base 3 then suppression --below 6 --hides-zero",
            {},
            m.Composed(m.RandomRounding(3), m.Suppression(6, False)),
        ),
        ("suppression", {"below": "10"}, m.Suppression(10)),
        ("interval", {"lower": "10", "upper": "50"}, m.Interval(10, 50)),
        ("interval", {"lower": "90", "upper": "inf"}, m.Interval(90)),
        ("top-coding", {"above": "90"}, m.TopCoding(90)),
        ("randomised-response", {"probability": "0.12"}, m.RandomisedResponse("0.12")),
        ("thresholded", {"noise": "gaussian", "sigma": "10", "above": "90"}, m.Thresholded(m.Gaussian(10), 90)),
        (
            "thresholded",
            {"noise": "two-sided-geometric", "alpha": "0.5", "above": "9"},
            m.Thresholded(m.TwoSidedGeometric(0.5), 9),
        ),
    ],
)
def test_options_state_a_mechanism(kind, given, wanted):
    every = dict.fromkeys(("alpha", "sigma", "scale", "l1", "l2", "base", "below", "above", "noise", "probabilities"))
    assert stated_mechanism(kind, False, every | given) == wanted


def test_every_mechanism_has_a_name_here():
    kinds = {kind.func if isinstance(kind, partial) else kind for kind, _ in KINDS.values()}
    assert kinds == set(m.MECHANISMS.values()) - {m.Composed}


@pytest.mark.parametrize("command", ["import", "plan"])
def test_every_parameter_of_a_mechanism_is_an_option_of_both_commands(command):
    options = {name for each in get_command(app).commands[command].params for name in each.opts}
    assert {f"--{name}" for _, names in KINDS.values() for name in names} <= options
    assert "--hides-zero" in options


def test_suppression_may_hide_zeros_and_nothing_else_does():
    assert stated_mechanism("suppression", True, {"below": "10"}) == m.Suppression(10, shows_zero=False)
    with pytest.raises(ValueError, match="--hides-zero must come with"):
        stated_mechanism("rounding", True, {"base": "3"})


def test_a_table_is_read_from_a_file(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("1,0\n1/4,3/4\n")
    given = {"probabilities": str(path)}
    assert stated_mechanism("table", False, given) == m.Table([["1", "0"], ["0.25", "0.75"]])
    path.write_text("1,0\n0.5,x\n")
    with pytest.raises(ValueError, match="probabilities must be"):
        stated_mechanism("table", False, given)
    with pytest.raises(FileNotFoundError, match="no table of probabilities"):
        stated_mechanism("table", False, {"probabilities": str(tmp_path / "q.csv")})


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (None, {}, "--mechanism must be one of"),
        ("magic", {}, "got magic"),
        (None, {"sigma": "3"}, "one that has --sigma, got none: add --mechanism discrete-gaussian or gaussian"),
        (None, {"below": "5"}, "add --mechanism suppression$"),
        ("suppression", {"below": "five"}, "^--below must be a decimal number, got 'five'"),
        ("gaussian", {}, "must come with --sigma, got none"),
        ("gaussian", {"sigma": "1", "base": "3"}, "must come with --sigma, got --base, --sigma"),
        ("gaussian", {"sigma": "much"}, "sigma must be"),
        (None, {"epsilon": "1"}, "must come with --epsilon and --precision, got --epsilon$"),
        ("two-sided-geometric", {"epsilon": "0", "precision": "2"}, "^--epsilon must be positive"),
        ("two-sided-geometric", {}, "must come with --alpha, or --epsilon and --precision, got none"),
        (None, {"alpha": "1"}, "alpha must be at least 0 and below 1, got 1$"),
        (None, {"alpha": "9" * 400}, "alpha must be at least 0 and below 1, got 9{40}$"),
        ("suppression", {"below": "1"}, "below must be"),
        ("nhs-hes", {"below": "8"}, "must come without further options, got --below: leave them out"),
        ("rounding --base 5 then laplace --scale 2", {}, "steps must be Suppression, .* got Laplace"),
        ("rounding --base 5 then exact", {}, "steps must be Suppression, .* got NoneType"),
        ("rounding --base 5 then rounding", {}, "must come with --base, got none"),
        ("nhs-hes then rounding --base 10", {}, "steps must be Suppression, .* got Composed"),
        ("interval", {"lower": "9"}, "must come with --lower and --upper, got --lower"),
        ("interval", {"lower": "9", "upper": "1"}, "upper must be a whole number of at least 9"),
        ("thresholded", {"noise": "rounding", "base": "3", "above": "9"}, "mechanism must add noise"),
        ("thresholded", {"noise": "magic", "above": "9"}, "--noise must be"),
        ("thresholded", {"above": "9"}, "must come with --noise and --above"),
    ],
)
def test_other_options_are_refused(kind, given, said):
    with pytest.raises((ValueError, TypeError), match=said):
        stated_mechanism(kind, False, given)


def test_one_rule_may_be_in_one_text():
    assert stated_mechanism("suppression --below 8", False, {}) == m.Suppression(8)


def test_sigma_in_a_column_of_a_long_table():
    frame = {"store": ["s", "s", "t"], "item": ["a", "b", "a"]}
    asked = ["store", "item"], MechanismOptions("thresholded", sigma="sd", noise="gaussian", above="25")
    s, t = (m.Thresholded(m.Gaussian(sigma), 25) for sigma in ("2", "4.5"))
    assert of_column(pd.DataFrame(frame | {"sd": ["2", "2", "2"]}), *asked) == (s, None)
    assert of_column(pd.DataFrame(frame | {"sd": ["2", "2", "4.5"]}), *asked) == ({"s": s, "t": t}, "store")
    assert of_column(pd.DataFrame(frame | {"sd": ["2", "4.5", "2"]}), *asked) == ({"a": s, "b": t}, "item")
    assert of_column(pd.DataFrame(frame | {"sd": ["2", "4.5", "4.5"]}), *asked) == ({"2": s, "4.5": t}, "sd")
    with pytest.raises(ValueError, match="sigma must be a decimal number, got ''"):
        of_column(pd.DataFrame(frame | {"sd": ["2", "2", ""]}), *asked)
    assert check_in_column({"sigma": "sd"}, "store,item")
    assert not check_in_column({"sigma": "2"}, "store,item")
    assert not check_in_column({"sigma": None}, None)
    with pytest.raises(ValueError, match="--sigma must be a number, or with --long a column of the table, got 'sd'"):
        check_in_column({"sigma": "sd"}, None)


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
        ("mechanism,base\nrounding,5\n", "one column besides mechanism"),
        ("a,b,mechanism,base\n1,2,rounding,5\n", "one column besides mechanism"),
        ("a from,b to,mechanism,base\n1,2,rounding,5\n", "one column besides mechanism"),
        ("a,a,mechanism,base\n1,2,rounding,5\n", "one column besides mechanism"),
        ("a,mechanism,base\n1,sounding,5\n", "--mechanism must be one of"),
        ("a,mechanism,base\n1,rounding,\n", "must come with --base"),
        ("a,mechanism,below,hides-zero\n1,suppression,5,maybe\n", "or nothing in column 'hides-zero', got 'maybe'"),
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


@pytest.mark.parametrize("dates", ["1/1/2023,6/30/2023,10/5/2023", "01/01/2023,06/30/2023,02/05/2024", "2,9,1x"])
def test_dates_that_text_does_not_order_are_refused(table, dates):
    first, last, value = dates.split(",")
    with pytest.raises(ValueError, match="larger units come first"):
        table(f"date from,date to,mechanism,base\n{first},{last},rounding,5\n").of([value])
