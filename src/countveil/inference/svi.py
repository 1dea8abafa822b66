"""Stochastic variational inference: rows come in batches, and the column factors learn from each in turn.

For a batch, Q(theta) of its rows is fitted with Q(phi) fixed. Then Q(phi)'s natural parameters move towards
what they would be if all data were copies of the batch (Hoffman et al. 2013):

    shape <- (1 - rho) shape + rho (a + s count),  rate <- (1 - rho) rate + rho (b + s exposure)

s is the number of all rows over that of the batch, rho = (delay + updates)^-forgetting. Data need not fit in memory.

Q(theta) of a row starts at nonnegative least squares on its debiased reports given phi's means. Only a few
iterations follow, since more of them would fit noise. Counts are split by one of ``EXPECTATIONS``: the two of
``cavi``, or "trimmed" (the default), the means without half of the prior's share, (shape - a/2) / rate. It does not
starve components, as the geometric expectation does where counts are sparse, and smears them less than the
arithmetic one.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY
from typing import Annotated, Any, NamedTuple

import numpy as np
import xarray as xr

from countveil.common.parameters import OneOf, Option, Whole, declared
from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine, row_blocks
from countveil.inference import cavi, run
from countveil.inference.algorithm import Data, Fitted, Method, Settings
from countveil.inference.ascent import Pass, pass_over_rows
from countveil.inference.cavi import EXPECTATIONS as OF_CAVI
from countveil.inference.cavi import expected_priors, geometric_means, initial_hypers
from countveil.inference.draws import check_room
from countveil.inference.factors import expected_counts, offset_scales
from countveil.inference.facts import facts_of
from countveil.inference.progress import progress_bar
from countveil.inference.row_gammas import RowGammas, check_summarised
from countveil.inference.starts import Start, automatic, begin
from countveil.inference.starts.alternating import project as least_squares_given
from countveil.inference.streams import START, Streams
from countveil.kernels import variational as kernels
from countveil.kernels.random import SMALLEST
from countveil.laws.counts.laws import law_of
from countveil.models.factorization import Factorization

DELAY = 1.0
FORGETTING = 0.7  # larger ones forget the early batches more slowly, and learn less from late ones
LOCAL_ITERATIONS = 5  # of a row's Q(theta): more take longer, and fit noise
LOCAL_TOLERANCE = 1e-2  # relative change of a row's means at which its iterations end
LOCAL_ROWS_PER_BLOCK = 32
FINISHED_AT_ONCE = 1 << 15  # rows, at the end: the arrays of a pass take a dozen times what is kept of it
LOCAL_FLOOR = 0.01  # of a row's start, relative to even weights
START_ROWS = 10_000  # that the global start uses: more find better topics, and take longer
EXPECTATIONS = ("trimmed", *OF_CAVI)
SHARE_TRIMMED = 0.5  # of the prior's shape, found by measurement; 0 would be the arithmetic expectation


class State(NamedTuple):
    """Q's global parameters, with nothing for the row factor, and how many batches they have learned from."""

    shapes: Arrays
    rates: Arrays
    hypers: Arrays
    updates: int


def init(
    observations: Observations,
    model: Factorization,
    streams: Streams,
    engine: Engine,
    total_rows: int,
    start: Start = automatic,
) -> State:
    """Global parameters after one update from a start on (at most 10,000 of) the first rows."""
    rng = streams.generator(0, START)
    n_rows = observations.shape[0]
    if n_rows > START_ROWS:
        observations = observations.take(np.sort(rng.choice(n_rows, START_ROWS, replace=False)))
    batch_model = model.with_rows(observations.shape[0])
    factors = begin(start, observations, batch_model, rng, engine)
    state = State(factors, tuple(np.ones_like(factor) for factor in factors), initial_hypers(model), 0)
    theta, phi = batch_model.matrices(factors)
    prior = row_prior(state, batch_model, observations)
    law = law_of(observations.noise, model.likelihood)
    found = pass_over_rows(observations, law, (theta, theta), (phi, phi), prior, engine)
    return learn(state, found, factors, batch_model, observations, total_rows, 1.0)


def step(
    state: State,
    batch: Observations,
    model: Factorization,
    total_rows: int,
    engine: Engine,
    expectation: str = "trimmed",
) -> tuple[State, Pass]:
    """Learn from one batch of rows; also returns the pass with the batch's Q(theta)."""
    found = fit_rows(state, batch, model, engine, expectation)
    weight = (DELAY + state.updates) ** -FORGETTING
    split_by = global_factors(state, model, expectation)[0]
    return learn(state, found, split_by, model.with_rows(batch.shape[0]), batch, total_rows, weight), found


