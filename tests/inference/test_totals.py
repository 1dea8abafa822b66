"""Counts of cells in known totals: their law, the joint law of sweeps with them, and what a chain makes of them."""

import numpy as np
import pytest

import countveil as cv
from countveil.inference import checkpoint, gibbs, totals
from countveil.inference.streams import Streams
from countveil.likelihoods import POISSON, NegativeBinomial
from countveil.likelihoods.laws import law_of
from tests import reference
from tests.inference.test_any_mechanism import reported
from tests.joint import SERIAL, bound
from tests.likelihoods.test_negative_binomial import joint_scores
from tests.test_known_totals import CASES, RATES, all_tables

m = cv.mechanisms
BY_COLUMN = np.array([0.3, 0.9, 0.6, 0.8])
HIDES = [m.Suppression(4), m.Suppression(6, False), m.RandomRounding(3), m.DiscreteGaussian(1)]


def with_totals(axis, mechanisms, unknown=None):
    """Counts protected by row, with their sums, one of which may be unknown."""

    def read(counts, mask, rng):
        sums = counts.sum(axis=axis).astype(float)
        if unknown is not None:
            sums[unknown] = np.nan
        return cv.Reports(reported(counts, mechanisms, rng), mechanisms, mask, totals=[(axis, sums)])

    return read


def by_groups(counts, mask, rng):
    """Groups across rows and columns, the last of which has no total."""
    group = np.arange(counts.size).reshape(counts.shape) % 4 - 1
    sums = np.bincount(group.ravel() + 1, counts.ravel())[1:]
    return cv.Reports(reported(counts, HIDES, rng), HIDES, mask, totals=[(group, sums)])


@pytest.mark.parametrize(
    ("likelihood", "read"),
    [
        (POISSON, with_totals(1, HIDES)),
        (POISSON, with_totals(0, HIDES, unknown=1)),
        (NegativeBinomial("global"), by_groups),
    ],
    ids=["rows", "columns", "groups"],
)
def test_sweeps_leave_the_joint_law_as_it_is(likelihood, read):
    z = joint_scores(likelihood, "topics", read, sweeps=800)
    assert z.max() < bound(len(z))


def test_the_joint_law_shows_counts_that_are_moved_by_other_rates(monkeypatch):
    right = totals.rates_of
    monkeypatch.setattr(totals, "rates_of", lambda cells, part, given: right(cells, part, given) ** 2)
    z = joint_scores(POISSON, "topics", with_totals(1, [m.Suppression(60, False)] * 4), sweeps=800)
    assert z.max() > bound(len(z))


@pytest.mark.parametrize("p", [None, 0.6, BY_COLUMN], ids=["poisson", "bursty", "bursty by column"])
def test_moves_reach_the_law_of_all_tables_with_the_total(p):
    mechanism, reports, kernel, total = CASES["suppression"]
    each = p if isinstance(p, np.ndarray) else [p] * len(reports)
    tables, law = all_tables(reports, kernel, total, each)
    place, copies = {table: i for i, table in enumerate(tables)}, 4_000
    sums = np.full(copies, float(total))
    data = cv.Reports(np.tile(reports, (copies, 1)), mechanism, totals=[(1, sums)])
    likelihood, parameters = POISSON if p is None else NegativeBinomial(0.6), ()
    if p is BY_COLUMN:
        likelihood, parameters = NegativeBinomial("column"), (p, np.array([0.5]), np.array([2.0]))

    def p_value(rates):
        matrices = np.ones((copies, 1)), rates[:, None] * 1.0
        given = law_of(data.noise, likelihood, parameters)
        counts = totals.begin(data, given, matrices, Streams.of_chain(1, 0))
        for sweep in range(1, 11):
            counts = totals.redrawn(counts, data, given, matrices, Streams.of_chain(1, 0), sweep, SERIAL)
        cells = totals.open_cells(data)
        found = np.tile(np.nan_to_num(reports), (copies, 1)).astype(int)
        found[cells.row, cells.column] = counts
        assert (found.sum(axis=1) == total).all()
        order = np.argsort(law)
        rank = np.empty(order.size, dtype=int)
        rank[order] = np.arange(order.size)
        ranks = rank[[place[tuple(row)] for row in found.tolist()]]
        return reference.chi_square_p_value(ranks, 0, law[order])

    assert p_value(RATES) > 1e-4
    assert p_value(RATES * [1.0, 1.0, 1.4, 1.0]) < 1e-4


