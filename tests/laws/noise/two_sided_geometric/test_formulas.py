"""Every formula of alpha against a sum over all noise, or over all counts and all noise."""

import inspect
import math

import numpy as np
import pytest
from numba import njit
from scipy import stats

from countveil.laws.noise.two_sided_geometric import formulas
from tests import reference
from tests.joint import FALSE_ALARM

ALPHAS = (0.0, 0.05, 0.4, math.exp(-0.5), 0.9)
RATES = np.array([0.0, 1e-3, 0.4, 5.0, 60.0])
TAU = np.arange(-1500, 1501)
COUNTS = np.arange(400)


def masses(alpha):
    """P(tau), by what it is proportional to."""
    weights = np.power(alpha, np.abs(TAU), dtype=float)
    return weights / weights.sum()


def reports_of(rate, alpha):
    """(reports, P(report | rate)), by adding up over counts."""
    reports = np.arange(TAU[0], TAU[-1] + COUNTS.size)
    return reports, np.convolve(stats.poisson.pmf(COUNTS, rate), masses(alpha))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_moments_and_chances_of_noise(alpha):
    mass = masses(alpha)
    np.testing.assert_allclose(formulas.log_normaliser(alpha), np.log(mass[TAU == 0][0]), rtol=1e-12, atol=1e-15)
    found = formulas.log_normaliser_of(alpha, math.log1p)
    assert found == pytest.approx(formulas.log_normaliser(alpha), rel=1e-15)
    np.testing.assert_allclose(formulas.variance(alpha), mass @ TAU**2, rtol=1e-12)
    np.testing.assert_allclose(formulas.standard_deviation(alpha), np.sqrt(mass @ TAU**2), rtol=1e-12)
    np.testing.assert_allclose(formulas.positive_by_noise(alpha), mass[TAU > 0].sum(), rtol=1e-12)
    np.testing.assert_allclose(formulas.excess(alpha), mass @ np.maximum(TAU, 0), rtol=1e-12)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_what_reports_say_of_a_rate(alpha):
    for rate in RATES:
        reports, mass = reports_of(rate, alpha)
        censored = mass[reports <= 0].sum()
        close = {"rtol": 1e-11, "atol": 1e-14}
        np.testing.assert_allclose(formulas.censored_log_probability(rate, alpha), np.log(censored), **close)
        beyond = mass[reports > 0].sum() - masses(alpha)[TAU > 0].sum()
        np.testing.assert_allclose(formulas.positive_beyond_noise(rate, alpha), beyond, **close)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_exposure_is_the_slope_of_what_a_censored_report_says(alpha):
    one, other = (np.log(reports_of(rate, alpha)[1][: -TAU[0] + 1].sum()) for rate in (1.0, 3.0))
    assert formulas.exposure(alpha) == pytest.approx((one - other) / 2.0, rel=1e-10)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_debiased_reports_have_mean_zero_where_the_rate_is_zero(alpha):
    mean = masses(alpha) @ [formulas.debiased(tau, alpha) for tau in TAU]
    assert mean == pytest.approx(formulas.mean_over_positive(alpha), rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("count", [0, 1, 2, 30])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_an_estimate_from_what_is_stored_is_unbiased_whatever_the_count(alpha, count):
    """A positive report is one of its count; minus ``mean_over_positive`` is one where the report is not positive."""
    reports = count + TAU
    estimates = np.where(reports > 0, reports, -formulas.mean_over_positive(alpha))
    assert masses(alpha) @ estimates == pytest.approx(count, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 0.7])
def test_mean_over_positive_is_the_mean_of_the_rates_of_skellam_noise(alpha):
    """Two Poisson counts with exponential rates of this mean differ by two-sided geometric noise."""
    mean = formulas.mean_over_positive(alpha)
    geometric = stats.nbinom.pmf(np.arange(1501), 1, 1.0 / (1.0 + mean))  # a Poisson count with an exponential rate
    difference = np.convolve(geometric, geometric[::-1])
    np.testing.assert_allclose(difference, masses(alpha), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("alpha", [0.05, 0.9])
def test_samples_have_the_law(alpha):
    drawn = formulas.sample(alpha, np.random.default_rng(1), (200, 100))
    assert drawn.shape == (200, 100)
    assert reference.chi_square_p_value(drawn.ravel(), TAU[0], masses(alpha)) > FALSE_ALARM / 2
    wrong = masses(alpha + 0.02)
    assert reference.chi_square_p_value(drawn.ravel(), TAU[0], wrong) < FALSE_ALARM / 2


def test_levels_of_samples_are_those_of_their_rows():
    drawn = formulas.sample(np.array([[0.0], [0.5]]), np.random.default_rng(2), (2, 40_000))
    assert not drawn[0].any()
    assert drawn[1].var() == pytest.approx(formulas.variance(0.5), rel=0.05)


@njit
def compiled(alpha):
    return (
        formulas.log_normaliser(alpha),
        formulas.exposure(alpha),
        formulas.variance(alpha),
        formulas.positive_by_noise(alpha),
        formulas.excess(alpha),
        formulas.mean_over_positive(alpha),
        formulas.debiased(3, alpha),
    )


def test_compiled_loops_and_arrays_get_the_same_numbers():
    names = ["log_normaliser", "exposure", "variance", "positive_by_noise", "excess", "mean_over_positive"]
    whole = np.array(ALPHAS)
    arrays = [getattr(formulas, name)(whole) for name in names] + [formulas.debiased(3, whole)]
    for i, alpha in enumerate(ALPHAS):
        np.testing.assert_allclose(compiled(alpha), [array[i] for array in arrays], rtol=1e-15)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_tail_is_a_sum_of_masses(alpha):
    k = np.array([-1, 0, 3, 40])
    expected = [masses(alpha)[each < TAU].sum() for each in k]
    np.testing.assert_allclose(np.exp(formulas.log_survival(k, alpha)), expected, rtol=1e-11, atol=1e-300)


def test_no_formula_is_left_untested():
    here = inspect.getsource(inspect.getmodule(masses))
    defined = [name for name, value in vars(formulas).items() if getattr(value, "__module__", "") == formulas.__name__]
    assert len(defined) >= 13
    assert [name for name in defined if f"formulas.{name}(" not in here] == []
