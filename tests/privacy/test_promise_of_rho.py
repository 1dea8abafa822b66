"""What rho means in epsilon, delta and right guesses, against brute force over the noise itself."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.privacy.test_promise import RIGHT_AT_MOST

from countveil.privacy import PrivacyLevel, promise, promise_of_rho
from countveil.privacy.promise_of_rho import describe, epsilon_for, right_guesses, sentence, strength, wrong_guesses

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


def right_in(rho):
    """The share of right guesses between counts that differ by one, (1 + TV)/2, summed over the law."""
    here = masses(rho)
    return 0.5 + np.maximum(here - np.roll(here, 1), 0).sum() / 2


@pytest.mark.parametrize("rho", [1e-4, 0.005, 0.125, 0.5, 0.8, 0.82, 1.0, 2.0, 2.08, 2.1, 4.5, 4.7, 12.0, 30.0])
def test_words_go_by_the_exact_share_of_right_guesses(rho):
    """Which is (1 + the share of counts that the noise leaves as they are)/2."""
    level, right = PrivacyLevel.zcdp(rho), right_in(rho)
    unchanged = masses(rho).max()
    assert right == pytest.approx((1 + unchanged) / 2)
    assert wrong_guesses(level.rho) == pytest.approx(1 - right, rel=1e-9, abs=1e-14)
    (name,) = [name for name, most in RIGHT_AT_MOST.items() if right <= most][:1]
    assert strength(level.rho) == name
    said = right_guesses(level.rho)
    assert said == "practically 100%" if right > 1 - 1e-9 else right <= float(said.rstrip("%")) / 100 < right + 0.00101
    assert f"right in at most {said} of cases" in level.describe()
    assert f"leaves {promise.unchanged(1 - unchanged)} of counts unchanged" in level.mechanism.describe()


def test_rho_12_protects_practically_nothing():
    assert describe(Fraction(12)).startswith("This level hides practically nothing")
    assert "right in at most 99.9994% of cases" in describe(Fraction(12))
    assert sentence(Fraction(12), "word").startswith("Practically no protection")


@pytest.mark.parametrize("rho", RHOS)
def test_what_several_releases_add_up_to_is_bounded_for_any_noise(rho):
    """Two-sided geometric noise of the same rho, (epsilon/N)^2/2, is told apart more easily where rho is small."""
    geometric = math.tanh(math.sqrt(rho / 2))
    bound = 1 - 2 * promise_of_rho.least_wrong_guesses(Fraction(rho))
    assert max(geometric, masses(rho).max()) <= bound <= 1
    said = promise.percent(promise_of_rho.least_wrong_guesses(Fraction(rho)))
    assert f"right in at most {said} of cases" in describe(Fraction(rho), together=True)


@pytest.mark.parametrize("rho", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("times", [2, 3, 5])
def test_several_reports_with_the_same_noise_show_less_than_one_at_the_sum_of_their_rhos(rho, times):
    summed = masses(rho)
    for _ in range(times - 1):
        summed = np.convolve(summed, masses(rho))
    noise = np.arange(len(summed)) - len(summed) // 2
    distance = summed[(noise > -times / 2) & (noise <= times / 2)].sum()  # the best guess is by the sum of the reports
    assert distance <= 1 - 2 * wrong_guesses(Fraction(times * rho))


def test_what_is_said():
    assert describe(Fraction(1, 8)).startswith("Protected: any two sets of counts that differ by one unit in one cell ")
    assert "right in at most 60.0% of cases" in describe(Fraction(1, 8))
    assert "gives epsilon = 2.42 with delta = 10^-6" in describe(Fraction(1, 8))
    assert "d units in one cell have d^2 times this rho" in describe(Fraction(1, 8))
    assert max(len(describe(Fraction(rho))) for rho in (1 / 3, 2, 20, 300)) < 640
    assert describe(Fraction(2)).startswith("Partly protected")
    assert "hides little" in describe(Fraction(4))
    assert "almost always" in describe(Fraction(300))
    assert sentence(Fraction(1, 8), "word").endswith("(rho = 0.125)")
    assert math.isfinite(promise_of_rho.epsilon_for(1e-300, 1e-6))
