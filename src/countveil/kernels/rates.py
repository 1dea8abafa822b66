"""Rates of the stored entries of a block of rows. Suffixes as in ``entries``."""

import numpy as np

from countveil.kernels.compiled import kernel
from countveil.kernels.gibbs import fill_rates, inner
from countveil.kernels.tiles import is_dense, rows_of_rates


def stored_rates(entries, theta_dk, phi_vk, rate_e):
    """rate_e = sum_k theta_dk phi_vk of each stored entry, in place; by matrix products if the block is dense."""
    if is_dense(entries, len(phi_vk)):
        rates_by_products(
            entries, theta_dk, np.ascontiguousarray(phi_vk.T), rows_of_rates(len(phi_vk)), rate_e
        )
    else:
        rates_one_by_one(entries, theta_dk, phi_vk, rate_e)


@kernel
def rates_by_products(entries, theta_dk, phi_kv, together, rate_e):
    """``stored_rates`` by products of this many rows of theta with phi."""
    n_rows, n_columns = theta_dk.shape[0], phi_kv.shape[1]
    rates = np.empty(together * n_columns)
    for first in range(0, n_rows, together):
        last = min(first + together, n_rows)
        fill_rates(theta_dk, first, last, phi_kv, rates)
        for d in range(first, last):
            for e in range(entries.indptr[d], entries.indptr[d + 1]):
                rate_e[e] = rates[(d - first) * n_columns + entries.columns[e]]


@kernel
def rates_one_by_one(entries, theta_dk, phi_vk, rate_e):
    """``stored_rates`` entry by entry."""
    for d in range(theta_dk.shape[0]):
        for e in range(entries.indptr[d], entries.indptr[d + 1]):
            rate_e[e] = inner(theta_dk, d, phi_vk, entries.columns[e])
