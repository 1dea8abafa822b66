"""One coordinate-ascent pass over a block of rows of mu_dv = sum_k theta_dk phi_vk, counts summed out exactly.

Every factor entry has two numbers: its geometric mean g = exp E log (the counts are split in proportion to
products of these) and its mean m (exposures are sums of these). With g = m the pass is expectation
maximisation on the marginal likelihood. Suffixes are shapes, as in ``gibbs``.
"""

import math

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.entries import BATCH, level_at, new_expectations
from countveil.kernels.gibbs import inner
from countveil.kernels.law import expect_counts, expected_ratio, law_at, unseen_constant
from countveil.kernels.random import SMALLEST, digamma
from countveil.kernels.tiles import (
    COLUMNS_PER_TILE,
    add_exposures,
    add_to_columns,
    add_to_rows,
    fill_excesses,
    new_space,
)


@kernel
def settle_rows(
    law,
    entries,
    theta_g_dk,
    theta_m_dk,
    phi_g_vk,
    phi_m_vk,
    phi_total_k,
    shape_dk,
    rate_dk,
    geometric,
    tolerance,
    most,
    cut,
):
    """Iterate theta's update with phi fixed, each row until its means move by less than ``tolerance`` of their sum.

    It stops after ``most`` iterations at the latest. theta_g_dk is replaced by the geometric means (or, if not
    ``geometric``, by the arithmetic ones without a share ``cut`` of the prior's shape), theta_m_dk by the arithmetic
    means. Exposures do not depend on theta, so they are summed once per row.
    """
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e, exposure_d = entries.level_d, entries.level_e, entries.exposure_d
    n_rows, n_topics = theta_g_dk.shape
    ratio_k = np.empty(n_topics)
    new_rate_k, excess_i = np.empty(n_topics), np.empty(len(phi_m_vk))
    for d in range(n_rows):
        base = exposure_d[d]
        for k in range(n_topics):
            new_rate_k[k] = rate_dk[d, k] + base * phi_total_k[k]
        fill_excesses(law, entries, d, indptr[d], indptr[d + 1], excess_i)
        for e in range(indptr[d], indptr[d + 1]):
            v, exposure = np.int64(columns[e]), excess_i[e - indptr[d]]
            for k in range(n_topics):
                new_rate_k[k] += exposure * phi_m_vk[v, k]
        for _ in range(most):
            ratio_k[:] = 0.0
            for e in range(indptr[d], indptr[d + 1]):
                if reports[e] > 0:
                    level = level_at(level_d, level_e, d, e)
                    v = np.int64(columns[e])
                    ratio = expected_ratio(
                        law_at(law, d, v), np.int64(reports[e]), inner(theta_g_dk, d, phi_g_vk, v), level
                    )
                    for k in range(n_topics):
                        ratio_k[k] += ratio * phi_g_vk[v, k]
            moved = total = 0.0
            for k in range(n_topics):
                new_shape = shape_dk[d, k] + theta_g_dk[d, k] * ratio_k[k]
                mean = new_shape / new_rate_k[k]
                moved += abs(mean - theta_m_dk[d, k])
                total += mean
                theta_m_dk[d, k] = mean
                g = math.exp(digamma(new_shape)) if geometric else new_shape - cut * shape_dk[d, k]
                g /= new_rate_k[k]
                theta_g_dk[d, k] = max(g, SMALLEST)
            if moved < tolerance * total:
                break


def update_rows(law, entries, theta_g_dk, theta_m_dk, phi_g_vk, phi_m_vk, phi_total_k, shape_dk, rate_dk, sums, dense):
    """Replace theta's shapes and rates by their optimum, row by row; add up what phi's need.

        shape_dk + g_dk sum_v R_dv g_vk,   rate_dk + sum_v e_dv m_vk,   R = E[y | r, mu~] / mu~

    with shape_dk and rate_dk the prior's, mu~_dv = sum_k g_dk g_vk; ``dense`` blocks use matrix products. On return
    theta_g_dk holds the shapes and theta_m_dk the rates. sums is (ratio_vk, exposure_vk, total_2k): sum_d R_dv g_dk;
    sum over stored entries of their excess exposure times the new mean; (sum_d exposure_d m_dk, sum_d m_dk) of the new
    means. Returns the data's part of the evidence lower bound at the old factors.
    """
    ratio_vk, exposure_vk, total_2k = sums
    ratio_dk, exposure_dk, mean_dk = (np.zeros(theta_g_dk.shape) for _ in range(3))
    bound = expect_rows(law, entries, theta_g_dk, phi_g_vk, ratio_dk, ratio_vk, dense)
    add_exposures(law, entries, phi_m_vk, exposure_dk, dense, True)
    bound = update_theta(
        bound, entries.exposure_d, theta_g_dk, theta_m_dk, phi_total_k, np.ascontiguousarray(shape_dk),
        np.ascontiguousarray(rate_dk), ratio_dk, exposure_dk, mean_dk, total_2k,
    )  # fmt: skip
    add_exposures(law, entries, mean_dk, exposure_vk, dense, False)
    return bound


@kernel
def update_theta(
    bound, exposure_d, theta_g_dk, theta_m_dk, phi_total_k, shape_dk, rate_dk, ratio_dk, exposure_dk, mean_dk, total_2k
):
    """The part of ``update_rows`` that needs no entries: exposure_dk comes without the rows' baselines."""
    n_rows, n_topics = theta_g_dk.shape
    for d in range(n_rows):
        base = exposure_d[d]
        for k in range(n_topics):
            exposure = exposure_dk[d, k] + base * phi_total_k[k]
            bound -= theta_m_dk[d, k] * exposure
            new_shape = shape_dk[d, k] + theta_g_dk[d, k] * ratio_dk[d, k]
            new_rate = max(rate_dk[d, k] + exposure, SMALLEST)
            mean = new_shape / new_rate
            theta_g_dk[d, k] = new_shape
            theta_m_dk[d, k] = new_rate
            mean_dk[d, k] = mean
            total_2k[0, k] += base * mean
            total_2k[1, k] += mean
    return bound


