"""Checks of section 17: gamma chains over time."""

import math
from types import SimpleNamespace

import numpy as np
from numpy.polynomial import polynomial
from scipy import integrate, special, stats
from scipy.special import gammaln

from countveil.kernels.dynamics import move_seasons, pass_forwards
from countveil.models.priors import DatedRowsPrior, DirichletPrior, gamma_chain
from countveil.models.priors.dated_rows import OVER_TIME, Dated, log_mass_of_rows, packed
from countveil.models.priors.gamma_chain import Unscaled
from countveil.models.priors.prior import Conditional
from tests.dynamics import draw_chain
from tests.formulas.brute import formula, same

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
        pass_forwards(tables.totals, tables.rate, PI, NU, gamma_chain.SOURCE, value, rng)
        draws.append(value)
    theta = np.array(draws)
    shapes = np.concatenate(
        [np.broadcast_to(NU, (1200, 1, 2)), theta[:, :-1] @ PI.T + gamma_chain.SOURCE], axis=1
    )
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
        r, w = float(PI[0] @ X[t] + gamma_chain.SOURCE), exposure[t, 0] + later
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
    none = gamma_chain.Tables(np.zeros((3, 3)), np.zeros(3), np.zeros((1, 3)), np.ones(1), 0.0)
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
    draws = np.array(
        [DirichletPrior(0.5).draw(factor, np.array([0.5]), given, rng)[0][:, 0] for _ in range(800)]
    )
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
    same(np.diff(DirichletPrior(None).log_mass(np.log(a), n, (0,))), np.diff(printed))


@formula("17.8")
def a_scale_given_the_factor():
    r"""\log p(x \mid m) = \sum_{tk} \Big[ a_{tk} \log \frac{x_{tk}}{m} - \frac{x_{tk}}{m} - \log \Gamma(a_{tk})
    \Big], \quad a_{tk} = \sum_j \Pi_{kj} \frac{x_{t-1,j}}{m} + \epsilon
    """
    printed, brute, own = [], [], []
    for m in M:
        a = np.vstack([NU, X[:-1] @ PI.T / m + gamma_chain.SOURCE])
        printed.append((a * np.log(X / m) - X / m - gammaln(a)).sum())
        brute.append(stats.gamma.logpdf(X, a, scale=m).sum())
        own.append(gamma_chain.log_chain(X, np.zeros(X.shape, dtype=bool), X[:-1] @ PI.T, NU, m))
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
        a = np.vstack([NU, theta[:-1] @ PI.T + gamma_chain.SOURCE])
        return 2.5 * (log_psi - psi[1, 0]) + (a * np.log(theta) - theta - gammaln(a)).sum()

    def brute(log_psi):
        psi = PSI[[0, 1, 0]].copy()
        psi[1, 0] = np.exp(log_psi)
        a = np.vstack([NU, (value / 1.3 / psi)[:-1] @ PI.T + gamma_chain.SOURCE])
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
    a = np.concatenate([np.full((1, 161, 161), 1.2), theta[:-1] + gamma_chain.SOURCE])
    log_p = (a * np.log(theta) - theta - gammaln(a)).sum(axis=0)
    log_p += 2.5 * (np.log(psi[:2]) - psi[:2]).sum(axis=0)
    share = np.exp(log_p - log_p.max())
    rng, drawn, seasons = np.random.default_rng(4), [], np.ones((2, 1))
    for sweep in range(16_000):
        theta = x / seasons[[0, 1, 0]]
        move_seasons(theta, theta < 0.0, pi, nu, gamma_chain.SOURCE, 2.5, seasons, rng)
        if sweep % 16 == 15:
            drawn.append(np.log(seasons[:, 0]))
    for s, draws in enumerate(np.transpose(drawn)):
        law = np.cumsum(share.sum(axis=1 - s)) / share.sum()
        assert (
            stats.kstest(draws, lambda y, law=law: np.interp(y, grid + (grid[1] - grid[0]) / 2, law)).pvalue
            > 1e-4
        )
