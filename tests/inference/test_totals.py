"""Counts of cells in known totals: their law, the joint law of sweeps with them, and what a chain makes of them."""

import numpy as np
import pytest

import countveil as cv
from countveil.fit.predicting import met
from countveil.inference import checkpoint, gibbs, totals
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.laws.counts.given_reports import CountsGivenReports
from countveil.laws.counts.laws import law_of
from tests import reference
from tests.bridges.test_counts_given_totals import CASES, RATES, all_tables
from tests.inference.test_any_mechanism import reported
from tests.joint import SERIAL, bound
from tests.laws.counts.test_negative_binomial import joint_scores

pytestmark = pytest.mark.long

m = cv.mechanisms
SWEEPS, MORE_SWEEPS, BATCHES = 200, 300, 20
HIDES = [m.Suppression(4), m.Suppression(6, False), m.RandomRounding(3), m.DiscreteGaussian(1)]


def with_totals(axis, mechanisms, unknown=None):
    """Counts protected by row, with their sums, of which one may be unknown."""

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


def with_noisy(*families, off=0.0):
    """Counts protected by row, with families of sums (axis, mechanism or "exact")."""

    def read(counts, mask, rng):
        found = []
        for axis, by in families:
            sums = counts.sum(axis=axis)
            if by != "exact":
                sums = np.asarray(cv.simulate_reports(sums, by, rng), dtype=float) + off
            found.append((axis, sums, by))
        return cv.Reports(reported(counts, HIDES, rng), HIDES, mask, totals=found)

    return read


ROUNDED = with_noisy((1, m.RandomRounding(3)), (0, m.Rounding(5)), ((0, 1), m.Suppression(30)))
MIXED = with_noisy((1, "exact"), (0, m.DiscreteGaussian(1)), ((0, 1), m.TwoSidedGeometric(0.3)))


@pytest.mark.parametrize(
    ("likelihood", "read"),
    [(POISSON, ROUNDED), (NegativeBinomial("global"), MIXED)],
    ids=["rounded rows, columns and all", "exact rows, noisy columns and all"],
)
def test_sweeps_with_noisy_totals_leave_the_joint_law_as_it_is(likelihood, read):
    z = joint_scores(likelihood, "topics", read, sweeps=SWEEPS, batches=BATCHES)
    assert z.max() < bound(len(z), BATCHES)


def test_the_joint_law_shows_a_wrong_kernel_at_the_sum():
    z = joint_scores(POISSON, "topics", with_noisy((1, m.DiscreteGaussian(1)), off=2.0), sweeps=SWEEPS, batches=BATCHES)
    assert z.max() > bound(len(z), BATCHES)


def test_the_joint_law_shows_sums_without_the_counts_that_are_shown(monkeypatch):
    right = totals.sums_of
    monkeypatch.setattr(totals, "sums_of", lambda cells, y: right(cells._replace(fixed_t=0 * cells.fixed_t), y))
    z = joint_scores(POISSON, "topics", with_noisy((0, m.DiscreteGaussian(1))), sweeps=SWEEPS, batches=BATCHES)
    assert z.max() > bound(len(z), BATCHES)


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
    z = joint_scores(likelihood, "topics", read, sweeps=MORE_SWEEPS, batches=BATCHES)
    assert z.max() < bound(len(z), BATCHES)


def test_the_joint_law_shows_counts_that_are_moved_by_other_rates(monkeypatch):
    right = totals.rates_of
    monkeypatch.setattr(totals, "rates_of", lambda *given: right(*given) ** 2)
    z = joint_scores(
        POISSON, "topics", with_totals(1, [m.Suppression(60, False)] * 4), sweeps=MORE_SWEEPS, batches=BATCHES
    )
    assert z.max() > bound(len(z), BATCHES)


LAWS = {
    "poisson": (None, POISSON, False),
    "bursty": (0.6, NegativeBinomial(0.6), False),
    "by column": (np.array([0.6, 0.2, 0.7, 0.5]), NegativeBinomial("column"), False),
    "by row": (np.array([0.6, 0.2, 0.7, 0.5]), NegativeBinomial("row"), True),
}


