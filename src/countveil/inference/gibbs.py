"""Collapsed Gibbs sampling of a Poisson factorization: no auxiliary variables for the noise (mathematics, section 4).

    for each positive report:  y ~ w(y) at its rate mu;  y's terms ~ Multinomial(y, their shares of mu)
    each factor's entry ~ Gamma(a + its counts, b + its exposure)

with exposures of 1 (positive), 1 - alpha (not positive), 0 (masked). In the matrix form mu_dv = sum_k theta_dk phi_vk
a row factor needs its own row and phi alone: one pass over the rows draws counts, allocation and theta, and only
sums of the size of phi leave a block of rows. They go on to the factors that phi is made of. Where counts are few and
noise is strong that pass goes by ``tokens`` instead.
"""

from typing import NamedTuple

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.inference import tokens
from countveil.inference.allocation import sampled_counts
from countveil.inference.factors import (
    DrawRule,
    draw_rates,
    priors_of,
    update_after_allocation,
    update_side,
)
from countveil.inference.start import start_factors
from countveil.inference.streams import RATES, ROWS, SPLITS, START, Streams
from countveil.kernels import gibbs as kernels
from countveil.kernels.tiles import is_dense
from countveil.models.factorization import Factorization


class State(NamedTuple):
    """Where a chain is: its factors, their prior rates, and how many sweeps brought it here."""

    factors: tuple[np.ndarray, ...]  # each of its factor's shape
    rates: tuple[np.ndarray, ...]  # each broadcasts against its factor
    sweep: int


class Info(NamedTuple):
    """What a sweep has to tell beside its state."""

    total_rate: float  # sum of the rates of all cells


def init(observations: Observations, model: Factorization, streams: Streams, engine: Engine) -> State:
    """A chain's state at the least-squares start, from its own random beginning."""
    rng = streams.generator(0, START)
    return State(start_factors(observations, model, rng, engine), model.initial_rates(), 0)


def step(
    state: State, observations: Observations, model: Factorization, streams: Streams, engine: Engine
) -> tuple[State, Info]:
    """The state one sweep on; the old one is left as it was."""
    sweep = state.sweep + 1
    priors = priors_of(model, observations, state.rates)
    factors, values = list(state.factors), model.columns.forward(state.factors)
    phi, splits = model.columns.matrix(values), streams.generator(sweep, SPLITS)
    rule = DrawRule(model, priors, streams, sweep, engine)
    row = model.row_factor
    if row is not None:
        theta, counts, exposures = sweep_rows(
            observations, model, model.as_row_matrix(factors[row]), phi, priors[row], streams, sweep, engine
        )
        factors[row] = model.as_row_factor(theta)
        update_side(
            model,
            model.columns,
            factors,
            sampled_counts(model.columns, values, counts, splits),
            exposures,
            rule,
        )
    else:
        row_values = model.rows.forward(factors)
        row_counts, counts = allocate(
            observations, model.rows.matrix(row_values), phi, streams, sweep, engine
        )
        found = (
            sampled_counts(model.rows, row_values, row_counts, splits),
            sampled_counts(model.columns, values, counts, splits),
        )
        update_after_allocation(model, factors, *found, observations, rule, engine)
    rates = draw_rates(model, observations, factors, state.rates, streams.generator(sweep, RATES))
    return State(tuple(factors), rates, sweep), Info(total_rate(model, factors))


def sweep_rows(
    observations: Observations,
    model: Factorization,
    theta: np.ndarray,
    phi: np.ndarray,
    prior: tuple[np.ndarray, np.ndarray],
    streams: Streams,
    sweep: int,
    engine: Engine,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A draw of theta (D, K), and the (V, K) counts and exposures that fell to the columns."""
    shape, rate = (model.as_row_matrix(values) for values in prior)
    if tokens.pays(observations):
        return tokens.sweep_rows(observations, theta, phi, (shape, rate), streams, sweep, engine)
    (new,), (counts, exposures, totals) = engine.over_rows(
        sweep_block, observations, (phi, phi.sum(axis=0), streams, sweep), (theta, shape, rate)
    )
    exposures += totals[0]
    return new, counts, exposures


def sweep_block(
    block: Block,
    phi: np.ndarray,
    phi_total: np.ndarray,
    streams: Streams,
    sweep: int,
    theta: np.ndarray,
    shape: np.ndarray,
    rate: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """Theta's rows, and the block's part of (counts, exposures, theta's totals)."""
    sums = np.zeros(phi.shape), np.zeros(phi.shape), np.zeros((2, phi.shape[1]))
    new, rng = theta.copy(), streams.generator(sweep, ROWS, block.number)
    kernels.sweep_rows(
        block.entries, new, phi, phi_total, shape, rate, *sums, is_dense(block.entries, len(phi)), rng
    )
    return (new,), sums


def allocate(
    observations: Observations,
    theta: np.ndarray,
    phi: np.ndarray,
    streams: Streams,
    sweep: int,
    engine: Engine,
) -> tuple[np.ndarray, np.ndarray]:
    """(D, K) and (V, K) counts of all cells, drawn with the factors as they are."""
    (row_counts,), (counts,) = engine.over_rows(
        allocate_block, observations, (phi, phi.sum(axis=0), streams, sweep), (theta,)
    )
    return row_counts, counts


def allocate_block(
    block: Block,
    phi: np.ndarray,
    phi_total: np.ndarray,
    streams: Streams,
    sweep: int,
    theta: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """The block's rows of the row counts, and its part of the column counts."""
    row_counts, counts = np.zeros_like(theta), np.zeros_like(phi)
    rng = streams.generator(sweep, ROWS, block.number)
    kernels.allocate_rows(block.entries, theta, phi, phi_total, row_counts, counts, rng)
    return (row_counts,), (counts,)


def total_rate(model: Factorization, factors: list[np.ndarray] | tuple[np.ndarray, ...]) -> float:
    """Sum of the rates of all cells, masked ones included."""
    theta, phi = model.matrices(factors)
    return float(theta.sum(axis=0) @ phi.sum(axis=0))


def log_likelihood(
    factors: tuple[np.ndarray, ...], observations: Observations, model: Factorization, engine: Engine
) -> float:
    """log P(max(reports, 0) | factors), the true counts summed out; masked cells left out."""
    theta, phi = model.matrices(factors)
    _, (total,) = engine.over_rows(score_block, observations, (phi, phi.sum(axis=0)), (theta,))
    return float(total[0])


def score_block(
    block: Block, phi: np.ndarray, phi_total: np.ndarray, theta: np.ndarray
) -> tuple[Arrays, Arrays]:
    """The block's part of the log-likelihood."""
    return (), (np.array([kernels.log_likelihood_rows(block.entries, theta, phi, phi_total)]),)
