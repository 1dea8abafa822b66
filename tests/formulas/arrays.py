"""Checks of sections 3 and 4: arrays of reports, and the conditionals of collapsed Gibbs sampling."""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import special, stats

import countveil as cv
from countveil.inference import gibbs
from countveil.inference.factors import row_exposures
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.laws.counts import POISSON
from countveil.laws.counts.poisson import PoissonCounts
from countveil.laws.noise.two_sided_geometric.noise import TwoSidedGeometricPoisson
from tests.formulas.brute import formula, gamma_logpdf, noise_pmf, same, slope
from tests.joint import SERIAL, small_model

A, B = 0.7, 1.3  # shape and rate of the priors
LAW = TwoSidedGeometricPoisson(PoissonCounts())
Y = np.arange(60)


class Data(NamedTuple):
    """A small array of reports with a level per row, a mask, and factors with K = 2."""

    reports: np.ndarray
    alpha: np.ndarray  # (D, 1)
    mask: np.ndarray
    theta: np.ndarray
    phi: np.ndarray

    @property
    def mu(self):
        return self.theta @ self.phi.T

    @property
    def positive(self):
        return (self.reports > 0) & ~self.mask

    @property
    def exposures(self):
        """e_dv by (3.2)."""
        e = np.where(self.reports > 0, 1.0, 1 - self.alpha)
        return np.where(self.mask, 0.0, e)

    def observations(self):
        return cv.PrivatizedCounts(self.reports, self.alpha[:, 0], self.mask)


def data(masked=True):
    """The array of all checks."""
    rng = np.random.default_rng(5)
    reports = np.array([[3, -1, 0, 2], [0, 5, -4, 1], [1, 1, -2, 7]])
    mask = np.zeros(reports.shape, dtype=bool)
    mask[[0, 1], [3, 2]] = masked
    alpha = np.array([[0.1], [np.exp(-1)], [0.7]])
    return Data(reports, alpha, mask, rng.gamma(2.0, 0.5, (3, 2)), rng.gamma(2.0, 0.5, (4, 2)))


def log_joint(d, mu, y):
    """log P(r, y | mu) from first principles: y on the positive reports, the sum over all counts elsewhere."""
    total = 0.0
    for i in np.ndindex(d.reports.shape):
        if d.mask[i]:
            continue
        noise, alpha = noise_pmf(d.reports[i] - Y, d.alpha[i[0], 0]), d.alpha[i[0], 0]
        if d.positive[i]:
            chance = stats.poisson.pmf(y[i], mu[i]) * noise_pmf(d.reports[i] - y[i], alpha)
        else:
            chance = stats.poisson.pmf(Y, mu[i]) @ noise
        total += np.log(chance)
    return float(total)


@formula("3.1")
def counts_and_exposures():
    r"""\log P(r, y \mid \mu) = \sum_{r_i > 0} \left[ y_i \log \mu_i - \log y_i! + |r_i - y_i| \log \alpha_i
    \right] - \sum_i e_i \mu_i + \text{const}
    """
    d, rng, found = data(), np.random.default_rng(1), []
    for _ in range(8):
        mu, y = rng.gamma(1.0, 2.0, d.reports.shape), rng.poisson(3.0, d.reports.shape)
        each = y * np.log(mu) - special.gammaln(y + 1.0) + np.abs(d.reports - y) * np.log(d.alpha)
        found.append(each[d.positive].sum() - (d.exposures * mu).sum() - log_joint(d, mu, y))
    same(found, np.full(8, found[0]), 1e-9)


@formula("3.2")
def exposures():
    r"""e_i = \begin{cases} 1 & \text{if } r_i > 0 \cr 1 - \alpha_i & \text{if } r_i \le 0 \cr 0 & \text{if
    masked} \end{cases}
    """
    d = data()
    mu, y = d.mu, np.maximum(d.reports, 0)
    for i in np.ndindex(mu.shape):

        def brute(rate, i=i):
            return log_joint(d, np.where(np.arange(12).reshape(3, 4) == i[0] * 4 + i[1], rate, mu), y)

        counted = y[i] / mu[i] if d.positive[i] else 0.0  # what y_i log mu_i adds to the slope
        same(d.exposures[i], counted - slope(brute, mu[i]), 1e-7, 1e-8)
    each = [row_exposures(d.observations(), LAW, np.eye(4)[:, [v]], SERIAL)[:, 0] for v in range(4)]
    same(np.stack(each, axis=1), d.exposures, atol=1e-15)


