"""Densities that slice sampling asks for, against the same formulas written for whole arrays."""

import numpy as np
import pytest
from scipy import special, stats
from scipy.special import expit, gammaln

from countveil.kernels.hyperparameters import (
    LARGEST_SHARE,
    dispersion_given_bursts,
    look_at_shapes,
    shape_given_counts,
    shape_given_entries,
)

LOG_A = np.log([1e-4, 0.03, 1.0, 2.5, 1e3])


@pytest.mark.parametrize("mean", [np.nan, 0.7])
def test_a_shape_given_entries(mean):
    sizes, totals, added = np.array([3.0, 4.0]), np.array([1.5, 0.2]), np.array([0.0, 0.5])
    found = shape_given_entries(LOG_A, sizes, totals, added, -6.0, 1.3, 2.0, mean)
    a = np.exp(LOG_A)
    expected = a * -6.0 - 7.0 * gammaln(a) - 2.0 * LOG_A
    if np.isnan(mean):
        expected += a * 1.3
    else:
        powers = 1.0 + a[:, None] * sizes + added
        of_rates = gammaln(powers) - powers * np.log(totals + mean / a[:, None])
        expected += of_rates.sum(axis=1) - 2.0 * LOG_A
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("rates_follow", [False, True])
def test_a_shape_given_counts(rates_follow):
    counts, exposures = np.array([0.0, 3.0, 0.0, 1.0, 3.0]), np.array([0.4, 1.0, 0.0, 2.0, 5.0])
    rates = np.array([0.1, 2.0, 1.0, 0.3, 0.7])
    numbers, times = np.unique(counts[counts > 0.0], return_counts=True)
    found = shape_given_counts(LOG_A, counts, exposures / rates, numbers, times, rates_follow)
    a = np.exp(LOG_A)[:, None]
    b = a * rates if rates_follow else rates
    expected = gammaln(a + counts) - gammaln(a) + a * np.log(b) - (a + counts) * np.log(b + exposures)
    np.testing.assert_allclose(np.diff(found), np.diff(expected.sum(axis=1)), rtol=1e-9)


def test_a_shape_given_so_many_counts_that_a_product_would_overflow():
    rng = np.random.default_rng(1)
    counts, exposures = rng.poisson(0.5, 3000).astype(float), np.exp(rng.normal(0.0, 6.0, 3000))
    exposures[::500] = 1e200
    numbers, times = np.unique(counts[counts > 0.0], return_counts=True)
    found = shape_given_counts(LOG_A, counts, np.minimum(exposures, LARGEST_SHARE), numbers, times, True)
    a = np.exp(LOG_A)[:, None]
    expected = gammaln(a + counts) - gammaln(a) + a * np.log(a)
    expected -= (a + counts) * np.log(a + np.minimum(exposures, LARGEST_SHARE))
    np.testing.assert_allclose(np.diff(found), np.diff(expected.sum(axis=1)), rtol=1e-9)


def test_a_dispersion_given_bursts():
    logits, counts, bursts = (np.array([-19.0, -1.0, 6.0]), np.array([0.0, 7.0, 90.0]), np.array([0.0, 4.0, 9.0]))
    ratio, rate = np.array([0.0, 0.6]), np.array([[0.1, 2.0, 3.0], [0.5, 0.0, 1.0]])
    found = dispersion_given_bursts(logits, counts, bursts, ratio, rate, 1.5, 0.5)
    p = expit(logits)
    q = -np.log1p(-p)
    exposed = (1.0 + np.log1p(-p * ratio[:, None]) / q) * rate  # 1 - log(1 - p ratio) / log(1 - p)
    expected = (counts + 1.5) * np.log(p) - bursts * np.log(q) - exposed.sum(axis=0) + 0.5 * np.log1p(-p)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


COUNTS = np.array([[0.0, 1.0, 3.0, 16.0], [17.0, 60.0, 5000.0, 0.0], [2.0, 0.0, 40.0, 900.0]])
SHAPES = np.array([[0.1, 1e-3, 2.0, 0.4], [0.05, 3.0, 700.0, 9000.0], [1e-4, 2e-4, 0.9, 30.0]])
MEANS = np.array([[0.5, 4.0, 1.0, 30.0], [1e-6, 80.0, 1e4, 3.0], [0.2, 1e-9, 0.0, 50.0]])  # times exposures


def looked_at(log_shapes):
    slope, bend = np.empty_like(log_shapes), np.empty_like(log_shapes)
    return look_at_shapes(log_shapes, COUNTS, MEANS, slope, bend), slope, bend


def plain(log_shapes):
    """(3, 4) log-densities, without what does not depend on shapes."""
    a = np.exp(log_shapes)
    law = special.gammaln(a + COUNTS) - special.gammaln(a) - special.gammaln(COUNTS + 1.0)
    return law - COUNTS * log_shapes - (a + COUNTS) * np.log1p(MEANS / a)


def test_densities_are_negative_binomial():
    mass, _, _ = looked_at(np.log(SHAPES))
    np.testing.assert_allclose(mass, plain(np.log(SHAPES)).sum(axis=0), rtol=1e-9)
    seen = MEANS > 0.0
    law = stats.nbinom.logpmf(COUNTS, SHAPES, SHAPES / (SHAPES + MEANS))[seen]
    np.testing.assert_allclose(
        law, (plain(np.log(SHAPES)) + COUNTS * np.log(np.maximum(MEANS, 1e-300)))[seen], rtol=1e-8
    )


def test_slopes_and_bends_are_derivatives():
    u, h = np.log(SHAPES), 1e-3
    _, slope, bend = looked_at(u)
    far, near, size = (plain(u + h) - plain(u - h), plain(u + h / 2) - plain(u - h / 2), np.maximum(COUNTS, 1.0))
    np.testing.assert_allclose(slope, (8.0 * near - far) / (6.0 * h), rtol=1e-6, atol=1e-8 * size.max())
    (_, up, _), (_, down, _) = looked_at(u + h), looked_at(u - h)
    np.testing.assert_allclose(-bend, (up - down) / (2.0 * h), rtol=1e-4, atol=1e-6)
