"""What given factors say of a block of rows: rates, log-likelihoods of reports and their derivatives, expected tallies.

Suffixes as in ``entries``.
"""

import math
from typing import NamedTuple

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.entries import BATCH, MASKED, level_at, new_expectations
from countveil.kernels.general import add_to_tally
from countveil.kernels.gibbs import NONE, fill_rates, inner
from countveil.kernels.law import (
    expect_both,
    expect_counts,
    expected_ratio,
    law_at,
    report_score,
    seen_exposures,
    unseen_constant,
    unseen_exposure,
    unseen_score,
)
from countveil.kernels.random import SMALLEST
from countveil.kernels.tiles import is_dense, rows_of_rates
from countveil.kernels.tokens import Codes, fill_places, reset_places, set_places


def stored_rates(entries, theta_dk, phi_vk, rate_e):
    """rate_e = sum_k theta_dk phi_vk of each stored entry, in place; by matrix products if the block is dense."""
    if is_dense(entries, len(phi_vk)):
        rates_by_products(entries, theta_dk, np.ascontiguousarray(phi_vk.T), rows_of_rates(len(phi_vk)), rate_e)
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


@kernel
def expect_tally(law, entries, theta_dk, phi_vk, tally):
    """Add E[count | report] and E[parts | report] of each positive report to the tally."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    for d in range(theta_dk.shape[0]):
        for e in range(indptr[d], indptr[d + 1]):
            if reports[e] > 0:
                v, level = columns[e], level_at(entries.level_d, entries.level_e, d, e)
                rate = max(inner(theta_dk, d, phi_vk, v), SMALLEST)
                count, parts = expect_both(law_at(law, d, v), np.int64(reports[e]), rate, level)
                add_to_tally(law.likelihood, d, v, count, parts, tally)


NO_SLOPES = np.empty(0)


@kernel
def score_cells(law, row_i, column_i, report_i, rate_i, level_i, score_i):
    """score_i = log P(max(report_i, 0) | rate_i), in place."""
    for i in range(report_i.size):
        report, cell = np.int64(report_i[i]), law_at(law, row_i[i], column_i[i])
        if report > 0:
            score_i[i] = report_score(cell, report, rate_i[i], level_i[i])
        else:
            score_i[i] = unseen_score(cell, rate_i[i], level_i[i])


@kernel
def add_seen_scores(law, entries, theta_dk, phi_vk, score_d, score_v):
    """Add log P(report | rate) of each positive report to the scores of its row and of its column, in place."""
    for d in range(theta_dk.shape[0]):
        for e in range(entries.indptr[d], entries.indptr[d + 1]):
            report = np.int64(entries.reports[e])
            if report > 0:
                v = entries.columns[e]
                level = entries.level_d[d] if entries.level_e.size == 0 else entries.level_e[e]
                rate = max(inner(theta_dk, d, phi_vk, v), SMALLEST)
                score = report_score(law_at(law, d, v), report, rate, level)
                score_d[d] += score
                score_v[v] += score


def log_likelihood_rows(law, entries, theta_dk, phi_vk, phi_total_k, dense, slope_e=NO_SLOPES):
    """log P(max(reports, 0) | theta, phi) of a block of rows, with the counts summed out (mathematics, 2.2 and 2.6).

    slope_e, unless it is empty, is filled with each stored cell's derivative of that in its rate, which is 0 in masked
    cells. Where baselines vary by column, the sum over all cells of baseline times rate is left out. ``dense`` blocks
    compute rates as matrix products (see ``tiles``).
    """
    theta_dk, phi_vk = np.ascontiguousarray(theta_dk), np.ascontiguousarray(phi_vk)
    phi_kv, together = NONE, 0
    if dense:
        phi_kv, together = np.ascontiguousarray(phi_vk.T), rows_of_rates(len(phi_vk))
    return score_rows(law, entries, (theta_dk, phi_vk, phi_total_k), phi_kv, together, slope_e)


@kernel
def score_rows(law, entries, factors, phi_kv, together, slope_e):
    """``log_likelihood_rows``, with the rates of ``together`` rows computed at once, of none where that is zero."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e, exposure_d = entries.level_d, entries.level_e, entries.exposure_d
    weight_lv, place_d = entries.weight_lv, entries.place_d
    theta_dk, phi_vk, phi_total_k = factors
    n_rows, n_topics = theta_dk.shape
    n_columns = phi_vk.shape[0]
    batch, place_i = new_expectations(), np.empty(BATCH, dtype=np.int64)
    column_i, report_i, rate_i, level_i, _, _ = batch
    rates, first, total = np.empty(together * n_columns), np.int64(0), 0.0
    for d in range(n_rows):
        if together > 0 and d % together == 0:
            first = d
            fill_rates(theta_dk, first, min(first + together, n_rows), phi_kv, rates)
        base, row_total, n = exposure_d[d], 0.0, 0
        for k in range(n_topics):
            row_total += theta_dk[d, k] * phi_total_k[k]
        total -= base * row_total
        unstored = n_columns - (indptr[d + 1] - indptr[d])
        if unstored > 0:
            total += unstored * unseen_constant(law, level_d[d])
        for e in range(indptr[d], indptr[d + 1]):
            v, report = columns[e], np.int64(reports[e])
            level = level_d[d] if level_e.size == 0 else level_e[e]
            rate = rates[(d - first) * n_columns + v] if together > 0 else inner(theta_dk, d, phi_vk, v)
            total += (weight_lv[place_d[d], v] if place_d.size > 0 else base) * rate
            if report > 0:
                column_i[n], report_i[n], rate_i[n], level_i[n], place_i[n] = v, report, rate, level, e
                n += 1
            elif report != MASKED:
                total += unseen_score(law_at(law, d, v), rate, level)
            if report <= 0 and slope_e.size > 0:
                slope_e[e] = 0.0 if report == MASKED else -unseen_exposure(law_at(law, d, v), level)
            if n == BATCH or (n > 0 and e + 1 == indptr[d + 1]):
                total += score_batch(law, d, n, batch, place_i, slope_e)
                n = 0
    return total


