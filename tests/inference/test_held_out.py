"""Folds of held-out cells, and when an iteration stops for them."""

from types import SimpleNamespace

import numpy as np
import pytest

from countveil.inference import held_out
from countveil.inference.held_out import Folds
from countveil.inference.streams import Streams
from tests.joint import SERIAL, draw_factors, mu_of, planted, small_model, truncated_logpmf


def test_held_out_cells_leave_the_training_data_and_keep_their_reports():
    observations = planted(40, 30, 3, 0.5, seed=1)[2]
    folds = held_out.hold_out(observations, np.random.default_rng(2))
    assert len(folds) == 5
    for training, rows, columns in folds:
        assert 30 < rows.size <= 60
        assert (observations.cells(rows, columns)[0] >= 0).all()
        assert (training.cells(rows, columns)[0] == -1).all()
        assert training.n_masked == rows.size
    cells = np.concatenate([fold.rows * 30 + fold.columns for fold in folds])
    assert np.unique(cells).size == cells.size


def test_large_data_have_fewer_held_out_cells(monkeypatch):
    monkeypatch.setattr(held_out, "MAX_HELD_OUT", 100)
    observations = planted(40, 30, 3, 0.5, seed=1)[2]
    assert [fold.rows.size > 45 for fold in held_out.hold_out(observations, np.random.default_rng(2))] == [
        True
    ]
    monkeypatch.setattr(held_out, "MAX_HELD_OUT", 30)
    folds = held_out.hold_out(observations, np.random.default_rng(2))
    assert [25 < fold.rows.size <= 30 for fold in folds] == [True]


class Still:
    """An algorithm whose states are what the fold's number says, and never change but for their sweep."""

    made = 0

    def __init__(self, observations, model):
        self.number, Still.made = Still.made, Still.made + 1
        self.factors = draw_factors(model, np.random.default_rng(self.number))[0]
        self.training = observations

    def init(self, observations, model, streams, engine, start):
        assert observations is self.training
        return SimpleNamespace(factors=self.factors, parameters=(), sweep=0)

    def step(self, state, observations, model, streams, engine):
        assert observations is self.training
        return SimpleNamespace(factors=self.factors, parameters=(), sweep=state.sweep + 1), None


def test_the_objective_is_the_score_of_all_held_out_cells(monkeypatch):
    monkeypatch.setattr(Still, "made", 0)
    _, _, observations, reports = planted(40, 30, 2, 0.5, seed=1)
    model = small_model((40, 30))
    folds = Folds(observations, model, np.random.default_rng(2), Still)
    states = folds.init(observations, model, Streams.of_chain(1, 0), SERIAL)
    states, info = folds.step(states, observations, model, Streams.of_chain(1, 0), SERIAL)
    assert [state.sweep for state in states] == [1] * 5
    expected = 0.0
    for number, fold in enumerate(folds.folds):
        mu = mu_of(draw_factors(model, np.random.default_rng(number))[0])
        expected += truncated_logpmf(reports, mu, np.array(0.5))[fold.rows, fold.columns].sum()
    assert info.objective == pytest.approx(expected, rel=1e-10)


def test_it_stops_some_iterations_after_the_best(monkeypatch):
    monkeypatch.setattr(Still, "made", 0)
    observations, model = planted(40, 30, 2, 0.5, seed=1)[2], small_model((40, 30))
    folds = Folds(observations, model, np.random.default_rng(2), Still)
    scores = [-100.0, -90.0, -80.0, *[-80.0 * (1 - 0.5 * held_out.IMPROVEMENT)] * 20]
    stopped = next(n for n in range(1, 20) if folds.rule((SimpleNamespace(sweep=n),), scores[:n]))
    assert folds.best_iteration == 3
    assert stopped == 3 + held_out.PATIENCE
