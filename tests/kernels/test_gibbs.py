"""The compiled sweeps against dense arrays and brute force: exposures exactly, counts and gammas by law."""

import numpy as np
import pytest
from scipy import special, stats

from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.inference.factors import row_blocks
from countveil.kernels import gibbs as kernels
from countveil.kernels.scoring import log_likelihood_rows
from tests.joint import (
    FALSE_ALARM,
    LAW,
    LAWS,
    count_moments,
    dense_exposures,
    draw_reports,
    exposures_of,
    truncated_logpmf,
)
from tests.plain import PLAIN, repeated

SHAPE, ROWS, COLUMNS = 0.7, 7, 5
RATE = np.array([0.8, 1.3, 0.5])
SHAPE_DK = SHAPE * np.array([1.0, 0.6, 2.0, 1.0, 1.4, 0.8, 1.0])[:, None] * np.array([1.0, 1.5, 0.7])
RATE_DK = RATE * np.array([1.0, 0.2, 5.0, 1.0, 0.7, 2.0, 1.0])[:, None]


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


def sweep(observations, theta, phi, rng, shape=SHAPE, rate=RATE, dense=False, law=LAW):
    """One sweep over all rows from this state: (new theta, counts, exposures, totals)."""
    theta = theta.copy()
    prior = (np.broadcast_to(x, theta.shape) for x in (shape, np.asarray(rate)[..., : phi.shape[1]]))
    sums = np.zeros_like(phi), np.zeros_like(phi), np.zeros((2, phi.shape[1])), np.empty(0)
    rows = slice(0, observations.shape[0])
    kernels.sweep_rows(law, observations.block(rows), theta, phi, phi.sum(axis=0), *prior, sums, dense, rng)
    return theta, *sums[:3]


def allocated(observations, theta, phi, rng, law=LAW):
    """Counts of one allocation over all rows, by row and by column."""
    sums, rows = (np.zeros_like(theta), np.zeros_like(phi), np.empty(0)), slice(0, observations.shape[0])
    kernels.allocate_rows(law, observations.block(rows), theta, phi, phi.sum(axis=0), sums, rng)
    return sums[:2]


