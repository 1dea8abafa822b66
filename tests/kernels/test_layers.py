"""The pass upwards over a layer of gammas, against the same drawn table by table."""

import numpy as np
import pytest
from scipy import stats

from countveil.kernels import layers as kernels
from tests.dynamics import draw_tables
from tests.joint import FALSE_ALARM
from tests.kernels.test_dynamics import z_scores

COUNT = np.array([[4.0, 0.0, 2.0], [0.0, 0.0, 0.0], [30.0, 1.0, 0.0], [3.0, 7.0, 1.0]])
PHI = np.array([[0.7, 0.2], [0.1, 0.8], [0.2, 0.0]])
UPPER = np.array([[2.0, 0.1], [0.5, 0.5], [5.0, 1e-150], [1.0, 3.0]])
RUNS = 1200


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
def test_tables_have_the_law_of_those_drawn_one_by_one():
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
        np.array([[5.0]]),
        np.full((1, 2), 0.5),
        np.full((1, 2), 1e-300),
        np.random.default_rng(3),
        table,
        total,
    )
    assert table.sum() == total.sum() == 1.0
