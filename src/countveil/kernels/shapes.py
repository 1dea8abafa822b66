"""What counts say about the shapes of gamma entries that are summed out, compiled (mathematics, section 16)."""

import math

import numpy as np

from countveil.kernels.compiled import kernel
from countveil.kernels.gamma import trigamma
from countveil.kernels.negative_binomial import FEW, expected_bursts, log_rising


@kernel
def look_at_shapes(log_shape_dk, count_dk, exposed_dk, slope_dk, bend_dk):
    """(K,) log-densities of counts, up to a constant, of entries with these shapes and known means.

    ``exposed_dk`` are the means times the entries' exposures. ``slope_dk`` and ``bend_dk`` are filled with the first
    and minus the second derivative by log_shape_dk.
    """
    n_rows, n_components = log_shape_dk.shape
    mass_k = np.zeros(n_components)
    for d in range(n_rows):
        for k in range(n_components):
            u, n = log_shape_dk[d, k], int(count_dk[d, k])
            a = math.exp(u)
            ratio = exposed_dk[d, k] / a
            grown, share, size = math.log1p(ratio), ratio / (1.0 + ratio), a + n
            mass_k[k] += (log_rising(a, n) if n > 0 else 0.0) - n * u - size * grown
            tables, spread = (
                0.0,
                0.0,
            )  # the mean of the bursts that n comes in, and what their variance lacks of it
            if n <= FEW:
                for i in range(n):
                    one = a / (a + i)
                    tables += one
                    spread += one * one
            else:
                tables, spread = expected_bursts(n, a), a * a * (trigamma(a) - trigamma(size))
            slope_dk[d, k] = tables - n - a * grown + size * share
            bend_dk[d, k] = spread - tables + a * (grown - 2.0 * share) + size * share * (1.0 - share)
    return mass_k
