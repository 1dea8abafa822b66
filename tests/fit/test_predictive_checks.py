"""Sums of counts given their reports: those of a right fit are hardly ever doubted, those of a wrong one are."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import countveil as cv
from countveil import mechanisms as m
from countveil.data.mechanism_checks import MechanismCheck
from countveil.data.observations import PrivatizedCounts
from countveil.data.reports import observations_of
from countveil.evaluation import coverage_of_reports, randomised_pit_of_reports
from countveil.fit import predictive_checks as module
from countveil.fit.predictive_checks import (
    NEAR,
    OUTSIDE,
    SLIGHT,
    WIDE,
    Stratum,
    check,
    in_words,
    of_cells,
    of_counts,
    of_margins,
)
from countveil.fit.results import with_doubts
from countveil.inference.diagnostics import Diagnostics, FitWarning, State
from countveil.inference.posterior import kept_mechanism, mechanism_kept
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.report import checklist_of, render, write_report
from tests.joint import FALSE_ALARM

LIKELIHOODS = {"poisson": POISSON, "row": NegativeBinomial("row")}


def geometric(alpha):
    """Data of counts under two-sided geometric noise."""

    def observe(counts, rng):
        noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
        return PrivatizedCounts(counts + noise[0] - noise[1], alpha)

    return observe


def gaussian(counts, rng):
    """Data of counts under Gaussian noise."""
    return observations_of(cv.Reports(counts + rng.normal(0.0, 3.0, counts.shape), m.Gaussian(3.0)))


def stub(theta, phi, parameters, likelihood):
    """A fit whose draws are all the same."""
    return SimpleNamespace(
        seed_=1,
        model_=SimpleNamespace(likelihood=likelihood),
        _reader=SimpleNamespace(even_draws=lambda n: iter([((theta, phi), parameters)] * n)),
    )


def case(rng, kind, observe, shape=(30, 20), sizes=1.0):
    """(a fit that has the true rates, the data)."""
    likelihood = LIKELIHOODS[kind]
    theta, phi = rng.gamma(0.5, 1.0, (shape[0], 3)), rng.gamma(0.5, 1.0, (shape[1], 3))
    theta *= np.reshape(sizes, (-1, 1))
    parameters = likelihood.start(shape)
    own = (parameters[0][:, None],) if kind == "row" else parameters[:1]
    counts = likelihood.sample(theta @ phi.T, rng, own).astype(np.int64)
    return stub(theta, phi, parameters, likelihood), observe(counts, rng)


@pytest.mark.parametrize("kind", LIKELIHOODS)
@pytest.mark.parametrize("observe", [geometric(0.3), geometric(0.9), gaussian])
def test_true_rates_are_hardly_ever_doubted(kind, observe):
    found = [of_counts(*case(np.random.default_rng(seed), kind, observe), np.arange(30)) for seed in range(20)]
    assert not any(map(any, found))


def test_a_row_of_one_report_has_the_tail_of_the_noise(monkeypatch):
    def doubted():
        cases = (case(np.random.default_rng(s), "poisson", geometric(0.95), (2000, 1)) for s in range(20))
        return sum(any(of_counts(*each, np.arange(2000))) for each in cases)

    assert doubted() == 0
    monkeypatch.setattr(module, "LAPLACE", 0.0)  # as if the tails of all sums were those of a Gaussian
    assert doubted() > 2


@pytest.mark.parametrize(
    ("kind", "remedy"), [("poisson", 'likelihood="negative-binomial"'), ("row", 'dispersion="column"')]
)
@pytest.mark.parametrize("observe", [geometric(0.3), gaussian])
def test_a_fit_that_takes_counts_for_noise_is_told_what_to_try(kind, remedy, observe):
    fit, data = case(np.random.default_rng(1), kind, observe, (200, 100))
    (theta, phi), parameters = next(fit._reader.even_draws(1))
    wrong = stub(0.2 * theta, phi, parameters, LIKELIHOODS[kind])
    assert not any(of_counts(fit, data, np.arange(200)))
    (said,), slight = of_counts(wrong, data, np.arange(200))
    assert not slight
    assert said.startswith("The fit does not explain the sums of its reports: the true counts of all reports add up")
    assert f"Try {remedy}" in said


def test_masked_cells_and_rows_that_were_chosen_count():
    rng = np.random.default_rng(3)
    fit, data = case(rng, "row", geometric(0.5), (40, 30), sizes=np.where(np.arange(40) < 20, 10.0, 0.1))
    rows = np.arange(0, 40, 2)
    hidden = data.hide(np.array([0, 2]), np.array([1, 1]))
    assert not any(of_counts(fit, hidden.take(rows), rows))
    assert any(of_counts(fit, data, np.arange(40)[::-1])), "rates of other rows"


def test_rows_are_called_by_their_numbers_in_the_data():
    seen = np.array([50.0, 5000.0, 50.0, 50.0])
    simulated = np.random.default_rng(5).normal(50.0, 1.0, (40, 4))
    (said,), _ = of_margins(seen, simulated, np.array([3, 17]))
    assert "that of row 17, counted from 0, is 5,000" in said
    (said,), _ = of_margins(seen[::-1], simulated, np.array([3, 17]))
    assert "that of column 0, counted from 0, is 5,000" in said


def test_a_few_rows_and_columns_are_excepted_and_more_or_the_sum_of_all_are_not():
    simulated = np.random.default_rng(5).normal(50.0, 1.0, (40, 401))
    seen = np.full(401, 50.0)

    def said(*far):
        return of_margins(np.where(np.isin(np.arange(401), far), 5000.0, seen), simulated, np.arange(200))

    begins = "Row 7, counted from 0, does not fit: its reports add up to 5,000, where the fit expects 50 (standard"
    wrong, (found,) = said(7)
    assert not wrong
    assert found.startswith(begins)
    assert found.endswith("). Do not report its rates.")
    assert "One other row or column does not fit either. Do not report their rates." in said(7, 9)[1][0]
    assert " 3 other rows or columns do not fit either." in said(7, 9, 300, 301)[1][0]
    for more in ((7, 8, 9), (300, 301, 302), (7, 400)):
        (found,), few = said(*more)
        assert found.startswith("The fit does not explain the sums of its reports")
        assert not few


def test_sums_that_are_slightly_off_are_those_of_the_reports():
    fit, data = case(np.random.default_rng(1), "poisson", geometric(0.3), (200, 100), sizes=100.0)
    (theta, phi), _ = next(fit._reader.even_draws(1))
    for times, slight in ((0.9, True), (0.5, False)):
        wrong, said = of_counts(stub(times * theta, phi, (), POISSON), data, np.arange(200))
        assert bool(said) == slight != bool(wrong)
    assert said == []
    (said,) = of_counts(stub(0.9 * theta, phi, (), POISSON), data, np.arange(200))[1]
    assert said.startswith("Sums of many counts are slightly off: the true counts of all reports add up to ")
    assert said.endswith("). Tables of sums use only the reports.")


@pytest.mark.parametrize(
    ("margins", "counts", "kept"),
    [
        ((["far"], []), ([], []), ("misfits", "far")),
        (([], ["few"]), ([], []), ("outlying", "few")),
        (([], []), (["noise"], []), ("misfits", "noise")),
        (([], []), ([], ["slight"]), ("sums", "slight")),
    ],
)
def test_every_finding_has_its_place_and_only_some_are_against_the_fit(fit, margins, counts, kept, monkeypatch):
    monkeypatch.setattr(module, "of_margins", lambda *given: margins)
    monkeypatch.setattr(module, "of_counts", lambda *given: counts)
    monkeypatch.setattr(module, "of_spread", lambda *given: ([], []))
    data = fit._reader.data_matrix(cv.Reports(reports_of(m.Laplace(1)), m.Laplace(1)))
    found = module.compared(fit, data, np.arange(SIZE[0]))
    assert {name: said for name, said in found._asdict().items() if said} == {kept[0]: (kept[1],)}
    assert found.wrong == ((kept[1],) if kept[0] == "misfits" else ())


def test_rows_that_do_not_fit_and_slight_sums_leave_the_rest_safe(fit):
    known = SimpleNamespace(
        posterior=fit.posterior.copy(), model_=fit.model_, _reader=fit._reader, weights_=fit.weights_
    )
    safe = Diagnostics(pd.DataFrame(), "Safe to report: the chains agree.", State.SAFE)
    for misfits, state in (((), State.SAFE), (("Misfit.",), State.UNSAFE)):
        check = MechanismCheck(misfits=misfits, sums=("Slight.",), outlying=("Row 7.",))
        known.posterior.attrs = fit.posterior.attrs | kept_mechanism(check)
        found = with_doubts(known, safe)
        assert found.state == state
        assert found.mechanism == check
        assert ("Row 7. Slight." in found.verdict) == (not misfits)


def test_rates_are_times_exposures():
    rng = np.random.default_rng(6)
    exposure = np.where(np.arange(20) < 10, 10.0, 0.1) * np.ones((30, 1))
    theta, phi = rng.gamma(2.0, 1.0, (30, 3)), rng.gamma(2.0, 1.0, (20, 3))
    counts = rng.poisson(theta @ phi.T * exposure)
    noise = rng.geometric(0.5, (2, *counts.shape))
    data = PrivatizedCounts(counts + noise[0] - noise[1], 0.5, exposure=exposure)
    assert not any(of_counts(stub(theta, phi, (), POISSON), data, np.arange(30)))
    assert any(of_counts(stub(theta, phi[::-1], (), POISSON), data, np.arange(30)))


def test_nothing_is_said_where_reports_are_no_unbiased_estimates():
    rng = np.random.default_rng(4)
    fit, _ = case(rng, "poisson", geometric(0.5))
    rounded = observations_of(cv.Reports(5.0 * rng.poisson(3.0, (30, 20)), m.Rounding(5)))
    assert not any(of_counts(fit, rounded, np.arange(30)))


SIZE = (120, 30)
SHORT = {"likelihood": "poisson", "draws": 1, "tune": 0, "chains": 1, "seed": 1, "threads": 1, "progress": False}
RNG = np.random.default_rng(1)
THETA, PHI = RNG.gamma(0.5, 40.0, (SIZE[0], 2)), RNG.dirichlet(np.full(SIZE[1], 0.5), 2)
COUNTS = RNG.poisson(THETA @ PHI)
SPREAD = np.array([stats.binom.pmf(np.arange(41), 40, y / 400) for y in range(401)])
PAIRS = {
    "geometric, cut": (m.Thresholded(m.TwoSidedGeometric(0.6), 2), m.Thresholded(m.TwoSidedGeometric(0.9), 2)),
    "discrete Gaussian": (m.DiscreteGaussian(2), m.DiscreteGaussian(4)),
    "Gaussian": (m.Gaussian(2), m.Gaussian(4)),
    "Laplace": (m.Laplace(1), m.Laplace(3)),
    "Skellam": (m.Skellam(2, 1), m.Skellam(1, 2)),
    "random rounding": (m.RandomRounding(10), m.Rounding(10)),
    "rounding": (m.Rounding(10), m.RandomRounding(10)),
    "suppression": (m.Suppression(10, False), m.Suppression(10)),
    "top-coding": (m.TopCoding(4), m.Table(SPREAD)),
    "Gaussian, cut": (m.Thresholded(m.Gaussian(2), 3), m.Thresholded(m.Gaussian(5), 3)),
    "table": (m.Table(SPREAD), m.TopCoding(200)),
}
"""What was done, and what it is taken for: reports of the first are possible under both."""


@pytest.fixture(scope="module")
def fit():
    """One draw, which is the truth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = cv.TopicModel(2, **SHORT).fit(cv.Reports(reports_of(m.Laplace(1)), m.Laplace(1)))
    draws = found.posterior["posterior"].dataset.copy(deep=True)
    draws["theta"][0, 0], draws["phi"][0, 0] = THETA, PHI
    found.posterior["posterior"].dataset = draws
    return found


