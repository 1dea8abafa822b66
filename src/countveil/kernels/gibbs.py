"""One collapsed Gibbs sweep over a block of rows of mu_dv = sum_k theta_dk phi_vk, and its column counterpart.

Suffixes are shapes: d rows of the block, v columns, k components, e stored entries (see ``entries``).
"""

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.entries import BATCH, new_batch
from countveil.kernels.law import draw_counts
from countveil.kernels.random import new_source, sample_gamma
from countveil.kernels.tiles import add_exposures, rows_of_rates
from countveil.kernels.topics import give_to_topics, new_order, new_tokens, order_topics

NONE = np.empty((0, 0))


@subroutine
def inner(theta_dk, d, phi_vk, v):
    """sum_k theta_dk phi_vk, in four interleaved parts, so that the order is the code's and not the compiler's."""
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


def sweep_rows(law, entries, theta_dk, phi_vk, phi_total_k, shape_dk, rate_dk, sums, dense, rng):
    """Draw true counts and topics of every stored entry, then theta_d, row by row.

    ``law`` is that of the reports (see ``kernels.law``); theta's prior is Gamma(shape_dk, rate_dk); ``dense`` blocks
    use matrix products (see ``tiles``). theta_dk is replaced in place. Added up in sums, for the column factors:
    count_vk = sum_d y_dvk; exposure_vk = sum over stored entries of (their exposure - exposure_d) theta_dk;
    theta_total_2k = (sum_d exposure_d theta_dk, sum_d theta_dk); the likelihood's tally. Returns count_dk.
    """
    count_vk, exposure_vk, theta_total_2k, tally = sums
    shape_dk, rate_dk = (np.require(each, requirements=["C", "W"]) for each in (shape_dk, rate_dk))
    count_dk, exposure_dk = np.zeros(theta_dk.shape), np.zeros(theta_dk.shape)
    add_exposures(law, entries, phi_vk, exposure_dk, dense, True)
    turned, together = (NONE, NONE), 0
    if dense:
        turned = np.ascontiguousarray(phi_vk.T), np.zeros(phi_vk.T.shape)
        together = rows_of_rates(len(phi_vk))
    visit_rows(
        law, entries, (theta_dk, phi_vk, phi_total_k), (count_dk, count_vk, tally), turned, together,
        (shape_dk, rate_dk, exposure_dk, theta_total_2k), rng,
    )  # fmt: skip
    if dense:
        count_vk += turned[1].T
    add_exposures(law, entries, theta_dk, exposure_vk, dense, False)
    return count_dk


def allocate_rows(law, entries, theta_dk, phi_vk, phi_total_k, sums, rng):
    """Draw true counts and topics of every stored entry; sums is (count_dk, count_vk, tally), added to."""
    none = NONE, NONE, NONE, NONE
    visit_rows(law, entries, (theta_dk, phi_vk, phi_total_k), sums, (NONE, NONE), 0, none, rng)


@kernel
def visit_rows(law, entries, factors, sums, turned, together, update, rng):
    """Draw true counts and topics of all stored entries, row by row; after each row's entries its theta.

    factors is (theta_dk, phi_vk, phi_total_k). sums is (count_dk, count_vk, tally), added to. Where ``together`` is
    positive, the rates of that many rows are computed at once as a matrix product with phi_kv of turned = (phi_kv,
    count_kv); phi is then read from phi_kv, and counts are added to count_kv instead of count_vk. update is (shape_dk,
    rate_dk, exposure_dk, theta_total_2k); if shape_dk is empty, theta is not drawn.
    """
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e, exposure_d = entries.level_d, entries.level_e, entries.exposure_d
    theta_dk, phi_vk, phi_total_k = factors
    count_dk, count_vk, tally = sums
    shape_dk, rate_dk, exposure_dk, theta_total_2k = update
    n_rows, n_topics = theta_dk.shape
    n_columns = phi_vk.shape[0]
    phi_kv = turned[0] if together > 0 else phi_vk.T
    count_kv = turned[1] if together > 0 else count_vk.T
    source, batch, tokens, order = new_source(rng), new_batch(), new_tokens(), new_order(n_topics)
    column_i, report_i, rate_i, level_i, count_i, _ = batch
    order_j, theta_j, place_h = order
    rates, first = np.empty(together * n_columns), np.int64(0)
    for d in range(n_rows):
        if together > 0 and d % together == 0:
            first = d
            fill_rates(theta_dk, first, min(first + together, n_rows), turned[0], rates)
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
                if together > 0:
                    rate_i[n] = rates[(d - first) * n_columns + v]
                else:
                    rate_i[n] = inner(theta_dk, d, phi_vk, v)
                n += 1
            if n == BATCH or (n > 0 and e + 1 == indptr[d + 1]):
                draw_counts(law, d, n, batch, tally, source, rng)
                give_to_topics(n, batch, tokens, order, phi_kv, count_dk[d], count_kv, source, rng)
                n = 0
        base = exposure_d[d]
        for k in range(shape_dk.shape[1]):
            exposure = max(exposure_dk[d, k] + base * phi_total_k[k], 0.0)
            draw = sample_gamma(shape_dk[d, k] + count_dk[d, k], rate_dk[d, k] + exposure, rng)
            theta_dk[d, k] = draw
            theta_total_2k[0, k] += base * draw
            theta_total_2k[1, k] += draw


@subroutine
def fill_rates(theta_dk, first, last, phi_kv, rates):
    """Fill ``rates`` with the rates of rows first to last, (last - first, V) flattened."""
    n_columns = phi_kv.shape[1]
    rates_dv = rates[: (last - first) * n_columns].reshape(last - first, n_columns)
    np.dot(theta_dk[first:last], phi_kv, rates_dv)
