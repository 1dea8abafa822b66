"""What reports say of their mechanism: in words, and of counts of zero, which doubt right noise first."""

import warnings

import numpy as np
import pytest

import countveil as cv
from countveil import mechanisms as m
from countveil.data.mechanism_checks import (
    MechanismCheck,
    MechanismState,
    check_mechanism,
    contradiction_in_words,
    untested,
)
from countveil.laws.noise.protocol import Contradiction

SIZE = (20, 30)
DRAWN = {
    "Gaussian": (m.Gaussian(3.0), lambda rng: rng.normal(0.0, 3.0, SIZE)),
    "Laplace": (m.Laplace(3.0), lambda rng: rng.laplace(0.0, 3.0, SIZE)),
    "geometric": (m.TwoSidedGeometric(0.1), lambda rng: rng.geometric(0.9, SIZE) - rng.geometric(0.9, SIZE)),
    "Skellam": (m.Skellam(0.5, 0.5), lambda rng: rng.poisson(0.5, SIZE) - rng.poisson(0.5, SIZE)),
}


def test_a_contradicted_level_is_said_with_both_numbers():
    said = contradiction_in_words("alpha", Contradiction(0.5, 0.41234, True))
    assert said.startswith(
        "The reports contradict their alpha: 0.5 is stated, but their noise looks like alpha at most 0.412."
    )


@pytest.mark.parametrize("kind", DRAWN)
def test_right_noise_on_counts_of_zero_is_hardly_ever_doubted(kind):
    mechanism, draw = DRAWN[kind]
    found = [
        check_mechanism(cv.Reports(draw(np.random.default_rng(seed)), mechanism)).found for seed in range(200)
    ]
    assert sum(map(bool, found)) < 2


def test_each_state_in_words():
    assert str(MechanismCheck()) == "The stated mechanism is consistent with the reports."
    assert str(MechanismCheck((), ("Why.",))) == "The stated mechanism cannot be checked. Why."
    assert str(MechanismCheck(("No.",), ("Why.",))) == "No."
    assert MechanismCheck(("No.",), (), ("Nor that.",)).wrong == ("No.", "Nor that.")


def test_masked_cells_prove_nothing():
    rng = np.random.default_rng(1)
    reports = rng.geometric(0.5, SIZE) - rng.geometric(0.5, SIZE)
    reports[3, 4] = -99
    hidden = np.zeros(SIZE, dtype=bool)
    hidden[3, 4] = True
    assert not check_mechanism(cv.PrivatizedCounts(reports, 0.5, hidden)).found
    assert check_mechanism(cv.PrivatizedCounts(reports, 0.5)).found


def test_true_counts_have_no_mechanism():
    assert check_mechanism(cv.ExactCounts(np.ones((3, 3), dtype=int))) is None


LARGE = np.arange(100.0, 700.0).reshape(SIZE)
MANY, FEW = np.array([[0.0, 5.0, 10.0, 15.0]]), np.array([[0.0, 5.0, 10.0, 10.0]])
ALONE = {  # (mechanism, reports of which it is tested without a fit, reports of which it is not)
    "Gaussian": (m.Gaussian(3.0), LARGE - 110.0, LARGE),
    "Laplace": (m.Laplace(3.0), LARGE - 105.5, LARGE),
    "Skellam": (m.Skellam(2.0, 2.0), LARGE - 105.0, LARGE),
    "shifted noise": (m.Skellam(2.0, 3.0), None, LARGE - 101.0),
    "rounding": (m.Rounding(5), MANY, FEW),
    "random rounding": (m.RandomRounding(5), MANY, FEW),
    "suppression": (m.Suppression(5), None, LARGE),
    "top-coding": (m.TopCoding(50), None, np.minimum(LARGE, 50.0)),
}


@pytest.mark.parametrize("kind", ALONE)
def test_what_was_not_tested_without_a_fit_is_named(kind):
    mechanism, tested, not_tested = ALONE[kind]
    assert untested(cv.Reports(not_tested, mechanism)) == [mechanism]
    if tested is not None:
        assert untested(cv.Reports(tested, mechanism)) == []


def test_known_totals_test_noise_that_is_never_below_zero():
    reports, mechanism = cv.Reports, m.Gaussian(3.0)
    assert untested(reports(LARGE, mechanism, totals=[(1, LARGE.sum(axis=1))])) == []
    hidden = np.where(LARGE < 105, np.nan, LARGE)
    suppressed = m.Suppression(105)
    assert untested(reports(hidden, suppressed, totals=[(1, LARGE.sum(axis=1))])) == [suppressed]


@pytest.mark.parametrize("draws", [10, 100])
def test_a_fit_without_settled_chains_is_no_test(draws):
    few = {"draws": draws, "tune": 20, "chains": 2 if draws == 10 else 1, "threads": 1, "progress": False}
    data = cv.Reports(np.random.default_rng(1).poisson(60.0, SIZE) + 0.5, m.Gaussian(3.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = cv.TopicModel(1, likelihood="poisson", seed=1, **few).fit(data).diagnostics().mechanism
    assert found.state == MechanismState.UNCHECKED
    assert str(found) == (
        "The stated mechanism cannot be checked. "
        "Whether Gaussian(3) is right shows only in a fit by method gibbs whose chains have settled."
    )
