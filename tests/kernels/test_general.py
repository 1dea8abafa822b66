"""The general law: against the closed form where there is one, against sums over all counts where there is none."""

import itertools
import math

import numpy as np
import pytest
from numba import njit

from countveil.kernels import general as kernels
from countveil.kernels import law as stubs
from countveil.kernels.entries import new_batch, new_expectations
from countveil.kernels.general import GeneralLaw
from countveil.kernels.random import new_source
from tests import reference
from tests.joint import FALSE_ALARM, LAWS
from tests.plain import PLAIN, repeated

CLOSED, GENERAL = LAWS["closed"], LAWS["general"]
REPORTS, RATES = (1, 2, 7, 30, 150), (1e-8, 1e-3, 0.4, 3.0, 30.0, 200.0)
ALPHAS = (0.0, 0.1, 0.5, 0.9)
GRID = np.array(list(itertools.product(REPORTS, RATES, ALPHAS)))
DRAWN = [(1, 1e-3, 0.5), (1, 3.0, 0.9), (7, 0.4, 0.5), (7, 30.0, 0.1), (30, 30.0, 0.9), (150, 200.0, 0.5)]
DRAWS = repeated(20_000)


TOY = {  # counts are geometric, every unit has two parts, a report is within two of its count
    "log_mass": lambda likelihood, count, rate: count * math.log(rate / (1.0 + rate)) - math.log1p(rate),
    "draw_parts": lambda likelihood, count, rate, rng: 2 * count,
    "expected_parts": lambda likelihood, count, rate: 2.0 * count,
    "parts_exposure": lambda likelihood, ratio: 3.0 * (1.0 - ratio),
    "log_kernel": lambda noise, report, count, level: -level * (report - count) ** 2,
    "least_count": lambda noise, report, level: max(0, report - 2),
    "most_count": lambda noise, report, level: report + 2,
    "kernel_ratio": lambda noise, level: 0.25 * level,
    "log_unseen": lambda noise, level: -3.0 * level,
}


@pytest.fixture
def toy(monkeypatch):
    """A law of the toy. Its functions are not compiled: loops compiled for classes of a test would stay on disk."""

    def tally(likelihood, row, column, count, parts, tally):
        tally[column] += 10 * parts + count

    for name in ("log_weight", "counts_behind", "summed", "draw_count"):
        monkeypatch.setattr(kernels, name, getattr(kernels, name).py_func)
    same = {"law_at": lambda law, row, column: law}
    for name, function in (TOY | same | {"add_to_tally": tally}).items():
        monkeypatch.setattr(kernels, name, function)
    return GeneralLaw(None, None)


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
    return stubs.expect_counts(law, 0, n, batch)


@njit
def draw_batch(law, n, batch, tally, source, rng):
    stubs.draw_counts(law, 0, n, batch, tally, source, rng)


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


def drawn(law, cases, repeats, draw=draw_batch):
    """((repeats, n) parts, tally by column) of a batch; entry i is in column i."""
    rng, n = np.random.default_rng(1), len(cases)
    batch, source, tally = new_batch(), new_source(rng), np.zeros(n)
    batch[0][:n] = np.arange(n)
    batch[1][:n], batch[2][:n], batch[3][:n] = np.asarray(cases).T
    found = np.empty((repeats, n), dtype=np.int64)
    for row in found:
        draw(law, n, batch, tally, source, rng)
        row[:] = batch[4][:n]
    return found, tally


@pytest.mark.long
def test_expectations_and_scores_are_those_of_the_closed_form():
    for found, expected in zip(expectations(GENERAL, GRID), expectations(CLOSED, GRID), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize("case", DRAWN, ids=str)
def test_counts_have_the_exact_law(case):
    found, _ = drawn(GENERAL, [case] * 20, DRAWS // 20)
    law = reference.count_law(*case)
    assert reference.chi_square_p_value(found.ravel(), law.first, law.probabilities) > FALSE_ALARM / len(DRAWN)
    if case[1] > 0.1 and not PLAIN:
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
    ("report", "rate", "alpha"), [case for case in DRAWN if case[2] > 0.0] + [(90, 1e4, 0.7), (150, 1e-3, 0.9)]
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


def test_another_noise_and_likelihood_are_summed_over_their_counts(toy):
    for case in CASES:
        counts, logs = toy_law(*case)
        weights = np.exp(logs)
        mean = 2.0 * (weights @ counts) / weights.sum()
        assert kernels.report_score_generally.py_func(toy, *case) == pytest.approx(np.log(weights.sum()), rel=1e-12)
        assert kernels.expected_ratio_generally.py_func(toy, *case) * case[1] == pytest.approx(mean, rel=1e-12)
    assert kernels.unseen_exposure_generally.py_func(toy, 0.4) == pytest.approx(2.7)
    assert kernels.unseen_constant_generally.py_func(toy, 0.4) == pytest.approx(-1.2)
    assert kernels.unseen_score_generally.py_func(toy, 2.0, 0.4) == pytest.approx(-1.2 - 2.0 * 2.7)


def test_parts_of_another_likelihood_are_drawn_and_tallied(toy):
    repeats = repeated(3000)
    found, tally = drawn(toy, CASES, repeats, lambda law, *rest: kernels.draw_counts_generally.py_func(law, 0, *rest))
    for i, case in enumerate(CASES):
        counts, logs = toy_law(*case)
        law = np.exp(logs) / np.exp(logs).sum()
        assert (found[:, i] % 2 == 0).all()
        p = reference.chi_square_p_value(found[:, i] // 2, counts[0], law)
        assert p > FALSE_ALARM / len(CASES)
    np.testing.assert_array_equal(tally, 10 * found.sum(axis=0) + found.sum(axis=0) // 2)


@pytest.mark.parametrize("rate", [0.0, 1e-300, float("nan")])
def test_a_rate_of_nothing_is_the_least_rate(rate):
    """A sum over counts ends; expectations have their limits, as the closed form has them."""
    cases = [(1, rate, 0.5), (7, rate, 0.5)]
    ratios, _ = expectations(GENERAL, cases)
    if rate == rate:
        np.testing.assert_allclose(ratios, 2.0, rtol=1e-9)
    assert np.isfinite(drawn(GENERAL, cases, 3)[0]).all()