def reports_of(mechanism, seed=2):
    return np.asarray(cv.simulate_reports(COUNTS, mechanism, np.random.default_rng(seed)), dtype=float)


def p_value(data, fit, **options):
    pit = randomised_pit_of_reports(data, fit, np.random.default_rng(3), **options)
    assert ((pit >= 0) & (pit <= 1)).all()
    return stats.kstest(pit, "uniform").pvalue


@pytest.mark.parametrize("name", PAIRS)
def test_pit_values_are_uniform_under_what_was_done_and_not_under_another_mechanism(fit, name):
    right, wrong = PAIRS[name]
    values = reports_of(right)
    assert p_value(cv.Reports(values, right), fit) > FALSE_ALARM
    assert p_value(cv.Reports(values, wrong), fit) < FALSE_ALARM / 10


def by_column():
    """The mechanism of every column, of three, and their reports."""
    known = np.array([m.RandomRounding(5), m.Thresholded(m.Gaussian(2), 3), m.Suppression(10)], dtype=object)
    each = known[np.arange(SIZE[1]) % 3].reshape(1, -1)
    return each, np.stack([reports_of(each[0, v], v)[:, v] for v in range(SIZE[1])], axis=1)


def test_several_mechanisms_and_masked_cells(fit):
    each, values = by_column()
    mask = np.random.default_rng(4).random(SIZE) < 0.3
    data = cv.Reports(values, each, mask)
    assert p_value(data, fit) > FALSE_ALARM
    assert fit._report_probabilities(data)[0].size == (~mask).sum()
    assert abs(coverage_of_reports(data, fit, np.random.default_rng(5), cells=~mask) - 0.9) < 0.03
    with pytest.raises(ValueError, match="cells must not be masked in X"):
        fit._report_probabilities(data, mask)
    swapped = each.copy()
    swapped[each == m.Thresholded(m.Gaussian(2), 3)] = m.Thresholded(m.Gaussian(6), 3)
    assert p_value(cv.Reports(values, swapped, mask), fit) < 1e-6


