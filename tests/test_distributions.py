"""What all laws share: shapes, arguments that are no whole numbers, seeds, parameters that cannot change."""

import doctest
import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import special, stats
from scipy.special import logsumexp

from countveil import distributions
from countveil.distributions import Bessel, PrivatizedNegativeBinomial, PrivatizedPoisson, Skellam, TwoSidedGeometric
from countveil.laws.noise.two_sided_geometric import poisson as laws
from tests import reference
from tests.bursts import PS, SHAPES, masses, rate_of

LAWS = [
    lambda x: TwoSidedGeometric(x),
    lambda x: Skellam(x, 1.0),
    lambda x: Bessel(2, x),
    lambda x: PrivatizedPoisson(2.0, x),
]
each_law = pytest.mark.parametrize("make", LAWS, ids=["two_sided_geometric", "skellam", "bessel", "privatized"])


@each_law
def test_parameters_and_argument_broadcast(make):
    law = make(np.array([[0.2], [0.7]]))
    for method in (law.pmf, law.logpmf, law.cdf, law.logcdf, law.sf, law.logsf):
        values = method([-1, 0, 3])
        assert values.shape == (2, 3)
        assert values[1, 2] == getattr(make(0.7), method.__name__)(3)
    assert law.shape == (2, 1)
    assert law.mean().shape == law.var().shape == law.std().shape == (2, 1)
    assert isinstance(make(0.5).pmf(1), float)
    assert isinstance(make(0.5).mean(), float)


@each_law
def test_arguments_off_the_whole_numbers(make):
    law = make(0.4)
    assert law.pmf([0.5, np.inf, -np.inf]).tolist() == [0.0, 0.0, 0.0]
    assert law.cdf([1.7, np.inf, -np.inf]).tolist() == [law.cdf(1), 1.0, 0.0]
    assert law.sf([1.7, np.inf, -np.inf]).tolist() == [law.sf(1), 0.0, 1.0]
    assert np.isnan([law.pmf(np.nan), law.cdf(np.nan), law.sf(np.nan)]).all()
    assert law.cdf(1e300) == 1.0
    assert law.sf(1e300) == 0.0


@each_law
def test_draws_have_the_shape_asked_for(make):
    law = make([0.2, 0.7])
    assert law.rvs(random_state=1).shape == (2,)
    assert law.rvs((5, 2), random_state=1).shape == (5, 2)
    assert make(0.5).rvs(4, 1).shape == (4,)
    assert make(0.5).rvs(4, 1).dtype == np.int64
    assert np.ndim(make(0.5).rvs(random_state=1)) == 0
    with pytest.raises(ValueError, match=r"size must be a shape that \(2,\) broadcasts to, got \(3,\)$"):
        law.rvs(3)


@each_law
def test_seeds(make):
    law, rng = make(0.7), np.random.default_rng(1)
    assert (law.rvs(50, 1) == law.rvs(50, rng)).all()
    assert (law.rvs(50, 1) != law.rvs(50, rng)).any()
    assert law.rvs(50).shape == (50,)
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got RandomState$"):
        law.rvs(5, np.random.RandomState(1))


@each_law
def test_parameters_stay_as_they_are(make):
    mine = np.array([0.2, 0.7])
    law = make(mine)
    mine[0] = 0.9
    assert law.pmf(1).tolist() == make([0.2, 0.7]).pmf(1).tolist()
    with pytest.raises(AttributeError, match="immutable, so shape cannot be set"):
        law.shape = (3,)
    with pytest.raises(AttributeError, match="immutable"):
        del law.shape


def test_names_and_values_show():
    assert repr(Skellam(1, 2.5)) == "Skellam(rate1=1.0, rate2=2.5)"
    assert repr(Bessel(3, 2)) == "Bessel(order=3, argument=2.0)"
    assert repr(PrivatizedPoisson(2, [0.1, 0.5])) == "PrivatizedPoisson(rate=2.0, alpha=array([0.1, 0.5]))"
    assert TwoSidedGeometric(0.5).alpha == 0.5
    assert TwoSidedGeometric(0.5).support() == (-np.inf, np.inf)
    with pytest.raises(ValueError, match="read-only"):
        TwoSidedGeometric([0.5, 0.6]).alpha[0] = 0.1


def test_examples_run():
    assert doctest.testmod(distributions) == doctest.TestResults(0, 5)


ALPHAS_OF_NOISE = (1e-9, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9)
VALUES = (-(10**7), -300, -5, -1, 0, 1, 7, 300, 10**7)
ACCURACY_OF_NOISE = 1e-12


