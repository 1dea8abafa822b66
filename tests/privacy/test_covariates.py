"""Covariates in the clear: what may be declared, stated, and held by a release."""

import json

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel, Release, ReleaseError
from countveil.privacy._covariates import Covariate, RowCovariates, given, spelt
from countveil.privacy._extras import Extras

PARTY, AGE = Covariate("party", ("D", "R")), Covariate("age", (), "18", "120")
ROWS = RowCovariates((PARTY, AGE), (("D", "42"), ("R", "37.5")))


def made(covariates=ROWS, **options):
    return Release(
        np.arange(4).reshape(2, 2), PrivacyLevel(1, 1), True, extras=Extras(covariates=covariates), **options
    )


def test_decimals_have_one_spelling():
    said = {
        "+042.0": "42",
        "-0.0": "0",
        "-1.50": "-1.5",
        "007": "7",
        "5.": "5",
        " 3 ": "3",
        "four": "four",
        "4,5": "4,5",
    }
    assert {text: spelt(text) for text in said} == said
    assert spelt("0" * 10**6 + "x").endswith("x")  # at once


@pytest.mark.parametrize(
    ("covariate", "value", "rule"),
    [
        (PARTY, "D", None),
        (PARTY, "d", "must be one of D, R, got 'd'"),
        (AGE, "18", None),
        (AGE, "120", None),
        (AGE, "17.999999", "must be a number from 18 to 120"),
        (AGE, "120.000001", "must be a number from 18 to 120"),
        (AGE, "42.0", "such as 42 or 0.5"),
        (AGE, 42, "such as 42 or 0.5"),
        (Covariate("x"), "-0", "must be a number"),
        (Covariate("x"), "1e5", "must be a number"),
        (Covariate("x"), "-123456789.000001", None),
        (Covariate("x", (), "0"), "-1", "must be a number from 0, a decimal"),
        (Covariate("x", (), None, "0"), "1", "must be a number to 0, a decimal"),
    ],
)
def test_values_meet_the_rule_or_are_refused_with_it(covariate, value, rule):
    found = covariate.broken(value)
    assert found is None if rule is None else rule in found


def test_a_refusal_is_short_however_many_values_there_are():
    many = Covariate("many", tuple(f"value {n}" for n in range(1000)))
    long = Covariate("long", tuple(f"{n}{'x' * 190}" for n in range(3)))
    assert many.broken("x").startswith("must be one of the 1000 values of the study, such as value 0, value 1,")
    assert "value 999" in many.meaning
    assert many.broken("value 999") is None
    assert long.broken("x") == f"must be one of the 3 values of the study, such as 0{'x' * 190}, got 'x'"
    assert len(many.broken("y" * 10_000)) < 300
    with pytest.raises(ValueError, match="must be given, one of the 1000 values of the study, such as value 0"):
        given((many,), [])


def test_what_a_person_states_is_put_in_order_and_spelt():
    assert given((PARTY, AGE), ["age=042.50", " party = R "]) == ("R", "42.5")
    assert given((), []) == ()


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        (["party=D"], "covariate age must be given, a number from 18 to 120, got none: --covariate age="),
        (["party=X", "age=20"], "covariate party must be one of D, R, got 'X'"),
        (["party=D", "age=200"], "covariate age must be a number from 18 to 120"),
        (["party=D", "age=20", "sex=f"], "covariate must be one of party, age, got 'sex'"),
        (["party=D", "party=R", "age=20"], "each name once"),
        (["party"], "must be NAME=VALUE"),
    ],
)
def test_what_is_missing_unknown_or_out_of_range_is_refused_by_name(asked, rule):
    with pytest.raises(ValueError, match=rule):
        given((PARTY, AGE), asked)
    with pytest.raises(ValueError, match="without covariates"):
        given((), ["party=D"])


def test_a_release_keeps_them_in_its_file_and_says_that_nothing_protects_them(tmp_path):
    made().save(tmp_path / "r.npz")
    again = Release.load(tmp_path / "r.npz")
    assert again.extras.covariates == ROWS
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "r.npz").read_bytes()
    assert "in the clear, without noise: party, age. Together" in again.describe()
    assert made(None).extras.covariates is None
    assert "in the clear" not in made(None).describe()


@pytest.mark.parametrize(
    ("covariates", "rule"),
    [
        (((PARTY,), (("D",),)), "in 2 rows, got 1 rows"),
        (((PARTY,), (("D", "1"), ("R", "1"))), "value of each of 1 in every row, got 2 in row 0"),
        (((), ((), ())), "must number 1 to 32, got 0"),
        (((PARTY,), (("D",), ("X",))), "covariate party must be one of D, R, got 'X'"),
        (((PARTY, PARTY), (("D", "D"), ("R", "R"))), "must differ from those before"),
        (((Covariate("class"),), (("1",), ("2",))), "that formulas can name"),
        (((Covariate("Intercept"),), (("1",), ("2",))), "that formulas can name"),
        (((Covariate("p", ("D",)),), (("D",), ("D",))), "must number 2 to 1000"),
        (((Covariate("p", (), "2", "1"),), (("1",), ("2",))), "must be above the lowest"),
        (((Covariate("p", ("D", "R"), "2"),), (("D",), ("D",))), "lowest must be a known field"),
        ((("party",), (("D",), ("D",))), "must each be a Covariate, got 'party' in entry 0"),
        (((AGE,), ((42,), (43,))), "values that are text, .* got 42 in entry 0 of row 0"),
        (((AGE,), ((["42"],), ("43",))), "values that are text"),
        ((tuple(Covariate(f"x{n}") for n in range(33)), (("1",) * 33,) * 2), "number 1 to 32, got 33"),
    ],
)
def test_covariates_that_do_not_fit_are_refused(covariates, rule):
    with pytest.raises(ReleaseError, match=rule):
        made(RowCovariates(*covariates))


@pytest.mark.parametrize(
    ("wrong", "got"),
    [
        ([], "0"),
        ([7], "a whole number"),
        ([{"name": f"x{n}", "kind": "number", "of_row": ["1", "2"]} for n in range(33)], "33"),
        ([{"name": "p", "kind": "number"}], "no such field"),
        ([{"name": "p", "kind": "word", "of_row": ["1", "2"]}], "'word'"),
        ([{"name": "p", "kind": "number", "of_row": [1, 2]}], "1 in entry 0 of p"),
        ([{"name": "p", "kind": "number", "of_row": ["1"]}], "1 rows"),
        ([{"name": "p", "kind": "number", "values": ["1", "2"], "of_row": ["1", "2"]}], None),
        ([{"name": "p", "kind": "category", "values": ["a", "a"], "of_row": ["a", "a"]}], "'a' again"),
        (
            [{"name": "p", "kind": "number", "of_row": ["1", "2"]}, {"name": "q", "kind": "number", "of_row": []}],
            "2 of p and 0 of q",
        ),
    ],
)
def test_a_description_that_says_something_else_is_refused(tmp_path, monkeypatch, wrong, got):
    from countveil.privacy import _covariates

    monkeypatch.setattr(_covariates, "encoded", lambda stated: json.loads(json.dumps(wrong)))
    made().save(tmp_path / "r.npz")
    with pytest.raises(ReleaseError, match=r"r\.npz must hold .*(covariates|a value as text)") as refused:
        Release.load(tmp_path / "r.npz")
    assert got is None or str(refused.value).endswith(f"got {got}")
