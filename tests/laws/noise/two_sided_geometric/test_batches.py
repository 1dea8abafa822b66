"""Counts of a batch of entries against the exact law of each, and against the sampler that takes them singly."""

import numpy as np
import pytest
from mpmath import mp

from countveil.kernels.entries import BATCH, new_batch, new_expectations
from countveil.kernels.poisson import poisson_logpmf
from countveil.kernels.random import new_source
from countveil.laws.noise.two_sided_geometric import batches as kernels
from countveil.laws.noise.two_sided_geometric import poisson as laws
from tests import reference
from tests.joint import FALSE_ALARM, LAW

REPEATS = 6000
REPORTS = (1, 2, 3, kernels.MOST - 1, kernels.MOST, kernels.MOST + 1, 40)
RATES = (1e-3, 0.4, 3.0, 9.9, 14.0)
ALPHAS = (0.05, 0.4, 0.9)
CASES = [(r, rate, alpha) for r in REPORTS for rate in RATES for alpha in ALPHAS]


def drawn(cases, repeats, seed=1):
    """(repeats, n) counts of a batch with these entries."""
    rng = np.random.default_rng(seed)
    batch, source = new_batch(), new_source(rng)
    _, report_i, rate_i, alpha_i, count_i, _ = batch
    n, found = len(cases), np.empty((repeats, len(cases)), dtype=np.int64)
    report_i[:n], rate_i[:n], alpha_i[:n] = np.array(cases).T
    for row in found:
        kernels.draw_counts(LAW, 0, n, batch, np.empty(0), source, rng)
        row[:] = count_i[:n]
    return found


@pytest.fixture(scope="module")
def counts():
    assert len(CASES) <= BATCH
    return drawn(CASES, REPEATS)


@pytest.mark.parametrize("i", range(len(CASES)), ids=str)
def test_each_entry_has_its_exact_law(counts, i):
    law = reference.count_law(*CASES[i])
    p = reference.chi_square_p_value(counts[:, i], law.first, law.probabilities)
    assert p > FALSE_ALARM / len(CASES)


def test_the_check_sees_another_level_of_noise(counts):
    for i, (r, rate, alpha) in enumerate(CASES):
        if rate == 3.0 and alpha == 0.4 and r < 5:
            law = reference.count_law(r, rate, 0.5)
            assert reference.chi_square_p_value(counts[:, i], law.first, law.probabilities) < 1e-9


def test_entries_are_drawn_apart(counts):
    common = [i for i, (_, rate, alpha) in enumerate(CASES) if rate == 3.0 and alpha == 0.9]
    z = np.corrcoef(counts[:, common].T)[np.triu_indices(len(common), 1)] * np.sqrt(REPEATS)
    assert np.abs(z).max() < 5.0  # of 21 pairs


def test_counts_beyond_the_running_sums_are_drawn():
    case = (3, 10.5, 0.9)  # fits; a tenth of the law lies beyond
    assert case[1] * case[2] < kernels.LARGEST_UPPER
    found = drawn([case] * 20, 2000, seed=2).ravel()
    law = reference.count_law(*case)
    assert (found > kernels.MOST).mean() > 0.02
    assert reference.chi_square_p_value(found, law.first, law.probabilities) > FALSE_ALARM


def test_entries_without_noise_without_rate_or_with_none_that_is_a_number():
    found = drawn([(4, 2.0, 0.0), (3, 0.0, 0.5), (3, np.nan, 0.5), (2**40, 3.0, 0.0), (2, 1e-300, 0.5)], 50)
    np.testing.assert_array_equal(found, np.tile([4, 0, 0, 2**40, 0], (50, 1)))


REPORTS_OF_SUMS = (1, 2, 5, kernels.MOST, kernels.MOST + 1, 60)
RATES_OF_SUMS = (1e-200, 1e-9, 0.3, 1.4, 2.5, 6.0, 30.0, 400.0)
ALPHAS_OF_SUMS = (0.01, 0.4, 0.95)


def expected(cases):
    """(sum of scores and rates, ratios) of a batch with these entries."""
    batch, n = new_expectations(), len(cases)
    _, report_i, rate_i, alpha_i, ratio_i, _ = batch
    report_i[:n], rate_i[:n], alpha_i[:n] = np.array(cases).T
    return kernels.expect_counts(LAW, 0, n, batch), ratio_i[:n].copy()


@pytest.mark.parametrize("alpha", ALPHAS_OF_SUMS)
def test_each_entry_is_that_of_the_laws(alpha):
    cases = [(r, rate, alpha) for r in REPORTS_OF_SUMS for rate in RATES_OF_SUMS]
    bound, ratios = expected(cases)
    np.testing.assert_allclose(ratios, [laws.expected_count_ratio(*case) for case in cases], rtol=1e-13)
    scores = np.array([laws.report_logpmf(*case) + case[1] for case in cases])
    assert bound == pytest.approx(scores.sum(), rel=1e-13)
    for case, score in zip(cases, scores, strict=True):
        assert expected([case])[0] == pytest.approx(score, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("alpha", ALPHAS_OF_SUMS)
@pytest.mark.parametrize("r", [1, 3, kernels.MOST])
def test_entries_to_many_digits(r, alpha):
    for rate in (0.05, 0.9, 3.0, 9.0):
        bound, (ratio,) = expected([(r, rate, alpha)])
        assert reference.relative_error(ratio * rate, reference.expected_count(r, rate, alpha)) < 1e-14
        assert abs(bound - (reference.report_logpmf(r, rate, alpha) + rate)) < mp.mpf(1e-13)


def test_entries_that_fit_go_together_and_others_alone():
    cases = [(2, 0.5, 0.4), (2, 40.0, 0.9), (90, 3.0, 0.5), (7, 2.5, 0.0), (400, 3.0, 0.0), (3, 0.8, 0.4)]
    together = expected(cases)
    alone = [expected([case]) for case in cases]
    assert together[0] == pytest.approx(sum(bound for bound, _ in alone), rel=1e-13)
    np.testing.assert_allclose(together[1], [ratio for _, (ratio,) in alone], rtol=1e-14)


def test_reports_without_noise_are_the_counts():
    for report in (1, 255, 256, 10_000):
        bound, (ratio,) = expected([(report, 3.5, 0.0)])
        assert ratio == pytest.approx(report / 3.5, rel=1e-14)
        assert bound == pytest.approx(poisson_logpmf(report, 3.5) + 3.5, rel=1e-12)


def test_a_product_of_many_totals_stays_a_number():
    cases = [(12, 100.0, 0.001)] * BATCH
    bound, _ = expected(cases)
    assert bound == pytest.approx(BATCH * (laws.report_logpmf(*cases[0]) + 100.0), rel=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.95])
def test_score_and_ratio_are_those_of_the_laws(alpha):
    for report in (1, 4, 60):
        for rate in (1e-9, 0.7, 30.0):
            score, ratio = kernels.score_and_ratio(report, rate, alpha)
            np.testing.assert_allclose(score, laws.report_logpmf(report, rate, alpha), rtol=1e-13)
            np.testing.assert_allclose(ratio * rate, laws.expected_count(report, rate, alpha), rtol=1e-13)
            np.testing.assert_allclose(kernels.ratio_only(report, rate, alpha), ratio, rtol=1e-13)