@pytest.mark.parametrize("name", LAWS)
def test_moves_reach_the_law_of_all_tables_with_the_total(name):
    (mechanism, reports, kernel, total), (p, likelihood, turned) = CASES["suppression"], LAWS[name]
    tables, law = all_tables(reports, kernel, total, p)
    place, copies = {table: i for i, table in enumerate(tables)}, 4_000
    values = np.tile(reports, (copies, 1))
    data = cv.Reports(values.T if turned else values, mechanism, totals=[(0 if turned else 1, np.full(copies, total))])
    own = (p, np.array([0.5]), np.array([2.0])) if isinstance(p, np.ndarray) else ()

    def p_value(rates):
        matrices = np.ones((copies, 1)), rates[:, None] * 1.0
        matrices = matrices[::-1] if turned else matrices
        given = law_of(data.noise, likelihood, own)
        cells, streams = totals.open_cells(data), Streams.of_chain(1, 0)
        counts = totals.begin(cells, given, matrices, streams)
        for sweep in range(1, 11):
            counts = totals.redrawn(counts, cells, given, matrices, streams, sweep, SERIAL)
        found = np.nan_to_num(values.T if turned else values).astype(int)
        found[cells.row, cells.column] = counts
        found = found.T if turned else found
        assert (found.sum(axis=1) == total).all()
        order = np.argsort(law)
        rank = np.empty(order.size, dtype=int)
        rank[order] = np.arange(order.size)
        ranks = rank[[place[tuple(row)] for row in found.tolist()]]
        return reference.chi_square_p_value(ranks, 0, law[order])

    assert p_value(RATES) > 1e-4
    assert p_value(RATES * [1.0, 1.0, 1.5, 1.0]) < 1e-4


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
    plan = Plan(data, model)
    state = gibbs.init(plan, model, streams, SERIAL)
    for _ in range(3):
        state, _ = gibbs.step(state, plan, model, streams, SERIAL)
        known = plan.with_counts(state.counts).data
        found = np.zeros(data.shape, dtype=int)
        codes = np.maximum(known.reports, 0)
        found[known.row_numbers, known.columns] = known.noise.kernel.whole_cj[codes, 2]
        np.testing.assert_array_equal(found.sum(axis=0), counts.sum(axis=0))
        np.testing.assert_array_equal(found[~np.isnan(reports)], counts[~np.isnan(reports)])
    draws = (np.zeros((1, 1)),)
    path = tmp_path / "chain.npz"
    checkpoint.write(path, "mark", 1, [checkpoint.Snapshot(state, 0)], draws, 1.0)
    (snapshot,), _ = checkpoint.read(path, "mark", 1, draws)
    again = gibbs.State(*snapshot.state)
    np.testing.assert_array_equal(again.counts, state.counts)
    first, second = (gibbs.step(each, Plan(data, model), model, streams, SERIAL)[0] for each in (state, again))
    np.testing.assert_array_equal(first.factors[0], second.factors[0])
    np.testing.assert_array_equal(first.counts, second.counts)


def test_a_masked_cell_takes_what_its_total_leaves():
    reports, mask = np.array([[12.0, 0.0, 30.0], [11.0, 15.0, 0.0]]), np.zeros((2, 3), dtype=bool)
    mask[0, 1] = True
    data = cv.Reports(reports, m.Suppression(10), mask, totals=[(1, [60, 26])])
    model, streams = cv.TopicModel(2)._given(data).model, Streams.of_chain(1, 0)
    assert gibbs.init(Plan(data, model), model, streams, SERIAL).counts.tolist() == [18]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial"])
