"""The algorithms by name, and what each makes of observations: draws that everything downstream can read."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from countveil.data.observations import Observations
from countveil.data.release_files import ReleaseFiles
from countveil.engines.blocks import Engine
from countveil.inference import em, gibbs, run, svi
from countveil.inference.cavi import State as VariationalState
from countveil.inference.continuing import Stream
from countveil.inference.held_out import Folds
from countveil.inference.progress import progress_bar
from countveil.inference.run import Ascent, Checkpoint, Draws, Schedule
from countveil.inference.streams import START, Streams
from countveil.models.factorization import Factorization

SAMPLERS = {"gibbs": "gibbs", "augmented-gibbs": "augmented_gibbs"}
OPTIMISERS = {"cavi": "cavi", "bessel-cavi": "bessel_cavi", "svi": "svi", "em": "em"}
METHODS = (*SAMPLERS, *OPTIMISERS)

Q_CHAIN = 2**30
SMALLEST_DRAW = 1e-37  # the least that float32 holds in full


class Settings(NamedTuple):
    """How to run: the schedule and start of samplers, the rules of optimisers, seed, threads, progress, saving."""

    plan: Schedule
    start: str
    max_iter: int
    tolerance: float
    expectation: str | None
    center: str
    passes: int
    batch_rows: int
    seed: int
    threads: int
    progress: bool | None
    saving: Checkpoint | None
    engine: Engine | None = None  # threads of their own for every part of a fit without one

    def opened_engine(self) -> AbstractContextManager[Engine]:
        """The engine for a part of a fit."""
        return run.engine_or_threads(self.engine, self.threads)


class Fitted(NamedTuple):
    """What a method found: draws, and for optimisers how they got there and the means that they hold exactly."""

    draws: Draws
    interrupted: bool
    seconds: float
    objective: np.ndarray | None = None  # (iterations,) before each step
    converged: bool | None = None
    means: tuple[np.ndarray, ...] | None = None  # of each factor
    state: svi.State | None = None  # what svi goes on from


@threadpool_limits.wrap(limits=1, user_api="blas")
def fit(method: str, data: Observations | ReleaseFiles, model: Factorization, settings: Settings) -> Fitted:
    """Run one of ``METHODS``; only svi takes data that stay on disk.

    BLAS has one thread meanwhile: with more it adds up in another order.
    """
    if method == "svi":
        return fit_svi(data, model, settings)
    if isinstance(data, ReleaseFiles):
        raise ValueError(f"data on disk goes with method 'svi', got method {method!r}")
    observations = data
    if method in SAMPLERS:
        found = run.sample(
            observations, model, settings.plan, seed=settings.seed, threads=settings.threads,
            progress=settings.progress, algorithm=module(SAMPLERS[method]), start=settings.start,
            saving=settings.saving, engine=settings.engine,
        )  # fmt: skip
        return Fitted(*found)
    if method == "em":
        return fit_em(observations, model, settings)
    options = {
        "cavi": {"expectation": settings.expectation or "geometric"},
        "bessel-cavi": {"center": settings.center},
    }
    algorithm = with_options(module(OPTIMISERS[method]), options[method])
    ascent = climb(observations, model, algorithm, settings, run.relative_change(settings.tolerance))
    with settings.opened_engine() as engine:
        draws = draws_from_gammas(ascent.state, observations, model, settings, engine)
    return Fitted(
        draws, ascent.interrupted, ascent.seconds, ascent.objective, ascent.converged, ascent.state.means
    )


def with_options(algorithm: ModuleType, options: dict[str, str]) -> SimpleNamespace:
    """An algorithm's step with its options set (and its init's, where that takes them)."""
    init = partial(algorithm.init, **options) if "center" in options else algorithm.init
    return SimpleNamespace(init=init, step=partial(algorithm.step, **options))


def module(name: str) -> ModuleType:
    """An algorithm's module, imported when it is first used."""
    return import_module(f"countveil.inference.{name}")


def climb(
    observations: Observations, model: Factorization, algorithm: Any, settings: Settings, rule: Any
) -> Ascent:
    """``run.ascend`` with these settings."""
    return run.ascend(
        observations, model, algorithm, rule, max_iter=settings.max_iter, seed=settings.seed,
        threads=settings.threads, progress=settings.progress, engine=settings.engine,
    )  # fmt: skip


def draws_from_gammas(
    q: VariationalState,
    data: Observations | ReleaseFiles,
    model: Factorization,
    settings: Settings,
    engine: Engine,
) -> Draws:
    """Posterior draws from a Q of gammas: one chain of independent draws."""
    rng = Streams.of_chain(settings.seed, Q_CHAIN).generator(0, START)
    plan = settings.plan._replace(chains=1)
    draws = Draws.empty(plan, model)
    rates = tuple(hyper[0] / hyper[1] for hyper in q.hypers)
    for s in range(plan.draws):
        factors = [draw_factor(q, model, f, rng) for f in range(len(model.factors))]
        draws.mapped(lambda values: values[0]).keep(s, factors, rates, 0.0, 0.0)
    add_scores(draws, data, model, engine)
    return draws


def draw_factor(q: VariationalState, model: Factorization, f: int, rng: np.random.Generator) -> np.ndarray:
    """A draw of factor f from its gammas; its value where it is fixed."""
    factor = model.factors[f]
    if factor.fixed is not None:
        return factor.fixed
    draw = np.maximum(rng.standard_gamma(q.shapes[f]) / q.rates[f], SMALLEST_DRAW)
    return np.triu(draw) + np.triu(draw, 1).T if factor.symmetric else draw


