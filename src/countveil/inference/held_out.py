"""When to stop an algorithm that overfits: where held-out cells of the release are predicted best."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Engine
from countveil.inference.scoring import report_scores
from countveil.inference.starts import Start, automatic
from countveil.inference.streams import Streams
from countveil.laws.counts.laws import law_of
from countveil.models.factorization import Factorization

# More folds and cells estimate the best iteration more precisely; each fold costs a fit.
SHARE_PER_FOLD = 0.05  # of all cells
MAX_FOLDS = 5
MAX_HELD_OUT = 200_000  # cells, in all folds together
PATIENCE = 5  # iterations without improvement before stopping
IMPROVEMENT = 1e-4  # relative, of the score; smaller ones do not count


class Fold(NamedTuple):
    """Observations without some cells, and those cells."""

    training: Observations
    rows: np.ndarray
    columns: np.ndarray


class Info(NamedTuple):
    """The held-out log-likelihood of the states after the step, summed over folds."""

    objective: float


class Folds:
    """An algorithm for ``run.ascend`` that runs another one on every fold, and a rule for when to stop.

    ``algorithm`` makes the inner algorithm from a fold's observations and the model. Its states have ``factors``,
    ``parameters`` and ``sweep``.
    """

    def __init__(
        self,
        observations: Observations,
        model: Factorization,
        rng: np.random.Generator,
        algorithm: Callable[[Observations, Factorization], Any],
    ) -> None:
        self.folds = hold_out(observations, rng)
        self.reported = [observations.cells(fold.rows, fold.columns) for fold in self.folds]
        self.algorithms = [algorithm(fold.training, model) for fold in self.folds]
        self.best_iteration, self.best = 0, -np.inf

    def init(
        self,
        observations: Observations,
        model: Factorization,
        streams: Streams,
        engine: Engine,
        start: Start = automatic,
    ) -> tuple[Any, ...]:
        """The initial state of each fold."""
        pairs = zip(self.algorithms, self.folds, strict=True)
        return tuple(
            algorithm.init(fold.training, model, streams, engine, start) for algorithm, fold in pairs
        )

    def step(
        self,
        states: tuple[Any, ...],
        observations: Observations,
        model: Factorization,
        streams: Streams,
        engine: Engine,
    ) -> tuple[tuple[Any, ...], Info]:
        """One iteration of each fold."""
        new, score = [], 0.0
        for state, algorithm, fold, reported in zip(
            states, self.algorithms, self.folds, self.reported, strict=True
        ):
            moved, _ = algorithm.step(state, fold.training, model, streams, engine)
            theta, phi = model.matrices(moved.factors)
            rate = np.einsum("ek,ek->e", theta[fold.rows], phi[fold.columns])
            rate = rate * observations.exposure_of(fold.rows, fold.columns)
            law = law_of(observations.noise, model.likelihood, moved.parameters)
            score += float(report_scores(law, fold.rows, fold.columns, *reported, rate).sum())
            new.append(moved)
        return tuple(new), Info(score)

    def rule(self, states: tuple[Any, ...], objectives: list[float]) -> bool:
        """Whether the best iteration was ``PATIENCE`` iterations ago."""
        score, iteration = objectives[-1], states[0].sweep
        if self.best_iteration == 0 or score > self.best + IMPROVEMENT * abs(score):
            self.best_iteration, self.best = iteration, score
        return iteration - self.best_iteration >= PATIENCE


def hold_out(observations: Observations, rng: np.random.Generator) -> list[Fold]:
    """Up to five folds, each without another random twentieth of the cells, none of which was masked before.

    There are fewer folds where they would hold out more than 200,000 cells together.
    """
    n_rows, n_columns = observations.shape
    n_cells = n_rows * n_columns
    n_folds = int(np.clip(MAX_HELD_OUT // (SHARE_PER_FOLD * n_cells), 1, MAX_FOLDS))
    drawn = rng.integers(n_cells, size=max(1, int(min(n_folds * SHARE_PER_FOLD * n_cells, MAX_HELD_OUT))))
    cells = rng.permutation(np.unique(drawn))
    cells = cells[observations.cells(cells // n_columns, cells % n_columns)[0] >= 0]
    found = []
    for part in np.array_split(cells, max(1, min(n_folds, cells.size))):
        rows, columns = part // n_columns, part % n_columns
        found.append(Fold(observations.hide(rows, columns), rows, columns))
    return found
