"""Fits by chains: what samplers have in common, and where their chains begin."""

from countveil.data.observations import Observations
from countveil.inference import run
from countveil.inference.algorithm import Data, Fitted, Method, Settings
from countveil.inference.em import refined
from countveil.models.factorization import Factorization

STARTS: dict[str, run.Refinement | None] = {"least-squares": None, "em": refined}
"""What is done to the least-squares start before a chain goes on from it."""


def fit(method: Method, data: Data, model: Factorization, settings: Settings) -> Fitted:
    """Run all chains of a sampler."""
    assert isinstance(data, Observations)
    found = run.sample(
        data, model, settings.plan, seed=settings.seed, threads=settings.threads, progress=settings.progress,
        algorithm=method.algorithm, refinement=STARTS[settings.options["start"]], saving=settings.saving,
        engine=settings.engine,
    )  # fmt: skip
    return Fitted(*found)
