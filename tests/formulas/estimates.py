"""Checks of sections 10 to 12: where chains begin, learned prior rates, and marginal maximum likelihood."""

from itertools import product
from math import exp

import numpy as np
from scipy import stats
from scipy.optimize import nnls

import countveil as cv
from countveil.fit.totals import error_of
from countveil.inference import cavi, em
from countveil.inference.facts import facts_of
from countveil.inference.plan import Plan
from countveil.inference.starts.alternating import least_squares
from countveil.inference.starts.embedding import explained_by, scaled
from countveil.inference.streams import Streams
from countveil.kernels.grouping import anneal
from countveil.kernels.start import multiply
from countveil.models.priors import GammaPrior, typical_prior, typical_scale
from tests.formulas.arrays import data, ratios
from tests.formulas.brute import ALPHAS, NOISE, formula, gamma_logpdf, noise_pmf, same, slope
from tests.joint import SERIAL, small_model

STREAMS = Streams.of_chain(1, 0)


def mean_given(count, alpha, function):
    """E[function(r) | y]."""
    return noise_pmf(NOISE, alpha) @ function(NOISE + count)


@formula("10.1")
def debiased_reports():
    r"""T = (1 + \alpha) \Big( \max(r, 0) - \frac{\alpha}{1 - \alpha^2} \Big)"""
    for alpha in ALPHAS:

        def debiased(r, alpha=alpha):
            return (1 + alpha) * (np.maximum(r, 0) - alpha / (1 - alpha**2))

        at_zero, at_one = (mean_given(count, alpha, debiased) for count in (0, 1))
        same([at_zero, at_one], [0.0, 1.0], atol=1e-9)
        matrix = cv.PrivatizedCounts([[4, -1, 0, 2]], alpha)
        same(start_matrix(matrix), debiased(np.array([[4, -1, 0, 2]])), 1e-12)


def start_matrix(observations):
    """T as the library has it, dense."""
    facts, (n_rows, n_columns) = facts_of(observations), observations.shape
    product = np.tile(-facts.bias_d[:, None], n_columns)
    given = observations.noise.kernel, observations.block(slice(0, n_rows)), facts.fill_d, facts.fill_v
    multiply(*given, np.eye(n_columns), product, False, True)
    return product


@formula("10.2")
def mean_of_debiased_reports():
    r"""\mathrm{E}[T \mid \mu] = (1 + \alpha) \mu - \frac{\alpha}{1 - \alpha} \left( 1 - e^{-(1 - \alpha) \mu}
    \right)
    """
    for alpha, mu in product(ALPHAS, (0.01, 0.5, 3.0, 20.0)):
        counts = np.arange(120)
        means = [mean_given(y, alpha, lambda r: np.maximum(r, 0)) for y in counts]
        brute = (1 + alpha) * (stats.poisson.pmf(counts, mu) @ means - alpha / (1 - alpha**2))
        same((1 + alpha) * mu - alpha / (1 - alpha) * (1 - exp(-(1 - alpha) * mu)), brute, 1e-7, 1e-10)


@formula("10.3")
def column_update():
    r"""\theta_{dk} \leftarrow \max\left( 0, \; \theta_{dk} + \frac{\sum_v (T_{dv} - \sum_j \theta_{dj}
    \phi_{vj}) \, \phi_{vk}}{\sum_v \phi_{vk}^2} \right)
    """
    rng = np.random.default_rng(3)
    target, theta, phi = rng.normal(0.5, 1.0, (6, 5)), rng.random((6, 2)), rng.random((5, 2))
    for k in range(2):
        residual = target - theta @ phi.T
        printed = np.maximum(0, theta[:, k] + residual @ phi[:, k] / (phi[:, k] ** 2).sum())
        for d, value in product(range(6), np.linspace(0, 3, 301)):
            moved = theta[d].copy()
            moved[k] = value
            best = theta[d].copy()
            best[k] = printed[d]
            errors = [((target[d] - each @ phi.T) ** 2).sum() for each in (best, moved)]
            assert errors[0] <= errors[1] + 1e-12
    theta, phi = least_squares(target, np.zeros(6), 2, np.random.default_rng(1), iterations=2000)
    for k in range(2):  # where the library ends, an update changes nothing
        step = (target - theta @ phi.T) @ phi[:, k] / (phi[:, k] ** 2).sum()
        same(np.maximum(0, theta[:, k] + step), theta[:, k], 1e-6, 1e-6)


