"""Totals by the reports and by a fit, against simulated noise; and the advice where a Poisson fit leaves counts out."""

import json
import warnings

import numpy as np
import pytest
from scipy.stats import norm

import countveil as cv
from countveil.data.observations import Observations
from countveil.fit.totals import TRY, advice_on, doubt_of, error_of, estimated_sum, totals_of
from countveil.inference.diagnostics import FitWarning, Totals
from tests.commands import run
from tests.joint import fitted, two_sided_geometric
from tests.recipes.thinning import ThinningNoise

pytestmark = pytest.mark.long

SIZE = (60, 40)
SHORT = {"draws": 40, "tune": 60, "chains": 2, "seed": 1, "threads": 1, "progress": False}
HIDDEN = np.random.default_rng(5).random(SIZE) < 0.1
LEVELS = {"all": 0.6, "row": np.linspace(0.3, 0.8, 60), "cell": np.linspace(0.1, 0.8, 2400).reshape(SIZE)}


def bursty(seed=1):
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.3, 1.0, (SIZE[0], 2)) @ rng.dirichlet(np.full(SIZE[1], 0.2), 2)
    return rng.negative_binomial(rate + 1e-6, 0.05)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("truncated", [True, False])
def test_the_reports_total_is_unbiased_with_the_error_that_it_states(levels, truncated):
    counts, rng = bursty(), np.random.default_rng(2)
    level = LEVELS[levels][:, None] if levels == "row" else np.broadcast_to(LEVELS[levels], SIZE)
    level = np.broadcast_to(level, SIZE)
    fit = fitted(cv.TopicModel(1, **SHORT | {"draws": 2, "tune": 0}), cv.PrivatizedCounts(counts, 0.5))
    found = []
    for _ in range(200):
        reports = counts + two_sided_geometric(level, rng)
        reports = np.maximum(reports, 0) if truncated else reports
        found.append(totals_of(fit, cv.PrivatizedCounts(reports, LEVELS[levels], HIDDEN)))
    missed = np.array([each.reported for each in found]) - counts[~HIDDEN].sum()
    error = missed.std() / np.sqrt(200)
    assert abs(missed.mean()) < 4.5 * error
    stated = np.sqrt(np.mean([each.error**2 for each in found]))
    assert stated == pytest.approx(missed.std(), rel=0.25)
    held = np.mean([each.lower <= counts[~HIDDEN].sum() <= each.upper for each in found])
    assert held == pytest.approx(0.9, abs=0.08)  # nearly four standard errors


@pytest.mark.parametrize("hidden", [HIDDEN, np.zeros(SIZE, dtype=bool)])
@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial"])
def test_the_fit_s_total_is_of_all_draws_and_of_the_cells_that_were_seen(likelihood, hidden):
    hidden = hidden[:20, :15]
    data = cv.PrivatizedCounts(bursty()[:20, :15], 0.3, hidden)
    fit = fitted(cv.TopicModel(2, likelihood=likelihood, **SHORT | {"draws": 110, "tune": 5}), data)
    found = totals_of(fit, data)
    assert found.fitted == pytest.approx(float(fit.rate().to_numpy()[~hidden].sum()), rel=1e-6)
    assert found.fitted_lower < found.fitted < found.fitted_upper
    point = fitted(cv.TopicModel(2, method=cv.EM(max_iter=5), seed=1, threads=1), data)
    assert totals_of(point, data)[3:5] == (None, None)


def test_large_counts_that_an_optimiser_takes_for_noise_are_missed_in_the_sum():
    """A hundred large counts among ten thousand cells: nearly all positive reports are noise, and are explained."""
    counts = np.zeros((100, 100), dtype=int)
    counts.flat[np.random.default_rng(1).choice(10_000, 100, replace=False)] = 200
    noise = two_sided_geometric(np.full(counts.shape, 0.5), np.random.default_rng(2))
    model = cv.TopicModel(2, method="em", seed=1, threads=1, progress=False)
    with pytest.warns(FitWarning, match=r"Not safe yet: the fit expects only \d+% \(standard error 1%\) of the sum"):
        fit = model.fit(cv.PrivatizedCounts(counts + noise, 0.5))
    assert fit.totals().share.too_small
    assert fit.diagnostics().table.loc["fit", "total_share"] == fit.totals().share.value
    assert f"{TRY}." in fit.diagnostics().verdict


