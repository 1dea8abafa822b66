"""Counts given totals of rows and of columns at once: against all tables with these totals, written out."""

import itertools

import numpy as np
import pytest

import countveil as cv
from tests import reference
from tests.laws.noise.laws import log_mass, suppressed, triangle

m = cv.mechanisms
NAN = np.nan
RATES = np.array([[2.0, 4.0, 1.5], [3.0, 2.5, 5.0], [1.0, 3.5, 2.0]])
HIDES, ROUNDS = m.Suppression(6), m.RandomRounding(3)
NO_RECTANGLE = [[12.0, NAN, NAN], [NAN, 14.0, NAN], [NAN, NAN, 11.0]]  # hidden cells are one cycle of six
MOST_HIDDEN = [[NAN, NAN, NAN], [NAN, 7.0, NAN], [NAN, NAN, 9.0]]
CASES = {
    "one cycle of six": (HIDES, NO_RECTANGLE, [[12, 3, 2], [3, 14, 3], [3, 3, 11]], None),
    "most hidden": (HIDES, MOST_HIDDEN, [[2, 3, 2], [3, 7, 4], [1, 4, 9]], None),
    "most hidden, bursty": (HIDES, MOST_HIDDEN, [[2, 3, 2], [3, 7, 4], [1, 4, 9]], 0.6),
    "rounded": (ROUNDS, [[3.0, 6.0, 0.0], [0.0, 3.0, 6.0]], [[2, 6, 1], [1, 4, 5]], None),
}


def logs_of_cells(mechanism, reports, p, rates):
    """log P(count) P(report | count) of counts from 0 on, for each cell."""
    y, logs = np.arange(20), []
    for report, rate in zip(np.ravel(reports), rates.ravel(), strict=True):
        kernel = suppressed(report, y, 6, 1) if mechanism is HIDES else triangle(report, y, 3)
        logs.append(log_mass(y, rate, p)[0] + kernel)
    return logs


def all_tables(logs, truth):
    """Every count that its report allows, and of these tables those with all the totals."""
    truth = np.array(truth)
    every = np.array(list(itertools.product(*(np.flatnonzero(np.isfinite(each)) for each in logs))))
    shaped = every.reshape(-1, *truth.shape)
    same = (shaped.sum(axis=2) == truth.sum(axis=1)).all(axis=1)
    return every[same & (shaped.sum(axis=1) == truth.sum(axis=0)).all(axis=1)]


def law_of_tables(tables, logs):
    law = np.exp(sum(own[tables[:, i]] for i, own in enumerate(logs)))
    return law / law.sum()


def both(truth):
    truth = np.array(truth)
    return [(1, truth.sum(axis=1)), (0, truth.sum(axis=0))]


def drawn(mechanism, reports, truth, p, rates, copies=250, sweeps=8):
    rng, totals = np.random.default_rng(1), both(truth)
    given = {"sweeps": sweeps, "dispersion": p}
    return [
        cv.sample_counts_given_totals(reports, rates, mechanism, totals, rng, **given) for _ in range(copies)
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_law_of_all_tables_with_these_totals(name):
    mechanism, reports, truth, p = CASES[name]
    rates = RATES[: len(truth)]
    logs = logs_of_cells(mechanism, reports, p, rates)
    tables = all_tables(logs, truth)
    assert len(tables) > 3
    place = {tuple(table): i for i, table in enumerate(tables.tolist())}
    draws = drawn(mechanism, reports, truth, p, rates)
    found = [place[tuple(each.ravel().tolist())] for each in draws]

    def p_value(logs):
        law = law_of_tables(tables, logs)
        order = np.argsort(law)
        rank = np.empty(order.size, dtype=int)
        rank[order] = np.arange(order.size)
        return reference.chi_square_p_value(rank[found], 0, law[order])

    other = rates * np.where(np.arange(3) == 1, [[3.0], [1 / 3], [1.0]][: len(truth)], 1.0)
    assert p_value(logs) > 1e-4
    assert p_value(logs_of_cells(mechanism, reports, p, other)) < 1e-4


def test_large_tables_meet_all_totals_and_keep_what_is_shown():
    rng = np.random.default_rng(2)
    counts = rng.poisson(rng.gamma(0.7, 12.0, (40, 15)))
    reports = cv.simulate_reports(counts, m.Suppression(10), rng)
    found = [
        cv.sample_counts_given_totals(reports, 8.0, m.Suppression(10), both(counts), rng, sweeps=n)
        for n in (2, 9)
    ]
    for table in found:
        np.testing.assert_array_equal(table.sum(axis=1), counts.sum(axis=1))
        np.testing.assert_array_equal(table.sum(axis=0), counts.sum(axis=0))
        shown = ~np.isnan(reports)
        np.testing.assert_array_equal(table[shown], counts[shown])
        assert table[~shown].min() > 0
        assert table[~shown].max() < 10
    assert (found[0] != found[1]).any()


def test_counts_that_totals_leave_no_choice_are_found():
    truth = np.array([[12, 3, 15], [4, 20, 30], [5, 2, 11]])
    reports = np.where(truth < 10, NAN, truth)
    found = cv.sample_counts_given_totals(
        reports, 3.0, m.Suppression(10), both(truth), np.random.default_rng(1), sweeps=1
    )
    np.testing.assert_array_equal(found, truth)


def test_rectangles_alone_would_not_move_a_cycle_of_six():
    tables = {each.tobytes() for each in drawn(*CASES["one cycle of six"], RATES, copies=60)}
    assert len(tables) > 2


@pytest.mark.parametrize(
    ("reports", "totals", "message"),
    [
        ([[NAN, NAN]], [(1, [9]), (0, [4, 6])], "possible together"),
        ([[NAN, NAN]], [(0, [4, 6]), (-2, [4, 7])], "possible together"),
        ([[NAN, NAN]], [(1, [24]), (0, [12, 12])], "one of 12 from cells that add up to between 1 and 9"),
        ([[NAN, 12], [12, NAN]], [(1, [13, 14]), (0, [14, 13])], "possible together"),
    ],
)
def test_totals_that_do_not_go_together_are_refused(reports, totals, message):
    with pytest.raises(ValueError, match=message):
        cv.sample_counts_given_totals(
            reports, 3.0, m.Suppression(10), totals, np.random.default_rng(1), sweeps=1
        )