@formula("10.4")
def error_of_blocks():
    r"""|B|^2 - \sum_{cd} \frac{(\theta_c^T B \, \theta_d)^2}{|\theta_c|^2 \, |\theta_d|^2}"""
    rng = np.random.default_rng(4)
    between, theta = rng.random((6, 6)), np.eye(2)[[0, 0, 1, 1, 1, 0]] * rng.random((6, 1))
    basis = np.einsum("ic,jd->ijcd", theta, theta).reshape(36, 4)
    brute = np.linalg.lstsq(basis, between.ravel(), rcond=None)[1].sum()
    square = (theta**2).sum(axis=0)
    printed = (between**2).sum() - ((theta.T @ between @ theta) ** 2 / np.outer(square, square)).sum()
    same(printed, brute, 1e-9, 1e-9)
    explained = explained_by(lambda x, y: (between @ x, between.T @ y), theta, True)
    same((between**2).sum() - explained, brute, 1e-9, 1e-9)


@formula("10.5")
def what_annealed_blocks_explain():
    r"""\frac{1}{2} \sum_{cd} \frac{\max(A_{cd}, 0)^2}{Q_{cd}}, \quad A_{cd} = \sum_{ij} w_i w_j L_{ij}, \quad
    Q_{cd} = \sum_{ij} w_i^2 w_j^2
    """
    rng, group, off = np.random.default_rng(5), np.array([0, 0, 1, 1, 1, 0]), ~np.eye(6, dtype=bool)
    between, size = rng.normal(0.3, 1.0, (6, 6)), rng.random(6) + 0.1
    raised = size + size.mean()
    scaled_cells = between / np.sqrt(np.outer(raised, raised))
    scaled_cells /= scaled_cells[off].std()
    weight, printed, brute = size / np.sqrt(raised), 0.0, 0.0
    for c, d in product(range(2), repeat=2):
        block = np.outer(group == c, group == d) & off
        basis = np.outer(weight, weight)[block]
        left = nnls(basis[:, None], scaled_cells[block])[1] ** 2
        brute += 0.5 * ((scaled_cells[block] ** 2).sum() - left)
        printed += 0.5 * max((basis * scaled_cells[block]).sum(), 0) ** 2 / (basis**2).sum()
    same(printed, brute, 1e-9, 1e-9)
    cells, square = scaled(between, size, True)
    rest = group.copy(), 2, np.empty(0), np.empty((0, 6))
    same(anneal(cells, np.ascontiguousarray(cells.T), square, *rest), printed, 1e-9, 1e-9)


@formula("11.1")
def size_of_learned_rates():
    r"""b_k \sim \mathrm{Gamma}(1, s / a), \quad s = (M / K)^{1 / F}"""
    for a, mean, n_terms, n_factors in product((0.1, 1.0), (0.02, 3.0), (5, 40), (2, 4)):
        s = (mean / n_terms) ** (1 / n_factors)
        b = stats.gamma(1, scale=a / s).mean()
        same(n_terms * (a / b) ** n_factors, mean)  # what the model expects at that rate
        same(typical_scale(mean, n_terms, n_factors), s)
        assert typical_prior(a, None, s) == GammaPrior(a, a / s, learned=True)


def log_joint_of_rate(b, theta, a, s):
    """log of the joint density of a component's rate and its entries."""
    return gamma_logpdf(b, 1.0, s / a) + sum(gamma_logpdf(x, a, b) for x in theta)


@formula("11.2")
def learned_rate():
    r"""b_k \mid \theta \sim \mathrm{Gamma}\Big( 1 + a D, \; s / a + \sum_d \theta_{dk} \Big)"""
    a, s, theta = 0.3, 0.8, np.array([0.2, 1.9, 0.6, 3.1])
    b = np.linspace(0.05, 4.0, 9)
    difference = log_joint_of_rate(b, theta, a, s) - gamma_logpdf(b, 1 + a * 4, s / a + theta.sum())
    same(difference, np.full(9, difference[0]), 1e-9)
    prior, rng = GammaPrior(a, a / s, learned=True), np.random.default_rng(1)
    factor = small_model((4, 3), 1, a, a / s, learned=True).factors[0]
    drawn = [prior.draw_hypers(factor, np.ones((1, 1)), 1.0, theta[:, None], rng)[0, 0] for _ in range(5000)]
    law = stats.gamma(1 + a * 4, scale=1 / (s / a + theta.sum()))
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-4