@pytest.mark.parametrize("alpha", ALPHAS_OF_NOISE)
@pytest.mark.parametrize("k", VALUES)
def test_mass_and_tails(k, alpha):
    law = TwoSidedGeometric(alpha)
    a = mpf(alpha)
    exact = (1 - a) / (1 + a) * a ** abs(k)
    upper = a ** (k + 1) / (1 + a) if k >= 0 else 1 - a ** (-k) / (1 + a)
    lower = a ** (-k) / (1 + a) if k < 0 else 1 - a ** (k + 1) / (1 + a)
    assert reference.relative_error(law.logpmf(k), mp.log(exact)) < ACCURACY_OF_NOISE
    for value, log_value, tail in ((law.cdf(k), law.logcdf(k), lower), (law.sf(k), law.logsf(k), upper)):
        if tail > mpf(10) ** -300:
            assert reference.relative_error(value, tail) < ACCURACY_OF_NOISE
        if abs(tail - 1) > mpf(10) ** -40:
            assert reference.relative_error(log_value, mp.log(tail)) < ACCURACY_OF_NOISE


def test_agrees_with_scipy_of_noise():
    law, scipy_law = TwoSidedGeometric(0.7), stats.dlaplace(-np.log(0.7))
    k = np.arange(-40, 41)
    np.testing.assert_allclose(law.pmf(k), scipy_law.pmf(k), rtol=1e-13)
    np.testing.assert_allclose(law.cdf(k), scipy_law.cdf(k), rtol=1e-13)
    assert law.var() == pytest.approx(scipy_law.var())


def test_no_noise_is_a_point_mass():
    law = TwoSidedGeometric(0.0)
    assert law.pmf([-1, 0, 1]).tolist() == [0.0, 1.0, 0.0]
    assert law.cdf([-1, 0, 1]).tolist() == [0.0, 1.0, 1.0]
    assert law.sf([-1, 0, 1]).tolist() == [1.0, 0.0, 0.0]
    assert (law.mean(), law.var(), law.mode()) == (0.0, 0.0, 0)
    assert not law.rvs(100, 1).any()


def test_moments():
    law = TwoSidedGeometric([0.2, 0.6])
    k = np.arange(-200, 201)[:, None]
    np.testing.assert_allclose((k**2 * law.pmf(k)).sum(0), law.var(), rtol=1e-13)
    np.testing.assert_allclose(law.std() ** 2, law.var(), rtol=1e-14)
    assert law.mean().tolist() == [0.0, 0.0]
    assert law.mode().tolist() == [0, 0]


@pytest.mark.parametrize("alpha", [0.01, 0.5, 0.99])
def test_draws_of_noise(alpha):
    k = np.arange(-4000, 4001)
    exact = TwoSidedGeometric(alpha).pmf(k)
    assert reference.chi_square_p_value(TwoSidedGeometric(alpha).rvs(100_000, 3), -4000, exact) > 1e-4
    wrong = TwoSidedGeometric(0.97 * alpha).rvs(400_000, 3)
    assert reference.chi_square_p_value(wrong, -4000, exact) < 1e-4 or alpha < 0.1


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (1.0, r"alpha must be in \[0, 1\), got 1.0$"),
        (np.nan, r"alpha must be in \[0, 1\), got nan$"),
        ([[0.1, 0.2], [0.3, -0.5]], r"alpha must be in \[0, 1\), got -0.5 at index \(1, 1\)$"),
    ],
)
def test_alpha_outside_its_range(alpha, message):
    with pytest.raises(ValueError, match=message):
        TwoSidedGeometric(alpha)


RATES_OF_SKELLAM = (1e-300, 1e-3, 1.0, 50.0, 1e4, 1e7)
ACCURACY_OF_SKELLAM = 1e-12


@pytest.mark.long
@pytest.mark.parametrize("rate1", RATES_OF_SKELLAM)
@pytest.mark.parametrize("rate2", RATES_OF_SKELLAM)
def test_logpmf_over_the_grid_of_skellam(rate1, rate2):
    law, sd = Skellam(rate1, rate2), np.sqrt(rate1 + rate2)
    centre = int(rate1 - rate2)
    points = (centre, int(centre + 6 * sd), int(centre - 30 * sd) - 3, 0, -2, 10**7)
    for k in points[
        :: 3 if min(rate1, rate2) == RATES_OF_SKELLAM[-1] else 1
    ]:  # sums of so many terms take a second each
        exact = reference.skellam_logpmf(k, rate1, rate2)
        assert reference.relative_error(law.logpmf(k), exact) < ACCURACY_OF_SKELLAM, k


@pytest.mark.parametrize(("rate1", "rate2"), [(1e-3, 1e-5), (0.3, 2.0), (5.0, 4.0), (1.0, 80.0), (60.0, 60.0)])
@pytest.mark.parametrize("distance", [0, 1, 3, 12, 40])
def test_tails_of_skellam(rate1, rate2, distance):
    law = Skellam(rate1, rate2)
    k = int(np.ceil(rate1 - rate2)) + distance * int(np.ceil(np.sqrt(rate1 + rate2)))
    above = reference.log_sum_downhill(lambda j: reference.skellam_logpmf(j, rate1, rate2), k + 1, 1)
    assert reference.relative_error(law.logsf(k), above) < ACCURACY_OF_SKELLAM
    assert reference.relative_error(law.logcdf(k), mp.log(1 - mp.exp(above))) < ACCURACY_OF_SKELLAM or above < -80
    mirrored = Skellam(rate2, rate1)
    assert reference.relative_error(mirrored.logcdf(-k - 1), above) < ACCURACY_OF_SKELLAM


