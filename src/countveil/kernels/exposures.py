"""Exposures of row and column factors: sums over cells of e_dv times the other side. Suffixes as in ``gibbs``.

A row's exposure is its baseline times a sum over all columns, and a correction for every stored entry.
"""

from numba import njit

from countveil.kernels.gibbs import excess_exposure


@njit(cache=True, nogil=True)
def row_exposures(block, phi_vk, phi_total_k, exposure_dk):
    """exposure_dk = sum_v e_dv phi_vk, in place."""
    indptr, columns, reports, alpha_e, alpha_d, exposure_d = block
    n_rows, n_topics = exposure_dk.shape
    for d in range(n_rows):
        base = exposure_d[d]
        for k in range(n_topics):
            exposure_dk[d, k] = base * phi_total_k[k]
        for e in range(indptr[d], indptr[d + 1]):
            alpha = alpha_d[d] if alpha_e.size == 0 else alpha_e[e]
            excess = excess_exposure(reports[e], alpha, base)
            if excess != 0.0:
                v = columns[e]
                for k in range(n_topics):
                    exposure_dk[d, k] += excess * phi_vk[v, k]


@njit(cache=True, nogil=True)
def column_exposures(block, theta_dk, exposure_vk, total_k):
    """Add sum_d (e_dv - baseline_d) theta_dk to exposure_vk, and sum_d baseline_d theta_dk to total_k."""
    indptr, columns, reports, alpha_e, alpha_d, exposure_d = block
    n_rows, n_topics = theta_dk.shape
    for d in range(n_rows):
        base = exposure_d[d]
        for k in range(n_topics):
            total_k[k] += base * theta_dk[d, k]
        for e in range(indptr[d], indptr[d + 1]):
            alpha = alpha_d[d] if alpha_e.size == 0 else alpha_e[e]
            excess = excess_exposure(reports[e], alpha, base)
            if excess != 0.0:
                v = columns[e]
                for k in range(n_topics):
                    exposure_vk[v, k] += excess * theta_dk[d, k]
