"""Sums over the cells of a block of rows as matrix products, where enough of its cells are stored to pay.

A product over all cells of a tile costs what visiting a tenth or so of them one by one costs: BLAS uses the
processor's widest instructions, and fetches nothing twice. Whether to use it is told by the data alone, never by the
machine, so that it changes no draw from one number of threads to another. Suffixes are shapes, as in ``gibbs``.
"""

import numpy as np
from numba import njit

from countveil.kernels.entries import MASKED
from countveil.kernels.law import unseen_exposure

COLUMNS_PER_TILE = 256
CELLS_OF_RATES = 1 << 18
MOST_ROWS_OF_RATES = 64
LEAST_ROWS_OF_RATES = 8
DENSE_SHARE = 0.08


@njit(cache=True, nogil=True)
def excess_exposure(law, report, level, base):
    """What a stored entry's exposure has over its row's baseline: 1 if positive, the law's if not, 0 if masked."""
    if report > 0:
        return 1.0 - base
    if report == MASKED:
        return -base
    return unseen_exposure(law, level) - base


def is_dense(entries, n_columns):
    """Whether a block of rows is worth matrix products over all of its cells."""
    n_rows = entries.indptr.size - 1
    if n_columns > CELLS_OF_RATES // LEAST_ROWS_OF_RATES:
        return False
    return entries.columns.size >= DENSE_SHARE * n_rows * n_columns


@njit(cache=True, nogil=True)
def rows_of_rates(n_columns):
    """How many rows' rates are computed at once: they stay in the processor's cache until they are used."""
    return max(LEAST_ROWS_OF_RATES, min(MOST_ROWS_OF_RATES, CELLS_OF_RATES // n_columns))


@njit(cache=True, nogil=True)
def fill_excess(law, entries, place_d, first, last, excess):
    """excess (D, last - first) = stored entries' excess exposures at columns first to last, 0 elsewhere.

    place_d is each row's next entry, and moves on. Returns whether any of them is not zero.
    """
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e, exposure_d = entries.level_d, entries.level_e, entries.exposure_d
    found = False
    excess[:] = 0.0
    for d in range(place_d.size):
        base = exposure_d[d]
        e = place_d[d]
        end = indptr[d + 1]
        while e < end and columns[e] < last:
            level = level_d[d] if level_e.size == 0 else level_e[e]
            value = excess_exposure(law, reports[e], level, base)
            if value != 0.0:
                found = True
                excess[d, columns[e] - first] = value
            e += 1
        place_d[d] = e
    return found


@njit(cache=True, nogil=True)
def add_row_exposures(law, entries, phi_vk, exposure_dk, dense):
    """exposure_dk += sum over stored entries of (their exposure - exposure_d) phi_vk."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e, exposure_d = entries.level_d, entries.level_e, entries.exposure_d
    n_rows, n_topics = exposure_dk.shape
    if dense:
        cells = np.empty(n_rows * COLUMNS_PER_TILE)
        product_dk = np.empty((n_rows, n_topics))
        place_d = indptr[:n_rows].copy()
        for first in range(0, phi_vk.shape[0], COLUMNS_PER_TILE):
            last = min(first + COLUMNS_PER_TILE, phi_vk.shape[0])
            excess = cells[: n_rows * (last - first)].reshape(n_rows, last - first)
            if fill_excess(law, entries, place_d, first, last, excess):
                np.dot(excess, phi_vk[first:last], product_dk)
                exposure_dk += product_dk
        return
    for d in range(n_rows):
        base = exposure_d[d]
        for e in range(indptr[d], indptr[d + 1]):
            level = level_d[d] if level_e.size == 0 else level_e[e]
            excess = excess_exposure(law, reports[e], level, base)
            if excess != 0.0:
                v = columns[e]
                for k in range(n_topics):
                    exposure_dk[d, k] += excess * phi_vk[v, k]


@njit(cache=True, nogil=True)
def add_column_exposures(law, entries, theta_dk, exposure_vk, dense):
    """exposure_vk += sum over stored entries of (their exposure - exposure_d) theta_dk."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e, exposure_d = entries.level_d, entries.level_e, entries.exposure_d
    n_rows, n_topics = theta_dk.shape
    if dense:
        cells = np.empty(n_rows * COLUMNS_PER_TILE)
        product = np.empty(COLUMNS_PER_TILE * n_topics)
        place_d = indptr[:n_rows].copy()
        for first in range(0, exposure_vk.shape[0], COLUMNS_PER_TILE):
            last = min(first + COLUMNS_PER_TILE, exposure_vk.shape[0])
            excess = cells[: n_rows * (last - first)].reshape(n_rows, last - first)
            if fill_excess(law, entries, place_d, first, last, excess):
                product_vk = product[: (last - first) * n_topics].reshape(last - first, n_topics)
                np.dot(excess.T, theta_dk, product_vk)
                part_vk = exposure_vk[first:last]  # to assign to a slice would compile for seconds
                part_vk += product_vk
        return
    for d in range(n_rows):
        base = exposure_d[d]
        for e in range(indptr[d], indptr[d + 1]):
            level = level_d[d] if level_e.size == 0 else level_e[e]
            excess = excess_exposure(law, reports[e], level, base)
            if excess != 0.0:
                v = columns[e]
                for k in range(n_topics):
                    exposure_vk[v, k] += excess * theta_dk[d, k]
