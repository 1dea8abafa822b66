"""Rates of the stored entries of a block of rows. Suffixes as in ``entries``."""

from countveil.kernels.compiled import kernel
from countveil.kernels.gibbs import inner


@kernel
def stored_rates(entries, theta_dk, phi_vk, rate_e):
    """rate_e = sum_k theta_dk phi_vk of each stored entry, in place."""
    for d in range(theta_dk.shape[0]):
        for e in range(entries.indptr[d], entries.indptr[d + 1]):
            rate_e[e] = inner(theta_dk, d, phi_vk, entries.columns[e])
