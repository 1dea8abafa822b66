"""Every mechanism that files can state: values, JSON, words, and what releases refuse."""

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.privacy.mechanisms import MECHANISMS, AddedNoise, Elsewhere, from_json, table

m = cv.mechanisms
HALF = [[0.5, 0.5, 0], ["0.25", Fraction(1, 4), 0.5]]
ELSEWHERE = {
    "DiscreteGaussian(0.3)": (m.DiscreteGaussian("0.3"), {"sigma": "3/10"}),
    "Gaussian(10)": (m.Gaussian(10), {"sigma": "10"}),
    "Laplace(0.5)": (m.Laplace(0.5), {"scale": "1/2"}),
    "Skellam(1, 2.5)": (m.Skellam(1, 2.5), {"l1": "1", "l2": "5/2"}),
    "RandomRounding(3)": (m.RandomRounding(3), {"base": "3"}),
    "Rounding(5)": (m.Rounding(5), {"base": "5"}),
    "Rounding(6, 'midpoint')": (m.Rounding(6, "midpoint"), {"base": "6", "to": "midpoint"}),
    "Composed(Suppression(8, shows_zero=True), Rounding(5))": (
        m.Composed(m.Suppression(8), m.Rounding(5)),
        {"steps": [m.Suppression(8).to_json(), m.Rounding(5).to_json()]},
    ),
    "Suppression(10, shows_zero=True)": (m.Suppression(10), {"below": "10", "shows_zero": True}),
    "Suppression(1, shows_zero=False)": (m.Suppression(1, False), {"below": "1", "shows_zero": False}),
    "Interval(10, 50)": (m.Interval(10, 50), {"lower": "10", "upper": "50"}),
    "Interval(90, None)": (m.Interval(90), {"lower": "90", "upper": None}),
    "RandomisedResponse(0.125)": (m.RandomisedResponse(0.125), {"probability": "1/8"}),
    "TopCoding(90)": (m.TopCoding(90), {"above": "90"}),
    "Thresholded(TwoSidedGeometric(0.5), 450)": (
        m.Thresholded(m.TwoSidedGeometric(0.5), 450),
        {"above": "450", "mechanism": m.TwoSidedGeometric(0.5).to_json()},
    ),
    "Thresholded(Laplace(30), -0.5)": (
        m.Thresholded(m.Laplace(30), -0.5),
        {"above": "-1/2", "mechanism": m.Laplace(30).to_json()},
    ),
    "Table(<2 x 3>)": (m.Table(HALF), {"probabilities": [["1/2", "1/2", "0"], ["1/4", "1/4", "1/2"]]}),
}
every = pytest.mark.parametrize(("text", "spec", "parameters"), [(k, *v) for k, v in ELSEWHERE.items()], ids=ELSEWHERE)


def test_every_mechanism_of_the_table_is_tested_here_or_in_its_own_file():
    assert {type(spec) for spec, _ in ELSEWHERE.values()} | {m.TwoSidedGeometric} == set(MECHANISMS.values())
    assert all(kind.name == name for name, kind in MECHANISMS.items())
    assert {kind.__name__ for kind in MECHANISMS.values()} <= set(m.__all__)


@every
def test_mechanisms_are_values_that_come_back_from_files(text, spec, parameters):
    assert repr(spec) == text
    assert spec.to_json() == {"name": spec.name, "version": 1, "parameters": parameters}
    again = from_json(json.loads(json.dumps(spec.to_json())))
    assert again == spec
    assert {spec: 1}[again] == 1
    assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec
    for name in (*parameters, "name", "anything"):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(spec, name, 1)


def test_every_mechanism_has_plain_words_for_users():
    assert [spec.in_words for spec, _ in ELSEWHERE.values()] == [
        "discrete Gaussian noise (sigma 0.3)",
        "Gaussian noise (sigma 10)",
        "Laplace noise (scale 0.5)",
        "Skellam noise (l1 1, l2 2.5)",
        "random rounding (base 3)",
        "rounding to multiples of 5",
        "rounding to multiples of 6 (midpoint)",
        "suppression of 1 to 7 then rounding to multiples of 5",
        "suppression of 1 to 9",
        "suppression of 0",
        "ranges of 10 to 50",
        "ranges of 90 or more",
        "randomised response (probability 0.125)",
        "top-coding at 90",
        "two-sided geometric noise (alpha 0.5), published above 450",
        "Laplace noise (scale 30), published above -0.5",
        "a table of probabilities (2 x 3)",
    ]
    assert m.TwoSidedGeometric.keeping(1, 2).in_words == "two-sided geometric noise (epsilon 1, N 2)"
    assert m.DiscreteGaussian.keeping(0.125).in_words == "discrete Gaussian noise (rho 0.125)"
    assert m.Suppression(None).in_words == "suppression of 1 up to an unstated bound"


