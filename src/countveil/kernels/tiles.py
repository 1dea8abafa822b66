"""Sums over the cells of a block of rows as matrix products, where enough of the cells are stored to be worth it.

A product over all cells of a tile costs about as much as visiting a tenth of them one by one: BLAS uses the
processor's widest instructions, and fetches nothing twice. Whether it is used is decided by the data alone, never by
the machine, so that draws do not depend on the number of threads. Suffixes are shapes, as in ``gibbs``.

The exposures of row and column factors are such sums, over cells of e_dv times the other side. A row's exposure is its
baseline times a sum over all columns, plus a correction for every stored entry (mathematics, equation 3.3).
"""

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.entries import MASKED
from countveil.kernels.law import law_at, seen_exposures, unseen_exposure

COLUMNS_PER_TILE = 256
CELLS_OF_RATES = 1 << 18
MOST_ROWS_OF_RATES = 64
LEAST_ROWS_OF_RATES = 8
DENSE_SHARE = 0.08


@subroutine
def fill_excesses(law, entries, d, first, last, excess_i):
    """excess_i = what stored entries first to last of row d have as exposures, less those of cells not stored there.

    That is their law's by whether the report is positive, and 0 where masked. A law is handed on once for all of them,
    since each time references to all of its arrays are counted.
    """
    columns, reports, level_e = entries.columns, entries.reports, entries.level_e
    weight_lv, place_d = entries.weight_lv, entries.place_d
    base, seen_v = entries.exposure_d[d], seen_exposures(law, d)
    alike = level_e.size == 0 and seen_v.size == 0  # cells without positive reports, stored or not
    for e in range(first, last):
        v = np.int64(columns[e])
        if place_d.size > 0:
            base = weight_lv[place_d[d], v]
        if reports[e] > 0:
            exposure = seen_v[v] if seen_v.size > 0 else 1.0
        elif reports[e] == MASKED:
            exposure = 0.0
        elif alike:
            exposure = base
        else:
            level = entries.level_d[d] if level_e.size == 0 else level_e[e]
            exposure = unseen_exposure(law_at(law, d, v), level)
        excess_i[e - first] = exposure - base


def is_dense(entries, n_columns):
    """Whether a block of rows is worth matrix products over all of its cells."""
    n_rows = entries.indptr.size - 1
    if n_columns > CELLS_OF_RATES // LEAST_ROWS_OF_RATES:
        return False
    return entries.columns.size >= DENSE_SHARE * n_rows * n_columns


