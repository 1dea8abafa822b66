"""What an algorithm is, and the record by which everything else knows it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from countveil.data.observations import Observations
from countveil.data.release_files import ReleaseFiles
from countveil.engines.blocks import Engine
from countveil.engines.threads import ThreadEngine
from countveil.inference.draws import Draws, Schedule
from countveil.inference.streams import Streams
from countveil.models.factorization import Factorization

Data = Observations | ReleaseFiles


class Algorithm(Protocol):
    """An iteration over states; a module with two functions is one.

    A state is a NamedTuple of arrays, numbers and tuples of them, with a field ``sweep``. A sampler's has ``factors``,
    ``hypers`` (of the priors, one array per factor) and ``parameters`` (of the likelihood). All random numbers come
    from ``streams``, by purpose and block, and all passes over the data go through the engine: so the result does not
    depend on who computes it. The old state stays as it was.
    """

    State: Any  # the class of its states

    def init(self, data: Observations, model: Factorization, streams: Streams, engine: Engine) -> Any:
        """The state to begin with."""
        ...

    def step(
        self, state: Any, data: Observations, model: Factorization, streams: Streams, engine: Engine
    ) -> tuple[Any, Any]:
        """(the next state, what the step has to tell): a sampler's ``total_rate``, an optimiser's ``objective``."""
        ...


class Checkpoint(NamedTuple):
    """Where chains are saved, how often, and whether to go on from what is there."""

    path: Path
    every_seconds: float
    resume: bool


class Settings(NamedTuple):
    """How to run: the schedule of samplers, options of methods by name, seed, threads, progress, saving."""

    plan: Schedule
    options: Mapping[str, Any]
    seed: int
    threads: int
    progress: bool | None
    saving: Checkpoint | None = None
    engine: Engine | None = None  # threads of their own for every part of a fit without one

    def opened_engine(self) -> AbstractContextManager[Engine]:
        """The engine for a part of a fit."""
        return engine_or_threads(self.engine, self.threads)


class Fitted(NamedTuple):
    """What a method found: draws, and for optimisers how they got there and the means that they hold exactly."""

    draws: Draws
    interrupted: bool
    seconds: float
    objective: np.ndarray | None = None  # (iterations,) before each step
    converged: bool | None = None
    means: tuple[np.ndarray, ...] | None = None  # of each factor
    state: Any = None  # what a method that learns from batches goes on from


class Method(NamedTuple):
    """A way to fit, as users name it; its module registers it with ``methods.METHODS``.

    Attributes:
        name: as users write it.
        says: what it does, for documentation and help: the rest of a sentence that begins with its name.
        fit: (method, data, model, settings) -> ``Fitted``.
        algorithm: what it iterates.
        samples: whether its draws are those of chains, which are tuned, kept, compared, and saved at checkpoints.
        options: parameters of estimators that it reads, beside those of every method: {name: allowed values, or None
            where the estimators' own rule is enough}; the first allowed value is what None stands for.
        self_loops: whether it takes cells that use an entry of a shared factor twice.
        batches: whether it learns from batches of rows: from data on disk, from rows that come later, and never
            on a cluster, to which the batches would travel. It needs a model whose rows have a factor of their own.
        any_prior: whether it takes priors whose entries are not independent gammas.
        likelihoods: names of those that it takes.
        starved: what to say of a fit that explains too few of the positive reports, and what to do.
    """

    name: str
    says: str
    fit: Callable[["Method", Any, Factorization, Settings], Fitted]
    algorithm: Any
    samples: bool = False
    options: Mapping[str, tuple[Any, ...] | None] = {}
    self_loops: bool = False
    batches: bool = False
    any_prior: bool = False
    likelihoods: tuple[str, ...] = ("poisson",)
    starved: str = ""

    def option(self, settings: Settings, name: str) -> Any:
        """The value of one of its options; None is the first that is allowed."""
        value, allowed = settings.options[name], self.options[name]
        return allowed[0] if value is None and allowed else value


def engine_or_threads(engine: Engine | None, threads: int) -> AbstractContextManager[Engine]:
    """An engine that somebody else closes, or threads for as long as they are needed."""
    return ThreadEngine(threads) if engine is None else nullcontext(engine)
