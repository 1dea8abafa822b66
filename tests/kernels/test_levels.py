"""The kernels of levels, against slow twins."""

import numpy as np
import pytest
from scipy import stats

from countveil.kernels import levels as kernels
from tests.joint import FALSE_ALARM
from tests.levels import log_density, means_of, slow_draw

COUNT = np.array([[4.0, 0.0], [0.0, 0.0], [30.0, 1.0], [3.0, 7.0]])
EXPOSURE = np.array([[2.0, 0.5], [0.0, 0.0], [5.0, 1.0], [1.5, 2.0]])
LEVEL = np.array([[1.3, 0.4], [0.5, 0.9], [3.0, 0.2], [1.0, 2.5]])
S, RHO = np.array([3.0, 12.0]), 0.7
ITEMS = np.arange(2)
RUNS = 1500


@pytest.mark.long
@pytest.mark.parametrize("rho", [RHO, 0.2])
def test_levels_have_the_law_of_those_drawn_table_by_table(rho):
    rng, fast, slow = np.random.default_rng(1), [], []
    for _ in range(RUNS):
        level = LEVEL.copy()
        kernels.draw_levels(COUNT, EXPOSURE, S, rho, ITEMS, level, rng)
        fast.append(np.log(level).ravel())
        slow.append(np.log(slow_draw(COUNT, EXPOSURE, S, rho, LEVEL, rng)).ravel())
    one, other = (np.hstack([x, np.square(x), x[:, :-2] * x[:, 2:]]) for x in map(np.array, (fast, slow)))
    z = (one - other).mean(axis=0) / np.sqrt((one.var(axis=0) + other.var(axis=0)) / RUNS)
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)


def test_only_some_items_are_drawn():
    level = LEVEL.copy()
    kernels.draw_levels(COUNT, EXPOSURE, S, RHO, ITEMS[1:], level, np.random.default_rng(1))
    np.testing.assert_array_equal(level[:, 0], LEVEL[:, 0])
    assert (level[:, 1] != LEVEL[:, 1]).all()


def stretched_by(level, rho, new_rho, times):
    """Levels whose log(l_t / m_t) are ``times`` as large, step by step."""
    noise, found, mean = times * np.log(level / means_of(level, rho)), [], 1.0
    for each in noise:
        found.append(mean * np.exp(each))
        mean = new_rho * found[-1] + 1.0 - new_rho
    return np.array(found)


def log_counts(level, items):
    """log P(counts | levels) by item, up to a constant."""
    return (COUNT * np.log(level) - EXPOSURE * level)[:, items].sum(axis=0)


def step_of(rng):
    """A step whose scale is random."""
    between = np.log(kernels.LEAST_STEP) + rng.random() * np.log(kernels.MOST_STEP / kernels.LEAST_STEP)
    return np.exp(between) * rng.standard_normal()


def slow_smoothness(stretched, log_n, level, rng):
    """A step of log(s - 1) of each item in turn, with prior Normal(1, .8^2)."""
    log_n, level = log_n.copy(), level.copy()
    for n in ITEMS:
        new = log_n[n] + step_of(rng)
        s, new_s = 1.0 + np.exp(log_n[n]), 1.0 + np.exp(new)
        own, times = level[:, [n]], np.sqrt(s / new_s) if stretched else 1.0
        moved = stretched_by(own, RHO, RHO, times) if stretched else own
        there = log_density(moved, new_s, RHO) + (COUNT * np.log(moved[:, [0, 0]]) - EXPOSURE * moved)[:, n].sum()
        here = log_density(own, s, RHO) + (COUNT * np.log(own[:, [0, 0]]) - EXPOSURE * own)[:, n].sum()
        prior = stats.norm.logpdf(new, 1.0, 0.8) - stats.norm.logpdf(log_n[n], 1.0, 0.8)
        if there - here + prior + len(level) * np.log(times) > -rng.standard_exponential():
            log_n[n], level[:, [n]] = new, moved
    return log_n, level


def slow_persistence(stretched, rho, level, rng):
    """A step of the logit of rho / .98, which is uniform."""
    logit = np.log(rho / (0.98 - rho))
    new = logit + step_of(rng)
    new_rho = 0.98 / (1.0 + np.exp(-new))
    moved = stretched_by(level, rho, new_rho, 1.0) if stretched else level
    there, here = (log_density(x, S, r) + log_counts(x, ITEMS) for x, r in ((moved, new_rho), (level, rho)))
    change = (there - here).sum() + stats.logistic.logpdf(new) - stats.logistic.logpdf(logit)
    return (new_rho, moved) if change > -rng.standard_exponential() else (rho, level)


@pytest.mark.parametrize("stretched", [False, True])
def test_moves_of_smoothness_are_those_of_plain_code(stretched):
    moved = 0
    for seed in range(40):
        log_n, level = np.log(S - 1.0), LEVEL.copy()
        wanted = slow_smoothness(stretched, log_n, level, np.random.default_rng(seed))
        rng = np.random.default_rng(seed)
        kernels.move_smoothness(COUNT, EXPOSURE, RHO, 1.0, 0.8, stretched, ITEMS, log_n, level, rng)
        np.testing.assert_allclose(log_n, wanted[0], rtol=1e-12)
        np.testing.assert_allclose(level, wanted[1], rtol=1e-12)
        moved += (log_n != np.log(S - 1.0)).sum()
    assert 10 < moved < 80


@pytest.mark.parametrize("stretched", [False, True])
def test_moves_of_persistence_are_those_of_plain_code(stretched):
    moved = 0
    for seed in range(40):
        level = LEVEL.copy()
        wanted = slow_persistence(stretched, RHO, level, np.random.default_rng(seed))
        rng = np.random.default_rng(seed)
        rho = kernels.move_persistence(COUNT, EXPOSURE, S, 0.98, stretched, RHO, level, rng)
        np.testing.assert_allclose(rho, wanted[0], rtol=1e-12)
        np.testing.assert_allclose(level, wanted[1], rtol=1e-12)
        moved += rho != RHO
    assert 5 < moved < 40
