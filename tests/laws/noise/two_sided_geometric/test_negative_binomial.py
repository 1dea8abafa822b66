"""Reports of negative binomial counts under two-sided geometric noise, against sums over all counts."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numba import njit
from scipy import stats
from scipy.special import gammaln, logsumexp

from countveil.kernels import law as stubs
from countveil.kernels.compiled import kernel
from countveil.kernels.entries import BATCH, new_batch
from countveil.kernels.general import GeneralLaw
from countveil.kernels.random import new_source
from countveil.laws.counts import NegativeBinomial
from countveil.laws.counts.laws import law_of
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from countveil.laws.noise.two_sided_geometric import negative_binomial as kernels
from countveil.laws.noise.two_sided_geometric import poisson
from tests import reference
from tests.joint import FALSE_ALARM

PS = (1e-6, 0.05, 0.5, 0.9, 0.999)
SHAPES = (1e-12, 0.01, 1.0, 50.0, 1e5)
ALPHAS = (0.01, 0.3, 0.7, 0.95)
REPORTS = (1, 2, 7, 16, 17, 60, 3000)
MOST = 1_000_000  # counts that are summed at most
DRAWN = [  # report, s, p, alpha: counts near 0, near the report, both, and between
    (1, 0.05, 0.6, 0.37), (3, 0.01, 0.95, 0.3), (3, 3.0, 0.95, 0.9), (12, 0.2, 0.5, 0.6), (30, 0.02, 0.9, 0.5),
    (30, 1e-4, 0.9, 0.7), (30, 40.0, 0.5, 0.6), (200, 0.01, 0.99, 0.7), (25, 0.3, 0.3, 0.9), (100, 1.0, 0.9, 0.95),
    (400, 1e-3, 0.999, 0.05), (5000, 0.05, 0.999, 0.37), (10, 500.0, 0.1, 0.8),
]  # fmt: skip
DRAWS = 40_000


@njit
def many(r, s, p, alpha, draws, rng):
    found = np.empty(draws, dtype=np.int64)
    for i in range(draws):
        found[i] = kernels.draw_count(r, s, p, alpha, rng)
    return found


@njit
def of_a_cell(law, report, rate, level):
    cell = stubs.law_at(law, 0, 0)
    seen = stubs.report_score(cell, report, rate, level), stubs.expected_ratio(cell, report, rate, level)
    return seen, (stubs.unseen_score(cell, rate, level), stubs.unseen_exposure(cell, level))


def weights(r, s, p, alpha):
    """(counts, log P(count) P(report | count)), as many as matter."""
    far = s * p / (1.0 - p) + 60.0 * math.sqrt(s * p) / (1.0 - p)
    counts = np.arange(int(far + r + 60.0 / (1.0 - p * alpha) + 300))
    if s < 1e4:
        log_mass = gammaln(s + counts) - gammaln(s) - gammaln(counts + 1.0) + s * np.log1p(-p) + counts * np.log(p)
    else:
        log_mass = stats.nbinom.logpmf(counts, s, 1.0 - p)
    return counts, log_mass + np.abs(r - counts) * np.log(alpha) + np.log((1.0 - alpha) / (1.0 + alpha))


def grid():
    """All cases whose sums are short enough."""
    for p, s, alpha, r in itertools.product(PS, SHAPES, ALPHAS, REPORTS):
        if s * p / (1.0 - p) < 0.1 * MOST:
            yield r, s, p, alpha


@pytest.mark.long
def test_scores_and_expected_bursts_are_sums_over_all_counts():
    cases = 0
    for r, s, p, alpha in grid():
        counts, logs = weights(r, s, p, alpha)
        bursts = np.cumsum(np.concatenate([[0.0], s / (s + counts[:-1])]))
        total = logsumexp(logs)
        score, expected = kernels.score_and_bursts(r, s, p, alpha)
        assert score == pytest.approx(total, rel=1e-9, abs=1e-9), (r, s, p, alpha)
        assert expected == pytest.approx(np.exp(logs - total) @ bursts, rel=1e-8), (r, s, p, alpha)
        cases += 1
    assert cases > 600


def test_sums_by_difference_are_right_or_refused():
    found = {True: 0, False: 0}
    for r, s, p, alpha in itertools.product((1, 3, 8, 30, 64), (1e-9, 0.02, 1.0, 40.0), (1e-4, 0.3, 0.97), ALPHAS):
        counts, logs = weights(r, s, p, alpha)
        logs -= s * np.log1p(-p) + np.log((1.0 - alpha) / (1.0 + alpha))
        bursts = np.cumsum(np.concatenate([[0.0], s / (s + counts[:-1])]))
        total, moment = kernels.sum_by_difference(r, s, p, alpha, True)
        found[total > 0.0] += 1
        if total > 0.0:
            case = r, s, p, alpha
            assert math.log(total) == pytest.approx(logsumexp(logs), rel=1e-9, abs=1e-9), case
            assert moment == pytest.approx(np.exp(logs) @ bursts, rel=1e-8), case
            assert kernels.sum_by_difference(r, s, p, alpha, False)[0] == total
    assert min(found.values()) > 50


def test_sums_that_may_be_too_large_for_a_float_are_refused():
    shapes = np.geomspace(500.0, 5000.0, 400)
    for s, r, p, alpha in itertools.product(shapes, (1, 20, 64), (0.5, 0.9), (0.3, 0.7)):
        total, moment = kernels.sum_by_difference(r, s, p, alpha, True)
        assert total == 0.0 or max(total, moment) < 1e300
        assert all(map(math.isfinite, kernels.score_and_bursts(r, s, p, alpha)))


def sums_in_decimals(r, s, p, alpha):
    """(sum of w(y) alpha^|r - y|, the same times bursts), with so many digits that a difference loses none."""
    with localcontext(prec=100):
        s, p, alpha = Decimal(s), Decimal(p), Decimal(alpha)
        whole = (1 - p * alpha) ** -s
        weight, bursts, total, moment, log_whole = Decimal(1), Decimal(0), Decimal(0), Decimal(0), whole.ln()
        above, above_moment = whole, log_whole * whole  # w(y) alpha^y; less those up to r
        for y in range(r + 1):
            total += weight * alpha ** (r - y)
            moment += weight * bursts * alpha ** (r - y)
            above -= weight * alpha**y
            above_moment -= weight * bursts * alpha**y
            weight *= p * (s + y) / (y + 1)
            bursts += s / (s + y)
        return total + above / alpha**r, moment + above_moment / alpha**r


@pytest.mark.parametrize("alpha", [0.3, 0.95, 1.0 - 1e-6])
@pytest.mark.parametrize("p", [1e-4, 0.75, 0.97, 1.0 - 1e-6])
def test_sums_by_difference_have_eleven_digits(p, alpha):
    kept = 0
    for r, s in itertools.product((1, 8, 64), (1e-9, 0.02, 1.0, 40.0)):
        found = kernels.sum_by_difference(r, s, p, alpha, True)
        if found[0] > 0.0:
            kept += 1
            for own, exact in zip(found, sums_in_decimals(r, s, p, alpha), strict=True):
                assert abs(Decimal(own) / exact - 1) < 2e-11, (r, s)
    assert kept >= 2


def test_the_gradient_is_that_of_the_score():
    for r, s, p, alpha in itertools.product((1, 7, 60), (0.01, 1.0, 50.0), (0.05, 0.9), (0.3, 0.95)):
        q = -math.log1p(-p)
        law = law_of(TWO_SIDED_GEOMETRIC, NegativeBinomial(p))
        rate, step = s * q, 1e-5 * s * q
        low, high = (of_a_cell(law, r, rate + sign * step, alpha)[0][0] for sign in (-1, 1))
        ratio = of_a_cell(law, r, rate, alpha)[0][1]
        assert ratio - 1.0 == pytest.approx((high - low) / (2.0 * step), rel=1e-4, abs=1e-5 / q)


def test_reports_that_are_not_positive_are_sums_too():
    for p, s, alpha in itertools.product(PS, (1e-12, 0.01, 1.0, 50.0), ALPHAS):
        law, rate = law_of(TWO_SIDED_GEOMETRIC, NegativeBinomial(p)), -s * math.log1p(-p)
        _counts, logs = weights(0, s, p, alpha)
        total = logsumexp(logs - np.log((1.0 - alpha) / (1.0 + alpha))) - math.log1p(alpha)
        score, exposure = of_a_cell(law, 1, rate, alpha)[1]
        assert score == pytest.approx(total, rel=1e-9, abs=1e-10)
        assert exposure == pytest.approx(1.0 - math.log1p(-p * alpha) / math.log1p(-p), rel=1e-9)


def test_the_law_is_that_of_the_kernel_and_the_likelihood():
    counts = NegativeBinomial(0.7).counts
    general = GeneralLaw(TWO_SIDED_GEOMETRIC.kernel, counts)
    closed = kernels.TwoSidedGeometricNegativeBinomial(counts)
    for case in [(1, 0.3, 0.5), (7, 2.0, 0.9), (40, 1e-9, 0.3), (3, 4.0, 0.0), (90, 60.0, 0.2)]:
        np.testing.assert_allclose(of_a_cell(closed, *case), of_a_cell(general, *case), rtol=1e-10)


@pytest.mark.parametrize("case", DRAWN)
def test_draws_have_the_law(case):
    _counts, logs = weights(*case)
    law = np.exp(logs - logsumexp(logs))
    found = many(*case, DRAWS, np.random.default_rng(3))
    assert reference.chi_square_p_value(found, 0, law) > FALSE_ALARM / len(DRAWN)


def test_both_modes_are_reached():
    """With a small shape a count is nothing or about what was reported; draws that stay near one are refused."""
    case = 30, 5e-4, 0.9, 0.7
    _counts, logs = weights(*case)
    law, found = np.exp(logs - logsumexp(logs)), many(*case, DRAWS, np.random.default_rng(4))
    assert 0.05 < law[:5].sum() < 0.95
    assert 0.05 < law[20:41].sum() < 0.95
    assert law[5:20].sum() < 0.02
    for one_mode in (found[found > 10], found[found < 10]):
        assert reference.chi_square_p_value(one_mode, 0, law) < FALSE_ALARM


def test_without_bursts_it_is_the_law_of_poisson_counts():
    law = law_of(TWO_SIDED_GEOMETRIC, NegativeBinomial(3e-9))
    for r, rate, alpha in itertools.product((1, 7, 40), (1e-6, 0.3, 5.0, 60.0), (0.1, 0.9)):
        score, ratio = of_a_cell(law, r, rate, alpha)[0]
        assert score == pytest.approx(poisson.report_logpmf(r, rate, alpha), rel=1e-6)
        assert ratio == pytest.approx(poisson.expected_count_ratio(r, rate, alpha), rel=1e-6)
    assert of_a_cell(law, 1, 2.0, 0.4)[1][1] == pytest.approx(0.6, rel=1e-8)


@pytest.mark.parametrize("s", [1e-150, 1e-12, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("p", [1e-8, 0.5, 1.0 - 1e-6])
@pytest.mark.parametrize("alpha", [1e-30, 1e-3, 0.5, 0.999])
def test_extremes_are_finite_and_possible(s, p, alpha):
    for r in (1, 16, 17, 5000, 1_000_000):
        score, bursts = kernels.score_and_bursts(r, s, p, alpha)
        assert math.isfinite(score)
        assert 0.0 <= bursts < math.inf
        assert (many(r, s, p, alpha, 2, np.random.default_rng(5)) >= 0).all()


def test_without_noise_the_count_is_the_report():
    assert (many(5, 0.3, 0.6, 0.0, 3, np.random.default_rng(6)) == 5).all()
    score, bursts = kernels.score_and_bursts(5, 0.3, 0.6, 0.0)
    assert score == pytest.approx(stats.nbinom.logpmf(5, 0.3, 0.4))
    assert bursts == pytest.approx(sum(0.3 / (0.3 + i) for i in range(5)))


REPEATS = 20_000
CASES = [
    (r, s, p, alpha) for r in (1, 5, 12) for s in (1e-3, 0.3, 3.0) for p in (0.2, 0.9) for alpha in (0.1, 0.37, 0.7)
]


def drawn(cases, repeats, seed=1):
    """(repeats, n) counts of a batch with these entries."""
    rng, shape = np.random.default_rng(seed), np.empty(BATCH)
    batch, source, n = new_batch(), new_source(rng), len(cases)
    report, shape[:n], p, alpha = np.array(cases, dtype=float).T
    batch[1][:n], batch[5][0][:n], batch[5][1][:n] = report, p / alpha, p * alpha
    found = np.empty((repeats, n), dtype=np.int64)
    fill(found, shape, batch, source, rng)
    return found


@kernel
def fill(found, shape, batch, source, rng):
    repeats, n = found.shape
    for i in range(repeats):
        kernels.draw_few(n, shape, batch, source, rng)
        found[i] = batch[4][:n]


def law(r, s, p, alpha):
    """P(0), P(1), ... of the count, from ratios of neighbours."""
    y = np.arange(1, 400)
    ratios = np.where(y <= r, p / alpha, p * alpha) * (s + (y - 1)) / y
    weights = np.concatenate([[1.0], np.cumprod(ratios)])
    return weights / weights.sum()


@pytest.fixture(scope="module")
def counts():
    assert len(CASES) <= BATCH
    return drawn(CASES, REPEATS)


@pytest.mark.parametrize("i", range(len(CASES)), ids=lambda i: "-".join(map(str, CASES[i])))
def test_counts_have_their_law(counts, i):
    """A count beyond 12 that is rejected is drawn anew, and has the law again: so have those that are kept."""
    chances, own = law(*CASES[i]), counts[:, i]
    rejected = (own < 0).mean()
    within = own[(own >= 0) & (own <= kernels.MOST)]
    few = chances[: kernels.MOST + 1]
    assert reference.chi_square_p_value(within, 0, few / few.sum()) > FALSE_ALARM / len(CASES)
    beyond = own[own > kernels.MOST]
    assert rejected < 0.5
    if beyond.size > 200:
        tail = chances[kernels.MOST + 1 :]
        p_value = reference.chi_square_p_value(beyond, kernels.MOST + 1, tail / tail.sum())
        assert p_value > FALSE_ALARM / len(CASES)
        wrong = np.sqrt(tail) / np.sqrt(tail).sum()
        assert reference.chi_square_p_value(beyond, kernels.MOST + 1, wrong) < FALSE_ALARM
    kept = within.size / (within.size + beyond.size)  # of those that are not rejected
    error = np.sqrt(max(few.sum() * (1.0 - few.sum()), 1e-12) / REPEATS)
    assert abs(kept - few.sum()) < 5.0 * error + 1e-9


def test_other_laws_are_told_apart(counts):
    i = CASES.index((5, 0.3, 0.9, 0.37))
    few = law(5, 0.4, 0.9, 0.37)[: kernels.MOST + 1]
    within = counts[:, i][(counts[:, i] >= 0) & (counts[:, i] <= kernels.MOST)]
    assert reference.chi_square_p_value(within, 0, few / few.sum()) < FALSE_ALARM


@pytest.mark.parametrize(
    "case", [(13, 0.3, 0.5, 0.4), (3, 2e3, 0.1, 0.4), (3, 0.3, 0.99, 0.9), (3, 0.3, 0.5, 1e-30)], ids=str
)
def test_large_entries_are_left_to_draws_of_their_own(case):
    assert (drawn([case], 20) == -1).all()
