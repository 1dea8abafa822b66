import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import special

from countveil.distributions import Bessel, Skellam
from tests import reference

ORDERS = (0, 1, 5, 300, 10**5, 10**7)
ARGUMENTS = (1e-6, 1e-2, 1.0, 10.0, 1e3, 1e5, 1e7)
ACCURACY = 1e-12


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
        assert error < ACCURACY, n
    assert law.mode() == exact.mode
    assert reference.relative_error(law.mean(), exact.mean) < ACCURACY
    assert reference.relative_error(law.var(), exact.variance) < ACCURACY


@pytest.mark.parametrize(("order", "argument"), [(0, 0.5), (3, 10.0), (50, 5.0), (0, 200.0), (1000, 1e4)])
def test_the_reference_series_is_the_bessel_function(order, argument):
    assert abs(reference.log_bessel_i(order, argument) - mp.log(mp.besseli(order, argument))) < 1e-25


@pytest.mark.parametrize(("order", "argument"), [(0, 1e-3), (0, 2.0), (7, 30.0), (400, 60.0), (0, 2000.0)])
def test_tails(order, argument):
    law, exact = Bessel(order, argument), reference.bessel_law(order, argument)
    log_i, sd = reference.log_bessel_i(order, argument), int(mp.ceil(mp.sqrt(exact.variance)))

    def logpmf(n):
        return exact_logpmf(n, order, argument, log_i) if n >= 0 else -mp.inf

    for n in exact.mode + sd * np.array([0, 1, 5, 30]):
        above = reference.log_sum_downhill(logpmf, int(n) + 1, 1)
        assert reference.relative_error(law.logsf(n), above) < ACCURACY
        assert reference.relative_error(law.cdf(n), 1 - mp.exp(above)) < ACCURACY
    for n in {max(0, exact.mode - 1), max(0, exact.mode - 5 * sd)} & set(range(exact.mode)):
        below = reference.log_sum_downhill(logpmf, n, -1)
        assert reference.relative_error(law.logcdf(n), below) < ACCURACY
        assert reference.relative_error(law.sf(n), 1 - mp.exp(below)) < ACCURACY


@pytest.mark.parametrize(("order", "argument"), [(0, 1.5), (4, 25.0), (90, 40.0)])
def test_mass_is_one_and_cdf_its_running_sum(order, argument):
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
def test_draws(order, argument):
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
def test_bad_parameters(order, argument, message):
    with pytest.raises(ValueError, match=message):
        Bessel(order, argument)