@every
def test_no_release_states_what_the_owners_side_does_not_draw(text, spec, parameters):
    if isinstance(spec, cv.mechanisms.RandomRounding):
        return  # ``round_randomly`` draws it
    with pytest.raises(ValueError, match=f"^mechanism must be one that the owner's side draws, got '{spec.name}'"):
        spec.check_released()
    with pytest.raises(ValueError, match="mechanism must be one that the owner's side draws"):
        cv.Release([[1]], spec, truncated=False)


@every
def test_other_names_spellings_and_versions_are_refused(text, spec, parameters):
    stated = spec.to_json()
    broken = [stated | {"version": 2}, stated | {"parameters": {}}, stated | {"parameters": parameters | {"seed": "1"}}]
    for name, value in parameters.items():
        if isinstance(value, str):
            broken += [
                stated | {"parameters": parameters | {name: v}}
                for v in (f"{value}.0", 8 if name == "to" else float(Fraction(value)))
            ]
            broken.append(stated | {"parameters": parameters | {name: "1e400"}})
    for bad in broken:
        with pytest.raises(ValueError, match=r"^mechanism ") as caught:
            from_json(bad)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 250


@every
def test_words_say_what_was_done_and_what_it_protects(text, spec, parameters):
    words = spec.describe()
    assert words.endswith((".", "%."))
    noisy = isinstance(spec, AddedNoise | m.Thresholded | m.RandomisedResponse)
    assert ("not differential privacy" in words) == (not noisy)
    assert isinstance(spec, Elsewhere)


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: m.DiscreteGaussian(0), "sigma must be positive, got 0"),
        (lambda: m.Gaussian(math.nan), "sigma must be finite, got nan"),
        (lambda: m.Gaussian(1e200), "sigma must lie between 1e-100 and 1e100, got 1e+200"),
        (lambda: m.Laplace(-1), "scale must be positive, got -1"),
        (lambda: m.Skellam(1, 0), "l2 must be positive, got 0"),
        (lambda: m.Skellam(1e10, 1), "l1 must lie between 1e-9 and 1e9, got 10000000000"),
        (lambda: m.RandomRounding(1), "base must be a whole number of at least 2 and below 2**53, got 1"),
        (lambda: m.RandomRounding(2.5), "base must be a whole number of at least 2 and below 2**53, got 2.5"),
        (lambda: m.Rounding(0), "base must be a whole number of at least 2 and below 2**53, got 0"),
        (lambda: m.Rounding(5, "odd"), "to must be one of nearest, even, down, up, midpoint, got 'odd'"),
        (lambda: m.Composed(m.Rounding(5)), "steps must be 2 to 4, got 1"),
        (
            lambda: m.Composed(m.Suppression(3), m.Rounding(10**6)),
            "steps must have a base and hidden counts of at most 100,000, got 1,000,000",
        ),
        (lambda: m.preset("nhs"), "name must be one of nhs-hes, opensafely-midpoint6, "),
        (lambda: m.Suppression(1), "below must be a whole number of at least 2 and below 2**53, got 1"),
        (lambda: m.Suppression(0, False), "below must be a whole number of at least 1 and below 2**53, got 0"),
        (lambda: m.Interval(-1, 4), "lower must be a whole number of at least 0 and below 2**53, got -1"),
        (lambda: m.Interval(5, 4), "upper must be a whole number of at least 5 and below 2**53, got 4"),
        (lambda: m.Interval(5, 5.5), "upper must be a whole number of at least 5 and below 2**53, got 5.5"),
        (lambda: m.RandomisedResponse(0.5), "probability must be at least 1e-15 and below 1/2, got 0.5"),
        (lambda: m.TopCoding(0), "above must be a whole number of at least 1 and below 2**53, got 0"),
        (lambda: m.Thresholded(m.Skellam(1, 1), 0.5), "above must be a whole number, as noisy values are, got 0.5"),
        (lambda: m.Thresholded(m.Laplace(1), 1e30), "above must be below 2**53 in size, as reports are, got 1e+30"),
        (lambda: m.Thresholded(m.TwoSidedGeometric(0.5), -(10**101)), "above must be below 2**53 in size"),
        (lambda: m.Table([[1, "1e-330"]]), "probabilities must be 0 or at least 1e-300, got 1e-330 in row 0"),
        (lambda: m.Table([[1], [1, 1e-320]]), "probabilities must be 0 or at least 1e-300, got 9.99989e-321 in row 1"),
        (lambda: m.Table([]), "probabilities must have at least one row, and rows of one length, got none"),
        (
            lambda: m.Table([[1], [0.5, 0.5]]),
            "probabilities must have at least one row, and rows of one length, got 1 numbers in row 0 and 2 in row 1",
        ),
        (
            lambda: m.Table.of_parameters({"probabilities": [["1"], 7]}),
            "probabilities must be a list of lists, got 7 in entry 1",
        ),
        (lambda: m.Table.of_parameters({"probabilities": 7}), "probabilities must be a list of lists, got 7"),
        (lambda: m.Table([[1, 0], [0.5, 0.4]]), "probabilities must sum to 1 in every row, got 0.9 in row 1"),
        (lambda: m.Table([[1.5, -0.5]]), "probabilities must not be negative, got -0.5 in row 0"),
        (lambda: m.Table([[1] + [0] * 1_000_000]), "probabilities must hold at most 1000000 numbers, got 1000001"),
    ],
)
def test_ranges_are_named(make, rule):
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value).startswith(rule)


