"""Counts whose sums overlap or are reported with noise: against all tables, written out."""

import itertools

import numpy as np
import pytest

import countveil as cv
from countveil.data.totals import is_nested
from countveil.inference import totals
from countveil.inference.streams import Streams
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.laws.counts.laws import law_of
from countveil.laws.noise.laws import law_of as law_of_reports
from tests import reference
from tests.joint import SERIAL
from tests.laws.noise.laws import log_mass
from tests.plain import PLAIN, repeated, takes_many_draws

pytestmark = pytest.mark.long

m = cv.mechanisms
NAN = np.nan
COPIES = repeated(2_000)
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
    allowed = [
        y[np.isfinite(own) if short else own > own.max() - 25.0] for own, short in zip(logs, few, strict=True)
    ]
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
