"""Counts given exact totals: against all tables with these totals, written out."""

import doctest
import itertools

import numpy as np
import pandas as pd
import pytest

import countveil as cv
import countveil.bridges.counts_given_totals
from countveil.bridges.counts_given_totals import families_of
from countveil.bridges.protected_counts import read_cells
from countveil.kernels.totals import meet_totals
from tests import reference
from tests.kernels import test_totals as overlapping
from tests.laws.noise.laws import log_mass, suppressed, triangle

pytestmark = pytest.mark.long

m = cv.mechanisms
NAN = np.nan
RATES = np.array([0.7, 3.0, 5.0, 12.0])
CASES = {
    "suppression": (m.Suppression(6), [NAN, NAN, NAN, 11.0], lambda r, y: suppressed(r, y, 6, 1), 20),
    "random rounding": (m.RandomRounding(3), [0.0, 3.0, 6.0, 9.0], lambda r, y: triangle(r, y, 3), 17),
}


def all_tables(reports, kernel, total, p, most=20):
    """(tables, their law) with counts up to most; p is one, or one for each count."""
    y, own = np.arange(most + 1), [p] * len(reports) if p is None or np.isscalar(p) else p
    logs = [log_mass(y, mu, q)[0] + kernel(r, y) for r, mu, q in zip(reports, RATES, own, strict=True)]
    allowed = [y[np.isfinite(each)] for each in logs]
    tables = [t for t in itertools.product(*allowed) if sum(t) == total]
    law = np.exp([sum(each[n] for each, n in zip(logs, t, strict=True)) for t in tables])
    return tables, law / law.sum()


def drawn(mechanism, reports, total, p, copies, rates=RATES, seed=1):
    """Tables as rows of one call."""
    return cv.sample_counts_given_totals(
        np.tile(reports, (copies, 1)), rates, mechanism, (1, np.full(copies, total)),
        np.random.default_rng(seed), sweeps=12, dispersion=p,
    )  # fmt: skip


@pytest.mark.parametrize("p", [None, 0.6], ids=["poisson", "bursty"])
@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_law_of_all_tables_with_the_total(name, p):
    mechanism, reports, kernel, total = CASES[name]
    tables, law = all_tables(reports, kernel, total, p)
    place = {table: i for i, table in enumerate(tables)}
    assert len(tables) > 5

    def p_value(rates):
        draws = drawn(mechanism, reports, total, p, 8_000, rates)
        assert (draws.sum(axis=1) == total).all()
        order = np.argsort(law)
        rank = np.empty(order.size, dtype=int)
        rank[order] = np.arange(order.size)
        ranks = rank[[place[tuple(row)] for row in draws.tolist()]]
        return reference.chi_square_p_value(ranks, 0, law[order])

    assert p_value(RATES) > 1e-4
    assert p_value(RATES * [1.0, 1.0, 1.3, 1.0]) < 1e-4


@pytest.mark.parametrize("p", [None, 0.6], ids=["poisson", "bursty"])
def test_two_hidden_counts_have_the_law_of_two(p):
    rates, total = np.array([4.0, 3.0]), 12
    draws = cv.sample_counts_given_totals(
        np.full((20_000, 2), NAN), rates, m.Suppression(12), (1, np.full(20_000, total)),
        np.random.default_rng(1), sweeps=1, dispersion=p,
    )  # fmt: skip
    y = np.arange(1, total)
    logs = log_mass(y, rates[0], p)[0] + log_mass(total - y, rates[1], p)[0]
    law = np.exp(logs - logs.max())
    assert reference.chi_square_p_value(draws[:, 0], 1, law / law.sum()) > 1e-4


def test_large_counts_under_noise_have_the_law_of_two():
    rates, reports, total = np.array([900.0, 1_200.0]), np.array([905.0, 1_190.0]), 2_110
    draws = cv.sample_counts_given_totals(
        np.tile(reports, (20_000, 1)), rates, m.DiscreteGaussian(8), (1, np.full(20_000, total)),
        np.random.default_rng(1), sweeps=1,
    )  # fmt: skip
    y = np.arange(total + 1)
    logs = sum(
        log_mass(count, rate, None)[0] - 0.5 * ((r - count) / 8) ** 2
        for count, rate, r in zip((y, total - y), rates, reports, strict=True)
    )
    law = np.exp(logs - logs.max())
    assert reference.chi_square_p_value(draws[:, 0], 0, law / law.sum()) > 1e-4


def test_totals_over_axes_and_groups_are_met_and_counts_in_none_are_free():
    rng = np.random.default_rng(3)
    counts = rng.poisson(4.0, (6, 5, 4))
    reports = cv.simulate_reports(counts, m.Suppression(10, shows_zero=False), rng)
    given = reports, 4.0, m.Suppression(10, shows_zero=False)
    for axis in (0, (1, 2), (0, 1, 2)):
        found = cv.sample_counts_given_totals(*given, (axis, counts.sum(axis=axis)), rng, sweeps=3)
        np.testing.assert_array_equal(found.sum(axis=axis), counts.sum(axis=axis))
        shown = ~np.isnan(reports)
        np.testing.assert_array_equal(found[shown], counts[shown])
    groups = rng.integers(-1, 7, counts.shape)
    wanted = np.bincount(groups[groups >= 0], counts[groups >= 0], minlength=7).astype(int)
    found = cv.sample_counts_given_totals(*given, (groups, wanted), rng, sweeps=3)
    np.testing.assert_array_equal(np.bincount(groups[groups >= 0], found[groups >= 0], minlength=7), wanted)
    assert found[groups == -1].std() > 0


