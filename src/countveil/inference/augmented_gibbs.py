"""Gibbs sampling as published: the noise as two Poisson counts with random rates (mathematics, section 7).

    m ~ Bessel(|r|, 2 sqrt((lambda_1 + mu) lambda_2));  y + g_1 = m + max(r, 0);  g_2 = y + g_1 - r
    y ~ Binomial(y + g_1, mu / (mu + lambda_1));  (y_k)_k ~ Multinomial(y, theta_dk phi_vk)
    lambda_l ~ Gamma(1 + g_l, scale alpha)
    theta_dk ~ Gamma(a + sum_v y_dvk, b_k + sum_v phi_vk);  phi likewise; masked cells left out of both sums

in every cell, whatever its report. A report that is not positive enters as r = 0: its likelihood in theta and
phi depends on it only through its sign (mathematics, equation 2.5), so the posterior of the factors is the
same, and the auxiliary variables are those of the release truncated at zero. That serves truncated releases
too. Kept as the published method and the baseline of ``gibbs``, which needs none of these variables.
Source: Schein, Wu, Schofield, Zhou and Wallach (2019), section 4, with lambda's scale corrected.
"""

from typing import NamedTuple

import numpy as np

from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs
from countveil.inference.gibbs import COLUMNS_PER_BLOCK, Info, row_blocks
from countveil.inference.start import least_squares_start
from countveil.inference.streams import COLUMNS, RATES, ROWS, START, Streams
from countveil.kernels import augmented as kernels
from countveil.kernels.gibbs import sweep_columns
from countveil.models.matrix import MatrixModel
from countveil.observations import Observations


class State(NamedTuple):
    """Where a chain is: its factors, their prior rates, the noise rates, and the sweeps that brought it here."""

    theta: np.ndarray  # (D, K) row factors
    phi: np.ndarray  # (V, K) column factors
    theta_rate: np.ndarray  # (K,)
    phi_rate: np.ndarray  # (K,)
    noise: np.ndarray  # (D, V, 2) lambda_1 of the noise added and lambda_2 of the noise taken away
    sweep: int


def init(observations: Observations, model: MatrixModel, streams: Streams) -> State:
    """A chain's state at the least-squares start, its noise rates from their prior Gamma(1, scale alpha/(1-alpha))."""
    rng = streams.generator(0, START)
    theta, phi = least_squares_start(observations, model.n_components, rng)
    alpha = cell_alpha(observations)
    return State(
        theta,
        phi,
        model.row_prior.initial_rates(model.n_components),
        model.column_prior.initial_rates(model.n_components),
        rng.standard_exponential((*observations.shape, 2)) * (alpha / (1.0 - alpha))[..., None],
        0,
    )


def cell_alpha(observations: Observations) -> np.ndarray:
    """The noise level of every cell, as an array that broadcasts against (D, V)."""
    if observations.alpha_e.size:
        return observations.alpha_e.reshape(observations.shape)
    return observations.alpha_d[:, None]


def step(
    state: State, observations: Observations, model: MatrixModel, streams: Streams, engine: ThreadEngine
) -> tuple[State, Info]:
    """The state one sweep on; the old one is left as it was."""
    n_rows, n_columns = observations.shape
    sweep = state.sweep + 1
    theta, noise = state.theta.copy(), np.empty_like(state.noise)
    phi_total = state.phi.sum(axis=0)

    def sweep_block(number: int, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sums = np.zeros_like(state.phi), np.zeros_like(state.phi), np.zeros(model.n_components)
        kernels.sweep_rows(
            observations.block(rows), theta[rows], state.phi, phi_total, state.noise[rows], noise[rows],
            model.row_prior.shape, state.theta_rate, sums, streams.generator(sweep, ROWS, number),
        )  # fmt: skip
        return sums

    blocks = row_blocks(n_rows)
    results = engine.map(sweep_block, range(len(blocks)), blocks)
    counts, exposures, total = next(results)
    for block_counts, block_exposures, block_total in results:
        counts += block_counts
        exposures += block_exposures
        total += block_total

    phi = np.empty_like(state.phi)

    def draw_columns(number: int, columns: slice) -> None:
        sweep_columns(
            phi[columns], counts[columns], exposures[columns], total,
            observations.prior_scale_v[columns], model.column_prior.shape, state.phi_rate,
            streams.generator(sweep, COLUMNS, number),
        )  # fmt: skip

    columns = row_blocks(n_columns, COLUMNS_PER_BLOCK)
    list(engine.map(draw_columns, range(len(columns)), columns))

    rng = streams.generator(sweep, RATES)
    theta_total = (observations.prior_scale_d[:, None] * theta).sum(axis=0)
    phi_total = (observations.prior_scale_v[:, None] * phi).sum(axis=0)
    theta_rate = model.row_prior.draw_rates(state.theta_rate, n_rows, theta_total, rng)
    phi_rate = model.column_prior.draw_rates(state.phi_rate, n_columns, phi_total, rng)
    return State(theta, phi, theta_rate, phi_rate, noise, sweep), Info(float(total @ phi.sum(axis=0)))


def log_likelihood(state: State, observations: Observations, engine: ThreadEngine) -> float:
    """log P(max(reports, 0) | theta, phi), true counts and noise summed out; masked cells left out."""
    collapsed = gibbs.State(state.theta, state.phi, state.theta_rate, state.phi_rate, state.sweep)
    return gibbs.log_likelihood(collapsed, observations, engine)
