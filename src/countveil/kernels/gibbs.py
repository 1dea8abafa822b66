"""One collapsed Gibbs sweep over a block of rows of mu_dv = sum_k theta_dk phi_vk, and its column counterpart.

Suffixes are shapes: d rows of the block, v columns, k components, e stored entries (see ``entries``).
"""

import numpy as np
from numba import njit

from countveil.kernels.batches import BATCH, new_batch
from countveil.kernels.entries import MASKED, level_at
from countveil.kernels.gamma import sample_gamma
from countveil.kernels.law import draw_counts, report_score, unseen_constant, unseen_score
from countveil.kernels.tiles import add_column_exposures, add_row_exposures, rows_of_rates
from countveil.kernels.topics import give_to_topics, new_order, new_tokens, order_topics
from countveil.kernels.uniforms import new_source


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
def visit_rows(law, first, last, entries, factors, topics_kv, sums, update, space, source, rng):
    """Draw the true counts and their topics of the stored entries of rows first to last, each row's theta after them.

    factors is (theta_dk, phi_vk, phi_total_k, rates_dv): rates_dv has those of the rows, or is empty, and they are
    computed one by one. topics_kv is phi as the topics are looked up. sums is (count_dk, count_kv, tally), added to.
    update is (shape_dk, rate_dk, exposure_dk, theta_total_2k), or has no shapes, and theta stays. Rows are visited in
    here, since unpacking arrays costs what a dozen entries do.
    """
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e, exposure_d = entries.level_d, entries.level_e, entries.exposure_d
    theta_dk, phi_vk, phi_total_k, rates_dv = factors
    count_dk, count_kv, tally = sums
    shape_dk, rate_dk, exposure_dk, theta_total_2k = update
    batch, tokens, order = space
    column_i, report_i, rate_i, level_i, count_i, _ = batch
    order_j, theta_j, place_h = order
    for d in range(first, last):
        order_topics(theta_dk, d, phi_total_k, order_j, theta_j, place_h)
        n = 0
        for e in range(indptr[d], indptr[d + 1]):
            report = np.int64(reports[e])
            if report > 0:
                v = columns[e]
                column_i[n] = v
                report_i[n] = report
                count_i[n] = report
                level_i[n] = level_d[d] if level_e.size == 0 else level_e[e]
                rate_i[n] = inner(theta_dk, d, phi_vk, v) if rates_dv.size == 0 else rates_dv[d - first, v]
                n += 1
            if n == BATCH or (n > 0 and e + 1 == indptr[d + 1]):
                draw_counts(law, n, batch, tally, source, rng)
                give_to_topics(n, batch, tokens, order, topics_kv, count_dk[d], count_kv, source, rng)
                n = 0
        base = exposure_d[d]
        for k in range(shape_dk.shape[1]):
            exposure = max(exposure_dk[d, k] + base * phi_total_k[k], 0.0)
            draw = sample_gamma(shape_dk[d, k] + count_dk[d, k], rate_dk[d, k] + exposure, rng)
            theta_dk[d, k] = draw
            theta_total_2k[0, k] += base * draw
            theta_total_2k[1, k] += draw


@njit(cache=True, nogil=True)
def sweep_rows(law, entries, theta_dk, phi_vk, phi_total_k, shape_dk, rate_dk, sums, dense, rng):
    """Draw the true counts and their topics of every stored entry, then theta_d, row by row.

    ``law`` is that of the reports (see ``law``); theta's prior is Gamma(shape_dk, rate_dk); ``dense`` entries go by
    matrix products (see ``tiles``). theta_dk is replaced in place. Added up in sums, for the column factors: count_vk =
    sum_d y_dvk; exposure_vk = sum over stored entries of (their exposure - exposure_d) theta_dk; theta_total_2k =
    (sum_d exposure_d theta_dk, sum_d theta_dk); the likelihood's tally.
    """
    count_vk, exposure_vk, theta_total_2k, tally = sums
    n_rows, n_topics = theta_dk.shape
    n_columns = phi_vk.shape[0]
    source, space = new_source(rng), (new_batch(), new_tokens(), new_order(n_topics))
    count_dk, exposure_dk = np.zeros((n_rows, n_topics)), np.zeros((n_rows, n_topics))
    add_row_exposures(law, entries, phi_vk, exposure_dk, dense)
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
        factors, counts = (theta_dk, phi_vk, phi_total_k, rates_dv), (count_dk, count_kv, tally)
        visit_rows(law, first, last, entries, factors, topics_kv, counts, update, space, source, rng)
    if dense:
        count_vk += count_kv.T
    add_column_exposures(law, entries, theta_dk, exposure_vk, dense)


@njit(cache=True, nogil=True)
def allocate_rows(law, entries, theta_dk, phi_vk, phi_total_k, sums, rng):
    """Draw the true counts and their topics of every stored entry; sums is (count_dk, count_vk, tally), added to."""
    count_dk, count_vk, tally = sums
    n_rows, n_topics = theta_dk.shape
    source, space = new_source(rng), (new_batch(), new_tokens(), new_order(n_topics))
    none = np.empty((0, 0))
    factors, update = (theta_dk, phi_vk, phi_total_k, none), (none, none, none, none)
    visit_rows(
        law, 0, n_rows, entries, factors, phi_vk.T, (count_dk, count_vk.T, tally), update, space, source, rng
    )


@njit(cache=True, nogil=True)
def log_likelihood_rows(law, entries, theta_dk, phi_vk, phi_total_k):
    """log P(max(reports, 0) | theta, phi) of a block of rows, the counts summed out (mathematics, 2.2 and 2.5)."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e, exposure_d = entries.level_d, entries.level_e, entries.exposure_d
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
            total += unstored * unseen_constant(law, level_d[d])
        for e in range(indptr[d], indptr[d + 1]):
            v = columns[e]
            rate = inner(theta_dk, d, phi_vk, v)
            level = level_at(level_d, level_e, d, e)
            report = reports[e]
            total += base * rate
            if report > 0:
                total += report_score(law, report, rate, level)
            elif report != MASKED:
                total += unseen_score(law, rate, level)
    return total