@pytest.mark.parametrize(("rate1", "rate2"), [(1e7, 1e7), (1e7, 100.0), (1.0, 1e7), (3e6, 1e7)])
def test_tails_of_large_rates_of_skellam(rate1, rate2):
    law = Skellam(rate1, rate2)
    centre, sd = int(rate1 - rate2), np.sqrt(rate1 + rate2)
    k = centre + (sd * np.array([-20, -6, -1, 0, 1, 6, 20])).astype(int)
    differences = law.sf(k - 1) * -np.expm1(law.logsf(k) - law.logsf(k - 1))
    np.testing.assert_allclose(differences[3:], law.pmf(k[3:]), rtol=1e-8)  # sf / pmf, some thousands, is lost
    differences = law.cdf(k) * -np.expm1(law.logcdf(k - 1) - law.logcdf(k))
    np.testing.assert_allclose(differences[:4], law.pmf(k[:4]), rtol=1e-8)
    np.testing.assert_allclose(law.cdf(k) + law.sf(k), 1.0, rtol=1e-12)


@pytest.mark.parametrize("rate", [1e-3, 1.0, 1e4, 1e7])
def test_equal_rates_leave_half_of_the_rest_on_each_side(rate):
    law = Skellam(rate, rate)
    assert law.sf(0) == pytest.approx(0.5 * (1 - law.pmf(0)), rel=1e-11)
    assert law.cdf(-1) == pytest.approx(law.sf(0), rel=1e-13)


def test_agrees_with_scipy_of_skellam():
    law, scipy_law = Skellam(3.0, 5.0), stats.skellam(3.0, 5.0)
    k = np.arange(-25, 20)
    np.testing.assert_allclose(law.pmf(k), scipy_law.pmf(k), rtol=1e-11)
    np.testing.assert_allclose(law.cdf(k), scipy_law.cdf(k), rtol=1e-10)
    np.testing.assert_allclose([law.mean(), law.var(), law.std()], [-2.0, 8.0, np.sqrt(8.0)])


@pytest.mark.parametrize("rate", [0.0, 1e-300, 0.4, 30.0, 1e7])
def test_one_rate_zero_is_poisson(rate):
    k = int(rate) + np.array([0, 1, 5])
    np.testing.assert_allclose(Skellam(rate, 0.0).sf(k), special.gammainc(k + 1.0, rate), rtol=1e-9)
    np.testing.assert_allclose(Skellam(0.0, rate).cdf(-k - 1), special.gammainc(k + 1.0, rate), rtol=1e-9)
    assert Skellam(rate, 0.0).cdf(-1) == 0.0
    assert Skellam(rate, 0.0).pmf(-1) == 0.0
    assert Skellam(rate, 0.0).sf(-1) == 1.0


