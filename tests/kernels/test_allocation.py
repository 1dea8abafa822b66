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


LEFT, RIGHT = 2, 3


def scene(n_terms, batches=2, seed=1, scale=20.0):
    """(counts, left, right): cells with none, with few and with many."""
    rng = np.random.default_rng(seed)
    left, right = (rng.gamma(1.0, 1.0, (batches, LEFT, n_terms)), rng.gamma(1.0, 1.0, (batches, RIGHT, n_terms)))
    counts = rng.poisson(rng.gamma(0.5, scale, (batches, LEFT, RIGHT)))
    counts[0, 0, 0], counts[-1, -1, -1] = 0, 60
    return counts.astype(float), left + 0.1, right + 0.1


def shares(left, right):
    """(B, M, N, K) chances of each term."""
    products = left[:, :, None, :] * right[:, None, :, :]
    return products / products.sum(axis=-1, keepdims=True)


@pytest.mark.long
@pytest.mark.parametrize("n_terms", [1, 2, 9])
def test_both_operands_get_every_count_once(n_terms):
    counts, left, right = scene(n_terms)
    rng = np.random.default_rng(2)
    for _ in range(50):
        to_left, to_right = kernels.split_counts(counts, left, right, rng)
        assert min(to_left.min(), to_right.min()) >= 0.0
        np.testing.assert_array_equal(to_left.sum(axis=2), counts.sum(axis=2))
        np.testing.assert_array_equal(to_right.sum(axis=2), counts.sum(axis=1))
        np.testing.assert_array_equal(to_left.sum(axis=1), to_right.sum(axis=1))


def test_the_counts_that_come_in_stay():
    counts, left, right = scene(3)
    before = [x.copy() for x in (counts, left, right)]
    kernels.split_counts(counts, left, right, np.random.default_rng(3))
    for old, now in zip(before, (counts, left, right), strict=True):
        np.testing.assert_array_equal(old, now)


def split_of_one_cell(count, n_terms, repeats):
    """(chances, draws (repeats, K)) of a single cell among empty ones, by its left operand."""
    counts, left, right = scene(n_terms)
    counts[:] = 0.0
    counts[1, 0, 2] = count
    rng = np.random.default_rng([4, count, n_terms])
    drawn = [kernels.split_counts(counts, left, right, rng) for _ in range(repeats)]
    by_left, by_right = (np.array(part) for part in zip(*drawn, strict=True))
    np.testing.assert_array_equal(by_left[:, 1, 0], by_right[:, 1, 2])
    assert by_left.sum() == by_right.sum() == repeats * count
    return shares(left, right)[1, 0, 2], by_left[:, 1, 0]


@pytest.mark.parametrize("n_terms", [2, 5, 11])
@pytest.mark.parametrize("count", [1, 7, 300])
def test_the_split_is_multinomial(count, n_terms):
    repeats = 3000
    share, drawn = split_of_one_cell(count, n_terms, repeats)

    def p_value(chances):
        expected = repeats * count * chances
        return special.chdtrc(n_terms - 1, ((drawn.sum(axis=0) - expected) ** 2 / expected).sum())

    assert p_value(share) > FALSE_ALARM
    assert p_value(share[::-1]) < 1e-9
    each = ((drawn - count * share) ** 2 / (count * share)).sum(axis=1)  # mean K - 1 if multinomial
    if count > 1:
        z = (each.mean() - (n_terms - 1)) / np.sqrt(each.var(ddof=1) / repeats)
        assert abs(z) < stats.norm.isf(FALSE_ALARM / 2)


def test_every_cell_splits_by_its_own_shares():
    counts, left, right = scene(4)
    rng, repeats = np.random.default_rng(5), 4000
    drawn = [kernels.split_counts(counts, left, right, rng) for _ in range(repeats)]
    share = shares(left, right)
    mean, variance = counts[..., None] * share, counts[..., None] * share * (1 - share)
    for part, axis in ((0, 2), (1, 1)):
        found = np.mean([each[part] for each in drawn], axis=0)
        error = np.sqrt(np.maximum(variance.sum(axis=axis), 1e-300) / repeats)
        z = (found - mean.sum(axis=axis)) / error
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)
        wrong = (np.roll(found, 1, axis=0) - mean.sum(axis=axis)) / error
        assert np.abs(wrong).max() > stats.norm.isf(FALSE_ALARM / 2 / z.size)
