"""Fits by chains: what samplers have in common, and where their chains begin."""

from countveil.data.observations import Observations
from countveil.inference import run
from countveil.inference.algorithm import Data, Fitted, Method, Settings
from countveil.inference.em import refined
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
    """Run all chains of a sampler."""
    assert isinstance(data, Observations)
    found = run.sample(
        data, model, settings.plan, seed=settings.seed, threads=settings.threads, progress=settings.progress,
        algorithm=method.algorithm, start=settings.start, saving=settings.saving,
        engine=settings.engine,
    )  # fmt: skip
    return Fitted(*found)
