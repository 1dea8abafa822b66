"""One count given to its terms: their products exactly, the counts by law."""

import numpy as np
import pytest
from numba import njit
from scipy import special, stats

from countveil.kernels import allocation as kernels
from tests.joint import FALSE_ALARM


@njit
def allocate_often(count, weight_k, lane_l, total, allocated_nk, rng):
    row_count_k, count_vk = np.zeros(weight_k.size), np.zeros((1, weight_k.size))
    for n in range(allocated_nk.shape[0]):
        before = row_count_k.copy()
        kernels.allocate(count, weight_k, lane_l, total, row_count_k, count_vk, 0, rng)
        allocated_nk[n] = row_count_k - before
    return row_count_k, count_vk[0]


def allocations(count, n_topics, repeats, seed=7):
    """(shares, allocations (repeats, K)) of a count over topics of very different weights."""
    rng = np.random.default_rng(seed)
    theta, phi = rng.gamma(0.5, 1.0, (2, n_topics)) + 0.3, rng.gamma(0.5, 1.0, (4, n_topics)) + 0.3
    product_k, lane_l = np.empty(n_topics), np.empty(kernels.LANES)
    total = kernels.multiply(theta, 1, phi, 2, product_k, lane_l)
    np.testing.assert_array_equal(product_k, theta[1] * phi[2])
    assert total == pytest.approx(product_k.sum(), rel=1e-14)
    allocated = np.empty((repeats, n_topics))
    by_row, by_column = allocate_often(count, product_k, lane_l, total, allocated, rng)
    np.testing.assert_array_equal(by_row, allocated.sum(axis=0))
    np.testing.assert_array_equal(by_column, allocated.sum(axis=0))
    return product_k / total, allocated


def multinomial_p_values(allocated, count, share):
    """Chi-square p-values of the pooled proportions and of the dispersion about them."""
    repeats, n_topics = allocated.shape
    pooled = allocated.sum(axis=0)
    expected = repeats * count * share
    proportions = special.chdtrc(n_topics - 1, ((pooled - expected) ** 2 / expected).sum())
    each = ((allocated - count * share) ** 2 / (count * share)).sum(axis=1)  # mean K - 1 if multinomial
    z = (each.mean() - (n_topics - 1)) / np.sqrt(each.var(ddof=1) / repeats)
    return proportions, 2 * stats.norm.sf(abs(z))


@pytest.mark.parametrize("n_topics", [1, 2, 3, 8, 9, 20])
@pytest.mark.parametrize("count", [1, 5, 24, 25, 400])
def test_allocation_is_multinomial(count, n_topics):
    share, allocated = allocations(count, n_topics, 3000)
    np.testing.assert_array_equal(allocated.sum(axis=1), count)
    assert (allocated >= 0).all()
    if n_topics > 1:
        proportions, dispersion = multinomial_p_values(allocated, count, share)
        assert proportions > FALSE_ALARM
        if count > 1:  # one token falls into one topic, whatever the law
            assert dispersion > FALSE_ALARM


@pytest.mark.parametrize("count", [5, 400])
def test_allocation_check_sees_wrong_proportions_and_clumping(count):
    rng = np.random.default_rng(8)
    share, allocated = allocations(count, 9, 3000)
    wrong = np.roll(share, 1)
    assert multinomial_p_values(allocated, count, wrong)[0] < 1e-9
    clumped = count * rng.multinomial(1, share, size=3000)
    assert multinomial_p_values(clumped, count, share)[1] < 1e-9
