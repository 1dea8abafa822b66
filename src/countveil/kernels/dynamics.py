"""Gamma chains in time, compiled: the pass backwards in time, which draws tables, and the pass forwards.

    theta_t ~ Gamma(Pi theta_(t-1) + source, 1),   theta_0 ~ Gamma(nu, 1)

The columns of Pi sum to one. Given counts n_tk, each a Poisson variable of mean E_t theta_tk, the pass backwards draws
tables with theta integrated out, and the pass forwards draws theta (Schein, Zhou and Wallach 2016; mathematics, section
17). A number of tables, CRT(n, r), is the sum over i < n of Bernoulli(r / (r + i)).
"""

from countveil.kernels.compiled import kernel
from countveil.kernels.gamma import SMALLEST, sample_gamma
from countveil.kernels.generator import binomial
from countveil.kernels.negative_binomial import draw_bursts


@kernel
def pass_backwards(count_tk, theta_tk, pi_kk, nu_k, source, tables_kk, first_k, total_tk, rng):
    """Tables of every step given counts and the current theta, from the last step to the first.

    Fills, all zeros before: tables_kk[k, j], those of component k at t that came from j at t - 1, summed over t;
    first_k, those of the first step; total_tk, the counts plus the tables that the next step drew from each entry.
    Tables that come from the source count nowhere.
    """
    n_steps, n_components = count_tk.shape
    for t in range(n_steps - 1, -1, -1):
        for k in range(n_components):
            total_tk[t, k] += count_tk[t, k]
            customers = int(total_tk[t, k])
            if customers == 0:
                continue
            if t == 0:
                first_k[k] = draw_bursts(customers, max(nu_k[k], SMALLEST), rng)
                continue
            rest = source
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


@kernel
def pass_forwards(total_tk, rate_t, pi_kk, nu_k, source, theta_tk, rng):
    """Fill theta_tk: Gamma(Pi theta_(t-1) + source + total_t, rate_t), with nu in place of these two at first."""
    n_steps, n_components = total_tk.shape
    for t in range(n_steps):
        for k in range(n_components):
            shape = nu_k[k]
            if t > 0:
                shape = source
                for j in range(n_components):
                    shape += pi_kk[k, j] * theta_tk[t - 1, j]
            theta_tk[t, k] = sample_gamma(shape + total_tk[t, k], rate_t[t], rng)


@kernel
def seat(customers_n, concentration_n, rng, tables_n):
    """Fill tables_n with CRT(customers, concentration), one by one."""
    for i in range(customers_n.size):
        tables_n[i] = draw_bursts(int(customers_n[i]), max(concentration_n[i], SMALLEST), rng)