@pytest.mark.long
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("alpha_kind", ["scalar", "row", "cell"])
def test_exposure_sums_equal_the_dense_ones(alpha_kind, masked, dense):
    theta, phi, _, alpha, reports, mask, observations = scene(alpha_kind, masked)
    new, _, exposure_vk, totals = sweep(observations, theta, phi, np.random.default_rng(0), dense=dense)
    exposures = dense_exposures(reports, alpha, mask)
    np.testing.assert_allclose(exposure_vk + totals[0], exposures.T @ new, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(totals[1], new.sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize(("rows", "columns"), [(150, 40), (20, 700), (12, 9000)])
def test_matrix_products_change_nothing_but_rounding(rows, columns):
    rng = np.random.default_rng(18)
    theta, phi = rng.gamma(0.3, 1.0, (rows, 6)), rng.gamma(0.3, 1.0, (columns, 6))
    reports = draw_reports(theta @ phi.T, np.full((rows, columns), 0.4), rng)
    observations = PrivatizedCounts(reports, 0.4, rng.random((rows, columns)) < 0.1)
    rate = np.ones(6)
    one = sweep(observations, theta, phi, np.random.default_rng(19), rate=rate)
    two = sweep(observations, theta, phi, np.random.default_rng(19), rate=rate, dense=True)
    np.testing.assert_array_equal(one[1], two[1])
    for by_entry, by_product in zip(one, two, strict=True):
        np.testing.assert_allclose(by_product, by_entry, rtol=1e-10, atol=1e-10)


def count_laws(theta, phi, mu, alpha, reports, mask):
    """(mean, variance) of the count that falls to each cell's components, (D, V, K)."""
    mean_y, variance_y = count_moments(np.maximum(reports, 1), mu, alpha)
    share = theta[:, None, :] * phi[None] / mu[..., None]
    counted = ((reports > 0) if mask is None else (reports > 0) & ~mask)[..., None]
    mean = counted * mean_y[..., None] * share
    variance = counted * (mean_y[..., None] * share * (1 - share) + variance_y[..., None] * share**2)
    return mean, variance


def largest_z(found, mean, variance, repeats):
    """Of means over independent repeats, and the most that chance allows."""
    z = (found - mean) / np.sqrt(np.maximum(variance, 1e-300) / repeats)
    return np.abs(z).max(), stats.norm.isf(FALSE_ALARM / 2 / z.size)


@pytest.mark.long
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("alpha_kind", ["scalar", "row", "cell"])
def test_expected_counts_of_each_word_and_topic(alpha_kind, masked):
    theta, phi, *rest, observations = scene(alpha_kind, masked)
    rng, sweeps = np.random.default_rng(2), repeated(4000)
    found = np.mean([sweep(observations, theta, phi, rng)[1] for _ in range(sweeps)], axis=0)
    mean, variance = count_laws(theta, phi, *rest)
    z, most = largest_z(found, mean.sum(axis=0), variance.sum(axis=0), sweeps)
    assert z < most


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("alpha_kind", ["scalar", "row", "cell"])
def test_expected_counts_where_rows_wait_for_their_factors(alpha_kind, masked):
    theta, phi, *rest, observations = scene(alpha_kind, masked)
    rng, repeats = np.random.default_rng(12), repeated(4000)
    drawn = [allocated(observations, theta, phi, rng) for _ in range(repeats)]
    mean, variance = count_laws(theta, phi, *rest)
    for side, axis in ((0, 1), (1, 0)):
        found = np.mean([counts[side] for counts in drawn], axis=0)
        z, most = largest_z(found, mean.sum(axis=axis), variance.sum(axis=axis), repeats)
        assert z < most
        wrong = largest_z(found, 1.1 * mean.sum(axis=axis), variance.sum(axis=axis), repeats)[0]
        assert wrong > most or PLAIN


@pytest.mark.long
@pytest.mark.parametrize("alpha_kind", ["row", "cell"])
def test_any_law_draws_its_own_counts(alpha_kind):
    """The general law of the same noise and counts: another way to draw them, the same means."""
    theta, phi, *rest, observations = scene(alpha_kind, masked=True)
    rng, repeats, general = np.random.default_rng(20), repeated(3000), LAWS["general"]
    mean, variance = count_laws(theta, phi, *rest)
    swept = np.mean([sweep(observations, theta, phi, rng, law=general)[1] for _ in range(repeats)], axis=0)
    drawn = np.mean([allocated(observations, theta, phi, rng, general)[1] for _ in range(repeats)], axis=0)
    for found in (swept, drawn):
        z, most = largest_z(found, mean.sum(axis=0), variance.sum(axis=0), repeats)
        assert z < most
    new, _, exposure_vk, totals = sweep(observations, theta, phi, rng, law=general)
    _, alpha, reports, mask = rest
    exposures = dense_exposures(reports, alpha, mask)
    np.testing.assert_allclose(exposure_vk + totals[0], exposures.T @ new, rtol=1e-12, atol=1e-12)


def test_counts_of_rows_and_of_columns_are_the_same_counts_added_up():
    theta, phi, _, _, reports, mask, observations = scene("row", masked=True)
    by_row, by_column = allocated(observations, theta, phi, np.random.default_rng(13))
    np.testing.assert_array_equal(by_row.sum(axis=0), by_column.sum(axis=0))
    counts = np.abs(reports)
    exact = ExactCounts(counts, mask)
    by_row, by_column = allocated(exact, theta, phi, np.random.default_rng(13))
    np.testing.assert_array_equal(by_row.sum(axis=1), np.where(mask, 0, counts).sum(axis=1))
    np.testing.assert_array_equal(by_column.sum(axis=1), np.where(mask, 0, counts).sum(axis=0))


def test_allocation_of_a_single_row_is_the_sweeps_to_the_bit():
    for d in range(ROWS):
        theta, phi, _, _, _, _, observations = scene("cell", masked=True)
        row = observations.take(np.array([d]))
        by_row, by_column = allocated(row, theta[[d]], phi, np.random.default_rng(14))
        swept = sweep(row, theta[[d]], phi, np.random.default_rng(14))[1]
        np.testing.assert_array_equal(by_column, swept)
        np.testing.assert_array_equal(by_row[0], swept.sum(axis=0))


def test_every_row_factor_has_a_prior_of_its_own():
    theta, phi, _, alpha, reports, mask, observations = scene("row", masked=True)
    rng, u = np.random.default_rng(15), []
    exposures = dense_exposures(reports, alpha, mask)
    for d in range(ROWS):
        row = observations.take(np.array([d]))
        rate = RATE_DK[d] + exposures[d] @ phi
        for _ in range(400):
            new, counts, _, _ = sweep(row, theta[[d]], phi, rng, SHAPE_DK[d], RATE_DK[d])
            u.append(special.gammainc(SHAPE_DK[d] + counts.sum(axis=0), rate * new[0]))
    assert stats.kstest(np.ravel(u), "uniform").pvalue > FALSE_ALARM
    whole = sweep(observations, theta, phi, np.random.default_rng(16), SHAPE_DK, RATE_DK)[0]
    alone = sweep(observations.take(np.array([0])), theta[:1], phi, np.random.default_rng(16), SHAPE_DK[0], RATE_DK[0])
    np.testing.assert_array_equal(whole[0], alone[0][0])


@pytest.mark.parametrize("report", [3, -2, 40])
def test_row_factors_given_their_counts_are_gamma(report):
    rng = np.random.default_rng(3)
    phi, alpha = rng.gamma(1.0, 1.0, (3, 3)), 0.6
    theta = rng.gamma(1.0, 1.0, (1, 3))
    observations = PrivatizedCounts([[report, 0, 5]], alpha)
    rate = RATE + dense_exposures(np.array([report, 0, 5]), np.full(3, alpha)) @ phi
    u = []
    for _ in range(repeated(3000)):
        new, count_vk, _, _ = sweep(observations, theta, phi, rng)
        u.append(special.gammainc(SHAPE + count_vk.sum(axis=0), rate * new[0]))
    for k in range(3):
        assert stats.kstest(np.array(u)[:, k], "uniform").pvalue > FALSE_ALARM / 3


def test_row_factors_of_exact_counts_have_the_conjugate_posterior():
    counts = np.array([[4, 0, 30], [0, 0, 0], [1, 1, 0]])
    phi, rng = np.array([[0.5], [1.0], [2.5]]), np.random.default_rng(4)
    draws = np.array([sweep(ExactCounts(counts), np.ones((3, 1)), phi, rng)[0][:, 0] for _ in range(repeated(3000))])
    for d in range(3):
        posterior = stats.gamma(SHAPE + counts[d].sum(), scale=1.0 / (RATE[0] + phi.sum()))
        assert stats.kstest(draws[:, d], posterior.cdf).pvalue > FALSE_ALARM / 3


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("alpha_kind", ["scalar", "row", "cell"])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_log_likelihood_equals_brute_force(law, dense, alpha_kind, masked):
    theta, phi, mu, alpha, reports, mask, observations = scene(alpha_kind, masked)
    cells = truncated_logpmf(reports, mu, alpha)
    expected = cells.sum() if mask is None else cells[~mask].sum()
    for size in (ROWS, 3):
        found = sum(
            log_likelihood_rows(law, observations.block(rows), theta[rows], phi, phi.sum(axis=0), dense)
            for rows in row_blocks(ROWS, size)
        )
        assert found == pytest.approx(expected, rel=1e-12)


def test_alpha_per_row_written_out_per_cell_changes_nothing_but_rounding():
    theta, phi, _, alpha, reports, mask, by_row = scene("row", masked=True)
    jittered = alpha.copy()
    jittered[0, 0] = np.nextafter(alpha[0, 0], 1.0)  # so that it is not recognised as constant in rows
    by_cell = PrivatizedCounts(reports, jittered, mask)
    assert by_cell.level_e.size == reports.size
    np.testing.assert_allclose(exposures_of(by_cell), exposures_of(by_row), rtol=1e-12)
    one = sweep(by_row, theta, phi, np.random.default_rng(10))
    two = sweep(by_cell, theta, phi, np.random.default_rng(10))
    np.testing.assert_array_equal(one[1], two[1])
    np.testing.assert_allclose(one[0], two[0], rtol=1e-9)


@pytest.mark.long
def test_reports_beyond_32_bits_keep_their_size():
    counts = np.array([[2**40, 1]])
    theta, phi = np.array([[2.0**30]]), np.array([[2.0**10], [1e-9]])
    new, count_vk, _, _ = sweep(ExactCounts(counts), theta, phi, np.random.default_rng(11), rate=np.ones(1))
    assert count_vk[:, 0].tolist() == [2.0**40, 1.0]
    assert new[0, 0] * phi.sum() == pytest.approx(2.0**40, rel=0.02)
