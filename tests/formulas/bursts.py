"""Checks of section 13: counts that come in bursts."""

from itertools import product
from math import exp, log, log1p

import numpy as np
from scipy import stats
from scipy.special import digamma, gammaln

from countveil import ExactCounts, TopicModel
from countveil.evaluation import predictive_log_score
from countveil.laws.counts import NegativeBinomial, Unseen
from countveil.laws.counts.negative_binomial import log_density
from countveil.laws.noise.two_sided_geometric.negative_binomial import score_and_bursts
from countveil.laws.noise.two_sided_geometric.negative_binomial_sums import expectations
from tests.formulas.brute import formula, same

PS, RATES, ALPHAS = (0.05, 0.5, 0.9), (1e-3, 0.4, 6.0), (0.1, 0.5, 0.9)
MOST = 1500
Y = np.arange(MOST)


def compound(mu, p, most=120):
    """P(y) of a Poisson number of logarithmic sizes, by convolving one size after another."""
    size = np.zeros(most)
    size[1:] = -(p ** np.arange(1.0, most)) / np.arange(1, most) / log1p(-p)
    law, power = np.zeros(most), np.eye(1, most)[0]
    for bursts in range(60):
        law += stats.poisson.pmf(bursts, mu) * power
        power = np.convolve(power, size)[:most]
    return law


def negative_binomial(y, s, p):
    """The mass as printed."""
    return np.exp(gammaln(s + y) - gammaln(s) - gammaln(y + 1.0) + s * log1p(-p) + y * log(p))


def kernel(r, alpha):
    """P(r | y) of a report that is not truncated."""
    return (1 - alpha) / (1 + alpha) * alpha ** np.abs(r - Y)


def report(r, mu, alpha, p):
    """P(r | mu) by adding up."""
    return negative_binomial(Y, mu / -log1p(-p), p) @ kernel(r, alpha)


def tables(y, s):
    """P(l) of the occupied tables of y guests, guest by guest."""
    law = np.eye(1, y + 2)[0]
    for i in range(y):
        law = law * (1 - s / (s + i)) + np.roll(law, 1) * s / (s + i)
    return law


@formula("13.1")
def law():
    r"""\begin{aligned} P(y) & = \frac{\Gamma(s + y)}{\Gamma(s) \, y!} (1 - p)^s p^y, \quad s = \frac{\mu}{q},
    \quad q = -\log(1 - p), \cr \mathrm{E}[y] & = \frac{s p}{1 - p}, \quad \mathrm{Var}[y] =
    \frac{\mathrm{E}[y]}{1 - p} \end{aligned}
    """
    for p, mu in product((0.05, 0.5, 0.8), RATES):
        s = mu / -log1p(-p)
        same(negative_binomial(np.arange(60), s, p), compound(mu, p)[:60], 1e-9, 1e-14)
        mass = negative_binomial(Y, s, p)
        mean = mass @ Y
        same(s * p / (1 - p), mean)
        same(mean / (1 - p), mass @ (Y - mean) ** 2)
        same(NegativeBinomial(p).mean(mu), mean)


@formula("13.2")
def no_burst():
    r"""P(r \mid \mu) = \frac{1 - \alpha}{1 + \alpha} \, \alpha^{-r} e^{-(1 - h) \mu}, \quad h = \frac{\log(1 -
    p \alpha)}{\log(1 - p)}, \quad r \le 0
    """
    for p, mu, alpha, r in product(PS, RATES, ALPHAS, (0, -1, -4)):
        h = log(1 - p * alpha) / log(1 - p)
        same((1 - alpha) / (1 + alpha) * alpha**-r * exp(-(1 - h) * mu), report(r, mu, alpha, p))
        same(NegativeBinomial(p).exposure(alpha), 1 - h)


