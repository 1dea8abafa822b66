"""Bursts by proposed tokens against brute force: what a cell's count and bursts are, and which topics get them."""

import itertools
import math

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from mpmath import mp, mpf
from scipy import stats

from countveil.data.observations import PrivatizedCounts
from countveil.inference import burst_tokens
from countveil.laws.counts import NegativeBinomial
from countveil.laws.counts.laws import law_of
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from countveil.laws.noise.two_sided_geometric import burst_tokens as kernels
from tests import reference
from tests.joint import FALSE_ALARM

pytestmark = pytest.mark.long

CELLS = 20_000
PRIOR = np.array([0.5]), np.array([1.0])  # of p by column


def law_at(p):
    """The law of reports with these p, one for all cells or one per column."""
    if np.ndim(p) == 0:
        return law_of(TWO_SIDED_GEOMETRIC, NegativeBinomial("global"), (np.array([p]),))
    return law_of(TWO_SIDED_GEOMETRIC, NegativeBinomial("column"), (np.asarray(p), *PRIOR))


def drawn(reports, theta, phi, alpha, p, most, kernel="all", seed=1):
    """(row counts, column counts, tally) of a draw; alpha is one number or (D, 1)."""
    reports = np.atleast_2d(reports)
    data = PrivatizedCounts(sp.csr_array(np.maximum(reports, 0)), alpha)
    levels, law, phi = np.unique(data.level_d), law_at(p), np.ascontiguousarray(phi, dtype=float)
    _, _, total, _, proposals = burst_tokens.with_proposals(map, law, phi, levels, most)
    block, place = data.block(slice(0, len(reports))), np.searchsorted(levels, data.level_d)
    sums = np.zeros(theta.shape), np.zeros(phi.shape), np.zeros(2 * np.size(p))
    rng = np.random.default_rng(seed)
    if kernel == "all":
        kernels.propose_rows(law, block, (theta, phi, total), proposals, place, sums, rng)
    else:
        kernels.propose_rest(law, block, theta, proposals, place, sums, rng)
    np.testing.assert_array_equal(sums[0].sum(axis=0), sums[1].sum(axis=0))
    return sums


def joint_law(report, rate, alpha, p, most=250, bursts=60):
    """P(count, bursts) of a cell by adding up over sizes, (most, bursts)."""
    y = np.arange(most)
    sizes = np.concatenate([[0.0], p ** y[1:] / y[1:]]) / -np.log1p(-p)
    table, sums = np.zeros((most, bursts)), np.zeros(most)
    sums[0] = 1.0
    for n in range(bursts):
        table[:, n] = sums * stats.poisson.pmf(n, rate)
        sums = np.convolve(sums, sizes)[:most]
    table *= alpha ** (np.abs(report - y) if report > 0 else y).astype(float)[:, None]
    return table / table.sum()


def chi_square_p(table, found, least=8.0):
    """P-value of pairs (n, 2) against their law; rare pairs pooled."""
    observed = np.zeros_like(table)
    np.add.at(observed, tuple(found.astype(int).T), 1.0)
    expected = table * len(found)
    common = expected >= least
    seen, law = (np.append(x[common], x[~common].sum()) for x in (observed, expected))
    return stats.chi2.sf(((seen - law) ** 2 / np.maximum(law, 1e-9)).sum(), common.sum())


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
        assert float(exact_mass(r, p, alpha)) == pytest.approx(
            (p**j / j * alpha ** -g.astype(float)).sum(), rel=1e-12
        )


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


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("report", [-2, 0, 1, 2, 3, 5, 20])
@pytest.mark.parametrize(
    ("rate", "p", "alpha"), [(0.05, 0.9, 0.37), (0.7, 0.6, 0.6), (4.0, 0.3, 0.3), (1.5, 0.05, 0.1)]
)
def test_the_count_the_bursts_and_the_topics_of_a_cell(report, rate, p, alpha, most):
    """As many cells as there are columns, all alike."""
    theta, phi = np.array([[0.3, 1.2]]), np.full((CELLS, 2), rate) * [1.0, 0.5] / 0.9
    reports = np.full(CELLS, report)
    law, false_alarm = joint_law(report, rate, alpha, p), FALSE_ALARM / (2 * 2 * 7 * 4)
    for kernel in ("all", "rest"):
        _, counts, tally = drawn(reports, theta, phi, alpha, np.full(CELLS, p), most, kernel)
        found = tally.reshape(2, CELLS).T
        np.testing.assert_array_equal(found[:, 1], counts.sum(axis=1))
        if report > 0 and kernel == "rest":
            assert not counts.any()
            continue
        assert chi_square_p(law, found) > false_alarm
        some = int(found[:, 1].sum())
        assert stats.binomtest(int(counts[:, 0].sum()), some, 0.3 / 0.9).pvalue > false_alarm


