"""True counts by proposed tokens against brute force: what each cell's topics get, all cells counted, by law."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit
from scipy import stats

from countveil.data.observations import PrivatizedCounts
from countveil.kernels.uniforms import fill_uniforms, new_source
from countveil.laws.noise.two_sided_geometric import tokens as kernels
from tests.joint import FALSE_ALARM, count_weights

pytestmark = pytest.mark.long

REPEATS = 4000
UNTOUCHED = np.uint64(77)


def aliases_of(weights):
    """The tables of weights (K, V)."""
    found = np.full(weights.shape, UNTOUCHED)
    kernels.fill_aliases(np.ascontiguousarray(weights, dtype=float), found)
    return found


def law_of(table):
    """The chances that a topic's table (V,) says, added up."""
    chances = np.zeros(len(table))
    for v, word in enumerate(table):
        other, stay = divmod(int(word), 2**32)
        chances[v] += stay / 2**32
        chances[other] += 1.0 - stay / 2**32
    return chances / len(table)


@pytest.mark.parametrize("n_columns", [1, 2, 3, 10, 1000])
def test_tables_hold_the_weights(n_columns):
    rng = np.random.default_rng(n_columns)
    weights = rng.gamma(0.05, 1.0, (4, n_columns))
    weights[1, : n_columns // 2] = 0.0
    weights[2] = 3.0
    for table, weight in zip(aliases_of(weights), weights, strict=True):
        # A chance is rounded by half of 2^-32, and a column may be the other one of all.
        np.testing.assert_allclose(law_of(table), weight / weight.sum(), rtol=1e-9, atol=2.0**-33)
        assert np.abs(law_of(table) - weight / weight.sum()).sum() < 2.0**-32
        assert (law_of(table)[weight == 0.0] == 0.0).all()


def test_a_topic_without_weight_gets_no_table():
    assert (aliases_of(np.zeros((1, 3))) == UNTOUCHED).all()


@njit(cache=True)
def poisson_numbers(rate, n, rng):
    found = np.empty(n, dtype=np.int64)
    for i in range(n):
        found[i] = kernels.poisson(rate, rng.random(), rng)
    return found


@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.3, 5.0, 12.0, 13.0, 400.0])
def test_poisson_numbers(rate):
    rng, n = np.random.default_rng(3), 40_000
    drawn = poisson_numbers(rate, n, rng)
    edges = np.unique(stats.poisson.ppf([0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98], rate))
    observed = np.array([(drawn <= edge).sum() for edge in edges] + [n])
    expected = n * np.append(stats.poisson.cdf(edges, rate), 1.0)
    chi = [
        (a - b) ** 2 / b
        for a, b in zip(np.diff(observed, prepend=0), np.diff(expected, prepend=0), strict=True)
        if b > 0
    ]
    assert sum(chi) < stats.chi2.isf(FALSE_ALARM, len(edges))


def rows_drawn(report, theta, phi, alpha, kernel, repeats=REPEATS, seed=1):
    """Counts by topic (repeats, K) of a row (or, with many reports, a document) drawn again and again."""
    reports = np.tile(np.atleast_1d(report), (repeats, 1))
    observations = PrivatizedCounts(sp.csr_array(np.maximum(reports, 0)), alpha)
    factors = np.tile(theta, (repeats, 1)), np.ascontiguousarray(phi)
    row_counts, counts = np.zeros_like(factors[0]), np.zeros_like(factors[1])
    block, total, rng = observations.block(slice(0, repeats)), phi.sum(axis=0), np.random.default_rng(seed)
    if kernel == "all":
        kernels.propose_rows(block, *factors, total, aliases_of(phi.T), row_counts, counts, rng)
    else:
        kernels.propose_rest(block, factors[0], total, aliases_of(phi.T), row_counts, counts, rng)
    np.testing.assert_array_equal(row_counts.sum(axis=0), counts.sum(axis=0))
    return row_counts, counts


def topic_law(report, theta, phi, alpha, most=60):
    """P(y_1, y_2) of one cell's counts by topic, a table (most, most), by enumeration."""
    weights = count_weights(np.array(max(report, 0)), np.array(theta @ phi[0]), np.array(alpha))
    weights /= weights.sum()
    first, second = np.indices((most, most))
    share = theta[0] * phi[0, 0] / (theta @ phi[0])
    return weights[first + second] * stats.binom.pmf(first, first + second, share)


def chi_square_p(table, drawn, least=8.0):
    """P-value of pairs of counts (n, 2) against their law; rare pairs pooled."""
    found = np.zeros_like(table)
    np.add.at(found, tuple(np.minimum(drawn.astype(int), len(table) - 1).T), 1.0)
    expected = table * len(drawn)
    common = expected >= least
    observed, law = (np.append(x[common], x[~common].sum()) for x in (found, expected))
    return stats.chi2.sf(((observed - law) ** 2 / np.maximum(law, 1e-9)).sum(), common.sum())