def test_predicted_tables_meet_totals_and_reports_and_laws_of_single_counts_are_refused(likelihood, tmp_path):
    counts, reports = table(np.random.default_rng(4))
    mask = np.zeros(counts.shape, dtype=bool)
    mask[3, 4:6] = True
    sums = counts.sum(axis=1).astype(float)
    sums[7] = np.nan
    data = cv.Reports(reports, m.Suppression(10), mask, totals=[(1, sums)])
    fit = fitted(data, likelihood=likelihood)
    fit.save(tmp_path / "fit.nc")
    for each in (fit, cv.TopicModel.load(tmp_path / "fit.nc")):
        tables = each.predict_counts(4, np.random.default_rng(1), data).to_numpy()
        known = ~np.isnan(sums)
        np.testing.assert_array_equal(tables.sum(axis=2)[:, known], np.tile(sums[known], (4, 1)))
        shown = ~np.isnan(reports) & ~mask
        np.testing.assert_array_equal(tables[:, shown], np.tile(counts[shown], (4, 1)))
        assert tables[:, np.isnan(reports)].min() > 0
        assert tables[:, np.isnan(reports) & ~mask].max() < 10
        assert tables.sum(axis=2)[:, 7].std() > 0.0
    with pytest.raises(ValueError, match="X must have no totals"):
        fit.count_intervals(data)
    with pytest.raises(ValueError, match="X must have no totals"):
        cv.plotting.true_counts(fit, data, [(0, 0)])
    with pytest.raises(ValueError, match="X must have no totals"):
        fit.transform(data)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_and_predicted_tables_meet_totals_that_cross_and_are_the_same_for_any_threads(tmp_path):
    counts, reports = table(np.random.default_rng(4))
    mask, base = np.zeros(counts.shape, dtype=bool), m.RandomRounding(5)
    mask[3, 4:6] = True
    all_of_it = float(cv.simulate_reports(counts.sum(), base, np.random.default_rng(1)))
    rows = cv.simulate_reports(counts.sum(axis=1), base, np.random.default_rng(2))
    families = [(0, counts.sum(axis=0)), (1, rows, base), ((0, 1), all_of_it, base)]
    data = cv.Reports(reports, m.Suppression(10), mask, totals=families)
    fit = fitted(data, draws=4, tune=4, threads=1)
    np.testing.assert_array_equal(fit.rate().to_numpy(), fitted(data, draws=4, tune=4, threads=4).rate().to_numpy())
    fit.save(tmp_path / "fit.nc")
    again = cv.TopicModel.load(tmp_path / "fit.nc")
    assert again.posterior.attrs["exact_totals"] == 12
    assert again.posterior.attrs["noisy_totals"] == 31
    tables = again.predict_counts(4, np.random.default_rng(1), data).to_numpy()
    np.testing.assert_array_equal(tables.sum(axis=1), np.tile(counts.sum(axis=0), (4, 1)))
    assert (abs(tables.sum(axis=2) - rows) < 5).all()
    assert (abs(tables.sum(axis=(1, 2)) - all_of_it) < 5).all()
    shown = ~np.isnan(reports) & ~mask
    np.testing.assert_array_equal(tables[:, shown], np.tile(counts[shown], (4, 1)))
    assert tables[:, np.isnan(reports) & ~mask].max() < 10
    assert (tables[0] != tables[1]).any()


def test_predicted_tables_have_the_law_of_all_tables_with_the_total():
    mechanism, reports, kernel, total = CASES["suppression"]
    tables, law = all_tables(reports, kernel, total, None)
    data = cv.Reports([reports], mechanism, totals=[(1, [total])])
    draw, rng = ((np.ones((1, 1)), RATES[:, None]), ()), np.random.default_rng(1)
    given = CountsGivenReports(data.noise, POISSON)
    places = {table: i for i, table in enumerate(tables)}
    found, cells = [], totals.open_cells(data)
    for _ in range(4_000):
        counts = np.where(np.isnan([reports]), 3, np.nan_to_num([reports])).astype(np.int64)
        found.append(places[tuple(met(counts, draw, given, cells, rng)[0].tolist())])
    order = np.argsort(law)
    rank = np.empty(order.size, dtype=int)
    rank[order] = np.arange(order.size)
    assert reference.chi_square_p_value(rank[found], 0, law[order]) > 1e-4


@pytest.mark.parametrize("method", ["em", "cavi", "svi", "augmented-gibbs"])
def test_other_methods_refuse_totals(method):
    data = cv.Reports([[np.nan, 12.0], [0.0, 15.0]], m.Suppression(10), totals=[(1, [20, 15])])
    with pytest.raises(ValueError, match=r"totals must be None|mechanism must be one of"):
        cv.TopicModel(2, method=method, progress=False).fit(data)


def test_hiding_cells_refuses_totals():
    data = cv.Reports([[np.nan, 12.0], [0.0, 15.0]], m.Suppression(10), totals=[(1, [20, 15])])
    with pytest.raises(ValueError, match="totals must be None if cells are hidden"):
        cv.BlockModel(2, progress=False).fit(data)
    with pytest.raises(ValueError, match="totals must be None if cells are hidden"):
        cv.hold_out(data, 0.5, seed=1)
