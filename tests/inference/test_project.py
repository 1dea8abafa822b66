import numpy as np
import pytest
from scipy import stats

from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.inference.project import MOST_DRAWS, SWEEPS_PER_DRAW, project_rows
from countveil.models.priors import GammaPrior
from tests.joint import FALSE_ALARM, LAW, SERIAL


def fitted(phi, theta_rate, draws=200):
    """(draws of phi, draws of theta's prior rates), all the same: phi (K, V)."""
    return [np.transpose(phi)] * draws, np.broadcast_to(theta_rate, (draws, len(theta_rate)))


def projected(observations, draws):
    """(D, K) mean theta of the rows, of prior shape 0.4."""
    return project_rows(
        observations,
        *draws,
        [GammaPrior(0.4, 1.0, True)] * len(draws[0]),
        [LAW] * len(draws[0]),
        [1.0] * len(draws[0]),
        1,
        SERIAL,
    )


def test_exact_counts_of_one_topic_give_the_conjugate_mean():
    counts = np.array([[3, 0, 9], [0, 0, 0], [1, 2, 40]])
    draws = fitted([[0.25, 0.25, 0.5]], np.array([0.7]))
    found = projected(ExactCounts(counts), draws)[:, 0]
    shape, rate = 0.4 + counts.sum(axis=1), 0.7 + 1.0
    error = np.sqrt(shape) / rate / np.sqrt(MOST_DRAWS * SWEEPS_PER_DRAW / 2)  # draws are independent here
    z = (found - shape / rate) / error
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / 3)


def test_a_masked_cell_gives_no_exposure():
    mask = np.array([[False, True, False]])
    found = projected(PrivatizedCounts([[-1, 50, -2]], 0.6, mask), fitted([[0.2, 0.5, 0.3]], np.array([0.7])))
    # no positive report is seen: exposures of 1 - 0.6 over the words that are
    mean = 0.4 / (0.7 + 0.4 * 0.5)
    error = mean / np.sqrt(0.4) / np.sqrt(MOST_DRAWS * SWEEPS_PER_DRAW / 2)
    assert abs(found[0, 0] - mean) < stats.norm.isf(FALSE_ALARM / 2) * error


def test_rows_do_not_depend_on_the_rows_after_them():
    rng = np.random.default_rng(2)
    draws = fitted(rng.dirichlet(np.ones(6), 2), np.array([0.1, 0.2]))
    counts = rng.poisson(3.0, (300, 6))
    whole = projected(ExactCounts(counts), draws)
    part = projected(ExactCounts(counts[:260]), draws)
    np.testing.assert_array_equal(whole[:260], part)
    assert whole.sum() == pytest.approx(counts.sum(), rel=0.2)
