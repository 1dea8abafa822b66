"""The general law: against the closed form where there is one, against sums over all counts where there is none."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from countveil.kernels import general as kernels
from countveil.kernels import law as stubs
from countveil.kernels.batches import new_batch, new_expectations
from countveil.kernels.general import GeneralLaw
from countveil.kernels.law import provides
from countveil.kernels.uniforms import new_source
from countveil.likelihoods.poisson import PoissonCounts
from countveil.noise.two_sided_geometric.law import TwoSidedGeometricKernel, TwoSidedGeometricPoisson
from tests import reference
from tests.joint import FALSE_ALARM

CLOSED, GENERAL = TwoSidedGeometricPoisson(), GeneralLaw(TwoSidedGeometricKernel(), PoissonCounts())
REPORTS, RATES = (1, 2, 7, 30, 150), (1e-8, 1e-3, 0.4, 3.0, 30.0, 200.0)
ALPHAS = (0.0, 0.1, 0.5, 0.9)
GRID = np.array(list(itertools.product(REPORTS, RATES, ALPHAS)))
DRAWN = [(1, 1e-3, 0.5), (1, 3.0, 0.9), (7, 0.4, 0.5), (7, 30.0, 0.1), (30, 30.0, 0.9), (150, 200.0, 0.5)]
DRAWS = 20_000


class Window(NamedTuple):
    """A report is within two of its count; levels say how fast the chances fall."""

    parameters: tuple[()] = ()


class Twins(NamedTuple):
    """Counts are geometric of mean ``rate``, and every unit has two parts."""

    parameters: tuple[()] = ()


@provides(kernels.log_kernel, Window)
def window_kernel(noise, report, count, level):
    return -level * (report - count) ** 2 if abs(report - count) <= 2 else -math.inf


@provides(kernels.least_count, Window)
def window_least(noise, report, level):
    return max(0, report - 2)


@provides(kernels.most_count, Window)
def window_most(noise, report, level):
    return report + 2


@provides(kernels.kernel_ratio, Window)
def window_ratio(noise, level):
    return 0.25 * level


@provides(kernels.log_unseen, Window)
def window_unseen(noise, level):
    return -3.0 * level


@provides(kernels.log_mass, Twins)
def twins_mass(likelihood, count, rate):
    return count * math.log(rate / (1.0 + rate)) - math.log1p(rate)


@provides(kernels.draw_parts, Twins)
def twins_draw(likelihood, count, rate, rng):
    return 2 * count


@provides(kernels.add_to_tally, Twins)
def twins_tally(likelihood, column, count, parts, tally):
    tally[column] += 10 * parts + count


@provides(kernels.expected_parts, Twins)
def twins_expected(likelihood, count, rate):
    return 2.0 * count


@provides(kernels.parts_exposure, Twins)
def twins_exposure(likelihood, ratio):
    return 3.0 * (1.0 - ratio)


TOY = GeneralLaw(Window(), Twins())


def toy_law(report, rate, level):
    """(counts, log weights) of the toy, by its definition."""
    counts = np.arange(max(0, report - 2), report + 3)
    return counts, counts * np.log(rate / (1 + rate)) - np.log1p(rate) - level * (report - counts) ** 2


@njit
def one_by_one(law, reports, rates, levels, ratios, scores):
    for i in range(reports.size):
        ratios[i] = stubs.expected_ratio(law, reports[i], rates[i], levels[i])
        scores[i] = stubs.report_score(law, reports[i], rates[i], levels[i])


@njit
def expect_batch(law, n, batch):
    return stubs.expect_counts(law, n, batch)


@njit
def draw_batch(law, n, batch, tally, source, rng):
    stubs.draw_counts(law, n, batch, tally, source, rng)


@njit
def unseen(law, rate, level):
    constant, exposure = stubs.unseen_constant(law, level), stubs.unseen_exposure(law, level)
    return stubs.unseen_score(law, rate, level), constant, exposure


def expectations(law, cases):
    """(ratios, scores) of entries one by one."""
    reports, rates, levels = np.asarray(cases).T
    ratios, scores = np.empty(len(cases)), np.empty(len(cases))
    one_by_one(law, reports.astype(np.int64), rates, levels, ratios, scores)
    return ratios, scores


def batched(law, cases):
    """(ratios, sum of scores and rates) of a batch of entries."""
    batch, n = new_expectations(), len(cases)
    batch[1][:n], batch[2][:n], batch[3][:n] = np.asarray(cases).T
    bound = expect_batch(law, n, batch)
    return batch[4][:n].copy(), bound


def drawn(law, cases, repeats, seed=1):
    """((repeats, n) parts, tally by column) of a batch; entry i is in column i."""
    rng, n = np.random.default_rng(seed), len(cases)
    batch, source, tally = new_batch(), new_source(rng), np.zeros(n)
    batch[0][:n] = np.arange(n)
    batch[1][:n], batch[2][:n], batch[3][:n] = np.asarray(cases).T
    found = np.empty((repeats, n), dtype=np.int64)
    for row in found:
        draw_batch(law, n, batch, tally, source, rng)
        row[:] = batch[4][:n]
    return found, tally


def test_expectations_and_scores_are_those_of_the_closed_form():
    for found, expected in zip(expectations(GENERAL, GRID), expectations(CLOSED, GRID), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_a_batch_is_its_entries():
    ratios, scores = expectations(GENERAL, GRID)
    found, bound = batched(GENERAL, GRID)
    np.testing.assert_array_equal(found, ratios)
    assert bound == pytest.approx((scores + GRID[:, 1]).sum(), rel=1e-12)
    closed, closed_bound = batched(CLOSED, GRID)
    np.testing.assert_allclose(found, closed, rtol=1e-10)
    assert bound == pytest.approx(closed_bound, rel=1e-10)


def test_the_check_of_expectations_sees_another_level():
    found, _ = expectations(GENERAL, GRID)
    other, _ = expectations(CLOSED, GRID * [1.0, 1.0, 1.0 + 1e-6])
    assert not np.allclose(found, other, rtol=1e-10)


@pytest.mark.parametrize("case", DRAWN, ids=str)
def test_counts_have_the_exact_law(case):
    found, _ = drawn(GENERAL, [case] * 20, DRAWS // 20)
    law = reference.count_law(*case)
    assert reference.chi_square_p_value(found.ravel(), law.first, law.probabilities) > FALSE_ALARM / len(
        DRAWN
    )
    if case[1] > 0.1:
        wrong = reference.count_law(case[0], 1.2 * case[1], case[2])
        assert reference.chi_square_p_value(found.ravel(), wrong.first, wrong.probabilities) < FALSE_ALARM


def test_without_noise_the_count_is_the_report():
    found, _ = drawn(GENERAL, [(1, 5.0, 0.0), (150, 1e-8, 0.0)], 20)
    np.testing.assert_array_equal(found, np.tile([1, 150], (20, 1)))


@pytest.mark.parametrize("level", ALPHAS)
def test_cells_that_are_not_stored_are_those_of_the_closed_form(level):
    for rate in RATES:
        np.testing.assert_allclose(unseen(GENERAL, rate, level), unseen(CLOSED, rate, level), rtol=1e-14)


@pytest.mark.parametrize(
    ("report", "rate", "alpha"),
    [case for case in DRAWN if case[2] > 0.0] + [(90, 1e4, 0.7), (150, 1e-3, 0.9)],
)
def test_all_counts_that_matter_are_summed(report, rate, alpha):
    """Below the rate and beyond it, with what is left out below the rounding of the sum."""
    first, last, top = kernels.counts_behind(GENERAL, report, rate, alpha)
    law = reference.count_law(report, rate, alpha)
    assert first == 0
    assert law.probabilities[max(0, last + 1 - law.first) :].sum() < 1e-15
    mode = law.first + int(np.argmax(law.probabilities))
    assert top == kernels.log_weight(GENERAL, report, mode, rate, alpha)


CASES = [(0, 0.5, 0.3), (1, 4.0, 0.3), (6, 0.2, 1.5), (40, 300.0, 0.01)]


def test_another_noise_and_likelihood_are_summed_over_their_counts():
    ratios, scores = expectations(TOY, CASES)
    for ratio, score, case in zip(ratios, scores, CASES, strict=True):
        counts, logs = toy_law(*case)
        weights = np.exp(logs)
        assert score == pytest.approx(np.log(weights.sum()), rel=1e-12)
        assert ratio * case[1] == pytest.approx(2.0 * (weights @ counts) / weights.sum(), rel=1e-12)
    np.testing.assert_allclose(unseen(TOY, 2.0, 0.4), [-1.2 - 2.0 * 3.0 * 0.9, -1.2, 2.7], rtol=1e-14)


def test_parts_of_another_likelihood_are_drawn_and_tallied():
    repeats = 5000
    found, tally = drawn(TOY, CASES, repeats)
    for i, case in enumerate(CASES):
        counts, logs = toy_law(*case)
        law = np.exp(logs) / np.exp(logs).sum()
        assert (found[:, i] % 2 == 0).all()
        p = reference.chi_square_p_value(found[:, i] // 2, counts[0], law)
        assert p > FALSE_ALARM / len(CASES)
    np.testing.assert_array_equal(tally, 10 * found.sum(axis=0) + found.sum(axis=0) // 2)