def global_factors(state: State, model: Factorization, expectation: str) -> tuple[Arrays, Arrays]:
    """(what counts are split by, means) of all factors but the row factor."""
    means = tuple(shape / rate for shape, rate in zip(state.shapes, state.rates, strict=True))
    if expectation == "geometric":
        return geometric_means(state.shapes, state.rates, model), means
    if expectation == "arithmetic":
        return means, means
    trimmed = list(means)
    for f in model.free:
        if f != model.row_factor:
            shape, _ = model.factors[f].prior.gamma(state.hypers[f][0] / state.hypers[f][1], 1.0)
            trimmed[f] = (state.shapes[f] - SHARE_TRIMMED * shape) / state.rates[f]
    return tuple(trimmed), means


def own_rows(model: Factorization) -> int:
    """The number of the factor that belongs to the rows alone."""
    if model.row_factor is None:
        raise ValueError(f"method 'svi' needs a factor of the rows alone, got {model.spec.text!r}: use method='gibbs'")
    return model.row_factor


def row_prior(state: State, model: Factorization, observations: Observations) -> tuple[np.ndarray, np.ndarray]:
    """(shape, expected rate) of the row factor's prior for these rows, each (D, K)."""
    row = own_rows(model)
    shape, rate = expected_priors(model, offset_scales(model, observations), state.hypers)[row]
    return model.as_row_matrix(shape), model.as_row_matrix(rate)


def fit_rows(
    state: State, batch: Observations, model: Factorization, engine: Engine, expectation: str = "trimmed"
) -> Pass:
    """Q(theta) of the batch's rows with Q(phi) fixed, after a few iterations from least squares."""
    model = model.with_rows(batch.shape[0])
    phi_g, phi = (
        model.columns.matrix(model.columns.forward(factors)) for factors in global_factors(state, model, expectation)
    )
    law, phi_total, prior = (law_of(batch.noise, model.likelihood), phi.sum(axis=0), row_prior(state, model, batch))
    start = project(batch, phi, engine)
    shared, blocks = ((law, phi_g, phi, phi_total, expectation), row_blocks(batch.shape[0], LOCAL_ROWS_PER_BLOCK))
    theta, _ = engine.over_rows(settle_block, batch, shared, (start, *prior), blocks)
    return pass_over_rows(batch, law, (theta[0], theta[1]), (phi_g, phi), prior, engine)


