"""What the noise tells inference about a report, against sums over all noise."""

import itertools
from itertools import accumulate

import numpy as np
import pytest
from mpmath import mp, mpf
from numba import njit
from scipy import stats

from countveil.data.simulation import simulate_release
from countveil.kernels import general, law
from countveil.kernels import law as stubs
from countveil.kernels.entries import new_batch, new_expectations
from countveil.kernels.random import new_source
from countveil.laws.counts.poisson import PoissonCounts
from countveil.laws.noise import NOISES, TWO_SIDED_GEOMETRIC
from countveil.laws.noise.two_sided_geometric import noise
from countveil.laws.noise.two_sided_geometric.noise import (
    TwoSidedGeometricKernel,
    TwoSidedGeometricNoise,
    TwoSidedGeometricPoisson,
)
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


LAW, KERNEL = TwoSidedGeometricPoisson(PoissonCounts()), TwoSidedGeometricKernel()
CASES = [(1, 0.3, 0.5), (3, 2.0, 0.1), (7, 9.0, 0.9), (40, 3.0, 0.7), (2, 80.0, 0.4), (12, 1e-9, 0.3)]
LARGEST = {0.1: 20, 0.5: 60, 0.95: 900}  # noise beyond this has less than 1e-17 of the chance of all
ALPHAS_OF_KERNELS = tuple(LARGEST)


@njit
def of_a_report(law, report, rate, level):
    return stubs.expected_ratio(law, report, rate, level), stubs.report_score(law, report, rate, level)


@njit
def of_no_report(law, rate, level):
    constant, exposure = stubs.unseen_constant(law, level), stubs.unseen_exposure(law, level)
    return stubs.unseen_score(law, rate, level), constant, exposure


@njit
def expected(law, n, batch):
    return stubs.expect_counts(law, 0, n, batch)


@njit
def draw(law, n, batch, source, rng):
    stubs.draw_counts(law, 0, n, batch, np.empty(0), source, rng)


@njit
def of_a_kernel(noise, report, count, level):
    bounds = general.least_count(noise, report, level), general.most_count(noise, report, level)
    return general.log_kernel(noise, report, count, level), *bounds


@njit
def of_a_censored_kernel(noise, level):
    return general.kernel_ratio(noise, level), general.log_unseen(noise, level)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_report_has_its_exact_score_and_expected_count(case):
    ratio, score = of_a_report(LAW, *case)
    assert reference.relative_error(ratio * case[1], reference.expected_count(*case)) < 1e-12
    assert reference.relative_error(score, reference.report_logpmf(*case)) < 1e-12


def test_a_batch_has_the_sum_of_scores_and_rates():
    batch, n = new_expectations(), len(CASES)
    batch[1][:n], batch[2][:n], batch[3][:n] = np.array(CASES).T
    bound = expected(LAW, n, batch)
    exact = mp.fsum(reference.report_logpmf(*case) + case[1] for case in CASES)
    assert reference.relative_error(bound, exact) < 1e-12
    for ratio, case in zip(batch[4][:n], CASES, strict=True):
        assert reference.relative_error(ratio * case[1], reference.expected_count(*case)) < 1e-12


@njit
def of_a_start(noise, report, level):
    bias = stubs.bias(noise, level)
    return stubs.debiased(noise, report, level), bias, stubs.unbiased(noise, report, level)


@pytest.mark.parametrize("count", [0, 1, 12])
@pytest.mark.parametrize("alpha", [0.0, *ALPHAS_OF_KERNELS])
def test_what_starts_take_for_a_report_has_the_right_mean(alpha, count):
    """Debiased reports of no count have mean zero; what is unbiased has the count for its mean, whatever that is."""
    tau = np.arange(-1500, 1501)
    mass = np.power(alpha, np.abs(tau), dtype=float)
    mass /= mass.sum()
    debiased, bias, unbiased = np.transpose([of_a_start(KERNEL, report, alpha) for report in count + tau])
    assert mass @ unbiased == pytest.approx(count, rel=1e-10, abs=1e-10)
    if count == 0:
        assert mass @ debiased == pytest.approx(bias[0], rel=1e-10, abs=1e-13)


def batch_of(cases):
    batch, n = new_batch(), len(cases)
    batch[1][:n], batch[2][:n], batch[3][:n] = np.array(cases).T
    batch[4][:n] = batch[1][:n]
    return batch


def test_counts_have_the_exact_law():
    rng, repeats = np.random.default_rng(1), 6000
    batch, source, n = batch_of(CASES), new_source(rng), len(CASES)
    found = np.empty((repeats, n), dtype=np.int64)
    for row in found:
        draw(LAW, n, batch, source, rng)
        row[:] = batch[4][:n]
    for i, case in enumerate(CASES):
        law = reference.count_law(*case)
        p = reference.chi_square_p_value(found[:, i], law.first, law.probabilities)
        assert p > FALSE_ALARM / n


def test_a_batch_without_noise_keeps_its_reports_and_draws_nothing():
    rng = np.random.default_rng(2)
    source = new_source(rng)
    before, words = rng.bit_generator.state, source.copy()
    batch = batch_of([(3, 2.0, 0.0), (2**40, 1e-9, 0.0)])
    draw(LAW, 2, batch, source, rng)
    assert batch[4][:2].tolist() == [3, 2**40]
    np.testing.assert_array_equal(source, words)
    np.testing.assert_equal(rng.bit_generator.state, before)


def chances_of_noise(alpha):
    """For y = 0, 1, ...: the chance of noise that takes y or more away, term by term."""
    noise = [(1 - mpf(alpha)) / (1 + mpf(alpha)) * mpf(alpha) ** k for k in range(LARGEST[alpha] + 1)]
    return list(accumulate(reversed(noise)))[::-1]


@pytest.mark.parametrize("alpha", ALPHAS_OF_KERNELS)
def test_a_report_that_is_not_positive_is_a_sum_over_all_such(alpha):
    for rate in (0.0, 0.4, 7.0):
        each = enumerate(chances_of_noise(alpha))
        exact = mp.log(mp.fsum(mpf(rate) ** y / mp.factorial(y) * chance for y, chance in each)) - rate
        score, constant, exposure = of_no_report(LAW, rate, alpha)
        assert abs(score - exact) < 1e-12
        assert score == pytest.approx(constant - exposure * rate, rel=1e-13)
        if rate == 0.0:
            assert abs(constant - exact) < 1e-12


@pytest.mark.parametrize("alpha", ALPHAS_OF_KERNELS)
def test_the_kernel_is_the_chance_of_the_noise(alpha):
    for report, count in ((1, 0), (3, 3), (4, 60)):
        found, least, most = of_a_kernel(KERNEL, report, count, alpha)
        exact = reference.log_noise_constant(alpha) + abs(report - count) * mp.log(alpha)
        assert abs(found - exact) < 1e-12
        assert (least, most) == (0, -1)
    ratio, unseen = of_a_censored_kernel(KERNEL, alpha)
    no_count, one = chances_of_noise(alpha)[:2]
    assert abs(unseen - mp.log(no_count)) < 1e-12
    assert ratio == pytest.approx(float(one / no_count), rel=1e-12)


def test_without_noise_the_kernel_is_at_the_report():
    assert of_a_kernel(KERNEL, 3, 3, 0.0) == (0.0, 3, 3)
    assert of_a_kernel(KERNEL, 3, 2, 0.0) == (-np.inf, 3, 3)
    assert of_a_censored_kernel(KERNEL, 0.0) == (0.0, 0.0)
