"""One coordinate-ascent pass over a block of rows of mu_dv = sum_k theta_dk phi_vk, counts summed out exactly.

Every factor entry has two numbers: its geometric mean g = exp E log (the counts are split in proportion to
products of these) and its mean m (exposures are sums of these). With g = m the pass is expectation
maximisation on the marginal likelihood. Suffixes are shapes, as in ``gibbs``.
"""

import math

import numpy as np
from numba import njit

from countveil.kernels.gibbs import SMALLEST, inner
from countveil.kernels.laws import censored_logpmf, expected_count_ratio, poisson_logpmf, weight_sums
from countveil.kernels.tiles import excess_exposure


@njit(cache=True, nogil=True)
def score_and_ratio(r, rate, alpha):
    """(log P(r | rate), E[y | r, rate] / rate) of a positive report, from one evaluation of its sums."""
    rate = max(rate, SMALLEST)
    if alpha <= 0.0:
        return poisson_logpmf(r, rate), r / rate
    scale, below, at, above = weight_sums(r, rate, alpha)
    total = below + at + above
    score = math.log1p(-alpha) - math.log1p(alpha) + scale + math.log(total)
    return score, (below / alpha + alpha * (at + above)) / total


@njit(cache=True, nogil=True)
def digamma(x):
    """d log Gamma(x) / dx for x > 0: recurrence up to 10, then the asymptotic series; to about 1e-14."""
    shift = 0.0
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    s = 1.0 / (x * x)
    series = s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * 691 / 32760)))))
    return shift + math.log(x) - 0.5 / x - series


