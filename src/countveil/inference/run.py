"""How algorithms run: chains side by side, optimisers, and the classes of methods that share this."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import KW_ONLY
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from rich.progress import TaskID

from countveil.common.parameters import OneOf, Option, Positive, Whole, declared
from countveil.data.observations import Observations
from countveil.engines.blocks import Engine
from countveil.engines.threads import one_blas_thread
from countveil.inference import checkpoint, scoring
from countveil.inference.algorithm import Algorithm, Checkpoint, Data, Fitted, Method, Settings, engine_or_threads
from countveil.inference.diagnostics import R_HAT_NESTED
from countveil.inference.draws import Draws, Point, Schedule, check_room
from countveil.inference.plan import Plan
from countveil.inference.posterior import unsteadiness
from countveil.inference.progress import progress_bar
from countveil.inference.row_gammas import Q_CHAIN, SMALLEST_DRAW, total_of_rows
from countveil.inference.starts import Start, automatic
from countveil.inference.starts.given import Given
from countveil.inference.streams import START, Streams
from countveil.inference.tuning import Tuning, recorded
from countveil.models.factorization import Factorization, model_facts

SCORE_EVERY = 10  # sweeps between log-likelihoods for the progress display, since one costs half a sweep
ROUNDING = 1e-12  # share of an objective that is rounding alone


class Run(NamedTuple):
    """The draws of a run, how it went, and how each chain that kept any was tuned."""

    draws: Draws
    interrupted: bool
    seconds: float
    tuning: tuple[Tuning, ...]


class Chain:
    """One chain's sweeps; its draws go into its own part of ``draws``."""

    def __init__(
        self,
        number: int,
        seed: int,
        plan: Plan,
        model: Factorization,
        draws: Draws,
        algorithm: Algorithm,
        start: Start = automatic,
    ) -> None:
        self.number, self.plan, self.model = number, plan, model
        self.algorithm, self.start = algorithm, start
        self.streams = Streams.of_chain(seed, number)
        self.draws = draws.of_chain(number)
        self.snapshot: checkpoint.Snapshot | None = None

    @property
    def kept(self) -> int:
        """Draws kept so far."""
        return self.snapshot.kept if self.snapshot else 0

    @property
    def tuning(self) -> Tuning:
        """What happened to it so far besides sweeps."""
        return self.snapshot.tuning if self.snapshot else Tuning()

    def run(
        self,
        schedule: Schedule,
        engine: Engine,
        stop: threading.Event,
        report: Callable[[int, int, float | None], None],
        watched: bool = False,
    ) -> None:
        """Sweep to the end of the schedule, or until ``stop`` is set; each sweep leaves a snapshot."""
        algorithm, plan, model = self.algorithm, self.plan, self.model

        def scored(state: Any) -> float:
            own = model.as_wide_as(state.factors)  # moves have more components for a while
            return scoring.log_likelihood(state.factors, plan.data, own, engine, state.parameters, plan.tokens)

        with recorded(self.tuning) as record:
            if self.snapshot is None:
                state = algorithm.init(plan, model, self.streams, engine, self.start)
                started = scored(state)
                record.note(started=started, tuned=started)
            else:
                state = self.snapshot.state
            kept = self.kept
            while state.sweep < schedule.sweeps and not stop.is_set():
                state, info = algorithm.step(state, plan, model, self.streams, engine)
                done, score = state.sweep - schedule.tune, None
                keep = done > 0 and done % schedule.thin == 0
                if keep or done == 0 or (watched and state.sweep % SCORE_EVERY == 0):
                    score = scored(state)
                if done == 0:
                    record.note(tuned=score)
                if keep:
                    self.draws.keep(kept, state, float(score or 0.0), info.total_rate)
                    kept += 1
                self.snapshot = checkpoint.Snapshot(state, kept, record.tuning)
                report(self.number, state.sweep, score)


