"""The Bessel sampler against the masses in high precision: its bounds as inequalities, its draws by chi-square."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numba import njit

from countveil.kernels import bessel
from tests import reference
from tests.plain import repeated, takes_many_draws

pytestmark = pytest.mark.long

ORDERS = (0, 1, 5, 50, 10**4, 10**7)
ARGUMENTS = (1e-6, 0.1, 1.0, 10.0, 20.0, 100.0, 1e4, 1e7)
P_VALUE_BOUND = 1e-3 / (len(ORDERS) * len(ARGUMENTS))
DRAWS = repeated(400_000)

# Real modes on either side of INVERT_BELOW, and beyond; as pairs of order and argument.
MIDDLING = [(0, 15.9), (0, 16.1), (3, 20.0), (50, 45.0), (50, 100.0), (10**4, 570.0), (10**4, 10**4), (10**7, 2e4)]
LARGE = [(0, 16.1), (3, 25.0), (50, 100.0), (10**4, 10**4), (10**7, 2e4), (0, 1e7), (10**7, 1e7)]


def real_mode(order, argument):
    return 0.5 * argument * argument / (math.hypot(order, argument) + order)


def exact_log_mass(n, order, x):
    """Equation (1) without its constant, -x log x - (x + order) log(x + order) + x + x + order, from log-gammas."""
    x, y = mpf(x), mpf(x) + order
    log_joint = (n + mpf(0.5)) * mp.log(x) + (n + order + mpf(0.5)) * mp.log(y) - x - y
    return log_joint - mp.loggamma(n + 1) - mp.loggamma(n + order + 1) + mp.log(2 * mp.pi)


def around(order, argument, widths=(0, 1, -1, 2.5, -2.5, 6, -6)):
    """Counts about the mode, and the real mode."""
    x = real_mode(order, argument)
    sd = math.sqrt(x * (x + order) / (2 * x + order))
    return sorted({max(0, math.floor(x + width * sd)) for width in widths}), x


@pytest.mark.parametrize("w", [0.5, 1.5, 4.5, 11.5, 12.5, 13.5, 1000.5, 1e7 + 0.5])
def test_stirling_excess(w):
    exact = w * mp.log(w) - w + mp.log(2 * mp.pi) / 2 - mp.loggamma(mpf(w) + 0.5)
    assert abs(bessel.stirling_excess(w) - exact) < 1e-14
    assert 0.0 < bessel.stirling_excess(w) < 1 / (24 * w)


@pytest.mark.parametrize(("order", "argument"), LARGE)
def test_log_mass(order, argument):
    counts, x = around(order, argument)
    for n in {*counts, 0, 1} if x < 1e3 else counts:
        exact = exact_log_mass(n, order, x)
        assert abs(bessel.log_mass(n, float(order), x) - exact) < 1e-12 * max(1.0, abs(float(exact))), n


real_modes = st.floats(math.log(bessel.INVERT_BELOW), math.log(5e6)).map(math.exp)
orders = st.one_of(st.integers(0, 50), st.floats(0, math.log(1e7)).map(lambda log: int(math.exp(log))))
widths = st.floats(-40.0, 40.0)


@given(real_modes, orders, widths)
@settings(max_examples=repeated(2000), deadline=None, derandomize=True)
def test_the_hat_is_above_the_law(x, order, width):
    nu = float(order)
    x, r, lift, *_ = bessel.hat(nu, x * (x + nu))
    n = max(0, math.floor(x + width * r))
    u = n + 0.5 - x
    log_mass = bessel.log_mass(n, nu, x)
    slack = 1e-9  # of rounding, where the law and its bound are close
    for v in (u - 0.5, u + 0.5):
        if u <= 3 * r:
            assert log_mass <= lift - 0.5 * (v / (r + 0.25)) ** 2 + slack
        else:
            assert v >= 3 * r - 0.5
            assert log_mass <= lift + bessel.log_tail(v, r) + slack


@given(real_modes, orders, widths)
@settings(max_examples=repeated(2000), deadline=None, derandomize=True)
def test_the_bracket_holds_the_law(x, order, width):
    nu = float(order)
    x, r, _, c2, c3, c4 = bessel.hat(nu, x * (x + nu))
    n = max(0, math.floor(x + width * r))
    u = n + 0.5 - x
    if abs(u) <= 0.5 * x:
        low, high = bessel.bracket(u, abs(u) / x, c2, c3, c4)
        log_mass = bessel.log_mass(n, nu, x)
        slack = 1e-12 * (1.0 + abs(log_mass))
        assert low - slack <= log_mass <= high + slack
        if abs(width) < 2 and x > 50:
            assert high - low < 0.05


@njit
def draw_many(sampler, order, argument, rng, draws):
    for i in range(draws.size):
        draws[i] = sampler(order, argument, rng)


@njit
def invert(order, argument, rng):
    return bessel.invert(float(order), 0.25 * argument**2, rng)


@njit
def reject(order, argument, rng):
    return bessel.reject(float(order), 0.25 * argument**2, rng)


@njit
def one_order_off(order, argument, rng):
    return bessel.sample_bessel(order + 1, argument, rng)


@njit
def argument_off(order, argument, rng):
    return bessel.sample_bessel(order, 1.05 * argument, rng)


@njit
def rounded_normal(order, argument, rng):
    root = math.sqrt(float(order) ** 2 + argument**2)
    return int(0.5 * (root - order) + rng.standard_normal() * 0.5 * argument / math.sqrt(root))


def p_value(sampler, order, argument, seed=20240301):
    draws = np.empty(DRAWS, dtype=np.int64)
    draw_many(sampler, order, argument, np.random.default_rng([seed, order]), draws)
    law = reference.bessel_law(order, argument)
    return reference.chi_square_p_value(draws, law.first, law.probabilities)


@pytest.mark.parametrize("order", ORDERS)
def test_draws_over_the_grid(order):
    p_values = [p_value(bessel.sample_bessel, order, argument) for argument in ARGUMENTS]
    assert min(p_values) > P_VALUE_BOUND, dict(zip(ARGUMENTS, p_values, strict=True))


@pytest.mark.parametrize(("order", "argument"), MIDDLING)
def test_both_ways_draw_the_same_law(order, argument):
    assert p_value(bessel.sample_bessel, order, argument) > P_VALUE_BOUND
    if real_mode(order, argument) < 40:
        assert p_value(invert, order, argument) > P_VALUE_BOUND
    if real_mode(order, argument) > bessel.INVERT_BELOW:
        assert p_value(reject, order, argument) > P_VALUE_BOUND


@takes_many_draws
@pytest.mark.parametrize(
    ("wrong", "order", "argument"),
    [
        *[(one_order_off, order, argument) for order in (0, 1, 5) for argument in (1.0, 10.0, 100.0)],
        (one_order_off, 50, 30.0),
        (one_order_off, 50, 100.0),
        *[(argument_off, order, argument) for order in (0, 1, 5) for argument in (1.0, 10.0, 100.0, 1e4, 1e7)],
        *[(argument_off, order, 1e4) for order in (50, 10**4, 10**7)],
        (rounded_normal, 0, 100.0),
        (rounded_normal, 50, 100.0),
    ],
)
def test_a_slightly_wrong_sampler_is_caught(wrong, order, argument):
    assert p_value(wrong, order, argument) < P_VALUE_BOUND


@pytest.mark.parametrize(("order", "argument"), [(0, 0.3), (0, 3.0), (2, 9.0), (0, 15.9), (60, 30.0), (10**7, 5e3)])
def test_inversion_returns_the_count_whose_step_holds_the_uniform(order, argument):
    law = reference.bessel_law(order, argument)
    assert law.first == 0
    for seed in range(300):
        u = np.random.default_rng(seed).random()
        expected = int(np.searchsorted(np.cumsum(law.probabilities), u, side="right"))
        assert invert(order, argument, np.random.default_rng(seed)) == expected


@njit
def draw_each(order, argument, rng, draws):
    for i in range(draws.size):
        draws[i] = bessel.sample_bessel(order[i], argument[i], rng)


def test_draws_of_parameters_that_change_have_the_mean_of_each():
    rng = np.random.default_rng(5)
    order = np.exp(rng.uniform(0.0, math.log(1e7), 200)).astype(np.int64) - 1
    argument = np.exp(rng.uniform(math.log(1e-2), math.log(1e7), 200))
    laws = [reference.bessel_law(int(n), float(a)) for n, a in zip(order, argument, strict=True)]
    mean, variance = (np.array([float(getattr(law, name)) for law in laws]) for name in ("mean", "variance"))
    repeats, total = repeated(2000), np.zeros(200)
    draws = np.empty(200, dtype=np.int64)
    for _ in range(repeats):
        draw_each(order, argument, rng, draws)
        total += draws - mean
    seen = repeats * variance > 20  # rarer events have no normal sum
    z = total[seen] / np.sqrt(repeats * variance[seen])
    assert seen.sum() > 100
    assert np.abs(z).max() < 4.5
    assert (total[~seen] < 60).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_mode_and_mean(order, argument):
    law = reference.bessel_law(order, argument)
    assert bessel.bessel_mode(order, argument) == law.mode
    assert reference.relative_error(bessel.bessel_mean(order, argument), law.mean) < 1e-12
    assert abs(bessel.bessel_mean(order, argument) - law.mode) <= 1


def test_without_argument_the_count_is_zero():
    rng = np.random.default_rng(0)
    assert bessel.sample_bessel(0, 0.0, rng) == bessel.sample_bessel(9, 1e-300, rng) == 0
    assert bessel.bessel_mode(3, 0.0) == bessel.bessel_mean(3, 0.0) == bessel.bessel_mean(0, 0.0) == 0
