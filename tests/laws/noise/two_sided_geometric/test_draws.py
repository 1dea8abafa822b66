"""Counts of a batch of entries against the exact law of each, and against the sampler that takes them singly."""

import numpy as np
import pytest

from countveil.kernels.entries import BATCH, new_batch
from countveil.kernels.random import new_source
from countveil.laws.noise.two_sided_geometric import draws as kernels
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
