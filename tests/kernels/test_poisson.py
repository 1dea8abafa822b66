"""The compiled Poisson law against many digits, and its draws against its masses."""

import math

import numpy as np
import pytest
from mpmath import mp
from numba import njit

from countveil.kernels import poisson as kernels
from tests import reference
from tests.joint import FALSE_ALARM

RATES = (1e-300, 1e-12, 1e-3, 1.0, 50.0, 1e4, 1e7)
ACCURACY = 1e-12
DRAWS = 100_000


@pytest.mark.parametrize("n", [1, 2, 15, 16, 30, 1000, 10**7])
def test_stirling_error(n):
    # A correction to log n!, which is of size one or more: what counts is its absolute error.
    assert abs(kernels.stirling_error(float(n)) - reference.stirling_error(n)) < 2e-14


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("n", [0, 1, 2, 49, 50, 9999, 10**7 - 1, 10**7, 10**7 + 3000])
def test_poisson_logpmf(n, rate):
    value = kernels.poisson_logpmf(n, rate)
    assert reference.relative_error(value, reference.poisson_logpmf(n, rate)) < ACCURACY


@pytest.mark.parametrize(("n", "rate"), [(5.0, 5.0), (50.0, 49.9), (1e7, 1e7 + 1e-3), (3.0, 1e-3), (1.0, 1e7)])
def test_poisson_deviance(n, rate):
    value = kernels.poisson_deviance(n, rate)
    assert reference.relative_error(value, reference.poisson_deviance(n, rate)) < 1e-14


@pytest.mark.parametrize(("r", "x"), [(1, 1.0), (5, 5.0), (5, 80.0), (40, 41.0), (100, 1e6)])
def test_sums_on_either_side_of_the_report(r, x):
    assert reference.relative_error(kernels.sum_below(r, x), reference.sum_below(r, x)) < 1e-14
    inverse = r * r / x
    assert reference.relative_error(kernels.sum_above(r, inverse), reference.sum_above(r, inverse)) < 1e-14


def test_without_a_rate_the_count_is_zero():
    assert kernels.poisson_logpmf(0, 0.0) == 0.0
    assert kernels.poisson_logpmf(3, 0.0) == -math.inf


@njit
def draw_poisson(mean, rng, draws):
    for i in range(draws.size):
        draws[i] = kernels.invert_poisson(mean, rng)


def p_value_of_draws(mean, exact_mean):
    draws = np.empty(DRAWS, dtype=np.int64)
    draw_poisson(mean, np.random.default_rng(5), draws)
    exact = np.array([float(mp.exp(reference.poisson_logpmf(y, exact_mean))) for y in range(130)])
    return reference.chi_square_p_value(draws, 0, exact)


@pytest.mark.parametrize("mean", [1e-9, 0.3, 1.0, 20.0, 47.9])
def test_inversion_draws_the_poisson_law(mean):
    assert p_value_of_draws(mean, mean) > FALSE_ALARM / 5


@pytest.mark.parametrize("mean", [0.3, 20.0])
def test_inversion_at_another_mean_is_caught(mean):
    assert p_value_of_draws(1.05 * mean, mean) < FALSE_ALARM / 5