def test_the_report_that_is_meant_of_several(fit):
    first, second = m.Suppression(10), m.DiscreteGaussian(3)
    data = cv.Reports(reports_of(first), first).also(reports_of(second, 6), second)
    for place in (0, 1):
        assert p_value(data, fit, report=place) > FALSE_ALARM
    alone = fit._report_probabilities(cv.Reports(reports_of(second, 6), second))
    np.testing.assert_array_equal(fit._report_probabilities(data, report=1), alone)
    for place in (2, -1, "first"):
        with pytest.raises(ValueError, match="report must be a number from 0 to 1"):
            fit._report_probabilities(data, report=place)
    with pytest.raises(ValueError, match="report must be 0"):
        fit._report_probabilities(cv.PrivatizedCounts(COUNTS, 0.5), report=1)


def test_simulated_reports_are_made_as_those_that_were_fitted(fit):
    each, values = by_column()
    data, rng = (cv.Reports(values, each, np.random.default_rng(4).random(SIZE) < 0.3), np.random.default_rng(7))
    found = fit.predict_reports(40, rng, data).to_numpy()
    assert found.shape == (40, *SIZE)
    for kind, mechanism in enumerate(each[0, :3]):
        own = found[:, :, kind::3]
        counts = rng.poisson((THETA @ PHI)[:, kind::3], own.shape)
        wanted = cv.simulate_reports(counts, mechanism, rng)
        for of in (np.isnan, lambda x: np.nan_to_num(x) == 0):
            assert abs(of(own).mean() - of(wanted).mean()) < 0.01
        np.testing.assert_allclose(np.nanmean(own), np.nanmean(wanted), rtol=0.05)
    assert (found[:, :, ::3] % 5 == 0).all()
    second = m.Gaussian(3)
    several = fit.predict_reports(3, rng, data.also(reports_of(second), second))
    assert several.dims[:2] == ("release", "report")
    assert (several[:, 0, :, ::3] % 5 == 0).all()
    assert (several[:, 1] % 1 != 0).all()