def expect_rows(law, entries, theta_g_dk, phi_g_vk, ratio_dk, ratio_vk, dense):
    """ratio_dk += sum_v R_dv g_vk and ratio_vk += sum_d R_dv g_dk; returns the reports' part of the bound.

    The data's part of the bound is this less the sum of exposures times mean rates.
    """
    bound = unseen_constants(law, entries, len(phi_g_vk))
    if dense:
        space = (*new_space(entries, phi_g_vk.shape[1]), np.empty(len(theta_g_dk) * COLUMNS_PER_TILE))
        return bound + expect_tiles(law, entries, theta_g_dk, phi_g_vk, ratio_dk, ratio_vk, space)
    return bound + expect_entries(law, entries, theta_g_dk, phi_g_vk, ratio_dk, ratio_vk)


@kernel
def unseen_constants(law, entries, n_columns):
    """What cells without a positive report add to the bound whatever their rates."""
    indptr, reports, level_d, level_e = entries.indptr, entries.reports, entries.level_d, entries.level_e
    bound = 0.0
    for d in range(level_d.size):
        bound += (n_columns - (indptr[d + 1] - indptr[d])) * unseen_constant(law, level_d[d])
        for e in range(indptr[d], indptr[d + 1]):
            if reports[e] == 0:
                bound += unseen_constant(law, level_at(level_d, level_e, d, e))
    return bound


@kernel
def expect_entries(law, entries, theta_g_dk, phi_g_vk, ratio_dk, ratio_vk):
    """``expect_rows`` entry by entry, without what reports that are not positive add to the bound."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e = entries.level_d, entries.level_e
    batch = new_expectations()
    column_i, report_i, rate_i, level_i, ratio_i, _ = batch
    bound = 0.0
    for d in range(theta_g_dk.shape[0]):
        n = 0
        for e in range(indptr[d], indptr[d + 1]):
            if reports[e] > 0:
                column_i[n] = columns[e]
                report_i[n] = reports[e]
                level_i[n] = level_d[d] if level_e.size == 0 else level_e[e]
                rate_i[n] = inner(theta_g_dk, d, phi_g_vk, columns[e])
                n += 1
            if n == BATCH or (n > 0 and e + 1 == indptr[d + 1]):
                bound += expect_counts(law, d, n, batch)
                for i in range(n):
                    add_ratio(ratio_i[i], d, column_i[i], theta_g_dk, phi_g_vk, ratio_dk, ratio_vk)
                n = 0
    return bound


@subroutine
def add_ratio(ratio, d, v, theta_g_dk, phi_g_vk, ratio_dk, ratio_vk):
    """One cell's part of both sums."""
    for k in range(ratio_dk.shape[1]):
        ratio_dk[d, k] += ratio * phi_g_vk[v, k]
        ratio_vk[v, k] += ratio * theta_g_dk[d, k]


@kernel
def expect_tiles(law, entries, theta_g_dk, phi_g_vk, ratio_dk, ratio_vk, space):
    """``expect_entries`` by matrix products over all cells of a tile."""
    place_d, ratios, products, rates = space
    n_columns, batch = phi_g_vk.shape[0], new_expectations()
    bound = 0.0
    for first in range(0, n_columns, COLUMNS_PER_TILE):
        last = min(first + COLUMNS_PER_TILE, n_columns)
        fill_tile_of_rates(theta_g_dk, phi_g_vk, first, last, rates)
        bound += fill_ratios(law, entries, place_d, first, last, batch, rates, ratios)
        add_to_rows(ratios, first, last, phi_g_vk, products, ratio_dk)
        add_to_columns(ratios, first, last, theta_g_dk, products, ratio_vk)
    return bound


@subroutine
def fill_tile_of_rates(theta_dk, phi_vk, first, last, rates):
    """Fill a tile with the rates of all rows in columns first to last."""
    n_rows = theta_dk.shape[0]
    rates_dv = rates[: n_rows * (last - first)].reshape(n_rows, last - first)
    np.dot(theta_dk, phi_vk[first:last].T, rates_dv)


@subroutine
def fill_ratios(law, entries, place_d, first, last, batch, rates, ratios):
    """Fill a tile with R at positive reports of columns first to last, 0 elsewhere; returns their part of the bound.

    place_d, each row's next entry, is advanced.
    """
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e = entries.level_d, entries.level_e
    column_i, report_i, rate_i, level_i, ratio_i, _ = batch
    bound, size = 0.0, last - first
    for i in range(place_d.size * size):
        ratios[i] = 0.0
    for d in range(place_d.size):
        n = 0
        e, end = place_d[d], indptr[d + 1]
        while e < end and columns[e] < last:
            if reports[e] > 0:
                column_i[n] = columns[e]
                report_i[n] = reports[e]
                level_i[n] = level_d[d] if level_e.size == 0 else level_e[e]
                rate_i[n] = rates[d * size + columns[e] - first]
                n += 1
            e += 1
            if n == BATCH or (n > 0 and (e == end or columns[e] >= last)):
                bound += expect_counts(law, d, n, batch)
                for i in range(n):
                    ratios[d * size + column_i[i] - first] = ratio_i[i]
                n = 0
        place_d[d] = e
    return bound
