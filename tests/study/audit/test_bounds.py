"""Bounds are below what is true, and not far below it."""

import math

import numpy as np
import pytest

from countveil.study.audit import bounds as ours


def seeded(rate, size, seed=1):
    rng = np.random.default_rng(seed)
    return rng.geometric(-math.expm1(-rate), size) - rng.geometric(-math.expm1(-rate), size)


def gaussian(sigma, size, seed):
    values = np.arange(-20, 21)
    weights = np.exp(-0.5 * (values / sigma) ** 2)
    return np.random.default_rng(seed).choice(values, size, p=weights / weights.sum())


def test_bounds_on_epsilon_are_valid_and_near():
    """Two laws whose epsilon is known: the bound is below it, and not far."""
    first = {"x": seeded(1.0, 200_000, 1)}
    for shift in (1, 2):
        second = {"x": seeded(1.0, 200_000, 2) + shift}
        bound = ours.epsilon_bound(first, second, float(shift))
        assert 0.9 * shift < bound.lower < shift
        assert shift < bound.detectable < 1.2 * shift
    assert ours.epsilon_bound(first, {"x": seeded(1.0, 200_000, 3)}, 0.1).lower == 0
    apart = ours.epsilon_bound({"x": np.zeros(1000, int)}, {"x": np.ones(1000, int)}, 1.0)
    assert 3 < apart.lower < 10


@pytest.mark.parametrize("shift", [1, 2])
def test_bounds_on_rho_are_valid_and_near(shift):
    """What an event tells of a shift of Gaussian noise is 2/pi of its rho for small ones, and nearly that here."""
    first, second = {"x": gaussian(2, 200_000, 1)}, {"x": gaussian(2, 200_000, 2) + shift}
    rho = shift**2 / 8
    for one, other in ((first, second), (second, first)):
        bound = ours.rho_bound(one, other, rho)
        assert 0.4 * rho < bound.lower < rho
        assert rho < bound.detectable < 1.5 * rho
    assert ours.rho_bound(first, {"x": gaussian(2, 200_000, 3)}, 0.1).lower < 1e-3


def test_what_gaussian_noise_never_shows_is_seen():
    """Two inputs that a report tells apart for sure once in a hundred times: no small rho allows it."""
    apart = ours.rho_bound({"x": np.arange(10**5) % 100}, {"x": np.arange(10**5) % 99}, 0.01)
    assert apart.lower > 0.03


def test_divergences_are_those_of_their_definition():
    for order in (1.5, 4.0):
        wanted = math.log(0.3**order * 0.1 ** (1 - order) + 0.7**order * 0.9 ** (1 - order)) / (order - 1)
        assert ours._divergence(0.3, 0.1, order) == pytest.approx(wanted)
    wanted = 0.3 * math.log(3) + 0.7 * math.log(7 / 9)
    assert ours._divergence(0.3, 0.1, 1.0) == pytest.approx(wanted)
    assert ours._divergence(0.3, 0.1, 1.0 + 1e-7) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize(("q", "claimed"), [(0.3, 0.1), (0.5, 5e-5), (0.01, 0.5)])
def test_a_detectable_rho_is_detected_nearly_always(q, claimed):
    rng, size = np.random.default_rng(6), 100_000
    wrong = ours._detectable_rho(q, size, claimed)
    p = min(np.linspace(q, 1, 10**5)[:-1], key=lambda p: abs(ours._divergence(p, q, 1.0) - wrong))
    found = 0
    for _ in range(60):
        one, other = ({"x": (rng.random(2 * size) < chance).astype(int)} for chance in (p, q))
        found += ours.rho_bound(one, other, claimed).lower > claimed
    assert found >= 55
    assert wrong > claimed