@formula("3.3")
def sums_of_exposures():
    r"""\sum_v e_{dv} \phi_{vk} = (1 - \alpha_d) \sum_v \phi_{vk} + \alpha_d \sum_{v: \, r_{dv} > 0} \phi_{vk} -
    (1 - \alpha_d) \sum_{v \text{ masked}} \phi_{vk}
    """
    d = data()
    printed = (1 - d.alpha) * d.phi.sum(axis=0) + d.alpha * (d.positive @ d.phi) - (1 - d.alpha) * (d.mask @ d.phi)
    assert (d.mask & (d.reports > 0)).any(), "no masked report is positive, to show that it does not count as one"
    same(printed, d.exposures @ d.phi)
    same(printed, row_exposures(d.observations(), LAW, d.phi, SERIAL))


@formula("3.4")
def known_exposures():
    r"""\log P(r, y \mid \mu) = \sum_{r_i > 0} \left[ y_i \log(w_i \mu_i) - \log y_i! + |r_i - y_i| \log
    \alpha_i \right] - \sum_i w_i e_i \mu_i + \text{const}
    """
    d, rng, found = data(), np.random.default_rng(1), []
    w = np.exp(rng.normal(0.0, 1.0, d.reports.shape))
    for _ in range(8):
        mu, y = rng.gamma(1.0, 2.0, d.reports.shape), rng.poisson(3.0, d.reports.shape)
        each = y * np.log(w * mu) - special.gammaln(y + 1.0) + np.abs(d.reports - y) * np.log(d.alpha)
        found.append(each[d.positive].sum() - (w * d.exposures * mu).sum() - log_joint(d, w * mu, y))
    same(found, np.full(8, found[0]), 1e-9)
    exposed = cv.PrivatizedCounts(d.reports, d.alpha[:, 0], d.mask, exposure=w)
    same((w * d.exposures) @ d.phi, row_exposures(exposed, exposed.law(POISSON), d.phi, SERIAL))


def splits(most):
    """All (y_1, y_2) with a sum of at most ``most``."""
    return np.array([(i, n - i) for n in range(most + 1) for i in range(n + 1)])


def split_law(r, alpha, shares):
    """All splits and their chances given a report, from independent Poisson counts of two components."""
    y = splits(40)
    weights = stats.poisson.pmf(y, shares).prod(axis=1) * noise_pmf(r - y.sum(axis=1), alpha)
    return y, weights / weights.sum()


def w(y, r, mu, alpha):
    """(2.1), which other checks hold."""
    return np.exp(special.xlogy(y, mu) - special.gammaln(y + 1.0)) * alpha ** np.abs(r - y).astype(float)


@formula("4.1")
def count_of_a_cell():
    r"""P(y_{dv} \mid r_{dv}, \mu_{dv}) = \frac{w(y_{dv})}{\sum_y w(y)}, \quad r_{dv} > 0"""
    d = data()
    for i in zip(*np.nonzero(d.positive), strict=True):
        y, chance = split_law(d.reports[i], d.alpha[i[0], 0], d.theta[i[0]] * d.phi[i[1]])
        brute = np.bincount(y.sum(axis=1), chance)
        printed = w(np.arange(41), d.reports[i], d.mu[i], d.alpha[i[0], 0])
        same(printed / printed.sum(), brute, 1e-9, 1e-14)


@formula("4.2")
def split_of_a_count():
    r"""y_{dv1}, \ldots, y_{dvK} \mid y_{dv} \sim \mathrm{Multinomial}\left( y_{dv}; \frac{\theta_{d1}
    \phi_{v1}}{\mu_{dv}}, \ldots, \frac{\theta_{dK} \phi_{vK}}{\mu_{dv}} \right)
    """
    d = data()
    for i in zip(*np.nonzero(d.positive), strict=True):
        shares = d.theta[i[0]] * d.phi[i[1]]
        y, chance = split_law(d.reports[i], d.alpha[i[0], 0], shares)
        total = np.bincount(y.sum(axis=1), chance)[y.sum(axis=1)]
        likely = total > 1e-12
        printed = stats.multinomial.pmf(y, y.sum(axis=1), shares / d.mu[i])
        same(printed[likely], (chance / total)[likely], 1e-9, 1e-12)