def sample(
    observations: Observations,
    model: Factorization,
    schedule: Schedule,
    *,
    seed: int,
    threads: int,
    progress: bool | None = None,
    algorithm: Algorithm,
    start: Start = automatic,
    saving: Checkpoint | None = None,
    engine: Engine | None = None,
) -> Run:
    """Run chains, all or until averages over them are steady; Ctrl-C ends them after the current sweep.

    An interrupted run has the draws so far. Chains run side by side if there are threads for it. With more threads than
    chains, or with an engine, a chain's blocks do too. The draws are the same either way, and after a resume. A
    checkpoint that cannot be written is told of by a warning, and the run goes on.

    Raises:
        KeyboardInterrupt: interrupted before any chain had kept a draw.
        FileNotFoundError: the checkpoint's folder does not exist.
        FileExistsError: the checkpoint exists, and ``saving`` does not say to resume from it.
        ValueError: the checkpoint is damaged, or belongs to other data or settings.
    """
    draws, plan = Draws.empty(schedule, model), Plan(observations, model)
    chains = [Chain(c, seed, plan, model, draws, algorithm, start) for c in range(schedule.chains)]
    mark, earlier = "", 0.0
    if saving is not None:
        mark, earlier = prepare_checkpoint(saving, chains, draws, schedule, seed)
    rounds = (*schedule.rounds[:-1], schedule.chains)
    side_by_side = min(int(np.diff(rounds, prepend=0).max()), threads)
    stop = threading.Event()
    started, saver = time.perf_counter() - earlier, checkpoint.Saver()
    with (
        one_blas_thread(),  # once, here: two chains would race to set it
        progress_bar(progress) as bar,
        engine_or_threads(engine, max(1, threads // side_by_side)) as blocks_engine,
        ThreadPoolExecutor(side_by_side) as pool,
    ):
        tasks: list[TaskID] = []

        def report(number: int, sweep: int, score: float | None) -> None:
            stage = f"chain {number + 1} {'drawing' if sweep > schedule.tune else 'tuning'}"
            bar.update(tasks[number], completed=sweep, description=stage)
            if score is not None:
                bar.update(tasks[number], score=f"log-likelihood {score:.6g}")

        def save(path: Path) -> None:
            snapshots = [chain.snapshot for chain in chains]
            saver.write(path, mark, seed, snapshots, draws.arrays, time.perf_counter() - started)

        try:
            for n in rounds:
                begun = len(tasks)
                for chain in chains[begun:n]:
                    tasks.append(bar.add_task(f"chain {chain.number + 1} starting", total=schedule.sweeps, score=""))
                futures = [
                    pool.submit(chain.run, schedule, blocks_engine, stop, report, not bar.disable)
                    for chain in chains[begun:n]
                ]
                saves = (partial(save, saving.path), saving.every_seconds) if saving else ()
                interrupted = wait_for(futures, stop, *saves)
                if interrupted or n == schedule.chains:
                    break
                try:
                    apart = unsteadiness(draws.first(n), observations, model)
                except KeyboardInterrupt:
                    interrupted = True
                    break
                sign = "at most" if apart <= R_HAT_NESTED else "above"
                bar.update(tasks[-1], score=f"nested R-hat {apart:.2f}, {sign} {R_HAT_NESTED}")
                if apart <= R_HAT_NESTED:
                    break
        finally:
            stop.set()
    kept, numbers = cut(draws, [chain.kept for chain in chains])
    tuning = tuple(chains[number].tuning for number in numbers)
    return Run(kept, interrupted, time.perf_counter() - started, tuning)


def prepare_checkpoint(
    saving: Checkpoint, chains: list[Chain], draws: Draws, schedule: Schedule, seed: int
) -> tuple[str, float]:
    """Load a checkpoint into the chains, if there is one; (the run's fingerprint, the seconds that it took before)."""
    first = chains[0]
    settings = {
        "algorithm": name_of(first.algorithm), "start": named_start(first.start), "model": model_facts(first.model),
        "noise": first.plan.data.noise.mechanism, "plan": schedule, "seed": seed,
    }  # fmt: skip
    mark = checkpoint.fingerprint(first.plan.data, settings)
    saving.check_free()
    if saving.path.exists():
        snapshots, seconds = checkpoint.read(saving.path, mark, seed, draws.arrays)
        for chain, snapshot in zip(chains, snapshots, strict=True):
            if snapshot is not None:
                state: Any = first.algorithm.State(*snapshot.state)
                checkpoint.check_state(saving.path, state, first.model)
                chain.snapshot = snapshot._replace(state=state)
        return mark, seconds
    return mark, 0.0


def named_start(start: Start) -> Any:
    """What stands for a start in a fingerprint: its arrays if it has any, else its name."""
    return start.sets if isinstance(start, Given) else name_of(start)


def name_of(thing: Any) -> str:
    """The name of a module or function, or of a thing's class."""
    return str(getattr(thing, "__name__", type(thing).__name__))


def wait_for(
    futures: list[Future[None]],
    stop: threading.Event,
    save: Callable[[], None] = lambda: None,
    every_seconds: float | None = None,
) -> bool:
    """Wait for all chains, saving at intervals; True if the user interrupted. A chain that fails stops the others."""
    interrupted = False
    try:
        while wait(futures, timeout=every_seconds, return_when=FIRST_EXCEPTION).not_done:
            if any(future.done() and future.exception() for future in futures):
                stop.set()
                break
            save()
    except KeyboardInterrupt:
        interrupted = True
        stop.set()
    wait(futures)
    save()
    for future in futures:
        future.result()
    return interrupted


def cut(draws: Draws, kept: list[int]) -> tuple[Draws, list[int]]:
    """(the draws of as many chains, cut to one length, as are the most draws in all; the numbers of these chains)."""
    lengths = sorted(set(kept) - {0})
    if not lengths:
        raise KeyboardInterrupt("interrupted before any draw was kept")
    length = max(lengths, key=lambda n: n * sum(count >= n for count in kept))
    chains = [chain for chain, count in enumerate(kept) if count >= length]
    if len(chains) == len(kept) and length == draws.log_likelihood.shape[1]:
        return draws, chains
    return draws.mapped(lambda values: values[chains, :length]), chains


class Ascent(NamedTuple):
    """An optimiser's last state, the objective before each step, and how the run went."""

    state: Any
    objective: np.ndarray  # (iterations,)
    converged: bool
    interrupted: bool
    seconds: float


def ascend(
    observations: Observations,
    model: Factorization,
    algorithm: Any,
    settings: Settings,
    stop_rule: Callable[[Any, list[float]], bool],
    max_iter: int,
) -> Ascent:
    """Iterate until ``stop_rule(state, objectives)`` or ``max_iter``; Ctrl-C ends with the state so far."""
    started = time.perf_counter()
    plan, streams = Plan(observations, model), Streams.of_chain(settings.seed, 0)
    objectives: list[float] = []
    converged = interrupted = False
    with one_blas_thread(), progress_bar(settings.progress) as bar, settings.opened_engine() as engine:
        task = bar.add_task("starting", total=max_iter, score="")
        state = algorithm.init(plan, model, streams, engine, settings.start)
        try:
            while len(objectives) < max_iter and not converged:
                state, info = algorithm.step(state, plan, model, streams, engine)
                objectives.append(info.objective)
                bar.update(task, advance=1, description="iterating", score=f"objective {info.objective:.6g}")
                converged = stop_rule(state, objectives)
        except KeyboardInterrupt:
            interrupted = True
        if converged:
            bar.update(task, completed=max_iter, description="converged")
    return Ascent(state, np.array(objectives), converged, interrupted, time.perf_counter() - started)


def relative_change(tolerance: float) -> Callable[[Any, list[float]], bool]:
    """Stop once an iteration changes the objective by at most ``tolerance`` of its range over all iterations so far.

    Not of its size, which grows with the data and depends on constants. Where the start is the optimum there is no
    range; then changes as small as rounding makes them end the ascent.
    """

    def rule(state: Any, objectives: list[float]) -> bool:
        if len(objectives) < 2:
            return False
        change, spread = abs(objectives[-1] - objectives[-2]), max(objectives) - min(objectives)
        return change <= max(tolerance * spread, ROUNDING * abs(objectives[-1]))

    return rule


# Fits by chains: what samplers have in common, and where their chains begin.

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
        found = sample(
            data, model, settings.schedule, seed=settings.seed, threads=settings.threads, progress=settings.progress,
            algorithm=self.moving(data, model, settings), start=settings.start, saving=settings.saving,
            engine=settings.engine,
        )  # fmt: skip
        return Fitted(found.draws, found.interrupted, found.seconds, tuning=found.tuning)

    def moving(self, data: Observations, model: Factorization, settings: Settings) -> Any:
        """The algorithm, with the moves that its chains begin with, if they have any."""
        return self.bound()


# Fits by optimisers: iterate, then draw from the Q that was found, so that all results are read from draws.


@declared
class Optimiser(Method):
    """A method that ascends until its objective hardly changes, then draws from the gammas of Q."""

    _: KW_ONLY
    # fmt: off
    max_iter: Annotated[int, Option(Whole(1), "maximum number of iterations.")] = 500
    tolerance: Annotated[float, Option(Positive(),
        "stop when an iteration changes the objective by at most this share of its range so far; under noise a "
        "smaller value tends to fit worse.")] = 2e-3
    # fmt: on

    def run(self, data: Data, model: Factorization, settings: Settings) -> Fitted:
        """Ascend, then draw."""
        assert isinstance(data, Observations)
        check_room(settings.schedule._replace(chains=1), model, advice="")
        rule = relative_change(self.tolerance)
        ascent = ascend(data, model, self.bound(), settings, rule, self.max_iter)
        with settings.opened_engine() as engine:
            draws = draws_from_gammas(ascent.state, model, settings, engine, exposure=data.exposure)
        return Fitted(draws, ascent.interrupted, ascent.seconds, ascent.objective, ascent.converged, ascent.state.means)


def draws_from_gammas(
    q: Any,
    model: Factorization,
    settings: Settings,
    engine: Engine,
    summed: int | None = None,
    exposure: np.ndarray | None = None,
) -> Draws:
    """Independent draws from a Q of gammas (``shapes``, ``rates``, ``hypers``), as one chain; they are not scored.

    Of the row factor numbered ``summed`` the sum of all rows is kept, as draws of a model with one row have it.
    """
    streams = Streams.of_chain(settings.seed, Q_CHAIN)
    schedule = settings.schedule._replace(chains=1)
    kept = model if summed is None else model.with_rows(1)
    draws = Draws.empty(schedule, kept)
    chain, hypers = draws.of_chain(0), tuple(hyper[0] / hyper[1] for hyper in q.hypers)
    parameters = getattr(q, "parameters", ())  # of likelihoods that have any

    def draw(s: int) -> None:
        rng = streams.generator(s, START)
        factors = tuple(
            total_of_rows(q.shapes[f], q.rates[f], rng) if f == summed else draw_factor(q, model, f, rng)
            for f in range(len(model.factors))
        )
        total = scoring.total_rate(kept, factors, parameters, exposure)
        chain.keep(s, Point(factors, hypers, parameters), np.nan, total)

    list(engine.map(draw, range(schedule.draws)))
    return draws


def draw_factor(q: Any, model: Factorization, f: int, rng: np.random.Generator) -> np.ndarray:
    """A draw of factor f from its gammas; its value if it is fixed."""
    factor = model.factors[f]
    if factor.fixed is not None:
        return factor.fixed
    draw = np.maximum(rng.standard_gamma(q.shapes[f]) / q.rates[f], SMALLEST_DRAW)
    return np.triu(draw) + np.triu(draw, 1).T if factor.symmetric else draw
