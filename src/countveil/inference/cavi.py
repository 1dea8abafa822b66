"""Exact coordinate-ascent variational inference: gamma factors, and the true counts' law in closed form.

Q(theta) and Q(phi) are gamma, Q(y_dv, (y_dvk)_k) is unrestricted, and its optimum is the true count's law at
mu~ = sum_k G[theta_dk] G[phi_vk], G = exp E log, with a multinomial split (mathematics, section 5). Learned
prior rates have gamma Qs of their own. The evidence lower bound is exact and never decreases.

Where counts are sparse and noise is strong, G is so far below the mean that Q starves its components. The
"arithmetic" expectation splits counts by means instead, as in zeroth-order collapsed inference for topic
models (Asuncion et al. 2009): no bound, but a penalised likelihood that never decreases and does not starve.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from countveil.engines.threads import ThreadEngine
from countveil.inference.ascent import Factor, pass_over_rows
from countveil.inference.start import least_squares_start
from countveil.inference.streams import START, Streams
from countveil.models.matrix import GammaPrior, MatrixModel
from countveil.observations import Observations

SMALLEST = 1e-150
EXPECTATIONS = ("geometric", "arithmetic")


class State(NamedTuple):
    """Q's parameters: Gamma(shape, rate) for every entry of both factors, and the prior rates' gammas."""

    theta_shape: np.ndarray  # (D, K)
    theta_rate: np.ndarray  # (D, K)
    phi_shape: np.ndarray  # (V, K)
    phi_rate: np.ndarray  # (V, K)
    theta_hyper: (
        np.ndarray
    )  # (2, K) shape and rate of Q(b_k) of theta's prior; rate infinite where b_k is fixed
    phi_hyper: np.ndarray  # (2, K)
    sweep: int


class Info(NamedTuple):
    """The evidence lower bound (or penalised log-likelihood) of the state that the step began with."""

    objective: float


def init(observations: Observations, model: MatrixModel, streams: Streams) -> State:
    """Q one update on from the least-squares start."""
    start = least_squares_start(observations, model.n_components, streams.generator(0, START))
    return from_point(*start, observations, model, ThreadEngine())


def from_point(
    theta: np.ndarray, phi: np.ndarray, observations: Observations, model: MatrixModel, engine: ThreadEngine
) -> State:
    """Q one update on from a point estimate of both factors."""
    k = model.n_components
    hypers = initial_hyper(model.row_prior, k), initial_hyper(model.column_prior, k)
    return update(Factor(theta, theta), Factor(phi, phi), hypers, observations, model, engine, 0)[0]


def step(
    state: State,
    observations: Observations,
    model: MatrixModel,
    streams: Streams,
    engine: ThreadEngine,
    expectation: str = "geometric",
) -> tuple[State, Info]:
    """One iteration; draws nothing."""
    theta = factor_of(state.theta_shape, state.theta_rate, expectation)
    phi = factor_of(state.phi_shape, state.phi_rate, expectation)
    hypers = state.theta_hyper, state.phi_hyper
    new, data_bound = update(theta, phi, hypers, observations, model, engine, state.sweep + 1)
    prior_part = factor_bound if expectation == "geometric" else factor_penalty
    objective = data_bound
    q, scale_d, scale_v = state, observations.prior_scale_d, observations.prior_scale_v
    objective += prior_part(q.theta_shape, q.theta_rate, q.theta_hyper, model.row_prior, scale_d[:, None])
    objective += prior_part(q.phi_shape, q.phi_rate, q.phi_hyper, model.column_prior, scale_v[:, None])
    return new, Info(objective)


def update(
    theta: Factor,
    phi: Factor,
    hypers: tuple[np.ndarray, np.ndarray],
    observations: Observations,
    model: MatrixModel,
    engine: ThreadEngine,
    sweep: int,
) -> tuple[State, float]:
    """Q(y), Q(theta), Q(phi), Q(rates) each replaced by their optimum in turn; and the data's part of the bound."""
    a_row, a_column = model.row_prior.shape, model.column_prior.shape
    theta_b, phi_b = (hyper[0] / hyper[1] for hyper in hypers)
    found = pass_over_rows(observations, theta, phi, a_row, theta_b, engine)
    scale = observations.prior_scale_v[:, None]
    phi_shape, phi_rate = a_column + found.phi_count, phi_b * scale + found.phi_exposure
    n_rows, n_columns = observations.shape
    state = State(
        found.theta_shape, found.theta_rate, phi_shape, phi_rate,
        update_hyper(model.row_prior, hypers[0], n_rows, found.theta_total),
        update_hyper(model.column_prior, hypers[1], n_columns, (scale * phi_shape / phi_rate).sum(axis=0)),
        sweep,
    )  # fmt: skip
    return state, found.data_bound


def factor_of(shape: np.ndarray, rate: np.ndarray, expectation: str = "geometric") -> Factor:
    """Means of Gamma(shape, rate), and what counts are split by: exp E log, or the means themselves."""
    mean = shape / rate
    if expectation == "arithmetic":
        return Factor(mean, mean)
    return Factor(np.maximum(np.exp(digamma(shape)) / rate, SMALLEST), mean)


def initial_hyper(prior: GammaPrior, n_components: int) -> np.ndarray:
    """(2, K) shape and rate of Q(b_k), of mean prior.rate."""
    return np.repeat([[prior.rate], [1.0]], n_components, axis=1)


def update_hyper(prior: GammaPrior, hyper: np.ndarray, size: int, total_k: np.ndarray) -> np.ndarray:
    """Q(b_k) = Gamma(1 + a size, 1/scale + sum of means); as it was where the rates are fixed."""
    if not prior.learned:
        return hyper
    return np.stack([np.full_like(total_k, 1.0 + prior.shape * size), 1.0 / prior.rate + total_k])


def factor_bound(
    shape: np.ndarray, rate: np.ndarray, hyper: np.ndarray, prior: GammaPrior, scale: np.ndarray
) -> float:
    """E log p(factor | b) p(b) - E log q(factor) q(b): minus the divergence of Q from Gamma(a, scale b)."""
    a, n = prior.shape, shape.shape[0]
    mean, mean_log = shape / rate, digamma(shape) - np.log(rate)
    entropy = (shape - np.log(rate) + gammaln(shape) + (1.0 - shape) * digamma(shape)).sum()
    b = hyper[0] / hyper[1]
    log_b = digamma(hyper[0]) - np.log(hyper[1]) if prior.learned else np.log(b)
    bound = entropy + n * (a * log_b - gammaln(a)).sum() + a * b.size * np.log(scale).sum()
    bound += (a - 1.0) * mean_log.sum() - (b * scale * mean).sum()
    if prior.learned:
        bound += (-np.log(prior.rate) - b / prior.rate).sum()
        bound += (
            hyper[0] - np.log(hyper[1]) + gammaln(hyper[0]) + (1.0 - hyper[0]) * digamma(hyper[0])
        ).sum()
    return float(bound)


def factor_penalty(
    shape: np.ndarray, rate: np.ndarray, hyper: np.ndarray, prior: GammaPrior, scale: np.ndarray
) -> float:
    """What the arithmetic iteration adds to the log-likelihood: sum of a log m - b m, and of b's own terms."""
    mean, b = shape / rate, hyper[0] / hyper[1]
    penalty = prior.shape * np.log(mean).sum() - (b * scale * mean).sum()
    if prior.learned:
        penalty += ((1.0 + prior.shape * shape.shape[0]) * np.log(b) - b / prior.rate).sum()
    return float(penalty)
