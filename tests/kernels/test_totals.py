"""Counts whose sums are known or reported, overlapping or not: against all tables, written out; flows within bounds."""

import itertools

import numpy as np
import pytest

import countveil as cv
from countveil.data.totals import NONE, flows_of, is_nested
from countveil.inference import totals
from countveil.inference.streams import Streams
from countveil.kernels.totals import meet_bounds
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.laws.counts.laws import law_of
from countveil.laws.noise.laws import law_of as law_of_reports
from tests import reference
from tests.joint import SERIAL
from tests.laws.noise.laws import log_mass, suppressed, triangle
from tests.plain import PLAIN, repeated, takes_many_draws

m = cv.mechanisms
NAN = np.nan
COPIES = repeated(1_200)
HIDES, ROUNDS = m.Suppression(6), m.RandomRounding(3)
SIX = np.array([[2.0, 4.0, 1.5], [3.0, 2.5, 5.0]])
NINE = np.array([[2.0, 4.0, 1.5], [3.0, 2.5, 5.0], [1.0, 3.5, 2.0]])
EIGHT = np.array([[[2.0, 1.0], [1.5, 3.0]], [[0.7, 2.0], [2.5, 1.0]]])
TWELVE = np.array([[[1.5, 3.0, 2.0], [2.0, 1.0, 1.0]], [[2.5, 1.0, 1.0], [1.5, 1.0, 1.0]]])
BY_PAIRS = [(axis, EIGHT.sum(axis=axis).round() + 1.0, m.TwoSidedGeometric(0.4)) for axis in (0, 1, 2)]

# reports, mechanism, rates, and totals: (axis, values, mechanism or "exact")
CASES = {
    "noisy rows": ([[NAN, NAN, 7.0], [NAN, NAN, 0.0]], HIDES, SIX, [(1, [14.0, 9.0], m.DiscreteGaussian(1))]),
    "hidden and rounded rows": (
        [[NAN, NAN, 0.0], [NAN, NAN, 0.0]], HIDES, SIX,
        [(1, [NAN, 9.0], m.Suppression(9)), (0, [6.0, 6.0, 0.0], ROUNDS)],
    ),
    "rows, columns and all, rounded by chance": (
        [[NAN, 0.0, NAN], [NAN, NAN, 9.0]], HIDES, SIX,
        [(1, [6.0, 15.0], ROUNDS), (0, [6.0, 3.0, 12.0], ROUNDS), ((0, 1), 21.0, ROUNDS)],
    ),
    "exact rows and noisy columns": (
        [[NAN, NAN, NAN], [NAN, 8.0, NAN]], HIDES, SIX,
        [(1, [8.0, 15.0]), (0, [4.0, 12.0, 9.0], m.DiscreteGaussian(0.7))],
    ),
    "exact rows and columns": (
        [[9.0, NAN, NAN], [NAN, 14.0, NAN], [NAN, NAN, 11.0]], HIDES, NINE,
        [(1, [14.0, 20.0, 17.0]), (0, [15.0, 19.0, 17.0])],
    ),
    "rates of next to nothing": (
        np.full((2, 3), NAN), m.Suppression(6, False), np.full((2, 3), 1e-150), [(1, [3.0, 3.0]), (0, [2.0] * 3)],
    ),
    "three cells of one row and one column": (
        [[[NAN, NAN, NAN], [NAN, 0.0, 0.0]], [[NAN, 0.0, 0.0], [NAN, 0.0, 0.0]]], HIDES, TWELVE,
        [((1, 2), [8.0, 4.0]), ((0, 2), [8.0, 4.0])],
    ),
    "pairs of three axes": (np.full((2, 2, 2), NAN), m.Suppression(4, False), EIGHT, BY_PAIRS),
    "noisy counts": (
        [[45.0, 60.0]], m.DiscreteGaussian(8), np.array([[50.0, 55.0]]), [(1, [120.0], m.DiscreteGaussian(4))],
    ),
}  # fmt: skip
BURSTY = "noisy rows", "noisy counts", "exact rows and columns", "rates of next to nothing"


def own_totals(shape, given):
    """(cells in it, log P(report | sum) of sums from 0 on) of every total."""
    for axis, values, *by in given:
        group = np.arange(np.size(values)).reshape(np.sum(np.zeros(shape), axis=axis, keepdims=True).shape)
        for t, value in enumerate(np.ravel(values)):
            sums = np.arange(400)
            if by:
                log = law_of_reports(by[0]).log_kernel(np.full(400, value), sums)
            else:
                log = np.where(sums == value, 0.0, -np.inf)
            yield np.flatnonzero(np.broadcast_to(group, shape).ravel() == t), log


