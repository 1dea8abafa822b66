"""Layers of gammas, compiled: the tables of a layer's counts, and the components above that they come from.

    theta_dk ~ Gamma(sum_j phi_kj upper_dj, b_d)

The columns of phi sum to one. Given counts n_dk with theta integrated out, tables are CRT(n_dk, sum_j phi_kj upper_dj),
and each of them comes from j in proportion to phi_kj upper_dj (Zhou, Cong and Chen 2016; mathematics, section 21).
"""

import numpy as np

from countveil.kernels.compiled import kernel
from countveil.kernels.negative_binomial import draw_bursts
from countveil.kernels.random import SMALLEST, binomial


@kernel
def pass_upwards(count_dk, phi_kj, upper_dj, rng, table_kj, total_dj):
    """Add tables to table_kj, those of k that came from j in any row, and to total_dj, those of a row from j."""
    n_rows, n_components = count_dk.shape
    n_upper = phi_kj.shape[1]
    weight_j = np.empty(n_upper)
    for d in range(n_rows):
        for k in range(n_components):
            customers = int(count_dk[d, k])
            if customers == 0:
                continue
            rest = 0.0
            for j in range(n_upper):
                weight_j[j] = phi_kj[k, j] * upper_dj[d, j]
                rest += weight_j[j]
            left = draw_bursts(customers, max(rest, SMALLEST), rng)
            for j in range(n_upper):
                if left == 0:
                    break
                drawn = left
                if j + 1 < n_upper and weight_j[j] < rest:
                    drawn = binomial(left, weight_j[j] / rest, rng)
                rest -= weight_j[j]
                left -= drawn
                table_kj[k, j] += drawn
                total_dj[d, j] += drawn
