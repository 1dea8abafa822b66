"""Debiased reports of a block of rows as a matrix to multiply with, never stored, and the least-squares update.

T_dv = S_dv - bias_d: S_dv is a multiple of the report on stored entries and 0 elsewhere, and bias_d is its mean where
the count is zero. The noise provides both. Where entries have levels of their own, bias_d is 0 and S is less the
entry's bias. A masked cell of S has fill_d fill_v + bias_d. Dense blocks use matrix products over tiles, as in
``tiles``. Suffixes are shapes, as in ``entries``.
"""

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.entries import MASKED
from countveil.kernels.gibbs import inner
from countveil.kernels.law import bias, debiased, unbiased
from countveil.kernels.tiles import COLUMNS_PER_TILE, add_to_columns, add_to_rows, new_space


@subroutine
def entry_of_s(noise, report, level, own_level, filled):
    """S of one stored entry."""
    if report == MASKED:
        return filled
    return debiased(noise, report, level) - (bias(noise, level) if own_level else 0.0)


@subroutine
def bias_of_row(noise, level, own_level):
    """bias_d, which is 0 where entries have levels of their own."""
    return 0.0 if own_level else bias(noise, level)


@kernel
def sum_rows(noise, entries, row_2d, column_2v):
    """Add S, with bias_d in masked cells, to row_2d[0] and column_2v[0]; count these cells in the second rows.

    Returns the sum of unbiased estimates over all cells that are not masked.
    """
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e = entries.level_d, entries.level_e
    total = 0.0
    for d in range(level_d.size):
        empty = bias_of_row(noise, level_d[d], level_e.size > 0)
        total -= (column_2v.shape[1] - (indptr[d + 1] - indptr[d])) * bias(noise, level_d[d])
        for e in range(indptr[d], indptr[d + 1]):
            v = columns[e]
            level = level_d[d] if level_e.size == 0 else level_e[e]
            value = entry_of_s(noise, reports[e], level, level_e.size > 0, empty)
            row_2d[0, d] += value
            column_2v[0, v] += value
            if reports[e] == MASKED:
                row_2d[1, d] += 1.0
                column_2v[1, v] += 1.0
            else:
                total += unbiased(noise, reports[e], level)
    return total


@kernel
def debias(noise, entries, cell_dv):
    """cell_dv = T, with 0 in masked cells, in place."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e = entries.level_d, entries.level_e
    for d in range(level_d.size):
        empty = bias_of_row(noise, level_d[d], level_e.size > 0)
        for v in range(cell_dv.shape[1]):
            cell_dv[d, v] = -empty
        for e in range(indptr[d], indptr[d + 1]):
            level = level_d[d] if level_e.size == 0 else level_e[e]
            cell_dv[d, columns[e]] = entry_of_s(noise, reports[e], level, level_e.size > 0, empty) - empty


def multiply(noise, entries, fill_d, fill_v, factor, product, dense, of_rows):
    """product_dk += S phi_vk of rows, or product_vk += S^T theta_dk of columns."""
    if dense:
        space = new_space(entries, factor.shape[1])
        multiply_by_tiles(noise, entries, fill_d, fill_v, factor, product, space, of_rows)
    else:
        multiply_by_entries(noise, entries, fill_d, fill_v, factor, product, of_rows)


@kernel
def multiply_by_tiles(noise, entries, fill_d, fill_v, factor, product, space, of_rows):
    """``multiply`` by matrix products over all cells of a tile."""
    place_d, cells, products = space
    for first in range(0, fill_v.size, COLUMNS_PER_TILE):
        last = min(first + COLUMNS_PER_TILE, fill_v.size)
        fill_tile(noise, entries, place_d, first, last, fill_d, fill_v, cells)
        if of_rows:
            add_to_rows(cells, first, last, factor, products, product)
        else:
            add_to_columns(cells, first, last, factor, products, product)


@subroutine
def fill_tile(noise, entries, place_d, first, last, fill_d, fill_v, cells):
    """Fill a tile, (D, last - first) flattened, with S; place_d, each row's next entry, is advanced."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e = entries.level_d, entries.level_e
    size = last - first
    for i in range(place_d.size * size):
        cells[i] = 0.0
    for d in range(place_d.size):
        empty = bias_of_row(noise, level_d[d], level_e.size > 0)
        e, end = place_d[d], indptr[d + 1]
        while e < end and columns[e] < last:
            v = columns[e]
            level = level_d[d] if level_e.size == 0 else level_e[e]
            filled = fill_d[d] * fill_v[v] + empty
            cells[d * size + v - first] = entry_of_s(noise, reports[e], level, level_e.size > 0, filled)
            e += 1
        place_d[d] = e


