"""One augmented Gibbs sweep over a block of rows, the papers' way: noise as two Poisson counts with random rates.

A report is r = y + g_1 - g_2 with g_l ~ Poisson(lambda_l), lambda_l ~ Gamma(1, scale alpha/(1 - alpha)). Suffixes
are shapes, as in ``gibbs``; every cell of a row is visited, stored or not.
"""

import math

import numpy as np
from numba import njit

from countveil.kernels.bessel import sample_bessel
from countveil.kernels.gibbs import LANES, MASKED, allocate, multiply_and_add, sample_gamma

TRIALS_ONE_BY_ONE = 12


@njit(cache=True, nogil=True)
def sample_binomial(trials, chance, rng):
    """Binomial(trials, chance); a few trials go one by one."""
    if trials > TRIALS_ONE_BY_ONE:
        return rng.binomial(trials, min(chance, 1.0))
    successes = 0
    for _ in range(trials):
        if rng.random() < chance:
            successes += 1
    return successes


@njit(cache=True, nogil=True)
def split_report(r, rate, rate_1, rate_2, rng):
    """(y, g_1, g_2) given y + g_1 - g_2 = r, for Poisson counts of these rates.

        min(y + g_1, g_2) ~ Bessel(|r|, 2 sqrt((rate_1 + rate) rate_2)),   y ~ Binomial(y + g_1, rate / (rate + rate_1))

    Source: Schein et al. (2019), theorem 4.1 and equation 12.
    """
    smaller = sample_bessel(abs(r), 2.0 * math.sqrt((rate_1 + rate) * rate_2), rng)
    upper = smaller + max(r, 0)
    count = sample_binomial(upper, rate / (rate + rate_1), rng) if upper > 0 else 0
    return count, upper - count, upper - r


@njit(cache=True, nogil=True)
def sample_noise_rate(count, alpha, rng):
    """lambda | g ~ Gamma(1 + g, scale alpha): its prior's rate (1 - alpha)/alpha, and one."""
    if count == 0:
        return alpha * rng.standard_exponential()
    return alpha * rng.standard_gamma(1.0 + count)


@njit(cache=True, nogil=True)
def sweep_rows(block, theta_dk, phi_vk, phi_total_k, noise_dv2, new_noise_dv2, shape, rate_k, sums, rng):
    """Draw the true counts, noise rates and topics of every cell, then theta_d, row by row.

    block is (indptr, columns, reports, alpha_e, alpha_d, exposure_d). theta_dk is replaced in place, the noise
    rates go from noise_dv2 to new_noise_dv2. sums is (count_vk, exposure_vk, theta_total_k), added up for the
    column factors: sum_d y_dvk, minus the sum over masked cells of theta_dk, and sum_d theta_dk.
    """
    indptr, columns, reports, alpha_e, alpha_d, _, prior_scale_d = block
    count_vk, exposure_vk, theta_total_k = sums
    n_rows, n_topics = theta_dk.shape
    n_columns = phi_vk.shape[0]
    product_k = np.empty(n_topics)
    lane_l = np.empty(LANES)
    row_count_k = np.empty(n_topics)
    row_exposure_k = np.empty(n_topics)
    for d in range(n_rows):
        row_count_k[:] = 0.0
        row_exposure_k[:] = phi_total_k
        e = indptr[d]
        for v in range(n_columns):
            report = 0
            alpha = alpha_d[d]
            if e < indptr[d + 1] and columns[e] == v:
                report = np.int64(reports[e])
                alpha = alpha_d[d] if alpha_e.size == 0 else alpha_e[e]
                e += 1
            weight = -1.0 if report == MASKED else 0.0
            rate = multiply_and_add(theta_dk, d, phi_vk, v, weight, product_k, lane_l, row_exposure_k)
            count = report
            if report == MASKED or alpha <= 0.0:
                new_noise_dv2[d, v, 0] = noise_dv2[d, v, 0]
                new_noise_dv2[d, v, 1] = noise_dv2[d, v, 1]
            else:
                count, above, below = split_report(report, rate, noise_dv2[d, v, 0], noise_dv2[d, v, 1], rng)
                new_noise_dv2[d, v, 0] = sample_noise_rate(above, alpha, rng)
                new_noise_dv2[d, v, 1] = sample_noise_rate(below, alpha, rng)
            if count > 0:
                allocate(count, product_k, lane_l, rate, row_count_k, count_vk, v, rng)
        for k in range(n_topics):
            theta_dk[d, k] = sample_gamma(
                shape + row_count_k[k], rate_k[k] * prior_scale_d[d] + max(row_exposure_k[k], 0.0), rng
            )
            theta_total_k[k] += theta_dk[d, k]
        for e in range(indptr[d], indptr[d + 1]):
            if reports[e] == MASKED:
                for k in range(n_topics):
                    exposure_vk[columns[e], k] -= theta_dk[d, k]
