"""Checks of section 17: gamma chains over time."""

import math
from types import SimpleNamespace

import numpy as np
from numpy.polynomial import polynomial
from scipy import integrate, special, stats
from scipy.special import gammaln

from countveil.fit.forecasts import levels_on
from countveil.kernels.dynamics import move_seasons, pass_forwards
from countveil.kernels.levels import draw_levels, move_persistence, move_smoothness
from countveil.models.priors import DatedRowsPrior, DirichletPrior, gamma_chain
from countveil.models.priors.dated_rows import OVER_TIME, Dated, log_mass_of_rows, packed
from countveil.models.priors.gamma_chain import Unscaled
from countveil.models.priors.prior import Conditional
from tests.dynamics import draw_chain
from tests.formulas.brute import formula, same
from tests.levels import log_density, means_of

PI, NU = np.array([[0.7, 0.4], [0.3, 0.6]]), np.array([0.8, 1.7])
X = np.array([[2.0, 0.3], [1.1, 0.7], [3.0, 0.1]])
M = np.array([0.5, 1.3])


@formula("17.1")
def a_chain():
    r"""x_{tk} = m \, g_t \, \theta_{tk}, \quad \theta_{tk} \sim \mathrm{Gamma}\Big( \sum_j \Pi_{kj}
    \theta_{t-1,j} + \epsilon, \; 1 \Big)
    """
    rng, (m, g) = np.random.default_rng(1), (1.5, np.array([1.0, 2.0, 0.5]))
    prior = gamma_chain.GammaChainPrior(1.0, False)
    chain = draw_chain(prior, (3, 2), rng)._replace(transition=PI, sizes=NU, scale=m, volume=g)
    same(gamma_chain.units(chain, np.ones(3)), (m * g)[:, None])
    draws, value, nothing = [], X, np.zeros((3, 2))
    for _ in range(1200):  # without data, sweeps draw from the prior
        given = gamma_chain.Unscaled(value, nothing, nothing)
        tables, value = gamma_chain.draw_tables(chain, given, rng), np.empty((3, 2))
        pass_forwards(tables.totals, tables.rate, PI, NU, chain.immigration, value, rng)
        draws.append(value)
    theta = np.array(draws)
    shapes = np.concatenate([np.broadcast_to(NU, (1200, 1, 2)), theta[:, :-1] @ PI.T + chain.immigration], axis=1)
    assert stats.kstest(stats.gamma(shapes).cdf(theta).ravel(), "uniform").pvalue > 1e-4


@formula("17.2")
def counts_made_whole():
    r"""P(m \mid x) \, x^n e^{-e x} = C \, x^{n + m} e^{-E x}, \quad m \mid x \sim \mathrm{Poisson}((E - e) \,
    x)
    """
    x, (n, e, most) = np.linspace(0.1, 5.0, 20), (3, 0.4, 1.7)
    for m in range(6):
        left = stats.poisson.logpmf(m, (most - e) * x) + n * np.log(x) - e * x
        same(np.diff(left), np.diff((n + m) * np.log(x) - most * x))


@formula("17.3")
def a_step_with_theta_integrated_out():
    r"""\begin{aligned} P(n_t \mid r) & = \frac{\Gamma(n_t + r)}{n_t! \, \Gamma(r)} (1 - e^{-\zeta_t})^{n_t}
    e^{-r \zeta_t}, \cr \zeta_t & = \log(1 + E_t + \zeta_{t+1}), \quad r = \sum_j \Pi_{kj} \theta_{t-1,j} +
    \epsilon \end{aligned}
    """
    exposure, later = np.array([[0.7, 0.7], [1.5, 1.5], [0.4, 0.4]]), 0.0
    chain = draw_chain(gamma_chain.GammaChainPrior(1.0, True), (3, 2), np.random.default_rng(1))
    tables = gamma_chain.draw_tables(chain, Unscaled(X, np.zeros((3, 2)), exposure), np.random.default_rng(1))
    for t in (2, 1, 0):
        r, w = float(PI[0] @ X[t] + chain.immigration), exposure[t, 0] + later
        zeta = np.log(1.0 + w)
        same(tables.rate[t], 1.0 + w)
        for n in range(6):
            printed = gammaln(n + r) - gammaln(n + 1) - gammaln(r) + n * np.log(-np.expm1(-zeta)) - r * zeta
            brute = integrate.quad(lambda x: stats.gamma.pdf(x, r) * stats.poisson.pmf(n, w * x), 0, 60)[0]  # noqa: B023
            same(np.exp(printed), brute, 1e-6)
            same(np.exp(printed), by_tables(n, r, zeta), 1e-9)
        later = zeta
    same(tables.zeta, later)


