"""Densities that slice sampling asks for, against the same formulas written for whole arrays."""

import numpy as np
import pytest
from scipy.special import expit, gammaln

from countveil.kernels.hyperparameters import (
    dispersion_given_bursts,
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
    found = shape_given_counts(LOG_A, counts, exposures, rates, numbers, times, rates_follow)
    a = np.exp(LOG_A)[:, None]
    b = a * rates if rates_follow else rates
    expected = gammaln(a + counts) - gammaln(a) + a * np.log(b) - (a + counts) * np.log(b + exposures)
    np.testing.assert_allclose(found, expected.sum(axis=1), rtol=1e-9)


def test_a_dispersion_given_bursts():
    logits, counts, bursts = (
        np.array([-19.0, -1.0, 6.0]),
        np.array([0.0, 7.0, 90.0]),
        np.array([0.0, 4.0, 9.0]),
    )
    ratio, rate = np.array([0.0, 0.6]), np.array([[0.1, 2.0, 3.0], [0.5, 0.0, 1.0]])
    found = dispersion_given_bursts(logits, counts, bursts, ratio, rate, 1.5, 0.5)
    p = expit(logits)
    q = -np.log1p(-p)
    exposed = (1.0 + np.log1p(-p * ratio[:, None]) / q) * rate  # 1 - log(1 - p ratio) / log(1 - p)
    expected = (counts + 1.5) * np.log(p) - bursts * np.log(q) - exposed.sum(axis=0) + 0.5 * np.log1p(-p)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