@pytest.mark.parametrize(("rate1", "rate2"), [(0.0, 0.0), (0.2, 3.0), (30.0, 7.0)])
def test_mass_is_one_and_cdf_its_running_sum_of_skellam(rate1, rate2):
    law, k = Skellam(rate1, rate2), np.arange(-150, 151)
    assert law.pmf(k).sum() == pytest.approx(1.0, rel=1e-13)
    inner = slice(40, -40)  # nearer to the ends, what the sums leave out shows
    np.testing.assert_allclose(law.cdf(k)[inner], np.cumsum(law.pmf(k))[inner], rtol=1e-12, atol=1e-300)
    from_above = np.cumsum(law.pmf(k + 1)[::-1])[::-1]
    np.testing.assert_allclose(law.sf(k)[inner], from_above[inner], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(law.cdf(k) + law.sf(k), 1.0, rtol=1e-13)
    assert (k * law.pmf(k)).sum() == pytest.approx(law.mean(), rel=1e-12)


@pytest.mark.parametrize(("rate1", "rate2"), [(0.2, 3.0), (40.0, 25.0)])
def test_draws_of_skellam(rate1, rate2):
    k = np.arange(-150, 151)
    exact = Skellam(rate1, rate2).pmf(k)
    assert reference.chi_square_p_value(Skellam(rate1, rate2).rvs(100_000, 5), -150, exact) > 1e-4
    wrong = Skellam(1.05 * rate1, 1.05 * rate2).rvs(400_000, 5)
    assert reference.chi_square_p_value(wrong, -150, exact) < 1e-4


def test_bad_rates():
    with pytest.raises(ValueError, match=r"rate1 must be non-negative, got -0.3 at index \(1,\)$"):
        Skellam([1.0, -0.3], 1.0)
    with pytest.raises(ValueError, match=r"rate2 must be finite, got inf$"):
        Skellam(1.0, np.inf)
    with pytest.raises(ValueError, match=r"shapes must broadcast together, got rate1 \(2,\), rate2 \(3,\)$"):
        Skellam([1.0, 2.0], [1.0, 2.0, 3.0])


ORDERS = (0, 1, 5, 300, 10**5, 10**7)
ARGUMENTS = (1e-6, 1e-2, 1.0, 10.0, 1e3, 1e5, 1e7)
ACCURACY_OF_BESSEL = 1e-12


def exact_logpmf(n, order, argument, log_bessel_i):
    half = mpf(argument) / 2
    return (2 * n + order) * mp.log(half) - mp.loggamma(n + 1) - mp.loggamma(n + order + 1) - log_bessel_i


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_mass_and_moments_over_the_grid(order, argument):
    law, exact = Bessel(order, argument), reference.bessel_law(order, argument)
    log_i, sd = reference.log_bessel_i(order, argument), float(mp.sqrt(exact.variance))
    for n in (0, exact.mode, max(0, int(exact.mode - 5 * sd)), int(exact.mode + 5 * sd) + 1, exact.mode + 40, 10**7):
        error = reference.relative_error(law.logpmf(n), exact_logpmf(n, order, argument, log_i))
        assert error < ACCURACY_OF_BESSEL, n
    assert law.mode() == exact.mode
    assert reference.relative_error(law.mean(), exact.mean) < ACCURACY_OF_BESSEL
    assert reference.relative_error(law.var(), exact.variance) < ACCURACY_OF_BESSEL


@pytest.mark.parametrize(("order", "argument"), [(0, 0.5), (3, 10.0), (50, 5.0), (0, 200.0), (1000, 1e4)])
def test_the_reference_series_is_the_bessel_function(order, argument):
    assert abs(reference.log_bessel_i(order, argument) - mp.log(mp.besseli(order, argument))) < 1e-25


@pytest.mark.parametrize(("order", "argument"), [(0, 1e-3), (0, 2.0), (7, 30.0), (400, 60.0), (0, 2000.0)])
def test_tails_of_bessel(order, argument):
    law, exact = Bessel(order, argument), reference.bessel_law(order, argument)
    log_i, sd = reference.log_bessel_i(order, argument), int(mp.ceil(mp.sqrt(exact.variance)))

    def logpmf(n):
        return exact_logpmf(n, order, argument, log_i) if n >= 0 else -mp.inf

    for n in exact.mode + sd * np.array([0, 1, 5, 30]):
        above = reference.log_sum_downhill(logpmf, int(n) + 1, 1)
        assert reference.relative_error(law.logsf(n), above) < ACCURACY_OF_BESSEL
        assert reference.relative_error(law.cdf(n), 1 - mp.exp(above)) < ACCURACY_OF_BESSEL
    for n in {max(0, exact.mode - 1), max(0, exact.mode - 5 * sd)} & set(range(exact.mode)):
        below = reference.log_sum_downhill(logpmf, n, -1)
        assert reference.relative_error(law.logcdf(n), below) < ACCURACY_OF_BESSEL
        assert reference.relative_error(law.sf(n), 1 - mp.exp(below)) < ACCURACY_OF_BESSEL


@pytest.mark.parametrize(("order", "argument"), [(0, 1.5), (4, 25.0), (90, 40.0)])
def test_mass_is_one_and_cdf_its_running_sum_of_bessel(order, argument):
    law, n = Bessel(order, argument), np.arange(0, 120)
    assert law.pmf(n).sum() == pytest.approx(1.0, rel=1e-13)
    np.testing.assert_allclose(law.cdf(n), np.cumsum(law.pmf(n)), rtol=1e-12)
    np.testing.assert_allclose(law.cdf(n) + law.sf(n), 1.0, rtol=1e-13)
    np.testing.assert_allclose(law.pmf(n), closed_form(n, order, argument), rtol=1e-10, atol=1e-290)
    ratio = special.ive(order + 1, argument) / special.ive(order, argument)
    assert law.mean() == pytest.approx(0.5 * argument * ratio, rel=1e-12)
    assert abs(law.mean() - law.mode()) <= 1
    assert law.cdf(-1) == law.pmf(-1) == 0.0
    assert law.sf(-1) == 1.0
    assert law.support() == (0.0, np.inf)


def closed_form(n, order, argument):
    log_i = np.log(special.ive(order, argument)) + argument
    log_weight = (2 * n + order) * np.log(argument / 2) - special.gammaln(n + 1) - special.gammaln(n + order + 1)
    return np.exp(log_weight - log_i)


def test_it_is_a_count_given_its_difference_from_another():
    rate1, rate2, n = 3.0, 2.0, np.arange(12)
    for difference in (0, 2):
        joint = np.exp(-5.0) * rate1 ** (n + difference) * rate2**n
        joint = joint / special.factorial(n + difference) / special.factorial(n)
        conditional = Bessel(difference, 2 * np.sqrt(rate1 * rate2)).pmf(n)
        np.testing.assert_allclose(conditional * Skellam(rate1, rate2).pmf(difference), joint, rtol=1e-12)


@pytest.mark.parametrize(("order", "argument"), [(0, 1e-3), (0, 3.0), (5, 40.0), (200, 300.0), (0, 1e4)])
def test_draws_of_bessel(order, argument):
    n = np.arange(0, 7000)
    exact = Bessel(order, argument).pmf(n)
    assert reference.chi_square_p_value(Bessel(order, argument).rvs(100_000, 9), 0, exact) > 1e-4
    if argument > 1.0:
        wrong = Bessel(order, 1.05 * argument).rvs(100_000, 9)
        assert reference.chi_square_p_value(wrong, 0, exact) < 1e-4
        shifted = Bessel(order + 1, argument).rvs(400_000, 9)
        assert reference.chi_square_p_value(shifted, 0, exact) < 1e-4 or argument > 1e3


def test_draws_of_many_parameters_at_once():
    law = Bessel([[0], [20]], [1.0, 50.0, 1e3])
    draws = law.rvs((40_000, 2, 3), 4)
    error = draws.mean(0) - law.mean()
    assert (np.abs(error) < 4.5 * law.std() / np.sqrt(len(draws))).all()


@pytest.mark.parametrize(
    ("order", "argument", "message"),
    [
        (-1, 1.0, "order must be non-negative, got -1$"),
        ([1.0, 2.5], 1.0, r"order must be whole numbers, got 2.5 at index \(1,\)$"),
        (1, 0.0, "argument must be positive, got 0.0$"),
        (1, [1.0, np.inf], r"argument must be finite, got inf at index \(1,\)$"),
    ],
)
def test_bad_parameters_of_bessel(order, argument, message):
    with pytest.raises(ValueError, match=message):
        Bessel(order, argument)


RATES_OF_POISSON = (1e-300, 1e-12, 1e-3, 1.0, 50.0, 1e4, 1e7)
ALPHAS_OF_POISSON = (1e-6, 0.1, math.exp(-1), 0.9, 0.999, 1 - 1e-9)
REPORTS_OF_POISSON = np.array([-(10**7), -5, 0, 1, 2, 7, 300, 10**7])
ACCURACY_OF_POISSON = 1e-12


@pytest.mark.long
def test_logpmf_over_the_grid_of_poisson():
    values = PrivatizedPoisson(np.array(RATES_OF_POISSON)[:, None, None], np.array(ALPHAS_OF_POISSON)[:, None]).logpmf(
        REPORTS_OF_POISSON
    )
    assert values.shape == (7, 6, 8)
    for (i, j, k), value in np.ndenumerate(values):  # which has the digits of sums: test_poisson.py of the noise
        law = laws.report_logpmf(int(REPORTS_OF_POISSON[k]), RATES_OF_POISSON[i], ALPHAS_OF_POISSON[j])
        assert value == pytest.approx(law, rel=1e-15, abs=0.0)


def powers(a, n):
    """a^0, a^1, ..., a^(n - 1), in the digits of now."""
    return list(itertools.accumulate(itertools.repeat(a, n - 1), mp.fmul, initial=mpf(1)))


def poisson_masses(rate, terms):
    """P(y) for y = 0, 1, ..., in the digits of now."""
    return list(itertools.accumulate(range(1, terms), lambda mass, y: mass * rate / y, initial=mp.exp(-mpf(rate))))


def exact_tails(k, masses, power):
    """P(r <= k) and P(r > k): the noise's tails averaged over the count."""
    a, lower, upper = power[1], mpf(0), mpf(0)
    for y, mass in enumerate(masses):
        beyond = power[k - y + 1] / (1 + a) if y <= k else 1 - power[y - k] / (1 + a)
        upper += mass * beyond
        lower += mass * (1 - beyond)
    return lower, upper


@pytest.mark.long
@pytest.mark.parametrize("rate", [1e-300, 1e-12, 0.3, 2.0, 40.0])
@pytest.mark.parametrize("alpha", [1e-6, 0.3, 0.9, 0.999])
def test_tails_of_poisson(rate, alpha):
    law = PrivatizedPoisson(rate, alpha)
    with mp.workdps(300):
        masses, power = poisson_masses(rate, 400), powers(mpf(alpha), 500)
        for k in (-40, -1, 0, 1, 2, 5, 39, 45, 150):
            lower, upper = exact_tails(k, masses, power)
            for log_value, tail, rest in ((law.logcdf(k), lower, upper), (law.logsf(k), upper, lower)):
                tiny = rest < mpf(10) ** -200  # then log(1 - rest) is beyond the reference, or beyond a double
                assert tiny or reference.relative_error(log_value, mp.log(tail)) < ACCURACY_OF_POISSON, k
                assert log_value <= 0.0


@pytest.mark.parametrize("rate", [1e4, 1e7])
@pytest.mark.parametrize("alpha", [1e-6, 0.1, 0.9, 0.999, 1 - 1e-9])
def test_tails_of_large_rates_of_poisson(rate, alpha):
    law, noise = PrivatizedPoisson(rate, alpha), TwoSidedGeometric(alpha)
    y = np.arange(max(0, int(rate - 25 * math.sqrt(rate))), int(rate + 25 * math.sqrt(rate)))
    masses = np.exp([laws.poisson_logpmf(n, rate) for n in y])
    for k in (int(rate) + math.sqrt(rate) * np.array([-6, -1, 0, 1, 6])).astype(int):
        assert law.sf(k) == pytest.approx(masses @ noise.sf(k - y), rel=1e-11)
        assert law.cdf(k) == pytest.approx(masses @ noise.cdf(k - y), rel=1e-11)


@pytest.mark.parametrize("alpha", ALPHAS_OF_POISSON)
@pytest.mark.parametrize("k", [-(10**7), -3, 0])
def test_lower_tail_is_geometric_up_to_zero_of_poisson(k, alpha):
    exact = -k * mp.log(mpf(alpha)) - (1 - mpf(alpha)) * 2 - mp.log(1 + mpf(alpha))
    assert reference.relative_error(PrivatizedPoisson(2.0, alpha).logcdf(k), exact) < ACCURACY_OF_POISSON


@pytest.mark.parametrize(("rate", "alpha"), [(0.0, 0.4), (0.01, 0.9), (3.0, 0.5), (60.0, 0.95)])
def test_mass_is_one_and_cdf_its_running_sum_of_poisson(rate, alpha):
    law, r = PrivatizedPoisson(rate, alpha), np.arange(-700, 900)
    assert law.pmf(r).sum() == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(law.cdf(r[600:]), np.cumsum(law.pmf(r))[600:], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(law.cdf(r) + law.sf(r), 1.0, rtol=1e-13)
    assert (r * law.pmf(r)).sum() == pytest.approx(law.mean(), rel=1e-11, abs=1e-13)
    assert ((r - rate) ** 2 * law.pmf(r)).sum() == pytest.approx(law.var(), rel=1e-11)
    assert law.std() == pytest.approx(math.sqrt(law.var()))


@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.1, 0.5, 0.9, 0.99])
def test_mode_of_poisson(alpha):
    rates = np.array([0.0, 1e-3, 0.3, 0.7, 1.5, 2.5, 9.7, 33.3, 120.5])
    r = np.arange(-3, 200)[:, None]
    modes = PrivatizedPoisson(rates, alpha).mode()
    assert modes.tolist() == (r[0] + PrivatizedPoisson(rates, alpha).logpmf(r).argmax(0)).tolist()
    assert abs(PrivatizedPoisson(1e7, alpha).mode() - 1e7) <= 1