def by_tables(n, r, zeta):
    """The same, as a Poisson number of tables with logarithmic sizes each."""
    p, found = -np.expm1(-zeta), float(n == 0) * np.exp(-r * zeta)
    for tables in range(1, n + 1):
        sizes = p**n / zeta**tables * math.factorial(tables) / math.factorial(n) * stirling(n)[tables]
        found += stats.poisson.pmf(tables, r * zeta) * sizes
    return found


def stirling(n):
    """Unsigned Stirling numbers of the first kind: coefficients of a (a + 1) ... (a + n - 1)."""
    return polynomial.polyfromroots(-np.arange(n)) if n else np.ones(1)


@formula("17.4")
def columns_of_a_transition_matrix():
    r"""\Pi_{\cdot j} \sim \mathrm{Dirichlet}(a_{\cdot j}), \quad a_{kj} = \nu_k \nu_j \text{ if } k \ne j,
    \quad a_{jj} = \xi \nu_j, \quad \nu_k \sim \mathrm{Gamma}(\gamma_0 / K, \beta)
    """
    sizes, stay = np.array([0.5, 1.0, 3.0]), 7.0
    brute = [[(stay if k == j else sizes[k]) * sizes[j] for j in range(3)] for k in range(3)]
    same(gamma_chain.dirichlet_of(sizes, stay), np.array(brute))
    rng, drawn = np.random.default_rng(2), []
    none = gamma_chain.Tables(np.zeros((3, 3)), np.zeros(3), np.zeros((1, 3)), np.ones(1), 0.0, 0.0, 0.0)
    chain = draw_chain(gamma_chain.GammaChainPrior(1.0, True), (1, 3), rng)
    for _ in range(500):  # without tables, from the prior
        chain = gamma_chain.draw_transitions(chain, none, rng)
        drawn.append(chain.sizes * chain.rate)
    law = stats.gamma(gamma_chain.TOTAL / 3)
    assert stats.kstest(law.cdf(np.array(drawn)).ravel(), "uniform").pvalue > 1e-4


@formula("17.5")
def a_dirichlet_multinomial_taken_apart():
    r"""\begin{aligned} \frac{\Gamma(A)}{\Gamma(A + L)} & = \int_0^1 \frac{q^{L - 1} (1 - q)^{A - 1}}{\Gamma(L)}
    \, dq, \cr \frac{\Gamma(a + l)}{\Gamma(a)} & = l! \, [z^l] (1 - z)^{-a} = \sum_h |s(l, h)| \, a^h
    \end{aligned}
    """
    for a, n in ((1.5, 1), (2.3, 4), (4.0, 7)):
        brute = integrate.quad(lambda q: q ** (n - 1) * (1 - q) ** (a - 1), 0, 1)[0] / special.gamma(n)  # noqa: B023
        same(special.gamma(a) / special.gamma(a + n), brute, 1e-7)
        rising = special.gamma(a + n) / special.gamma(a)
        same(rising, math.factorial(n) * special.binom(a + n - 1, n), 1e-9)
        same(rising, polynomial.polyval(a, stirling(n)), 1e-9)


@formula("17.6")
def distributions_given_whole_counts():
    r"""\phi_k \mid n \sim \mathrm{Dirichlet}(a + n_{1k}, \ldots, a + n_{Vk})"""
    rng, count = np.random.default_rng(3), np.array([[3.0], [0.0], [7.0]])
    factor = type("Shape", (), {"shape": (3, 1), "component_shape": (1, 1)})
    given = Conditional(1.0, np.full((3, 1), 1 / 3), count, np.full((3, 1), 2.0))
    draws = np.array([DirichletPrior(0.5).draw(factor, np.array([0.5]), given, rng)[0][:, 0] for _ in range(800)])
    for v in range(3):
        law = stats.beta(0.5 + count[v, 0], 1.5 + 10.0 - 0.5 - count[v, 0])
        assert stats.kstest(draws[:, v], law.cdf).pvalue > 1e-4


