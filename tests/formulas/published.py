"""Checks of section 7: the noise as two Poisson counts with random rates, and the published algorithms."""

from itertools import product
from math import exp, floor, log, sqrt

import numpy as np
from scipy import integrate, special, stats

from countveil.distributions import Bessel
from countveil.kernels.bessel_cavi import expected_split
from tests.formulas.brute import ALPHAS, formula, noise_pmf, same

N = np.arange(80)
CASES = list(product((-4, -1, 0, 1, 6), (0.3, 2.5), (0.4, 1.7), (0.2, 3.0)))  # report, mu, lambda_1, lambda_2


def joint_law(r, mu, rate_1, rate_2):
    """(y, g_1) chances given y + g_1 - g_2 = r, by enumeration of three Poisson counts."""
    y, g_1 = N[:, None], N[None, :]
    g_2 = y + g_1 - r
    weights = stats.poisson.pmf(y, mu) * stats.poisson.pmf(g_1, rate_1) * stats.poisson.pmf(g_2, rate_2)
    return weights / weights.sum()


def law_of(values, chances):
    """Chances of 0, 1, ... of a nonnegative function of (y, g_1)."""
    return np.bincount(values.ravel(), chances.ravel(), minlength=60)[:60]


def bessel_pmf(s, x, m):
    """(7.3) at m."""
    log_pmf = (2 * m + s) * log(x / 2) - special.gammaln(m + 1.0) - special.gammaln(m + s + 1.0)
    return np.exp(log_pmf - log(special.ive(s, x)) - x)


def series(s, x):
    """The Bessel law by its weights (x/2)^(2m) / (m! (m + s)!), normalised by their sum."""
    log_w = 2 * N * log(x / 2) - special.gammaln(N + 1.0) - special.gammaln(N + s + 1.0)
    return np.exp(log_w - special.logsumexp(log_w))


@formula("7.1")
def noise_of_random_rates():
    r"""r = y + g_1 - g_2, \quad g_l \sim \mathrm{Poisson}(\lambda_l), \quad \lambda_l \sim \mathrm{Gamma}(1, (1
    - \alpha) / \alpha)
    """
    for alpha in ALPHAS[:3]:
        b, counts = (1 - alpha) / alpha, np.arange(120)

        def chance(g, b=b):
            return integrate.quad(lambda t: b * exp(-b * t) * stats.poisson.pmf(g, t), 0, np.inf, limit=200)[0]

        each = np.array([chance(g) for g in range(12)])
        same(each, (1 - alpha) * alpha ** np.arange(12.0), 1e-6, 1e-12)  # geometric; then to its difference
        full = (1 - alpha) * alpha ** counts.astype(float)
        brute = [full[: 120 - size] @ full[size:] for size in range(8)]
        same(brute, noise_pmf(np.arange(8), alpha), 1e-9)


@formula("7.2")
def smaller_count():
    r"""m = \min(y + g_1, g_2) \sim \mathrm{Bessel}\big( |r|, \, 2 \sqrt{(\lambda_1 + \mu) \lambda_2} \big)"""
    total = N[:, None] + N[None, :]
    for r, mu, rate_1, rate_2 in CASES:
        smaller = np.maximum(np.minimum(total, total - r), 0)
        brute = law_of(smaller, joint_law(r, mu, rate_1, rate_2))
        same(bessel_pmf(abs(r), 2 * sqrt((rate_1 + mu) * rate_2), np.arange(60)), brute, 1e-8, 1e-13)


@formula("7.3")
def bessel_law():
    r"""P(m) = \frac{(x / 2)^{2 m + s}}{m! \, (m + s)! \, I_s(x)} \text{ for } \mathrm{Bessel}(s, x), \quad m =
    0, 1, 2, \ldots
    """
    for s, x in product((0, 1, 5, 20), (0.1, 1.0, 7.0, 30.0)):
        same(bessel_pmf(s, x, N), series(s, x), 1e-9, 1e-300)
        same(Bessel(s, x).pmf(N), series(s, x), 1e-9, 1e-300)


@formula("7.4")
def larger_counts():
    r"""y + g_1 = m + \max(r, 0), \quad g_2 = y + g_1 - r"""
    for r, total in product(range(-9, 10), range(12)):
        g_2 = total - r
        if g_2 >= 0:
            assert total == min(total, g_2) + max(r, 0)