def test_tables_that_are_too_large_are_refused_before_their_numbers_are_read(monkeypatch):
    monkeypatch.setattr(table, "MOST_NUMBERS", 3)
    for make in (
        lambda: m.Table([[1, 0], ["no number", 0]]),
        lambda: m.Table.of_parameters({"probabilities": [["1", "0"], ["no number", "0"]]}),
        lambda: m.Table([iter([1, 0]), iter([1, 0])]),
    ):
        with pytest.raises(ValueError, match="probabilities must hold at most 3 numbers, got 4"):
            make()


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: m.Gaussian(None), "sigma must be a number or a decimal string, got None"),
        (lambda: m.Laplace(True), "scale must be a number or a decimal string, got True"),
        (lambda: m.Suppression(10, "no"), "shows_zero must be True or False, got 'no'"),
        (lambda: m.Thresholded(m.Rounding(3), 10), "mechanism must add noise, as Laplace does, got 'rounding'"),
        (
            lambda: m.Composed(m.Rounding(5), m.Laplace(1)),
            "steps must be Suppression, Rounding, RandomRounding or TopCoding, got Laplace",
        ),
        (lambda: m.Thresholded(0.5, 10), "mechanism must add noise, as Laplace does, got 'float'"),
        (lambda: m.Table(3), "probabilities must be rows of numbers, got int"),
        (lambda: m.Table([1, 0]), "probabilities must be rows of numbers, got int in row 0"),
        (
            lambda: m.Table(pd.DataFrame(HALF)),
            "probabilities must be rows of numbers, got DataFrame: take its .to_numpy()",
        ),
        (lambda: m.Elsewhere(), "Can't instantiate abstract class"),
    ],
)
def test_types_are_named(make, rule):
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value).startswith(rule)


def test_numbers_are_exact_and_of_any_kind():
    assert m.Gaussian("0.1").sigma == Fraction(1, 10) != m.Gaussian(0.1).sigma
    assert m.RandomRounding(np.int64(3)) == m.RandomRounding(3.0) == m.RandomRounding("3")
    assert m.Table(np.eye(2)) == m.Table([[1, 0], [0, 1]])


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0, 3.0, 20.0])
def test_spreads_are_those_of_the_laws(sigma):
    k = np.arange(-1000, 1001)
    weights = np.exp(-0.5 * (k / sigma) ** 2)
    spread = math.sqrt((weights * k.astype(float) ** 2).sum() / weights.sum())
    assert m.DiscreteGaussian(sigma).standard_deviation == pytest.approx(spread, rel=1e-9, abs=1e-40)
    assert m.Gaussian(sigma).standard_deviation == sigma
    assert m.Laplace(sigma).standard_deviation == pytest.approx(math.sqrt(2) * sigma)
    assert m.Skellam(sigma, 3).standard_deviation == pytest.approx(math.sqrt(sigma + 3))
    assert m.Gaussian(sigma).rho == pytest.approx(0.5 / sigma**2)