def test_other_laws_are_told_apart():
    theta, phi = np.array([[1.0]]), np.full((CELLS, 1), 0.7)
    for report, other in [
        (0, (0.7, 0.7, 0.6)),
        (2, (0.7, 0.6, 0.65)),
        (2, (0.7, 0.65, 0.6)),
        (2, (0.75, 0.6, 0.6)),
    ]:
        _, _, tally = drawn(np.full(CELLS, report), theta, phi, 0.6, np.full(CELLS, 0.6), 3)
        found = tally.reshape(2, CELLS).T
        assert chi_square_p(joint_law(report, 0.7, 0.6, 0.6), found) > FALSE_ALARM
        assert chi_square_p(joint_law(report, *other), found) < FALSE_ALARM


def test_one_p_of_all_cells_gives_what_many_equal_ones_give():
    rng = np.random.default_rng(5)
    theta, phi, reports = (
        rng.gamma(1.0, 1.0, (30, 3)),
        rng.gamma(0.5, 0.5, (50, 3)),
        rng.integers(-3, 6, (30, 50)),
    )
    for kernel in ("all", "rest"):
        many = drawn(reports, theta, phi, 0.4, np.full(50, 0.7), 3, kernel)
        one = drawn(reports, theta, phi, 0.4, 0.7, 3, kernel)
        np.testing.assert_array_equal(one[0], many[0])
        np.testing.assert_array_equal(one[1], many[1])
        np.testing.assert_array_equal(one[2], many[2].reshape(2, 50).sum(axis=1))


def test_without_tally_the_bursts_are_the_same():
    theta, phi = np.array([[1.0]]), np.full((50, 1), 0.7)
    law, reports = law_of(TWO_SIDED_GEOMETRIC, NegativeBinomial(0.7)), sp.csr_array(np.arange(50)[None] % 4)
    data, levels = PrivatizedCounts(reports, 0.4), np.array([0.4])
    _, _, total, _, proposals = burst_tokens.with_proposals(map, law, phi, levels, 2)
    sums = np.zeros((1, 1)), np.zeros((50, 1)), np.empty(0)
    place, rng = np.zeros(1, dtype=np.int64), np.random.default_rng(1)
    kernels.propose_rows(law, data.block(slice(0, 1)), (theta, phi, total), proposals, place, sums, rng)
    expected = drawn(np.arange(50) % 4, theta, phi, 0.4, 0.7, 2)
    np.testing.assert_array_equal(sums[1], expected[1])


