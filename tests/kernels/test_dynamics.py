"""The passes over a gamma chain, against the same drawn table by table."""

import numpy as np
import pytest
from scipy import stats

from countveil.kernels import dynamics as kernels
from tests.dynamics import draw_tables
from tests.joint import FALSE_ALARM

COUNT = np.array([[4.0, 0.0, 2.0], [0.0, 0.0, 0.0], [30.0, 1.0, 0.0], [3.0, 7.0, 1.0]])
THETA = np.array([[2.0, 0.1, 1.0], [0.5, 0.5, 3.0], [5.0, 1e-150, 0.2], [1.0, 1.0, 1.0]])
PI = np.array([[0.7, 0.2, 0.0], [0.1, 0.8, 0.3], [0.2, 0.0, 0.7]])
NU = np.array([0.4, 2.0, 1.0])
SOURCE = 0.3
RUNS = 1200


def backwards(rng):
    """One pass by the kernel: tables between components, first ones, totals."""
    between, first, total = np.zeros((3, 3)), np.zeros(3), np.zeros((4, 3))
    kernels.pass_backwards(COUNT, THETA, PI, NU, SOURCE, between, first, total, rng)
    return np.concatenate([between.ravel(), first, total.ravel()])


def slow_backwards(rng):
    """The same, table by table."""
    between, first, total = np.zeros((3, 3)), np.zeros(3), COUNT.copy()
    for t in (3, 2, 1):
        for k in range(3):
            chances = np.append(PI[k] * THETA[t - 1], SOURCE)
            for _ in range(draw_tables(int(total[t, k]), chances.sum(), rng)):
                origin = rng.choice(4, p=chances / chances.sum())
                if origin == 3:
                    continue
                between[k, origin] += 1
                total[t - 1, origin] += 1
    for k in range(3):
        first[k] = draw_tables(int(total[0, k]), NU[k], rng)
    return np.concatenate([between.ravel(), first, total.ravel()])


def z_scores(fast, slow):
    """Of means and squares of the same quantities, drawn in two ways (runs, quantities)."""
    one, other = (np.hstack([x, x**2]) for x in (fast, slow))
    error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / len(one))
    np.testing.assert_array_equal(one[:, error == 0.0], other[:, error == 0.0])
    return ((one - other).mean(axis=0) / np.maximum(error, 1e-300))[error > 0.0]


@pytest.mark.long
def test_tables_have_the_law_of_those_drawn_one_by_one():
    rng = np.random.default_rng(1)
    z = z_scores(*(np.array([draw(rng) for _ in range(RUNS)]) for draw in (backwards, slow_backwards)))
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)


def test_every_table_comes_from_an_entry_of_the_step_before():
    rng = np.random.default_rng(2)
    for _ in range(50):
        between, _, total = np.split(backwards(rng), [9, 12])
        received = total.reshape(4, 3) - COUNT
        np.testing.assert_array_equal(between.reshape(3, 3).sum(axis=0), received.sum(axis=0))
        assert not received[3].any()
        assert not between.reshape(3, 3)[PI == 0.0].any()


def test_the_pass_forwards_draws_gammas_step_by_step():
    rng, rate, found = np.random.default_rng(3), np.array([2.0, 1.0, 3.0, 1.5]), []
    for _ in range(600):
        theta = np.empty((4, 3))
        kernels.pass_forwards(COUNT, rate, PI, NU, SOURCE, theta, rng)
        shapes = COUNT + np.vstack([NU, theta[:-1] @ PI.T + SOURCE])
        found.append(stats.gamma(shapes, scale=1.0 / rate[:, None]).cdf(theta))
    for place in np.reshape(found, (-1, 12)).T:
        assert stats.kstest(place, "uniform").pvalue > FALSE_ALARM / 12


def test_customers_sit_by_their_concentrations():
    rng, found = np.random.default_rng(4), np.empty(3)
    kernels.seat(np.array([0.0, 5.0, 1.0]), np.array([2.0, 1e-200, 0.0]), rng, found)
    assert found.tolist() == [0.0, 1.0, 1.0]
