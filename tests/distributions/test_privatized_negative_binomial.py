import doctest
import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats
from scipy.special import logsumexp

from countveil.distributions import PrivatizedNegativeBinomial, PrivatizedPoisson, TwoSidedGeometric
from countveil.distributions import privatized_negative_binomial as module
from tests import reference
from tests.bursts import PS, SHAPES, masses, rate_of

pytestmark = pytest.mark.long

ALPHAS = (1e-6, 0.1, math.exp(-1), 0.9, 0.999)
REPORTS = (-(10**7), -7, 0, 1, 3, 17, 200, 3000)
ACCURACY = 1e-9
CASES = [case for case in itertools.product(PS, SHAPES) if case != (0.999, 1e5)]


@pytest.mark.parametrize(("p", "s"), CASES)
def test_logs_of_mass_and_tails_are_those_of_sums_over_all_counts(p, s):
    counts, logs, _ = masses(s, p)
    mean = s * p / (1.0 - p)
    near = (int(mean), int(mean + 3.0 * math.sqrt(mean / (1.0 - p)))) if mean > 1.0 else ()
    for alpha in (ALPHAS[::2] if s < 1 else ALPHAS[1::2]) if s < 1e5 else (1e-6, 0.9):
        law, noise = PrivatizedNegativeBinomial(rate_of(s, p), p, alpha), TwoSidedGeometric(alpha)
        for r in (*REPORTS[1:], *near):
            for got, part in ((law.logpmf, noise.logpmf), (law.logcdf, noise.logcdf), (law.logsf, noise.logsf)):
                assert got(r) == pytest.approx(logsumexp(logs + part(r - counts)), rel=ACCURACY, abs=ACCURACY)


def exact_logs(r, s, p, alpha, terms):
    """log P(r), log P(<= r) and log P(> r), from sums in many digits."""
    with mp.workdps(400):
        a, x, shape = mpf(alpha), mpf(p), mpf(s)
        mass, sums = (1 - x) ** shape, [mpf(0)] * 3
        for y in range(terms):
            beyond = a ** (r - y + 1) / (1 + a) if y <= r else 1 - a ** (y - r) / (1 + a)
            parts = (1 - a) / (1 + a) * a ** abs(r - y), 1 - beyond, beyond
            sums = [total + mass * part for total, part in zip(sums, parts, strict=True)]
            mass = mass * x * (shape + y) / (y + 1)
        return [mp.log(total) for total in sums]


@pytest.mark.parametrize(
    ("s", "p", "alpha"),
    [
        *((1e-12, 0.5, 1e-6), (0.01, 0.3, 0.3), (0.3, 1e-6, 0.9), (2.5, 0.4, 1e-6), (50.0, 0.3, 0.3)),
        *((1e5, 1e-6, 0.9), (1e-12, 0.5, 0.9), (2.5, 0.4, 0.9), (1e5, 1e-6, 0.3)),
    ],
)
def test_far_tails(s, p, alpha):
    law = PrivatizedNegativeBinomial(rate_of(s, p), p, alpha)
    for r in (0, 1, 5, 40, 150):
        got = law.logpmf(r), law.logcdf(r), law.logsf(r)
        for value, exact in zip(got, exact_logs(r, s, p, alpha, 900), strict=True):
            assert abs(value - exact) <= 1e-12 * max(1.0, abs(exact)), r
            assert value <= 0.0


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("r", [-(10**7), -3, 0])
def test_lower_tail_is_geometric_up_to_zero(alpha, r):
    with mp.workdps(50):
        a, p = mpf(alpha), mpf(0.7)
        exact = -r * mp.log(a) - (1 - mp.log(1 - p * a) / mp.log(1 - p)) * 2 - mp.log(1 + a)
        assert reference.relative_error(PrivatizedNegativeBinomial(2.0, 0.7, alpha).logcdf(r), exact) < 1e-12


@pytest.mark.parametrize("rate", [1.0, 50.0, 1e4, 1e7])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.3, 0.99, 1 - 1e-9])
def test_at_a_small_dispersion_it_is_poisson(rate, alpha):
    poisson, law = PrivatizedPoisson(rate, alpha), PrivatizedNegativeBinomial(rate, 2e-12, alpha)
    near = (int(rate) + math.sqrt(rate) * np.array([-3.0, 0.0, 2.0])).astype(int)
    for r in (*near, int(rate) + 7):
        if r >= 0:
            assert law.logpmf(r) == pytest.approx(poisson.logpmf(r), abs=1e-9 + 1e-15 * rate)


