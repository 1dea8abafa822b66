import math

import numpy as np
import pytest

from countveil.audit import statistics as ours


def seeded(rate, size, seed=1):
    rng = np.random.default_rng(seed)
    return rng.geometric(-math.expm1(-rate), size) - rng.geometric(-math.expm1(-rate), size)


@pytest.mark.parametrize("rate", [0.01, 0.5, 1.0, 3.0])
def test_moments_are_those_of_the_law(rate):
    values = np.arange(1, 10_000)
    chances = 2 * math.tanh(rate / 2) * np.exp(-rate * values)
    mean = (chances * values).sum()
    assert ours.moments(rate) == pytest.approx((mean, (chances * values**2).sum() - mean**2), rel=1e-9)


def test_p_values_are_uniform_under_the_law():
    """Kolmogorov-Smirnov on 300 seeded histograms, at 1 in 10^4."""
    from scipy import stats

    found = {ours.chi_square: [], ours.magnitude: []}
    for seed in range(300):
        draws = seeded(0.5, 20_000, seed)
        seen = ours.histogram(draws, ours.width(0.5, draws.size))
        for statistic, values in found.items():
            values.append(statistic(seen, 0.5))
    for values in found.values():
        assert stats.kstest(values, "uniform").pvalue > 1e-4


def test_a_detectable_alpha_is_detected_nearly_always():
    rate, size = 1.0, 100_000
    wrong = rate - math.log(1 + ours.detectable_alpha(rate, size))
    hits = 0
    for seed in range(60):
        draws = seeded(wrong, size, seed)
        hits += ours.magnitude(ours.histogram(draws, 10), rate) < ours.CRITICAL
    assert hits >= 55


def test_rare_noise_is_tested_exactly():
    seen = ours.histogram(np.zeros(1000, dtype=np.int64), 1)
    assert ours.magnitude(seen, 20.0) > 0.9
    seen = ours.histogram(np.array([0] * 995 + [1] * 5), 1)
    assert ours.magnitude(seen, 20.0) < ours.CRITICAL
    assert ours.chi_square(seen, 20.0) < ours.CRITICAL


def test_values_cut_at_zero_are_tested_as_such():
    draws = np.maximum(seeded(1.0, 100_000), 0)
    seen = ours.histogram(draws, ours.width(1.0, draws.size))
    assert ours.chi_square(seen, 1.0, positive=True) > 1e-4
    assert ours.chi_square(seen, 1.0) < ours.CRITICAL


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


def test_repeated_windows():
    draws = seeded(0.01, 10_000)
    assert ours.repeated_windows(draws) == 0
    again = draws.copy()
    again[5000:5033] = -draws[10:43]
    assert ours.repeated_windows(again) == 2