@pytest.mark.parametrize("alpha", [0.05, 0.4, 0.9])
@pytest.mark.parametrize("rate", [0.01, 0.7, 6.0])
@pytest.mark.parametrize("report", [-2, 0, 1, 2, 7])
def test_what_the_topics_of_a_cell_get(report, rate, alpha):
    theta, phi = np.array([0.3, 1.2]), np.array([[0.8, 0.5]])
    phi *= rate / (theta @ phi[0])
    drawn, _ = rows_drawn(report, theta, phi, alpha, "all", repeats=20_000)
    assert chi_square_p(topic_law(report, theta, phi, alpha), drawn) > FALSE_ALARM / 45
    rest, _ = rows_drawn(report, theta, phi, alpha, "rest", repeats=20_000)
    if report > 0:
        assert not rest.any()
    else:
        assert chi_square_p(topic_law(report, theta, phi, alpha), rest) > FALSE_ALARM / 45


@pytest.mark.parametrize("kernel", ["all", "rest"])
@pytest.mark.parametrize("alpha", [0.1, 0.6])
def test_expected_counts_of_each_word_and_topic(alpha, kernel):
    rng = np.random.default_rng(5)
    report = rng.integers(-3, 4, 300)
    report[:5] = [40, 3, 0, 1, 90]
    theta, phi = rng.gamma(0.8, 1.0, 6), rng.gamma(0.3, 1.0, (300, 6))
    phi[:5] *= 20.0
    phi[7] = 0.0
    mu = phi @ theta
    weights = count_weights(np.maximum(report, 0), mu, np.full(300, alpha))
    weights /= weights.sum(axis=1, keepdims=True)
    y = np.arange(weights.shape[1])
    mean, square = weights @ y, weights @ y**2
    share = phi * theta / np.maximum(mu, 1e-300)[:, None]
    drawn = (report <= 0) | (kernel == "all")
    expected = (mean * drawn)[:, None] * share
    variance = drawn[:, None] * (mean[:, None] * share * (1 - share) + (square - mean**2)[:, None] * share**2)
    _, counts = rows_drawn(report, theta, phi, alpha, kernel)
    often = expected * REPEATS > 25.0  # rare pairs are not normal
    z = (counts / REPEATS - expected)[often] / np.sqrt(variance[often] / REPEATS)
    assert z.size > 200
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)
    assert not counts[7].any()


@pytest.mark.parametrize("report", [2**31 - 1, 2**31, 2**32 + 1])
def test_reports_beyond_32_bits_allow_all_their_tokens(report):
    """The true count is Poisson(rate / alpha) where it cannot reach the report."""
    rate, alpha = 1.5, 0.5
    drawn, _ = rows_drawn(report, np.array([1.0]), np.array([[rate]]), alpha, "all", repeats=20_000)
    law = stats.poisson.pmf(np.arange(60), rate / alpha)[:, None]
    assert chi_square_p(law, np.column_stack([drawn, np.zeros(len(drawn))])) > FALSE_ALARM


def test_rows_of_a_block_are_as_different_as_they_like():
    """More than are proposed for at once, each with a level, rates and reports of its own."""
    rng, n, columns, repeats = np.random.default_rng(6), 2 * kernels.ROWS_AT_ONCE + 88, 5, 400
    alpha = rng.choice([0.05, 0.4, 0.9], n)
    theta = rng.gamma(0.5, 1.0, (n, 3)) * rng.choice([0.1, 1.0, 5.0], (n, 1))
    theta[[5, kernels.ROWS_AT_ONCE]] = 0.0
    phi, report = rng.gamma(0.5, 1.0, (columns, 3)), np.maximum(rng.integers(-3, 7, (n, columns)), 0)
    block = PrivatizedCounts(sp.csr_array(report), alpha).block(slice(0, n))
    found, tables = np.zeros((repeats, n, 3)), aliases_of(phi.T)
    for each in found:
        kernels.propose_rows(block, theta, phi, phi.sum(axis=0), tables, each, np.zeros_like(phi), rng)
    mu = theta @ phi.T
    weights = count_weights(report, mu, alpha[:, None])
    weights /= weights.sum(axis=-1, keepdims=True)
    y = np.arange(weights.shape[-1])
    mean, square = weights @ y, weights @ y**2
    share = theta[:, None] * phi / np.maximum(mu, 1e-300)[:, :, None]
    expected = (mean[:, :, None] * share).sum(axis=1)
    spread = mean[:, :, None] * share * (1.0 - share) + (square - mean**2)[:, :, None] * share**2
    often = expected * repeats > 25.0
    z = (found.mean(axis=0) - expected)[often] / np.sqrt(spread.sum(axis=1)[often] / repeats)
    assert z.size > n
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)
    assert not found[:, theta == 0.0].any()