@pytest.mark.parametrize("cut", [True, False])
def test_reports_that_releases_may_have_cut_at_zero_are_taken_as_cut(fit, cut):
    each = np.array([m.TwoSidedGeometric(0.6), m.DiscreteGaussian(3)], dtype=object)
    each, rng = each[np.arange(SIZE[1]) % 2].reshape(1, -1), np.random.default_rng(8)
    values = np.stack([reports_of(each[0, v], v)[:, v] for v in range(SIZE[1])], axis=1)
    noisy = values.copy()
    if cut:
        values[:, ::2] = np.maximum(values[:, ::2], 0)
    data = cv.Reports(values, each)
    assert p_value(data, fit) > FALSE_ALARM
    below, at = (found.reshape(SIZE) for found in fit._report_probabilities(data))
    lowest, alpha = noisy[:, ::2] <= 0, 0.6
    not_positive = np.exp(-(1 - alpha) * (THETA @ PHI)[:, ::2]) / (1 + alpha)
    assert (below[:, ::2][lowest] == 0).all()
    np.testing.assert_allclose(at[:, ::2][lowest], not_positive[lowest], rtol=1e-6)
    found = fit.predict_reports(20, rng, data).to_numpy()
    assert (found[:, :, ::2] >= 0).all()
    assert abs((found[:, :, ::2] == 0).mean() - not_positive.mean()) < 0.01
    assert (found[:, :, 1::2] < 0).any()


