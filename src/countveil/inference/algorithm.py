"""What an algorithm is, and the method by which everything else knows it."""

import inspect
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from countveil.common.parameters import declared
from countveil.data.observations import Observations
from countveil.data.release_files import ReleaseFiles
from countveil.engines.blocks import Engine
from countveil.engines.threads import ThreadEngine
from countveil.inference.draws import Draws, Schedule
from countveil.inference.plan import Plan
from countveil.inference.row_gammas import RowGammas
from countveil.inference.starts import Start, automatic
from countveil.inference.streams import Streams
from countveil.inference.tuning import Tuning
from countveil.models.factorization import Factorization

if TYPE_CHECKING:

    class BaseEstimator:
        """What is used of scikit-learn's class, which has no types: with it, any name would pass as an attribute."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...  # noqa: D102
        def set_params(self, **params: Any) -> Self: ...  # noqa: D102
        def __sklearn_tags__(self) -> Any: ...
        def _repr_html_inner(self) -> str: ...
        def _repr_mimebundle_(self, **options: Any) -> dict[str, str]: ...
else:
    from sklearn.base import BaseEstimator

Data = Observations | ReleaseFiles


class Algorithm(Protocol):
    """An iteration over states; a module with two functions is one.

    A state is a NamedTuple of arrays, numbers and tuples of them, with a field ``sweep``. A sampler's has ``factors``,
    ``hypers`` (of the priors, one array per factor) and ``parameters`` (of the likelihood). All random numbers come
    from ``streams``, by purpose and block, and all passes over the data go through the engine, so the result does not
    depend on who computes it. The plan is made once for all chains; the model of a move has more components than the
    plan's. A step does not change the state that it is given. Options of a method that a step reads are keywords,
    which ``Method.bound`` binds.
    """

    State: Any  # the class of its states

    def init(self, plan: Plan, model: Factorization, streams: Streams, engine: Engine, start: Start = automatic) -> Any:
        """The state to begin with, at the factors of a start."""
        ...

    def step(self, state: Any, plan: Plan, model: Factorization, streams: Streams, engine: Engine) -> tuple[Any, Any]:
        """(the next state, what else to record): a sampler's ``total_rate``, an optimiser's ``objective``."""
        ...


class Checkpoint(NamedTuple):
    """Where chains are saved, how often, and whether to resume from an existing file."""

    path: Path
    every_seconds: float
    resume: bool

    def check_free(self) -> None:
        """Raises FileNotFoundError without a folder for the file, FileExistsError for a file not to resume from."""
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"checkpoint must go to a folder that exists, got {self.path}")
        if self.path.exists() and not self.resume:
            raise FileExistsError(
                f"checkpoint must be a new file, got {self.path}, which exists: give resume=True (--resume) or "
                "another name"
            )


class Settings(NamedTuple):
    """How to run a fit by any method: the schedule of samplers, and where and how it runs."""

    schedule: Schedule
    seed: int
    threads: int
    progress: bool | None
    saving: Checkpoint | None = None
    start: Start = automatic
    engine: Engine | None = None  # without one, every part of a fit starts threads of its own

    def opened_engine(self) -> AbstractContextManager[Engine]:
        """The engine for a part of a fit."""
        return engine_or_threads(self.engine, self.threads)


class Fitted(NamedTuple):
    """What a method found: draws, and for optimisers the path of the objective and the exact means of the factors."""

    draws: Draws
    interrupted: bool
    seconds: float
    objective: np.ndarray | None = None  # (iterations,) before each step
    converged: bool | None = None
    means: tuple[np.ndarray, ...] | None = None  # of each factor
    state: Any = None  # where a method that learns from batches continues
    rows: RowGammas | None = None  # of the row factor, whose sum alone the draws have then
    tuning: tuple[Tuning, ...] = ()  # of each chain


@declared
class Method(BaseEstimator):
    """A way to fit: its fields are its options, and its class says what it can do.

    A module declares it for its algorithm, and ``methods.METHODS`` lists it under the name that users write.

    Attributes:
        name: as users write it, for the method with its defaults.
        says: what it does, for documentation and help: the rest of a sentence that begins with its name.
        algorithm: what it iterates.
        samples: whether it runs Markov chains, which are tuned, compared, and saved at checkpoints.
        calibrated: whether its intervals hold the truth about as often as they say, by the calibration tests. Tables,
            figures and pages of other methods' fits have no intervals.
        batches: whether it learns from batches of rows: from data on disk or from rows that come later. It never does
            so on a cluster, where every batch would have to be sent, and needs a model whose rows have a factor of
            their own.
        self_loops: whether it accepts cells that use the same entry of a shared factor twice.
        any_prior: whether it accepts any prior; if not, entries must be independent gammas, and the prior a
            ``Prior.variational``.
        learned_shapes: whether it learns the shapes of priors.
        covariates: whether it treats priors that depend on covariates or dates of the rows, or have layers above them.
        seeds: whether it treats topics with seeded words.
        totals: whether it uses totals of counts, exact or noisy.
        exposures: whether it uses exposures by cell.
        likelihoods: names of those that it accepts, the default first.
        mechanisms: names of those whose reports it accepts; None if it accepts any.
        starved: advice for a fit that explains too few of the positive reports.
    """

    name: ClassVar[str]
    says: ClassVar[str]
    algorithm: ClassVar[Any]
    samples: ClassVar[bool] = False
    calibrated: ClassVar[bool] = False
    batches: ClassVar[bool] = False
    self_loops: ClassVar[bool] = False
    any_prior: ClassVar[bool] = False
    learned_shapes: ClassVar[bool] = False
    covariates: ClassVar[bool] = False
    seeds: ClassVar[bool] = False
    totals: ClassVar[bool] = False
    exposures: ClassVar[bool] = False
    likelihoods: ClassVar[tuple[str, ...]] = ("poisson",)
    mechanisms: ClassVar[tuple[str, ...] | None] = None
    starved: ClassVar[str] = ""

    def run(self, data: Any, model: Factorization, settings: Settings) -> Fitted:
        """Fit the model to the data."""
        raise NotImplementedError

    def bound(self) -> Any:
        """What ``run`` iterates: the algorithm, with the options that its functions read (``bind``)."""
        return self.algorithm

    def go_on(
        self, data: Data, model: Factorization, settings: Settings, before: tuple[Any, int] | None, total_rows: int
    ) -> Fitted:
        """Learn from rows that come after others, if the method ``batches``.

        ``before`` is None at first, then the state so far and how many rows it represents. All rows together represent
        ``total_rows``.
        """
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.get_params() == other.get_params()


def bind(algorithm: Any, **options: Any) -> Any:
    """The algorithm with options of its method, given to ``init`` and ``step`` where these have such a parameter.

    Its name states them, so that a fit with other options does not resume from its checkpoint.

    Raises:
        TypeError: an option that neither of them takes.
    """
    taken = {*inspect.signature(algorithm.init).parameters, *inspect.signature(algorithm.step).parameters}
    if left := sorted(options.keys() - taken):
        raise TypeError(f"options of {algorithm.__name__} must be parameters of its init or step, got {left}")

    def bound(function: Any) -> Any:
        named = inspect.signature(function).parameters
        return partial(function, **{name: value for name, value in options.items() if name in named})

    stated = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return SimpleNamespace(
        State=algorithm.State, init=bound(algorithm.init), step=bound(algorithm.step),
        __name__=f"{algorithm.__name__}({stated})",
    )  # fmt: skip


def engine_or_threads(engine: Engine | None, threads: int) -> AbstractContextManager[Engine]:
    """The given engine, which its owner closes, or else threads that are closed on exit."""
    return ThreadEngine(threads) if engine is None else nullcontext(engine)
