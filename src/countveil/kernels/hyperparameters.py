"""Compiled log-densities of hyperparameters and dispersions, which sampling evaluates many times a sweep."""

import math

import numpy as np

from countveil.kernels.compiled import kernel
from countveil.kernels.negative_binomial import FEW, expected_bursts, log_rising
from countveil.kernels.random import trigamma

LARGEST_SHARE = 1e140  # of exposures over rates
LARGEST_PRODUCT = 1e150  # times one more such factor, for shapes down to 1e-4, it is still finite


@kernel
def look_at_shapes(log_shape_dk, count_dk, exposed_dk, slope_dk, bend_dk):
    """(K,) log-densities of counts, up to a constant, of entries with these shapes and known means.

    ``exposed_dk`` are the means times the entries' exposures. ``slope_dk`` and ``bend_dk`` are filled with the first
    and minus the second derivative by log_shape_dk.
    """
    n_rows, n_components = log_shape_dk.shape
    mass_k = np.zeros(n_components)
    for d in range(n_rows):
        for k in range(n_components):
            u, n = log_shape_dk[d, k], int(count_dk[d, k])
            a = math.exp(u)
            ratio = exposed_dk[d, k] / a
            grown, share, size = math.log1p(ratio), ratio / (1.0 + ratio), a + n
            mass_k[k] += (log_rising(a, n) if n > 0 else 0.0) - n * u - size * grown
            tables, spread = (0.0, 0.0)  # the mean of the bursts that n comes in, and what their variance lacks of it
            if n <= FEW:
                for i in range(n):
                    one = a / (a + i)
                    tables += one
                    spread += one * one
            else:
                tables, spread = expected_bursts(n, a), a * a * (trigamma(a) - trigamma(size))
            slope_dk[d, k] = tables - n - a * grown + size * share
            bend_dk[d, k] = spread - tables + a * (grown - 2.0 * share) + size * share * (1.0 - share)
    return mass_k


@kernel
def shape_given_entries(log_a, size_k, total_k, added_k, logs, rates, cut, mean):
    """log P(log a | entries) of every log a, up to a constant and without its prior (mathematics, 18.2 to 18.4).

    The entries' logarithms add up to ``logs``; ``cut`` of them stand for all below the smallest number. The rates
    are known if the mean is not a number, and their logarithms add up to ``rates``. Otherwise they are summed out:
    component k has ``size_k`` entries that add up to ``total_k``, and ``added_k`` is known of the sum of its shapes.
    """
    found, n = np.empty(log_a.size), size_k.sum()
    for i in range(log_a.size):
        a = math.exp(log_a[i])
        # product over entries of x^(a - 1) / Gamma(a); the integral from 0 to a cut entry's value gives 1 / a
        density = a * logs - n * math.lgamma(a) - cut * log_a[i]
        if math.isnan(mean):
            density += a * rates
        else:
            # integral of b^(a size + added) exp(-b (total + mean / a)) mean / a over the rate b of each component
            for k in range(size_k.size):
                power = 1.0 + a * size_k[k] + added_k[k]
                density += math.lgamma(power) - power * math.log(total_k[k] + mean / a) - log_a[i]
        found[i] = density
    return found


@kernel
def shape_given_counts(log_a, count, share, number_m, times_m, rates_follow):
    """log P(counts | a) of every log a, up to a constant, with the entries summed out (mathematics, 18.5).

    ``share`` is the exposure of each entry over its rate, or over the rate divided by a if rates follow the shape. The
    positive counts are ``number_m``, each found ``times_m`` times.
    """
    found, total = np.empty(log_a.size), 0.0
    for m in range(number_m.size):
        total += times_m[m] * number_m[m]
    for i in range(log_a.size):
        a = math.exp(log_a[i])
        times = 1.0 / a if rates_follow else 1.0
        # b^a / (b + e)^(a + n) of each entry is b^-n (1 + e / b)^-(a + n), where b^-n has a part a^-n if b = a rate
        density = -total * log_a[i] if rates_follow else 0.0
        for m in range(number_m.size):
            density += times_m[m] * (math.lgamma(a + number_m[m]) - math.lgamma(a))
        logs, product = 0.0, 1.0  # one logarithm serves many entries
        for j in range(count.size):
            grown = 1.0 + times * share[j]
            product *= grown
            if product > LARGEST_PRODUCT:
                logs += math.log(product)
                product = 1.0
            if count[j] > 0.0:
                density -= count[j] * math.log(grown)
        found[i] = density - a * (logs + math.log(product))
    return found


@kernel
def dispersion_given_bursts(logit_v, count_v, burst_v, ratio_l, rate_lv, a, b):
    """log P(logit p | counts, bursts, rates of unseen cells) of every p, up to a constant (mathematics, 13.6).

    The prior is Beta(a, b). Unseen cells have kernel ratio ``ratio_l`` and rates ``rate_lv`` for every exposure level.
    """
    found = np.empty(logit_v.size)
    for v in range(logit_v.size):
        x = logit_v[v]
        # q = -log(1 - p) and -log p without the loss of digits at either end
        p = 1.0 / (1.0 + math.exp(-x))
        q = math.log1p(math.exp(x)) if x < 0.0 else x + math.log1p(math.exp(-x))
        minus_log_p = math.log1p(math.exp(-x)) if x > 0.0 else math.log1p(math.exp(x)) - x
        exposed = 0.0
        for level in range(ratio_l.size):
            r = ratio_l[level]
            exposed -= math.log1p(-p * (1.0 - r) / (1.0 - p * r)) / q * rate_lv[level, v]
        found[v] = -(count_v[v] + a) * minus_log_p - burst_v[v] * math.log(q) - exposed - b * q
    return found
