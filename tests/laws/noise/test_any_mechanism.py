"""Reports of any mechanism as models see them: products of kernels, laws of counts, and what files state."""

import numpy as np
import pytest
from scipy import stats

import countveil as cv
from countveil.kernels.report_kernels import GUESS, LEAST, MOST
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.laws.counts.given_reports import Cells, CountsGivenReports
from countveil.laws.noise import noise_called
from tests import reference

m = cv.mechanisms
Y = np.arange(400)


def noise_and_codes(data):
    codes = np.zeros(data.shape, dtype=np.int64)
    codes[data.row_numbers, data.columns] = data.reports
    return data.noise, codes


def brute(y, rate, p, *logs):
    """P(y | reports) from log kernels."""
    mass = stats.poisson.logpmf(y, rate) if p is None else stats.nbinom.logpmf(y, rate / -np.log1p(-p), 1 - p)
    weights = np.exp(mass + sum(logs))
    return weights / weights.sum()


DATA = {
    "two reports": (
        cv.Reports([[4]], m.DiscreteGaussian(2)).also([[6]], m.RandomRounding(3)),
        lambda y: [-((4 - y) ** 2) / 8, np.log(np.maximum(3 - np.abs(6 - y), 1e-300) / 3)],
    ),
    "suppressed": (cv.Reports([[np.nan]], m.Suppression(10)), lambda y: [np.where((y > 0) & (y < 10), 0, -np.inf)]),
    "top": (cv.Reports([[5]], m.TopCoding(5)), lambda y: [np.where(y > 4, 0, -np.inf)]),
    "cut": (cv.Reports([[np.nan]], m.Thresholded(m.Gaussian(2), 6)), lambda y: [stats.norm.logcdf(6 - y, scale=2)]),
    "response": (
        cv.Reports([[1]], m.Table([[0.8, 0.2]] + [[0.3, 0.7]] * 3 + [[0.9, 0.1]] * 396)),
        lambda y: [np.log(np.where(y == 0, 0.2, np.where(y < 4, 0.7, 0.1)))],
    ),
    "zero": (cv.Reports([[0]], m.Suppression(10)), lambda y: [np.where(y == 0, 0, -np.inf)]),
}


@pytest.mark.long
@pytest.mark.parametrize("p", [None, 0.7], ids=["poisson", "bursty"])
@pytest.mark.parametrize("name", DATA)
def test_laws_and_draws_of_counts_are_those_of_all_kernels(name, p):
    data, logs = DATA[name]
    noise, codes = noise_and_codes(data)
    likelihood = POISSON if p is None else NegativeBinomial(p)
    given, rng = CountsGivenReports(noise, likelihood), np.random.default_rng(1)
    for rate in (0.05, 3.0, 12.0):
        draw = (np.array([[rate]]), np.ones((1, 1))), ()
        n = 4000
        cells = Cells(*(np.zeros(n, np.int64),) * 2, np.full(n, codes[0, 0]), np.ones(n))
        wanted = brute(Y, rate, p, *logs(Y))
        total, cut = np.zeros((1, 400)), np.zeros(1, dtype=bool)
        given.add_laws(draw, cells.take(np.array([0])), total, cut)
        assert not cut[0]
        np.testing.assert_allclose(total[0], wanted, atol=1e-9)
        drawn = given.draw(draw, cells, rng)
        if wanted.max() < 0.999:
            assert reference.chi_square_p_value(drawn, 0, wanted) > 1e-5
            other = given.draw(((np.array([[3 * rate]]), np.ones((1, 1))), ()), cells, rng)
            assert p is not None or rate < 1 or reference.chi_square_p_value(other, 0, wanted) < 1e-5
        else:
            assert (drawn == wanted.argmax()).mean() > 0.99


def test_files_state_all_mechanisms():
    mechanisms = [m.DiscreteGaussian("1.5"), m.Thresholded(m.Laplace(2), 5)]
    noise = cv.Reports([[1], [7.5]], mechanisms).noise
    again = noise_called(noise.mechanism)
    assert again.mechanisms == tuple(mechanisms)
    assert again.in_words(np.ones(2)) == noise.in_words(np.ones(2))
    with pytest.raises(ValueError, match="mechanism must be stated in JSON"):
        noise_called("[1, ")


def test_reports_are_simulated_under_one_mechanism_alone():
    one = cv.Reports([[3, 6]], m.RandomRounding(3)).noise
    found = one.sample(np.full((1, 1000), 4), np.ones((1, 1)), np.random.default_rng(1))
    assert set(np.unique(found)) == {3.0, 6.0}
    several = cv.Reports([[3], [6]], [m.RandomRounding(3), m.TopCoding(9)]).noise
    twice = cv.Reports([[3]], m.RandomRounding(3)).also([[3]], m.RandomRounding(3)).noise
    for noise in (several, twice):
        with pytest.raises(ValueError, match="mechanism must be one for reports to be simulated"):
            noise.sample(np.ones((1, 1)), np.ones((1, 1)), np.random.default_rng(1))


def test_estimates_and_their_variances():
    noise, codes = noise_and_codes(cv.Reports([[4, 5]], m.Skellam(3, 1)))
    np.testing.assert_allclose(noise.kernel.real_cj[codes[0], GUESS], [2, 3])
    np.testing.assert_allclose(noise.variance(codes[0], 1.0), 4)
    assert noise.unbiased
    rounded, codes = noise_and_codes(cv.Reports([[0, 10]], m.Rounding(10)))
    assert not rounded.unbiased
    np.testing.assert_array_equal(rounded.kernel.whole_cj[codes[0]][:, [LEAST, MOST]], [[0, 4], [5, 14]])


def test_two_sided_geometric_reports_are_estimates_where_they_were_cut_at_zero_too():
    """Of counts that are mostly zero, the mean of cut reports is far too high."""
    rng, alpha = np.random.default_rng(1), 0.6
    counts = rng.poisson(0.2, (400, 250))
    mechanism = m.TwoSidedGeometric(alpha)
    for cut in (False, True):
        first, second = (cv.simulate_reports(counts, mechanism, rng) for _ in range(2))
        if cut:
            first, second = np.maximum(first, 0), np.maximum(second, 0)
        noise, codes = noise_and_codes(cv.Reports(first, mechanism).also(second, mechanism))
        total = float(noise.kernel.real_cj[codes, GUESS].sum())
        error = np.sqrt(float(noise.variance(codes, 1.0).sum()))
        assert abs(total - counts.sum()) < 4 * error < 0.15 * counts.sum(), cut