def test_what_a_fit_does_not_keep_has_to_be_given(fit):
    each, values = by_column()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        several = cv.TopicModel(2, **SHORT).fit(cv.Reports(values, each))
    for given, got in ((None, "none"), (cv.PrivatizedCounts(COUNTS, 0.6), "other reports")):
        with pytest.raises(ValueError, match=f"X must be the fitted reports .*, got {got}"):
            several.predict_reports(2, np.random.default_rng(1), given)
    assert several.predict_reports(2, np.random.default_rng(1), cv.Reports(values, each)).shape == (2, *SIZE)
    assert fit.predict_reports(2, np.random.default_rng(1)).shape == (2, *SIZE)


m = cv.mechanisms
QUICK = {"draws": 60, "tune": 60, "chains": 2, "seed": 1, "threads": 1, "progress": False}


def fitted(mechanism, seed=1):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.5, 4.0, (40, 2)) @ rng.gamma(0.5, 1.0, (2, 12)))
    data = cv.Reports(cv.simulate_reports(counts, mechanism, rng), mechanism)
    fit = cv.TopicModel(2, draws=40, tune=60, chains=1, seed=1, progress=False).fit(data)
    return fit, data


@pytest.fixture(scope="module")
def hidden():
    return fitted(m.Suppression(10))


def outside(fit, data):
    found = check(fit, data)
    return [each.name for each in found.statistics if each.verdict != "as the model expects"]


def test_reports_that_the_model_made_are_as_it_expects(hidden):
    assert not outside(*hidden)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("truncate", [True, False])
def test_joined_releases_are_as_a_fit_expects_whether_they_were_cut_at_zero_or_not(truncate):
    rng, level = np.random.default_rng(1), cv.PrivacyLevel(epsilon=1, precision=2)
    counts = rng.poisson(rng.gamma(0.5, 1.0, (60, 2)) @ rng.gamma(0.5, 1.0, (2, 15)))
    data = cv.join([cv.simulate_release(counts, level, rng, truncate=truncate) for _ in range(2)])
    fit = cv.TopicModel(2, likelihood="poisson", **QUICK).fit(data)
    found = check(fit, data).statistics
    assert not any(each.fails for each in found)
    assert stats.binom.sf(len(outside(fit, data)) - 1, len(found), 0.05) > 1e-3
    totals = fit.totals()
    assert abs(totals.reported - counts.sum()) < 4 * totals.error
    assert not totals.far_off


def test_other_reports_are_not(hidden):
    fit, data = hidden
    values = module.report_of(data, 0).values
    assert "share of counts without a report" in outside(
        fit, cv.Reports(np.where(np.isnan(values), 0.0, values), m.Suppression(10))
    )
    assert "sum of the reports" in outside(
        fit, cv.Reports(np.where(values > 0, values + 20.0, values), m.Suppression(10))
    )


def test_bins_hold_every_report_once():
    reports = np.array([np.nan, 0.0, 3.0, 3.0, 7.5, 90.0])
    bins = module.bins_of(reports, True)
    assert bins.edges.tolist() == [0.0, 3.0, 7.5, 90.0]
    assert bins.labels == ["none", "0", "3", "7.5", "90"]
    assert bins.tally(reports).tolist() == [1, 1, 2, 1, 1]
    assert bins.tally(np.array([-5.0, 4.0, 1e9])).tolist() == [0, 1, 0, 1, 1]
    many = module.bins_of(np.arange(1000.0), True).edges
    assert (many.size, many[-1]) == (module.BINS, 999.0)
    cut = module.bins_of(np.arange(20.0), False)
    assert cut.labels == ["none", "0 or less", *map(str, range(1, 12)), "12 or more"]
    assert cut.tally(np.array([0, 1, 1, 12, 19])).tolist() == [0, 1, 2, *[0] * 10, 2]


def by_two(rng, counts):
    """Reports by two mechanisms, of which the first has the even columns, and the mechanisms (1, 12)."""
    known = m.RandomRounding(5), m.Thresholded(m.Gaussian(1), 3)
    each = np.array([known * 6], dtype=object)
    return np.stack([cv.simulate_reports(counts, one, rng)[:, v] for v, one in enumerate(each[0])], axis=1), each