def all_tables(reports, mechanism, rates, given, p):
    """(tables, their law) with counts up to 110 of which any matter."""
    y, logs = np.arange(111), []
    for report, rate in zip(np.ravel(reports), rates.ravel(), strict=True):
        kernel = law_of_reports(mechanism).log_kernel(np.full(y.size, report), y)
        logs.append(log_mass(y, rate, p)[0] + kernel)
    few = [np.isfinite(own).sum() < 8 for own in logs]
    allowed = [y[np.isfinite(own) if short else own > own.max() - 25.0] for own, short in zip(logs, few, strict=True)]
    tables = np.array(list(itertools.product(*allowed)))
    log = sum(own[tables[:, i]] for i, own in enumerate(logs))
    for cells, own in own_totals(rates.shape, given):
        log = log + own[tables[:, cells].sum(axis=1)]
    law = np.exp(log - log.max())
    return tables[law > 0.0], law[law > 0.0] / law.sum()


def drawn(reports, mechanism, rates, given, p, sweeps=12):
    """(copies, cells) tables of a chain each, all of them rows of one data set."""
    shape = (COPIES, *rates.shape)
    values = np.broadcast_to(reports, shape)
    families = [
        (tuple(np.atleast_1d(axis) + 1), np.broadcast_to(sums, (COPIES, *np.shape(sums))), *by)
        for axis, sums, *by in given
    ]
    data = cv.Reports(values, mechanism, totals=families)
    law = law_of(data.noise, POISSON if p is None else NegativeBinomial(p))
    matrices, streams = (np.ones((COPIES, 1)), rates.reshape(-1, 1)), Streams.of_chain(1, 0)
    cells = totals.open_cells(data)
    counts = totals.begin(cells, law, matrices, streams)
    for sweep in range(1, sweeps + 1):
        counts = totals.redrawn(counts, cells, law, matrices, streams, sweep, SERIAL)
    found = np.nan_to_num(values).reshape(COPIES, -1).astype(int)
    found[cells.row, cells.column] = counts
    return found


def p_value(found, tables, law):
    """Of the places of these tables among all of them, in the order of their probability."""
    order = np.argsort(law)
    place = {tuple(tables[i].tolist()): rank for rank, i in enumerate(order)}
    ranks = np.array([place[tuple(table)] for table in found.tolist()])
    return reference.chi_square_p_value(ranks, 0, law[order])


@pytest.mark.long
@pytest.mark.parametrize(("name", "p"), [(name, None) for name in CASES] + [(name, 0.6) for name in BURSTY])
def test_draws_have_the_law_of_all_tables(name, p):
    reports, mechanism, rates, given = CASES[name]
    tables, law = all_tables(reports, mechanism, rates, given, p)
    assert len(tables) > 3
    found = drawn(reports, mechanism, rates, given, p)
    assert p_value(found, tables, law) > 1e-4
    skewed = rates * np.where(np.arange(rates.size).reshape(rates.shape) % 3 == 1, 1.5, 1.0)
    if name not in ("exact rows and columns", "rates of next to nothing") and not PLAIN:
        skewed_law = all_tables(reports, mechanism, skewed, given, p)
        assert p_value(found, *skewed_law) < 1e-4


@pytest.mark.long
@takes_many_draws
def test_a_wrong_kernel_at_the_sum_is_seen():
    reports, mechanism, rates, given = CASES["noisy rows"]
    found = drawn(reports, mechanism, rates, [(1, [14.0, 9.0], m.DiscreteGaussian(1.3))], None)
    assert p_value(found, *all_tables(reports, mechanism, rates, given, None)) < 1e-4


def test_nested_families_are_seen():
    county, state, age = np.array([0, 0, 1, 1, 2, -1]), np.array([0, 0, 0, 0, 1, 1]), np.arange(6) % 2
    assert is_nested(county, state)
    assert not is_nested(state, county)
    assert not is_nested(age, state)


# Totals of rows and of columns at once

