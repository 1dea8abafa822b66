import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from countveil.distributions import PrivatizedPoisson, TwoSidedGeometric
from countveil.laws.noise.two_sided_geometric import poisson as laws
from tests import reference

RATES = (1e-300, 1e-12, 1e-3, 1.0, 50.0, 1e4, 1e7)
ALPHAS = (1e-6, 0.1, math.exp(-1), 0.9, 0.999, 1 - 1e-9)
REPORTS = np.array([-(10**7), -5, 0, 1, 2, 7, 300, 10**7])
ACCURACY = 1e-12


@pytest.mark.long
def test_logpmf_over_the_grid():
    values = PrivatizedPoisson(np.array(RATES)[:, None, None], np.array(ALPHAS)[:, None]).logpmf(REPORTS)
    assert values.shape == (7, 6, 8)
    for (i, j, k), value in np.ndenumerate(values):
        exact = reference.report_logpmf(int(REPORTS[k]), RATES[i], ALPHAS[j])
        assert reference.relative_error(value, exact) < ACCURACY


def exact_tails(k, rate, alpha):
    """P(r <= k) and P(r > k): the noise's tails averaged over the count."""
    a, lower, upper, mass = mpf(alpha), mpf(0), mpf(0), mp.exp(-mpf(rate))
    for y in range(400):
        beyond = a ** (k - y + 1) / (1 + a) if y <= k else 1 - a ** (y - k) / (1 + a)
        upper += mass * beyond
        lower += mass * (1 - beyond)
        mass = mass * rate / (y + 1)
    return lower, upper


@pytest.mark.long
@pytest.mark.parametrize("rate", [1e-300, 1e-12, 0.3, 2.0, 40.0])
@pytest.mark.parametrize("alpha", [1e-6, 0.3, 0.9, 0.999])
def test_tails(rate, alpha):
    law = PrivatizedPoisson(rate, alpha)
    with mp.workdps(300):
        for k in (-40, -1, 0, 1, 2, 5, 39, 45, 150):
            lower, upper = exact_tails(k, rate, alpha)
            for log_value, tail, rest in ((law.logcdf(k), lower, upper), (law.logsf(k), upper, lower)):
                tiny = rest < mpf(10) ** -200  # then log(1 - rest) is beyond the reference, or beyond a double
                assert tiny or reference.relative_error(log_value, mp.log(tail)) < ACCURACY, k
                assert log_value <= 0.0


@pytest.mark.parametrize("rate", [1e4, 1e7])
@pytest.mark.parametrize("alpha", [1e-6, 0.1, 0.9, 0.999, 1 - 1e-9])
def test_tails_of_large_rates(rate, alpha):
    law, noise = PrivatizedPoisson(rate, alpha), TwoSidedGeometric(alpha)
    y = np.arange(max(0, int(rate - 25 * math.sqrt(rate))), int(rate + 25 * math.sqrt(rate)))
    masses = np.exp([laws.poisson_logpmf(n, rate) for n in y])
    for k in (int(rate) + math.sqrt(rate) * np.array([-6, -1, 0, 1, 6])).astype(int):
        assert law.sf(k) == pytest.approx(masses @ noise.sf(k - y), rel=1e-11)
        assert law.cdf(k) == pytest.approx(masses @ noise.cdf(k - y), rel=1e-11)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("k", [-(10**7), -3, 0])
def test_lower_tail_is_geometric_up_to_zero(k, alpha):
    exact = -k * mp.log(mpf(alpha)) - (1 - mpf(alpha)) * 2 - mp.log(1 + mpf(alpha))
    assert reference.relative_error(PrivatizedPoisson(2.0, alpha).logcdf(k), exact) < ACCURACY


@pytest.mark.parametrize(("rate", "alpha"), [(0.0, 0.4), (0.01, 0.9), (3.0, 0.5), (60.0, 0.95)])
def test_mass_is_one_and_cdf_its_running_sum(rate, alpha):
    law, r = PrivatizedPoisson(rate, alpha), np.arange(-700, 900)
    assert law.pmf(r).sum() == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(law.cdf(r[600:]), np.cumsum(law.pmf(r))[600:], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(law.cdf(r) + law.sf(r), 1.0, rtol=1e-13)
    assert (r * law.pmf(r)).sum() == pytest.approx(law.mean(), rel=1e-11, abs=1e-13)
    assert ((r - rate) ** 2 * law.pmf(r)).sum() == pytest.approx(law.var(), rel=1e-11)
    assert law.std() == pytest.approx(math.sqrt(law.var()))


@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.1, 0.5, 0.9, 0.99])
def test_mode(alpha):
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
def test_draws(rate, alpha):
    exact = PrivatizedPoisson(rate, alpha).pmf(np.arange(-2000, 3000))
    assert reference.chi_square_p_value(PrivatizedPoisson(rate, alpha).rvs(100_000, 2), -2000, exact) > 1e-4
    for wrong in (PrivatizedPoisson(rate, 0.7 * alpha), PrivatizedPoisson(1.2 * rate, alpha)):
        assert reference.chi_square_p_value(wrong.rvs(400_000, 2), -2000, exact) < 1e-4
    one_sided = rate + np.random.default_rng(2).geometric(1 - alpha, 100_000) - 1
    assert reference.chi_square_p_value(one_sided.astype(int), -2000, exact) < 1e-4


def test_bad_parameters():
    with pytest.raises(ValueError, match=r"rate must be non-negative, got -0.3 at index \(0, 1\)$"):
        PrivatizedPoisson([[1.0, -0.3]], 0.5)
    with pytest.raises(ValueError, match=r"rate must be non-negative, got nan$"):
        PrivatizedPoisson(np.nan, 0.5)
    with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\), got 1.5$"):
        PrivatizedPoisson(1.0, 1.5)
    with pytest.raises(TypeError, match="rate must be real numbers, got str"):
        PrivatizedPoisson("1", 0.5)
