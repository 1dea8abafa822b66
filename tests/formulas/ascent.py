"""Checks of section 5: the optimum of every law in coordinate ascent, and the bound."""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import integrate, special, stats

import countveil as cv
from countveil.inference import cavi
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from tests.formulas.arrays import A, B, Y, data, ratios, splits, w
from tests.formulas.brute import formula, noise_pmf, same, slope
from tests.joint import SERIAL, small_model


class Q(NamedTuple):
    """Gamma parameters of both factors, (shape, rate) each."""

    theta: tuple[np.ndarray, np.ndarray]
    phi: tuple[np.ndarray, np.ndarray]


def some_q():
    """Any Q."""
    rng = np.random.default_rng(8)
    return Q(*[(rng.gamma(4.0, 0.5, shape), rng.gamma(4.0, 0.5, shape)) for shape in ((3, 2), (4, 2))])


def log_means(q):
    """E log of a factor by quadrature of its density."""
    found = np.empty_like(q[0])
    for i in np.ndindex(found.shape):
        density = stats.gamma(q[0][i], scale=1 / q[1][i])
        found[i] = integrate.quad(lambda t, law=density: t * law.pdf(np.exp(t)) * np.exp(t), -80, 12, limit=500)[0]
    return found


def geometric(q):
    """G of a factor by (5.1)."""
    return np.exp(special.psi(q[0])) / q[1]


@formula("5.1")
def geometric_mean():
    r"""G[x] = \exp(\mathrm{E}[\log x]) = \frac{\exp(\psi(\text{shape}))}{\text{rate}}, \quad x \sim
    \mathrm{Gamma}(\text{shape}, \text{rate})
    """
    q = some_q()
    same(geometric(q.theta), np.exp(log_means(q.theta)), 1e-7)
    model = small_model((3, 4), 2, A, B)
    library = cavi.geometric_means((q.theta[0], q.phi[0]), (q.theta[1], q.phi[1]), model)
    same(library[0], geometric(q.theta))


def best_count_law(d, q, i):
    """The best Q of a cell's split: exp E log of the joint, normalised, over all splits."""
    y = splits(40)
    log_p = y @ (np.log(geometric(q.theta)[i[0]]) + np.log(geometric(q.phi)[i[1]]))
    log_p = (
        log_p - special.gammaln(y + 1.0).sum(axis=1) + np.log(noise_pmf(d.reports[i] - y.sum(axis=1), d.alpha[i[0], 0]))
    )
    return y, np.exp(log_p - special.logsumexp(log_p))


@formula("5.2")
def rate_of_the_best_count_law():
    r"""m_{dv} = \sum_k G[\theta_{dk}] \, G[\phi_{vk}]"""
    d, q = data(), some_q()
    m = geometric(q.theta) @ geometric(q.phi).T
    for i in zip(*np.nonzero(d.positive), strict=True):
        y, chance = best_count_law(d, q, i)
        printed = w(np.arange(41), d.reports[i], m[i], d.alpha[i[0], 0])
        same(printed / printed.sum(), np.bincount(y.sum(axis=1), chance), 1e-9, 1e-14)


@formula("5.3")
def ratio_of_counts():
    r"""R_{dv} = \frac{\mathrm{E}[y \mid r_{dv}, m_{dv}]}{m_{dv}}, \quad r_{dv} > 0"""
    d, q = data(), some_q()
    m = geometric(q.theta) @ geometric(q.phi).T
    for i in zip(*np.nonzero(d.positive), strict=True):
        y, chance = best_count_law(d, q, i)
        same(ratios(d, m)[i], chance @ y.sum(axis=1) / m[i])
        same(ratios(d, m)[i], cv.expected_true_counts(d.reports[i], m[i], d.alpha[i[0], 0]) / m[i])


def bound(d, q, counts):
    """The evidence lower bound with these laws of the splits, as E log p - E log q term by term."""
    log_theta, log_phi = (special.psi(s) - np.log(r) for s, r in q)
    theta, phi = (s / r for s, r in q)
    total = 0.0
    for i in np.ndindex(d.reports.shape):
        rate, alpha = theta[i[0]] @ phi[i[1]], d.alpha[i[0], 0]
        if d.positive[i]:
            y, chance = counts[i]
            log_p = y @ (log_theta[i[0]] + log_phi[i[1]]) - special.gammaln(y + 1.0).sum(axis=1) - rate
            log_p = log_p + np.log(noise_pmf(d.reports[i] - y.sum(axis=1), alpha))
            seen = chance > 0
            total += chance[seen] @ (log_p - np.log(np.where(seen, chance, 1.0)))[seen]
        elif not d.mask[i]:
            total += -np.log1p(alpha) - (1 - alpha) * rate
    for shape, rate in q:
        law, log_x = stats.gamma(shape, scale=1 / rate), special.psi(shape) - np.log(rate)
        prior = A * np.log(B) - special.gammaln(A) + (A - 1) * log_x - B * shape / rate
        total += (prior + law.entropy()).sum()
    return float(total)