@formula("13.3")
def ratios():
    r"""\frac{w(y)}{w(y - 1)} = \begin{cases} \dfrac{p}{\alpha} \cdot \dfrac{s + y - 1}{y} & \text{if } y \le r
    \cr p \, \alpha \, \dfrac{s + y - 1}{y} & \text{if } y > r \end{cases}
    """
    for p, mu, alpha, r in product(PS, RATES, ALPHAS, (1, 7, 30)):
        s = mu / -log1p(-p)
        w = (negative_binomial(Y, s, p) * kernel(r, alpha))[:80]
        y = Y[1:80]
        printed = np.where(y <= r, p / alpha, p * alpha) * (s + y - 1) / y
        same(printed, w[1:] / w[:-1])
        same(exp(score_and_bursts(r, s, p, alpha)[0]), report(r, mu, alpha, p))


@formula("13.4")
def bursts():
    r"""l \mid y = \sum_{i=0}^{y - 1} \mathrm{Bernoulli}\Big( \frac{s}{s + i} \Big), \quad \mathrm{E}[l \mid y]
    = s \, (\psi(s + y) - \psi(s))
    """
    for p, mu in product((0.05, 0.5, 0.8), RATES):
        s, size = mu / -log1p(-p), np.zeros(14)
        size[1:] = -(p ** np.arange(1.0, 14)) / np.arange(1, 14) / log1p(-p)
        power, joint = np.eye(1, 14)[0], []
        for number in range(14):
            joint.append(stats.poisson.pmf(number, mu) * power)
            power = np.convolve(power, size)[:14]
        for y in (1, 2, 5, 12):
            bayes = np.array(joint)[:, y] / np.array(joint)[:, y].sum()
            same(tables(y, s)[:14], bayes[: y + 2], 1e-8, 1e-13)
            same(s * (digamma(s + y) - digamma(s)), bayes @ np.arange(14), 1e-8)


@formula("13.5")
def gradient():
    r"""\frac{d}{d \mu} \log P(r \mid \mu) = \frac{\mathrm{E}[l \mid r, \mu]}{\mu} - 1"""
    for p, mu, alpha, r in product(PS, RATES, ALPHAS, (-3, 0, 1, 9)):
        s = mu / -log1p(-p)
        weights = negative_binomial(Y, s, p) * kernel(r, alpha)
        expected = weights @ (s * (digamma(s + Y) - digamma(s))) / weights.sum()
        low, high = (log(report(r, mu * (1 + step), alpha, p)) for step in (-1e-5, 1e-5))
        same(expected / mu - 1, (high - low) / (2e-5 * mu), 1e-6, 1e-6)
        if r > 0:
            same(score_and_bursts(r, s, p, alpha)[1], expected)


@formula("13.6")
def conditional():
    r"""p(p \mid \text{all else}) = \text{const} \; p^{Y + a - 1} (1 - p)^{b - 1} q^{-L} \exp\Big( -\sum_\alpha
    (1 - h(p, \alpha)) \, M(\alpha) \Big)
    """
    a, b, seen, parts = 2.0, 3.0, ((4, 0.7), (1, 0.2), (9, 2.0)), (2, 1, 5)
    unseen = ((0.5, 0.3), (0.5, 1.1), (0.8, 0.4))
    total, number = sum(y for y, _ in seen), sum(parts)
    found, brute = [], []
    for p in np.linspace(0.05, 0.95, 19):
        q, levels = -log1p(-p), (0.5, 0.8)
        exposed = sum((1 - log(1 - p * x) / log(1 - p)) * sum(mu for alpha, mu in unseen if alpha == x) for x in levels)
        printed = p ** (total + a - 1) * (1 - p) ** (b - 1) * q**-number * exp(-exposed)
        joint = stats.beta(a, b).pdf(p) * np.prod([report(0, mu, alpha, p) for alpha, mu in unseen])
        for (y, mu), l in zip(seen, parts, strict=True):  # noqa: E741
            s = mu / q
            joint *= negative_binomial(y, s, p) * tables(y, s)[l]
        found.append(printed)
        brute.append(joint)
    same(np.array(found) / sum(found), np.array(brute) / sum(brute))
    logits = np.linspace(-2.0, 2.0, 19)
    p = 1 / (1 + np.exp(-logits))
    sums = Unseen(np.array([0.5, 0.8]), np.repeat([[1.4], [0.4]], 19, axis=1))
    library = np.exp(log_density(logits, np.full(19, total), np.full(19, number), sums, a, b))
    exposed = sum((1 - np.log(1 - p * x) / np.log(1 - p)) * m for x, m in ((0.5, 1.4), (0.8, 0.4)))
    printed = p ** (total + a) * (1 - p) ** b * (-np.log(1 - p)) ** -float(number) * np.exp(-exposed)
    same(library / library.sum(), printed / printed.sum())


