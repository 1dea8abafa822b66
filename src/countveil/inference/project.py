"""Row factors of new rows given the draws of fitted column factors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import MAX_ROWS_PER_BLOCK, Arrays, Block, Engine, row_blocks
from countveil.inference.factors import filled
from countveil.inference.streams import ROWS, Streams
from countveil.kernels import gibbs as kernels
from countveil.kernels.gamma import SMALLEST
from countveil.laws.counts.laws import in_block
from countveil.models.priors import RowPrior

MOST_DRAWS = 100
SWEEPS_PER_DRAW = 10
PROJECTION_CHAIN = 2**31


def project_rows(
    observations: Observations,
    phi_draws: list[np.ndarray],
    rate_draws: np.ndarray,
    priors: Sequence[RowPrior],
    laws: Sequence[tuple[Any, ...]],
    sizes: Sequence[Any],
    seed: int,
    engine: Engine,
) -> np.ndarray:
    """Posterior mean (D, K) of new rows' theta, averaged over draws of phi (V, K) and of the prior's rates (S, K).

    ``priors`` has the prior in each draw, ``laws`` the law of reports, ``sizes`` what theta is multiplied by. For each
    of up to 100 evenly spread draws, the rows' own Gibbs chain continues for ten sweeps given phi, and the last five
    are averaged. A row's result does not depend on the rows after it.
    """
    chosen = np.unique(np.linspace(0, len(phi_draws) - 1, MOST_DRAWS).astype(int))
    streams = Streams.of_chain(seed, PROJECTION_CHAIN)
    blocks = row_blocks(observations.shape[0], MAX_ROWS_PER_BLOCK)
    scale = observations.prior_scale_d[:, None]
    shape, rate = priors[chosen[0]].gamma_of_new_rows(rate_draws[chosen[0]], 1.0)
    theta = filled((observations.shape[0], phi_draws[0].shape[1]), shape / rate) / scale
    total = np.zeros_like(theta)
    for turn, s in enumerate(chosen):
        phi = np.ascontiguousarray(np.maximum(phi_draws[s], SMALLEST, dtype=np.float64))
        shape, rate = (filled(theta.shape, x) for x in priors[s].gamma_of_new_rows(rate_draws[s], scale))
        shared = (laws[s], phi, phi.sum(axis=0), streams, turn * SWEEPS_PER_DRAW)
        (theta, mean), _ = engine.over_rows(project_block, observations, shared, (theta, shape, rate), blocks)
        total += mean * sizes[s]
    return total / (len(chosen) * (SWEEPS_PER_DRAW - SWEEPS_PER_DRAW // 2))


def project_block(
    block: Block,
    law: tuple[Any, ...],
    phi: np.ndarray,
    phi_total: np.ndarray,
    streams: Streams,
    first_sweep: int,
    theta: np.ndarray,
    shape: np.ndarray,
    rate: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """(theta's rows after ten sweeps, the sum of the last five of them) at a fixed phi."""
    new, total = theta.copy(), np.zeros_like(theta)
    law, entries = in_block(law, block.entries, block.first_row)
    for inner in range(SWEEPS_PER_DRAW):
        sums = np.zeros(phi.shape), np.zeros(phi.shape), np.zeros((2, phi.shape[1])), np.empty(0)
        rng = streams.generator(first_sweep + inner, ROWS, block.number)
        kernels.sweep_rows(law, entries, new, phi, phi_total, shape, rate, sums, False, rng)
        if 2 * inner >= SWEEPS_PER_DRAW:
            total += new
    return (new, total), ()
