"""Collapsed Gibbs sampling of a factorization: no auxiliary variables for the noise (mathematics, section 4).

    for each positive report:  y ~ w(y) at its rate mu;  y's terms ~ Multinomial(y, their shares of mu)
    each factor's entry ~ Gamma(a + its counts, b + its exposure)

with exposures of 1 (positive report), 1 - alpha (not positive; for other laws see ``kernels.law``) and 0 (masked). In
the matrix form mu_dv = sum_k theta_dk phi_vk, a row of theta depends only on its own reports and phi. One pass over
the rows therefore draws counts, allocation and theta, and only sums of the size of phi leave a block of rows. These
are carried down to the factors of phi. Where counts are few and noise is strong, the pass goes by ``tokens`` instead. A
row factor whose prior is not of independent gammas is drawn by its prior, given the counts and exposures of all rows.
Counts of cells in totals are moved first, and the pass takes them as known (``totals``).
Parameters of the likelihood are drawn last, given the new factors, the counts and what is allocated of them.

Levels of cells, mu_tv = l_tv sum_k x_tk phi_vk, are known exposures to a sweep over all other factors (mathematics,
equation 3.4), which draws the parts n_tv of the counts. Then the levels are drawn given counts n_tv and exposures
e_tv sum_k x_tk phi_vk (mathematics, equation 17.16).
"""

import sys
from dataclasses import KW_ONLY
from typing import Annotated, Any, NamedTuple

import numpy as np

from countveil.common.parameters import Option, Whole, declared
from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.inference import dispersion, tokens, totals
from countveil.inference.algorithm import Settings
from countveil.inference.dispersion import unseen_rates
from countveil.inference.factors import DrawRule, row_exposures, sampled_counts, update_after_allocation, update_side
from countveil.inference.moves import with_moves
from countveil.inference.plan import Plan
from countveil.inference.run import Sampler
from countveil.inference.scoring import total_rate
from countveil.inference.starts import Start, automatic, begin
from countveil.inference.starts.given import Given
from countveil.inference.streams import COLUMNS, DISPERSION, PARAMETERS, ROWS, SPLITS, START, Streams
from countveil.kernels import gibbs as kernels
from countveil.kernels.tiles import entry_excesses, is_dense
from countveil.laws.counts.laws import in_block
from countveil.laws.counts.protocol import Parameters
from countveil.models.factorization import Factorization
from countveil.models.priors import Conditional


class State(NamedTuple):
    """A chain's state: factors, hyperparameters, sweeps done, parameters of the likelihood, counts in totals."""

    factors: tuple[np.ndarray, ...]  # each of its factor's shape
    hypers: tuple[np.ndarray, ...]  # of each factor's prior
    sweep: int
    parameters: Parameters = ()  # of the likelihood itself
    counts: Any = ()  # of the cells in totals whose reports leave them open (see ``inference.totals``)


class Info(NamedTuple):
    """What a sweep reports besides the state."""

    total_rate: float  # sum of the expected counts of all cells


class Drawn(NamedTuple):
    """What a pass over the rows drew: for the rows, and for the columns."""

    rows: np.ndarray  # (D, K) theta, as it was where it is drawn later
    row_counts: np.ndarray  # (D, K)
    counts: np.ndarray  # (V, K)
    exposures: np.ndarray  # (V, K); empty where theta is drawn later
    tally: np.ndarray  # what the likelihood's own parameters are drawn from


def init(plan: Plan, model: Factorization, streams: Streams, engine: Engine, start: Start = automatic) -> State:
    """The factors of a start with random numbers of the chain's own."""
    if model.level is not None:
        return begin_at_levels(plan, model, streams, engine, start)
    begun = begin(start, plan.data, model, streams.generator(0, START), engine)
    factors, hypers = model.begun(begun, plan.data.masked_cells)
    factors, parameters = dispersion.started(factors, plan, model, engine)
    counts: Any = ()
    if plan.data.totals is not None:
        law = plan.data.law(model.likelihood, parameters)
        counts = totals.begin(plan.open_cells, law, model.matrices(factors), streams)
    return State(factors, hypers, 0, parameters, counts)


