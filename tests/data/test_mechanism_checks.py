"""What reports say of their mechanism: in words, and of counts of zero, which doubt right noise first."""

import numpy as np
import pytest

import countveil as cv
from countveil import mechanisms as m
from countveil.data.mechanism_checks import MechanismCheck, check_mechanism, contradiction_in_words
from countveil.noise.protocol import Contradiction

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