@formula("17.7")
def concentration_given_whole_counts():
    r"""\log p(\log a \mid n) = \log p(\log a) + \sum_k \Big[ \log \frac{\Gamma(V a)}{\Gamma(V a + n_{\cdot k})}
    + \sum_v \log \frac{\Gamma(a + n_{vk})}{\Gamma(a)} \Big]
    """
    n, a = np.array([[3.0, 0.0], [0.0, 1.0], [7.0, 2.0]]), np.array([0.05, 0.3, 1.7])
    printed, brute = (stats.norm.logpdf(np.log(a), np.log(0.1), 1.0) for _ in range(2))
    for k in range(2):
        printed += gammaln(3 * a) - gammaln(3 * a + n[:, k].sum())
        printed += sum(gammaln(a + n[v, k]) - gammaln(a) for v in range(3))
        whole = n[:, k].astype(int)
        brute += [stats.dirichlet_multinomial.logpmf(whole, np.full(3, each), whole.sum()) for each in a]
    same(np.diff(printed), np.diff(brute))
    same(np.diff(DirichletPrior(None).log_density(n, (0,))(np.log(a))), np.diff(printed))


@formula("17.8")
def a_scale_given_the_factor():
    r"""\log p(x \mid m) = \sum_{tk} \Big[ a_{tk} \log \frac{x_{tk}}{m} - \frac{x_{tk}}{m} - \log \Gamma(a_{tk})
    \Big], \quad a_{tk} = \sum_j \Pi_{kj} \frac{x_{t-1,j}}{m} + \epsilon
    """
    printed, brute, own = [], [], []
    chain = draw_chain(gamma_chain.GammaChainPrior(1.0, True), (3, 2), np.random.default_rng(1))._replace(sizes=NU)
    for m in M:
        a = np.vstack([NU, X[:-1] @ PI.T / m + chain.immigration])
        printed.append((a * np.log(X / m) - X / m - gammaln(a)).sum())
        brute.append(stats.gamma.logpdf(X, a, scale=m).sum())
        own.append(gamma_chain.log_chain(X, np.zeros(X.shape, dtype=bool), X[:-1] @ PI.T, chain._replace(scale=m)))
    same(np.diff(printed), np.diff(brute))
    same(np.diff(own), np.diff(printed))


@formula("17.9")
def tables_of_rows_with_dates():
    r"""p(n_{dk}, l_{dk} \mid x) \propto x^l \exp(-x \log(1 + e / b)), \quad l \mid n, x \sim \mathrm{CRT}(n, x)"""
    e, b = 1.7, 0.6
    for n in (1, 2, 5):
        printed, brute = [], []
        for x in M:
            joint = stirling(n) * x ** np.arange(n + 1.0) * np.exp(-x * np.log1p(e / b))
            printed.append(joint.sum())
            brute.append(stats.nbinom.pmf(n, x, b / (b + e)))
            law = np.array([1.0])
            for i in range(n):
                law = np.convolve(law, [i / (x + i), x / (x + i)])
            same(joint / joint.sum(), law)
        same(printed[1] / printed[0], brute[1] / brute[0])


@formula("17.10")
def counts_with_rows_summed_out():
    r"""\log p(n \mid x, b) = \sum_{dk} \Big[ \log \frac{\Gamma(x_{tk} + n_{dk})}{\Gamma(x_{tk})} - x_{tk}
    \log\Big( 1 + \frac{e_{dk}}{b_d} \Big) - n_{dk} \log(b_d + e_{dk}) \Big]
    """
    n, e = np.array([[3.0, 0.0], [1.0, 5.0]]), np.array([[1.0, 0.5], [2.0, 0.7]])
    printed, brute, own = [], [], []
    for times in (0.3, 1.0, 2.5):
        x, b = times * np.array([[0.4, 1.1], [2.0, 0.2]]), times * np.array([[0.8], [1.7]])
        each = gammaln(x + n) - gammaln(x) - x * np.log(1.0 + e / b) - n * np.log(b + e)
        printed.append(each.sum())
        brute.append(stats.nbinom.logpmf(n, x, b / (b + e)).sum())
        own.append(log_mass_of_rows(n, x, b[:, 0], e))
    same(np.diff(printed), np.diff(brute))
    same(own, printed)


