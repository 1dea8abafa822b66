"""Covariates: what formulas may say, the order of rows, and the design matrix."""

import ast
import re
import sys

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.data import covariates
from countveil.data.covariates import check_levels, names_in, read_covariates
from countveil.data.reports import in_rows_of
from countveil.privacy._covariates import Covariate, RowCovariates
from countveil.privacy._extras import Extras

LABELS = ["ann", "bea", "cid", "dan", "eva"]
FRAME = pd.DataFrame(
    {
        "party": ["D", "R", "D", "I", "R"],
        "year": [1990, 1992, 1991, 1999, 1995],
        "new": [True, False, True, True, False],
    },
    index=LABELS,
)


def read(formula="~ party + year", frame=FRAME, labels=LABELS):
    return read_covariates(formula, frame, labels, 5)


def test_the_design_is_centred_and_scaled():
    found = read("~ party * year + new")
    assert found.terms == ("party[T.I]", "party[T.R]", "year", "new", "party[T.I]:year", "party[T.R]:year")
    np.testing.assert_allclose(found.design.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.design.std(axis=0), 1.0)
    np.testing.assert_allclose(found.design[:, 2], (FRAME.year - FRAME.year.mean()) / FRAME.year.std(ddof=0))
    np.testing.assert_allclose(found.scale[3], FRAME.new.std(ddof=0))


def test_rows_are_put_into_the_order_of_the_data():
    mixed = read(frame=FRAME.iloc[[3, 1, 4, 0, 2]])
    np.testing.assert_array_equal(mixed.design, read().design)
    by_position = read(frame=FRAME.reset_index(drop=True))
    np.testing.assert_array_equal(by_position.design, read().design)
    np.testing.assert_array_equal(read(frame=FRAME, labels=None).design, read().design)


def test_splines_keep_their_knots_for_other_rows():
    found = read("~ bs(year, 4)")
    assert len(found.terms) == 4
    np.testing.assert_allclose(found.rows(FRAME.iloc[[1, 3]]), found.design[[1, 3]], atol=1e-12)
    with pytest.raises(ValueError, match="range of those of the fit"):
        found.rows(pd.DataFrame({"year": [2050]}))


def test_some_covariates_may_be_changed():
    found = read()
    changed = found.changed({"party": "I"})
    assert (changed.party == "I").all()
    np.testing.assert_array_equal(changed.year, found.frame.year)
    with pytest.raises(ValueError, match=r"among \['party', 'year'\], got 'age'"):
        found.changed({"age": 3})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"party": "X", "year": 1990}, r"'party' must be one of \['D', 'I', 'R'\], got 'X'"),
        ({"party": 2, "year": 1990}, "'party' must be text"),
        ({"party": "D", "year": "late"}, "'year' must be numbers"),
        ({"party": "D"}, "must have the column 'year'"),
        ({"party": "D", "year": np.nan}, "'year' must have no missing values, got 1, the first in row 0"),
    ],
)
def test_other_rows_must_be_like_those_of_the_fit(values, said):
    with pytest.raises(ValueError, match=said):
        read().rows(pd.DataFrame({name: [value] for name, value in values.items()}))


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (FRAME.drop(columns="year"), "got no 'year'"),
        (FRAME.drop(index="cid"), "none for 'cid'"),
        (pd.concat([FRAME, FRAME.iloc[:1]]), "'ann' twice"),
        (FRAME.reset_index(drop=True).iloc[:4], "each of 5 rows of the data, got 4"),
        (FRAME.assign(year=[1.0, np.inf, 2, 3, 4]), "'year' must have finite values"),
        (
            FRAME.assign(party=["D", None, "D", None, "R"]),
            "'party' must have no missing values, got 2, the first in row bea",
        ),
        (FRAME.assign(year=1990), "'year', which is the same in all"),
    ],
)
def test_frames_that_do_not_fit_are_refused(frame, said):
    with pytest.raises(ValueError, match=said):
        read(frame=frame)
    with pytest.raises(TypeError, match="must be a DataFrame, got list"):
        read(frame=[1])


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("~ __import__('os').system('true')", "such as"),
        ("~ open(year)", "may call"),
        ("~ bs(year, __import__('os').getpid())", "such as|may call"),
        ("~ year.real", "only names, numbers, .* calls such as log"),
        ("~ np.log(year)", "may call"),
        ("~ bs(year, 4 if year else 5)", "only names, numbers, .* calls such as log"),
        ("~ {year}", "names, calls and the signs"),
        ("~ (party + year)**9", "names, calls and the signs"),
        ("party ~ year", "nothing before"),
        ("~ poly(year, 1e8)", "at most 50 columns, got 100000000.0"),
        ("~ bs(year, df=100000)", "at most 50 columns, got 100000"),
        ("~ bs(year, df=2*100000)", "at most 50 columns"),
        ("~ 0 + party", "keep its intercept"),
        ("~ 1", "name a covariate"),
        ("~ log(party)", "fit the covariates"),
        ("~ party + Intercept", "must not name 'Intercept', because every formula has one"),
        ("~ year" + " + year" * 100, "at most 500 characters"),
        ("~ (", "such as"),
        ("~ " + "*".join("abcdefghijklmnopqrst"), "at most 200 terms, got 1048575"),
        ("~ " + "*".join(f"(a{i} + b{i}):c" for i in range(20)), "at most 200 terms, got"),
        ("~ year + I('a'*3000000000)", "only numbers and covariates in arithmetic"),
        ("~ year + I(I('a')*3000000000)", "only numbers and covariates in arithmetic"),
        ("~ C(year, (1,)*300000000)", "only numbers and covariates in arithmetic"),
        ("~ year %in% party", "names, calls and the signs"),
    ],
)
def test_formulas_that_are_not_allowed_are_refused(formula, said):
    with pytest.raises(ValueError, match=said):
        read(formula)


