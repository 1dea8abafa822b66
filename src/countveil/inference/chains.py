"""Fits by chains: what samplers have in common, and where their chains begin."""

from countveil.data.observations import Observations
from countveil.inference import run
from countveil.inference.algorithm import Data, Fitted, Method, Settings
from countveil.inference.em import refined
from countveil.inference.moves import TUNE_PER_MOVE, Moving, movable, n_mergings, only_merges
from countveil.inference.starts import Start, automatic, least_squares, spectral
from countveil.models.factorization import Factorization

STARTS: dict[str, Start] = {
    "auto": automatic,
    "least-squares": least_squares,
    "spectral": spectral,
    "em": refined,
}
"""Where fits begin, by the names that users write."""


def fit(method: Method, data: Data, model: Factorization, settings: Settings) -> Fitted:
    """Run all chains of a sampler, with moves if its record declares them and the model has them.

    There are none beside known totals, whose counts a move does not take with it. Where sweeps go by tokens and very
    many reports are stored, moves only merge what an automatic start has too much.
    """
    assert isinstance(data, Observations)
    algorithm, moves = method.algorithm, 0
    law = data.law(model.likelihood, model.initial_parameters())
    if "moves" in method.options and data.totals is None and movable(model):
        moves = min(method.option(settings, "moves"), settings.plan.tune // TUNE_PER_MOVE)
        if only_merges(data, law):
            moves = min(moves, n_mergings(model, data.shape)) if settings.start is automatic else 0
    if moves:
        algorithm = Moving(algorithm, moves)
    found = run.sample(
        data, model, settings.plan, seed=settings.seed, threads=settings.threads, progress=settings.progress,
        algorithm=algorithm, start=settings.start, saving=settings.saving,
        engine=settings.engine,
    )  # fmt: skip
    return Fitted(found.draws, found.interrupted, found.seconds, tuning=found.tuning)