def step(state: State, plan: Plan, model: Factorization, streams: Streams, engine: Engine) -> tuple[State, Info]:
    """One sweep; returns a new state."""
    if model.level is not None:
        return sweep_at_levels(state, plan, model, streams, engine)
    sweep = state.sweep + 1
    law, latent = plan.data.law(model.likelihood, state.parameters), state.counts
    if plan.data.totals is not None:
        matrices = model.matrices(state.factors)
        latent = totals.redrawn(latent, plan.open_cells, law, matrices, streams, sweep, engine)
        plan = plan.with_counts(latent)
        law = plan.data.law(model.likelihood, state.parameters)
    observations = plan.data
    every = dispersion.interval(observations)
    if sweep % every == 0 and dispersion.moves(model, plan):
        rng = streams.generator(sweep, DISPERSION)
        chain = state.factors, state.hypers, state.parameters
        moved = dispersion.moved(*chain, plan, model, engine, rng, sweep // every)
        state = State(*moved[:2], state.sweep, moved[2], latent)
        law = observations.law(model.likelihood, state.parameters)
    factors, values = list(state.factors), model.columns.forward(state.factors)
    phi, splits = model.columns.matrix(values), streams.generator(sweep, SPLITS)
    rule = DrawRule(model, plan.scales, state.hypers, streams, sweep, engine)
    row = model.fused_factor
    if row is not None:
        theta, prior = model.as_row_matrix(factors[row]), rule.row_prior(row)
        drawn = sweep_rows(plan, model, law, theta, phi, prior, streams, sweep, engine)
        factors[row] = model.as_row_factor(drawn.rows)
        counts = sampled_counts(model.columns, values, drawn.counts, splits)
        update_side(model, model.columns, factors, counts, drawn.exposures, rule)
        if model.factors[row].prior.collapsed:
            redraw_rows(plan, model, law, factors, drawn.row_counts, rule)
    else:
        row_values = model.rows.forward(factors)
        theta = model.rows.matrix(row_values)
        drawn = sweep_rows(plan, model, law, theta, phi, None, streams, sweep, engine)
        found = (
            sampled_counts(model.rows, row_values, drawn.row_counts, splits),
            sampled_counts(model.columns, values, drawn.counts, splits),
        )
        links = plan.seen.links(law)
        update_after_allocation(model, law, factors, *found, plan.seen.data, links, rule, engine)
    hypers = rule.draw_hypers(factors)
    parameters = state.parameters
    if parameters:
        rng = streams.generator(sweep, PARAMETERS)
        unseen = tokens.NONE_UNSEEN  # if the tally is of all cells
        if plan.tokens is None:
            unseen = unseen_rates(model, factors, observations, engine)
        parameters = model.likelihood.update(parameters, drawn.tally, unseen, rng)
    new = State(tuple(factors), hypers, sweep, parameters, latent)
    return new, Info(total_rate(model, factors, parameters, observations.exposure))


def sweep_rows(
    plan: Plan,
    model: Factorization,
    law: tuple[Any, ...],
    theta: np.ndarray,
    phi: np.ndarray,
    prior: tuple[np.ndarray, np.ndarray] | None,
    streams: Streams,
    sweep: int,
    engine: Engine,
) -> Drawn:
    """Counts of all cells given the current factors, and a draw of theta (D, K) if its prior (shape, rate) is given."""
    if plan.tokens is not None:
        given = law, (theta, phi), model.likelihood, prior, streams, sweep, engine
        return Drawn(*tokens.sweep_rows(plan.tokens, *given))
    size = model.likelihood.tally_size(plan.data.shape)
    shared = law, phi, phi.sum(axis=0), size, streams, sweep
    if prior is None:
        (row_counts,), (counts, tally) = engine.over_rows(allocate_block, plan.data, shared, (theta,))
        return Drawn(theta, row_counts, counts, np.empty((0, 0)), tally)
    (new, row_counts), (counts, exposures, totals, tally) = engine.over_rows(
        sweep_block, plan.data, shared, (theta, *prior)
    )
    exposures += totals[0]
    return Drawn(new, row_counts, counts, exposures, tally)


def redraw_rows(
    plan: Plan,
    model: Factorization,
    law: tuple[Any, ...],
    factors: list[np.ndarray],
    counts: np.ndarray,
    rule: DrawRule,
) -> None:
    """Draw the fused factor again, in place in ``factors``, with what its prior learns of it given its counts."""
    row = model.fused_factor
    assert row is not None
    phi = model.columns.matrix(model.columns.forward(factors))
    if plan.by_tokens:  # the counts are of all cells
        exposure = np.tile(phi.sum(axis=0), (len(counts), 1))
    else:
        exposure = row_exposures(plan.seen.data, law, phi, rule.engine)
    given = (model.as_row_factor(values) for values in (counts, exposure))
    factors[row] = rule.factor(row, factors[row], *given)


def sweep_block(
    block: Block,
    law: tuple[Any, ...],
    phi: np.ndarray,
    phi_total: np.ndarray,
    tally_size: int,
    streams: Streams,
    sweep: int,
    theta: np.ndarray,
    shape: np.ndarray,
    rate: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """Theta's rows and their counts, and the block's part of (counts, exposures, theta's totals, tally)."""
    sums = np.zeros(phi.shape), np.zeros(phi.shape), np.zeros((2, phi.shape[1])), np.zeros(tally_size)
    new, rng = theta.copy(), streams.generator(sweep, ROWS, block.number)
    law, entries = in_block(law, block.entries, block.first_row)
    dense = is_dense(entries, len(phi))
    row_counts = kernels.sweep_rows(law, entries, new, phi, phi_total, shape, rate, sums, dense, rng)
    return (new, row_counts), sums


def allocate_block(
    block: Block,
    law: tuple[Any, ...],
    phi: np.ndarray,
    phi_total: np.ndarray,
    tally_size: int,
    streams: Streams,
    sweep: int,
    theta: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """The block's rows of the row counts, and its part of (column counts, tally)."""
    row_counts, counts, tally = np.zeros_like(theta), np.zeros_like(phi), np.zeros(tally_size)
    rng = streams.generator(sweep, ROWS, block.number)
    law, entries = in_block(law, block.entries, block.first_row)
    kernels.allocate_rows(law, entries, theta, phi, phi_total, (row_counts, counts, tally), rng)
    return (row_counts,), (counts, tally)


def begin_at_levels(plan: Plan, model: Factorization, streams: Streams, engine: Engine, start: Start) -> State:
    """The start of the model without levels, and levels of one."""
    if isinstance(start, Given):
        start = Given(tuple(each[:-1] for each in start.sets))
    state = init(plan.without_levels, model.without_level, streams, engine, start)
    level = model.factors[-1]
    return state._replace(
        factors=(*state.factors, np.ones(level.shape)), hypers=(*state.hypers, level.prior.start(level))
    )


def sweep_at_levels(
    state: State, plan: Plan, model: Factorization, streams: Streams, engine: Engine
) -> tuple[State, Info]:
    """A sweep of the model without levels, at the present ones, then new levels."""
    rest, level, now = model.without_level, model.factors[-1], state.factors[-1]
    at_levels = plan.cells.at_levels(model.by_cell(now))
    inner = state._replace(factors=state.factors[:-1], hypers=state.hypers[:-1])
    inner, info = step(inner, Plan(at_levels, rest), rest, streams, engine)
    theta, phi = rest.matrices(inner.factors)
    law = plan.cells.law(model.likelihood, inner.parameters)
    exposure = exposures_of_cells(plan.cells, law) * (theta @ phi.T)
    given = Conditional(1.0, now, model.over_axes(at_levels.drawn), model.over_axes(exposure))
    rng = streams.generator(inner.sweep, COLUMNS, len(rest.factors) << 32)
    drawn, hypers = level.prior.draw(level, state.hypers[-1], given, rng)
    new = inner._replace(factors=(*inner.factors, drawn), hypers=(*inner.hypers, hypers))
    own = plan.data.exposure
    cells = model.by_cell(drawn) if own is None else own * model.by_cell(drawn)
    return new, info._replace(total_rate=total_rate(rest, inner.factors, inner.parameters, cells))


def exposures_of_cells(cells: Observations, law: tuple[Any, ...]) -> np.ndarray:
    """(D, V) of data with an exposure for every cell, times what the law makes of it: zero where a cell is masked."""
    law, entries = in_block(law, cells.block(slice(0, cells.shape[0])), 0)
    found = np.empty(entries.size)
    entry_excesses(law, entries, found)
    return found.reshape(cells.shape)


@declared
class Gibbs(Sampler):
    """Samples from the exact posterior."""

    name = "gibbs"
    says = "samples from the exact posterior."
    algorithm = sys.modules[__name__]
    calibrated = True
    self_loops = True
    any_prior = True
    learned_shapes = True
    seeds = True
    covariates = True
    totals = True
    exposures = True
    likelihoods = ("negative-binomial", "poisson")

    _: KW_ONLY
    # fmt: off
    moves: Annotated[int, Option(Whole(0),
        "moves of ten sweeps each during tuning, at most one for every twenty sweeps of ``tune``: the first two merge "
        "the surplus components of an automatic start (with two or three components, the first does), later ones "
        "split some components and merge pairs (only for products of two factors, such as topics).")] = 2
    # fmt: on

    def moving(self, data: Observations, model: Factorization, settings: Settings) -> Any:
        """The sweeps, after at most ``moves`` moves."""
        return with_moves(self.bound(), self.moves, data, model, settings)