@pytest.fixture(scope="module")
def several():
    rng = np.random.default_rng(5)
    counts = rng.poisson(rng.gamma(0.5, 4.0, (40, 2)) @ rng.gamma(0.5, 1.0, (2, 12)))
    values, each = by_two(rng, counts)
    again, noise = cv.simulate_reports(counts, m.DiscreteGaussian(2), rng), m.DiscreteGaussian(2)
    data = cv.Reports(values, each, rng.random(values.shape) < 0.1).also(again, noise)
    fit = cv.TopicModel(2, draws=40, tune=60, chains=1, seed=1, progress=False).fit(data)
    return fit, values, each, again, data


def test_every_mechanism_of_every_report_is_checked(several):
    fit, _, _, _, data = several
    found = check(fit, data)
    names = [each.name for each in found.statistics]
    for wanted in (
        "share of positive reports (report 1, random rounding (base 5))",
        "share of counts without a report (report 1, Gaussian noise (sigma 1), published above 3)",
        "largest report (report 2, discrete Gaussian noise (sigma 2))",
    ):
        assert wanted in names
    assert not any(each.verdict.startswith(OUTSIDE) for each in found.statistics)
    first = data.provenance.published.report(0)
    assert found.seen.sum() == 2 * 480 - first.seen.size + first.seen.sum()


def test_what_another_mechanism_would_make_is_seen(several):
    fit, values, each, again, _ = several
    swapped = each.copy()
    swapped[0, 0::2] = m.Rounding(5)
    swapped[0, 1::2] = m.Thresholded(m.Gaussian(4), 3)
    wrong = cv.Reports(values, swapped).also(again, m.DiscreteGaussian(6))
    said = outside(fit, wrong)
    for part in ("report 1, Gaussian noise (sigma 4), published above 3", "report 2, discrete Gaussian"):
        assert any(part in name for name in said)


def test_many_mechanisms_are_taken_by_kind():
    noise = [m.Gaussian(1 + d / 10) for d in range(5)]
    (alone,) = module.parts_of(observations_of(cv.Reports(np.zeros((5, 3)), noise)))
    assert [each.cells.all() for each in alone.strata] == [True]
    (both,) = module.parts_of(observations_of(cv.Reports(np.full((6, 3), 12.0), [*noise, m.Suppression(9)])))
    assert [(each.name, each.absent, each.cells.sum()) for each in both.strata] == [
        ("Gaussian", False, 15),
        ("suppression", True, 3),
    ]


def test_numbers_of_a_small_release():
    reports, cells = np.array([[0.0, 3.0], [1.0, 0.0]]), np.array([[True, True], [True, False]])
    assert of_cells(reports, Stratum("", cells, False)) == {
        "share of positive reports": (2 / 3, 1 / 3),
        "sum of the reports": (4.0, 1.0),
        "largest report": (3.0, 1.0),
        "spread of the columns' sums (standard deviation)": (1.0, 0.0),
        "spread of the rows' sums (standard deviation)": (1.0, 0.0),
    }
    absent = of_cells(np.array([[np.nan, 3.0], [1.0, 0.0]]), Stratum("", cells, True))
    assert absent["share of counts without a report"] == (1 / 3, 1 / 3)