@formula("11.3")
def law_of_a_learned_rate():
    r"""Q(b_k) = \mathrm{Gamma}\Big( 1 + a D, \; s / a + \sum_d \mathrm{E}[\theta_{dk}] \Big)"""
    a, s = 0.3, 0.8
    shape, rate = np.array([0.5, 2.0, 1.1]), np.array([1.5, 0.9, 2.2])
    b = np.linspace(0.05, 4.0, 9)
    expected = gamma_logpdf(b, 1.0, s / a)
    for each in zip(shape, rate, strict=True):  # E of the terms with b, by quadrature; the rest is constant
        mean = stats.gamma(each[0], scale=1 / each[1]).expect()
        expected = expected + a * np.log(b) - b * mean
    printed = gamma_logpdf(b, 1 + a * 3, s / a + (shape / rate).sum())
    same(expected - printed, np.full(9, (expected - printed)[0]), 1e-6)
    model = small_model((3, 4), 1, a, a / s, learned=True)
    hypers = cavi.initial_hypers(model)
    means = [(shape / rate)[:, None], np.ones((4, 1))]
    found = cavi.update_hypers(model, [1.0, 1.0], hypers, means)[0].ravel()
    same(found, [1 + a * 3, s / a + (shape / rate).sum()])


def expected_log_joint(d, theta, phi, ratio):
    """What a step of expectation maximisation ascends: E log p of the counts, split by theta and phi as they were."""
    counts = ratio[..., None] * d.theta[:, None] * d.phi[None]
    return (counts * np.log(theta[:, None] * phi[None])).sum() - (d.exposures * (theta @ phi.T)).sum()


def log_likelihood(d, theta):
    """log P of the reports, from brute-force sums over their counts."""
    mu, total = theta @ d.phi.T, 0.0
    counts = np.arange(80)
    for i in np.ndindex(mu.shape):
        if not d.mask[i]:
            total += np.log(stats.poisson.pmf(counts, mu[i]) @ noise_pmf(d.reports[i] - counts, d.alpha[i[0], 0]))
    return total


def multiplied(d, theta, penalty=0.0):
    """(12.4) for theta at a given x; (12.2) at 0."""
    return theta * (ratios(d, theta @ d.phi.T) @ d.phi) / ((d.exposures + penalty) @ d.phi)


@formula("12.1")
def ratio_of_counts():
    r"""R_{dv} = \frac{\mathrm{E}[y \mid r_{dv}, \mu_{dv}]}{\mu_{dv}}, \quad r_{dv} > 0"""
    d = data()
    r = ratios(d, d.mu)
    for i in zip(*np.nonzero(d.positive), strict=True):
        counts = np.arange(80)
        chance = stats.poisson.pmf(counts, d.mu[i]) * noise_pmf(d.reports[i] - counts, d.alpha[i[0], 0])
        same(r[i], chance @ counts / chance.sum() / d.mu[i])
        same(r[i], cv.expected_true_counts(d.reports[i], d.mu[i], d.alpha[i[0], 0]) / d.mu[i])


@formula("12.2")
def multiplicative_update():
    r"""\theta_{dk} \leftarrow \theta_{dk} \, \frac{\sum_{v: \, r_{dv} > 0} R_{dv} \phi_{vk}}{\sum_v e_{dv}
    \phi_{vk}}
    """
    d = data()
    ratio, printed = ratios(d, d.mu), multiplied(d, d.theta)
    for k in product(range(3), range(2)):

        def moved(value, k=k):
            theta = printed.copy()
            theta[k] = value
            return expected_log_joint(d, theta, d.phi, ratio)

        same(slope(moved, printed[k], 1e-3), 0.0, atol=1e-8)
    steps = [d.theta, printed, multiplied(d, printed)]
    first, second, third = (log_likelihood(d, theta) for theta in steps)
    assert first < second < third
    state = em.State((d.theta, d.phi), 0)
    same(
        em.step(state, Plan(d.observations(), small_model((3, 4))), small_model((3, 4)), STREAMS, SERIAL)[0].factors[0],
        printed,
        1e-9,
    )


