"""Runs of every kind of factorization: threads, a break and the size of negative reports do not change a bit."""

from functools import partial

import numpy as np
import pytest

from countveil.engines import blocks
from countveil.inference import augmented_gibbs, cavi, factors, gibbs, run, starts
from countveil.inference.algorithm import Checkpoint
from countveil.inference.draws import Schedule
from tests.factorizations import CASES, alpha_of, mask_of, model_of, observe, rates_of
from tests.joint import assert_same_bits, draw_factors, draw_reports, fit_settings

pytestmark = pytest.mark.long

LONG = {"topics": (50, 9), "CP 3": (40, 5, 6), "CP 4": (36, 3, 2, 2), "Tucker": (40, 6, 2, 3)}
NETWORKS = {"directed": (40, 40), "directed, loops": (36, 36), "undirected": (40, 40), "dynamic network": (36, 36, 2)}


def scene(name, shape=None):
    """(case, model, observations) of data from the prior."""
    case = CASES[name]._replace(shape=shape or CASES[name].shape)
    model, rng = model_of(case), np.random.default_rng(10)
    reports = draw_reports(rates_of(model, draw_factors(model, rng)[0]), alpha_of(case), rng)
    return case, model, observe(model, case, reports, mask_of(case))


@pytest.mark.parametrize("name", [*LONG, *NETWORKS])
def test_threads_do_not_change_a_bit(name, monkeypatch):
    monkeypatch.setattr(factors, "ENTRIES_PER_BLOCK", 7)
    monkeypatch.setattr(blocks, "MIN_ROWS_PER_BLOCK", 16)
    monkeypatch.setattr(blocks, "MIN_CELLS_PER_BLOCK", 1)
    _, model, observations = scene(name, (LONG | NETWORKS)[name])
    assert len(blocks.row_blocks(observations.shape[0], None, observations.shape[1])) > 2
    plan = Schedule(2, 1, 2, 1)
    for algorithm in (gibbs, augmented_gibbs):
        found = [
            run.sample(observations, model, plan, seed=5, threads=threads, algorithm=algorithm).draws.arrays
            for threads in (1, 4)
        ]
        assert_same_bits(*found)
    if not model.self_loops or model.shared is None:
        one, other = (
            run.ascend(observations, model, cavi, fit_settings()._replace(seed=3, threads=threads), lambda *_: False, 2)
            for threads in (1, 3)
        )
        assert_same_bits(one.state, other.state)


@pytest.fixture(autouse=True)
def short_starts(monkeypatch):
    few = partial(starts.multiplicative_start, iterations=3)
    monkeypatch.setattr(starts, "multiplicative_start", few)


class DiedError(Exception):
    pass


@pytest.mark.parametrize("algorithm", [gibbs, augmented_gibbs], ids=["gibbs", "augmented-gibbs"])
@pytest.mark.parametrize("name", ["directed", "undirected, loops", "CP 3", "Tucker"])
def test_died_and_resumed_is_the_same_as_never_died(name, algorithm, tmp_path, monkeypatch):
    _, model, observations = scene(name)
    plan, right = Schedule(6, 3, 2, 2), algorithm.step

    def sample(saving=None):
        found = run.sample(observations, model, plan, seed=6, threads=1, algorithm=algorithm, saving=saving)
        return found.draws.arrays

    def dying(state, *rest):
        if state.sweep == 8:
            raise DiedError
        return right(state, *rest)

    whole, path = sample(), tmp_path / "run.npz"
    with monkeypatch.context() as patch:
        patch.setattr(algorithm, "step", dying)
        with pytest.raises(DiedError):
            sample(Checkpoint(path, 60.0, False))
    with np.load(path, allow_pickle=False) as stored:
        assert 0 < len(stored["chain0_draws0"]) < plan.draws
    assert_same_bits(sample(Checkpoint(path, 60.0, True)), whole)
