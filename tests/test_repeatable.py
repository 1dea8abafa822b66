"""Noise repeats while tests run, and nowhere else."""

import subprocess
import sys
from fractions import Fraction

import pytest

from countveil.privacy import gaussian_noise, noise, round_randomly
from tests.repeatable import BITS

DRAWN = {
    "geometric": lambda: list(noise.draw(Fraction(1, 2), 40)),
    "Gaussian": lambda: list(gaussian_noise.draw(Fraction(9), 40)),
    "rounded": lambda: round_randomly([[7] * 40], 5).reports.tolist(),
}
SCRIPT = "from countveil.privacy import noise; from fractions import Fraction; print(noise.draw(Fraction(1, 2), 40))"


@pytest.mark.parametrize("kind", DRAWN)
def test_a_name_has_its_own_noise(kind):
    def drawn(name):
        with BITS.kept(name):
            return [DRAWN[kind]() for _ in range(2)]

    assert drawn("a") == drawn("a")
    assert drawn("a") != drawn("b")
    assert drawn("a")[0] != drawn("a")[1]


@pytest.fixture
def drawn():
    return noise.draw(Fraction(1, 2), 40)


DRAWN_BEFORE = []


@pytest.mark.parametrize("time", [1, 2])
def test_tests_and_fixtures_have_noise_by_their_own_names(request, drawn, time):
    first = noise.draw(Fraction(1, 2), 40)
    with BITS.kept(request.node.nodeid):
        assert noise.draw(Fraction(1, 2), 40) == first
    DRAWN_BEFORE.append(drawn)
    assert all(before == drawn for before in DRAWN_BEFORE)


def test_noise_of_other_processes_does_not_repeat():
    first, second = (subprocess.check_output([sys.executable, "-c", SCRIPT]) for _ in range(2))
    assert first != second