def table(rng):
    rate = rng.gamma(0.7, 1.0, (30, 2)) @ rng.gamma(0.7, 4.0, (2, 12))
    counts = rng.poisson(rate)
    reports = np.asarray(cv.simulate_reports(counts, m.Suppression(10), rng), dtype=float)
    return counts, reports


def fitted(data, **options):
    options = {"draws": 12, "tune": 12, "chains": 2, "seed": 3, "progress": False} | options
    return cv.TopicModel(2, **options).fit(data)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("axis", [0, 1])
def test_fits_are_the_same_for_any_threads(axis, monkeypatch):
    monkeypatch.setattr(totals, "CELLS_PER_BLOCK", 16)
    counts, reports = table(np.random.default_rng(2))
    sums = counts.sum(axis=axis).astype(float)
    sums[2] = np.nan
    data = cv.Reports(reports, m.Suppression(10), totals=[(axis, sums)])
    whole = fitted(data, threads=1).rate().to_numpy()
    np.testing.assert_array_equal(whole, fitted(data, threads=4).rate().to_numpy())
    assert len(totals.open_cells(data).blocks) > 1
    without = fitted(cv.Reports(reports, m.Suppression(10))).rate().to_numpy()
    assert np.abs(whole - without).max() > 0.0


def test_every_state_meets_all_totals_and_comes_back_from_a_checkpoint(tmp_path):
    counts, reports = table(np.random.default_rng(2))
    data = cv.Reports(reports, m.Suppression(10), totals=[(0, counts.sum(axis=0))])
    model, streams = cv.TopicModel(2)._given(data).model, Streams.of_chain(1, 0)
    state = gibbs.init(data, model, streams, SERIAL)
    for _ in range(3):
        state, _ = gibbs.step(state, data, model, streams, SERIAL)
        known = totals.with_counts(data, state.counts)
        found = np.zeros(data.shape, dtype=int)
        codes = np.maximum(known.reports, 0)
        found[known.row_numbers, known.columns] = known.noise.kernel.whole_cj[codes, 2]
        np.testing.assert_array_equal(found.sum(axis=0), counts.sum(axis=0))
        np.testing.assert_array_equal(found[~np.isnan(reports)], counts[~np.isnan(reports)])
    draws = (np.zeros((1, 1)),)
    path = tmp_path / "chain.npz"
    checkpoint.write(path, "mark", [checkpoint.Snapshot(state, 0)], draws, 1.0)
    (snapshot,), _ = checkpoint.read(path, "mark", draws)
    again = gibbs.State(*snapshot.state)
    np.testing.assert_array_equal(again.counts, state.counts)
    first, second = (gibbs.step(each, data, model, streams, SERIAL)[0] for each in (state, again))
    np.testing.assert_array_equal(first.factors[0], second.factors[0])
    np.testing.assert_array_equal(first.counts, second.counts)


def test_a_masked_cell_takes_what_its_total_leaves():
    reports, mask = np.array([[12.0, 0.0, 30.0], [11.0, 15.0, 0.0]]), np.zeros((2, 3), dtype=bool)
    mask[0, 1] = True
    data = cv.Reports(reports, m.Suppression(10), mask, totals=[(1, [60, 26])])
    model, streams = cv.TopicModel(2)._given(data).model, Streams.of_chain(1, 0)
    assert gibbs.init(data, model, streams, SERIAL).counts.tolist() == [18]


@pytest.mark.parametrize("method", ["em", "cavi", "svi", "augmented-gibbs"])
def test_other_methods_refuse_totals(method):
    data = cv.Reports([[np.nan, 12.0], [0.0, 15.0]], m.Suppression(10), totals=[(1, [20, 15])])
    with pytest.raises(ValueError, match=r"totals must be None|mechanism must be one of"):
        cv.TopicModel(2, method=method, progress=False).fit(data)


def test_models_that_leave_out_cells_refuse_totals():
    data = cv.Reports([[np.nan, 12.0], [0.0, 15.0]], m.Suppression(10), totals=[(1, [20, 15])])
    with pytest.raises(ValueError, match="totals must be None where cells are hidden"):
        cv.BlockModel(2, progress=False).fit(data)


def test_counts_are_not_predicted_one_by_one_beside_totals():
    data = cv.Reports([[np.nan, 12.0], [0.0, 15.0]], m.Suppression(10), totals=[(1, [20, 15])])
    found = fitted(data)
    with pytest.raises(ValueError, match="X must have no totals"):
        found.predict_counts(1, np.random.default_rng(1), data)
    with pytest.raises(ValueError, match="totals must be None where cells are hidden"):
        cv.hold_out(data, 0.5, seed=1)