@pytest.mark.parametrize("kernel", ["all", "rest"])
def test_rows_and_columns_are_as_different_as_they_like(kernel):
    """More rows than are proposed for at once, of three levels, and each column with a p of its own."""
    rng, n, columns, repeats = np.random.default_rng(6), 2 * kernels.ROWS_AT_ONCE + 88, 5, 300
    alpha = rng.choice([0.2, 0.4, 0.8], (n, 1))
    theta = rng.gamma(0.5, 1.0, (n, 3)) * rng.choice([0.1, 1.0, 3.0], (n, 1))
    theta[[5, kernels.ROWS_AT_ONCE]] = 0.0
    phi, reports = rng.gamma(0.5, 1.0, (columns, 3)), np.maximum(rng.integers(-3, 7, (n, columns)), 0)
    p = np.array([0.05, 0.3, 0.6, 0.9, 0.95])
    found = [drawn(reports, theta, phi, alpha, p, 3, kernel, seed) for seed in range(repeats)]
    by_row, tally = np.mean([x[0] for x in found], axis=0), np.mean([x[2] for x in found], axis=0)
    mu = theta @ phi.T
    moments = np.array(
        [[cell_moments(reports[d, v], mu[d, v], alpha[d, 0], p[v]) for v in range(columns)] for d in range(n)]
    )
    moments *= ((reports <= 0) | (kernel == "all"))[:, :, None]
    count, bursts, count_variance, bursts_variance = np.moveaxis(moments, -1, 0)
    share = theta[:, None] * phi / np.maximum(mu, 1e-300)[:, :, None]
    expected = (bursts[:, :, None] * share).sum(axis=1)
    spread = bursts[:, :, None] * share * (1.0 - share) + bursts_variance[:, :, None] * share**2
    often = expected * repeats > 25.0
    z = (by_row - expected)[often] / np.sqrt(spread.sum(axis=1)[often] / repeats)
    assert z.size > n // 2
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)
    errors = np.sqrt(np.concatenate([count_variance, bursts_variance], axis=1).sum(axis=0) / repeats)
    z = (tally - np.concatenate([count, bursts], axis=1).sum(axis=0)) / errors
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)
    assert not by_row[(theta == 0.0).all(axis=1)].any()


def cell_moments(report, rate, alpha, p, most=4000):
    """Means of the count and the bursts, and their variances, by the bursts' moments given every count."""
    if rate == 0.0:
        return 0.0, 0.0, 0.0, 0.0
    s, y = rate / -np.log1p(-p), np.arange(most)
    mean = np.concatenate([[0.0], np.cumsum(s / (s + y[:-1]))])
    variance = np.concatenate([[0.0], np.cumsum(s * y[:-1] / (s + y[:-1]) ** 2)])
    law = stats.nbinom.pmf(y, s, 1.0 - p) * alpha ** (np.abs(report - y) if report > 0 else y).astype(float)
    law /= law.sum()
    count, bursts = law @ y, law @ mean
    return count, bursts, law @ y**2 - count**2, law @ (variance + mean**2) - bursts**2


def test_more_cells_are_visited_than_fit_a_batch():
    columns = 700
    theta, phi = np.array([[1.0, 0.5]]), np.full((columns, 2), 0.4)
    for report in (2, 7):  # many rejected cells; reports above those beside which bursts are proposed
        bursts = [drawn(np.full(columns, report), theta, phi, 0.2, 0.8, 2, seed=s)[2] for s in range(100)]
        count, bursts_mean, variance, _ = cell_moments(report, 0.6, 0.2, 0.8)
        z = (np.mean(bursts, axis=0)[0] / columns - count) / math.sqrt(variance / 100 / columns)
        assert abs(z) < stats.norm.isf(FALSE_ALARM / 4)
        assert np.mean(bursts, axis=0)[1] / columns == pytest.approx(bursts_mean, rel=0.05)


@pytest.mark.parametrize("report", [2**31 - 1, 2**31, 2**32 + 1])
def test_reports_beyond_32_bits_are_drawn_one_by_one(report):
    _, counts, tally = drawn(
        [report, 0], np.array([[1.0]]), np.full((2, 1), 1e-9), 0.5, np.full(2, 1.0 - 1e-8), 2
    )
    assert counts[0].sum() >= 0.0
    assert np.isfinite(tally).all()


@pytest.mark.parametrize("p", [2.1e-9, 0.5, 1.0 - 2.1e-9])
@pytest.mark.parametrize("alpha", [0.01, 0.5, 0.99])
def test_extremes_are_finite_and_possible(p, alpha):
    rng = np.random.default_rng(7)
    theta, phi = rng.gamma(0.1, 1.0, (40, 2)), rng.gamma(0.1, 1.0, (60, 2))
    theta[3], phi[4] = 1e-150, 0.0
    reports = rng.integers(-2, 5, (40, 60))
    rows, counts, tally = drawn(reports, theta, phi, alpha, np.full(60, p), 1)
    assert np.isfinite(rows).all()
    assert not counts[4].any()
    assert (tally[:60] >= tally[60:]).all()
    np.testing.assert_array_equal(tally[60:], counts.sum(axis=1))
