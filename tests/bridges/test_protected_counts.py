import doctest
import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from scipy.special import digamma, gammaln, logsumexp

import countveil as cv
from countveil.bridges import protected_counts
from tests import reference
from tests.laws.noise.laws import CASES, log_mass

m = cv.mechanisms
BURSTY = {"likelihood": "negative-binomial", "dispersion": 0.6}
SUPPRESSED = m.Suppression(10)


CERTAIN = (
    "discrete, narrow",
    "suppression",
    "suppression of zeros",
    "top-coding",
    "interval",
    "interval without end",
)  # most reports show their count


def drawn(*given, **options):
    return cv.sample_true_counts(*given, rng=np.random.default_rng(1), **options)


CALLS = {"expected": cv.expected_true_counts, "scores": cv.log_likelihood, "drawn": drawn}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@pytest.mark.long
@pytest.mark.parametrize("likelihood", [{}, BURSTY], ids=["poisson", "bursty"])
@pytest.mark.parametrize("name", CASES)
def test_calls_with_a_mechanism_are_sums_over_all_counts(name, likelihood):
    mechanism, kernel, reports = CASES[name]
    rate, y, p = np.array([[0.01], [3.0], [45.0]]), np.arange(2_000), likelihood.get("dispersion")
    reports = [r for r in reports if not r > 500]
    expected = cv.expected_true_counts(reports, rate, mechanism=mechanism, **likelihood)
    scores = cv.log_likelihood(reports, rate, mechanism=mechanism, **likelihood)
    bursts = cv.expected_bursts(reports, rate, dispersion=0.6, mechanism=mechanism) if likelihood else expected
    assert expected.shape == scores.shape == (3, len(reports))
    for i, k in np.ndindex(expected.shape):
        logs, slopes = log_mass(y, rate[i, 0], p)
        both = logs + kernel(reports[k], y)
        weights = np.exp(both - logsumexp(both))
        assert scores[i, k] == pytest.approx(logsumexp(both), rel=1e-9, abs=1e-9)
        assert expected[i, k] == pytest.approx(weights @ y, rel=1e-9)
        assert bursts[i, k] / rate[i, 0] - 1 == pytest.approx(weights @ slopes, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("likelihood", [{}, BURSTY], ids=["poisson", "bursty"])
@each_call
def test_two_sided_geometric_noise_gives_the_same_bits_as_alpha(call, likelihood):
    reports, rate = np.array([[-3, 0, 4], [30, 1, 2]]), np.array([0.3, 2.0, 40.0])
    by_alpha = call(reports, rate, alpha=0.7, **likelihood)
    for mechanism in (m.TwoSidedGeometric(0.7), m.TwoSidedGeometric.keeping(1, 2)):
        alpha = by_alpha if mechanism.alpha == 0.7 else call(reports, rate, alpha=mechanism.alpha, **likelihood)
        np.testing.assert_array_equal(call(reports, rate, mechanism=mechanism, **likelihood), alpha)


def test_draws_given_suppressed_counts():
    rate, y = 6.0, np.arange(1, 10)
    draws = drawn(np.full(20_000, np.nan), rate, mechanism=SUPPRESSED)
    law = stats.poisson.pmf(y, rate)
    assert draws.dtype == np.int64
    assert reference.chi_square_p_value(draws, 1, law / law.sum()) > 1e-4
    wrong = drawn(np.full(20_000, np.nan), rate, mechanism=m.Suppression(10, shows_zero=False))
    assert reference.chi_square_p_value(wrong, 1, law / law.sum()) < 1e-4


@pytest.mark.parametrize("name", CASES)
def test_counts_given_simulated_reports_mix_back_to_their_law(name):
    mechanism, rng, n = CASES[name][0], np.random.default_rng(5), 40_000
    law = stats.poisson.pmf(np.arange(40), 4.0)
    counts = np.minimum(rng.poisson(4.0, n), 20)
    reports = cv.simulate_reports(counts, mechanism, rng)
    draws = cv.sample_true_counts(reports, 4.0, mechanism=mechanism, rng=rng)
    assert reference.chi_square_p_value(draws, 0, law) > 1e-4
    if len(np.unique(reports)) > 3 and name not in CERTAIN:
        wrong = cv.sample_true_counts(reports, 8.0, mechanism=mechanism, rng=rng)
        assert reference.chi_square_p_value(wrong, 0, law) < 1e-4


def test_absent_reports_are_given_in_many_ways():
    wanted = cv.expected_true_counts([np.nan, 0, 12], 3.0, mechanism=SUPPRESSED)
    frame = pd.DataFrame({"a": [None], "b": [0], "c": [12]}, dtype="Int64")
    for reports in ([None, 0, 12], pd.array([None, 0, 12], "Int64"), pd.Series([None, 0, 12]), frame):
        np.testing.assert_array_equal(cv.expected_true_counts(reports, 3.0, mechanism=SUPPRESSED).ravel(), wanted)
    assert isinstance(cv.expected_true_counts(np.nan, 3.0, mechanism=SUPPRESSED), float)
    assert isinstance(drawn(None, 3.0, mechanism=SUPPRESSED), np.int64)
    dense = np.array([[0, 12], [15, 0]])
    found = cv.expected_true_counts(sparse.csr_array(dense), 3.0, mechanism=SUPPRESSED)
    np.testing.assert_array_equal(found, dense)
    with pytest.raises(ValueError, match="rate must have the row labels of reports in their order"):
        cv.expected_true_counts(
            pd.Series([3, 0], ["a", "b"]), pd.Series([1.0, 2.0], ["b", "a"]), mechanism=m.RandomRounding(3)
        )


REFUSED = {
    "fractions": ([0, 2.5], m.DiscreteGaussian(1), r"reports must be whole numbers, got 2.5 at index \(1,\)"),
    "no multiple": (
        [3, 4],
        m.RandomRounding(3),
        r"reports must be multiples of 3, under random rounding \(base 3\), got 4.0 at",
    ),
    "negative": (-3, m.Rounding(3), r"reports must be non-negative, under rounding to multiples of 3, got -3.0"),
    "hidden": (7, SUPPRESSED, r"reports must be 0, at least 10, or absent, under .*, got 7.0"),
    "zero hidden": (0, m.Suppression(5, False), r"reports must be at least 5, or absent, under .*, got 0.0"),
    "above": (91, m.TopCoding(90), r"reports must be at most 90, under top-coding at 90, got 91.0"),
    "below the cut": (90, m.Thresholded(m.Gaussian(10), 90), r"reports must be above 90, or absent, under .*, got 90"),
    "column": (2, m.Table(np.eye(2)), r"reports must be columns of the table, 0 to 1, under a table.*, got 2.0"),
    "no count": (1, m.Table([[1, 0]]), r"reports must be possible for some count, under a table.*, got 1.0"),
    "missing": ([1, np.nan], m.Laplace(1), r"must not be missing, because Laplace gives every count a report: leave"),
    "infinite": (math.inf, m.Gaussian(1), r"reports must be below 2\^53 in size, got inf"),
    "masked": (np.ma.masked_array([1, 2], [0, 1]), m.Gaussian(1), "reports must not hold masked entries"),
    "shapes": ([1, 2, 3], m.Gaussian(1), r"shapes must broadcast together, got reports \(3,\), rate \(2,\)"),
    "geometric": ([1, np.nan], m.TwoSidedGeometric(0.5), "reports must be whole numbers, got nan"),
}


@each_call
@pytest.mark.parametrize(("reports", "mechanism", "rule"), REFUSED.values(), ids=REFUSED)
def test_reports_that_a_mechanism_cannot_have_made_are_refused(call, reports, mechanism, rule):
    with pytest.raises(ValueError, match=rule):
        call(reports, [1.0, 2.0], mechanism=mechanism)


@each_call
def test_what_was_done_is_stated_once_and_correctly(call):
    with pytest.raises(ValueError, match=r"give either alpha(, noise)? or mechanism, got alpha and mechanism$"):
        call(1, 1.0, alpha=0.5, mechanism=m.Gaussian(1))
    with pytest.raises(ValueError, match=r"give either alpha(, noise)? or mechanism, got neither$"):
        call(1, 1.0)
    with pytest.raises(TypeError, match=r"mechanism must be one of countveil.mechanisms, got float$"):
        call(1, 1.0, mechanism=0.5)
    with pytest.raises(ValueError, match=r"rate must be positive, got 0.0$"):
        call(1, 0.0, mechanism=m.Gaussian(1))
    with pytest.raises(ValueError, match=r"likelihood must be one of .*, got 'gaussian'$"):
        call(1, 1.0, mechanism=m.Gaussian(1), likelihood="gaussian")
    with pytest.raises(ValueError, match=r"dispersion requires likelihood 'negative-binomial'"):
        call(1, 1.0, mechanism=m.Gaussian(1), dispersion=0.5)
    with pytest.raises(TypeError, match="reports must be numbers, got str"):
        call("three", 1.0, mechanism=m.Gaussian(1))


def test_truncation_is_for_two_sided_geometric_noise():
    same = cv.log_likelihood([-2, 3], 1.0, mechanism=m.TwoSidedGeometric(0.5), truncated=True)
    np.testing.assert_array_equal(same, cv.log_likelihood([-2, 3], 1.0, 0.5, truncated=True))
    with pytest.raises(ValueError, match="truncated must be False under discrete Gaussian, got True"):
        cv.log_likelihood(3, 1.0, mechanism=m.DiscreteGaussian(1), truncated=True)


def test_simulated_reports_are_seeded_and_of_their_kind():
    counts = np.array([[0, 3, 12], [95, 450, 20]])
    for mechanism in (each for name, (each, _, _) in CASES.items() if name not in ("flips", "table")):
        made = [cv.simulate_reports(counts, mechanism, np.random.default_rng(1)) for _ in range(2)]
        np.testing.assert_array_equal(*made)
        whole = not getattr(mechanism, "real", False) and not getattr(mechanism, "absent", False)
        assert made[0].dtype == (np.int64 if whole else np.float64)
        assert made[0].shape == counts.shape
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match=r"counts must be non-negative, got -1"):
        cv.simulate_reports(-1, m.Gaussian(1), rng)
    with pytest.raises(ValueError, match=r"counts must be at most 20, the table's last row"):
        cv.simulate_reports(21, CASES["table"][0], rng)
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got int$"):
        cv.simulate_reports(1, m.Gaussian(1), 1)


