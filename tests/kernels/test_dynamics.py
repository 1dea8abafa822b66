"""The passes over gamma chains, in time and in layers, against the same drawn table by table."""

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
IMMIGRATION = 0.3
RUNS = 1200


def backwards(rng):
    """One pass by the kernel: tables between components, first ones, totals."""
    between, first, total = np.zeros((3, 3)), np.zeros(3), np.zeros((4, 3))
    entered = kernels.pass_backwards(COUNT, THETA, PI, NU, IMMIGRATION, between, first, total, rng)
    return np.concatenate([between.ravel(), first, total.ravel(), [entered]])


def slow_backwards(rng):
    """The same, table by table."""
    between, first, total, entered = np.zeros((3, 3)), np.zeros(3), COUNT.copy(), 0
    for t in (3, 2, 1):
        for k in range(3):
            chances = np.append(PI[k] * THETA[t - 1], IMMIGRATION)
            for _ in range(draw_tables(int(total[t, k]), chances.sum(), rng)):
                origin = rng.choice(4, p=chances / chances.sum())
                if origin == 3:
                    entered += 1
                    continue
                between[k, origin] += 1
                total[t - 1, origin] += 1
    for k in range(3):
        first[k] = draw_tables(int(total[0, k]), NU[k], rng)
    return np.concatenate([between.ravel(), first, total.ravel(), [entered]])


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
        between, _, total, _ = np.split(backwards(rng), [9, 12, 24])
        received = total.reshape(4, 3) - COUNT
        np.testing.assert_array_equal(between.reshape(3, 3).sum(axis=0), received.sum(axis=0))
        assert not received[3].any()
        assert not between.reshape(3, 3)[PI == 0.0].any()


def test_the_pass_forwards_draws_gammas_step_by_step():
    rng, rate, found = np.random.default_rng(3), np.array([2.0, 1.0, 3.0, 1.5]), []
    for _ in range(600):
        theta = np.empty((4, 3))
        kernels.pass_forwards(COUNT, rate, PI, NU, IMMIGRATION, theta, rng)
        shapes = COUNT + np.vstack([NU, theta[:-1] @ PI.T + IMMIGRATION])
        found.append(stats.gamma(shapes, scale=1.0 / rate[:, None]).cdf(theta))
    for place in np.reshape(found, (-1, 12)).T:
        assert stats.kstest(place, "uniform").pvalue > FALSE_ALARM / 12


def test_customers_sit_by_their_concentrations():
    rng, found = np.random.default_rng(4), np.empty(3)
    kernels.seat(np.array([0.0, 5.0, 1.0]), np.array([2.0, 1e-200, 0.0]), rng, found)
    assert found.tolist() == [0.0, 1.0, 1.0]


PHI = np.array([[0.7, 0.2], [0.1, 0.8], [0.2, 0.0]])
UPPER = np.array([[2.0, 0.1], [0.5, 0.5], [5.0, 1e-150], [1.0, 3.0]])


def upwards(rng, phi=PHI):
    """One pass by the kernel: tables by where they come from, and by row."""
    table, total = np.zeros(PHI.shape), np.zeros(UPPER.shape)
    kernels.pass_upwards(COUNT, phi, UPPER, rng, table, total)
    return np.concatenate([table.ravel(), total.ravel()])


def slow_upwards(rng):
    """The same, table by table."""
    table, total = np.zeros(PHI.shape), np.zeros(UPPER.shape)
    for d in range(4):
        for k in range(3):
            chances = PHI[k] * UPPER[d]
            for _ in range(draw_tables(int(COUNT[d, k]), chances.sum(), rng)):
                origin = rng.choice(2, p=chances / chances.sum())
                table[k, origin] += 1
                total[d, origin] += 1
    return np.concatenate([table.ravel(), total.ravel()])


@pytest.mark.long
def test_tables_of_layers_have_the_law_of_those_drawn_one_by_one():
    rng = np.random.default_rng(1)
    fast, slow, wrong = (
        np.array([draw(rng) for _ in range(RUNS)])
        for draw in (upwards, slow_upwards, lambda rng: upwards(rng, PHI[:, ::-1].copy()))
    )
    z, bound = z_scores(fast, slow), lambda z: stats.norm.isf(FALSE_ALARM / 2 / z.size)
    assert np.abs(z).max() < bound(z)
    both = [x[:, slow.std(axis=0) * wrong.std(axis=0) > 0.0] for x in (wrong, slow)]
    assert np.abs(z_scores(*both)).max() > bound(z)


def test_every_table_has_a_customer_and_comes_from_a_component_above():
    rng = np.random.default_rng(2)
    for _ in range(50):
        table, total = np.split(upwards(rng), [6])
        table, total = table.reshape(3, 2), total.reshape(4, 2)
        np.testing.assert_array_equal(table.sum(axis=0), total.sum(axis=0))
        assert not total[1].any()
        assert table[2, 1] == 0.0
        seen = (COUNT > 0.0).sum(axis=1)
        assert ((seen <= total.sum(axis=1)) & (total.sum(axis=1) <= COUNT.sum(axis=1))).all()


def test_components_next_to_zero_seat_one_table():
    table, total = np.zeros((1, 2)), np.zeros((1, 2))
    kernels.pass_upwards(
        np.array([[5.0]]), np.full((1, 2), 0.5), np.full((1, 2), 1e-300), np.random.default_rng(3), table, total
    )
    assert table.sum() == total.sum() == 1.0