@pytest.fixture(scope="module")
def left_out():
    """Reports of bursty counts, and a Poisson fit that takes many of these for noise."""
    counts = np.random.default_rng(1).negative_binomial(0.05, 0.02, SIZE)
    reports = counts + two_sided_geometric(np.full(SIZE, 0.75), np.random.default_rng(3))
    data = cv.PrivatizedCounts(reports, 0.75)
    return reports, data, fitted(cv.TopicModel(2, likelihood="poisson", **SHORT), data)


def test_a_fit_keeps_its_totals_and_says_what_speaks_against_them(left_out):
    reports, data, fit = left_out
    brief = SHORT | {"draws": 4, "tune": 4}
    assert fit.totals() == totals_of(fit, data)
    assert f"falls short: {fit.totals()}. Counts that come in bursts" in fit.diagnostics().verdict
    less = fit.totals()._replace(reported=1.0, error=1.0)
    assert doubt_of(less, fit).startswith("The sum of the true counts is too high")
    assert doubt_of(less._replace(reported=fit.totals().fitted), fit) == ""
    for dispersion, other in (("global", "column or row"), ("column", "row")):
        bursts = fitted(cv.TopicModel(2, dispersion=dispersion, **brief), data)
        short = bursts.totals()._replace(fitted_upper=1.0, reported=1e6)
        assert doubt_of(short, bursts).endswith(f"or a dispersion by {other}, may help.")
    naive = fitted(cv.TopicModel(2, likelihood="poisson", **brief), cv.NaiveCounts(reports))
    assert doubt_of(less, naive) == ""


def test_a_poisson_fit_that_leaves_counts_out_is_told_what_to_try(left_out):
    _, data, poisson = left_out
    found = totals_of(poisson, data)
    assert found.falls_short
    assert 'Try likelihood="negative-binomial".' in advice_on(found, poisson)
    right = fitted(cv.TopicModel(2, likelihood="negative-binomial", **SHORT), data)
    assert not totals_of(right, data).falls_short
    assert advice_on(found, right) == ""
    assert advice_on(totals_of(right, data), poisson) == ""
    variational = fitted(cv.TopicModel(2, method="svi", alpha=0.75, seed=1, threads=1, progress=False), data)
    assert advice_on(found, variational).endswith('Try likelihood="negative-binomial" with method gibbs.')


@pytest.mark.parametrize(
    ("totals", "short"),
    [
        (Totals(100.0, 5.0, 80.0, 75.0, 89.0), True),
        (Totals(100.0, 5.0, 80.0, 75.0, 91.0), False),
        (Totals(100.0, 5.0, 89.0, None, None), True),
        (Totals(100.0, 5.0, 120.0, 115.0, 125.0), False),
    ],
)
def test_a_total_falls_short_beyond_its_interval_and_two_errors(totals, short):
    assert totals.falls_short == short


def test_the_printed_interval_is_that_of_the_reports_where_they_have_one():
    found, half = Totals(100.0, 10.0, 60.0, 55.0, 65.0), 10.0 * norm.ppf(0.95)
    assert (found.lower, found.upper) == pytest.approx((100.0 - half, 100.0 + half))
    outside = ", which the fit lies outside of: report the interval"
    assert str(found) == f"60 by this fit; 84 to 116 from the reports, without a model (90% interval){outside}"
    assert str(found._replace(fitted=90.0)).endswith("without a model (90% interval)")
    assert found.facts == {"reported": 100.0, "error": 10.0, "fitted": 60.0, "lower": found.lower, "upper": found.upper}
    assert (Totals(5.0, 10.0, 6.0, 5.0, 7.0).lower, Totals(-30.0, 10.0, 6.0, 5.0, 7.0).upper) == (0.0, 0.0)
    assert str(Totals(100.0, 0.0, 99.0, 90.0, 105.0)) == "99 by this fit; 100 from the reports"
    alone = Totals(np.nan, np.nan, 60.0, 55.0, 65.0)
    assert (alone.lower, alone.upper) == (55.0, 65.0)
    assert str(alone).startswith("60 by this fit (90% interval 55 to 65); ")
    neither = Totals(np.nan, np.nan, 60.0, None, None)
    assert (neither.lower, list(neither.facts)) == (None, ["reported", "error", "fitted"])
    assert str(neither).startswith("60 by this fit; ")