def test_examples_run():
    results = doctest.testmod(protected_counts)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_scores_and_their_slopes_are_sums_over_all_counts(name):
    mechanism, kernel, reports = CASES[name]
    reports = np.array([r for r in reports if not r > 100.0])
    means, s, y = np.array([[1e-9], [0.3], [7.0], [60.0]]), 1.7, np.arange(3_000)
    scores = protected_counts.scores_of(reports, mechanism)
    for concentration in (None, s):
        found = scores(means, None if concentration is None else np.full_like(means, s))
        for j, mean in enumerate(means[:, 0]):
            if concentration is None:
                mass, slopes = log_mass(y, mean, None)
                slopes = [slopes]
            else:
                mass = gammaln(s + y) - gammaln(s) - gammaln(y + 1) + y * np.log(mean) - (s + y) * np.log(mean + s)
                mass += s * np.log(s)
                share = (y + s) / (mean + s)
                slopes = [
                    y / mean - share, digamma(s + y) - digamma(s) + np.log(s / (mean + s)) + 1.0 - share
                ]  # fmt: skip
            for i, report in enumerate(reports):
                terms = mass + kernel(report, y)
                total = logsumexp(terms)
                assert found[0][j, i] == pytest.approx(total, rel=1e-9, abs=1e-12)
                for slope, each in zip(slopes, found[1:], strict=True):
                    exact = (np.exp(terms - total) * slope).sum()
                    assert each[j, i] == pytest.approx(exact, rel=1e-7, abs=1e-7)