@formula("12.3")
def unbiased_counts():
    r"""u(r) = \begin{cases} r & \text{if } r > 0 \cr -\alpha / (1 - \alpha) & \text{if } r \le 0 \end{cases}
    \qquad \mathrm{E}[u(r) \mid y] = y
    """
    for alpha, y in product(ALPHAS, (0, 1, 5, 40)):

        def unbiased(r, alpha=alpha):
            return np.where(r > 0, r, -alpha / (1 - alpha))

        same(mean_given(y, alpha, unbiased), y, 1e-9, 1e-9)
        reports = np.array([[3, -2, 0, 7]])
        found = facts_of(cv.PrivatizedCounts(reports, alpha)).total_count
        same(found, unbiased(reports).sum(), 1e-12)


@formula("12.4")
def held_total():
    r"""\theta_{dk} \leftarrow \theta_{dk} \, \frac{\sum_{v: \, r_{dv} > 0} R_{dv} \phi_{vk}}{\sum_v (e_{dv} +
    x) \, \phi_{vk}}, \quad \sum_{dv} \mu_{dv} = \sum_{dv} u(r_{dv})
    """
    d = data(masked=False)
    ratio = ratios(d, d.mu)
    printed = multiplied(d, d.theta, 0.3)
    for k in product(range(3), range(2)):

        def penalised(value, k=k):
            theta = printed.copy()
            theta[k] = value
            return expected_log_joint(d, theta, d.phi, ratio) - 0.3 * (theta @ d.phi.T).sum()

        same(slope(penalised, printed[k], 1e-3), 0.0, atol=1e-8)
    observations = cv.PrivatizedCounts(np.where(d.reports > 2, 0, d.reports), d.alpha[:, 0])
    held, model = em.HeldTotal(observations, small_model((3, 4))), small_model((3, 4))
    state, _ = held.step(em.State((d.theta, d.phi), 0), Plan(observations, model), model, STREAMS, SERIAL)
    assert state.penalty > 0
    same((state.factors[0] @ state.factors[1].T).sum(), max(facts_of(observations).total_count, 3e-3), 1e-9)


@formula("12.5")
def variance_of_the_estimate():
    r"""v(r) = \begin{cases} 2 \alpha / (1 - \alpha)^2 & \text{if } r > 0 \cr \alpha / (1 - \alpha)^2 & \text{if
    } r \le 0 \end{cases} \qquad \mathrm{E}[v(r) \mid y] = \mathrm{Var}[u(r) \mid y]
    """
    for alpha, y in product(ALPHAS, (0, 1, 5, 40)):

        def squared(r, alpha=alpha, y=y):
            return (np.where(r > 0, r, -alpha / (1 - alpha)) - y) ** 2

        def estimate(r, alpha=alpha):
            return np.where(r > 0, 2.0, 1.0) * alpha / (1 - alpha) ** 2

        same(mean_given(y, alpha, estimate), mean_given(y, alpha, squared), 1e-7, 1e-9)
        reports = np.array([[3, -2, 0, 7]])
        same(error_of(cv.PrivatizedCounts(reports, alpha)) ** 2, estimate(reports).sum(), 1e-12)


@formula("12.6")
def sums_of_counts_given_reports():
    r"""\begin{aligned} \mathrm{E}\big[ u(r) - \mathrm{E}[y \mid r] \big] & = 0, \cr \mathrm{Var}\big[ u(r) -
    \mathrm{E}[y \mid r] \big] & = \mathrm{E}[v(r)] - \mathrm{E}\big[ \mathrm{Var}[y \mid r] \big] \le
    \mathrm{E}[v(r)] \end{aligned}
    """
    for alpha, mu in product(ALPHAS[:3], (0.3, 2.0, 15.0)):
        counts, reports = np.arange(80), np.arange(-400, 500)
        joint = noise_pmf(reports[None, :] - counts[:, None], alpha) * stats.poisson.pmf(counts, mu)[:, None]
        possible = joint.sum(axis=0) > 0  # the joint law of far reports is zero in double precision
        reports, joint = reports[possible], joint[:, possible]
        weight = joint.sum(axis=0)
        mean = counts @ joint / weight
        variance = counts**2 @ joint / weight - mean**2
        u = np.where(reports > 0, reports, -alpha / (1 - alpha))
        v = np.where(reports > 0, 2.0, 1.0) * alpha / (1 - alpha) ** 2
        same(weight @ (u - mean), 0.0, atol=1e-6)
        same(weight @ (u - mean) ** 2, weight @ (v - variance), 1e-6, 1e-9)
        assert weight @ variance >= 0.0