def test_one_seed_gives_one_result():
    mechanism, reports, _, total = CASES["suppression"]
    np.testing.assert_array_equal(
        drawn(mechanism, reports, total, None, 50), drawn(mechanism, reports, total, None, 50)
    )


@pytest.mark.parametrize(
    ("totals", "message"),
    [
        ((0, [30, 5]), "got one of 30 from cells that add up to between 0 and 9"),
        ((0, [5]), r"shape \(2,\)"),
        ((2, [5, 5]), "axis of totals"),
        (([[0, 2]], [5, 5]), "from -1 to 1, got 2"),
        (([0, 1], [5, 5]), "groups of totals must have the shape"),
        ((0, [-1, 5]), "non-negative"),
    ],
)
def test_totals_that_do_not_fit_are_refused(totals, message):
    with pytest.raises(ValueError, match=message):
        cv.sample_counts_given_totals(
            [[NAN, NAN]], 2.0, m.Suppression(10, shows_zero=False), totals, np.random.default_rng(1), sweeps=1
        )


def test_other_arguments_that_do_not_fit_are_refused():
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match="sweeps must be"):
        cv.sample_counts_given_totals([12], 2.0, m.Suppression(10), (0, 12), rng, sweeps=0)
    with pytest.raises(TypeError, match="totals must be a pair"):
        cv.sample_counts_given_totals([12], 2.0, m.Suppression(10), 3, rng, sweeps=1)
    table = m.Table([[1.0, 0.0], [0.5, 0.5]])
    with pytest.raises(ValueError, match="log-concave"):
        cv.sample_counts_given_totals([0, 1], 2.0, table, (0, 1), rng, sweeps=1)


def test_docstring_runs():
    assert doctest.testmod(countveil.bridges.counts_given_totals).failed == 0


def test_sums_that_nothing_can_meet_end():
    """Totals are checked before; what cannot be met all the same must not run for ever."""
    with pytest.raises(ValueError, match="total 1 must be 0, since no cell is in it"):
        cv.sample_counts_given_totals(
            [NAN, NAN], 3.0, m.Suppression(10), ([0, 0], [10, 5]), np.random.default_rng(1), sweeps=1
        )
    kernels, cells, _ = read_cells([NAN, NAN], 3.0, m.Suppression(10), None)
    counts = np.array([1, 2])
    meet_totals(kernels, cells.code, np.array([0, 2, 2]), np.array([100, 5]), counts)
    assert counts.tolist() == [9, 9]


@pytest.mark.parametrize("both", [False, True])
def test_totals_with_labels_must_be_in_the_order_of_the_reports(both):
    reports = pd.DataFrame([[NAN, NAN], [NAN, NAN]], ["a", "b"], ["x", "y"])
    rows = pd.Series([4, 9], ["a", "b"])

    def drawn(own):
        totals = [(1, own), (0, [6, 7])] if both else (1, own)
        return cv.sample_counts_given_totals(
            reports, 3.0, m.Suppression(10), totals, np.random.default_rng(1), sweeps=1
        )

    assert drawn(rows).sum(axis=1).tolist() == [4, 9]
    with pytest.raises(ValueError, match="totals must have the row labels of reports in their order"):
        drawn(rows[::-1])


@pytest.mark.parametrize("p", [None, 0.6], ids=["poisson", "bursty"])
def test_draws_given_noisy_totals_that_overlap_have_the_law_of_all_tables(p):
    reports, mechanism, rates, families = overlapping.CASES["exact rows and noisy columns"]
    tables, law = overlapping.all_tables(reports, mechanism, rates, families, p)
    copies = 2_000
    totals = [(axis + 1, np.tile(sums, (copies, 1)), *by) for axis, sums, *by in families]
    found = cv.sample_counts_given_totals(
        np.tile(reports, (copies, 1, 1)), rates, mechanism, totals, np.random.default_rng(1), sweeps=12, dispersion=p
    )
    assert overlapping.p_value(found.reshape(copies, -1), tables, law) > 1e-4
    other = overlapping.all_tables(reports, mechanism, rates * [1.0, 1.5, 1.0], families, p)
    assert overlapping.p_value(found.reshape(copies, -1), *other) < 1e-4


def test_what_totals_may_be():
    assert families_of((1, [3, 4])) == [(1, [3, 4])]
    assert families_of([(1, 2), (30, 40)]) == [((1, 2), (30, 40))]
    assert families_of([(1, [3, 4]), (0, [3, 4])]) == [(1, [3, 4]), (0, [3, 4])]
    assert families_of((1, [3, 4], m.RandomRounding(3))) == [(1, [3, 4], m.RandomRounding(3))]
    assert families_of([(1, [3, 4]), ((0, 1), 7)]) == [(1, [3, 4]), ((0, 1), 7)]
    with pytest.raises(ValueError, match="one of 9 from cells that add up to between 11 and 18"):
        cv.sample_counts_given_totals(
            [[10, NAN]], 3.0, m.Suppression(9), [(1, [9]), ((0, 1), 10, m.Rounding(10))],
            np.random.default_rng(1), sweeps=1,
        )  # fmt: skip