def test_without_noise_it_is_poisson():
    law, exact, k = PrivatizedPoisson(4.5, 0.0), stats.poisson(4.5), np.arange(-2, 40)
    np.testing.assert_allclose(law.pmf(k), exact.pmf(k), rtol=1e-12)
    np.testing.assert_allclose(law.cdf(k), exact.cdf(k), rtol=1e-12)
    np.testing.assert_allclose(law.sf(k), exact.sf(k), rtol=1e-12)
    assert law.mode() == 4


@pytest.mark.parametrize(("rate", "alpha"), [(0.1, 0.5), (12.0, 0.2), (400.0, 0.97)])
def test_draws_of_poisson(rate, alpha):
    exact = PrivatizedPoisson(rate, alpha).pmf(np.arange(-2000, 3000))
    assert reference.chi_square_p_value(PrivatizedPoisson(rate, alpha).rvs(100_000, 2), -2000, exact) > 1e-4
    for wrong in (PrivatizedPoisson(rate, 0.7 * alpha), PrivatizedPoisson(1.2 * rate, alpha)):
        assert reference.chi_square_p_value(wrong.rvs(400_000, 2), -2000, exact) < 1e-4
    one_sided = rate + np.random.default_rng(2).geometric(1 - alpha, 100_000) - 1
    assert reference.chi_square_p_value(one_sided.astype(int), -2000, exact) < 1e-4