@pytest.mark.parametrize(
    "formula",
    [
        "~ a*b*c",
        "~ a*b:c*d",
        "~ a:b*c",
        "~ (a + b):(c + d)*e",
        "~ a/b/c",
        "~ (a*b)/c",
        "~ a/(b:c) + d - e",
        "~ -1 + a*b",
        "~ +(a + b)*c",
        "~ -e + a*b*c",
    ],
)
def test_terms_are_counted_before_products_are_multiplied_out(formula):
    made = len(list(covariates.formulaic().Formula(formula)))
    counted = covariates.terms_of(ast.parse(formula[2:].replace(":", "@"), mode="eval").body)
    assert made - 1 <= counted <= made + 1  # with the intercept; a subtracted term counts
    assert names_in(formula)


def test_names_are_those_of_columns_in_order():
    assert names_in("~ log(year) + C(party):bs(age, df=3) + year") == ["year", "party", "age"]


def test_without_formulaic_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ModuleNotFoundError, match=r"prevalence needs formulaic: pip install '.\[covariates\]'"):
        read()


def test_terms_without_a_number_are_refused_by_name_and_row():
    frame = FRAME.assign(size=[1.0, 2.0, -1.0, 4.0, 5.0])
    with pytest.raises(ValueError, match=r"term 'log\(size\)' must be finite in every row, got nan in row cid"):
        read("~ log(size)", frame)
    found = read("~ log(year)")
    for year, got in ((-1, "nan"), (0, "-inf")):
        with pytest.raises(ValueError, match=rf"must be finite in every row, got {got} in row 1"):
            found.rows(pd.DataFrame({"year": [1990, year, 1991]}))


def test_numbers_that_are_levels_must_have_been_seen():
    found = read("~ C(year)")
    np.testing.assert_allclose(found.rows(FRAME.iloc[[2]]), found.design[[2]])
    with pytest.raises(ValueError, match="range of those of the fit"):
        found.rows(pd.DataFrame({"year": [1900]}))


def test_a_column_that_differs_by_rounding_alone_does_not_vary():
    with pytest.raises(ValueError, match="every term must vary between rows, got 'x'"):
        read("~ x", FRAME.assign(x=[0.1, 0.1, 0.1, 0.3 - 0.2, 0.1]))


def test_the_default_numbering_goes_by_labels_where_these_are_its_numbers():
    frame = FRAME.reset_index(drop=True)
    turned = read(frame=frame, labels=["4", "3", "2", "1", "0"])
    np.testing.assert_allclose(turned.design, read(frame=frame).design[::-1])


