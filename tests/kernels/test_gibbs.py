"""The compiled sweeps against dense arrays and brute force: exposures exactly, counts and gammas by law."""

import numpy as np
import pytest
from numba import njit
from scipy import special, stats

from countveil.inference.gibbs import row_blocks
from countveil.kernels import gibbs as kernels
from countveil.observations import ExactCounts, PrivatizedCounts
from tests.joint import (
    FALSE_ALARM,
    count_moments,
    dense_exposures,
    draw_reports,
    exposures_of,
    truncated_logpmf,
)

SHAPE, ROWS, COLUMNS = 0.7, 7, 5
RATE = np.array([0.8, 1.3, 0.5])


def scene(alpha_kind, masked=False, seed=1, n_topics=3):
    """Reports of every sort, factors, and the pieces a dense version needs."""
    rng = np.random.default_rng(seed)
    theta = rng.gamma(1.0, 1.5, (ROWS, n_topics))
    phi = rng.gamma(1.0, 1.0, (COLUMNS, n_topics))
    per_row = np.array([0.5, 0.3, 0.0, 0.8, 0.5, 0.6, 0.1])
    alpha = {
        "scalar": np.full((ROWS, COLUMNS), 0.6),
        "row": np.repeat(per_row[:, None], COLUMNS, axis=1),
        "cell": rng.uniform(0.0, 0.9, (ROWS, COLUMNS)),
    }[alpha_kind]
    given = {"scalar": 0.6, "row": per_row, "cell": alpha}[alpha_kind]
    mu = theta @ phi.T
    reports = draw_reports(mu, alpha, rng)
    reports[4] = np.minimum(reports[4], 0)  # a row without a positive report
    mask = rng.random((ROWS, COLUMNS)) < 0.2 if masked else None
    return theta, phi, mu, alpha, reports, mask, PrivatizedCounts(reports, given, mask)


