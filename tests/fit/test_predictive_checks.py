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
from countveil.fit.predictive_checks import of_counts, of_margins
from countveil.fit.results import with_doubts
from countveil.inference.diagnostics import Diagnostics, State
from countveil.inference.kept import kept_mechanism
from countveil.laws.counts import POISSON, NegativeBinomial
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
