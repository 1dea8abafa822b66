"""One augmented Gibbs sweep over a block of rows, as in the papers: noise as two Poisson counts with random rates.

A report is r = y + g_1 - g_2 with g_l ~ Poisson(lambda_l), lambda_l ~ Gamma(1, scale alpha/(1 - alpha)). Suffixes
are shapes, as in ``gibbs``; every cell of a row is visited, stored or not.
"""

import math

import numpy as np

from countveil.kernels.allocation import LANES, allocate, multiply
from countveil.kernels.bessel import sample_bessel
from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.entries import MASKED, level_at
from countveil.kernels.random import binomial, standard_exponential, standard_gamma

TRIALS_ONE_BY_ONE = 12


@subroutine
def sample_binomial(trials, chance, rng):
    """Binomial(trials, chance); a few trials are drawn one by one."""
    if trials > TRIALS_ONE_BY_ONE:
        return binomial(trials, min(chance, 1.0), rng)
    successes = 0
    for _ in range(trials):
        if rng.random() < chance:
            successes += 1
    return successes


@subroutine
def split_report(r, rate, rate_1, rate_2, rng):
    """(y, g_1, g_2) given y + g_1 - g_2 = r, for Poisson counts of these rates.

        min(y + g_1, g_2) ~ Bessel(|r|, 2 sqrt((rate_1 + rate) rate_2)),   y ~ Binomial(y + g_1, rate / (rate + rate_1))

    Source: Schein et al. (2019), theorem 4.1 and equation 12.
    """
    smaller = sample_bessel(abs(r), 2.0 * math.sqrt((rate_1 + rate) * rate_2), rng)
    upper = smaller + max(r, 0)
    count = sample_binomial(upper, rate / (rate + rate_1), rng) if upper > 0 else 0
    return count, upper - count, upper - r


@subroutine
def sample_noise_rate(count, alpha, rng):
    """lambda | g ~ Gamma(1 + g, scale alpha): the rate 1/alpha is the prior's rate (1 - alpha)/alpha plus one."""
    if count == 0:
        return alpha * standard_exponential(rng)
    return alpha * standard_gamma(1.0 + count, rng)


@kernel
def allocate_rows(entries, theta_dk, phi_vk, noise_dv2, new_noise_dv2, count_dk, count_vk, rng):
    """Draw the true counts, noise rates and topics of every cell; add the counts up by row and by column.

    New noise rates are written to new_noise_dv2; those of masked and exact cells are copied from noise_dv2.
    """
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e = entries.level_d, entries.level_e
    n_topics = theta_dk.shape[1]
    product_k = np.empty(n_topics)
    lane_l = np.empty(LANES)
    for d in range(theta_dk.shape[0]):
        e = indptr[d]
        for v in range(phi_vk.shape[0]):
            report = 0
            alpha = level_d[d]
            if e < indptr[d + 1] and columns[e] == v:
                report = np.int64(reports[e])
                alpha = level_at(level_d, level_e, d, e)
                e += 1
            new_noise_dv2[d, v, 0] = noise_dv2[d, v, 0]
            new_noise_dv2[d, v, 1] = noise_dv2[d, v, 1]
            if report == MASKED or (report == 0 and alpha <= 0.0):
                continue
            rate = multiply(theta_dk, d, phi_vk, v, product_k, lane_l)
            count = report
            if alpha > 0.0:
                count, above, below = split_report(report, rate, noise_dv2[d, v, 0], noise_dv2[d, v, 1], rng)
                new_noise_dv2[d, v, 0] = sample_noise_rate(above, alpha, rng)
                new_noise_dv2[d, v, 1] = sample_noise_rate(below, alpha, rng)
            if count > 0:
                allocate(count, product_k, lane_l, rate, count_dk[d], count_vk, v, rng)
