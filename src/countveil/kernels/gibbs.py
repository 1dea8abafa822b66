"""One collapsed Gibbs sweep over a block of rows of mu_dv = sum_k theta_dk phi_vk, and its column counterpart.

Suffixes are shapes: d rows of the block, v columns, k topics, e stored entries. A stored entry is a cell that
differs from its row's baseline: a positive report, or a cell whose exposure is its own (masked, or with its
own alpha). Every other cell is a non-positive report with exposure ``exposure_d``.
"""

import numpy as np
from numba import njit

from countveil.kernels.batches import BATCH, draw_counts, new_batch
from countveil.kernels.laws import censored_logpmf, report_logpmf
from countveil.kernels.tiles import MASKED, add_column_exposures, add_row_exposures, rows_of_rates
from countveil.kernels.topics import give_to_topics, new_order, new_tokens, order_topics
from countveil.kernels.uniforms import new_source

SMALLEST = 1e-150


@njit(cache=True, nogil=True)
def inner(theta_dk, d, phi_vk, v):
    """sum_k theta_dk phi_vk, in four interleaved parts and an order that no compiler flag may change."""
    n_topics = theta_dk.shape[1]
    s0 = s1 = s2 = s3 = 0.0
    quads = n_topics // 4
    for i in range(quads):
        k = 4 * i
        s0 += theta_dk[d, k] * phi_vk[v, k]
        s1 += theta_dk[d, k + 1] * phi_vk[v, k + 1]
        s2 += theta_dk[d, k + 2] * phi_vk[v, k + 2]
        s3 += theta_dk[d, k + 3] * phi_vk[v, k + 3]
    for k in range(4 * quads, n_topics):
        s0 += theta_dk[d, k] * phi_vk[v, k]
    return (s0 + s1) + (s2 + s3)


@njit(cache=True, nogil=True)
def sample_gamma(shape, rate, rng):
    """Gamma(shape, rate), kept away from underflow so that a product of two draws stays positive."""
    return max(rng.standard_gamma(shape) / rate, SMALLEST)


@njit(cache=True, nogil=True)
def visit_rows(first, last, block, factors, topics_kv, sums, update, space, source, rng):
    """Draw the true counts and their topics of the stored entries of rows first to last, each row's theta after them.

    factors is (theta_dk, phi_vk, phi_total_k, rates_dv): rates_dv has those of the rows, or is empty, and they are
    computed one by one. topics_kv is phi as the topics are looked up. sums is (count_dk, count_kv), added to. update is
    (shape_dk, rate_dk, exposure_dk, theta_total_2k), or has no shapes, and theta stays. Rows are visited in here, since
    unpacking arrays costs what a dozen entries do.
    """
    indptr, columns, reports, alpha_e, alpha_d, exposure_d = block
    theta_dk, phi_vk, phi_total_k, rates_dv = factors
    count_dk, count_kv = sums
    shape_dk, rate_dk, exposure_dk, theta_total_2k = update
    batch, tokens, order = space
    column_i, report_i, rate_i, alpha_i, count_i, _ = batch
    order_j, theta_j, place_h = order
    for d in range(first, last):
        order_topics(theta_dk, d, phi_total_k, order_j, theta_j, place_h)
        n, noisy = 0, False
        for e in range(indptr[d], indptr[d + 1]):
            report = np.int64(reports[e])
            if report > 0:
                v = columns[e]
                column_i[n] = v
                report_i[n] = report
                count_i[n] = report
                alpha_i[n] = alpha_d[d] if alpha_e.size == 0 else alpha_e[e]
                noisy |= alpha_i[n] > 0.0
                rate_i[n] = inner(theta_dk, d, phi_vk, v) if rates_dv.size == 0 else rates_dv[d - first, v]
                n += 1
            if n == BATCH or (n > 0 and e + 1 == indptr[d + 1]):
                if noisy:
                    draw_counts(n, batch, source, rng)
                give_to_topics(n, batch, tokens, order, topics_kv, count_dk[d], count_kv, source, rng)
                n, noisy = 0, False
        base = exposure_d[d]
        for k in range(shape_dk.shape[1]):
            exposure = max(exposure_dk[d, k] + base * phi_total_k[k], 0.0)
            draw = sample_gamma(shape_dk[d, k] + count_dk[d, k], rate_dk[d, k] + exposure, rng)
            theta_dk[d, k] = draw
            theta_total_2k[0, k] += base * draw
            theta_total_2k[1, k] += draw