def test_bad_parameters_of_poisson():
    with pytest.raises(ValueError, match=r"rate must be non-negative, got -0.3 at index \(0, 1\)$"):
        PrivatizedPoisson([[1.0, -0.3]], 0.5)
    with pytest.raises(ValueError, match=r"rate must be non-negative, got nan$"):
        PrivatizedPoisson(np.nan, 0.5)
    with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\), got 1.5$"):
        PrivatizedPoisson(1.0, 1.5)
    with pytest.raises(TypeError, match="rate must be real numbers, got str"):
        PrivatizedPoisson("1", 0.5)


ALPHAS_OF_BURSTS = (1e-6, 0.1, math.exp(-1), 0.9, 0.999)
REPORTS_OF_BURSTS = (-(10**7), -7, 0, 1, 3, 17, 200, 3000)
ACCURACY_OF_BURSTS = 1e-9
CASES = [case for case in itertools.product(PS, SHAPES) if case != (0.999, 1e5)]


@pytest.mark.long
@pytest.mark.parametrize(("p", "s"), CASES)
def test_logs_of_mass_and_tails_are_those_of_sums_over_all_counts(p, s):
    counts, logs, _ = masses(s, p)
    mean = s * p / (1.0 - p)
    near = (int(mean), int(mean + 3.0 * math.sqrt(mean / (1.0 - p)))) if mean > 1.0 else ()
    for alpha in (ALPHAS_OF_BURSTS[::2] if s < 1 else ALPHAS_OF_BURSTS[1::2]) if s < 1e5 else (1e-6, 0.9):
        law, noise = PrivatizedNegativeBinomial(rate_of(s, p), p, alpha), TwoSidedGeometric(alpha)
        for r in (*REPORTS_OF_BURSTS[1 :: 1 if s < 1e5 else 3], *near):  # sums of a million terms take long
            for got, part in ((law.logpmf, noise.logpmf), (law.logcdf, noise.logcdf), (law.logsf, noise.logsf)):
                assert got(r) == pytest.approx(
                    logsumexp(logs + part(r - counts)), rel=ACCURACY_OF_BURSTS, abs=ACCURACY_OF_BURSTS
                )