def test_a_fit_of_true_counts_shows_no_reports_and_not_their_sum(tmp_path):
    counts = np.random.default_rng(1).poisson(30.0, (12, 8))
    fit = fitted(cv.TopicModel(1, **SHORT), cv.ExactCounts(counts))
    fit.save(tmp_path / "f.nc")
    found = json.loads(run("show", tmp_path / "f.nc", "--json").stdout)["totals"]
    by_data = totals_of(fit, fit._reader.data_matrix(cv.ExactCounts(counts)))
    for totals in (fit.totals(), cv.load(tmp_path / "f.nc").totals(), by_data):
        assert totals.facts == pytest.approx(found)
        assert (totals.lower, totals.upper) == (totals.fitted_lower, totals.fitted_upper)
        assert str(totals).startswith(f"{totals.fitted:,.0f} by this fit (90% interval ")
        assert not any(word in str(totals) for word in ("report", str(counts.sum()), f"{counts.sum():,}"))
        assert totals.share.value == pytest.approx(1.0, abs=0.1)  # which a verdict goes by
    assert list(found) == ["fitted", "lower", "upper"]


def test_rounded_counts_have_no_unbiased_total():
    data = cv.Reports(10 * np.round(bursty() / 10), cv.mechanisms.Rounding(10))
    fit = fitted(cv.TopicModel(1, **SHORT), data)
    found = fit.totals()
    assert np.isnan([found.reported, found.error]).all()
    assert found.lower < found.fitted < found.upper
    assert "give no unbiased estimate" in str(found)


def test_the_error_of_other_noise_is_at_most_that_of_every_cell():
    data = Observations(np.array([[3, 0, 2]]), 0.5, np.array([[False, False, True]]), noise=ThinningNoise())
    assert error_of(data) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("totals", "far"),
    [
        (Totals(100.0, 5.0, 85.0, 80.0, 89.0), False),  # falls short, but as chance may have it
        (Totals(1000.0, 5.0, 950.0, 940.0, 960.0), True),
        (Totals(100.0, 5.0, 60.0, 55.0, 65.0), True),
        (Totals(100.0, 5.0, 60.0, 55.0, 95.0), False),  # an interval that reaches it
        (Totals(100.0, 5.0, 130.0, 125.0, 135.0), True),
        (Totals(100.0, 5.0, 150.0, 140.0, 160.0), True),
        (Totals(0.0, 80.0, 5415.0, 5244.0, 5597.0), True),
        (Totals(-300.0, 80.0, 190.0, 180.0, 195.0), False),  # chance alone may make so few
        (Totals(np.nan, np.nan, 190.0, 180.0, 195.0), False),
        (Totals(100.0, 5.0, 150.0, None, None), True),
        (Totals(100.0, 5.0, 115.0, None, None), False),
    ],
)
def test_totals_are_far_off_where_chance_does_not_explain_it(totals, far):
    assert totals.far_off == far


@pytest.mark.parametrize(
    ("totals", "drowned"),
    [
        (Totals(100.0, 19.0, 100.0, 60.0, 130.0), False),
        (Totals(100.0, 21.0, 100.0, 60.0, 130.0), True),
        (Totals(100.0, 50.0, 100.0, 90.0, 130.0), False),  # a few cells stand out
        (Totals(100.0, 50.0, 100.0, None, None), False),
        (Totals(-300.0, 80.0, 190.0, 80.0, 295.0), True),
        (Totals(0.0, 0.0, 0.0, 0.0, 0.0, 1), False),  # no counts at all, by published totals
        (Totals(np.nan, np.nan, 190.0, 180.0, 195.0), False),
    ],
)
def test_counts_are_drowned_where_noise_alone_may_make_nearly_their_sum(totals, drowned):
    assert totals.drowned == drowned