NO_RECTANGLE = [[12.0, NAN, NAN], [NAN, 14.0, NAN], [NAN, NAN, 11.0]]  # hidden cells are one cycle of six
MOST_HIDDEN = [[NAN, NAN, NAN], [NAN, 7.0, NAN], [NAN, NAN, 9.0]]
CROSSING = {
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


def tables_with_totals(logs, truth):
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


def crossing_tables(mechanism, reports, truth, p, rates, copies=250, sweeps=8):
    rng, totals = np.random.default_rng(1), both(truth)
    given = {"sweeps": sweeps, "dispersion": p}
    return [cv.sample_counts_given_totals(reports, rates, mechanism, totals, rng, **given) for _ in range(copies)]


@pytest.mark.long
@pytest.mark.parametrize("name", CROSSING)
def test_draws_have_the_law_of_all_tables_with_these_totals(name):
    mechanism, reports, truth, p = CROSSING[name]
    rates = NINE[: len(truth)]
    logs = logs_of_cells(mechanism, reports, p, rates)
    tables = tables_with_totals(logs, truth)
    assert len(tables) > 3
    place = {tuple(table): i for i, table in enumerate(tables.tolist())}
    draws = crossing_tables(mechanism, reports, truth, p, rates)
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
        cv.sample_counts_given_totals(reports, 8.0, m.Suppression(10), both(counts), rng, sweeps=n) for n in (2, 9)
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
    tables = {each.tobytes() for each in crossing_tables(*CROSSING["one cycle of six"], NINE, copies=60)}
    assert len(tables) > 2


@pytest.mark.parametrize(
    ("reports", "totals", "message"),
    [
        ([[NAN, NAN]], [(1, [9]), (0, [4, 6])], "agree with each other"),
        ([[NAN, NAN]], [(0, [4, 6]), (-2, [4, 7])], "agree with each other"),
        ([[NAN, NAN]], [(1, [24]), (0, [12, 12])], "one of 24 from cells that add up to between 2 and 18"),
        (
            [[NAN, 12], [12, NAN]],
            [(1, [13, 14]), (0, [14, 13])],
            "the total of column 0 is 14, but the total of row 0 is 13",
        ),
    ],
)
def test_totals_that_do_not_go_together_are_refused(reports, totals, message):
    with pytest.raises(ValueError, match=message):
        cv.sample_counts_given_totals(reports, 3.0, m.Suppression(10), totals, np.random.default_rng(1), sweeps=1)


# Flows within bounds, against all tables of small counts

ROWS, COLUMNS, MOST = 2, 3, 2
ROW, COLUMN = (axis.ravel() for axis in np.indices((ROWS, COLUMNS)))
WHOLE = ROWS + COLUMNS  # the number of the total of all cells; those of rows and columns come before it
TABLES = np.array(list(itertools.product(range(MOST + 1), repeat=ROWS * COLUMNS)))


def sums_of_tables(tables):
    table = tables.reshape(-1, ROWS, COLUMNS)
    return np.concatenate([table.sum(axis=2), table.sum(axis=1), table.sum(axis=(1, 2))[:, None]], axis=1)


def moved_to_bounds(low, high, counts):
    """(whether bounds of all totals can be met, counts moved_to_bounds to meet them)."""
    side = np.stack([ROW, ROWS + COLUMN], axis=1)
    parents = np.full((2, WHOLE + 1), NONE)
    parents[0, :ROWS], parents[0, WHOLE], parents[1, ROWS:WHOLE] = WHOLE, WHOLE + 1, WHOLE + 1
    graph = flows_of(side, parents)
    flow = np.concatenate([sums_of_tables(counts)[0], counts])
    least, most = np.zeros(counts.size, dtype=np.int64), np.full(counts.size, MOST)
    met = meet_bounds(graph, np.concatenate([low, least]), np.concatenate([high, most]), flow)
    np.testing.assert_array_equal(flow[: WHOLE + 1], sums_of_tables(flow[WHOLE + 1 :])[0])
    return met, flow[WHOLE + 1 :]


@pytest.mark.parametrize("wide", [0, 1, 3])
def test_bounds_are_met_if_any_counts_meet_them(wide):
    rng, possible, every = np.random.default_rng(wide), 0, sums_of_tables(TABLES)
    for _ in range(150):
        low = np.maximum(sums_of_tables(rng.choice(TABLES))[0] + rng.integers(-1, 2, WHOLE + 1), 0)
        if rng.random() < 0.5:
            low = sums_of_tables(rng.choice(TABLES))[0]
        high = low + rng.integers(0, wide + 1, WHOLE + 1)
        met, counts = moved_to_bounds(low, high, rng.choice(TABLES))
        assert met == ((low <= every) & (every <= high)).all(axis=1).any()
        possible += met
        if met:
            assert ((low <= sums_of_tables(counts)[0]) & (sums_of_tables(counts)[0] <= high)).all()
            assert counts.min() >= 0
            assert counts.max() <= MOST
    assert 30 < possible < 145


def test_counts_that_meet_all_bounds_stay():
    counts = np.array([2, 0, 1, 1, 1, 0])
    met, found = moved_to_bounds(sums_of_tables(counts)[0], sums_of_tables(counts)[0], counts)
    assert met
    np.testing.assert_array_equal(found, counts)