@formula("13.7")
def predictive():
    r"""\text{score} = \frac{\sum_i \log\big( \text{mean over draws of } P(y_i \mid \text{draw}) \big)}{\sum_i
    y_i}
    """
    y, options = np.array([[3, 0]]), {"seed": 1, "threads": 1, "progress": False}
    fit = TopicModel(1, likelihood="negative-binomial", dispersion="global", chains=1, draws=2, tune=0, **options)
    draws = fit.fit(ExactCounts(y)).posterior["posterior"]
    draws["theta"][:] = 1.0
    draws["phi"][:] = np.array([[[[0.4, 2.0]], [[0.9, 1.0]]]])
    draws["p"][:] = np.array([[0.5, 0.8]])
    masses = [negative_binomial(y, phi.T / -np.log1p(-p), float(p[0])) for (_, phi), (p,) in fit._reader.draws()]
    same(predictive_log_score(y, fit), np.log(np.mean(masses, axis=0)).sum() / y.sum())


@formula("13.8")
def gradient_in_p():
    r"""\frac{d}{d p} \log P(r \mid \mu) = \frac{\mathrm{E}[y \mid r, \mu]}{p} - \frac{\mathrm{E}[l \mid r,
    \mu]}{(1 - p) \, q}
    """
    for p, mu, alpha, r in product(PS, RATES, ALPHAS, (-3, 0, 1, 9)):
        q, h = -log1p(-p), 1e-5 * (1 - p)
        s = mu / q
        weights = negative_binomial(Y, s, p) * kernel(r, alpha)
        weights /= weights.sum()
        counts, number = weights @ Y, weights @ (s * (digamma(s + Y) - digamma(s)))
        low, high = (log(report(r, mu, alpha, p + step)) for step in (-h, h))
        same(counts / p - number / ((1 - p) * q), (high - low) / (2 * h), 1e-5, 1e-5)
        if r > 0:
            same(expectations(r, s, p, alpha)[1], counts)


@formula("13.9")
def dispersion():
    r"""p \leftarrow \operatorname*{arg\,max}_p \Big[ Y \log p - L \log q - \sum_\alpha (1 - h(p, \alpha)) \,
    M(\alpha) \Big]
    """
    p = np.linspace(0.0005, 0.9995, 1999)
    q = -np.log1p(-p)
    for total, number, (first, second) in ((14.0, 8.0, (1.4, 0.4)), (30.0, 2.5, (2.0, 9.0)), (3.0, 2.9, (4.0, 1.0))):
        exposed = sum((1 - np.log1p(-p * x) / np.log1p(-p)) * m for x, m in ((0.5, first), (0.8, second)))
        best = p[np.argmax(total * np.log(p) - number * np.log(q) - exposed)]
        unseen = Unseen(np.array([0.5, 0.8]), np.array([[first], [second]]))
        start = (np.array([0.5]),)
        found = NegativeBinomial("global").maximised(start, np.array([total, number]), unseen, np.zeros(1))
        same(found[0][0], best, 0.0, 0.0006)