def optimum():
    """(data, Q, the best laws of the splits, R, printed shape and rate of theta)."""
    d, q = data(), some_q()
    counts = {i: best_count_law(d, q, i) for i in zip(*np.nonzero(d.positive), strict=True)}
    g_theta, g_phi = geometric(q.theta), geometric(q.phi)
    shape = A + g_theta * (ratios(d, g_theta @ g_phi.T) @ g_phi)
    rate = B + d.exposures @ (q.phi[0] / q.phi[1])
    return d, q, counts, shape, rate


def check_slope(which):
    """The bound is stationary at the printed shapes and rates of theta, and the library goes there."""
    d, q, counts, shape, rate = optimum()
    for k in product(range(3), range(2)):

        def moved(value, k=k):
            parameters = [shape.copy(), rate.copy()]
            parameters[which][k] = value
            return bound(d, q._replace(theta=tuple(parameters)), counts)

        at = (shape, rate)[which][k]
        same(slope(moved, at, 1e-3), 0.0, atol=1e-7)
        assert abs(slope(moved, 1.01 * at, 1e-3)) > 1e-5
    same(step_of_cavi(d, q)[0][which], (shape, rate)[which], 1e-9)


def step_of_cavi(d, q):
    """((theta's shape, theta's rate), objective) of one iteration of the library."""
    model = small_model(d.reports.shape, 2, A, B)
    state = cavi.State((q.theta[0], q.phi[0]), (q.theta[1], q.phi[1]), cavi.initial_hypers(model), 0)
    new, info = cavi.step(state, Plan(d.observations(), model), model, Streams.of_chain(1, 0), SERIAL)
    return (new.shapes[0], new.rates[0]), info.objective


@formula("5.4")
def shape_of_theta():
    r"""\text{shape} = a + G[\theta_{dk}] \sum_{v: \, r_{dv} > 0} R_{dv} \, G[\phi_{vk}]"""
    check_slope(0)


@formula("5.5")
def rate_of_theta():
    r"""\text{rate} = b + \sum_v e_{dv} \, \mathrm{E}[\phi_{vk}]"""
    check_slope(1)


def divergence(q):
    """KL of a factor's gammas from the prior, in closed form."""
    shape, rate = q
    each = (shape - A) * special.psi(shape) - special.gammaln(shape) + special.gammaln(A)
    return (each + A * (np.log(rate) - np.log(B)) + shape * (B - rate) / rate).sum()


@formula("5.6")
def lower_bound():
    r"""\begin{aligned} \mathrm{ELBO} = {} & \sum_{r_{dv} > 0} \Big[ \log \frac{1 - \alpha}{1 + \alpha} + \log
    \sum_y w(y) \Big] - \sum_{r_{dv} \le 0} \log(1 + \alpha) - \sum_{dv} e_{dv} \, \mathrm{E}[\mu_{dv}] \cr
    & - \mathrm{KL}(Q(\theta) \,\|\, \text{prior}) - \mathrm{KL}(Q(\phi) \,\|\, \text{prior}) \end{aligned}
    """
    d, q, counts, _, _ = optimum()
    m = geometric(q.theta) @ geometric(q.phi).T
    mean = (q.theta[0] / q.theta[1]) @ (q.phi[0] / q.phi[1]).T
    printed = -(d.exposures * mean).sum() - divergence(q.theta) - divergence(q.phi)
    for i in np.ndindex(m.shape):
        alpha = d.alpha[i[0], 0]
        if d.positive[i]:
            printed += np.log((1 - alpha) / (1 + alpha)) + np.log(w(Y, d.reports[i], m[i], alpha).sum())
        elif not d.mask[i]:
            printed -= np.log1p(alpha)
    same(printed, bound(d, q, counts))
    same(printed, step_of_cavi(d, q)[1])
