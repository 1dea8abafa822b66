"""Variational inference as published: a point mass at the Bessel's mode, and the delta method.

    m_dv = mode of Bessel(|r|, 2 sqrt(G[lambda_2] G[lambda_1 + mu]))
    E[y + g_1] = m + max(r, 0);  E[g_2] = E[y + g_1] - r
    E[(g_1, y_1 .. y_K)] = E[y + g_1] in proportion to (G[lambda_1], G[theta_d1] G[phi_v1], ...)
    Q(lambda_l) = Gamma(1 + E[g_l], scale alpha)
    Q(theta_dk) = Gamma(a + sum_v E[y_dvk], b_k + sum_v E[phi_vk]);  phi likewise

with E log(lambda_1 + mu) by the delta method to second order, in every cell that is not masked. With
center="mean" the point mass is at the Bessel's mean (the 2018 preprint's appendix E). Nothing here is a bound
on the evidence, so ``objective`` is a stand-in: the log-likelihood at Q's mean factors. Kept for comparison:
``cavi`` needs neither point mass nor delta method.

A report that is not positive enters as r = 0. Its size carries no information about the factors (mathematics,
equation 2.5) and a release may not have it; the published updates would use it as the Bessel's order, and give
a different approximation there. Source: the 2019 variational paper, section 3, and the 2018 preprint, appendix
E, with the shape of Q(theta) summed over the row and lambda's scale corrected.
"""

from typing import Literal, NamedTuple

import numpy as np

from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs
from countveil.inference.augmented_gibbs import cell_alpha
from countveil.inference.cavi import factor_of, initial_hyper, update_hyper
from countveil.inference.start import least_squares_start
from countveil.inference.streams import START, Streams
from countveil.kernels import bessel_cavi as kernels
from countveil.models.matrix import MatrixModel
from countveil.observations import Observations

Center = Literal["mode", "mean"]
Moments = tuple[np.ndarray, np.ndarray, np.ndarray]  # geometric mean, mean, variance, each (n, K)


class State(NamedTuple):
    """Q's parameters: Gamma(shape, rate) for both factors, and the gammas of prior rates and noise rates."""

    theta_shape: np.ndarray  # (D, K)
    theta_rate: np.ndarray  # (D, K)
    phi_shape: np.ndarray  # (V, K)
    phi_rate: np.ndarray  # (V, K)
    theta_hyper: np.ndarray  # (2, K) shape and rate of Q(b_k) of theta's prior
    phi_hyper: np.ndarray  # (2, K)
    noise_shape: np.ndarray  # (D, V, 2) shapes of Q(lambda_1), Q(lambda_2); their scale is the cell's alpha
    sweep: int


class Info(NamedTuple):
    """log P(max(reports, 0)) at the mean factors of the state that the step began with; no bound, may fall."""

    objective: float


def init(
    observations: Observations, model: MatrixModel, streams: Streams, *, center: Center = "mode"
) -> State:
    """Q one update on from the least-squares start, and from noise rates of their prior's mean."""
    theta, phi = least_squares_start(observations, model.n_components, streams.generator(0, START))
    return from_point(theta, phi, observations, model, ThreadEngine(), center=center)


def from_point(
    theta: np.ndarray,
    phi: np.ndarray,
    observations: Observations,
    model: MatrixModel,
    engine: ThreadEngine,
    *,
    center: Center = "mode",
) -> State:
    """Q one update on from a point estimate of both factors; a noise rate has mean alpha / (1 - alpha)."""
    k = model.n_components
    hypers = initial_hyper(model.row_prior, k), initial_hyper(model.column_prior, k)
    noise = np.broadcast_to(1.0 / (1.0 - cell_alpha(observations))[..., None], (*observations.shape, 2))
    points = (theta, theta, np.zeros_like(theta)), (phi, phi, np.zeros_like(phi))
    return update(points, hypers, noise, observations, model, engine, 0, center)


def step(
    state: State,
    observations: Observations,
    model: MatrixModel,
    streams: Streams,
    engine: ThreadEngine,
    *,
    center: Center = "mode",
) -> tuple[State, Info]:
    """One iteration; draws nothing."""
    factors = (
        moments(state.theta_shape, state.theta_rate),
        moments(state.phi_shape, state.phi_rate),
    )
    hypers = state.theta_hyper, state.phi_hyper
    new = update(factors, hypers, state.noise_shape, observations, model, engine, state.sweep + 1, center)
    return new, Info(mean_log_likelihood(state, observations, engine))


def mean_log_likelihood(state: State, observations: Observations, engine: ThreadEngine) -> float:
    """log P(max(reports, 0) | E[theta], E[phi])."""
    theta, phi = state.theta_shape / state.theta_rate, state.phi_shape / state.phi_rate
    k = np.ones(theta.shape[1])
    return gibbs.log_likelihood(gibbs.State(theta, phi, k, k, state.sweep), observations, engine)


def moments(shape: np.ndarray, rate: np.ndarray) -> Moments:
    """Geometric mean, mean and variance of Gamma(shape, rate)."""
    factor = factor_of(shape, rate)
    return factor.geometric, factor.mean, factor.mean / rate


def update(
    factors: tuple[Moments, Moments],
    hypers: tuple[np.ndarray, np.ndarray],
    noise_shape: np.ndarray,
    observations: Observations,
    model: MatrixModel,
    engine: ThreadEngine,
    sweep: int,
    center: Center,
) -> State:
    """Q of counts, noise rates, theta, phi and prior rates, each updated in turn."""
    if center not in ("mode", "mean"):
        raise ValueError(f"center must be 'mode' or 'mean', got {center!r}")
    theta, phi = factors
    theta_b, phi_b = (hyper[0] / hyper[1] for hyper in hypers)
    theta_shape, theta_rate, noise = theta[0].copy(), theta[1].copy(), np.array(noise_shape)
    phi_total, prior = phi[1].sum(axis=0), (model.row_prior.shape, theta_b)

    def update_block(rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sums = np.zeros_like(phi[0]), np.zeros_like(phi[0]), np.zeros(model.n_components)
        kernels.update_rows(
            observations.block(rows), (theta_shape[rows], theta_rate[rows], theta[2][rows]), phi, phi_total,
            noise[rows], prior, sums, center == "mean",
        )  # fmt: skip
        return sums

    results = engine.map(update_block, gibbs.row_blocks(observations.shape[0]))
    ratios, exposures, total = next(results)
    for block_ratios, block_exposures, block_total in results:
        ratios += block_ratios
        exposures += block_exposures
        total += block_total
    phi_shape = model.column_prior.shape + phi[0] * ratios
    scale_d, scale_v = observations.prior_scale_d[:, None], observations.prior_scale_v[:, None]
    phi_rate = phi_b * scale_v + np.maximum(total + exposures, 0.0)
    n_rows, n_columns = observations.shape
    return State(
        theta_shape, theta_rate, phi_shape, phi_rate,
        update_hyper(model.row_prior, hypers[0], n_rows, (scale_d * theta_shape / theta_rate).sum(axis=0)),
        update_hyper(model.column_prior, hypers[1], n_columns, (scale_v * phi_shape / phi_rate).sum(axis=0)),
        noise,
        sweep,
    )  # fmt: skip
