"""The masses and sizes of bursts that are proposed under two-sided geometric noise, against sums in many digits."""

import itertools

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from countveil.laws.noise.two_sided_geometric import tokens as kernels
from tests import reference
from tests.joint import FALSE_ALARM


def exact_mass(r, p, alpha):
    """c by high precision, from its definition."""
    with mp.workdps(40):
        p, alpha = mpf(p), mpf(alpha)
        head = sum((p / alpha) ** j / j for j in range(1, r + 1))
        x = p * alpha
        tail = -mpmath.log1p(-x) - sum(x**j / j for j in range(1, r + 1))
        return head + tail * alpha ** (-2 * r)


def test_masses_are_sums_over_sizes():
    levels, p = np.array([0.01, 0.3, 0.7, 0.99]), np.array([2.1e-9, 1e-3, 0.5, 0.9, 1.0 - 2.1e-9])
    found = np.empty((4, 9, 5))
    kernels.fill_masses(levels, p, found)
    for place in np.ndindex(found.shape):
        exact = exact_mass(place[1], p[place[2]], levels[place[0]])
        assert reference.relative_error(found[place], exact) < 1e-12, place


def test_high_precision_is_that_of_a_plain_sum():
    for r, p, alpha in itertools.product((0, 1, 4), (0.3, 0.95), (0.3, 0.8)):
        j = np.arange(1, 2000)
        g = np.minimum(j, 2 * r - j)
        assert float(exact_mass(r, p, alpha)) == pytest.approx((p**j / j * alpha ** -g.astype(float)).sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("r", "p", "alpha"), [(0, 0.9, 0.9), (1, 0.9, 0.3), (3, 0.99, 0.2), (5, 0.2, 0.8), (2, 1e-8, 0.3)]
)
def test_sizes_have_their_law(r, p, alpha):
    j = np.arange(1, 400)
    weights = p**j / j * alpha ** -np.minimum(j, 2.0 * r - j)
    mass = float(exact_mass(r, p, alpha))
    left = np.random.default_rng(2).random(40_000) * mass
    found = np.array([kernels.size_of(x, r, p, alpha) for x in left])
    assert reference.chi_square_p_value(found, 1, weights / weights.sum()) > FALSE_ALARM / 5
    assert kernels.size_of(1.001 * mass, r, p, alpha) < 10_000  # beyond the end, by rounding
