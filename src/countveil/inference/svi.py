"""Stochastic variational inference: rows come in batches, the column factors learn from each and forget slowly.

For a batch, Q(theta) of its rows is fitted with Q(phi) held; then Q(phi)'s natural parameters move towards
what they would be if the whole data were copies of the batch (Hoffman et al. 2013):

    phi_shape <- (1 - rho) phi_shape + rho (a + s count),  phi_rate <- (1 - rho) phi_rate + rho (b + s exposure)

s is the number of rows over the batch's, rho = (delay + updates)^-forgetting. Data need not fit in memory.

Q(theta) of a row starts at nonnegative least squares on its debiased reports given phi's means, and a few
iterations follow: the start is most of the way, and iterating to the end would fit noise. Counts are split by
one of ``EXPECTATIONS``: the two of ``cavi``, or "trimmed" (the default), the means with half the prior's share
left out, (shape - a/2) / rate. It does not starve components, as the geometric one does where counts are
sparse, and smears them less than the arithmetic one; it was chosen by measurement, not derived.
"""

from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from countveil.engines.threads import ThreadEngine
from countveil.inference import cavi
from countveil.inference.ascent import Factor, Pass, pass_over_rows
from countveil.inference.cavi import EXPECTATIONS as OF_CAVI
from countveil.inference.cavi import SMALLEST, factor_of, initial_hyper
from countveil.inference.gibbs import row_blocks
from countveil.inference.start import debiased, least_squares_start
from countveil.inference.streams import START, Streams
from countveil.kernels import variational as kernels
from countveil.models.matrix import GammaPrior, MatrixModel
from countveil.observations import Observations

DELAY = 1.0
FORGETTING = 0.7
LOCAL_ITERATIONS = 5
LOCAL_TOLERANCE = 1e-2
LOCAL_BLOCK = 32
LOCAL_FLOOR = 0.01
PROJECTIONS = 10
START_ROWS = 10_000
EXPECTATIONS = (*OF_CAVI, "trimmed")
TRIMMED = 0.5


class State(NamedTuple):
    """Q's global parameters, the prior rates' gammas, and how many batches they have learned from."""

    phi_shape: np.ndarray  # (V, K)
    phi_rate: np.ndarray  # (V, K)
    theta_hyper: np.ndarray  # (2, K)
    phi_hyper: np.ndarray  # (2, K)
    updates: int


def init(observations: Observations, model: MatrixModel, streams: Streams, total_rows: int) -> State:
    """Global parameters one update on from a least-squares start on (at most 10,000 of) the first rows."""
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
    expectation: str = "trimmed",
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
    expectation: str = "trimmed",
) -> Pass:
    """Q(theta) of the batch's rows with Q(phi) held, a few iterations on from least squares."""
    phi = split_by(state.phi_shape, state.phi_rate, model.column_prior.shape, expectation)
    rate_k, phi_total = state.theta_hyper[0] / state.theta_hyper[1], phi.mean.sum(axis=0)
    start = project(batch, phi.mean)
    theta, shape = Factor(start.copy(), start), model.row_prior.shape
    cut = TRIMMED * shape if expectation == "trimmed" else 0.0

    def settle_block(rows: slice) -> None:
        kernels.settle_rows(
            batch.block(rows), theta.geometric[rows], theta.mean[rows], phi.geometric, phi.mean, phi_total,
            shape, rate_k, expectation == "geometric", LOCAL_TOLERANCE, LOCAL_ITERATIONS, cut,
        )  # fmt: skip

    list(engine.map(settle_block, row_blocks(batch.shape[0], LOCAL_BLOCK)))
    return pass_over_rows(batch, theta, phi, shape, rate_k, engine)


def split_by(shape: np.ndarray, rate: np.ndarray, prior_shape: float, expectation: str) -> Factor:
    """Means of Gamma(shape, rate), and what counts are split by."""
    if expectation != "trimmed":
        return factor_of(shape, rate, expectation)
    return Factor((shape - TRIMMED * prior_shape) / rate, shape / rate)


def project(batch: Observations, phi: np.ndarray) -> np.ndarray:
    """Positive theta (D, K) near the least-squares fit of the debiased reports given phi (V, K)."""
    s, bias_d = debiased(batch)
    total_k = phi.sum(axis=0)
    tokens_d = np.maximum(s.sum(axis=1) - batch.shape[1] * bias_d, 1.0)
    even = np.outer(tokens_d, 1.0 / (total_k.size * total_k))
    with threadpool_limits(limits=1, user_api="blas"):
        gram, target = phi.T @ phi, s @ phi - np.outer(bias_d, total_k)
        theta = even.copy()
        for _ in range(PROJECTIONS):
            for k in np.flatnonzero(gram.diagonal() > 0.0):
                move = (target[:, k] - theta @ gram[:, k]) / gram[k, k]
                theta[:, k] = np.maximum(theta[:, k] + move, 0.0)
    return np.maximum(theta, LOCAL_FLOOR * even)


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


def grow(
    state: State, model: MatrixModel, prior_scale_v: np.ndarray, old_rows: int, total_rows: int
) -> State:
    """The state as it would be had not ``old_rows`` but ``total_rows`` said the same."""
    factor = total_rows / old_rows

    def towards(old: np.ndarray, prior: np.ndarray | float) -> np.ndarray:
        return prior + factor * (old - prior)

    phi_b = prior_scale_v[:, None] * state.phi_hyper[0] / state.phi_hyper[1]
    theta_hyper, row_prior = state.theta_hyper, model.row_prior
    if row_prior.learned:
        rate = towards(theta_hyper[1], np.minimum(1.0 / row_prior.rate, theta_hyper[1]))
        theta_hyper = np.stack([np.full_like(rate, 1.0 + row_prior.shape * total_rows), rate])
    return state._replace(
        phi_shape=towards(state.phi_shape, model.column_prior.shape),
        phi_rate=towards(state.phi_rate, np.minimum(phi_b, state.phi_rate)),
        theta_hyper=theta_hyper,
    )


def whole(state: State, fits: list[Pass]) -> cavi.State:
    """Q of all factors: the global part of the state, and the rows that passes have fitted, one after another."""
    return cavi.State(
        np.concatenate([found.theta_shape for found in fits]),
        np.concatenate([found.theta_rate for found in fits]),
        state.phi_shape, state.phi_rate, state.theta_hyper, state.phi_hyper, state.updates,
    )  # fmt: skip
