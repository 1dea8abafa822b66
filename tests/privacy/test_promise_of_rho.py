"""What rho means in epsilon, delta and right guesses, against brute force over the noise itself."""

import math
from fractions import Fraction

import numpy as np
import pytest

from countveil.privacy import promise_of_rho
from countveil.privacy.promise_of_rho import describe, epsilon_for, hides, right_guesses, sentence, strength

RHOS = [0.005, 0.125, 2.0, 30.0]


def masses(rho: float) -> np.ndarray:
    """Of discrete Gaussian noise with sigma^2 = 1/(2 rho), from -W to W."""
    widest = int(40 / math.sqrt(rho)) + 4
    weights = np.exp(-rho * np.arange(-widest, widest + 1.0) ** 2)
    return weights / weights.sum()


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_epsilon_is_the_best_order_and_below_the_closed_form(rho, delta):
    excess = np.exp(np.linspace(-12, 25, 100_001))
    order = 1 + excess
    brute = (order * rho - np.log(order * delta) / excess - np.log1p(1 / excess)).min()
    found = epsilon_for(rho, delta)
    assert found == pytest.approx(brute, abs=1e-6 * max(1, found))
    assert found <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_the_noise_keeps_epsilon_and_delta(rho, delta):
    """delta(epsilon) = sum of max(0, P(tau) - e^epsilon P(tau - 1)), by its definition."""
    here = masses(rho)
    there = np.roll(here, 1)
    there[0] = 0

    def needed(epsilon: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.maximum(here[1:] - np.exp(epsilon) * there[1:], 0).sum())

    assert needed(epsilon_for(rho, delta)) <= delta
    assert rho > 10 or needed(epsilon_for(rho, delta) * 0.5) > delta  # half of it is not kept


@pytest.mark.parametrize("rho", RHOS)
def test_divergences_of_every_order_are_below_rho(rho):
    here = masses(rho)
    there = np.roll(here, 1)
    kept = (here > 1e-250) & (there > 1e-250)
    for order in (1.01, 1.5, 2.0, 4.0):
        terms = order * np.log(here[kept]) + (1 - order) * np.log(there[kept])
        divergence = np.logaddexp.reduce(terms) / (order - 1)
        assert divergence <= order * rho * (1 + 1e-9)
        assert divergence > order * rho * 0.3 or rho > 1


@pytest.mark.parametrize("rho", RHOS)
def test_guesses_are_right_no_more_often_than_said(rho):
    here = masses(rho)
    right = 0.5 + np.maximum(here - np.roll(here, 1), 0).sum() / 2
    said = float(right_guesses(Fraction(rho)).rstrip("%")) / 100
    assert right <= said <= min(1.0, 0.5 + 1.5 * (right - 0.5) + 0.001)


def test_bounds_are_those_of_a_promise_of_epsilon():
    assert [strength(Fraction(rho)) for rho in (0.5, 0.51, 12.5, 12.6, 200, 201)] == [
        *("strong", "moderate", "moderate", "little", "little", "nothing")
    ]
    assert [hides(Fraction(rho)) for rho in (12.5, 13, 200, 201)] == [
        *(None, "little", "little", "practically nothing")
    ]


def test_what_is_said():
    assert describe(Fraction(1, 8)).startswith(
        "Protected: any two sets of counts that differ by one unit in one cell "
    )
    assert "right in at most 62.5% of cases" in describe(Fraction(1, 8))
    assert "gives epsilon = 2.42 with delta = 10^-6" in describe(Fraction(1, 8))
    assert "d units in one cell have d^2 times this rho" in describe(Fraction(1, 8))
    assert max(len(describe(Fraction(rho))) for rho in (1 / 3, 2, 20, 300)) < 620
    assert describe(Fraction(2)).startswith("Partly protected")
    assert "hides little" in describe(Fraction(20))
    assert "almost always" in describe(Fraction(300))
    assert sentence(Fraction(1, 8), "word").endswith("(rho = 0.125)")
    assert math.isfinite(promise_of_rho.epsilon_for(1e-300, 1e-6))
