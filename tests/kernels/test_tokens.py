"""Counts by proposed tokens against brute force: what a cell's count, parts and topics are, whatever the noise."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import countveil as cv
from countveil.data import numbering
from countveil.data.observations import PrivatizedCounts
from countveil.inference import tokens
from countveil.kernels import tokens as kernels
from countveil.kernels.compiled import kernel
from countveil.kernels.random import fill_uniforms, new_source
from countveil.kernels.report_kernels import RATIO, fill_gains
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.laws.counts.laws import general_law, law_of
from tests.joint import FALSE_ALARM
from tests.laws.noise.codes import kernels_of_reports
from tests.laws.noise.laws import CASES, log_mass

pytestmark = pytest.mark.long

CELLS, NAN = 20_000, math.nan
REPORTS = {
    "discrete": 0,
    "random rounding": 0,
    "rounding": 0,
    "suppression of zeros": NAN,
    "cut geometric": NAN,
    "Laplace": -3.5,
}
THETA, PHI = (np.array([0.3, 1.2]), np.array([1.0, 0.5]) / 0.9)  # whose product is 1, a third of it the first topic's
MOST = 250  # the largest count of a law that is written out
UNTOUCHED = np.uint64(77)


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Tokens are proposed wherever they can be."""
    monkeypatch.setattr(tokens, "pays", lambda *_: True)
    monkeypatch.setattr(tokens, "MIN_CELLS", 1)
    monkeypatch.setattr(tokens, "MIN_SHARE", 0.0)
    monkeypatch.setattr(numbering, "check_sign", lambda *_: None)  # of reports that are all alike


def ready(data, likelihood, parameters, phi, most=None):
    """(law, noise and likelihood, how tokens are proposed, up to which report, how sweeps go).

    Up to report 0, only cells without a positive report are proposed, as a block with too many proposals does.
    """
    law = law_of(data.noise, likelihood, parameters)
    pair, found = general_law(data.noise, likelihood, parameters), tokens.planned(data, law, True)
    wanted = kernels.LARGEST_REPORT if most is None else most
    most = 0 if found.codes.code_c.size else wanted
    given = (likelihood, law.likelihood.parameters), found.codes, found.levels, max(most, 1)
    proposals = tokens.with_proposals(map, law, pair, phi, *given)[4]
    if most == 0 and not found.codes.code_c.size:
        proposals = tokens.beside_others(proposals)
    return law, pair, proposals, most, found


def drawn(
    data, theta, phi, likelihood=POISSON, parameters=(), *, most=None, few=np.inf, seed=1, change=None, looked_up=False
):  # fmt: skip
    """(row counts, column counts, tally) of a draw; with ``few`` = 0 every cell is visited.

    Cells that are looked up are stored, with the code of all others.
    """
    phi = np.ascontiguousarray(phi, dtype=float)
    law, pair, proposals, most, found = ready(data, likelihood, parameters, phi, most)
    proposals = proposals._replace(few=few, many=few)
    proposals = proposals if change is None else change(proposals)
    group_d = np.arange(len(theta)) if len(proposals.chance_gcn) == len(theta) > 1 else found.group_d
    sums = np.zeros(theta.shape), np.zeros(phi.shape), np.zeros(likelihood.tally_size(data.shape))
    rng, entries, unstored_d = (
        np.random.default_rng(seed),
        found.entries.block(slice(0, len(theta))),
        found.unstored_d,
    )
    if looked_up:
        n, unstored_d = len(phi), np.zeros_like(unstored_d)
        entries = entries._replace(
            indptr=np.array([0, n]), columns=np.arange(n, dtype=np.int32), reports=np.full(n, -2, np.int32)
        )
    factors, places = (theta, phi, phi.sum(axis=0)), (group_d, unstored_d)
    kernels.propose_rows(law, pair, entries, factors, proposals, places, most, sums, rng)
    np.testing.assert_array_equal(sums[0].sum(axis=0), sums[1].sum(axis=0))
    return sums


def likelihood_of(p, dispersion, shape):
    """(likelihood, its parameters) with every p alike."""
    if p is None:
        return POISSON, ()
    likelihood = NegativeBinomial(dispersion)
    first, *rest = likelihood.start(shape)
    return likelihood, (np.full(first.shape, p), *rest)


