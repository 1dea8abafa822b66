"""Row factors of new rows given the draws of fitted column factors."""

import numpy as np
import xarray as xr

from countveil.inference.gibbs import row_blocks
from countveil.inference.posterior import flat_draws
from countveil.inference.streams import ROWS, Streams
from countveil.kernels import gibbs as kernels
from countveil.observations import Observations

MOST_DRAWS = 100
SWEEPS_PER_DRAW = 10
PROJECTION_CHAIN = 2**31


def project_rows(observations: Observations, tree: xr.DataTree, shape: float, seed: int) -> np.ndarray:
    """Posterior mean (D, K) of new rows' theta, averaged over draws of phi and of the prior's rates.

    For each of up to 100 draws of phi, evenly spread, the rows' own Gibbs chain runs on for ten sweeps given
    phi, and its last five count.
    """
    phi_draws, rate_draws = flat_draws(tree, "phi"), flat_draws(tree, "theta_rate")
    chosen = np.unique(np.linspace(0, len(phi_draws) - 1, MOST_DRAWS).astype(int))
    streams = Streams.of_chain(seed, PROJECTION_CHAIN)
    n_topics = phi_draws.shape[1]
    theta = np.repeat(shape / rate_draws[chosen[:1]], observations.shape[0], axis=0)
    total = np.zeros_like(theta)
    sums = np.zeros((observations.shape[1], n_topics)), np.zeros((observations.shape[1], n_topics))
    for turn, s in enumerate(chosen):
        phi = np.ascontiguousarray(np.maximum(phi_draws[s].T, kernels.SMALLEST, dtype=np.float64))
        for inner in range(SWEEPS_PER_DRAW):
            for number, rows in enumerate(row_blocks(observations.shape[0])):
                kernels.sweep_rows(
                    observations.block(rows), theta[rows], phi, phi.sum(axis=0), shape, rate_draws[s], *sums,
                    np.zeros((2, n_topics)), streams.generator(turn * SWEEPS_PER_DRAW + inner, ROWS, number),
                )  # fmt: skip
            if 2 * inner >= SWEEPS_PER_DRAW:
                total += theta
    return total / (len(chosen) * (SWEEPS_PER_DRAW - SWEEPS_PER_DRAW // 2))