def sweep(observations, theta, phi, rng, shape=SHAPE, rate=RATE):
    """One sweep over all rows from this state: (new theta, counts, exposures, totals)."""
    theta = theta.copy()
    sums = np.zeros_like(phi), np.zeros_like(phi), np.zeros((2, phi.shape[1]))
    rows = slice(0, observations.shape[0])
    kernels.sweep_rows(
        observations.block(rows), theta, phi, phi.sum(axis=0), shape, rate[: phi.shape[1]], *sums, rng
    )
    return theta, *sums


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("alpha_kind", ["scalar", "row", "cell"])
def test_exposure_sums_equal_the_dense_ones(alpha_kind, masked):
    theta, phi, _, alpha, reports, mask, observations = scene(alpha_kind, masked)
    new, _, exposure_vk, totals = sweep(observations, theta, phi, np.random.default_rng(0))
    exposures = dense_exposures(reports, alpha, mask)
    np.testing.assert_allclose(exposure_vk + totals[0], exposures.T @ new, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(totals[1], new.sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("alpha_kind", ["scalar", "row", "cell"])
def test_expected_counts_of_each_word_and_topic(alpha_kind, masked):
    theta, phi, mu, alpha, reports, mask, observations = scene(alpha_kind, masked)
    rng, sweeps = np.random.default_rng(2), 4000
    mean = np.mean([sweep(observations, theta, phi, rng)[1] for _ in range(sweeps)], axis=0)
    mean_y, variance_y = count_moments(np.maximum(reports, 1), mu, alpha)
    share = theta[:, None, :] * phi[None] / mu[..., None]
    counted = ((reports > 0) if mask is None else (reports > 0) & ~mask)[..., None]
    expected = (counted * mean_y[..., None] * share).sum(axis=0)
    variance = (counted * (mean_y[..., None] * share * (1 - share) + variance_y[..., None] * share**2)).sum(
        axis=0
    )
    z = (mean - expected) / np.sqrt(np.maximum(variance, 1e-300) / sweeps)
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)


@pytest.mark.parametrize("report", [3, -2, 40])
def test_row_factors_given_their_counts_are_gamma(report):
    rng = np.random.default_rng(3)
    phi, alpha = rng.gamma(1.0, 1.0, (3, 3)), 0.6
    theta = rng.gamma(1.0, 1.0, (1, 3))
    observations = PrivatizedCounts([[report, 0, 5]], alpha)
    rate = RATE + dense_exposures(np.array([report, 0, 5]), np.full(3, alpha)) @ phi
    u = []
    for _ in range(3000):
        new, count_vk, _, _ = sweep(observations, theta, phi, rng)
        u.append(special.gammainc(SHAPE + count_vk.sum(axis=0), rate * new[0]))
    for k in range(3):
        assert stats.kstest(np.array(u)[:, k], "uniform").pvalue > FALSE_ALARM / 3


def test_row_factors_of_exact_counts_have_the_conjugate_posterior():
    counts = np.array([[4, 0, 30], [0, 0, 0], [1, 1, 0]])
    phi, rng = np.array([[0.5], [1.0], [2.5]]), np.random.default_rng(4)
    draws = np.array([sweep(ExactCounts(counts), np.ones((3, 1)), phi, rng)[0][:, 0] for _ in range(3000)])
    for d in range(3):
        posterior = stats.gamma(SHAPE + counts[d].sum(), scale=1.0 / (RATE[0] + phi.sum()))
        assert stats.kstest(draws[:, d], posterior.cdf).pvalue > FALSE_ALARM / 3


def test_column_factors_given_counts_are_gamma():
    rng = np.random.default_rng(5)
    count_vk, exposure_vk = np.array([[0.0, 3.0, 40.0], [1.0, 0.0, 7.0]]), rng.normal(0.0, 0.2, (2, 3))
    exposure_k, prior_scale = np.array([2.0, 1.0, 5.0]), np.array([0.01, 3.0])
    draws = np.empty((3000, 2, 3))
    for phi in draws:
        kernels.sweep_columns(phi, count_vk, exposure_vk, exposure_k, prior_scale, SHAPE, RATE, rng)
    law = stats.gamma(SHAPE + count_vk, scale=1.0 / (prior_scale[:, None] * RATE + exposure_k + exposure_vk))
    u = law.cdf(draws).reshape(-1, 6)
    assert all(stats.kstest(column, "uniform").pvalue > FALSE_ALARM / 6 for column in u.T)


def test_gamma_draws_of_tiny_shape_never_reach_zero():
    rng = np.random.default_rng(6)
    phi = np.empty((2000, 3))
    zeros = np.zeros((2000, 3))
    kernels.sweep_columns(phi, zeros, zeros, np.zeros(3), np.ones(len(phi)), 1e-3, RATE, rng)
    assert phi.min() == kernels.SMALLEST
    assert (phi**2).min() > 0.0


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
    product_k, lane_l, exposure_k = np.empty(n_topics), np.empty(kernels.LANES), np.ones(n_topics)
    total = kernels.multiply_and_add(theta, 1, phi, 2, -0.5, product_k, lane_l, exposure_k)
    np.testing.assert_array_equal(product_k, theta[1] * phi[2])
    np.testing.assert_allclose(exposure_k, 1.0 - 0.5 * phi[2], rtol=1e-15)
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


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("alpha_kind", ["scalar", "row", "cell"])
def test_log_likelihood_equals_brute_force(alpha_kind, masked):
    theta, phi, mu, alpha, reports, mask, observations = scene(alpha_kind, masked)
    cells = truncated_logpmf(reports, mu, alpha)
    expected = cells.sum() if mask is None else cells[~mask].sum()
    for size in (ROWS, 3):
        found = sum(
            kernels.log_likelihood_rows(observations.block(rows), theta[rows], phi, phi.sum(axis=0))
            for rows in row_blocks(ROWS, size)
        )
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("alpha_kind", ["scalar", "cell"])
def test_signed_and_truncated_reports_give_the_same_bits(alpha_kind):
    theta, phi, _, alpha, reports, mask, signed = scene(alpha_kind, masked=True)
    assert reports.min() < 0
    truncated = PrivatizedCounts(np.maximum(reports, 0), alpha, mask)
    one = sweep(signed, theta, phi, np.random.default_rng(9))
    two = sweep(truncated, theta, phi, np.random.default_rng(9))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_alpha_per_row_written_out_per_cell_changes_nothing_but_rounding():
    theta, phi, _, alpha, reports, mask, by_row = scene("row", masked=True)
    jittered = alpha.copy()
    jittered[0, 0] = np.nextafter(alpha[0, 0], 1.0)  # so that it is not recognised as constant in rows
    by_cell = PrivatizedCounts(reports, jittered, mask)
    assert by_cell.alpha_e.size == reports.size
    np.testing.assert_allclose(exposures_of(by_cell), exposures_of(by_row), rtol=1e-12)
    one = sweep(by_row, theta, phi, np.random.default_rng(10))
    two = sweep(by_cell, theta, phi, np.random.default_rng(10))
    np.testing.assert_array_equal(one[1], two[1])
    np.testing.assert_allclose(one[0], two[0], rtol=1e-9)


def test_reports_beyond_32_bits_keep_their_size():
    counts = np.array([[2**40, 1]])
    theta, phi = np.array([[2.0**30]]), np.array([[2.0**10], [1e-9]])
    new, count_vk, _, _ = sweep(ExactCounts(counts), theta, phi, np.random.default_rng(11), rate=np.ones(1))
    assert count_vk[:, 0].tolist() == [2.0**40, 1.0]
    assert new[0, 0] * phi.sum() == pytest.approx(2.0**40, rel=0.02)
