"""Kernels of reports in compiled form: those of the mechanisms' laws, count by count and step by step."""

import numpy as np
import pytest
from numba import njit

from countveil.kernels import windows
from countveil.kernels.report_kernels import LEAST, MOST, PEAK, fill_kernels
from countveil.laws.noise.laws import law_of
from tests.laws.noise.codes import kernels_of_reports
from tests.laws.noise.laws import CASES

COUNTS = np.concatenate([np.arange(200), [3_000, 9_985, 9_990, 10_001]])


@njit
def steps(kernels, code, counts):
    return np.array([windows.log_step(kernels, code, y) for y in counts])


@pytest.mark.parametrize("name", CASES)
def test_kernels_and_steps_are_those_of_the_law(name):
    mechanism, _, reports = CASES[name]
    law, kernels = law_of(mechanism), kernels_of_reports(mechanism, reports)
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