def cells(data, rate, p, **options):
    """Of each of many cells that are alike: (count, parts, the first topic's parts)."""
    along = int(data.shape[1] > 1)  # all in one row, or in one column
    likelihood, parameters = likelihood_of(p, ("row", "column")[along], data.shape)
    theta, phi = np.tile(THETA, (data.shape[0], 1)), rate * np.tile(PHI, (data.shape[1], 1))
    sums = drawn(data, theta, phi, likelihood, parameters, **options)
    parts = sums[along].sum(axis=1)
    counts = parts if p is None else sums[2][: parts.size]
    if p is not None:
        np.testing.assert_array_equal(sums[2][parts.size :], parts)
    return np.stack([counts, parts, sums[along][:, 0]], axis=1)


def law_of_parts(log_k, rate, p, most=MOST, parts=60):
    """P(count, parts | report) of a cell by adding up over the sizes of parts, (most, parts)."""
    y = np.arange(most)
    table, sums = np.zeros((most, parts)), np.zeros(most)
    sums[0] = 1.0
    sizes = np.where(y == 1, 1.0, 0.0)
    if p is not None:
        sizes = np.concatenate([[0.0], p ** y[1:] / y[1:]]) / -np.log1p(-p)
    for n in range(parts):
        table[:, n] = sums * stats.poisson.pmf(n, rate)
        sums = np.convolve(sums, sizes)[:most]
    table *= np.exp(log_k(y) - np.max(log_k(y)))[:, None]
    return table / table.sum()


def p_value(table, found, least=8.0):
    """Of pairs (n, 2) against their law; rare pairs pooled."""
    observed = np.zeros_like(table)
    np.add.at(observed, tuple(np.minimum(found[:, i].astype(int), table.shape[i] - 1) for i in (0, 1)), 1.0)
    expected = table * len(found)
    common = expected >= least
    seen, law = (np.append(x[common], x[~common].sum()) for x in (observed, expected))
    return stats.chi2.sf(((seen - law) ** 2 / np.maximum(law, 1e-9)).sum(), common.sum())


def topics_p_value(found):
    """Of the first topic's share of all parts."""
    return stats.binomtest(int(found[:, 2].sum()), int(found[:, 1].sum()), 1.0 / 3.0).pvalue


def noisy(report, alpha, n=CELLS):
    """Cells of one row with one report, or of rows if there is a level for each."""
    return PrivatizedCounts(np.full((1, n), report), alpha)


def geometric(report, alpha):
    return lambda y: np.abs(max(report, 0) - y) * math.log(alpha)