@subroutine
def score_batch(law, row, n, batch, place_i, slope_e):
    """The sum of log P(report_i | rate_i); their derivatives go to their places in slope_e, unless it is empty."""
    column_i, _, rate_i, _, ratio_i, _ = batch
    total, seen_v = expect_counts(law, row, n, batch), seen_exposures(law, row)
    for i in range(n):
        exposure = seen_v[column_i[i]] if seen_v.size > 0 else 1.0
        total -= exposure * rate_i[i]
        if slope_e.size > 0:
            slope_e[place_i[i]] = ratio_i[i] - exposure
    return total


# The log-likelihood of reports, where most cells have one of a few reports: a table of each by the rate.
#
# log P(report | rate) of a report is a smooth function of log rate, and its derivative is E[parts | report] - rate
# (mathematics, equations 2.8 and 13.5). It is tabled on a grid, and interpolated in between by cubics with these values
# and slopes (Hermite). All cells are passed over, but those with these reports need no sums over counts.
#
# Suffixes are shapes, as in ``gibbs``; c is the number of a code among those that are proposed (see
# ``kernels.tokens``), g a place on the grid.

FIRST, LAST, STEP = math.log(1e-6), math.log(1e5), 0.01  # of log rates: scores err by below 1e-8


class Scores(NamedTuple):
    """log P(report | rate) of the codes that are proposed, on a grid of log rates, and its derivative."""

    codes: Codes
    score_cg: np.ndarray
    slope_cg: np.ndarray


@kernel
def fill_scores(law, code_c, score_cg, slope_cg):
    """Fill the table, in place."""
    cell = law_at(law, 0, 0)
    for c in range(code_c.size):
        for g in range(score_cg.shape[1]):
            rate = math.exp(FIRST + g * STEP)
            score_cg[c, g] = report_score(cell, code_c[c], rate, 1.0)
            slope_cg[c, g] = (expected_ratio(cell, code_c[c], rate, 1.0) - 1.0) * rate


@subroutine
def tabled_score(law, scores, c, rate):
    """log P(report | rate) by the table; by the sum over counts beyond its end, and linear in the rate before it."""
    x = (math.log(max(rate, 1e-300)) - FIRST) / STEP
    if x <= 0.0:
        first = math.exp(FIRST)
        return scores.score_cg[c, 0] + scores.slope_cg[c, 0] * (rate / first - 1.0)
    g = np.int64(x)
    if g + 1 >= scores.score_cg.shape[1]:
        return report_score(law_at(law, 0, 0), scores.codes.code_c[c], rate, 1.0)
    t = x - g
    left, right = (1.0 - t) * (1.0 - t), t * t
    value = left * (1.0 + 2.0 * t) * scores.score_cg[c, g] + right * (3.0 - 2.0 * t) * scores.score_cg[c, g + 1]
    slope = left * t * scores.slope_cg[c, g] - right * (1.0 - t) * scores.slope_cg[c, g + 1]
    return value + STEP * slope


@kernel
def score_rows_by_tables(law, entries, theta_dk, phi_vk, scores, unstored_d):
    """log P(reports | theta, phi) of a block of rows, masked cells left out."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    n_columns, total = phi_vk.shape[0], 0.0
    place_v, unstored_v = np.empty(n_columns, dtype=np.int32), np.empty(n_columns, dtype=np.int32)
    visits = np.empty(n_columns + 1, dtype=np.uint32), np.empty(n_columns + 1, dtype=np.int64)
    unstored = np.int64(-1)
    for d in range(theta_dk.shape[0]):
        if unstored_d[d] != unstored:
            unstored = np.int64(unstored_d[d])
            fill_places(scores.codes, unstored, unstored_v)
            place_v[:] = unstored_v
        set_places(entries, d, 0, place_v, visits)
        row = 0.0
        for v in range(n_columns):
            if place_v[v] > 0:
                row += tabled_score(law, scores, place_v[v] - 1, inner(theta_dk, d, phi_vk, v))
        for e in range(indptr[d], indptr[d + 1]):
            report = np.int64(reports[e])
            rate = inner(theta_dk, d, phi_vk, columns[e])
            if report > 0:
                row += report_score(law_at(law, d, columns[e]), report, rate, 1.0)
            elif report == 0:
                row += unseen_score(law_at(law, d, columns[e]), rate, 1.0)
        total += row
        reset_places(entries, d, unstored_v, place_v)
    return total
