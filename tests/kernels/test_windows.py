"""Counts given any report, by windows and by rejection: against sums over all counts, for every mechanism."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.special import digamma, logsumexp

from countveil.bridges import protected_counts
from countveil.kernels.report_kernels import RATIO
from tests import reference
from tests.laws.noise.codes import kernels_of_reports
from tests.laws.noise.laws import CASES, log_mass
from tests.plain import PLAIN, repeated

pytestmark = pytest.mark.long

RATES = [1e-12, 0.01, 1.0, 50.0, *([] if PLAIN else [1e4])]
MOST, FEWER = 20_000, 5_000  # counts that are summed over; fewer where rates and reports are small
LIKELIHOODS = {"poisson": None, "bursty": 0.6, "very bursty": 0.97}
every = pytest.mark.parametrize("name", CASES)


def given(mechanism, reports, rate, p=None):
    return protected_counts.expected(np.array(reports, float), rate, mechanism, p)


def draw(mechanism, reports, rate, p, rng):
    return protected_counts.sample(np.array(reports, float), rate, mechanism, p, rng)


@cache
def kernel_of(name, i):
    """log P(report i | 0, 1, ...)."""
    _, kernel, reports = CASES[name]
    return kernel(reports[i], np.arange(MOST))


@cache
def law_of(rate, p):
    """(log P(y), its derivative by the rate, the mean number of bursts) of the counts y = 0, 1, ..."""
    y = np.arange(MOST)
    s = 0.0 if p is None else rate / -math.log1p(-p)
    return *log_mass(y, rate, p), y if p is None else s * (digamma(s + y) - digamma(s))


@pytest.mark.parametrize("p", LIKELIHOODS.values(), ids=LIKELIHOODS)
@every
def test_scores_expectations_and_gradients_are_sums_over_all_counts(name, p):
    mechanism, _, reports = CASES[name]
    worst = 0.0
    for rate in RATES[:4] if p == 0.97 else RATES:
        found = given(mechanism, reports, rate, p)
        gradients = found.parts / rate - 1.0
        for i in range(len(reports)):
            most = MOST if rate > 50.0 or reports[i] > 1_000 else FEWER
            logs, slopes, bursts = (values[:most] for values in law_of(rate, p))
            both = logs + kernel_of(name, i)[:most]
            total = logsumexp(both)
            weights = np.exp(both - total)
            wanted = total, weights @ np.arange(most), weights @ bursts, weights @ slopes
            got = found.log_probability[i], found.counts[i], found.parts[i], gradients[i]
            errors = [abs(a - b) for a, b in zip(got, wanted, strict=True)]
            scales = max(1.0, abs(wanted[0])), *(np.abs(wanted[1:3])), max(1.0, abs(wanted[3]))
            worst = max(worst, *(e / max(size, 1e-300) for e, size in zip(errors, scales, strict=True)))
    assert worst < 1e-9


@every
def test_proposals_have_the_ratio_of_the_first_two_counts(name):
    mechanism, kernel, reports = CASES[name]
    reports = [r for r in reports if not r > 100]  # beyond, the ratio is no float
    ratios = kernels_of_reports(mechanism, reports).real_cj[1:, RATIO]
    for r, ratio in zip(reports, ratios, strict=True):
        zero, one = kernel(r, np.arange(2))
        assert math.isnan(ratio) if zero == -np.inf else ratio == pytest.approx(math.exp(one - zero), rel=1e-9)


@pytest.mark.parametrize("p", [None, 0.6], ids=["poisson", "bursty"])
@every
def test_draws_follow_the_law_of_the_count(name, p):
    mechanism, kernel, reports = CASES[name]
    rng, y, n = np.random.default_rng(4), np.arange(3_000), repeated(3_000)
    p_values, wrong = [], []
    for rate, r in itertools.product((0.4, 3.0, 30.0), [r for r in reports if not r > 1_000]):
        both = log_mass(y, rate, p)[0] + kernel(r, y)
        law_of_count = np.exp(both - logsumexp(both))
        if law_of_count.max() > 0.999:
            continue
        draws = draw(mechanism, [r] * n, rate, p, rng)
        p_values.append(reference.chi_square_p_value(draws, 0, law_of_count))
        if not wrong or min(wrong) >= 1e-5:  # the negative control: another rate, until one is seen
            other = draw(mechanism, [r] * n, 2 * rate, p, rng)
            wrong.append(reference.chi_square_p_value(other, 0, law_of_count))
    assert min(p_values) > 1e-5
    assert min(wrong) < 1e-5 or PLAIN


def test_cells_do_not_disturb_each_other():
    mechanism = CASES["cut discrete"][0]
    reports, rates = [np.nan, 95.0, 3_000.0, np.nan], np.array([1e-3, 80.0, 2_900.0, 200.0])
    together = given(mechanism, reports, rates)
    alone = [given(mechanism, [r], rate) for r, rate in zip(reports, rates, strict=True)]
    for field in ("log_probability", "counts", "parts"):
        np.testing.assert_array_equal(getattr(together, field), [getattr(one, field)[0] for one in alone])
    assert given(mechanism, [], []).counts.shape == (0,)


@pytest.mark.parametrize("p", [None, 0.6], ids=["poisson", "bursty"])
def test_rates_of_any_size_end(p):
    for rate in (5e-324, 1e-300, 1e12):
        for name in ("suppression", "table", "rounding"):
            mechanism, _, reports = CASES[name]
            found = given(mechanism, reports, rate, p)
            assert (found.counts >= 0).all()
            assert (draw(mechanism, reports, rate, p, np.random.default_rng(1)) >= 0).all()
