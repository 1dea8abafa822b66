"""Kernels of reports in compiled form: those of the mechanisms' laws, count by count and step by step."""

import numpy as np
import pytest
from numba import njit

import countveil as cv
from countveil.kernels import law as stubs
from countveil.kernels import windows
from countveil.kernels.entries import new_batch, new_expectations
from countveil.kernels.random import new_source
from countveil.kernels.report_kernels import LEAST, MOST, PEAK, fill_kernels
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.laws.counts.laws import law_of
from countveil.laws.noise.laws import law_of as law_of_noise
from tests.laws.noise.codes import kernels_of_reports
from tests.laws.noise.laws import CASES

COUNTS = np.concatenate([np.arange(200), [3_000, 9_985, 9_990, 10_001]])


@njit
def steps(kernels, code, counts):
    return np.array([windows.log_step(kernels, code, y) for y in counts])


@pytest.mark.parametrize("name", CASES)
def test_kernels_and_steps_are_those_of_the_law(name):
    mechanism, _, reports = CASES[name]
    law, kernels = law_of_noise(mechanism), kernels_of_reports(mechanism, reports)
    for i, r in enumerate(reports):
        least, most, peak = kernels.whole_cj[i + 1, [LEAST, MOST, PEAK]]
        y = COUNTS[(least <= COUNTS) & (most >= COUNTS)]
        found = np.empty(len(y))
        fill_kernels(kernels, np.full(len(y), i + 1), y, found)
        wanted = law.log_kernel(np.full(len(y), r, float), y)
        likely = wanted > -800.0  # beyond, tables are continued as lines
        np.testing.assert_allclose(found[likely], wanted[likely], rtol=1e-10, atol=1e-10)
        inner = y[(y + 1 <= most) & likely]
        rise = law.log_kernel(np.full(len(inner), r, float), inner + 1)
        rise = rise - law.log_kernel(np.full(len(inner), r, float), inner)
        if law.concave(np.array([r], float))[0]:
            np.testing.assert_allclose(steps(kernels, i + 1, inner), rise, rtol=1e-9, atol=1e-9)
            assert law.log_kernel(np.array([r], float), np.array([peak]))[0] >= wanted.max() - 1e-9


def test_impossible_counts_have_no_kernel():
    mechanism, _, reports = CASES["suppression"]
    kernels, found = kernels_of_reports(mechanism, reports), np.empty(3)
    fill_kernels(kernels, np.array([1, 1, 3]), np.array([0, 10, 11]), found)
    np.testing.assert_array_equal(found, -np.inf)


m = cv.mechanisms
DATA = cv.Reports(np.array([[np.nan, 14.0, 0.0, np.nan]]), m.Suppression(10))


@njit
def expect_batch(law, n, batch):
    return stubs.expect_counts(law, 0, n, batch)


@njit
def one_by_one(whole, report, rate):
    law = stubs.law_at(whole, 0, 0)
    score = stubs.report_score(law, report, rate, 1.0)
    return score, stubs.expected_ratio(law, report, rate, 1.0), stubs.expect_both(law, report, rate, 1.0)


@njit
def unseen(whole, rate):
    law = stubs.law_at(whole, 0, 0)
    return stubs.unseen_score(law, rate, 1.0), stubs.unseen_exposure(law, 1.0)


@njit
def draw_batch(law, n, batch, tally, source, rng):
    stubs.draw_counts(law, 0, n, batch, tally, source, rng)


@pytest.mark.long
@pytest.mark.parametrize("likelihood", [POISSON, NegativeBinomial(0.6)], ids=["poisson", "bursty"])
def test_batches_are_their_entries(likelihood):
    law, rates = law_of(DATA.noise, likelihood), np.array([0.3, 20.0, 7.0])
    batch = new_expectations()
    batch[0][:3], batch[1][:3], batch[2][:3] = DATA.columns, DATA.reports, rates
    bound = expect_batch(law, 3, batch)
    found = [one_by_one(law, int(r), rate) for r, rate in zip(DATA.reports, rates, strict=True)]
    np.testing.assert_allclose(batch[4][:3], [ratio for _, ratio, _ in found], rtol=1e-12)
    assert bound == pytest.approx(sum(score for score, _, _ in found) + rates.sum(), rel=1e-12)
    p = None if likelihood is POISSON else 0.6
    kind = "poisson" if p is None else "negative-binomial"
    options = {"mechanism": m.Suppression(10), "likelihood": kind}
    options |= {} if p is None else {"dispersion": p}
    values = np.array([np.nan, 14.0, np.nan])
    np.testing.assert_allclose([both[0] for *_, both in found], cv.expected_true_counts(values, rates, **options))
    np.testing.assert_allclose([score for score, *_ in found], cv.log_likelihood(values, rates, **options))


@pytest.mark.long
def test_a_zero_has_the_whole_exposure():
    np.testing.assert_allclose(unseen(law_of(DATA.noise, POISSON), 3.0), [-3.0, 1.0])
    np.testing.assert_allclose(unseen(law_of(DATA.noise, NegativeBinomial(0.6)), 3.0), [-3.0, 1.0])


@pytest.mark.long
def test_draws_are_possible_counts():
    rng = np.random.default_rng(1)
    batch, source = new_batch(), new_source(rng)
    batch[0][:3], batch[2][:3] = DATA.columns, (0.3, 20.0, 7.0)
    batch[1][:3] = DATA.reports
    draw_batch(law_of(DATA.noise, POISSON), 3, batch, np.empty(0), source, rng)
    counts = batch[4][:3]
    assert 1 <= counts[0] <= 9
    assert counts[1] == 14
    assert 1 <= counts[2] <= 9