def exact_logs(reports, s, p, alpha, terms):
    """log P(r), log P(<= r) and log P(> r) of every report, from sums in many digits."""
    with mp.workdps(400):
        a, x, shape = mpf(alpha), mpf(p), mpf(s)
        power, masses = powers(a, terms + 1), [(1 - x) ** shape]
        for y in range(terms - 1):
            masses.append(masses[-1] * x * (shape + y) / (y + 1))
        for r in reports:
            sums = [mpf(0)] * 3
            for y, mass in enumerate(masses):
                beyond = power[r - y + 1] / (1 + a) if y <= r else 1 - power[y - r] / (1 + a)
                parts = (1 - a) / (1 + a) * power[abs(r - y)], 1 - beyond, beyond
                sums = [total + mass * part for total, part in zip(sums, parts, strict=True)]
            yield [mp.log(total) for total in sums]


@pytest.mark.long
@pytest.mark.parametrize(
    ("s", "p", "alpha"),
    [
        *((1e-12, 0.5, 1e-6), (0.01, 0.3, 0.3), (0.3, 1e-6, 0.9), (2.5, 0.4, 1e-6), (50.0, 0.3, 0.3)),
        *((1e5, 1e-6, 0.9), (1e-12, 0.5, 0.9), (2.5, 0.4, 0.9), (1e5, 1e-6, 0.3)),
    ],
)
def test_far_tails(s, p, alpha):
    law = PrivatizedNegativeBinomial(rate_of(s, p), p, alpha)
    reports = (0, 1, 5, 40, 150)
    for r, logs in zip(reports, list(exact_logs(reports, s, p, alpha, 900)), strict=True):
        got = law.logpmf(r), law.logcdf(r), law.logsf(r)
        for value, exact in zip(got, logs, strict=True):
            assert abs(value - exact) <= 1e-12 * max(1.0, abs(exact)), r
            assert value <= 0.0


@pytest.mark.long
@pytest.mark.parametrize("alpha", ALPHAS_OF_BURSTS)
@pytest.mark.parametrize("r", [-(10**7), -3, 0])
def test_lower_tail_is_geometric_up_to_zero_of_bursts(alpha, r):
    with mp.workdps(50):
        a, p = mpf(alpha), mpf(0.7)
        exact = -r * mp.log(a) - (1 - mp.log(1 - p * a) / mp.log(1 - p)) * 2 - mp.log(1 + a)
        assert reference.relative_error(PrivatizedNegativeBinomial(2.0, 0.7, alpha).logcdf(r), exact) < 1e-12


@pytest.mark.long
@pytest.mark.parametrize("rate", [1.0, 50.0, 1e4, 1e7])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.3, 0.99, 1 - 1e-9])
def test_at_a_small_dispersion_it_is_poisson(rate, alpha):
    poisson, law = PrivatizedPoisson(rate, alpha), PrivatizedNegativeBinomial(rate, 2e-12, alpha)
    near = (int(rate) + math.sqrt(rate) * np.array([-3.0, 0.0, 2.0])).astype(int)
    for r in (*near, int(rate) + 7):
        if r >= 0:
            assert law.logpmf(r) == pytest.approx(poisson.logpmf(r), abs=1e-9 + 1e-15 * rate)