@pytest.mark.parametrize(("rate", "p", "alpha"), [(1e7, 0.99, 0.9), (1e7, 1e-6, 0.9999), (1e5, 0.9, 0.5)])
def test_extremes_are_finite_and_add_up(rate, p, alpha):
    law = PrivatizedNegativeBinomial(rate, p, alpha)
    ends = law.mean() + law.std() * np.array([-9.0, -1.0, 0.0, 1.0, 9.0])
    assert np.isfinite(law.logpmf(np.floor(ends))).all()
    np.testing.assert_allclose(law.cdf(ends) + law.sf(ends), 1.0, rtol=1e-9)
    steps = law.mean() + np.arange(5.0)
    np.testing.assert_allclose(np.diff(law.cdf(steps)), law.pmf(np.floor(steps[1:])), rtol=1e-5)


@pytest.mark.parametrize(
    ("rate", "p", "alpha"), [(0.0, 0.5, 0.4), (0.01, 0.9, 0.9), (3.0, 0.5, 0.5), (20.0, 0.8, 0.95), (2.0, 0.7, 0.0)]
)
def test_mass_is_one_and_cdf_its_running_sum(rate, p, alpha):
    law, r = PrivatizedNegativeBinomial(rate, p, alpha), np.arange(-700, 900)
    assert law.pmf(r).sum() == pytest.approx(1.0, rel=1e-11)
    np.testing.assert_allclose(law.cdf(r[600:]), np.cumsum(law.pmf(r))[600:], rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(law.cdf(r) + law.sf(r), 1.0, rtol=1e-12)
    assert (r * law.pmf(r)).sum() == pytest.approx(law.mean(), rel=1e-10, abs=1e-13)
    assert ((r - law.mean()) ** 2 * law.pmf(r)).sum() == pytest.approx(law.var(), rel=1e-10)
    assert law.std() == pytest.approx(math.sqrt(law.var()))


@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.1, 0.5, 0.9, 0.99])
def test_mode(alpha):
    rates, ps = np.array([0.0, 1e-3, 0.3, 0.7, 2.5, 9.7, 33.3, 60.5])[:, None], np.array([0.01, 0.4, 0.8])
    r = np.arange(-3, 300)[:, None, None]
    law = PrivatizedNegativeBinomial(rates, ps, alpha)
    assert law.mode().tolist() == (law.logpmf(r).argmax(0) - 3).tolist()


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


@pytest.mark.parametrize(("rate", "p", "alpha"), [(0.1, 0.9, 0.5), (12.0, 0.3, 0.2), (100.0, 0.6, 0.97)])
def test_draws(rate, p, alpha):
    r = np.arange(-2000, 3000)
    exact = PrivatizedNegativeBinomial(rate, p, alpha).pmf(r)
    draws = PrivatizedNegativeBinomial(rate, p, alpha).rvs(100_000, 2)
    assert reference.chi_square_p_value(draws, -2000, exact) > 1e-4
    for wrong in ((rate, p, 0.7 * alpha), (1.2 * rate, p, alpha), (rate, 0.8 * p, alpha)):
        wrong_draws = PrivatizedNegativeBinomial(*wrong).rvs(400_000, 2)
        assert reference.chi_square_p_value(wrong_draws, -2000, exact) < 1e-4


def test_shapes_broadcast():
    law = PrivatizedNegativeBinomial(np.ones((3, 1)), [0.2, 0.9], 0.5)
    assert law.shape == (3, 2)
    assert law.rvs(random_state=1).shape == law.mean().shape == law.var().shape == law.logpmf(1).shape == (3, 2)
    assert law.cdf(2)[1, 1] == PrivatizedNegativeBinomial(1.0, 0.9, 0.5).cdf(2)


def test_bad_parameters():
    with pytest.raises(ValueError, match=r"rate must be non-negative, got -0.3 at index \(0, 1\)$"):
        PrivatizedNegativeBinomial([[1.0, -0.3]], 0.5, 0.5)
    for wrong in (0.0, 1.0, -0.5, np.nan):
        with pytest.raises(ValueError, match=rf"dispersion must be in \(0, 1\), got {wrong}$"):
            PrivatizedNegativeBinomial(1.0, wrong, 0.5)
    with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\), got 1.5$"):
        PrivatizedNegativeBinomial(1.0, 0.5, 1.5)
    with pytest.raises(TypeError, match="dispersion must be real numbers, got str"):
        PrivatizedNegativeBinomial(1.0, "0.5", 0.5)


def test_doctest():
    assert doctest.testmod(module) == doctest.TestResults(0, 1)
