"""The debiased reports of a block of rows as a matrix to multiply with: never held, made entry by entry.

T_dv = S_dv - bias_d, S_dv = (1 + alpha) max(r, 0) on stored entries and 0 elsewhere; where alpha is an entry's own,
S takes its alpha / (1 - alpha) away as well. A masked cell has fill_d fill_v + bias_d. Suffixes as in ``gibbs``.
"""

from numba import njit

from countveil.kernels.entries import MASKED, level_at


@njit(cache=True, nogil=True)
def debiased_report(report, alpha, own_alpha, filled):
    """S of one stored entry."""
    if report == MASKED:
        return filled
    bias = alpha / (1.0 - alpha) if own_alpha else 0.0
    return (1.0 + alpha) * max(report, 0) - bias


@njit(cache=True, nogil=True)
def sum_rows(entries, bias_d, row_2d, column_2v):
    """Add S, with bias_d in masked cells, to row_2d[0] and column_2v[0]; count these cells in the second rows."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e = entries.level_d, entries.level_e
    for d in range(level_d.size):
        for e in range(indptr[d], indptr[d + 1]):
            v = columns[e]
            alpha = level_at(level_d, level_e, d, e)
            value = debiased_report(reports[e], alpha, level_e.size > 0, bias_d[d])
            row_2d[0, d] += value
            column_2v[0, v] += value
            if reports[e] == MASKED:
                row_2d[1, d] += 1.0
                column_2v[1, v] += 1.0


@njit(cache=True, nogil=True)
def multiply_rows(entries, bias_d, fill_d, fill_v, phi_vk, product_dk):
    """product_dk += S phi_vk."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e = entries.level_d, entries.level_e
    for d in range(level_d.size):
        for e in range(indptr[d], indptr[d + 1]):
            v = columns[e]
            alpha = level_at(level_d, level_e, d, e)
            filled = fill_d[d] * fill_v[v] + bias_d[d]
            value = debiased_report(reports[e], alpha, level_e.size > 0, filled)
            for k in range(phi_vk.shape[1]):
                product_dk[d, k] += value * phi_vk[v, k]


@njit(cache=True, nogil=True)
def multiply_columns(entries, bias_d, fill_d, fill_v, theta_dk, product_vk):
    """product_vk += S^T theta_dk."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e = entries.level_d, entries.level_e
    for d in range(level_d.size):
        for e in range(indptr[d], indptr[d + 1]):
            v = columns[e]
            alpha = level_at(level_d, level_e, d, e)
            filled = fill_d[d] * fill_v[v] + bias_d[d]
            value = debiased_report(reports[e], alpha, level_e.size > 0, filled)
            for k in range(theta_dk.shape[1]):
                product_vk[v, k] += value * theta_dk[d, k]