@formula("17.11")
def expected_shares_of_rows_with_dates():
    r"""\mathrm{E}\Big[ \frac{\theta_{dk}}{\sum_j \theta_{dj}} \;\Big|\; x \Big] = \frac{x_{tk}}{\sum_j x_{tj}}"""
    prior = DatedRowsPrior(1.0, 1.0, np.array([0, 1]), 2)
    x = np.array([[0.3, 1.2, 2.0], [0.8, 0.1, 0.4]])
    printed = x / x.sum(axis=1, keepdims=True)
    brute = [[stats.beta(each, row.sum() - each).expect(lambda s: s) for each in row] for row in x]
    hypers = packed(Dated(np.ones(5), x, np.ones(2), 1.0))
    same(brute, printed, rtol=1e-8)
    kept = prior.reported(SimpleNamespace(shape=(2, 3)), hypers[None, None])[OVER_TIME][1][0, 0]
    same(kept / kept.sum(axis=1, keepdims=True), printed)


PSI = np.array([[0.5, 1.5], [2.0, 0.8]])


def seasonal(**values):
    """A chain of two components with a season of two steps, m = 1.3 and c = 2.5."""
    prior = gamma_chain.GammaChainPrior(1.0, True, 2)
    chain = draw_chain(prior, (3, 2), np.random.default_rng(1))
    known = {"transition": PI, "sizes": NU, "scale": 1.3, "seasons": PSI, "concentration": 2.5}
    return chain._replace(**known | values)


@formula("17.12")
def a_chain_with_seasons():
    r"""x_{tk} = m \, g_t \, \psi_{sk} \, \theta_{tk}, \quad \psi_{sk} \sim \mathrm{Gamma}(c, c)"""
    chain, nothing = seasonal(), np.zeros((3, 2))
    units = gamma_chain.units(chain, np.array([1.0, 2.0, 0.5]))
    same(units, 1.3 * np.array([[1.0], [2.0], [0.5]]) * PSI[[0, 1, 0]])
    rng, drawn = np.random.default_rng(2), []
    for _ in range(500):  # without counts, from the prior
        drawn.append(gamma_chain.draw_seasons(chain, X, nothing, nothing, rng).seasons)
    assert stats.kstest(np.ravel(drawn), stats.gamma(2.5, scale=1 / 2.5).cdf).pvalue > 1e-4


@formula("17.13")
def seasons_given_theta():
    r"""\psi_{sk} \mid \theta, n \sim \mathrm{Gamma}\Big( c + \sum_t n_{tk}, \; c + \sum_t e_{tk} \, m \, g_t \,
    \theta_{tk} \Big)
    """
    chain, rng = seasonal(), np.random.default_rng(3)
    n, e = np.array([[3.0, 0.0], [1.0, 9.0], [5.0, 2.0]]), np.array([[0.5, 1.0], [2.0, 0.7], [1.0, 0.3]])
    draws = np.array([gamma_chain.draw_seasons(chain, X, n, e, rng).seasons for _ in range(1000)])
    for s, steps in enumerate(([0, 2], [1])):
        for k in range(2):
            law = stats.gamma(2.5 + n[steps, k].sum(), scale=1.0 / (2.5 + 1.3 * (e * X)[steps, k].sum()))
            assert stats.kstest(draws[:, s, k], law.cdf).pvalue > 1e-4


@formula("17.14")
def seasons_given_the_factor():
    r"""\log p(\log \psi_{sk} \mid x) = c \log \psi_{sk} - c \, \psi_{sk} + \sum_{tj} \big[ a_{tj} \log
    \theta_{tj} - \theta_{tj} - \log \Gamma(a_{tj}) \big]
    """
    value, grid = X * PSI[[0, 1, 0]] * 1.3, np.linspace(-8.0, 4.0, 1201)

    def printed(log_psi):
        psi = PSI.copy()
        psi[1, 0] = np.exp(log_psi)
        theta = value / 1.3 / psi[[0, 1, 0]]
        a = np.vstack([NU, theta[:-1] @ PI.T + gamma_chain.IMMIGRATION])
        return 2.5 * (log_psi - psi[1, 0]) + (a * np.log(theta) - theta - gammaln(a)).sum()

    def brute(log_psi):
        psi = PSI[[0, 1, 0]].copy()
        psi[1, 0] = np.exp(log_psi)
        a = np.vstack([NU, (value / 1.3 / psi)[:-1] @ PI.T + gamma_chain.IMMIGRATION])
        jacobian = log_psi
        return stats.gamma.logpdf(value, a, scale=1.3 * psi).sum() + (
            stats.gamma.logpdf(np.exp(log_psi), 2.5, scale=1 / 2.5) + jacobian
        )

    same(np.diff([printed(y) for y in grid]), np.diff([brute(y) for y in grid]))
    moves_given_the_factor()