def test_whether_a_cell_keeps_its_tokens_has_nothing_to_do_with_where_others_fell():
    """The cell before the one with a report has tokens that stay by chance, too."""
    n, rate, alpha = 200_000, 1.0, 0.5
    _, counts = rows_drawn([0, 1], np.array([rate]), np.ones((2, 1)), alpha, "all", repeats=n)
    weights = count_weights(np.array([0, 1]), np.full(2, rate), np.full(2, alpha))
    weights /= weights.sum(axis=1, keepdims=True)
    y = np.arange(weights.shape[1])
    mean, square = weights @ y, weights @ y**2
    z = (counts[:, 0] / n - mean) / np.sqrt((square - mean**2) / n)
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 4)


def test_more_cells_are_drawn_anew_than_fit_a_batch():
    columns = 700
    theta, phi = np.array([1.0, 0.5]), np.full((columns, 2), 2.0)
    report = np.ones(columns, dtype=int)
    _, counts = rows_drawn(report, theta, phi, 0.2, "all", repeats=300)
    weights = count_weights(np.array(1), np.array(3.0), np.array(0.2))
    mean = weights @ np.arange(weights.size) / weights.sum()
    square = weights @ np.arange(weights.size) ** 2 / weights.sum()
    z = (counts.sum() / 300 / columns - mean) / np.sqrt((square - mean**2) / 300 / columns)
    assert abs(z) < stats.norm.isf(FALSE_ALARM / 2)


@pytest.mark.parametrize("kernel", ["all", "rest"])
def test_each_row_has_a_level_of_its_own(kernel):
    rows = 4000
    theta, phi = np.ones((2 * rows, 1)), np.ones((1, 1))
    alpha = np.repeat([0.2, 0.8], rows)
    observations = PrivatizedCounts(np.zeros((2 * rows, 1), dtype=int), alpha)
    counts, total = np.zeros_like(theta), np.zeros_like(phi)
    block, tables, rng = observations.block(slice(0, 2 * rows)), aliases_of(phi.T), np.random.default_rng(8)
    if kernel == "all":
        kernels.propose_rows(block, theta, phi, np.ones(1), tables, counts, total, rng)
    else:
        kernels.propose_rest(block, theta, np.ones(1), tables, counts, total, rng)
    for level, part in ((0.2, counts[:rows]), (0.8, counts[rows:])):
        assert abs(part.mean() - level) < 4.5 * np.sqrt(level / rows)


def test_tokens_of_a_topic_come_in_several_portions():
    theta, phi = np.array([5000.0]), np.array([[1.0], [3.0]])
    drawn, counts = rows_drawn([0, 0], theta, phi, 0.5, "rest", repeats=50)
    assert drawn.mean() > 5 * kernels.TOKENS_AT_ONCE
    expected = 5000.0 * 0.5 * phi[:, 0] * 50
    assert (np.abs(counts[:, 0] - expected) < 5.0 * np.sqrt(expected)).all()


def test_columns_are_reached_by_uniforms_near_one():
    tables = aliases_of(np.array([[1.0, 2.0, 4.0]]))
    assert kernels.column_of(np.nextafter(1.0, 0.0), 0, tables) in (0, 1, 2)
    never = aliases_of(np.array([[1.0, 0.0, 1.0, 1.0]]))
    found = [kernels.column_of((v + part) / 4.0, 0, never) for v in range(4) for part in (0.0, 1.0 - 1e-15)]
    assert 1 not in found
    uniforms = np.empty(30_000)
    fill_uniforms(new_source(np.random.default_rng(9)), uniforms.size, uniforms)
    found = np.bincount([int(kernels.column_of(u, 0, tables)) for u in uniforms], minlength=3)
    assert stats.chisquare(found, np.array([1.0, 2.0, 4.0]) / 7 * uniforms.size).pvalue > FALSE_ALARM


def test_tokens_that_a_cell_lacks_go_to_topics_in_proportion():
    theta, phi = np.array([[1.0], [0.3]]) * np.arange(1.0, 7.0), np.ones((3, 6))
    phi[2] = [0.5, 0.0, 2.0, 1.0, 0.1, 0.0]
    weight, n = theta[1] * phi[2], 20_000
    by_row, by_column = np.zeros((2, 6)), np.zeros((3, 6))
    for part in np.random.default_rng(10).random(n):
        kernels.give((theta, 1, phi), 2, part * weight.sum(), (by_row, by_column))
    np.testing.assert_array_equal(by_row[1], by_column[2])
    assert by_row.sum() == by_column.sum() == by_row[1].sum() == n
    some = weight > 0.0
    assert not by_row[1, ~some].any()
    assert stats.chisquare(by_row[1, some], n * weight[some] / weight.sum()).pvalue > FALSE_ALARM
    kernels.give((theta, 1, phi), 2, 2.0 * weight.sum(), (by_row, by_column))  # beyond the end, by rounding
    assert not by_row[1, ~some].any()