@njit(cache=True, nogil=True)
def sweep_rows(
    block, theta_dk, phi_vk, phi_total_k, shape_dk, rate_dk, count_vk, exposure_vk, theta_total_2k, dense, rng
):
    """Draw the true counts and their topics of every stored entry, then theta_d, row by row.

    block is (indptr, columns, reports, alpha_e, alpha_d, exposure_d); theta's prior is Gamma(shape_dk, rate_dk);
    ``dense`` blocks go by matrix products (see ``tiles``). theta_dk is replaced in place. Added up for the column
    factors: count_vk = sum_d y_dvk, exposure_vk = sum over stored entries of (their exposure - exposure_d) theta_dk,
    theta_total_2k = (sum_d exposure_d theta_dk, sum_d theta_dk).
    """
    n_rows, n_topics = theta_dk.shape
    n_columns = phi_vk.shape[0]
    source, space = new_source(rng), (new_batch(), new_tokens(), new_order(n_topics))
    count_dk, exposure_dk = np.zeros((n_rows, n_topics)), np.zeros((n_rows, n_topics))
    add_row_exposures(block, phi_vk, exposure_dk, dense)
    update = shape_dk, rate_dk, exposure_dk, theta_total_2k
    together = min(n_rows, rows_of_rates(n_columns)) if dense else n_rows
    rates = np.empty(together * n_columns if dense else 0)
    turned_kv = np.ascontiguousarray(phi_vk.T) if dense else np.empty((0, 0))
    topics_kv = turned_kv if dense else phi_vk.T
    count_kv = np.zeros((n_topics, n_columns)) if dense else count_vk.T
    for first in range(0, n_rows, together):  # one call: a second, of other types, would compile for seconds
        last = min(first + together, n_rows)
        rates_dv = np.empty((0, 0))
        if dense:
            rates_dv = rates[: (last - first) * n_columns].reshape(last - first, n_columns)
            np.dot(theta_dk[first:last], turned_kv, rates_dv)
        factors, sums = (theta_dk, phi_vk, phi_total_k, rates_dv), (count_dk, count_kv)
        visit_rows(first, last, block, factors, topics_kv, sums, update, space, source, rng)
    if dense:
        count_vk += count_kv.T
    add_column_exposures(block, theta_dk, exposure_vk, dense)


@njit(cache=True, nogil=True)
def allocate_rows(block, theta_dk, phi_vk, phi_total_k, count_dk, count_vk, rng):
    """Draw the true counts and their topics of every stored entry, and add them up by row and by column."""
    n_rows, n_topics = theta_dk.shape
    source, space = new_source(rng), (new_batch(), new_tokens(), new_order(n_topics))
    none = np.empty((0, 0))
    factors, update = (theta_dk, phi_vk, phi_total_k, none), (none, none, none, none)
    visit_rows(0, n_rows, block, factors, phi_vk.T, (count_dk, count_vk.T), update, space, source, rng)


@njit(cache=True, nogil=True)
def log_likelihood_rows(block, theta_dk, phi_vk, phi_total_k):
    """log P(max(reports, 0) | theta, phi) of a block of rows, the counts summed out (mathematics, 2.2 and 2.5)."""
    indptr, columns, reports, alpha_e, alpha_d, exposure_d = block
    n_rows, n_topics = theta_dk.shape
    n_columns = phi_vk.shape[0]
    total = 0.0
    for d in range(n_rows):
        base = exposure_d[d]
        row_total = 0.0
        for k in range(n_topics):
            row_total += theta_dk[d, k] * phi_total_k[k]
        unstored = n_columns - (indptr[d + 1] - indptr[d])
        total -= base * row_total
        if unstored > 0:
            total -= unstored * np.log1p(alpha_d[d])
        for e in range(indptr[d], indptr[d + 1]):
            v = columns[e]
            rate = inner(theta_dk, d, phi_vk, v)
            alpha = alpha_d[d] if alpha_e.size == 0 else alpha_e[e]
            report = reports[e]
            total += base * rate
            if report > 0:
                total += report_logpmf(report, rate, alpha)
            elif report != MASKED:
                total += censored_logpmf(rate, alpha)
    return total
