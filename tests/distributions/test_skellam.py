import numpy as np
import pytest
from mpmath import mp
from scipy import special, stats

from countveil.distributions import Skellam
from tests import reference

RATES = (1e-300, 1e-3, 1.0, 50.0, 1e4, 1e7)
ACCURACY = 1e-12


@pytest.mark.long
@pytest.mark.parametrize("rate1", RATES)
@pytest.mark.parametrize("rate2", RATES)
def test_logpmf_over_the_grid(rate1, rate2):
    law, sd = Skellam(rate1, rate2), np.sqrt(rate1 + rate2)
    centre = int(rate1 - rate2)
    points = (centre, int(centre + 6 * sd), int(centre - 30 * sd) - 3, 0, -2, 10**7)
    for k in points[:: 3 if min(rate1, rate2) == RATES[-1] else 1]:  # sums of so many terms take a second each
        exact = reference.skellam_logpmf(k, rate1, rate2)
        assert reference.relative_error(law.logpmf(k), exact) < ACCURACY, k


@pytest.mark.parametrize(("rate1", "rate2"), [(1e-3, 1e-5), (0.3, 2.0), (5.0, 4.0), (1.0, 80.0), (60.0, 60.0)])
@pytest.mark.parametrize("distance", [0, 1, 3, 12, 40])
def test_tails(rate1, rate2, distance):
    law = Skellam(rate1, rate2)
    k = int(np.ceil(rate1 - rate2)) + distance * int(np.ceil(np.sqrt(rate1 + rate2)))
    above = reference.log_sum_downhill(lambda j: reference.skellam_logpmf(j, rate1, rate2), k + 1, 1)
    assert reference.relative_error(law.logsf(k), above) < ACCURACY
    assert reference.relative_error(law.logcdf(k), mp.log(1 - mp.exp(above))) < ACCURACY or above < -80
    mirrored = Skellam(rate2, rate1)
    assert reference.relative_error(mirrored.logcdf(-k - 1), above) < ACCURACY


@pytest.mark.parametrize(("rate1", "rate2"), [(1e7, 1e7), (1e7, 100.0), (1.0, 1e7), (3e6, 1e7)])
def test_tails_of_large_rates(rate1, rate2):
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


def test_agrees_with_scipy():
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
def test_mass_is_one_and_cdf_its_running_sum(rate1, rate2):
    law, k = Skellam(rate1, rate2), np.arange(-150, 151)
    assert law.pmf(k).sum() == pytest.approx(1.0, rel=1e-13)
    inner = slice(40, -40)  # nearer to the ends, what the sums leave out shows
    np.testing.assert_allclose(law.cdf(k)[inner], np.cumsum(law.pmf(k))[inner], rtol=1e-12, atol=1e-300)
    from_above = np.cumsum(law.pmf(k + 1)[::-1])[::-1]
    np.testing.assert_allclose(law.sf(k)[inner], from_above[inner], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(law.cdf(k) + law.sf(k), 1.0, rtol=1e-13)
    assert (k * law.pmf(k)).sum() == pytest.approx(law.mean(), rel=1e-12)


@pytest.mark.parametrize(("rate1", "rate2"), [(0.2, 3.0), (40.0, 25.0)])
def test_draws(rate1, rate2):
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