def test_a_statistic_in_words():
    rng = np.random.default_rng(1)
    simulated, ends = rng.normal(10.0, 1.0, 40), (8.0, 12.0)
    for value, said in (
        (10.0, "as the model expects"),
        (13.0, f"{NEAR}: higher"),
        (30.0, f"{OUTSIDE}: higher"),
        (1.0, f"{OUTSIDE}: lower"),
    ):
        assert in_words("sum", value, simulated, ends, 1.0, 6.0) == said
    assert in_words("spread of the rows", 1.0, simulated, ends, 0.0, 6.0) == WIDE
    assert in_words("spread of the rows", 30.0, simulated, ends, 0.0, 6.0) == f"{OUTSIDE}: higher"
    few = np.array([8.0, 12.0, 8.0, 12.0])  # 2.3 sqrt(1 + 1/4) around a mean that four values give
    assert in_words("sum", 17.5, few, (8.0, 12.0), 0.0, 3.0) == f"{NEAR}: higher"
    assert in_words("sum", 18.0, few, (8.0, 12.0), 0.0, 3.0) == f"{OUTSIDE}: higher"
    same, ends = np.full(40, 1.0), (1.0, 1.0)
    assert in_words("share", 0.999, same, ends, 0.001, 6.0) == f"{NEAR}: lower", "one report of a thousand"
    assert in_words("share", 0.91, same, ends, 0.001, 6.0) == f"{SLIGHT}: lower"
    assert in_words("share", 0.89, same, ends, 0.001, 6.0) == f"{OUTSIDE}: lower"
    maxima = np.exp(rng.normal(3.0, 0.5, 40))
    ends = tuple(np.quantile(maxima, [0.025, 0.975]))
    assert in_words("largest report", 150.0, maxima, ends, 1.0, 6.0) == f"{NEAR}: higher"
    assert in_words("largest report", 5000.0, maxima, ends, 1.0, 6.0) == f"{OUTSIDE}: higher"
    maxima, ends = np.full(40, 99.0), (99.0, 99.0)
    assert in_words("largest report", 198.0, maxima, ends, 1.0, 6.0) == f"{SLIGHT}: higher"
    assert in_words("largest report", 200.0, maxima, ends, 1.0, 6.0) == f"{OUTSIDE}: higher"


def test_a_verdict_names_few_statistics():
    """Files have room for only so many characters, and counts with many reports have many statistics."""
    every = [module.Statistic(f"s{i}", 9.0, 0.0, 1.0, f"{OUTSIDE}: higher") for i in range(100)]
    begin = "Simulated releases differ from the real one in: "
    assert module.failed(every[:2]) == [f"{begin}s0; s1."]
    assert module.failed(every[:6]) == [f"{begin}s0; s1; s2; s3; s4; s5."]
    assert module.failed(every) == [f"{begin}s0; s1; s2; s3; s4; 95 other statistics."]
    assert module.failed([each._replace(verdict=WIDE) for each in every]) == []


def test_reports_that_cannot_be_simulated_are_no_part():
    """A verdict and a page would otherwise be about different random numbers."""
    counts = np.arange(12).reshape(4, 3)
    ranges = cv.Reports.between(counts, counts + 2)
    assert module.parts_of(observations_of(ranges)) == []
    (part,) = module.parts_of(observations_of(ranges.also(counts + 1.0, m.Gaussian(2))))
    assert [each.name for each in part.strata] == ["report 2, Gaussian noise (sigma 2)"]


def found_in(fit, data):
    """The statistics of a release by a fit that has the true rates, as a verdict has them."""
    rows = np.arange(data.shape[0])
    parts = module.parts_of(data)
    simulated = [module.statistics(parts, reports) for _, reports in module.releases(fit, data, rows, parts)]
    return module.compared_by(module.statistics(parts, [part.values for part in parts]), simulated)


def known(stub):
    """A fit that has the true rates in all of its forty draws."""
    sizes = SimpleNamespace(sizes={"chain": 2, "draw": 20})
    return SimpleNamespace(**vars(stub), posterior={"posterior": sizes})


@pytest.mark.long
@pytest.mark.parametrize("kind", ["poisson", "row"])
@pytest.mark.parametrize("observe", [geometric(0.3), geometric(0.9), gaussian])
def test_releases_of_true_rates_are_hardly_ever_doubted(kind, observe):
    """And those of half of the rates always are."""
    doubted = 0
    for seed in range(50):
        fit, data = case(np.random.default_rng([7, seed]), kind, observe)
        doubted += bool(module.failed(found_in(known(fit), data)))
    assert doubted == 0
    fit, data = case(np.random.default_rng(7), kind, observe, sizes=20.0)
    draws = fit._reader.even_draws
    fit._reader.even_draws = lambda n: (((0.5 * theta, phi), own) for (theta, phi), own in draws(n))
    assert "sum of the reports" in module.failed(found_in(known(fit), data))[0]


