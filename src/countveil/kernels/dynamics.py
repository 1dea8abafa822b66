"""Gamma chains, compiled. In time: the pass backwards in time, which draws tables, and the pass forwards.

    theta_t ~ Gamma(Pi theta_(t-1) + immigration, 1),   theta_0 ~ Gamma(nu, 1)

The columns of Pi sum to one. Given counts n_tk, each a Poisson variable of mean E_t theta_tk, the pass backwards draws
tables with theta integrated out, and the pass forwards draws theta (Schein, Zhou and Wallach 2016; mathematics, section
17). A number of tables, CRT(n, r), is the sum over i < n of Bernoulli(r / (r + i)).

In layers: the tables of a layer's counts, and the components above that they come from.

    theta_dk ~ Gamma(sum_j phi_kj upper_dj, b_d)

The columns of phi sum to one. Given counts n_dk with theta integrated out, tables are CRT(n_dk, sum_j phi_kj upper_dj),
and each of them comes from j in proportion to phi_kj upper_dj (Zhou, Cong and Chen 2016; mathematics, section 21).
"""

import math

import numpy as np

from countveil.kernels.compiled import kernel
from countveil.kernels.negative_binomial import draw_bursts
from countveil.kernels.random import SMALLEST, binomial, sample_gamma, standard_exponential, standard_normal

LEAST_STEP, MOST_STEP = 0.03, 3.0  # of a season's logarithm, whatever the state


@kernel
def pass_backwards(count_tk, theta_tk, pi_kk, nu_k, immigration, tables_kk, first_k, total_tk, rng):
    """Tables of every step given counts and the current theta, from the last step to the first.

    Fills, all zeros before: tables_kk[k, j], those of component k at t that came from j at t - 1, summed over t;
    first_k, those of the first step; total_tk, the counts plus the tables that the next step drew from each entry.
    Returns the number of tables that came from no component.
    """
    n_steps, n_components = count_tk.shape
    entered = 0.0
    for t in range(n_steps - 1, -1, -1):
        for k in range(n_components):
            total_tk[t, k] += count_tk[t, k]
            customers = int(total_tk[t, k])
            if customers == 0:
                continue
            if t == 0:
                first_k[k] = draw_bursts(customers, max(nu_k[k], SMALLEST), rng)
                continue
            rest = immigration
            for j in range(n_components):
                rest += pi_kk[k, j] * theta_tk[t - 1, j]
            left = draw_bursts(customers, max(rest, SMALLEST), rng)
            for j in range(n_components):
                if left == 0:
                    break
                share = pi_kk[k, j] * theta_tk[t - 1, j]
                drawn = left
                if share < rest:
                    drawn = binomial(left, share / rest, rng)
                rest -= share
                left -= drawn
                tables_kk[k, j] += drawn
                total_tk[t - 1, j] += drawn
            entered += left
    return entered


@kernel
def pass_forwards(total_tk, rate_t, pi_kk, nu_k, immigration, theta_tk, rng):
    """Fill theta_tk: Gamma(Pi theta_(t-1) + immigration + total_t, rate_t), with nu in place of these two at first."""
    n_steps, n_components = total_tk.shape
    for t in range(n_steps):
        for k in range(n_components):
            shape = nu_k[k]
            if t > 0:
                shape = immigration
                for j in range(n_components):
                    shape += pi_kk[k, j] * theta_tk[t - 1, j]
            theta_tk[t, k] = sample_gamma(shape + total_tk[t, k], rate_t[t], rng)


@kernel
def seat(customers_n, concentration_n, rng, tables_n):
    """Fill tables_n with CRT(customers, concentration), one by one."""
    for i in range(customers_n.size):
        tables_n[i] = draw_bursts(int(customers_n[i]), max(concentration_n[i], SMALLEST), rng)


@kernel
def move_seasons(theta_tk, cut_tk, pi_kk, nu_k, immigration, concentration, season_sk, rng):
    """Metropolis steps of every season given x_tk, which is theta_tk times its season and what is known.

    Where psi_sk is multiplied by a number, theta_tk of all its steps is divided by it, so that the chain decides alone.
    Changes theta_tk and season_sk in place; entries that were ``cut`` stand for all below (mathematics, 17.14).
    """
    n_steps, n_components = theta_tk.shape
    n_seasons = season_sk.shape[0]
    shape_tk, lgamma_tk = np.empty(theta_tk.shape), np.empty(theta_tk.shape)
    shape_tk[0] = nu_k
    for t in range(1, n_steps):
        for k in range(n_components):
            shape_tk[t, k] = immigration
            for j in range(n_components):
                shape_tk[t, k] += pi_kk[k, j] * theta_tk[t - 1, j]
            lgamma_tk[t, k] = math.lgamma(shape_tk[t, k])
    log_tk = np.log(theta_tk)
    for s in range(n_seasons):
        for k in range(n_components):
            between = math.log(LEAST_STEP) + rng.random() * math.log(MOST_STEP / LEAST_STEP)
            step = math.exp(between) * standard_normal(rng)
            now, less = season_sk[s, k], math.exp(-step)
            # Gamma(c, c) of psi, by its logarithm
            change = concentration * (step - now * (math.exp(step) - 1.0))
            for t in range(s, n_steps, n_seasons):
                moved = theta_tk[t, k] * (less - 1.0)
                change -= shape_tk[t, k] * step
                if not cut_tk[t, k]:
                    change -= moved
                if t + 1 == n_steps:
                    continue
                for j in range(n_components):
                    a = shape_tk[t + 1, j]
                    b = max(a + pi_kk[j, k] * moved, immigration)
                    if a == b:
                        continue
                    change += (b - a) * log_tk[t + 1, j] - math.lgamma(b) + lgamma_tk[t + 1, j]
                    if cut_tk[t + 1, j]:
                        change -= math.log(b / a)
            if not change > -standard_exponential(rng):
                continue
            season_sk[s, k] = now * math.exp(step)
            for t in range(s, n_steps, n_seasons):
                moved = theta_tk[t, k] * (less - 1.0)
                theta_tk[t, k] += moved
                log_tk[t, k] -= step
                if t + 1 < n_steps:
                    for j in range(n_components):
                        shape_tk[t + 1, j] = max(shape_tk[t + 1, j] + pi_kk[j, k] * moved, immigration)
                        lgamma_tk[t + 1, j] = math.lgamma(shape_tk[t + 1, j])


@kernel
def pass_upwards(count_dk, phi_kj, upper_dj, rng, table_kj, total_dj):
    """Add tables to table_kj, those of k that came from j in any row, and to total_dj, those of a row from j."""
    n_rows, n_components = count_dk.shape
    n_upper = phi_kj.shape[1]
    weight_j = np.empty(n_upper)
    for d in range(n_rows):
        for k in range(n_components):
            customers = int(count_dk[d, k])
            if customers == 0:
                continue
            rest = 0.0
            for j in range(n_upper):
                weight_j[j] = phi_kj[k, j] * upper_dj[d, j]
                rest += weight_j[j]
            left = draw_bursts(customers, max(rest, SMALLEST), rng)
            for j in range(n_upper):
                if left == 0:
                    break
                drawn = left
                if j + 1 < n_upper and weight_j[j] < rest:
                    drawn = binomial(left, weight_j[j] / rest, rng)
                rest -= weight_j[j]
                left -= drawn
                table_kj[k, j] += drawn
                total_dj[d, j] += drawn
