"""Reports of any mechanism as a fit predicts them: right under what was done, wrong under anything else."""

import warnings

import numpy as np
import pytest
from scipy import stats

import countveil as cv
from countveil.evaluation import coverage_of_reports, randomised_pit_of_reports
from tests.joint import FALSE_ALARM

m = cv.mechanisms
SIZE = (120, 30)
SHORT = {
    "likelihood": "poisson",
    "draws": 1,
    "tune": 0,
    "chains": 1,
    "seed": 1,
    "threads": 1,
    "progress": False,
}
RNG = np.random.default_rng(1)
THETA, PHI = RNG.gamma(0.5, 40.0, (SIZE[0], 2)), RNG.dirichlet(np.full(SIZE[1], 0.5), 2)
COUNTS = RNG.poisson(THETA @ PHI)
SPREAD = np.array([stats.binom.pmf(np.arange(41), 40, y / 400) for y in range(401)])
PAIRS = {
    "geometric, cut": (
        m.Thresholded(m.TwoSidedGeometric(0.6), 2),
        m.Thresholded(m.TwoSidedGeometric(0.9), 2),
    ),
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
    assert fit.report_probabilities(data)[0].size == (~mask).sum()
    assert abs(coverage_of_reports(data, fit, np.random.default_rng(5), cells=~mask) - 0.9) < 0.03
    with pytest.raises(ValueError, match="cells must not be masked in X"):
        fit.report_probabilities(data, mask)
    swapped = each.copy()
    swapped[each == m.Thresholded(m.Gaussian(2), 3)] = m.Thresholded(m.Gaussian(6), 3)
    assert p_value(cv.Reports(values, swapped, mask), fit) < 1e-6


def test_the_report_that_is_meant_of_several(fit):
    first, second = m.Suppression(10), m.DiscreteGaussian(3)
    data = cv.Reports(reports_of(first), first).also(reports_of(second, 6), second)
    for place in (0, 1):
        assert p_value(data, fit, report=place) > FALSE_ALARM
    alone = fit.report_probabilities(cv.Reports(reports_of(second, 6), second))
    np.testing.assert_array_equal(fit.report_probabilities(data, report=1), alone)
    for place in (2, -1, "first"):
        with pytest.raises(ValueError, match="report must be a number from 0 to 1"):
            fit.report_probabilities(data, report=place)
    with pytest.raises(ValueError, match="report must be 0"):
        fit.report_probabilities(cv.PrivatizedCounts(COUNTS, 0.5), report=1)


def test_simulated_reports_are_made_as_those_that_were_fitted(fit):
    each, values = by_column()
    data, rng = (
        cv.Reports(values, each, np.random.default_rng(4).random(SIZE) < 0.3),
        np.random.default_rng(7),
    )
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
    below, at = (found.reshape(SIZE) for found in fit.report_probabilities(data))
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
        with pytest.raises(ValueError, match=f"X must be the reports that were fitted .*, got {got}"):
            several.predict_reports(2, np.random.default_rng(1), given)
    assert several.predict_reports(2, np.random.default_rng(1), cv.Reports(values, each)).shape == (2, *SIZE)
    assert fit.predict_reports(2, np.random.default_rng(1)).shape == (2, *SIZE)
