"""Collapsed Gibbs sampling of mu = theta phi^T: no auxiliary variables for the noise (mathematics, section 4).

    for each positive report:  y_dv ~ w(y) at mu_dv;  (y_dvk)_k ~ Multinomial(y_dv, theta_dk phi_vk)
    theta_dk ~ Gamma(a + sum_v y_dvk, b_k + sum_v e_dv phi_vk)
    phi_vk   ~ Gamma(a + sum_d y_dvk, b_k + sum_d e_dv theta_dk)

with exposures e_dv of 1 (positive), 1 - alpha (not positive), 0 (masked). One pass over the rows does it all:
theta_d needs its own row and phi alone, and only sums of the size of phi leave a block of rows.
"""

from typing import NamedTuple

import numpy as np

from countveil.engines.threads import ThreadEngine
from countveil.inference.start import least_squares_start
from countveil.inference.streams import COLUMNS, RATES, ROWS, START, Streams
from countveil.kernels import gibbs as kernels
from countveil.models.matrix import MatrixModel
from countveil.observations import Observations

ROWS_PER_BLOCK = 256
COLUMNS_PER_BLOCK = 2048


class State(NamedTuple):
    """Where a chain is: its factors, their prior rates, and how many sweeps brought it here."""

    theta: np.ndarray  # (D, K) row factors
    phi: np.ndarray  # (V, K) column factors
    theta_rate: np.ndarray  # (K,)
    phi_rate: np.ndarray  # (K,)
    sweep: int


class Info(NamedTuple):
    """What a sweep has to tell beside its state."""

    total_rate: float  # sum of all mu_dv


def row_blocks(n_rows: int, size: int = ROWS_PER_BLOCK) -> list[slice]:
    """Fixed runs of rows, whatever the machine."""
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def init(observations: Observations, model: MatrixModel, streams: Streams) -> State:
    """A chain's state at the least-squares start, from its own random beginning."""
    rng = streams.generator(0, START)
    theta, phi = least_squares_start(observations, model.n_components, rng)
    return State(
        theta,
        phi,
        model.row_prior.initial_rates(model.n_components),
        model.column_prior.initial_rates(model.n_components),
        0,
    )


def step(
    state: State, observations: Observations, model: MatrixModel, streams: Streams, engine: ThreadEngine
) -> tuple[State, Info]:
    """The state one sweep on; the old one is left as it was."""
    n_rows, n_columns = observations.shape
    sweep = state.sweep + 1
    theta = state.theta.copy()
    phi_total = state.phi.sum(axis=0)

    def sweep_block(number: int, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sums = np.zeros_like(state.phi), np.zeros_like(state.phi), np.zeros((2, model.n_components))
        rng = streams.generator(sweep, ROWS, number)
        kernels.sweep_rows(
            observations.block(rows), theta[rows], state.phi, phi_total,
            model.row_prior.shape, state.theta_rate, *sums, rng,
        )  # fmt: skip
        return sums

    blocks = row_blocks(n_rows)
    results = engine.map(sweep_block, range(len(blocks)), blocks)
    counts, exposures, totals = next(results)
    for block_counts, block_exposures, block_totals in results:
        counts += block_counts
        exposures += block_exposures
        totals += block_totals

    phi = np.empty_like(state.phi)

    def draw_columns(number: int, columns: slice) -> None:
        kernels.sweep_columns(
            phi[columns], counts[columns], exposures[columns], totals[0],
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
    return State(theta, phi, theta_rate, phi_rate, sweep), Info(float(totals[1] @ phi.sum(axis=0)))


def log_likelihood(state: State, observations: Observations, engine: ThreadEngine) -> float:
    """log P(max(reports, 0) | theta, phi), the true counts summed out; masked cells left out."""
    phi_total = state.phi.sum(axis=0)
    blocks = row_blocks(observations.shape[0])
    parts = engine.map(
        lambda rows: kernels.log_likelihood_rows(
            observations.block(rows), state.theta[rows], state.phi, phi_total
        ),
        blocks,
    )
    return float(sum(parts))