@pytest.mark.parametrize(("mean", "drowned"), [(1.0, True), (12.0, False)])
def test_a_sampler_of_counts_that_noise_drowns_is_not_to_be_trusted_and_warns(mean, drowned):
    rng, alpha = np.random.default_rng(3), np.exp(-0.1)
    counts = rng.poisson(mean, (20, 30))
    long = SHORT | {"chains": 4, "tune": 60, "draws": 50}  # from so many on a fit warns
    model = cv.TopicModel(1, likelihood="poisson", prior_shape=2.0, **long)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit = model.fit(cv.PrivatizedCounts(counts + two_sided_geometric(np.full((20, 30), alpha), rng), alpha))
    found, words = fit.diagnostics(), "Too little data: the reports put the sum of the true counts at "
    assert found.verdict.startswith(words) == drowned
    assert any(words in str(each.message) for each in told) == drowned
    assert not drowned or found.state == "not safe yet"


def test_a_block_that_stands_out_of_a_large_sparse_table_is_data_enough():
    rng, alpha = np.random.default_rng(3), 0.8
    counts = np.zeros((100, 100), dtype=int)
    counts[:5, :4] = rng.poisson(100.0, (5, 4))
    reports = counts + two_sided_geometric(np.full(counts.shape, alpha), rng)
    long = SHORT | {"tune": 80, "draws": 50}
    fit = fitted(cv.TopicModel(1, likelihood="poisson", **long), cv.PrivatizedCounts(reports, alpha))
    found = fit.totals()
    assert found.reported < 5.0 * found.error
    assert "Too little data" not in fit.diagnostics().verdict


def test_a_sampler_whose_total_is_far_off_is_not_to_be_trusted_and_warns():
    noise = two_sided_geometric(np.full((60, 40), 0.5), np.random.default_rng(1))
    long = SHORT | {"chains": 2, "draws": 100, "tune": 60}
    model = cv.TopicModel(1, likelihood="poisson", prior_shape=50.0, prior_rate=0.05, **long)
    with pytest.warns(FitWarning, match="The sum of the true counts is too high"):
        fit = model.fit(cv.PrivatizedCounts(noise, 0.5))
    found = fit.diagnostics()
    assert found.state == "not safe yet"
    assert found.verdict.startswith("The sum of the true counts is too high")


def test_an_optimiser_with_far_too_large_a_total_is_not_to_be_trusted_and_warns():
    rng = np.random.default_rng(1)
    counts = rng.poisson(0.05, (300, 100))
    reports = counts + two_sided_geometric(np.full(counts.shape, np.exp(-1.0)), rng)
    model = cv.TopicModel(5, method="svi", likelihood="poisson", seed=1, threads=1, progress=False)
    with pytest.warns(FitWarning, match=r"Not safe yet: the fit expects \d{3}% .* of the sum"):
        fit = model.fit(cv.PrivatizedCounts(reports, np.exp(-1.0)))
    assert fit.totals().share.too_large
    assert fit.diagnostics().state == "not safe yet"


m = cv.mechanisms
TABLE = np.random.default_rng(7).poisson(np.random.default_rng(8).gamma(0.7, 12.0, (12, 5)))


def test_exact_totals_of_all_cells_leave_no_error_in_the_sum():
    hidden = cv.simulate_reports(TABLE, m.Suppression(10), np.random.default_rng(1))
    noisy = cv.simulate_reports(TABLE, m.DiscreteGaussian(3), np.random.default_rng(1))
    for reports, mechanism in ((hidden, m.Suppression(10)), (noisy, m.DiscreteGaussian(3))):
        for axis in (0, 1, (0, 1)):
            data = cv.Reports(reports, mechanism, totals=[(axis, TABLE.sum(axis=axis))])
            assert estimated_sum(data) == (TABLE.sum(), 0.0, 1)
    assert np.isnan(estimated_sum(cv.Reports(hidden, m.Suppression(10)))[0])
    alone = estimated_sum(cv.Reports(noisy, m.DiscreteGaussian(3)))
    assert alone[1:] == (pytest.approx(3.0 * np.sqrt(60), rel=0.01), 0)