@formula("7.5")
def true_count_within_a_total():
    r"""y \mid y + g_1 \sim \mathrm{Binomial}\Big( y + g_1, \, \frac{\mu}{\mu + \lambda_1} \Big)"""
    for r, mu, rate_1, rate_2 in CASES:
        law = joint_law(r, mu, rate_1, rate_2)
        for total in (1, 4, 9):
            if total - r < 0:
                continue
            y = np.arange(total + 1)
            brute = law[y, total - y]
            same(stats.binom.pmf(y, total, mu / (mu + rate_1)), brute / brute.sum(), 1e-9)


@formula("7.6")
def noise_rate():
    r"""\lambda_l \mid g_l \sim \mathrm{Gamma}(1 + g_l, \, 1 / \alpha)"""
    rates = np.linspace(0.05, 6.0, 9)
    for alpha, g in product(ALPHAS, (0, 1, 5)):
        brute = stats.gamma.logpdf(rates, 1, scale=alpha / (1 - alpha)) + stats.poisson.logpmf(g, rates)
        difference = brute - stats.gamma.logpdf(rates, 1 + g, scale=alpha)
        same(difference, np.full(9, difference[0]), 1e-9)


@formula("7.7")
def bessel_mode():
    r"""\text{mode of } \mathrm{Bessel}(s, x) = \left\lfloor \frac{\sqrt{x^2 + s^2} - s}{2} \right\rfloor"""
    for s, x in product((0, 1, 5, 20, 60), (0.1, 1.0, 2.7, 7.3, 30.1)):
        printed = floor((sqrt(x**2 + s**2) - s) / 2)
        assert printed == int(np.argmax(series(s, x))) == Bessel(s, x).mode()


@formula("7.8")
def bessel_mean():
    r"""\text{mean of } \mathrm{Bessel}(s, x) = \frac{x}{2} \, \frac{I_{s+1}(x)}{I_s(x)}, \quad \text{within 1
    of the mode}
    """
    for s, x in product((0, 1, 5, 20, 60), (0.1, 1.0, 2.7, 7.3, 30.1)):
        printed, brute = x / 2 * special.ive(s + 1, x) / special.ive(s, x), series(s, x) @ N
        same(printed, brute, 1e-9)
        assert abs(brute - np.argmax(series(s, x))) <= 1
        same(Bessel(s, x).mean(), printed, 1e-9)


def log_geometric(mean, variance):
    """log G by (7.10)."""
    return log(mean) - variance / (2 * mean**2)


@formula("7.9")
def published_split():
    r"""\begin{aligned} \mathrm{E}[y] & = (m + \max(r, 0)) \frac{G[\mu]}{G[\mu] + G[\lambda_1]}, \quad G[\mu] =
    \sum_k G[\theta_{dk}] \, G[\phi_{vk}], \cr m & = \text{mode of } \mathrm{Bessel}\big( |r|, \, 2
    \sqrt{G[\lambda_2] \, G[\lambda_1 + \mu]} \big) \end{aligned}
    """
    alpha, mean, variance, g_mu = 0.4, 2.1, 0.5, 1.6  # moments of mu, and the sum of products of G
    for r, (shape_1, shape_2) in product((-3, 0, 1, 8), ((1.0, 1.0), (2.5, 4.0))):
        g_1, g_2 = (alpha * exp(special.psi(shape)) for shape in (shape_1, shape_2))
        both = exp(log_geometric(alpha * shape_1 + mean, alpha**2 * shape_1 + variance))
        total = int(np.argmax(series(abs(r), 2 * sqrt(g_2 * both)))) + max(r, 0)
        printed = total * g_mu / (g_mu + g_1)
        # the best Q of counts with this total is Poisson in exp E log of each rate, so Binomial given the total
        y = np.arange(total + 1)
        log_w = y * log(g_mu) + (total - y) * log(g_1) - special.gammaln(y + 1.0) - special.gammaln(total - y + 1.0)
        same(printed, np.exp(log_w - special.logsumexp(log_w)) @ y, 1e-9)
        found = expected_split(r, g_mu, mean, variance, shape_1, shape_2, alpha, False)
        same(found, (printed, total - printed, total - r), 1e-9)


@formula("7.10")
def delta_method():
    r"""\log G[X] \approx \log \mathrm{E}[X] - \frac{\mathrm{Var}[X]}{2 \, \mathrm{E}[X]^2}"""
    for shape, rate in product((3.0, 10.0, 100.0, 1000.0), (0.2, 4.0)):
        law = stats.gamma(shape, scale=1 / rate)
        brute = special.psi(shape) - log(rate)  # E log X of a gamma variable
        error = log_geometric(law.mean(), law.var()) - brute
        assert 0 < error < 1 / (12 * shape**2)  # of the third order: the variance alone is 1 / shape
