"""One pass of the papers' variational updates over a block of rows: a point mass for the Bessel variable.

Every factor entry has three numbers: its geometric mean g = exp E log, its mean m and its variance w. A cell's
noise rates have Q(lambda_l) = Gamma(1 + E[g_l], scale alpha). Suffixes are shapes, as in ``gibbs``.
"""

import math

import numpy as np

from countveil.kernels.bessel import bessel_mean, bessel_mode
from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.entries import MASKED, level_at


@subroutine
def geometric_mean(shape):
    """exp E log of a Gamma(shape, 1), exp(digamma(shape)), for shape >= 1: recurrence, then the asymptotic series."""
    back = 0.0
    x = shape
    while x < 10.0:
        back += 1.0 / x
        x += 1.0
    i = 1.0 / (x * x)
    tail = (1 / 12 - (1 / 120 - (1 / 252 - (1 / 240 - (1 / 132 - (691 / 32760 - i / 12) * i) * i) * i) * i) * i) * i
    return x * math.exp(-0.5 / x - tail - back)


@subroutine
def rate_moments(theta_g_dk, theta_m_dk, theta_w_dk, d, phi_g_vk, phi_m_vk, phi_w_vk, v):
    """(sum of the products of geometric means, mean, variance) of the rate mu_dv under Q.

    Var[mu] = sum_k Var[theta] Var[phi] + Var[theta] E[phi]^2 + Var[phi] E[theta]^2   (2018 preprint, equation 72)
    """
    geometric = 0.0
    mean = 0.0
    variance = 0.0
    for k in range(theta_g_dk.shape[1]):
        m, w = theta_m_dk[d, k], theta_w_dk[d, k]
        n, u = phi_m_vk[v, k], phi_w_vk[v, k]
        geometric += theta_g_dk[d, k] * phi_g_vk[v, k]
        mean += m * n
        variance += w * (u + n * n) + u * m * m
    return geometric, mean, variance


@subroutine
def expected_split(r, geometric, mean, variance, shape_1, shape_2, alpha, use_mean):
    """(E[y], E[g_1], E[g_2]) of a cell whose noise rates have gamma Qs of these shapes and scale alpha.

        m = centre of Bessel(|r|, 2 sqrt(G[lambda_2] G[lambda_1 + mu])),   E[y + g_1] = m + max(r, 0)
        log G[lambda_1 + mu] = log E[lambda_1 + mu] - Var[lambda_1 + mu] / 2 E[lambda_1 + mu]^2   (delta method)

    The split of y + g_1 is in proportion to G[mu] and G[lambda_1].
    """
    g_1 = alpha * geometric_mean(shape_1)
    g_2 = alpha * geometric_mean(shape_2)
    total = alpha * shape_1 + mean
    total_variance = alpha * alpha * shape_1 + variance
    both = total * math.exp(-0.5 * total_variance / (total * total))
    argument = 2.0 * math.sqrt(g_2 * both)
    smaller = bessel_mean(abs(r), argument) if use_mean else float(bessel_mode(abs(r), argument))
    upper = smaller + max(r, 0)
    count = upper * geometric / (geometric + g_1)
    return count, upper - count, upper - r


@kernel
def expect_rows(entries, theta, phi, noise_dv2, ratio_dk, ratio_vk, use_mean):
    """Expect the true counts of every cell, and update the noise rates' shapes in noise_dv2.

    theta and phi are (g, m, w). With R = E[y] / sum_k g_dk g_vk, ratio_dk += sum_v R_dv g_vk and
    ratio_vk += sum_d R_dv g_dk. Masked cells are left out. Where all products of geometric means underflow, the
    expected count is left out.
    """
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    level_d, level_e = entries.level_d, entries.level_e
    theta_g_dk, theta_m_dk, theta_w_dk = theta
    phi_g_vk, phi_m_vk, phi_w_vk = phi
    for d in range(ratio_dk.shape[0]):
        e = indptr[d]
        for v in range(phi_g_vk.shape[0]):
            report = 0
            alpha = level_d[d]
            if e < indptr[d + 1] and columns[e] == v:
                report = np.int64(reports[e])
                alpha = level_at(level_d, level_e, d, e)
                e += 1
            if report == MASKED or (report == 0 and alpha <= 0.0):
                continue
            geometric, mean, variance = rate_moments(
                theta_g_dk, theta_m_dk, theta_w_dk, d, phi_g_vk, phi_m_vk, phi_w_vk, v
            )
            count = float(report)
            if alpha > 0.0:
                count, above, below = expected_split(
                    report, geometric, mean, variance, noise_dv2[d, v, 0], noise_dv2[d, v, 1], alpha, use_mean
                )
                noise_dv2[d, v, 0] = 1.0 + above
                noise_dv2[d, v, 1] = 1.0 + below
            if geometric <= 0.0:
                continue
            ratio = count / geometric
            for k in range(ratio_dk.shape[1]):
                ratio_dk[d, k] += ratio * phi_g_vk[v, k]
                ratio_vk[v, k] += ratio * theta_g_dk[d, k]
