"""Levels: the joint law of hyperparameters, levels and counts, against levels run forwards."""

import numpy as np
import pytest
from scipy import stats

from countveil.models.factorization import Factor
from countveil.models.priors import Conditional, LevelPrior, levels
from tests.joint import FALSE_ALARM
from tests.levels import draw_hypers, draw_levels, moderate

SHAPE, TIME = (2, 4, 2), 1
PRIOR = LevelPrior(TIME)
FACTOR = Factor("level", "atb", SHAPE, (1, 1, 1), PRIOR)
EXPOSURE = np.moveaxis(np.array([2.0, 0.0, 5.0, 0.7])[:, None, None] * np.array([[1.0, 3.0], [0.4, 0.0]]), 0, TIME)
RESTARTS, SWEEPS = 400, 6


def statistics(hypers, value, count):
    """Functions of everything with moderate moments."""
    x, seen = np.log(np.maximum(PRIOR.over_items(value), 1e-3)), np.log1p(PRIOR.over_items(count))
    found = [*x.mean(axis=1), *(x**2).mean(axis=1), (x[1:] * x[:-1]).mean(), *seen.mean(axis=1), (x * seen).mean()]
    logit = np.log(hypers[0] / (levels.MOST - hypers[0]))
    found += [hypers[0], hypers[0] ** 2, logit * (x[1:] * x[:-1]).mean(), hypers[1], hypers[1] ** 2]
    return [*found, hypers[2:].mean(), (hypers[2:] ** 2).mean(), hypers[2:] @ (x**2).mean(axis=0), hypers[2] * x[0, 0]]


def z_scores(restarts=RESTARTS, seed=1):
    """Differences of statistics after some sweeps with new counts from those at draws of the prior."""
    rng, differences = np.random.default_rng(seed), []
    for _ in range(restarts):
        hypers = draw_hypers(4, rng)
        value = PRIOR.as_factor(np.maximum(draw_levels(hypers, SHAPE[TIME], rng), 1e-150), SHAPE)
        count = rng.poisson(EXPOSURE * value).astype(float)
        before = statistics(hypers, value, count)
        for _ in range(SWEEPS):
            value, hypers = PRIOR.draw(FACTOR, hypers, Conditional(1.0, value, count, EXPOSURE), rng)
            count = rng.poisson(EXPOSURE * value).astype(float)
        differences.append(np.array(statistics(hypers, value, count)) - before)
    d = np.array(differences)
    d = d[:, d.std(axis=0) > 0.0]
    return d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts))


def most(z):
    """How large |z| may be."""
    return stats.norm.isf(FALSE_ALARM / 2 / z.size)


@pytest.mark.long
def test_a_sweep_leaves_the_joint_law_as_it_is(monkeypatch):
    moderate(monkeypatch)
    z = z_scores()
    assert np.abs(z).max() < most(z)


def counts_of_the_step_before(monkeypatch):
    right = levels.draw_levels
    monkeypatch.setattr(levels, "draw_levels", lambda count, *rest: right(np.roll(count, 1, axis=0), *rest))


def a_persistence_that_is_too_small(monkeypatch):
    right = levels.draw_levels
    monkeypatch.setattr(levels, "draw_levels", lambda n, e, s, rho, *rest: right(n, e, s, 0.6 * rho, *rest))


def moves_under_a_wider_prior(monkeypatch):
    right = levels.move_smoothness
    monkeypatch.setattr(
        levels,
        "move_smoothness",
        lambda n, e, rho, middle, spread, *rest: right(n, e, rho, middle, 3.0 * spread, *rest),
    )


def items_less_alike_than_they_are(monkeypatch):
    right = levels.draw_middle
    monkeypatch.setattr(levels, "draw_middle", lambda log_n, rng: right(1.5 * log_n, rng))


def persistences_pulled_down(monkeypatch):
    right = levels.move_persistence
    monkeypatch.setattr(levels, "move_persistence", lambda *given: 0.8 * right(*given))


FAULTS = [  # and how many restarts show them
    (counts_of_the_step_before, 60), (a_persistence_that_is_too_small, RESTARTS), (moves_under_a_wider_prior, 200),
    (items_less_alike_than_they_are, 40), (persistences_pulled_down, 60),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("plant", "restarts"), FAULTS)
def test_the_joint_law_shows_a_planted_fault(plant, restarts, monkeypatch):
    moderate(monkeypatch)
    plant(monkeypatch)
    z = z_scores(restarts)
    assert np.abs(z).max() > most(z)


def test_every_item_has_its_turn(monkeypatch):
    moderate(monkeypatch)
    rng, hypers, nothing = np.random.default_rng(1), PRIOR.start(FACTOR), np.zeros(SHAPE)
    first, _ = PRIOR.draw(FACTOR, hypers, Conditional(1.0, np.ones(SHAPE), nothing, nothing), rng)
    still = (first == 1.0).all(axis=TIME)
    assert 0 < still.sum() < still.size
    value = np.ones(SHAPE)
    for _ in range(20):
        value, hypers = PRIOR.draw(FACTOR, hypers, Conditional(1.0, value, nothing, nothing), rng)
    assert (value != 1.0).all()


def test_a_prior_says_what_it_is():
    hypers = np.tile(np.append([0.5, 1.0], np.log([1.0, 2.0, 3.0, 4.0])), (1, 2, 1))
    found = PRIOR.reported(FACTOR, hypers)
    assert found["_persistence"][0] == ()
    axes, s = found["_smoothness"]
    assert axes == (0, 2)
    np.testing.assert_allclose(s[0, 1], [[2.0, 3.0], [4.0, 5.0]])
    assert LevelPrior.from_facts(PRIOR.facts()) == PRIOR
    assert "follows its last value" in PRIOR.describe()
    assert [each.shape for each in PRIOR.summaries(FACTOR, hypers)] == [(1, 2), (1, 2)]
    with pytest.raises(ValueError, match=r"level_persistence from 0 to 0\.98, got 1\.2"):
        PRIOR.check_reported("level_persistence", np.array([[1.2]]))
    with pytest.raises(ValueError, match=r"level_smoothness of at least 1, got 0\.5"):
        PRIOR.check_reported("level_smoothness", np.array([[[0.5]]]))