def moves_given_the_factor():
    """Metropolis steps of two seasons of one component, against their joint law on a grid."""
    x, pi, nu = np.array([[2.0], [0.7], [3.0]]), np.ones((1, 1)), np.array([1.2])
    grid = np.linspace(-6.0, 4.0, 161)
    psi = np.exp(np.stack(np.meshgrid(grid, grid, indexing="ij"))[[0, 1, 0]])  # (3, 161, 161)
    theta = x[:, :, None] / psi
    a = np.concatenate([np.full((1, 161, 161), 1.2), theta[:-1] + gamma_chain.IMMIGRATION])
    log_p = (a * np.log(theta) - theta - gammaln(a)).sum(axis=0)
    log_p += 2.5 * (np.log(psi[:2]) - psi[:2]).sum(axis=0)
    share = np.exp(log_p - log_p.max())
    rng, drawn, seasons = np.random.default_rng(4), [], np.ones((2, 1))
    for sweep in range(16_000):
        theta = x / seasons[[0, 1, 0]]
        move_seasons(theta, theta < 0.0, pi, nu, gamma_chain.IMMIGRATION, 2.5, seasons, rng)
        if sweep % 16 == 15:
            drawn.append(np.log(seasons[:, 0]))
    for s, draws in enumerate(np.transpose(drawn)):
        law = np.cumsum(share.sum(axis=1 - s)) / share.sum()
        assert stats.kstest(draws, lambda y, law=law: np.interp(y, grid + (grid[1] - grid[0]) / 2, law)).pvalue > 1e-4


LEVEL, S, RHO = np.array([[1.3, 0.4], [0.5, 0.9], [2.0, 0.6]]), np.array([3.0, 12.0]), 0.6
SEEN, EXPOSED = np.array([[2.0, 0.0], [0.0, 1.0], [4.0, 0.0]]), np.array([[1.5, 0.4], [0.0, 1.0], [2.0, 0.3]])


@formula("17.15")
def levels_of_items():
    r"""\begin{aligned} \mu_{tv} & = l_{tv} \sum_k x_{tk} \phi_{vk}, \quad l_{tv} \sim \mathrm{Gamma}(s_v \,
    m_{tv}, \; s_v), \cr m_{tv} & = \rho \, l_{t-1,v} + 1 - \rho, \quad m_{0v} = 1 \end{aligned}
    """
    rng, nothing, level, drawn = np.random.default_rng(1), np.zeros((3, 2)), LEVEL.copy(), []
    for _ in range(1500):  # without data, sweeps draw from the prior
        draw_levels(nothing, nothing, S, RHO, np.arange(2), level, rng)
        drawn.append(level.copy())
    for each in (drawn, [np.vstack([[1.0, 1.0], levels_on(np.ones(2), RHO, S, 2, rng)]) for _ in range(1500)]):
        values = np.array(each)
        means = np.array([means_of(value, RHO) for value in each])
        places = stats.gamma.cdf(values, S * means, scale=1.0 / S)[:, 1:]
        assert stats.kstest(places.ravel(), "uniform").pvalue > 1e-4


@formula("17.16")
def a_step_of_levels_with_them_integrated_out():
    r"""\zeta_t = \log\Big( 1 + \frac{e_t}{s} + \rho \, \zeta_{t+1} \Big), \quad r_t = \rho \, \lambda_{t-1} + (1 -
    \rho) \, s, \quad P(n_t \mid r_t) = \frac{\Gamma(n_t + r_t)}{n_t! \, \Gamma(r_t)} (1 - e^{-\zeta_t})^{n_t}
    e^{-r_t \zeta_t}
    """
    s, e, later, before = 3.0, 1.5, 0.7, 1.3  # later: zeta of the step after
    zeta = np.log(1.0 + e / s + RHO * later)
    r = RHO * s * before + (1.0 - RHO) * s
    for n in range(6):
        printed = gammaln(n + r) - gammaln(n + 1) - gammaln(r) + n * np.log(-np.expm1(-zeta)) - r * zeta
        weight = e / s + RHO * later  # the exposure of lambda: to its counts and to the tables of the next step
        brute = integrate.quad(lambda x: stats.gamma.pdf(x, r) * stats.poisson.pmf(n, weight * x), 0, 80)[0]  # noqa: B023
        same(np.exp(printed), brute, 1e-6)
        same(np.exp(printed), by_tables(n, r, zeta), 1e-9)
    rng, level, drawn = np.random.default_rng(2), LEVEL[:2, :1].copy(), []
    for _ in range(20_000):
        draw_levels(SEEN[:2, :1], EXPOSED[:2, :1] + 0.5, S[:1], RHO, np.arange(1), level, rng)
        drawn.append(level[:, 0].copy())
    grid = np.linspace(1e-3, 8.0, 700)
    first, second = np.meshgrid(grid, grid, indexing="ij")
    mean = RHO * first + 1.0 - RHO
    log_p = stats.gamma.logpdf(first, S[0], scale=1 / S[0]) + stats.gamma.logpdf(second, S[0] * mean, scale=1 / S[0])
    for n, exposure, value in zip(SEEN[:2, 0], EXPOSED[:2, 0] + 0.5, (first, second), strict=True):
        log_p += n * np.log(value) - exposure * value
    share = np.exp(log_p - log_p.max())
    for axis, draws in enumerate(np.transpose(drawn)):
        own = share.sum(axis=1 - axis) / share.sum()
        assert abs(draws.mean() - own @ grid) < 0.03
        assert abs((draws**2).mean() - own @ grid**2) < 0.1