@njit(cache=True, nogil=True)
def settle_rows(
    block,
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
    """Iterate theta's update with phi held, each row until its means move by less than ``tolerance`` of their sum.

    theta_g_dk and theta_m_dk are replaced by the geometric means (or, if not ``geometric``, by the arithmetic ones
    with a share ``cut`` of the prior's shape left out) and the arithmetic means at the end, or after ``most``
    iterations. Exposures do not depend on theta: one sum over the row.
    """
    indptr, columns, reports, alpha_e, alpha_d, exposure_d = block
    n_rows, n_topics = theta_g_dk.shape
    ratio_k = np.empty(n_topics)
    new_rate_k = np.empty(n_topics)
    for d in range(n_rows):
        base = exposure_d[d]
        for k in range(n_topics):
            new_rate_k[k] = rate_dk[d, k] + base * phi_total_k[k]
        for e in range(indptr[d], indptr[d + 1]):
            alpha = alpha_d[d] if alpha_e.size == 0 else alpha_e[e]
            exposure = excess_exposure(reports[e], alpha, base)
            v = columns[e]
            for k in range(n_topics):
                new_rate_k[k] += exposure * phi_m_vk[v, k]
        for _ in range(most):
            ratio_k[:] = 0.0
            for e in range(indptr[d], indptr[d + 1]):
                if reports[e] > 0:
                    alpha = alpha_d[d] if alpha_e.size == 0 else alpha_e[e]
                    v = columns[e]
                    ratio = ratio_only(reports[e], inner(theta_g_dk, d, phi_g_vk, v), alpha)
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


@njit(cache=True, nogil=True)
def ratio_only(r, rate, alpha):
    """E[y | r, rate] / rate of a positive report."""
    rate = max(rate, SMALLEST)
    return r / rate if alpha <= 0.0 else expected_count_ratio(r, rate, alpha)


@njit(cache=True, nogil=True)
def update_rows(block, theta_g_dk, theta_m_dk, phi_g_vk, phi_m_vk, phi_total_k, shape_dk, rate_dk, sums):
    """Replace theta's shapes and rates by their optimum, row by row; add up what phi's need.

        shape_dk + g_dk sum_v R_dv g_vk,   rate_dk + sum_v e_dv m_vk,   R = E[y | r, mu~] / mu~

    with shape_dk and rate_dk the prior's, mu~_dv = sum_k g_dk g_vk. On return theta_g_dk holds the shapes and
    theta_m_dk the rates. sums is (ratio_vk, exposure_vk, total_2k): sum_d R_dv g_dk; sum over stored entries of
    their excess exposure times the new mean; (sum_d exposure_d m_dk, sum_d m_dk) of the new means. Returns the
    data's part of the evidence lower bound at the factors that came in.
    """
    indptr, columns, reports, alpha_e, alpha_d, exposure_d = block
    ratio_vk, exposure_vk, total_2k = sums
    n_rows, n_topics = theta_g_dk.shape
    n_columns = phi_g_vk.shape[0]
    ratio_k = np.empty(n_topics)
    row_exposure_k = np.empty(n_topics)
    bound = 0.0
    for d in range(n_rows):
        base = exposure_d[d]
        ratio_k[:] = 0.0
        for k in range(n_topics):
            row_exposure_k[k] = base * phi_total_k[k]
        for e in range(indptr[d], indptr[d + 1]):
            v = columns[e]
            alpha = alpha_d[d] if alpha_e.size == 0 else alpha_e[e]
            report = reports[e]
            exposure = excess_exposure(report, alpha, base)
            for k in range(n_topics):
                row_exposure_k[k] += exposure * phi_m_vk[v, k]
            if report > 0:
                rate = inner(theta_g_dk, d, phi_g_vk, v)
                score, ratio = score_and_ratio(report, rate, alpha)
                bound += score + rate
                for k in range(n_topics):
                    ratio_k[k] += ratio * phi_g_vk[v, k]
                    ratio_vk[v, k] += ratio * theta_g_dk[d, k]
            elif report == 0:
                bound += censored_logpmf(0.0, alpha)
        bound -= (n_columns - (indptr[d + 1] - indptr[d])) * math.log1p(alpha_d[d])
        for k in range(n_topics):
            bound -= theta_m_dk[d, k] * row_exposure_k[k]
            new_shape = shape_dk[d, k] + theta_g_dk[d, k] * ratio_k[k]
            new_rate = max(rate_dk[d, k] + row_exposure_k[k], SMALLEST)
            mean = new_shape / new_rate
            theta_g_dk[d, k] = new_shape
            theta_m_dk[d, k] = new_rate
            total_2k[0, k] += base * mean
            total_2k[1, k] += mean
        for e in range(indptr[d], indptr[d + 1]):
            alpha = alpha_d[d] if alpha_e.size == 0 else alpha_e[e]
            exposure = excess_exposure(reports[e], alpha, base)
            v = columns[e]
            for k in range(n_topics):
                exposure_vk[v, k] += exposure * (theta_g_dk[d, k] / theta_m_dk[d, k])
    return bound


@njit(cache=True, nogil=True)
def expect_rows(block, theta_g_dk, phi_g_vk, ratio_dk, ratio_vk):
    """ratio_dk += sum_v R_dv g_vk and ratio_vk += sum_d R_dv g_dk; returns the positive reports' part of the bound.

    That is all of the data's part but minus the sum of exposures times mean rates.
    """
    indptr, columns, reports, alpha_e, alpha_d, _ = block
    n_columns, n_topics = phi_g_vk.shape
    bound = 0.0
    for d in range(theta_g_dk.shape[0]):
        for e in range(indptr[d], indptr[d + 1]):
            v = columns[e]
            alpha = alpha_d[d] if alpha_e.size == 0 else alpha_e[e]
            if reports[e] > 0:
                rate = inner(theta_g_dk, d, phi_g_vk, v)
                score, ratio = score_and_ratio(reports[e], rate, alpha)
                bound += score + rate
                for k in range(n_topics):
                    ratio_dk[d, k] += ratio * phi_g_vk[v, k]
                    ratio_vk[v, k] += ratio * theta_g_dk[d, k]
            elif reports[e] == 0:
                bound += censored_logpmf(0.0, alpha)
        bound -= (n_columns - (indptr[d + 1] - indptr[d])) * math.log1p(alpha_d[d])
    return bound