def test_what_is_said_of_a_table_is_its_largest_ratio():
    assert "more than 3 times as likely" in m.Table([[0.75, 0.25], [0.25, 0.75]]).describe()
    assert "rule some counts out" in m.Table(np.eye(3)).describe()


def test_noise_is_unbiased_and_the_rest_says_so_too():
    assert m.Skellam(1, 1).unbiased
    assert not m.Skellam(1, 2).unbiased
    unbiased = {type(s) for s, _ in ELSEWHERE.values() if s.unbiased}
    assert unbiased == {m.DiscreteGaussian, m.Gaussian, m.Laplace, m.RandomRounding}
    assert {type(s) for s, _ in ELSEWHERE.values() if s.absent} == {
        m.Suppression,
        m.Interval,
        m.Composed,
        m.Thresholded,
    }


def test_thresholds_of_thresholds_are_refused_at_any_depth():
    stated = m.Thresholded(m.Laplace(1), 0).to_json()
    for _ in range(5000):
        stated = stated | {"parameters": {"above": "0", "mechanism": stated}}
    with pytest.raises(ValueError, match="mechanism must add noise, got 'thresholded noise'"):
        from_json(stated)


def test_rules_of_rules_are_refused_at_any_depth():
    stated = m.Composed(m.Suppression(8), m.Rounding(5)).to_json()
    for _ in range(5000):
        stated = stated | {"parameters": {"steps": [stated, m.Rounding(5).to_json()]}}
    with pytest.raises(ValueError, match="steps must be suppression, rounding, random rounding or top-coding"):
        from_json(stated)


def test_rules_in_order_are_described_in_order():
    words = m.Composed(m.Rounding(5), m.Suppression(10), m.TopCoding(90)).describe()
    assert words.startswith(
        "Counts were treated in this order: 1. values rounded to the nearest multiple of 5, halves upwards; "
        "2. values of 1 to 9 hidden; 3. values above 90 shown as 90. This is not differential privacy"
    )


def test_a_bound_that_is_not_stated_is_in_no_file_and_among_no_further_rules():
    unstated = m.Suppression(below=None)
    assert "Counts of 1 up to an unstated bound are hidden" in unstated.describe()
    with pytest.raises(ValueError, match=r"mechanism must have a bound in files, got Suppression\(None"):
        unstated.to_json()
    with pytest.raises(ValueError, match="steps must state what they hide, got suppression of 1 up to an"):
        m.Composed(unstated, m.Rounding(5))


def test_flips_keep_the_epsilon_that_they_promise():
    found = m.RandomisedResponse.keeping(2)
    assert float(found.probability) == pytest.approx(1 / (1 + math.exp(2)))
    assert found.epsilon == pytest.approx(2)
    assert "more than 7.39 times as likely" in m.RandomisedResponse.keeping(2).describe()


def test_presets_name_a_rule_and_where_it_is_documented():
    assert m.preset("nhs-hes") == m.Composed(m.Suppression(8), m.Rounding(5))
    assert m.preset("opensafely-midpoint6") == m.Rounding(6, "midpoint")
    for name, each in m.PRESETS.items():
        assert from_json(m.preset(name).to_json()) == each.mechanism
        assert each.source.startswith("http")
        assert each.tables


def long_table(digits, rows):
    """Tables whose exact row sums have as many digits as all their denominators together."""
    start = 10 ** (digits - 1)
    row = [str(Fraction((start + k) // 800, start + k)) for k in range(1, 1600, 2)]
    return {"name": "table", "version": 1, "parameters": {"probabilities": [row] * rows}}


def test_tables_of_long_fractions_are_refused_or_read_without_adding_them_up_exactly():
    with pytest.raises(ValueError, match="must be fractions of at most 400 digits, got ") as caught:
        from_json(long_table(1200, 1))
    assert len(str(caught.value)) < 120
    with pytest.raises(ValueError, match="at most 400 digits, got more in row 0: give floats"):
        m.Table([[Fraction(10**401, 10**401 + 1), 0.0]])
    found = from_json(long_table(390, 2))
    assert "more than 1 times" in found.describe()
    assert from_json(m.Table([[1e-300, 1.0]]).to_json())
