"""One pass of coordinate ascent over all rows, shared by cavi, em and svi."""

from typing import NamedTuple

import numpy as np

from countveil.engines.threads import ThreadEngine
from countveil.inference.gibbs import row_blocks
from countveil.kernels import variational as kernels
from countveil.observations import Observations


class Factor(NamedTuple):
    """What a pass needs of a factor, each (n, K)."""

    geometric: np.ndarray  # exp E log
    mean: np.ndarray


class Pass(NamedTuple):
    """What a pass over the rows found: theta's new optimum, and what phi's needs."""

    theta_shape: np.ndarray  # (D, K)
    theta_rate: np.ndarray  # (D, K)
    phi_count: np.ndarray  # (V, K) expected true counts of each word in each topic
    phi_exposure: np.ndarray  # (V, K) exposure of each word to each topic, with the new theta
    theta_total: np.ndarray  # (K,) sum of the new theta's means, each times its prior's scale
    data_bound: float  # the data's part of the evidence lower bound, at the factors that came in


def pass_over_rows(
    observations: Observations,
    theta: Factor,
    phi: Factor,
    shape: float,
    prior_rate_k: np.ndarray,
    engine: ThreadEngine,
) -> Pass:
    """Update theta given phi, block by block; shape is the prior's, prior_rate_k its (expected) rates."""
    phi_total = phi.mean.sum(axis=0)
    theta_shape, theta_rate = theta.geometric.copy(), theta.mean.copy()

    def update_block(rows: slice) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], float]:
        sums = np.zeros_like(phi.mean), np.zeros_like(phi.mean), np.zeros((2, phi_total.size))
        bound = kernels.update_rows(
            observations.block(rows), theta_shape[rows], theta_rate[rows], phi.geometric, phi.mean,
            phi_total, shape, prior_rate_k, sums,
        )  # fmt: skip
        return sums, bound

    results = engine.map(update_block, row_blocks(observations.shape[0]))
    (ratios, exposures, totals), bound = next(results)
    for (block_ratios, block_exposures, block_totals), block_bound in results:
        ratios += block_ratios
        exposures += block_exposures
        totals += block_totals
        bound += block_bound
    ratios *= phi.geometric
    exposures += totals[0]
    theta_total = (observations.prior_scale_d[:, None] * theta_shape / theta_rate).sum(axis=0)
    return Pass(theta_shape, theta_rate, ratios, np.maximum(exposures, 0.0), theta_total, float(bound))
