"""What the noise tells inference about a report, against sums over all noise."""

import itertools

import numpy as np
import pytest
from numba import njit
from scipy import stats

from countveil.data.simulation import simulate_release
from countveil.kernels import law
from countveil.laws.noise import NOISES, TWO_SIDED_GEOMETRIC
from countveil.laws.noise.two_sided_geometric import noise
from countveil.laws.noise.two_sided_geometric.law import TwoSidedGeometricKernel
from countveil.laws.noise.two_sided_geometric.noise import TwoSidedGeometricNoise
from countveil.privacy import PrivacyLevel
from countveil.privacy.mechanisms import TwoSidedGeometric
from tests import reference
from tests.joint import FALSE_ALARM

NOISE = TWO_SIDED_GEOMETRIC
ALPHAS = (0.0, 0.1, 0.5, 0.9)
TAU = np.arange(-1500, 1501)


@njit
def start_value(noise, report, level):
    return law.debiased(noise, report, level)


@njit
def start_bias(noise, level):
    return law.bias(noise, level)


@njit
def estimate(noise, report, level):
    return law.unbiased(noise, report, level)


def test_the_level_of_a_mechanism_is_its_alpha():
    for level in (PrivacyLevel(1, 2), PrivacyLevel("0.1", 1)):
        assert NOISE.level_of(level.mechanism) == level.alpha
    assert NOISE.level_of(TwoSidedGeometric(0)) == 0.0
    assert type(NOISE.level_of(TwoSidedGeometric(0))) is float


def masses(alpha):
    weights = np.power(alpha, np.abs(TAU), dtype=float)
    return weights / weights.sum()


def test_it_goes_by_its_name():
    assert NOISES["two-sided geometric"] is NOISE
    assert isinstance(NOISE, TwoSidedGeometricNoise)
    assert (NOISE.level, NOISE.levels_below) == ("alpha", 1.0)
    assert type(NOISE.kernel) is TwoSidedGeometricKernel


def test_the_level_is_what_a_release_calls_it():
    release = simulate_release([[1, 2]], PrivacyLevel(1, 1), np.random.default_rng(1))
    assert hasattr(release, NOISE.level)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_ratio_is_that_of_the_chances_of_no_positive_report(alpha):
    mass = masses(alpha)
    chances = [mass[count + TAU <= 0].sum() for count in range(4)]
    for before, after in itertools.pairwise(chances):
        assert after == pytest.approx(NOISE.ratio(alpha) * before, rel=1e-11)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_moments_are_those_of_the_noise(alpha):
    mass, cut = masses(alpha), np.maximum(TAU, 0)
    close = {"rtol": 1e-11, "atol": 1e-15}
    np.testing.assert_allclose(NOISE.positive_by_noise(alpha), mass[TAU > 0].sum(), **close)
    np.testing.assert_allclose(NOISE.mean_at_zero(alpha), mass @ cut, **close)
    np.testing.assert_allclose(NOISE.standard_deviation(alpha), np.sqrt(mass @ TAU**2), **close)
    debiased = [start_value(NOISE.kernel, report, alpha) for report in cut]
    np.testing.assert_allclose(NOISE.bias(alpha), mass @ debiased, **close)
    assert start_bias(NOISE.kernel, alpha) == NOISE.bias(alpha)


@pytest.mark.parametrize("count", [0, 1, 12])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_stored_reports_and_the_value_of_others_are_unbiased(alpha, count):
    reports = count + TAU
    estimates = [estimate(NOISE.kernel, report, alpha) for report in reports]
    assert masses(alpha) @ estimates == pytest.approx(count, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("report", [-4, 0, 1, 9])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_kernel_is_the_chance_of_the_report_up_to_a_constant(alpha, report):
    mass, counts = masses(alpha), np.arange(25)
    if report > 0:
        chances = np.array([mass[count + TAU == report].sum() for count in counts])
    else:
        chances = np.array([mass[count + TAU <= 0].sum() for count in counts])
    kernel = np.exp(NOISE.log_kernel(report, counts, alpha))
    np.testing.assert_allclose(kernel / kernel.sum(), chances / chances.sum(), rtol=1e-10, atol=1e-300)


def test_everything_takes_arrays():
    levels = np.array(ALPHAS)[:, None]
    for name in ("ratio", "bias", "positive_by_noise", "mean_at_zero", "standard_deviation"):
        found = getattr(NOISE, name)(levels)
        np.testing.assert_array_equal(found[:, 0], [getattr(NOISE, name)(alpha) for alpha in ALPHAS])
    reports, counts = np.array([[0, 3, 7]]), np.array([[1, 3, 0]])
    found = NOISE.log_kernel(reports, counts, levels)
    assert found.shape == (4, 3)
    assert found[2, 1] == NOISE.log_kernel(3, 3, 0.5) == 0.0


@pytest.mark.parametrize("count", [0, 5])
def test_samples_are_reports_cut_at_zero(count):
    alpha, rng = 0.6, np.random.default_rng(1)
    drawn = NOISE.sample(np.full((100, 200), count), alpha, rng)
    reports = np.maximum(count + TAU, 0)
    masses_of_reports = np.bincount(reports, masses(alpha))
    assert drawn.shape == (100, 200)
    assert reference.chi_square_p_value(drawn.ravel(), 0, masses_of_reports) > FALSE_ALARM / 2
    exact = NOISE.sample(np.full((3, 4), count), 0.0, rng)
    np.testing.assert_array_equal(exact, count)


ALPHA, CELLS = 0.4, 60.0
ONE_LEVEL = np.array([ALPHA]), np.array([CELLS])
IN_ALL = np.arange(300.0)


def contradicted(found):
    return [bool(each) for each in found]


def test_sums_below_zero_by_the_law_of_as_many_geometric_sizes():
    sums = stats.nbinom(CELLS, 1.0 - ALPHA)
    odd = (sums.cdf(IN_ALL) < noise.SURPRISE) | (sums.sf(IN_ALL - 1.0) < noise.SURPRISE)
    assert 0 < odd.sum() < odd.size
    assert contradicted(noise.of_signed(*ONE_LEVEL, found) for found in IN_ALL) == odd.tolist()


def test_reports_at_most_zero_by_the_law_of_zero_counts():
    numbers = np.arange(1.0, CELLS + 1.0)
    odd = stats.binom.sf(numbers - 1.0, CELLS, 1.0 / (1.0 + ALPHA)) < noise.SURPRISE
    assert 0 < odd.sum() < odd.size
    assert contradicted(noise.of_zeros(*ONE_LEVEL, found) for found in numbers) == odd.tolist()


@pytest.mark.parametrize("together", [40.0, 200.0])
def test_reports_of_two_by_the_law_of_noise_alone(together):
    twos = np.arange(together)
    odd = stats.binom.cdf(twos, together, ALPHA / (1.0 + ALPHA)) < noise.SURPRISE
    assert 0 < odd.sum() < odd.size
    found = (noise.of_twos(np.array([ALPHA]), np.array([together - n]), np.array([n])) for n in twos)
    assert contradicted(found) == odd.tolist()
