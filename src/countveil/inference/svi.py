"""Stochastic variational inference: rows come in batches, the column factors learn from each and forget slowly.

For a batch, Q(theta) of its rows is fitted with Q(phi) held; then Q(phi)'s natural parameters move towards
what they would be if the whole data were copies of the batch (Hoffman et al. 2013):

    phi_shape <- (1 - rho) phi_shape + rho (a + s count),  phi_rate <- (1 - rho) phi_rate + rho (b + s exposure)

s is the number of rows over the batch's, rho = (delay + updates)^-forgetting. Data need not fit in memory.
Counts are split by the factors' means unless asked otherwise (the "arithmetic" expectation of ``cavi``).
"""

from typing import NamedTuple

import numpy as np

from countveil.engines.threads import ThreadEngine
from countveil.inference import cavi
from countveil.inference.ascent import Factor, Pass, pass_over_rows
from countveil.inference.cavi import SMALLEST, factor_of, initial_hyper
from countveil.inference.gibbs import row_blocks
from countveil.inference.start import debiased, least_squares_start
from countveil.inference.streams import START, Streams
from countveil.kernels import variational as kernels
from countveil.models.matrix import GammaPrior, MatrixModel
from countveil.observations import Observations

DELAY = 1.0
FORGETTING = 0.7
LOCAL_ITERATIONS = 50
LOCAL_TOLERANCE = 1e-3
LOCAL_BLOCK = 32
START_ROWS = 2000


class State(NamedTuple):
    """Q's global parameters, the prior rates' gammas, and how many batches they have learned from."""

    phi_shape: np.ndarray  # (V, K)
    phi_rate: np.ndarray  # (V, K)
    theta_hyper: np.ndarray  # (2, K)
    phi_hyper: np.ndarray  # (2, K)
    updates: int


def init(observations: Observations, model: MatrixModel, streams: Streams, total_rows: int) -> State:
    """Global parameters one update on from a least-squares start on (at most 2,000 of) the first rows."""
    rng = streams.generator(0, START)
    n_rows = observations.shape[0]
    if n_rows > START_ROWS:
        observations = observations.take(np.sort(rng.choice(n_rows, START_ROWS, replace=False)))
    theta, phi = least_squares_start(observations, model.n_components, rng)
    empty, k = np.zeros_like(phi), model.n_components
    state = State(empty, empty, initial_hyper(model.row_prior, k), initial_hyper(model.column_prior, k), 0)
    found = pass_over_rows(
        observations, Factor(theta, theta), Factor(phi, phi), model.row_prior.shape,
        state.theta_hyper[0] / state.theta_hyper[1], ThreadEngine(),
    )  # fmt: skip
    return learn(state, found, model, observations, total_rows, 1.0)


def step(
    state: State,
    batch: Observations,
    model: MatrixModel,
    total_rows: int,
    engine: ThreadEngine,
    expectation: str = "arithmetic",
) -> tuple[State, Pass]:
    """Learn from one batch of rows; the batch's own Q(theta) comes along."""
    found = fit_rows(state, batch, model, engine, expectation)
    weight = (DELAY + state.updates) ** -FORGETTING
    return learn(state, found, model, batch, total_rows, weight), found


def fit_rows(
    state: State,
    batch: Observations,
    model: MatrixModel,
    engine: ThreadEngine,
    expectation: str = "arithmetic",
) -> Pass:
    """Q(theta) of the batch's rows with Q(phi) held, iterated row by row until it settles."""
    phi = factor_of(state.phi_shape, state.phi_rate, expectation)
    rate_k, phi_total = state.theta_hyper[0] / state.theta_hyper[1], phi.mean.sum(axis=0)
    s, bias_d = debiased(batch)
    tokens_d = np.maximum(s.sum(axis=1) - batch.shape[1] * bias_d, 1.0)
    start = np.outer(tokens_d, 1.0 / (phi_total.size * phi_total))
    theta = Factor(start.copy(), start)

    def settle_block(rows: slice) -> None:
        kernels.settle_rows(
            batch.block(rows), theta.geometric[rows], theta.mean[rows], phi.geometric, phi.mean, phi_total,
            model.row_prior.shape, rate_k, expectation == "geometric", LOCAL_TOLERANCE, LOCAL_ITERATIONS,
        )  # fmt: skip

    list(engine.map(settle_block, row_blocks(batch.shape[0], LOCAL_BLOCK)))
    return pass_over_rows(batch, theta, phi, model.row_prior.shape, rate_k, engine)


def learn(
    state: State, found: Pass, model: MatrixModel, batch: Observations, total_rows: int, weight: float
) -> State:
    """A natural-gradient step of size ``weight`` of all global parameters."""

    def towards(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        return (1.0 - weight) * old + weight * new

    copies, scale_v = total_rows / batch.shape[0], batch.prior_scale_v[:, None]
    phi_b = scale_v * state.phi_hyper[0] / state.phi_hyper[1]
    phi_shape = towards(state.phi_shape, model.column_prior.shape + copies * found.phi_count)
    phi_rate = towards(state.phi_rate, phi_b + copies * found.phi_exposure)
    phi_total = (scale_v * phi_shape / phi_rate).sum(axis=0)
    return State(
        phi_shape, np.maximum(phi_rate, SMALLEST),
        move_hyper(model.row_prior, state.theta_hyper, total_rows, copies * found.theta_total, weight),
        move_hyper(model.column_prior, state.phi_hyper, len(phi_shape), phi_total, 1.0),
        state.updates + 1,
    )  # fmt: skip


def move_hyper(
    prior: GammaPrior, hyper: np.ndarray, size: int, total_k: np.ndarray, weight: float
) -> np.ndarray:
    """Q(b_k) moved towards its optimum; as it was where the rates are fixed."""
    if not prior.learned:
        return hyper
    rate = (1.0 - weight) * hyper[1] + weight * (1.0 / prior.rate + total_k)
    return np.stack([np.full_like(rate, 1.0 + prior.shape * size), rate])


def whole(state: State, fits: list[Pass]) -> cavi.State:
    """Q of all factors: the global part of the state, and the rows that passes have fitted, one after another."""
    return cavi.State(
        np.concatenate([found.theta_shape for found in fits]),
        np.concatenate([found.theta_rate for found in fits]),
        state.phi_shape, state.phi_rate, state.theta_hyper, state.phi_hyper, state.updates,
    )  # fmt: skip
