"""The scalar laws against sums of the weights in high precision, over the whole range that has to hold."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numba import njit

from countveil.kernels.poisson import poisson_logpmf
from countveil.laws.noise.two_sided_geometric import poisson as laws
from tests import reference

RATES = (1e-300, 1e-12, 1e-3, 1.0, 50.0, 1e4, 1e7)
ALPHAS = (1e-6, 0.1, math.exp(-1), 0.9, 0.999, 1 - 1e-9)
REPORTS = (-(10**7), -5, 0, 1, 2, 7, 300, 10**7)
CELLS = len(RATES) * len(ALPHAS) * len(REPORTS)
P_VALUE_BOUND = 1e-3 / CELLS  # one false alarm in a thousand grids, whatever the dependence between cells
DRAWS = 100_000
ACCURACY = 1e-12

# One report for each branch: the mode below the report, at it, above it; and the edges of the inversion.
SMALL_CASES = [
    (3, 1.0, 0.5),
    (7, 1.0, 0.9),
    (40, 2.0, 0.3),
    (1, 30.0, 0.9),
    (5, 5.0, 0.5),
    (47, 47.0, 0.99),
    (48, 47.0, 0.99),
]

rates = st.floats(0.01, 20.0)
alphas = st.floats(0.02, 0.9)
small_reports = st.integers(-20, 60)


def examples(number):
    return settings(max_examples=number, deadline=None, derandomize=True)


@pytest.mark.long
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_report_logpmf_over_the_grid(rate, alpha):
    errors = [
        reference.relative_error(laws.report_logpmf(r, rate, alpha), reference.report_logpmf(r, rate, alpha))
        for r in REPORTS
    ]
    assert max(errors) < ACCURACY, dict(zip(REPORTS, errors, strict=True))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_expected_count_over_the_grid(rate, alpha):
    errors = [
        reference.relative_error(laws.expected_count(r, rate, alpha), reference.expected_count(r, rate, alpha))
        for r in REPORTS
    ]
    assert max(errors) < ACCURACY, dict(zip(REPORTS, errors, strict=True))


@pytest.mark.parametrize("r", [-3, 0, 1, 4, 30])
@pytest.mark.parametrize(("rate", "alpha"), [(0.01, 0.1), (2.0, 0.7), (60.0, 0.95)])
def test_window_agrees_with_the_plain_sum(r, rate, alpha):
    mass = mp.exp(reference.report_logpmf(r, rate, alpha))
    assert abs(mass / reference.plain_report_pmf(r, rate, alpha) - 1) < mpf(10) ** -25
    mean = reference.expected_count(r, rate, alpha)
    assert abs(mean / reference.plain_expected_count(r, rate, alpha) - 1) < mpf(10) ** -25


@pytest.mark.parametrize(("r", "rate", "alpha"), [*SMALL_CASES, (300, 50.0, 0.9), (20, 60.0, 0.9), (9, 1e-9, 0.5)])
def test_weight_sums(r, rate, alpha):
    scale, *pieces = laws.weight_sums(r, rate, alpha)
    weights = reference.plain_weights(r, rate, alpha, 600)
    exact = [sum(weights[:r]), weights[r], sum(weights[r + 1 :])]
    for piece, exact_piece in zip(pieces, exact, strict=True):
        assert reference.relative_error(piece, exact_piece / mp.exp(mpf(scale))) < ACCURACY


@njit
def from_poisson_below(r, rate, alpha, rng):
    return laws.reject_from_poisson(r, rate / alpha, True, alpha, rng)


@njit
def from_poisson_above(r, rate, alpha, rng):
    return laws.reject_from_poisson(r, rate * alpha, False, alpha, rng)


@njit
def from_tails(r, rate, alpha, rng):
    return laws.reject_from_tails(r, r * alpha / rate, rate * alpha / (r + 1), rng)


@njit
def from_report(r, rate, alpha, rng):
    return laws.invert_from_report(r, rate / alpha, rate * alpha, rng.random())


@njit
def ignoring_the_report(r, rate, alpha, rng):
    return rng.poisson(rate)


@njit
def stronger_noise(r, rate, alpha, rng):
    return laws.sample_count(r, rate, 1.05 * alpha, rng)


@njit
def slightly_stronger_noise(r, rate, alpha, rng):
    return laws.sample_count(r, rate, 1.005 * alpha, rng)


@njit
def swapped_pieces(r, rate, alpha, rng):
    return laws.reject_from_poisson(r, rate * alpha, True, alpha, rng)


@njit
def every_step_alike(r, rate, alpha, rng):
    while True:
        y = laws.reject_from_tails(10**9, r * alpha / rate, rate * alpha / (r + 1), rng) - 10**9 + r
        if y >= 0:
            return y


@njit
def one_sided_noise(r, rate, alpha, rng):
    y = r + 1
    while y > r:
        y = rng.poisson(rate / alpha)
    return y


@njit
def draw_many(sampler, r, rate, alpha, rng, draws):
    for i in range(draws.size):
        draws[i] = sampler(r, rate, alpha, rng)


@njit
def draw_each(reports, rate, alpha, rng, draws):
    for i in range(draws.size):
        draws[i] = laws.sample_count(reports[i], rate, alpha, rng)


def p_value(sampler, r, rate, alpha, number=DRAWS):
    draws = np.empty(number, dtype=np.int64)
    draw_many(sampler, r, rate, alpha, np.random.default_rng([20240229, abs(r)]), draws)
    law = reference.count_law(r, rate, alpha)
    return reference.chi_square_p_value(draws, law.first, law.probabilities)


@pytest.mark.long
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_draws_over_the_grid(rate, alpha):
    p_values = [p_value(laws.sample_count, r, rate, alpha) for r in REPORTS]
    assert min(p_values) > P_VALUE_BOUND, dict(zip(REPORTS, p_values, strict=True))


@pytest.mark.parametrize(
    "sampler", [from_report, laws.reject_log_concave, laws.sample_count], ids=["from_report", "reject", "dispatch"]
)
@pytest.mark.parametrize(("r", "rate", "alpha"), SMALL_CASES)
def test_every_branch_draws_the_same_law(sampler, r, rate, alpha):
    assert p_value(sampler, r, rate, alpha) > P_VALUE_BOUND


@pytest.mark.parametrize(
    ("sampler", "r", "rate", "alpha"),
    [
        (from_poisson_below, 3, 1.0, 0.5),
        (from_poisson_below, 1, 0.02, 0.3),
        (from_poisson_below, 7, 6.0, 0.9),
        (from_poisson_below, 47, 40.0, 0.99),
        (from_poisson_above, 1, 30.0, 0.9),
        (from_poisson_above, 5, 9.0, 0.8),
        (from_poisson_above, 40, 47.0, 0.99),
        (from_tails, 1, 1.0, 0.2),
        (from_tails, 5, 5.0, 0.5),
        (from_tails, 2, 3.0, 0.7),
        (from_tails, 40, 60.0, 0.6),
        (from_tails, 1, 5.0, 0.01),
    ],
)
def test_rejection_of_small_counts_draws_the_same_law(sampler, r, rate, alpha):
    assert p_value(sampler, r, rate, alpha, 4 * DRAWS) > P_VALUE_BOUND


@pytest.mark.long
@pytest.mark.parametrize(("r", "rate", "alpha"), [(300, 50.0, 0.9), (300, 90.0, 0.2), (60, 300.0, 0.8)])
def test_rejection_in_two_million_draws(r, rate, alpha):
    assert p_value(laws.reject_log_concave, r, rate, alpha, 20 * DRAWS) > P_VALUE_BOUND
    assert p_value(slightly_stronger_noise, r, rate, alpha, 20 * DRAWS) < P_VALUE_BOUND


@pytest.mark.long
@pytest.mark.parametrize(
    ("wrong", "r", "rate", "alpha"),
    [
        (ignoring_the_report, 3, 1.0, 0.5),
        (ignoring_the_report, 300, 50.0, 0.9),
        (ignoring_the_report, -5, 50.0, 0.9),
        (stronger_noise, 3, 1.0, 0.5),
        (stronger_noise, 300, 1e4, 0.1),
        (stronger_noise, 10**7, 1e7, math.exp(-1)),
        (stronger_noise, 0, 50.0, 0.1),
        (swapped_pieces, 3, 1.0, 0.5),
        (swapped_pieces, 7, 5.0, 0.9),
        (every_step_alike, 5, 5.0, 0.5),
        (one_sided_noise, 3, 1.0, 0.5),
        (one_sided_noise, 7, 5.0, 0.9),
    ],
)
def test_a_slightly_wrong_sampler_is_caught(wrong, r, rate, alpha):
    assert p_value(wrong, r, rate, alpha) < P_VALUE_BOUND


@pytest.mark.parametrize(("r", "rate", "alpha"), SMALL_CASES)
def test_inversion_returns_the_count_whose_step_holds_u(r, rate, alpha):
    pmf = [float(p) for p in reference.plain_count_pmf(r, rate, alpha)]
    order = [y for y in [*range(r, -1, -1), *range(r + 1, len(pmf))] if pmf[y] > 1e-12]
    middles = np.cumsum([pmf[y] for y in order]) - 0.5 * np.array([pmf[y] for y in order])
    assert [laws.invert_from_report(r, rate / alpha, rate * alpha, u) for u in middles] == order


def test_counts_drawn_for_reports_of_a_poisson_model_are_poisson():
    rng = np.random.default_rng(7)
    rate, alpha, n = 3.0, 0.6, DRAWS
    noise = rng.geometric(1 - alpha, n) - rng.geometric(1 - alpha, n)
    reports = rng.poisson(rate, n) + noise
    draws = np.empty(n, dtype=np.int64)
    draw_each(reports, rate, alpha, rng, draws)
    exact = np.array([float(mp.exp(reference.poisson_logpmf(y, rate))) for y in range(60)])
    assert reference.chi_square_p_value(draws, 0, exact) > 1e-4
    draw_each(reports, rate, 0.9 * alpha, rng, draws)
    assert reference.chi_square_p_value(draws, 0, exact) < 1e-4


@given(rates, alphas)
@examples(40)
def test_reports_have_total_mass_one_and_counts_their_mean(rate, alpha):
    reports = range(-600, 700)
    masses = np.exp([laws.report_logpmf(r, rate, alpha) for r in reports])
    means = [laws.expected_count(r, rate, alpha) for r in reports]
    assert masses.sum() == pytest.approx(1.0, rel=1e-12)
    assert masses @ means == pytest.approx(rate, rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(("rate", "alpha"), [(0.3, 0.2), (3.0, 0.5), (8.0, 0.7)])
def test_counts_given_reports_mix_back_to_the_poisson_law(rate, alpha):
    mixed = np.zeros(60)
    for r in range(140):  # the report 0 stands for all that are not positive
        mass = laws.report_logpmf(r, rate, alpha) if r > 0 else laws.censored_logpmf(rate, alpha)
        mixed += math.exp(mass) * np.array(reference.plain_count_pmf(r, rate, alpha)[:60], dtype=float)
    exact = [float(mp.exp(reference.poisson_logpmf(y, rate))) for y in range(60)]
    np.testing.assert_allclose(mixed, exact, rtol=1e-10, atol=1e-15)


@given(small_reports, rates, alphas)
@examples(200)
def test_expected_count_increases_in_report_and_rate(r, rate, alpha):
    here = laws.expected_count(r, rate, alpha)
    next_report = laws.expected_count(r + 1, rate, alpha)
    assert next_report >= here * (1 - 1e-14)  # far above rate / alpha the limit is reached in double precision
    assert next_report > here or r < 0 or r > rate / alpha
    assert laws.expected_count(r, 1.01 * rate, alpha) > here


@given(st.integers(1, 10**7), st.floats(1e-6, 0.999999))
@examples(100)
def test_expected_count_per_rate_tends_to_one_over_alpha(r, alpha):
    for rate in (1e-12, 1e-300, 0.0):
        assert laws.expected_count_ratio(r, rate * alpha, alpha) == pytest.approx(1.0 / alpha, rel=1e-11)


@given(small_reports, rates, alphas)
@examples(200)
def test_gradient_is_the_expected_count_per_rate_less_one(r, rate, alpha):
    h = 1e-4 * rate
    slope = (laws.report_logpmf(r, rate + h, alpha) - laws.report_logpmf(r, rate - h, alpha)) / (2 * h)
    score = laws.expected_count(r, rate, alpha) / rate - 1.0
    assert slope == pytest.approx(score, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("r", "rate", "alpha"), SMALL_CASES)
def test_gradient_to_full_precision(r, rate, alpha):
    slope = mp.diff(lambda m: mp.log(reference.plain_report_pmf(r, m, alpha)), rate)
    assert reference.relative_error(laws.expected_count(r, rate, alpha) / rate - 1.0, slope) < 1e-11


@given(st.integers(-(10**7), 0), rates, alphas)
@examples(100)
def test_reports_that_are_not_positive_score_alike_up_to_a_constant(r, rate, alpha):
    assert laws.expected_count(r, rate, alpha) == alpha * rate
    difference = laws.report_logpmf(r, rate, alpha) - laws.report_logpmf(0, rate, alpha)
    assert difference == pytest.approx(-r * math.log(alpha), rel=1e-12, abs=1e-12)


@given(rates, alphas)
@examples(50)
def test_censored_score_is_the_sum_over_reports_that_are_not_positive(rate, alpha):
    total = reference.plain_report_pmf(0, rate, alpha) + reference.plain_report_pmf(-1, rate, alpha)
    rest = reference.plain_report_pmf(0, rate, alpha) * mpf(alpha) ** 2 / (1 - mpf(alpha))
    assert reference.relative_error(laws.censored_logpmf(rate, alpha), mp.log(total + rest)) < ACCURACY


def test_without_noise_the_report_is_the_count():
    rng = np.random.default_rng(0)
    for r in (0, 1, 7, 300):
        assert laws.report_logpmf(r, 2.5, 0.0) == poisson_logpmf(r, 2.5)
        assert laws.expected_count(r, 2.5, 0.0) == r
        assert laws.sample_count(r, 2.5, 0.0, rng) == r
    assert laws.report_logpmf(-1, 2.5, 0.0) == -math.inf
    assert laws.censored_logpmf(2.5, 0.0) == -2.5


def test_without_rate_the_count_is_zero():
    rng = np.random.default_rng(0)
    for r in (-4, 0, 3):
        assert laws.expected_count(r, 0.0, 0.5) == 0.0
        assert laws.sample_count(r, 0.0, 0.5, rng) == 0
        assert laws.report_logpmf(r, 0.0, 0.5) == pytest.approx(math.log(0.5 ** abs(r) / 3))


@pytest.mark.parametrize("report", [-3, 0, 1, 7, 300])
def test_a_rate_that_is_not_a_number_ends_every_loop(report):
    nan, rng = float("nan"), np.random.default_rng(1)
    assert np.isnan(laws.report_logpmf(report, nan, 0.5))
    assert np.isnan(laws.expected_count(report, nan, 0.5))
    if report > 0:
        assert laws.sample_count(report, nan, 0.5, rng) == 0


def test_a_rate_beyond_whole_numbers_of_64_bits_still_gives_a_count():
    rng = np.random.default_rng(1)
    for r, rate, alpha in ((5, 1.1e19, 0.904), (2**53, 1e19, 0.95)):
        assert laws.sample_count_given_positive(r, rate, alpha, rng) > 2**61
