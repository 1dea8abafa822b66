"""Laws and draws of counts given their reports, against sums over thousands of counts by SciPy."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from countveil.laws.counts import LIKELIHOODS, POISSON, NegativeBinomial
from countveil.laws.counts.given_reports import Cells, CountsGivenReports
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from tests.joint import FALSE_ALARM
from tests.recipes.bursts import Bursts
from tests.recipes.pairs import Pairs
from tests.recipes.thinning import ThinningNoise

pytestmark = pytest.mark.long

MOST = 6000
P = np.array([0.2, 0.6, 0.95])
THINNING = ThinningNoise()


def likelihood_of(name):
    """(likelihood, its parameters)."""
    if name == "poisson":
        return POISSON, ()
    if name == "pairs":
        return Pairs(), ()
    if name == "bursts":
        return Bursts(), (np.array([0.7]),)
    if name == "known":
        return NegativeBinomial(0.8), ()
    kept = {"global": (P[1:2],), "column": (P, P[:1], P[:1]), "row": (P, P[:1], P[:1])}
    return NegativeBinomial(name), kept[name]


def law(name, rate, row, column):
    """log P(count) by SciPy."""
    counts = np.arange(MOST)
    if name == "poisson":
        return stats.poisson.logpmf(counts, rate)
    if name == "pairs":
        return np.where(counts % 2 == 0, stats.poisson.logpmf(counts // 2, rate), -np.inf)
    p = {"bursts": 0.7, "known": 0.8, "global": P[1], "column": P[column], "row": P[row]}[name]
    return stats.nbinom.logpmf(counts, rate / -np.log1p(-p), 1.0 - p)


def given(name, noise, cells, rates):
    """(n, MOST) P(count | report) by SciPy; no report where it is -1."""
    found, counts = [], np.arange(MOST)
    for row, column, report, level in zip(*cells[:4], strict=True):
        weights = law(name, rates[row, column], row, column)
        if report >= 0 and level == 0.0:
            weights = np.where(counts == report, 0.0, -np.inf)
        elif report >= 0 and noise is THINNING:
            weights = weights + stats.binom.logpmf(report, counts, 1.0 - level)
        elif report >= 0:
            weights = weights + np.log(level) * np.abs(report - counts)
        found.append(np.exp(weights - logsumexp(weights)))
    return np.array(found)


def cells_of(reports):
    """Nine cells of a 3 x 3 table with these reports, and its factors; their rates go from tiny to 400."""
    rows, columns = np.indices((3, 3)).reshape(2, -1)
    level = np.array([0.5, 0.9, 0.1, 0.5, 0.0, 0.7, 0.5, 0.3, 0.8])
    theta, phi = (np.array([[0.01, 0.0], [1.0, 1.0], [40.0, 2.0]]), np.array([[1.0, 0.5], [3.0, 0.1], [10.0, 0]]))
    return Cells(rows, columns, np.array(reports), level), (theta, phi)


REPORTS = [[0, 3, 2, 0, 4, 40, 30, 150, 700], [-1] * 9, [1, 0, -1, 900, 0, 20, 0, -1, 0]]
NAMES = ["poisson", "global", "column", "row", "known", "bursts", "pairs"]
PAIRS = [
    *(pytest.param(name, TWO_SIDED_GEOMETRIC, id=f"{name}-geometric") for name in NAMES),
    # the general law is the same code for any noise: another one with counts, with a p of each cell, and with a toy
    *(pytest.param(name, THINNING, id=f"{name}-thinning") for name in ("poisson", "column", "pairs")),
]
POSSIBLE = [[0, 2, 2, 0, 4, 40, 30, 150, 700], [-1] * 9, [2, 0, -1, 90, 0, 20, 0, -1, 0]]


@pytest.mark.parametrize("reports", [0, 1, 2])
@pytest.mark.parametrize(("name", "noise"), PAIRS)
def test_laws_are_those_of_scipy(name, reports, noise):
    likelihood, parameters = likelihood_of(name)
    cells, (theta, phi) = cells_of((POSSIBLE if name == "pairs" else REPORTS)[reports])
    expected = given(name, noise, cells, theta @ phi.T)
    total, cut = np.zeros((9, MOST)), np.zeros(9, dtype=bool)
    model = CountsGivenReports(noise, likelihood)
    model.add_laws(((theta, phi), parameters), cells, total, cut)
    assert not cut.any()
    np.testing.assert_allclose(total, expected, rtol=1e-7, atol=1e-14)
    model.add_laws(((theta, phi), parameters), cells, total, cut)
    np.testing.assert_allclose(total.sum(axis=1), 2.0, rtol=1e-9)


def test_counts_near_zero_and_near_the_report_are_both_found():
    """With a tiny rate the weights between the two are negligible: one burst of any size, or noise alone."""
    one = np.zeros(1, dtype=np.int64)
    cells, rate = Cells(one, one, np.array([60]), np.array([0.3])), np.array([[3e-30]])
    model = CountsGivenReports(TWO_SIDED_GEOMETRIC, NegativeBinomial(0.95))
    total, cut = np.zeros((1, MOST)), np.zeros(1, dtype=bool)
    model.add_laws(((rate, np.ones((1, 1))), ()), cells, total, cut)
    counts = np.arange(MOST)
    s = 3e-30 / -np.log1p(-0.95)
    mass = np.log(s) - np.log(np.maximum(counts, 1)) + counts * np.log(0.95)  # of a burst, up to s
    weights = np.where(counts == 0, 0.0, mass) + np.log(0.3) * np.abs(60 - counts)
    np.testing.assert_allclose(total[0], np.exp(weights - logsumexp(weights)), rtol=1e-7, atol=1e-14)
    assert 0.01 < total[0, 0] < 0.99


def test_too_few_counts_are_noticed():
    cells, factors = cells_of(REPORTS[0])
    total, cut = np.zeros((9, 64)), np.zeros(9, dtype=bool)
    CountsGivenReports(TWO_SIDED_GEOMETRIC, POISSON).add_laws((factors, ()), cells, total, cut)
    np.testing.assert_array_equal(cut, [0, 0, 0, 0, 0, 0, 1, 1, 1])
    assert (total[cut] == 0.0).all()
    np.testing.assert_allclose(total[~cut].sum(axis=1), 1.0, rtol=1e-9)


@pytest.mark.parametrize(("name", "noise"), PAIRS)
def test_draws_follow_the_laws(name, noise):
    likelihood, parameters = likelihood_of(name)
    cells, (theta, phi) = cells_of([0, 2, 2, 0, 4, 40, 30, 150, 90])
    expected, n = given(name, noise, cells, theta @ phi.T), 2000
    many, rng = cells.take(np.repeat(np.arange(9), n)), np.random.default_rng(1)
    drawn = CountsGivenReports(noise, likelihood).draw(((theta, phi), parameters), many, rng)
    passed = np.cumsum(expected, axis=1)
    for i, counts in enumerate(drawn.reshape(9, n)):
        below = np.where(counts > 0, passed[i, np.maximum(counts - 1, 0)], 0.0)
        uniform = below + rng.random(n) * expected[i, counts]
        assert stats.kstest(uniform, "uniform").pvalue > FALSE_ALARM, (name, i)


@pytest.mark.parametrize("name", ["poisson", "global", "column", "row", "bursts"])
def test_probabilities_of_reports_are_sums_over_counts(name):
    likelihood, parameters = likelihood_of(name)
    cells, (theta, phi) = cells_of([0, 3, 2, 1, 4, 40, 30, 50, 70])
    below, at = np.zeros(9), np.zeros(9)
    model = CountsGivenReports(TWO_SIDED_GEOMETRIC, likelihood)
    model.add_report_probabilities(((theta, phi), parameters), cells, below, at)
    for i, (row, column, report, alpha) in enumerate(zip(*cells[:4], strict=True)):
        mass = np.exp(law(name, (theta @ phi.T)[row, column], row, column))
        gap = report - np.arange(MOST)
        if alpha == 0.0:
            lower, upper = (gap > 0) * 1.0, (gap >= 0) * 1.0
        else:
            lower, upper = (noise_below(each, alpha) for each in (gap - 1, gap))
        lower = 0.0 * lower if report == 0 else lower
        np.testing.assert_allclose(below[i], mass @ lower, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(at[i], mass @ (upper - lower), rtol=1e-6, atol=1e-12)


def noise_below(k, alpha):
    """P(tau <= k) of two-sided geometric noise."""
    return np.where(
        k >= 0, 1.0 - alpha ** (np.maximum(k, 0) + 1.0) / (1.0 + alpha), alpha ** -np.minimum(k, 0.0) / (1.0 + alpha)
    )


def test_all_likelihoods_of_the_library_are_tested():
    assert set(LIKELIHOODS) == {"poisson", "negative-binomial"}