def test_a_sum_that_is_known_is_printed_as_such_and_comes_back_from_a_file(tmp_path):
    reports = cv.simulate_reports(TABLE, m.Suppression(10), np.random.default_rng(1))
    data = cv.Reports(reports, m.Suppression(10), totals=[(1, TABLE.sum(axis=1))])
    fit = fitted(cv.TopicModel(2, **SHORT), data)
    found = fit.totals()
    assert found.lower == found.upper == found.reported == TABLE.sum()
    assert str(found).endswith(f"by this fit; {TABLE.sum():,} exactly, from the totals")
    assert found.facts["lower"] == found.facts["upper"] == TABLE.sum()
    assert not found.far_off
    fit.save(tmp_path / "fit.nc")
    assert cv.load(tmp_path / "fit.nc").totals() == found


@pytest.mark.parametrize("case", ["some rows", "noisy rows", "a masked cell"])
def test_the_sum_by_totals_is_unbiased_with_the_error_that_it_states(case):
    rng, noise, mask, missed = (np.random.default_rng(4), m.DiscreteGaussian(4), np.zeros(TABLE.shape, bool), [])
    mask[2, 3] = case == "a masked cell"
    for _ in range(400):
        rows, by = TABLE.sum(axis=1).astype(float), ("exact",)
        if case == "some rows":
            rows[[1, 5, 6]] = np.nan
        if case == "noisy rows":
            rows, by = (cv.simulate_reports(rows.astype(int), m.DiscreteGaussian(6), rng), (m.DiscreteGaussian(6),))
        data = cv.Reports(cv.simulate_reports(TABLE, noise, rng), noise, mask, totals=[(1, rows, *by)])
        found, error, by_totals = estimated_sum(data)
        assert by_totals == 1
        missed.append(found - TABLE[~mask].sum())
    few = {"some rows": 4.0 * np.sqrt(15), "noisy rows": 6.0 * np.sqrt(12), "a masked cell": 4.0 * 2.0}[case]
    assert error == pytest.approx(few, rel=0.01)
    assert np.std(missed) == pytest.approx(few, rel=0.15)
    assert abs(np.mean(missed)) < 4.0 * few / np.sqrt(400)


@pytest.mark.parametrize("row", range(3))
def test_cells_beside_a_masked_one_are_summed_by_their_own_reports(row):
    values, mask = np.array([[2.0, 9.0], [4.0, 5.0], [6.0, 1.0]]), np.zeros((3, 2), bool)
    mask[row, 0] = True
    data = cv.Reports(values, m.DiscreteGaussian(3), mask, totals=[(1, [20, 30, 40])])
    found, error, by_totals = estimated_sum(data)
    assert found == pytest.approx(90 - (20, 30, 40)[row] + values[row, 1])
    assert (error, by_totals) == (pytest.approx(3.0, rel=0.01), 1)


def test_hidden_counts_in_no_total_leave_the_sum_unknown():
    reports = cv.simulate_reports(TABLE, m.Suppression(10), np.random.default_rng(1))
    rows = TABLE.sum(axis=1).astype(float)
    hidden = np.isnan(reports).any(axis=1)
    assert hidden.any()
    rows[~hidden] = np.nan
    data = cv.Reports(reports, m.Suppression(10), totals=[(1, rows)])
    assert estimated_sum(data) == (TABLE.sum(), 0.0, 1)  # all other counts are shown
    rows[np.flatnonzero(hidden)[0]] = np.nan
    assert np.isnan(estimated_sum(cv.Reports(reports, m.Suppression(10), totals=[(1, rows)]))[0])


def test_reports_that_leave_one_count_together_are_that_count_in_the_sum():
    first_row = np.repeat([[0], [-1]], 3, axis=1)
    down = cv.Reports(np.full((2, 3), 8), m.Rounding(4, to="down"), totals=[(first_row, [33])])  # 8 to 11
    assert estimated_sum(down.also(np.full((2, 3), 12), m.Rounding(3))) == (66.0, 0.0, 1)  # 11 to 13


@pytest.mark.parametrize("rounded_first", [True, False])
def test_a_second_report_that_is_unbiased_does_not_make_the_first_one_so(rounded_first):
    rounded, noisy = (np.full((2, 3), 10), m.Rounding(5)), (np.full((2, 3), 13.0), m.Gaussian(2.0))
    first, second = (rounded, noisy) if rounded_first else (noisy, rounded)
    data = cv.Reports(*first, totals=[(np.repeat([[0], [-1]], 3, axis=1), [33])]).also(*second)
    assert np.isnan(estimated_sum(data)[0])