@kernel
def multiply_by_entries(noise, entries, fill_d, fill_v, factor, product, of_rows):
    """``multiply`` entry by entry."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e = entries.level_d, entries.level_e
    for d in range(level_d.size):
        empty = bias_of_row(noise, level_d[d], level_e.size > 0)
        for e in range(indptr[d], indptr[d + 1]):
            v = np.int64(columns[e])
            level = level_d[d] if level_e.size == 0 else level_e[e]
            filled = fill_d[d] * fill_v[v] + empty
            value = entry_of_s(noise, reports[e], level, level_e.size > 0, filled)
            n, other = (d, v) if of_rows else (v, d)
            for k in range(product.shape[1]):
                product[n, k] += value * factor[other, k]


@kernel
def descend(factor_nk, gram_kk, target_nk, sweeps):
    """Replace each row x of a factor by one nearer to the minimum of x G x / 2 - t x over x >= 0.

    One entry at a time goes to its exact minimum, all of them ``sweeps`` times. G is gram_kk, t the target's row.
    """
    n_topics = gram_kk.shape[0]
    slope_k = np.empty(n_topics)
    for n in range(factor_nk.shape[0]):
        for k in range(n_topics):
            slope_k[k] = target_nk[n, k]
        for j in range(n_topics):
            x = factor_nk[n, j]
            if x != 0.0:
                for k in range(n_topics):
                    slope_k[k] -= x * gram_kk[j, k]
        for _ in range(sweeps):
            for j in range(n_topics):
                if gram_kk[j, j] > 0.0:
                    x = max(factor_nk[n, j] + slope_k[j] / gram_kk[j, j], 0.0)
                    step = x - factor_nk[n, j]
                    if step != 0.0:
                        factor_nk[n, j] = x
                        for k in range(n_topics):
                            slope_k[k] -= step * gram_kk[j, k]


@subroutine
def pulls(noise, report, level, own_level, hidden):
    """(T's positive part, its negative part beyond bias_d) of one stored entry; a masked one subtracts ``hidden``."""
    if report == MASKED:
        return 0.0, -hidden
    value = debiased(noise, report, level)
    return max(value, 0.0), max(-value, 0.0) + (bias(noise, level) if own_level else 0.0)


@kernel
def pull(noise, entries, theta_dk, phi_vk, up_nk, down_nk, of_rows):
    """Add the positive part of T times phi (T^T times theta, unless ``of_rows``) to up, and to down the negative part.

    Of the negative part only what lies beyond bias_d is added; for a masked cell, its rate and bias_d are subtracted.
    """
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e = entries.level_d, entries.level_e
    for d in range(level_d.size):
        empty = bias_of_row(noise, level_d[d], level_e.size > 0)
        for e in range(indptr[d], indptr[d + 1]):
            v = columns[e]
            level = level_d[d] if level_e.size == 0 else level_e[e]
            hidden = empty + inner(theta_dk, d, phi_vk, v) if reports[e] == MASKED else 0.0
            up, down = pulls(noise, reports[e], level, level_e.size > 0, hidden)
            n = d if of_rows else v
            for k in range(up_nk.shape[1]):
                other = phi_vk[v, k] if of_rows else theta_dk[d, k]
                up_nk[n, k] += up * other
                down_nk[n, k] += down * other
