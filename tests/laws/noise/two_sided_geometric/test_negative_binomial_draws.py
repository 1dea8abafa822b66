"""Bursty counts of a batch against sums over all counts, and which entries are left to draws of their own."""

import numpy as np
import pytest
from numba import njit

from countveil.kernels.entries import BATCH, new_batch
from countveil.kernels.random import new_source
from countveil.laws.noise.two_sided_geometric import negative_binomial_draws as kernels
from tests import reference
from tests.joint import FALSE_ALARM

REPEATS = 20_000
CASES = [
    (r, s, p, alpha)
    for r in (1, 5, 12)
    for s in (1e-3, 0.3, 3.0)
    for p in (0.2, 0.9)
    for alpha in (0.1, 0.37, 0.7)
]


def drawn(cases, repeats, seed=1):
    """(repeats, n) counts of a batch with these entries."""
    rng, shape = np.random.default_rng(seed), np.empty(BATCH)
    batch, source, n = new_batch(), new_source(rng), len(cases)
    report, shape[:n], p, alpha = np.array(cases, dtype=float).T
    batch[1][:n], batch[5][0][:n], batch[5][1][:n] = report, p / alpha, p * alpha
    found = np.empty((repeats, n), dtype=np.int64)
    fill(found, shape, batch, source, rng)
    return found


@njit(cache=True)
def fill(found, shape, batch, source, rng):
    repeats, n = found.shape
    for i in range(repeats):
        kernels.draw_few(n, shape, batch, source, rng)
        found[i] = batch[4][:n]


def law(r, s, p, alpha):
    """P(0), P(1), ... of the count, from ratios of neighbours."""
    y = np.arange(1, 400)
    ratios = np.where(y <= r, p / alpha, p * alpha) * (s + (y - 1)) / y
    weights = np.concatenate([[1.0], np.cumprod(ratios)])
    return weights / weights.sum()


@pytest.fixture(scope="module")
def counts():
    assert len(CASES) <= BATCH
    return drawn(CASES, REPEATS)


@pytest.mark.parametrize("i", range(len(CASES)), ids=lambda i: "-".join(map(str, CASES[i])))
def test_counts_have_their_law(counts, i):
    """A count beyond 12 that is rejected is drawn anew, and has the law again: so have those that are kept."""
    chances, own = law(*CASES[i]), counts[:, i]
    rejected = (own < 0).mean()
    within = own[(own >= 0) & (own <= kernels.MOST)]
    few = chances[: kernels.MOST + 1]
    assert reference.chi_square_p_value(within, 0, few / few.sum()) > FALSE_ALARM / len(CASES)
    beyond = own[own > kernels.MOST]
    assert rejected < 0.5
    if beyond.size > 200:
        tail = chances[kernels.MOST + 1 :]
        p_value = reference.chi_square_p_value(beyond, kernels.MOST + 1, tail / tail.sum())
        assert p_value > FALSE_ALARM / len(CASES)
        wrong = np.sqrt(tail) / np.sqrt(tail).sum()
        assert reference.chi_square_p_value(beyond, kernels.MOST + 1, wrong) < FALSE_ALARM
    kept = within.size / (within.size + beyond.size)  # of those that are not rejected
    error = np.sqrt(max(few.sum() * (1.0 - few.sum()), 1e-12) / REPEATS)
    assert abs(kept - few.sum()) < 5.0 * error + 1e-9


def test_other_laws_are_told_apart(counts):
    i = CASES.index((5, 0.3, 0.9, 0.37))
    few = law(5, 0.4, 0.9, 0.37)[: kernels.MOST + 1]
    within = counts[:, i][(counts[:, i] >= 0) & (counts[:, i] <= kernels.MOST)]
    assert reference.chi_square_p_value(within, 0, few / few.sum()) < FALSE_ALARM


@pytest.mark.parametrize(
    "case", [(13, 0.3, 0.5, 0.4), (3, 2e3, 0.1, 0.4), (3, 0.3, 0.99, 0.9), (3, 0.3, 0.5, 1e-30)], ids=str
)
def test_large_entries_are_left_to_draws_of_their_own(case):
    assert (drawn([case], 20) == -1).all()