def ratios(d, m):
    """R by its definition: the mean of w's law over the rate, where reports are positive; 0 elsewhere."""
    found = np.zeros(m.shape)
    for i in zip(*np.nonzero(d.positive), strict=True):
        weights = w(Y, d.reports[i], m[i], d.alpha[i[0], 0])
        found[i] = weights @ Y / weights.sum() / m[i]
    return found


def conditional(transposed):
    """log densities of the first entry of theta (or phi) given all else: from first principles, and as printed."""
    d = data()
    rng = np.random.default_rng(3)
    y_k = rng.poisson(d.theta[:, None] * d.phi[None]) * d.positive[..., None]
    x, brute = np.linspace(0.05, 4.0, 9), []
    for value in x:
        theta, phi = d.theta.copy(), d.phi.copy()
        (phi if transposed else theta)[0, 0] = value
        terms = theta[:, None] * phi[None]
        log_p = log_joint(d, theta @ phi.T, y_k.sum(axis=2))
        log_p += stats.multinomial.logpmf(y_k[d.positive], y_k.sum(axis=2)[d.positive], normal(terms)[d.positive]).sum()
        brute.append(log_p + gamma_logpdf(value, A, B))
    if transposed:
        shape, rate = A + y_k[:, 0, 0].sum(), B + d.exposures[:, 0] @ d.theta[:, 0]
    else:
        shape, rate = A + y_k[0, :, 0].sum(), B + d.exposures[0] @ d.phi[:, 0]
    difference = np.array(brute) - gamma_logpdf(x, shape, rate)
    same(difference, np.full(9, difference[0]), 1e-9)


def normal(terms):
    """Shares of a sum along the last axis."""
    return terms / terms.sum(axis=-1, keepdims=True)


def sweep_once(reports, theta, phi, known):
    """The free factor after one sweep of the library with the other one known."""
    model = small_model(reports.shape, 2, A, B)
    other = model.factors[known]
    factors = list(model.factors)
    factors[known] = other._replace(fixed=(theta, phi)[known])
    model = model._replace(factors=tuple(factors))
    state = gibbs.State((theta, phi), model.initial_hypers(), 0)
    observations = cv.PrivatizedCounts(reports, 0.4)
    return gibbs.step(state, Plan(observations, model), model, Streams.of_chain(1, 0), SERIAL)[0].factors[1 - known]


def expected_draw(reports, theta, phi):
    """Mean and variance of theta_0 after one sweep, by the formulas of section 4 and the enumeration of all splits."""
    mean = second = 0.0
    shares = theta[0] * phi
    laws = [split_law(r, 0.4, share) for r, share in zip(reports, shares, strict=True) if r > 0]
    exposed = np.where(np.array(reports) > 0, 1.0, 0.6) @ phi
    for choice in product(*[[(n, c) for n, c in zip(*law, strict=True) if c > 1e-7] for law in laws]):
        shape, chance = A + sum(n for n, _ in choice), np.prod([c for _, c in choice])
        mean = mean + chance * shape / (B + exposed)
        second = second + chance * shape * (shape + 1) / (B + exposed) ** 2
    return mean, second - mean**2


@formula("4.3")
def row_factor():
    r"""\theta_{dk} \mid \text{all else} \sim \mathrm{Gamma}\Big( a + \sum_v y_{dvk}, \; b + \sum_v e_{dv}
    \phi_{vk} \Big)
    """
    conditional(transposed=False)
    reports, n = [2, 1, -1], 20_000
    theta, phi = np.tile([0.6, 1.1], (n, 1)), data().phi[:3]
    drawn = sweep_once(np.tile(reports, (n, 1)), theta, phi, known=1)
    mean, variance = expected_draw(reports, theta, phi)
    assert np.abs((drawn.mean(axis=0) - mean) / np.sqrt(variance / n)).max() < 4.0


@formula("4.4")
def column_factor():
    r"""\phi_{vk} \mid \text{all else} \sim \mathrm{Gamma}\Big( a + \sum_d y_{dvk}, \; b + \sum_d e_{dv}
    \theta_{dk} \Big)
    """
    conditional(transposed=True)
    reports, n = [2, 1, -1], 20_000
    phi, theta = np.tile([0.6, 1.1], (n, 1)), data().phi[:3]
    drawn = sweep_once(np.tile(reports, (n, 1)).T, theta, phi, known=0)
    mean, variance = expected_draw(reports, phi, theta)
    assert np.abs((drawn.mean(axis=0) - mean) / np.sqrt(variance / n)).max() < 4.0