def settle_block(
    block: Block,
    law: tuple[Any, ...],
    phi_geometric: np.ndarray,
    phi: np.ndarray,
    phi_total: np.ndarray,
    expectation: str,
    start: np.ndarray,
    prior_shape: np.ndarray,
    prior_rate: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """(what counts are split by, means) of the block's rows of theta, after some iterations from the start."""
    split_by, mean = start.copy(), start.copy()
    cut = SHARE_TRIMMED if expectation == "trimmed" else 0.0
    kernels.settle_rows(
        law, block.entries, split_by, mean, phi_geometric, phi, phi_total, np.ascontiguousarray(prior_shape),
        np.ascontiguousarray(prior_rate), expectation == "geometric", LOCAL_TOLERANCE, LOCAL_ITERATIONS, cut,
    )  # fmt: skip
    return (split_by, mean), ()


def project(batch: Observations, phi: np.ndarray, engine: Engine) -> np.ndarray:
    """Positive theta (D, K) near the least-squares fit of the debiased reports given phi (V, K)."""
    total_k = phi.sum(axis=0)
    tokens_d = np.maximum(facts_of(batch, engine).row_totals, 1.0)
    even = np.outer(tokens_d, 1.0 / (total_k.size * total_k))
    theta = least_squares_given(batch, phi, even, engine)
    return np.maximum(theta, LOCAL_FLOOR * even)


def learn(
    state: State,
    found: Pass,
    split_by: Arrays,
    model: Factorization,
    batch: Observations,
    total_rows: int,
    weight: float,
) -> State:
    """A natural-gradient step of size ``weight`` on all global parameters; split_by is what counts were split by."""

    def towards(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        return (1.0 - weight) * old + weight * new

    copies, row = total_rows / batch.shape[0], own_rows(model)
    columns, scales = model.columns, offset_scales(model, batch)
    priors = expected_priors(model, scales, state.hypers)
    shapes, rates, hypers = list(state.shapes), list(state.rates), list(state.hypers)
    means = [shape / rate for shape, rate in zip(shapes, rates, strict=True)]
    counts = expected_counts(columns, columns.forward(split_by), found.ratio)
    for u, use in enumerate(columns.uses):
        f = use.factor
        if model.factors[f].fixed is None:
            exposure = columns.gradient(u, columns.forward(means), found.exposure)
            shapes[f] = towards(shapes[f], priors[f][0] + copies * counts[u])
            rates[f] = np.maximum(towards(rates[f], priors[f][1] + copies * exposure), SMALLEST)
            means[f] = shapes[f] / rates[f]
            hypers[f] = model.factors[f].prior.update_q(model.factors[f], hypers[f], scales[f], means[f])
    theta = model.as_row_factor(found.theta_shape / found.theta_rate)
    hypers[row] = model.factors[row].prior.update_q(model.factors[row], hypers[row], scales[row], theta, copies, weight)
    shapes[row] = rates[row] = np.ones(model.factors[row].component_shape)
    return State(tuple(shapes), tuple(rates), tuple(hypers), state.updates + 1)


def grow(state: State, model: Factorization, observations: Observations, old_rows: int, total_rows: int) -> State:
    """The state rescaled as if ``total_rows`` rows instead of ``old_rows`` had given the same evidence per row."""
    times, row = total_rows / old_rows, own_rows(model)

    def towards(old: np.ndarray, prior: np.ndarray | float) -> np.ndarray:
        return prior + times * (old - prior)

    priors = expected_priors(model, offset_scales(model, observations), state.hypers)
    shapes, rates, hypers = list(state.shapes), list(state.rates), list(state.hypers)
    for f in model.free:
        if f != row:
            shapes[f] = towards(shapes[f], priors[f][0])
            rates[f] = towards(rates[f], np.minimum(priors[f][1], rates[f]))
    hypers[row] = model.factors[row].prior.grow_q(hypers[row], times)
    return state._replace(shapes=tuple(shapes), rates=tuple(rates), hypers=tuple(hypers))


def whole(
    state: State, model: Factorization, fits: Iterable[Pass], kind: type[np.floating[Any]] = np.float64
) -> cavi.State:
    """Q of all factors: the global part of the state, and the rows fitted by consecutive passes, of this type."""
    shape, rate, first = np.empty(model.rows.shape, kind), np.empty(model.rows.shape, kind), 0
    for found in fits:
        rows = slice(first, first + len(found.theta_shape))
        shape[rows], rate[rows], first = found.theta_shape, found.theta_rate, rows.stop
    shapes, rates, row = list(state.shapes), list(state.rates), own_rows(model)
    shapes[row], rates[row] = model.as_row_factor(shape), model.as_row_factor(rate)
    return cavi.State(tuple(shapes), tuple(rates), state.hypers, state.updates)


def learn_rows(
    method: "SVI",
    data: Data,
    model: Factorization,
    settings: Settings,
    state: State,
    turns: list[np.random.Generator],
    total_rows: int,
    started: float,
) -> Fitted:
    """One pass over the rows per generator of ``turns``; the rows represent ``total_rows`` rows."""
    summed = check_summarised(model) if method.keep == "summary" else None
    advice = " or method=cv.SVI(keep='summary')" if summed is None else ""
    check_room(settings.schedule._replace(chains=1), model if summed is None else model.with_rows(1), advice)
    expectation, n_rows = method.expectation, data.shape[0]
    bounds: list[float] = []
    interrupted = False
    with progress_bar(settings.progress, "rows") as bar, settings.opened_engine() as engine:
        task = bar.add_task("starting", total=(len(turns) + 1) * n_rows, score="")
        try:
            for turn, rng in enumerate(turns):
                bar.update(task, description=f"pass {turn + 1} of {len(turns)} over {n_rows:,} rows")
                for batch in batches(data, method.batch_rows, rng):
                    state, found = step(state, batch, model, total_rows, engine, expectation)
                    bounds.append(found.data_bound * total_rows / batch.shape[0])
                    bar.update(task, advance=batch.shape[0])
        except KeyboardInterrupt:
            interrupted = True
        bar.update(task, description=f"all {n_rows:,} rows", completed=len(turns) * n_rows)

        def fits() -> Iterator[Pass]:
            for part in runs_of_rows(data):
                yield fit_rows(state, part, model, engine, expectation)
                bar.update(task, advance=part.shape[0])

        q = whole(state, model, fits(), np.float64 if summed is None else np.float32)
        bar.update(task, description=f"draws of {n_rows:,} rows")
        draws = run.draws_from_gammas(q, model, settings, engine, summed)
    seconds = time.perf_counter() - started
    rows = None if summed is None else RowGammas(q.shapes[summed], q.rates[summed])
    return Fitted(draws, interrupted, seconds, np.array(bounds), not interrupted, q.means, state, rows)


def runs_of_rows(data: Data) -> Iterator[Observations]:
    """All rows once and in order, some at a time."""
    for _, part in data.parts():
        if part.shape[0] <= FINISHED_AT_ONCE:
            yield part
            continue
        for first in range(0, part.shape[0], FINISHED_AT_ONCE):
            yield part.take(np.arange(first, min(first + FINISHED_AT_ONCE, part.shape[0])))


def batches(data: Data, size: int, rng: np.random.Generator) -> Iterator[Observations]:
    """All rows once, in random batches of about ``size``; part by part, the parts in random order."""
    for _, part in data.parts(rng.permutation(data.n_parts)):
        order = rng.permutation(part.shape[0])
        for rows in np.array_split(order, -(-order.size // size)):
            yield part.take(rows)


@declared
class SVI(Method):
    """Fits the approximation of ``CAVI`` to batches of rows, for very large data (topics and tensors)."""

    name = "svi"
    says = "fits such an approximation to batches of rows, for very large data (topics and tensors)."
    algorithm = sys.modules[__name__]
    batches = True
    starved = (
        "It has shrunk its components too far, as svi does if counts are sparse and noise is strong. "
        'Use method="gibbs", or "em" for a quick look, or method=cv.CAVI(expectation="arithmetic").'
    )

    _: KW_ONLY
    # fmt: off
    passes: Annotated[int, Option(Whole(1), "number of passes over the rows.")] = 5
    batch_rows: Annotated[int, Option(Whole(1), "number of rows in a batch.")] = 256
    total_rows: Annotated[int | None, Option(Whole(1),
        "number of rows that those seen by ``partial_fit`` represent; None is the number seen.")] = None
    expectation: Annotated[str, Option(OneOf(EXPECTATIONS),
        'means by which counts are split: "geometric" or "arithmetic", as for ``CAVI``, or "trimmed" (arithmetic ones '
        "without half the prior's share; between the two).")] = "trimmed"
    keep: Annotated[str, Option(OneOf(("draws", "summary")),
        'what to keep of theta: its "draws", or a "summary", the gammas of its approximation, from which draws are '
        "made again on request. For millions of rows: each draw takes rows * topics * 4 bytes.")] = "draws"
    # fmt: on

    def run(self, data: Data, model: Factorization, settings: Settings) -> Fitted:
        """Passes over the rows in random batches, then Q(theta) of all rows given the last Q(phi)."""
        streams, n_rows = Streams.of_chain(settings.seed, 0), data.shape[0]
        started = time.perf_counter()
        with settings.opened_engine() as engine:
            state = init(next(data.parts())[1], model, streams, engine, n_rows, settings.start)
        turns = [streams.generator(turn + 1, START) for turn in range(self.passes)]
        return learn_rows(self, data, model, settings, state, turns, n_rows, started)

    def go_on(
        self, data: Data, model: Factorization, settings: Settings, before: tuple[State, int] | None, total_rows: int
    ) -> Fitted:
        """One pass over rows that come after others: ``before`` is the state, and how many rows it represents."""
        streams, started = Streams.of_chain(settings.seed, 0), time.perf_counter()
        first = next(data.parts())[1]
        if before is None:
            with settings.opened_engine() as engine:
                state = init(first, model, streams, engine, total_rows, settings.start)
        else:
            old, old_rows = before
            state = grow(old, model.with_rows(first.shape[0]), first, old_rows, total_rows)
        turns = [streams.generator(state.updates, START)]
        return learn_rows(self, data, model, settings, state, turns, total_rows, started)


GROUP = "stream"
PARTS = ("shapes", "rates", "hypers")


class Stream(NamedTuple):
    """The global parameters, and the rows that they represent."""

    state: State
    prior_scale_v: np.ndarray  # (V,)
    rows_seen: int
    total_rows: int  # rows that the state represents


def store(tree: xr.DataTree, model: Factorization, stream: Stream) -> None:
    """Add the stream to a posterior's tree."""
    variables: dict[str, Any] = {"prior_scale": ("column", stream.prior_scale_v)}
    for part in PARTS:
        for factor, values in zip(model.factors, getattr(stream.state, part), strict=True):
            name = f"{factor.name}_{part}"
            variables[name] = ([f"{name}_{i}" for i in range(np.ndim(values))], values)
    numbers = {"updates": stream.state.updates, "rows_seen": stream.rows_seen, "total_rows": stream.total_rows}
    tree[GROUP] = xr.Dataset(variables, attrs=numbers)


def restore(tree: xr.DataTree, model: Factorization) -> Stream | None:
    """The stream of a posterior's tree; None if there is none."""
    if GROUP not in tree.children:
        return None
    found = tree[GROUP]
    parts = {part: tuple(found[f"{factor.name}_{part}"].to_numpy() for factor in model.factors) for part in PARTS}
    return Stream(
        State(**parts, updates=int(found.attrs["updates"])),
        found["prior_scale"].to_numpy(),
        int(found.attrs["rows_seen"]),
        int(found.attrs["total_rows"]),
    )