def rows_of_rates(n_columns):
    """How many rows' rates are computed at once: they stay in the processor's cache until they are used."""
    return max(LEAST_ROWS_OF_RATES, min(MOST_ROWS_OF_RATES, CELLS_OF_RATES // n_columns))


def add_exposures(law, entries, factor, exposure, dense, of_rows):
    """exposure += sum over stored entries of (their exposure - their baseline) times the other side's factor.

    Exposures are those of rows (D, K), given phi (V, K), or of columns (V, K), given theta (D, K). Where baselines vary
    by column, the sum over all cells of baseline times factor is added as well.
    """
    if entries.place_d.size:
        add_baselines_by_column(entries, factor, exposure, of_rows)
    if dense:
        exposures_by_tiles(law, entries, factor, exposure, new_space(entries, factor.shape[1]), of_rows)
    else:
        exposures_by_entries(law, entries, factor, exposure, of_rows)


def add_baselines_by_column(entries, factor, exposure, of_rows):
    """exposure += sum over all cells of their baseline, which varies by column, times the other side's factor."""
    if of_rows:
        exposure += (entries.weight_lv @ factor)[entries.place_d]
    else:
        total_lk = np.zeros((len(entries.weight_lv), factor.shape[1]))
        np.add.at(total_lk, entries.place_d, factor)
        exposure += entries.weight_lv.T @ total_lk


@kernel
def fill_weights(law, level_l, weight_lv):
    """The exposure of an unstored cell of each level and column, whose law is the same in all rows."""
    for v in range(weight_lv.shape[1]):
        cell = law_at(law, 0, v)
        for l in range(level_l.size):  # noqa: E741
            weight_lv[l, v] = unseen_exposure(cell, level_l[l])


def new_space(entries, n_topics):
    """Space to work in: (each row's next entry, a tile's cells, a product with it), the last two flattened."""
    n_rows = entries.n_rows
    products = np.empty(max(n_rows, COLUMNS_PER_TILE) * n_topics)
    return entries.indptr[:n_rows].copy(), np.empty(n_rows * COLUMNS_PER_TILE), products


@kernel
def exposures_by_tiles(law, entries, factor, exposure, space, of_rows):
    """``add_exposures`` by matrix products over all cells of a tile."""
    next_d, cells, products = space
    excess_i = np.empty(COLUMNS_PER_TILE)
    n_columns = factor.shape[0] if of_rows else exposure.shape[0]
    for first in range(0, n_columns, COLUMNS_PER_TILE):
        last = min(first + COLUMNS_PER_TILE, n_columns)
        if fill_tile(law, entries, next_d, first, last, cells, excess_i):
            if of_rows:
                add_to_rows(cells, first, last, factor, products, exposure)
            else:
                add_to_columns(cells, first, last, factor, products, exposure)


@subroutine
def fill_tile(law, entries, next_d, first, last, cells, excess_i):
    """Fill a tile, (D, last - first) flattened, with stored entries' excess exposures, and with 0 elsewhere.

    next_d, each row's next entry, is advanced. Returns whether any excess is not zero.
    """
    indptr, columns = entries.indptr, entries.columns
    found, size = False, last - first
    for i in range(next_d.size * size):
        cells[i] = 0.0
    for d in range(next_d.size):
        begin = e = next_d[d]
        while e < indptr[d + 1] and columns[e] < last:
            e += 1
        next_d[d] = e
        fill_excesses(law, entries, d, begin, e, excess_i)
        for i in range(e - begin):
            if excess_i[i] != 0.0:
                found = True
                cells[d * size + np.int64(columns[begin + i]) - first] = excess_i[i]
    return found


@subroutine
def add_to_rows(cells, first, last, phi_vk, products, sum_dk):
    """sum_dk += a tile (D, last - first) times phi's rows first to last."""
    n_rows, n_topics = sum_dk.shape
    tile_dv = cells[: n_rows * (last - first)].reshape(n_rows, last - first)
    product_dk = products[: n_rows * n_topics].reshape(n_rows, n_topics)
    np.dot(tile_dv, phi_vk[first:last], product_dk)
    for d in range(n_rows):  # to add arrays would compile for longer
        for k in range(n_topics):
            sum_dk[d, k] += product_dk[d, k]


@subroutine
def add_to_columns(cells, first, last, theta_dk, products, sum_vk):
    """Rows first to last of sum_vk += a transposed tile (D, last - first) times theta."""
    n_rows, n_topics = theta_dk.shape
    tile_dv = cells[: n_rows * (last - first)].reshape(n_rows, last - first)
    product_vk = products[: (last - first) * n_topics].reshape(last - first, n_topics)
    np.dot(tile_dv.T, theta_dk, product_vk)
    for v in range(first, last):
        for k in range(n_topics):
            sum_vk[v, k] += product_vk[v - first, k]


@kernel
def exposures_by_entries(law, entries, factor, exposure, of_rows):
    """``add_exposures`` entry by entry."""
    indptr, columns = entries.indptr, entries.columns
    excess_i = np.empty(factor.shape[0] if of_rows else exposure.shape[0])
    for d in range(entries.exposure_d.size):
        fill_excesses(law, entries, d, indptr[d], indptr[d + 1], excess_i)
        for e in range(indptr[d], indptr[d + 1]):
            excess, v = excess_i[e - indptr[d]], np.int64(columns[e])
            if excess != 0.0:
                n, other = (d, v) if of_rows else (v, d)
                for k in range(exposure.shape[1]):
                    exposure[n, k] += excess * factor[other, k]


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
