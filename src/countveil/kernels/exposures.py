"""Exposures of row and column factors: sums over cells of e_dv times the other side. Suffixes as in ``gibbs``.

A row's exposure is its baseline times a sum over all columns, and a correction for every stored entry.
"""

from numba import njit

from countveil.kernels.tiles import add_column_exposures, add_row_exposures


@njit(cache=True, nogil=True)
def row_exposures(block, phi_vk, phi_total_k, exposure_dk, dense):
    """exposure_dk = sum_v e_dv phi_vk, in place."""
    exposure_d = block[5]
    n_rows, n_topics = exposure_dk.shape
    for d in range(n_rows):
        for k in range(n_topics):
            exposure_dk[d, k] = exposure_d[d] * phi_total_k[k]
    add_row_exposures(block, phi_vk, exposure_dk, dense)


@njit(cache=True, nogil=True)
def column_exposures(block, theta_dk, exposure_vk, total_k, dense):
    """Add sum_d (e_dv - baseline_d) theta_dk to exposure_vk, and sum_d baseline_d theta_dk to total_k."""
    exposure_d = block[5]
    n_rows, n_topics = theta_dk.shape
    for d in range(n_rows):
        for k in range(n_topics):
            total_k[k] += exposure_d[d] * theta_dk[d, k]
    add_column_exposures(block, theta_dk, exposure_vk, dense)
