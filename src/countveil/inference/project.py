"""Row factors of new rows given the draws of fitted column factors."""

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import MOST_ROWS_PER_BLOCK, row_blocks
from countveil.inference.streams import ROWS, Streams
from countveil.kernels import gibbs as kernels

MOST_DRAWS = 100
SWEEPS_PER_DRAW = 10
PROJECTION_CHAIN = 2**31


def project_rows(
    observations: Observations, phi_draws: list[np.ndarray], rate_draws: np.ndarray, shape: float, seed: int
) -> np.ndarray:
    """Posterior mean (D, K) of new rows' theta, averaged over draws of phi (V, K) and of the prior's rates (S, K).

    For each of up to 100 draws of phi, evenly spread, the rows' own Gibbs chain runs on for ten sweeps given
    phi, and its last five count. What a row gets does not depend on the rows after it.
    """
    chosen = np.unique(np.linspace(0, len(phi_draws) - 1, MOST_DRAWS).astype(int))
    streams = Streams.of_chain(seed, PROJECTION_CHAIN)
    n_components, scale = rate_draws.shape[1], observations.prior_scale_d[:, None]
    theta = np.repeat(shape / rate_draws[chosen[:1]], observations.shape[0], axis=0) / scale
    total, shapes = np.zeros_like(theta), np.full_like(theta, shape)
    sums = np.zeros((observations.shape[1], n_components)), np.zeros((observations.shape[1], n_components))
    for turn, s in enumerate(chosen):
        phi = np.ascontiguousarray(np.maximum(phi_draws[s], kernels.SMALLEST, dtype=np.float64))
        rates, phi_total = rate_draws[s] * scale, phi.sum(axis=0)
        for inner in range(SWEEPS_PER_DRAW):
            for number, rows in enumerate(row_blocks(observations.shape[0], MOST_ROWS_PER_BLOCK)):
                kernels.sweep_rows(
                    observations.block(rows), theta[rows], phi, phi_total, shapes[rows], rates[rows], *sums,
                    np.zeros((2, n_components)), False, streams.generator(turn * SWEEPS_PER_DRAW + inner, ROWS, number),
                )  # fmt: skip
            if 2 * inner >= SWEEPS_PER_DRAW:
                total += theta
    return total / (len(chosen) * (SWEEPS_PER_DRAW - SWEEPS_PER_DRAW // 2))