SETTINGS = [(0.05, 0.9, 0.37), (0.7, 0.6, 0.6), (4.0, 0.3, 0.3), (1.5, 0.05, 0.1), (0.7, None, 0.9), (6.0, None, 0.4)]
WAYS = {
    "all": {"most": None},
    "up to 1": {"most": 1},
    "up to 3": {"most": 3},
    "others": {"most": 0},
    "visited": {"few": 0.0},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("report", [-2, 0, 1, 2, 3, 5, 20])
def test_cells_under_two_sided_geometric_noise(report, way):
    for rate, p, alpha in SETTINGS:
        given = WAYS[way] if p is None or way != "all" else {"most": 8}
        if way == "visited" and p is not None:
            given = {"few": 0.0, "most": 3}
        found = cells(noisy(report, alpha), rate, p, **given)
        false_alarm = FALSE_ALARM / (2 * len(WAYS) * 7 * len(SETTINGS))
        assert p_value(law_of_parts(geometric(report, alpha), rate, p), found) > false_alarm, (rate, p, alpha)
        assert topics_p_value(found) > false_alarm


def coded(name, by_row=False):
    """Cells with one report of a mechanism."""
    values = np.full((CELLS // 2, 1) if by_row else (1, CELLS // 2), float(REPORTS[name]))
    return cv.Reports(values, CASES[name][0])


@pytest.mark.parametrize(
    ("p", "by_row", "options"),
    [
        (None, False, {}), (None, False, {"looked_up": True}), (None, False, {"few": 0.0}), (0.6, False, {}),
        (0.9, False, {"looked_up": True}), (0.6, True, {}), (0.6, True, {"few": 0.0}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", REPORTS)
def test_cells_under_other_mechanisms(name, p, by_row, options):
    data = coded(name, by_row)
    for rate in (0.5, 4.0):
        law = law_of_parts(lambda y: CASES[name][1](REPORTS[name], y), rate, p, 600)
        found = cells(data, rate, p, **options)
        assert p_value(law, found) > FALSE_ALARM / 200
        assert topics_p_value(found) > FALSE_ALARM / 200
    free = law_of_parts(lambda y: np.zeros(y.size), rate, p, 600)  # the negative control: without a report
    if name != "cut geometric":  # which allows small counts alike
        assert p_value(free, found) < FALSE_ALARM


def test_other_laws_are_told_apart():
    for report, p, (alpha, rate, other) in [
        (0, 0.6, (0.7, 0.7, 0.6)), (2, 0.6, (0.6, 0.7, 0.65)), (2, 0.6, (0.65, 0.7, 0.6)), (2, 0.6, (0.6, 0.75, 0.6)),
        (0, None, (0.7, 0.7, None)), (2, None, (0.65, 0.7, None)), (2, None, (0.6, 0.75, None)),
    ]:  # fmt: skip
        found = cells(noisy(report, 0.6), 0.7, p, most=None if p is None else 3)
        assert p_value(law_of_parts(geometric(report, 0.6), 0.7, p), found) > FALSE_ALARM
        assert p_value(law_of_parts(geometric(report, alpha), rate, other), found) < FALSE_ALARM


@pytest.mark.parametrize("p", [None, 0.6])
def test_the_law_shows_cells_that_are_always_kept(p):
    def always_kept(proposals):
        codes = proposals.codes
        if codes.code_c.size == 0:
            return proposals._replace(unit_g=np.zeros_like(proposals.unit_g))
        gains = codes.gain_cy[:, 1:2] * np.arange(codes.gain_cy.shape[1])
        return proposals._replace(codes=codes._replace(gain_cy=gains))

    most = None if p is None else 3
    found = cells(noisy(2, 0.5), 4.0, p, most=most, change=always_kept)
    assert p_value(law_of_parts(geometric(2, 0.5), 4.0, p), found) < FALSE_ALARM
    found = cells(coded("random rounding"), 1.5, p, change=always_kept)
    law = law_of_parts(lambda y: CASES["random rounding"][1](0, y), 1.5, p)
    assert p_value(law, found) < FALSE_ALARM


def test_gains_are_those_of_the_kernel():
    for name, report in REPORTS.items():
        mechanism, kernel, _ = CASES[name]
        noise, y, gains = kernels_of_reports(mechanism, [report]), np.arange(30), np.empty((1, 30))
        fill_gains(noise, np.array([1]), gains)
        logs = kernel(report, y)
        np.testing.assert_allclose(np.exp(gains[0]), np.exp(logs - logs[0]), rtol=1e-9, atol=1e-300)
        assert noise.real_cj[1, RATIO] == pytest.approx(np.exp(gains[0, 1]))
        codes = tokens.NO_CODES._replace(code_c=np.array([1]), gain_cy=gains)
        assert kernels.gain_of(noise, codes, 1, 40) == pytest.approx(kernel(report, np.array([40]))[0] - logs[0])


@pytest.mark.parametrize("p", [None, 0.6])
def test_cells_that_are_zero_or_masked_get_nothing(p):
    data = coded("rounding")
    likelihood, parameters = likelihood_of(p, "global", data.shape)
    law, pair, proposals, most, found = ready(data, likelihood, parameters, np.tile(PHI, (CELLS // 2, 1)))
    entries = found.entries.block(slice(0, 1))
    entries = entries._replace(
        indptr=np.array([0, 2]), columns=np.array([1, 4], np.int32), reports=np.array([0, -1], np.int32)
    )
    phi = 3.0 * np.tile(PHI, (6, 1))
    proposals = proposals._replace(alias_kv=aliases_of(phi.T), total_k=phi.sum(axis=0))
    for few in (np.inf, 0.0):
        sums = np.zeros((1, 2)), np.zeros((6, 2)), np.zeros(likelihood.tally_size((1, 6)))
        places, factors = (found.group_d, found.unstored_d), (THETA[None], phi, phi.sum(axis=0))
        given = proposals._replace(few=few, many=few), places, most
        for seed in range(20):
            kernels.propose_rows(law, pair, entries, factors, *given, sums, np.random.default_rng(seed))
        assert not sums[1][[1, 4]].any()
        assert sums[1].sum(axis=1)[[0, 2, 3, 5]].all()


def test_one_p_of_all_cells_gives_what_many_equal_ones_give():
    rng = np.random.default_rng(5)
    theta, phi = rng.gamma(1.0, 1.0, (30, 3)), rng.gamma(0.5, 0.5, (50, 3))
    data = PrivatizedCounts(rng.integers(-3, 6, (30, 50)), 0.4)
    for most in (3, 0):
        many, one = (
            drawn(data, theta, phi, *likelihood_of(0.7, dispersion, data.shape), most=most)
            for dispersion in ("column", "global")
        )
        known = drawn(data, theta, phi, NegativeBinomial(0.7), most=most)
        for found in (one, known):
            np.testing.assert_array_equal(found[0], many[0])
            np.testing.assert_array_equal(found[1], many[1])
        np.testing.assert_array_equal(one[2], many[2].reshape(2, 50).sum(axis=1))


def moments(report, rate, alpha, p, most=4000):
    """Means of the count and of its parts, and their variances, by the parts' moments given every count."""
    if rate == 0.0:
        return 0.0, 0.0, 0.0, 0.0
    y = np.arange(most)
    if p is None:
        mean, variance = y.astype(float), np.zeros(most)
    else:
        s = rate / -np.log1p(-p)
        mean = np.concatenate([[0.0], np.cumsum(s / (s + y[:-1]))])
        variance = np.concatenate([[0.0], np.cumsum(s * y[:-1] / (s + y[:-1]) ** 2)])
    logs = log_mass(y, rate, p)[0] + geometric(report, alpha)(y)
    law = np.exp(logs - logsumexp(logs))
    count, parts = law @ y, law @ mean
    return count, parts, law @ y**2 - count**2, law @ (variance + mean**2) - parts**2


@pytest.mark.parametrize("most", [None, 0])
@pytest.mark.parametrize("p", [None, np.array([0.05, 0.3, 0.6, 0.9, 0.95])], ids=["units", "bursts"])
def test_rows_and_columns_are_as_different_as_they_like(p, most):
    """More rows than are proposed for at once, of three levels, and each column with a p of its own."""
    rng, n, columns, repeats = np.random.default_rng(6), kernels.ROWS_AT_ONCE + 88, 5, 300
    alpha = rng.choice([0.2, 0.4, 0.8], (n, 1))
    theta = rng.gamma(0.5, 1.0, (n, 3)) * rng.choice([0.1, 1.0, 3.0], (n, 1))
    theta[[5, kernels.ROWS_AT_ONCE]] = 0.0
    phi, reports = rng.gamma(0.5, 1.0, (columns, 3)), np.maximum(rng.integers(-3, 7, (n, columns)), 0)
    data, likelihood, parameters = PrivatizedCounts(reports, alpha), POISSON, ()
    if p is not None:
        likelihood = NegativeBinomial("column")
        parameters, most = (p, *likelihood.start(data.shape)[1:]), 3 if most is None else 0
    found = [drawn(data, theta, phi, likelihood, parameters, most=most, seed=seed) for seed in range(repeats)]
    by_row, by_column = (np.mean([x[i] for x in found], axis=0) for i in (0, 1))
    mu, own = theta @ phi.T, [None] * columns if p is None else p
    every = [[moments(reports[d, v], mu[d, v], alpha[d, 0], own[v]) for v in range(columns)] for d in range(n)]
    count, parts, count_variance, parts_variance = np.moveaxis(np.array(every), -1, 0)
    share = theta[:, None] * phi / np.maximum(mu, 1e-300)[:, :, None]
    expected = parts[:, :, None] * share
    spread = parts[:, :, None] * share * (1.0 - share) + parts_variance[:, :, None] * share**2
    for mean, axis in ((by_row, 1), (by_column, 0)):
        wanted, variance = expected.sum(axis=axis), spread.sum(axis=axis)
        often = wanted * repeats > 25.0
        z = (mean - wanted)[often] / np.sqrt(variance[often] / repeats)
        assert z.size >= (n if axis == 1 else 12)
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)
    assert not by_row[theta == 0.0].any()
    if p is not None:
        errors = np.sqrt(np.concatenate([count_variance, parts_variance], axis=1).sum(axis=0) / repeats)
        tally = np.mean([x[2] for x in found], axis=0)
        z = (tally - np.concatenate([count, parts], axis=1).sum(axis=0)) / errors
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)


def test_whether_a_cell_keeps_its_tokens_has_nothing_to_do_with_where_others_fell():
    """The cell before the one with a report has tokens that stay by chance, too."""
    n, rate, alpha = 200_000, 1.0, 0.5
    _, counts, _ = drawn(PrivatizedCounts(np.tile([0, 1], (n, 1)), alpha), np.full((n, 1), rate), np.ones((2, 1)))
    for report in (0, 1):
        mean, _, variance, _ = moments(report, rate, alpha, None)
        assert abs(counts[report, 0] / n - mean) / math.sqrt(variance / n) < stats.norm.isf(FALSE_ALARM / 4)


@pytest.mark.parametrize(("report", "p"), [(1, None), (2, 0.8), (7, 0.8)])
def test_more_cells_are_visited_than_fit_a_batch(report, p):
    """Many that are rejected; and reports above those beside which tokens are proposed."""
    columns, most, alpha = 700, None if p is None else 2, 0.2
    data, theta, phi = (
        PrivatizedCounts(np.full((1, columns), report), alpha),
        np.array([[1.0, 0.5]]),
        np.full((columns, 2), 0.8),
    )
    given = likelihood_of(p, "column", data.shape)
    found = [drawn(data, theta, phi, *given, most=most, seed=seed)[1].sum() for seed in range(200)]
    _, parts, _, variance = moments(report, 1.2, alpha, p)
    z = (np.mean(found) / columns - parts) / math.sqrt(variance / 200 / columns)
    assert abs(z) < stats.norm.isf(FALSE_ALARM / 6)


@pytest.mark.parametrize("report", [2**31 - 2, 2**31 - 1, 2**31, 2**32 + 1])
def test_reports_beyond_32_bits(report):
    """The true count is Poisson(rate / alpha) where it cannot reach the report."""
    found = cells(noisy(report, 0.5), 1.5, None)
    law = np.diag(stats.poisson.pmf(np.arange(60), 3.0))
    assert p_value(law, found) > FALSE_ALARM / 4
    data = PrivatizedCounts(np.array([[report, 0]]), 0.5)
    given = likelihood_of(1.0 - 1e-8, "column", (1, 2))
    assert np.isfinite(drawn(data, np.array([[1.0]]), np.full((2, 1), 1e-9), *given, most=2)[2]).all()


@pytest.mark.parametrize(("p", "alpha"), [*itertools.product([2.1e-9, 0.5, 1.0 - 2.1e-9], [0.01, 0.5, 0.99])])
def test_extremes_are_finite_and_possible(p, alpha):
    rng = np.random.default_rng(7)
    theta, phi = rng.gamma(0.1, 1.0, (40, 2)), rng.gamma(0.1, 1.0, (60, 2))
    theta[3], phi[4] = 1e-150, 0.0
    data = PrivatizedCounts(rng.integers(-2, 5, (40, 60)), alpha)
    rows, counts, tally = drawn(data, theta, phi, *likelihood_of(p, "column", data.shape), most=1)
    assert np.isfinite(rows).all()
    assert not counts[4].any()
    assert (tally[:60] >= tally[60:]).all()
    np.testing.assert_array_equal(tally[60:], counts.sum(axis=1))


def test_tokens_of_a_topic_come_in_several_portions():
    phi = np.array([[1.0], [3.0]])
    rows, counts, _ = drawn(PrivatizedCounts(np.zeros((50, 2), dtype=int), 0.5), np.full((50, 1), 5000.0), phi, most=0)
    assert rows.mean() > 5 * kernels.TOKENS_AT_ONCE
    expected = 5000.0 * 0.5 * phi[:, 0] * 50
    assert (np.abs(counts[:, 0] - expected) < 5.0 * np.sqrt(expected)).all()


def aliases_of(weights):
    """The tables of weights (K, V)."""
    found = np.full(weights.shape, UNTOUCHED)
    kernels.fill_aliases(np.ascontiguousarray(weights, dtype=float), found)
    return found


def law_of_table(table):
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
        np.testing.assert_allclose(law_of_table(table), weight / weight.sum(), rtol=1e-9, atol=2.0**-33)
        assert np.abs(law_of_table(table) - weight / weight.sum()).sum() < 2.0**-32
        assert (law_of_table(table)[weight == 0.0] == 0.0).all()


def test_a_topic_without_weight_gets_no_table():
    assert (aliases_of(np.zeros((1, 3))) == UNTOUCHED).all()


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


@kernel
def poisson_numbers(rate, n, rng):
    found = np.empty(n, dtype=np.int64)
    for i in range(n):
        found[i] = kernels.poisson(rate, rng.random(), rng)
    return found


@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.3, 5.0, 12.0, 13.0, 400.0])
def test_poisson_numbers(rate):
    rng, n = np.random.default_rng(3), 40_000
    found = poisson_numbers(rate, n, rng)
    edges = np.unique(stats.poisson.ppf([0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98], rate))
    observed = np.array([(found <= edge).sum() for edge in edges] + [n])
    expected = n * np.append(stats.poisson.cdf(edges, rate), 1.0)
    chi = [
        (a - b) ** 2 / b
        for a, b in zip(np.diff(observed, prepend=0), np.diff(expected, prepend=0), strict=True)
        if b > 0
    ]
    assert sum(chi) < stats.chi2.isf(FALSE_ALARM, len(edges))