@pytest.mark.long
@pytest.mark.parametrize(("rate", "p", "alpha"), [(1e7, 0.99, 0.9), (1e7, 1e-6, 0.9999), (1e5, 0.9, 0.5)])
def test_extremes_are_finite_and_add_up(rate, p, alpha):
    law = PrivatizedNegativeBinomial(rate, p, alpha)
    ends = law.mean() + law.std() * np.array([-9.0, -1.0, 0.0, 1.0, 9.0])
    assert np.isfinite(law.logpmf(np.floor(ends))).all()
    np.testing.assert_allclose(law.cdf(ends) + law.sf(ends), 1.0, rtol=1e-9)
    steps = law.mean() + np.arange(5.0)
    np.testing.assert_allclose(np.diff(law.cdf(steps)), law.pmf(np.floor(steps[1:])), rtol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(
    ("rate", "p", "alpha"), [(0.0, 0.5, 0.4), (0.01, 0.9, 0.9), (3.0, 0.5, 0.5), (20.0, 0.8, 0.95), (2.0, 0.7, 0.0)]
)
def test_mass_is_one_and_cdf_its_running_sum_of_bursts(rate, p, alpha):
    law, r = PrivatizedNegativeBinomial(rate, p, alpha), np.arange(-700, 900)
    assert law.pmf(r).sum() == pytest.approx(1.0, rel=1e-11)
    np.testing.assert_allclose(law.cdf(r[600:]), np.cumsum(law.pmf(r))[600:], rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(law.cdf(r) + law.sf(r), 1.0, rtol=1e-12)
    assert (r * law.pmf(r)).sum() == pytest.approx(law.mean(), rel=1e-10, abs=1e-13)
    assert ((r - law.mean()) ** 2 * law.pmf(r)).sum() == pytest.approx(law.var(), rel=1e-10)
    assert law.std() == pytest.approx(math.sqrt(law.var()))


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.1, 0.5, 0.9, 0.99])
def test_mode_of_bursts(alpha):
    rates, ps = np.array([0.0, 1e-3, 0.3, 0.7, 2.5, 9.7, 33.3, 60.5])[:, None], np.array([0.01, 0.4, 0.8])
    r = np.arange(-3, 300)[:, None, None]
    law = PrivatizedNegativeBinomial(rates, ps, alpha)
    assert law.mode().tolist() == (law.logpmf(r).argmax(0) - 3).tolist()


@pytest.mark.long
def test_without_noise_it_is_negative_binomial_with_the_parameters_of_scipy():
    n, p, k = 3.2, 0.35, np.arange(-2, 60)
    law, exact = PrivatizedNegativeBinomial(-n * math.log(p), 1.0 - p, 0.0), stats.nbinom(n, p)
    np.testing.assert_allclose(law.pmf(k), exact.pmf(k), rtol=1e-11)
    np.testing.assert_allclose(law.cdf(k), exact.cdf(k), rtol=1e-11)
    np.testing.assert_allclose(law.sf(k), exact.sf(k), rtol=1e-11)
    assert (law.mean(), law.var()) == pytest.approx((exact.mean(), exact.var()))
    mean, concentration = 4.0, 1.7
    p = mean / (mean + concentration)
    law = PrivatizedNegativeBinomial(concentration * math.log1p(mean / concentration), p, 0.0)
    assert law.mean() == pytest.approx(mean)
    assert law.var() == pytest.approx(mean + mean**2 / concentration)


@pytest.mark.long
@pytest.mark.parametrize(("rate", "p", "alpha"), [(0.1, 0.9, 0.5), (12.0, 0.3, 0.2), (100.0, 0.6, 0.97)])
def test_draws_of_bursts(rate, p, alpha):
    r = np.arange(-2000, 3000)
    exact = PrivatizedNegativeBinomial(rate, p, alpha).pmf(r)
    draws = PrivatizedNegativeBinomial(rate, p, alpha).rvs(100_000, 2)
    assert reference.chi_square_p_value(draws, -2000, exact) > 1e-4
    for wrong in ((rate, p, 0.7 * alpha), (1.2 * rate, p, alpha), (rate, 0.8 * p, alpha)):
        wrong_draws = PrivatizedNegativeBinomial(*wrong).rvs(400_000, 2)
        assert reference.chi_square_p_value(wrong_draws, -2000, exact) < 1e-4


@pytest.mark.long
def test_shapes_broadcast():
    law = PrivatizedNegativeBinomial(np.ones((3, 1)), [0.2, 0.9], 0.5)
    assert law.shape == (3, 2)
    assert law.rvs(random_state=1).shape == law.mean().shape == law.var().shape == law.logpmf(1).shape == (3, 2)
    assert law.cdf(2)[1, 1] == PrivatizedNegativeBinomial(1.0, 0.9, 0.5).cdf(2)


@pytest.mark.long
def test_bad_parameters_of_bursts():
    with pytest.raises(ValueError, match=r"rate must be non-negative, got -0.3 at index \(0, 1\)$"):
        PrivatizedNegativeBinomial([[1.0, -0.3]], 0.5, 0.5)
    for wrong in (0.0, 1.0, -0.5, np.nan):
        with pytest.raises(ValueError, match=rf"dispersion must be in \(0, 1\), got {wrong}$"):
            PrivatizedNegativeBinomial(1.0, wrong, 0.5)
    with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\), got 1.5$"):
        PrivatizedNegativeBinomial(1.0, 0.5, 1.5)
    with pytest.raises(TypeError, match="dispersion must be real numbers, got str"):
        PrivatizedNegativeBinomial(1.0, "0.5", 0.5)
