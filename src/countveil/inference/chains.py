"""Fits by chains: what samplers have in common, and where their chains begin."""

from dataclasses import KW_ONLY
from typing import Annotated, Any

from countveil.common.parameters import OneOf, Option, Whole, declared
from countveil.data.observations import Observations
from countveil.inference import run
from countveil.inference.algorithm import Data, Fitted, Method, Settings
from countveil.inference.em import refined
from countveil.inference.moves import TUNE_PER_MOVE, Moving, movable, n_mergings, only_merges
from countveil.inference.plan import Plan
from countveil.inference.starts import Start, automatic, least_squares, spectral
from countveil.models.factorization import Factorization

STARTS: dict[str, Start] = {"auto": automatic, "least-squares": least_squares, "spectral": spectral, "em": refined}
"""Where fits begin, by the names that users write."""


WEIGHTS = "equal", "stacked"


@declared
class Sampler(Method):
    """A method that runs Markov chains."""

    samples = True

    _: KW_ONLY
    # fmt: off
    thin: Annotated[int, Option(Whole(1),
        "keep every thin-th draw; memory grows with draws * chains * size of the factors.")] = 1
    weights: Annotated[str, Option(OneOf(WEIGHTS),
        'weights of the chains in everything computed from all draws, such as rates and intervals: "equal", or '
        '"stacked", by how well they predict reports that are left out; see ``weights_``.')] = "equal"
    # fmt: on

    def run(self, data: Data, model: Factorization, settings: Settings) -> Fitted:
        """Run all chains."""
        assert isinstance(data, Observations)
        found = run.sample(
            data, model, settings.schedule, seed=settings.seed, threads=settings.threads, progress=settings.progress,
            algorithm=self.moving(data, model, settings), start=settings.start, saving=settings.saving,
            engine=settings.engine,
        )  # fmt: skip
        return Fitted(found.draws, found.interrupted, found.seconds, tuning=found.tuning)

    def moving(self, data: Observations, model: Factorization, settings: Settings) -> Any:
        """The algorithm, with the moves that its chains begin with, if they have any."""
        return self.bound()


def with_moves(algorithm: Any, most: int, data: Observations, model: Factorization, settings: Settings) -> Any:
    """An algorithm whose chains begin with at most this many moves, if the model has them.

    There are none beside known totals, whose counts a move does not take with it. Where sweeps go by tokens and very
    many reports are stored, moves only merge what an automatic start has too much.
    """
    if data.totals is not None or not movable(model):
        return algorithm
    moves = min(most, settings.schedule.tune // TUNE_PER_MOVE)
    if only_merges(Plan(data, model)):
        moves = min(moves, n_mergings(model, data.shape)) if settings.start is automatic else 0
    return Moving(algorithm, moves) if moves else algorithm
