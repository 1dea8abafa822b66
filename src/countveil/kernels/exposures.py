"""Exposures of row and column factors: sums over cells of e_dv times the other side. Suffixes as in ``gibbs``.

A row's exposure is its baseline times a sum over all columns, plus a correction for every stored entry (mathematics,
equation 3.3).
"""

import numpy as np

from countveil.kernels.compiled import kernel
from countveil.kernels.tiles import add_column_exposures, add_row_exposures, fill_excesses


def row_exposures(law, entries, phi_vk, phi_total_k, exposure_dk, dense):
    """exposure_dk = sum_v e_dv phi_vk, in place."""
    np.multiply(entries.exposure_d[:, None], phi_total_k, out=exposure_dk)
    add_row_exposures(law, entries, phi_vk, exposure_dk, dense)


def column_exposures(law, entries, theta_dk, exposure_vk, total_k, dense):
    """Add sum_d (e_dv - baseline_d) theta_dk to exposure_vk, and sum_d baseline_d theta_dk to total_k."""
    add_baselines(entries.exposure_d, theta_dk, total_k)
    add_column_exposures(law, entries, theta_dk, exposure_vk, dense)


@kernel
def add_baselines(exposure_d, theta_dk, total_k):
    """total_k += sum_d exposure_d theta_dk, row by row."""
    for d in range(theta_dk.shape[0]):
        for k in range(theta_dk.shape[1]):
            total_k[k] += exposure_d[d] * theta_dk[d, k]


@kernel
def entry_excesses(law, entries, excess_e):
    """excess_e = each stored entry's exposure less its row's baseline, in place."""
    indptr = entries.indptr
    for d in range(entries.exposure_d.size):
        fill_excesses(law, entries, d, indptr[d], indptr[d + 1], excess_e[indptr[d] : indptr[d + 1]])