def rows_of(rng, sums):
    """Counts of two planted topics, a row of every sum."""
    topics = np.kron(np.eye(2), np.full(10, 0.1))
    return np.stack([rng.multinomial(n, rng.dirichlet([0.5, 0.5]) @ topics) for n in sums])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_of_one_sum_make_intervals_wide_which_is_said_and_forbids_nothing():
    """Rates cover more often than stated: a check that fails where intervals cover would be a false alarm."""
    rng = np.random.default_rng(3)
    release = cv.simulate_release(rows_of(rng, [60] * 60), cv.PrivacyLevel(2, 1), rng)
    fit = cv.TopicModel(2, **QUICK).fit(release)
    found = {each.name: each.verdict for each in check(fit, observations_of(release)).statistics}
    assert found["spread of the rows' sums (standard deviation)"] == WIDE
    page = " ".join(render(fit, release).split())
    assert page.count("varies less than the model expects, which makes intervals too wide: spread of the rows") == 2
    assert "The real one looks like them" not in page
    assert not mechanism_kept(fit.posterior).misfits
    assert not any(
        "Simulated releases" in said for said in (fit.diagnostics().verdict, checklist_of(fit, release).judged.verdict)
    )


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_a_fit_and_its_page_have_one_verdict(tmp_path):
    """Of counts one of which no such model makes, the fit itself says it, by the numbers that the page has."""
    rng = np.random.default_rng(4)
    counts = rows_of(rng, rng.poisson(60.0, 60))
    counts[3, 5] = 2000
    release = cv.simulate_release(counts, cv.PrivacyLevel(2, 1), rng)
    fit = cv.TopicModel(1, likelihood="poisson", **QUICK).fit(release)
    judged = fit.diagnostics()
    assert judged.state == State.UNSAFE
    failing = "; ".join(each.name for each in check(fit, observations_of(release)).statistics if each.fails)
    assert "largest report" in failing
    assert f"Simulated releases differ from the real one in: {failing}." in judged.verdict
    assert write_report(fit, tmp_path / "fit.html", release).verdict == judged.verdict
    assert checklist_of(fit, release).judged.verdict == judged.verdict


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_of_true_counts_and_its_page_have_one_verdict():
    rng = np.random.default_rng(4)
    counts = rows_of(rng, rng.poisson(60.0, 60))
    counts[3, 5] = 2000
    data = cv.ExactCounts(counts)
    with pytest.warns(FitWarning, match="^Simulated tables differ"):
        fit = cv.TopicModel(1, likelihood="poisson", **QUICK).fit(data)
    judged = fit.diagnostics()
    assert (judged.state, judged.mechanism) == (State.UNSAFE, None)
    assert judged.verdict.startswith("Simulated tables differ from the real one in: ")
    assert not any(word in judged.verdict for word in ("mechanism", "release", "report"))
    assert "largest count" in judged.verdict
    assert checklist_of(fit, data).judged.verdict == judged.verdict
    page, items = " ".join(render(fit, data).split()), checklist_of(fit, data).items
    section = page[page.index('<h2 id="check">') : page.index('<h2 id="trust">')]
    assert "simulated from the fit, from draws" in section
    assert not any(word in section for word in (" release", "report"))
    rows = "; ".join(f"{each.name}: {each.said}" for each in items if each.section == "Posterior predictive checks")
    assert "simulated tables" in rows
    assert "report" not in rows


def test_the_diagonal_of_a_network_is_left_out():
    rng = np.random.default_rng(3)
    release = cv.simulate_release(rng.poisson(3.0, (8, 8)), cv.PrivacyLevel(2, 1), rng)
    fit = cv.BlockModel(2, **QUICK | {"draws": 10, "tune": 10}).fit(release)
    found = check(fit, fit._reader.data_matrix(fit._observed(release)))
    assert found.seen.sum() == 56
    assert found.low.sum() <= 56 <= found.high.sum()


def test_of_large_data_an_even_selection_of_rows_is_compared(hidden, monkeypatch):
    fit, data = hidden
    assert (check(fit, data).selection, check(fit, data).seen.sum()) == ("", 480)
    monkeypatch.setattr(module, "CELLS", 4 * 12)
    found = check(fit, data)
    assert (found.selection, found.seen.sum(), found.releases) == ("4 of 40", 48, module.RELEASES)


def test_the_page_shows_the_check(tmp_path):
    mechanism, rng = m.Suppression(10), np.random.default_rng(4)
    counts = rng.poisson(6.0, (20, 6))
    release = cv.import_reports(cv.simulate_reports(counts, mechanism, rng), mechanism, "Others, 2020")
    fit = cv.TopicModel(1, draws=20, tune=20, chains=1, seed=1, progress=False).fit(release)
    write_report(fit, tmp_path / "fit.html", release)
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert "share of counts without a report" in page
    assert "releases were simulated from the fit" in page