@formula("17.17")
def the_density_of_levels():
    r"""\log p(\log l \mid s, \rho) = \sum_t \big[ s \, m_t \log(s \, l_t) - s \, l_t - \log \Gamma(s \, m_t) \big]"""
    means = means_of(LEVEL, RHO)
    printed = (S * means * np.log(S * LEVEL) - S * LEVEL - gammaln(S * means)).sum(axis=0)
    same(printed, log_density(LEVEL, S, RHO))
    nothing, rng, log_n, drawn = np.zeros((3, 2)), np.random.default_rng(3), np.log(S - 1.0), []
    for _ in range(12_000):
        move_smoothness(nothing, nothing, RHO, 1.0, 0.8, False, np.arange(2), log_n, LEVEL.copy(), rng)
        drawn.append(log_n.copy())
    grid = np.linspace(-4.0, 6.0, 400)
    log_p = [log_density(LEVEL, 1.0 + np.exp(x), RHO) + stats.norm.logpdf(x, 1.0, 0.8) for x in grid]
    share = np.exp(np.array(log_p) - np.max(log_p, axis=0))
    means = grid @ (share / share.sum(axis=0))
    assert np.abs(np.mean(drawn, axis=0) - means).max() < 0.1


@formula("17.18")
def levels_that_move_with_their_smoothness():
    r"""(s, \rho, l) \to (s', \rho', l'), \quad \log \frac{l'_t}{m'_t} = c \, \log \frac{l_t}{m_t}, \quad \Big|
    \frac{\partial \log l'}{\partial \log l} \Big| = c^T
    """
    c, new_rho = 0.8, 0.3

    def moved(log_l):
        noise, found, mean = c * np.log(np.exp(log_l) / means_of(np.exp(log_l)[:, None], RHO)[:, 0]), [], 1.0
        for each in noise:
            found.append(np.log(mean) + each)
            mean = new_rho * np.exp(found[-1]) + 1.0 - new_rho
        return np.array(found)

    at, small = np.log(LEVEL[:, 0]), 1e-6
    columns = [(moved(at + small * unit) - moved(at - small * unit)) / (2.0 * small) for unit in np.eye(3)]
    same(np.linalg.det(np.array(columns)), c**3, 1e-6)
    rng, level, rho, log_n, drawn = np.random.default_rng(4), LEVEL.copy(), RHO, np.log(S - 1.0), []
    for sweep in range(24_000):  # with draws of the levels, moves leave what is left to the prior alone as it is
        draw_levels(np.zeros((3, 2)), np.zeros((3, 2)), 1.0 + np.exp(log_n), rho, np.arange(2), level, rng)
        move_smoothness(0.0 * SEEN, 0.0 * SEEN, rho, 1.0, 0.8, True, np.arange(2), log_n, level, rng)
        rho = move_persistence(0.0 * SEEN, 0.0 * SEEN, 1.0 + np.exp(log_n), 0.98, True, rho, level, rng)
        if sweep % 12 == 0:
            drawn.append([rho / 0.98, *log_n])
    rhos, *logs = np.transpose(drawn)
    assert stats.kstest(rhos, "uniform").pvalue > 1e-4
    assert min(stats.kstest(each, stats.norm(1.0, 0.8).cdf).pvalue for each in logs) > 1e-4