def test_objects_are_numbers_if_all_of_them_are_and_dates_are_refused():
    found = read("~ year", FRAME.astype({"year": object}))
    np.testing.assert_array_equal(found.design, read("~ year").design)
    with pytest.raises(ValueError, match="must contain numbers or text, got datetime64"):
        read("~ day", FRAME.assign(day=pd.to_datetime(["2001-01-01"] * 4 + ["2001-01-02"])))
    with pytest.raises(ValueError, match="must contain numbers or text, got complex128"):
        read("~ z", FRAME.assign(z=[1j, 2, 3, 4, 5]))
    with pytest.raises(ValueError, match="nothing before its '~'"):
        read("party ~ year")


def test_levels_are_in_the_order_of_their_categories():
    party = [*FRAME["party"]]
    levels = sorted(set(party), reverse=True)
    frame = FRAME.assign(party=pd.Categorical(party, [*levels, "never seen"]))
    found = read("~ party", frame)
    assert found.terms == tuple(f"party[T.{level}]" for level in levels[1:])
    assert read("~ party", FRAME).terms == tuple(f"party[T.{level}]" for level in levels[-2::-1])
    np.testing.assert_array_equal(found.rows(FRAME), found.design)
    assert read("~ bs(year, df=4, lower_bound=0, upper_bound=3000)").design.shape == (5, 4)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("~ a:b", "at most 200 columns, got 3601, of which 3600 of a:b"),
        ("~ C(x)", "of which 300 of C(x)"),
        ("~ bs(x, df=40):a", "of which 2400 of bs(x, df=40):a"),
        ("~ a + b + bs(x, 45) + bs(y, 45)", "at most 200 columns, got 211"),
    ],
)
def test_a_formula_may_ask_for_so_many_columns(formula, said, monkeypatch):
    """They are counted before any is made."""
    i = np.arange(300)
    frame = pd.DataFrame({"a": (i % 60).astype(str), "b": (i // 5).astype(str), "x": np.sqrt(i), "y": i % 7})
    monkeypatch.setattr(covariates, "first_design", None)
    with pytest.raises(ValueError, match=re.escape(said)):
        read_covariates(formula, frame, None, 300)
    monkeypatch.undo()
    assert len(read_covariates("~ a + b + bs(x, 4) * y", frame, None, 300).terms) == 127


def test_what_participants_stated_is_a_table_of_the_rows():
    asked = Covariate("party", ("R", "D", "other")), Covariate("age")
    stated = RowCovariates(asked, (("D", "42"), ("R", "-0.5")))
    level, labels = cv.PrivacyLevel(1, 1), (("b", "a"), None)
    release = cv.Release([[1], [2]], level, True, labels, extras=Extras(covariates=stated))
    found = cv.covariates_of(release)
    assert found.index.tolist() == ["b", "a"]
    assert found["party"].tolist() == ["D", "R"]
    assert found["party"].cat.categories.tolist() == ["R", "D", "other"]
    assert found["age"].tolist() == [42.0, -0.5]
    assert read("~ party + age", found, ["a", "b"]).terms == ("party[T.D]", "age")
    assert cv.covariates_of(cv.Release([[1]], level, True)) is None
    assert in_rows_of(np.ones((2, 2))) is None
    once = in_rows_of(cv.Release([[1], [2]], level, True, (("a", "a"), None), extras=Extras(covariates=stated)))
    assert once.index.tolist() == [0, 1]
    with pytest.raises(TypeError, match="release must be a Release, got str"):
        cv.covariates_of("r.npz")


@pytest.mark.parametrize(("formula", "said"), [("~ party", "'x'"), ("~ C(grade) + year", "3")])
def test_a_covariate_with_a_single_level_is_refused_by_name(formula, said):
    frame = FRAME.assign(party="x", grade=3)
    with pytest.raises(ValueError, match=rf"covariate '\w+' must vary between rows, got {said}"):
        check_levels(read(formula, frame))
    check_levels(read("~ grade:year", frame))  # a number that stretches another is no level