def add_scores(draws: Draws, data: Observations | ReleaseFiles, model: Factorization, engine: Engine) -> None:
    """Set the log-likelihood and total rate of every draw of the only chain, part by part of the data."""
    draws.log_likelihood[0] = 0.0
    for first, observations in data.parts():
        rows = slice(first, first + observations.shape[0])
        part = model if observations.shape[0] == data.shape[0] else model.with_rows(observations.shape[0])
        for s in range(draws.log_likelihood.shape[1]):
            factors = [values[0, s].astype(np.float64) for values in draws.factors]
            if part is not model and model.row_factor is not None:
                factors[model.row_factor] = factors[model.row_factor][rows]
            draws.log_likelihood[0, s] += gibbs.log_likelihood(tuple(factors), observations, part, engine)
    for s in range(draws.log_likelihood.shape[1]):
        factors = [values[0, s].astype(np.float64) for values in draws.factors]
        draws.total_rate[0, s] = gibbs.total_rate(model, factors)


def fit_svi(data: Observations | ReleaseFiles, model: Factorization, settings: Settings) -> Fitted:
    """Passes over the rows in random batches, then Q(theta) of all rows given the last Q(phi)."""
    streams, n_rows = Streams.of_chain(settings.seed, 0), data.shape[0]
    started = time.perf_counter()
    with settings.opened_engine() as engine:
        state = svi.init(next(data.parts())[1], model, streams, engine, n_rows)
    turns = [streams.generator(turn + 1, START) for turn in range(settings.passes)]
    return learn_rows(data, model, settings, state, turns, n_rows, started)


def learn_rows(
    data: Observations | ReleaseFiles,
    model: Factorization,
    settings: Settings,
    state: svi.State,
    turns: list[np.random.Generator],
    total_rows: int,
    started: float,
) -> Fitted:
    """A pass of svi over the rows with each generator of ``turns``; the rows speak for ``total_rows``."""
    expectation, n_rows = settings.expectation or "trimmed", data.shape[0]
    bounds: list[float] = []
    interrupted = False
    with progress_bar(settings.progress) as bar, settings.opened_engine() as engine:
        task = bar.add_task("starting", total=len(turns) * n_rows, score="")
        try:
            for turn, rng in enumerate(turns):
                for batch in batches(data, settings.batch_rows, rng):
                    state, found = svi.step(state, batch, model, total_rows, engine, expectation)
                    bounds.append(found.data_bound * total_rows / batch.shape[0])
                    bar.update(task, advance=batch.shape[0], description=f"pass {turn + 1}")
        except KeyboardInterrupt:
            interrupted = True
        bar.update(task, description="finishing")
        fits = (svi.fit_rows(state, part, model, engine, expectation) for _, part in data.parts())
        q = svi.whole(state, model, fits)
        draws = draws_from_gammas(q, data, model, settings, engine)
    seconds = time.perf_counter() - started
    return Fitted(draws, interrupted, seconds, np.array(bounds), not interrupted, q.means, state)


@threadpool_limits.wrap(limits=1, user_api="blas")
def go_on_svi(
    data: Observations | ReleaseFiles,
    model: Factorization,
    settings: Settings,
    stream: Stream | None,
    total_rows: int,
) -> Fitted:
    """One pass of svi over rows that come after others (none, without a stream)."""
    streams, started = Streams.of_chain(settings.seed, 0), time.perf_counter()
    first = next(data.parts())[1]
    if stream is None:
        with settings.opened_engine() as engine:
            state = svi.init(first, model, streams, engine, total_rows)
    else:
        whole = model.with_rows(first.shape[0])
        state = svi.grow(stream.state, whole, first, stream.total_rows, total_rows)
    turns = [streams.generator(state.updates, START)]
    return learn_rows(data, model, settings, state, turns, total_rows, started)


def batches(data: Observations | ReleaseFiles, size: int, rng: np.random.Generator) -> Iterator[Observations]:
    """All rows once, in random batches of about ``size``; part by part, the parts in random order."""
    for _, part in data.parts(rng.permutation(data.n_parts)):
        order = rng.permutation(part.shape[0])
        for rows in np.array_split(order, -(-order.size // size)):
            yield part.take(rows)


def fit_em(observations: Observations, model: Factorization, settings: Settings) -> Fitted:
    """A point estimate, stopped where the log-likelihood of held-out cells of the release is best.

    Fits without a few random parts of the cells find the number of iterations; a fit with all cells then makes
    as many.
    """
    folds = Folds(observations, model, Streams.of_chain(settings.seed, Q_CHAIN).generator(0, START))
    search = climb(observations, model, folds, settings, folds.rule)
    short = settings._replace(max_iter=max(folds.best_iteration, 1))
    ascent = climb(
        observations, model, em.HeldTotal(observations, model), short, lambda state, objectives: False
    )
    draws = Draws.empty(Schedule(1, 0, 1, 1), model)
    rates = [
        factor.rate_sums(factor.prior.shape) / np.maximum(factor.rate_sums(values), em.SMALLEST)
        if factor.prior.learned
        else factor.prior.rate
        for factor, values in zip(model.factors, ascent.state.factors, strict=True)
    ]
    draws.mapped(lambda values: values[0]).keep(0, ascent.state.factors, rates, 0.0, 0.0)
    with settings.opened_engine() as engine:
        add_scores(draws, observations, model, engine)
    return Fitted(
        draws, search.interrupted or ascent.interrupted, search.seconds + ascent.seconds,
        ascent.objective, search.converged, ascent.state.factors,
    )  # fmt: skip
