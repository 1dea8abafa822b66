"""Checks of section 14: counts behind reports of any log-concave mechanism."""

from itertools import product
from math import exp, factorial, log, log1p

import numpy as np
from scipy import stats

import countveil as cv
from countveil.laws.noise.laws import law_of
from countveil.laws.noise.two_sided_geometric.tokens import fill_masses
from tests.formulas.brute import RATES, formula, same, settings, slope


def kernels():
    """k(y) of mechanisms of many kinds, each log-concave with k(0) > 0."""
    y = np.arange(60)
    geometric = 0.6 ** np.abs(2 - y) * 0.25
    return {
        "geometric, r <= 0": (1 - 0.6) / (1 + 0.6) * 0.6 ** (y + 3.0),
        "geometric, r > 0": geometric,
        "discrete Gaussian": np.exp(-((1 - y) ** 2) / 4.0),
        "Laplace": np.exp(-np.abs(1.3 - y) / 1.5),
        "random rounding to base 5": np.maximum(1 - y / 5, 0.0),
        "suppressed below 4": (y < 4).astype(float),
        "top-coded": (y >= 0).astype(float),
        "two reports": geometric * np.exp(-((1 - y) ** 2) / 8.0),
        "absent below a threshold": stats.norm.cdf((2.5 - y) / 2.0),
    }


@formula("14.1")
def proposals():
    r"""Y \sim \mathrm{Poisson}(c \mu), \text{ accepted with probability } a(Y) = \frac{k(Y)}{k(0) \, c^Y} \le
    1, \text{ is a draw of } y \mid \text{report}
    """
    y = np.arange(60)
    for (name, k), mu in product(kernels().items(), (0.01, 0.3, 2.0, 6.0)):
        c = k[1] / k[0]
        accepted = k / (k[0] * c ** y.astype(float))
        assert accepted.max() <= 1 + 1e-12, name
        kept, bayes = stats.poisson.pmf(y, c * mu) * accepted, stats.poisson.pmf(y, mu) * k
        same(kept / kept.sum(), bayes / bayes.sum(), 1e-9, 1e-15)


@formula("14.2")
def chance_by_proposals():
    r"""P(\text{report} \mid \mu) = k(0) \, e^{-(1 - c) \mu} \, \mathrm{E}[a(Y)], \quad Y \sim
    \mathrm{Poisson}(c \mu)
    """
    y = np.arange(60)
    for k, mu in product(kernels().values(), (0.01, 0.3, 2.0, 6.0)):
        c = k[1] / k[0]
        expected = stats.poisson.pmf(y, c * mu) @ (k / (k[0] * c ** y.astype(float)))
        same(k[0] * exp(-(1 - c) * mu) * expected, stats.poisson.pmf(y, mu) @ k)


@formula("14.3")
def exposure():
    r"""\frac{d}{d \mu} \log P(\text{report} \mid \mu) = -\Big( 1 - \frac{k(1)}{k(0)} \Big) \text{ at } \mu = 0,
    \text{ and at every } \mu \text{ if } a = 1
    """
    for name, k in kernels().items():

        def brute(mu, k=k):
            return log(poisson(mu) @ k)

        same(-(1 - k[1] / k[0]), (brute(1e-7) - brute(0.0)) / 1e-7, 1e-5, 1e-6)
        if name == "geometric, r <= 0":
            for mu in RATES[:4]:
                same(-(1 - k[1] / k[0]), slope(brute, mu, 1e-3 * min(mu, 1.0)), 1e-7)
    for alpha, mu in settings():
        change = cv.log_likelihood(-2, mu, alpha) - cv.log_likelihood(-2, 1e-9, alpha)
        same(change, -(1 - alpha) * (mu - 1e-9), 1e-9)


@formula("14.4")
def rules_in_order():
    r"""P(\text{report} \mid y) = \sum_z P(\text{report} \mid z) \, P(z \mid y)"""
    m, y = cv.mechanisms, np.arange(60)
    for steps in (
        (m.Suppression(8), m.Rounding(5)),
        (m.RandomRounding(3), m.Suppression(6)),
        (m.Suppression(3), m.Rounding(20)),
        (m.RandomRounding(4), m.RandomRounding(3)),
    ):
        one, other = (chances(step) for step in steps)
        for report in [*y[:40].astype(float), np.nan]:
            column = -1 if np.isnan(report) else int(report)
            law = law_of(m.Composed(*steps))
            same(np.exp(law.log_kernel(np.full(40, report), y[:40])), (one @ other)[:40, column], 1e-12, 1e-12)


def chances(mechanism):
    """P(report | count) of counts 0 to 69 and none, in that order, by its own law."""
    counts, law = np.arange(70), law_of(mechanism)
    found = np.zeros((71, 71))
    found[-1, -1] = 1.0
    for place, report in enumerate([*counts.astype(float), np.nan]):
        refused = any(broken.any() for _, broken in law.broken(np.array([report])))
        if not refused and (place < 70 or mechanism.absent):
            found[:70, place] = np.exp(law.log_kernel(np.full(70, report), counts))
    return found


def poisson(mu):
    """Poisson(mu) over 0 to 59, at 0 too."""
    return stats.poisson.pmf(np.arange(60), mu) if mu > 0 else np.eye(60)[0]


@formula("14.5")
def tokens():
    r"""\begin{aligned} w(n_1, \ldots, n_l) & \propto \frac{a}{l!} \prod_i \frac{\nu_{n_i} k(n_i)}{k(0)}, \cr a & =
    \frac{k(0)^{l - 1} \, k\big( \sum_i n_i \big)}{\prod_i k(n_i)} \le 1 \end{aligned}
    """
    most = 7
    for (name, k), mu, p in product(kernels().items(), (0.4, 3.0), (None, 0.3, 0.9)):
        q, found = 1.0 if p is None else -log1p(-p), np.zeros(most)
        for l in range(most):  # noqa: E741
            for sizes in product([n for n in range(1, most) if p is not None or n == 1], repeat=l):
                if sum(sizes) >= most or any(k[n] == 0.0 for n in sizes):
                    continue
                each = np.prod([(mu if p is None else mu * p**n / (n * q)) * k[n] / k[0] for n in sizes])
                a = k[0] ** (l - 1.0) * k[sum(sizes)] / np.prod([k[n] for n in sizes])
                assert a <= 1.0 + 1e-12
                assert l > 1 or abs(a - 1.0) < 1e-12
                assert name != "geometric, r <= 0" or abs(a - 1.0) < 1e-9
                found[sum(sizes)] += each * a / factorial(l)
        y = np.arange(most)
        free = stats.poisson.pmf(y, mu) if p is None else stats.nbinom.pmf(y, mu / q, 1.0 - p)
        same(found / found[0], free * k[:most] / (free[0] * k[0]), 1e-9, 1e-15)
    for alpha, r, p in product((0.1, 0.6, 0.9), (0, 1, 3), (0.05, 0.5, 0.9)):
        n, mass = np.arange(1.0, 3000.0), np.empty((1, r + 1, 1))
        gain = np.minimum(n, 2 * r - n)
        fill_masses(np.array([alpha]), np.array([p]), mass)
        same(mass[0, -1, 0], (p**n / n * alpha**-gain).sum())
