"""Checks of section 16: covariates of the rows."""

from types import SimpleNamespace

import numpy as np
import xarray as xr
from scipy import integrate, special, stats
from scipy.special import gammaln

from countveil.fit import BlockModel
from countveil.models.priors import RegressionPrior
from countveil.models.priors.regression import expected_shares
from tests.formulas.brute import formula, same
from tests.joint import small_model

S, C = 0.8, 0.5
X = np.array([[-1.0, 0.5], [1.0, -1.5], [0.5, 0.4], [-0.5, 0.6]])
PRIOR, FACTOR = RegressionPrior(S, None, X, C), small_model((4, 3)).factors[0]
A, B, BETA = np.array([0.3, 1.7]), np.array([0.6, 2.0]), np.array([[0.4, -0.7], [0.0, 1.1]])
G = np.array([[0.3, -0.2], [-0.6, 0.5]])
HYPERS = np.stack([A, B, *BETA, *G])[:, None]


@formula("16.1")
def entries_and_coefficients():
    r"""\begin{aligned} & \theta_{dk} \sim \mathrm{Gamma}(a_{dk}, r_{dk}), \quad a_{dk} = a_k \exp(x_d g_k),
    \quad a_{dk} / r_{dk} = m_k \exp(x_d \beta_k), \cr & \beta_{pk} \sim \mathrm{Normal}(0, c^2), \quad
    g_{pk} \sim \mathrm{Normal}(0, (c / 2)^2), \quad b_k = a_k / m_k, \quad b_k \mid a_k \sim
    \mathrm{Gamma}(1, s / a_k) \end{aligned}
    """
    shape, rate = PRIOR.gamma(HYPERS, 1.0)
    same(shape, A * np.exp(X @ G))
    same(shape / rate, A / B * np.exp(X @ BETA))
    nothing = PRIOR.given_counts(1.0, np.zeros((4, 2)), np.zeros((4, 2)))
    log_m = np.array([-0.4, 0.9])
    one, other = (
        PRIOR.place(np.vstack([u, b]), np.log(A), nothing).log_mass for u, b in ((log_m, BETA), (0 * log_m, 0 * BETA))
    )
    by_rates = [  # of log m, by the density of b_k = a_k / m_k
        stats.gamma.logpdf(A * np.exp(-u), 1.0, scale=A / S) + np.log(A) - u for u in (log_m, 0 * log_m)
    ]
    by_normal = stats.norm.logpdf(BETA, 0.0, C).sum(axis=0) - stats.norm.logpdf(0 * BETA, 0.0, C).sum(axis=0)
    same(one - other, by_rates[0] - by_rates[1] + by_normal)
    one, other = (
        PRIOR.place_of_shapes(np.vstack([np.log(A), g]), nothing.of_shapes(np.zeros((4, 2))), nothing).log_mass
        for g in (G, 0 * G)
    )
    same(one - other, (stats.norm.logpdf(G, 0.0, C / 2) - stats.norm.logpdf(0 * G, 0.0, C / 2)).sum(axis=0))


@formula("16.2")
def all_that_is_learned_given_counts():
    r"""\begin{aligned} \log p(a_k, m_k, \beta_k, g_k \mid n, e) = {} & \log p(a_k) + \log p(m_k) + \log
    p(\beta_k) + \log p(g_k) \cr & + \sum_d \Big[ \log \frac{\Gamma(a_{dk} + n_{dk})}{\Gamma(a_{dk})} +
    a_{dk} \log r_{dk} - (a_{dk} + n_{dk}) \log(r_{dk} + e_{dk}) \Big] \end{aligned}
    """
    rng = np.random.default_rng(1)
    n, e = rng.poisson(1.0, (4, 2)).astype(float), rng.gamma(2.0, 1.0, (4, 2))
    a, log_x = A * np.exp(X @ G), np.linspace(-300.0, 6.0, 60_000)
    r = a / (A / B * np.exp(X @ BETA))
    printed = (gammaln(a + n) - gammaln(a) + a * np.log(r) - (a + n) * np.log(r + e)).sum(axis=0)
    brute = np.zeros(2)
    for d, k in np.ndindex(4, 2):
        law = stats.gamma.logpdf(np.exp(log_x), a[d, k], scale=1.0 / r[d, k]) + log_x
        law = law + n[d, k] * log_x - e[d, k] * np.exp(log_x)
        brute[k] += special.logsumexp(law) + np.log(log_x[1] - log_x[0])
    same(printed, brute, 1e-6)
    told, found = PRIOR.given_counts(1.0, n, e), np.vstack([np.log(A / B), BETA])
    means = PRIOR.slopes(found)
    own = PRIOR.place_of_shapes(np.vstack([np.log(A), G]), told.of_shapes(means), told).log_mass
    own -= stats.norm.logpdf(np.log(A), np.log(0.1), 1.0) - stats.norm.logpdf(np.log(0.1), np.log(0.1), 1.0)
    own -= (stats.norm.logpdf(G, 0.0, C / 2) - stats.norm.logpdf(0 * G, 0.0, C / 2)).sum(axis=0)
    same(own, printed - (n * means).sum(axis=0) - gammaln(n + 1.0).sum(axis=0))  # without shapes


@formula("16.3")
def expected_shares_of_rows():
    r"""\mathrm{E}\Big[ \frac{\theta_k}{\sum_j \theta_j} \Big] = \mathrm{E}[w_k(T)], \quad w_k(t) = \frac{a_k /
    (r_k + t)}{\sum_j a_j / (r_j + t)}
    """
    found = expected_shares(A, B)
    for k in range(2):

        def density(u, k=k):
            """Of theta_k exp(-t sum theta), integrated over t."""
            t = np.exp(u)
            return t * A[k] / (B[k] + t) * np.exp(-(A * np.log1p(t / B)).sum())

        same(found[k], integrate.quad(density, -40.0, 40.0, limit=500)[0], 1e-3)


@formula("16.4")
def all_that_is_learned_given_memberships():
    r"""\begin{aligned} \log p(a_c, m_c, \beta_c, g_c \mid \theta) = {} & \log p(a_c) + \log p(m_c) + \log
    p(\beta_c) + \log p(g_c) \cr & + \sum_i \big[ a_{ic} \log r_{ic} - \log \Gamma(a_{ic}) + a_{ic} \log
    \theta_{ic} - r_{ic} \theta_{ic} \big] \end{aligned}
    """
    theta = np.random.default_rng(2).gamma(0.7, 1.0, (4, 2))
    seen, nothing = (PRIOR.given_entries(1.0, theta), PRIOR.given_counts(1.0, np.zeros((4, 2)), np.zeros((4, 2))))
    printed, brute, own = [], [], []
    for log_m, beta, g in ((np.log(A / B), BETA, G), (np.log(A / B) + 0.7, -0.5 * BETA, 0.3 * G)):
        found, shapes, a = np.vstack([log_m, beta]), np.vstack([np.log(A), g]), A * np.exp(X @ g)
        means = PRIOR.slopes(found)
        known = PRIOR.place(found, np.log(a), nothing).log_mass  # by (16.1)
        known += PRIOR.place_of_shapes(shapes, nothing.of_shapes(means), nothing).log_mass
        r = a / np.exp(means)
        law = a * np.log(r) - gammaln(a) + a * np.log(theta) - r * theta
        printed.append(known + law.sum(axis=0))
        brute.append(known + stats.gamma.logpdf(theta, a, scale=1.0 / r).sum(axis=0))
        of_means = PRIOR.place(found, np.log(a), seen).log_mass
        of_shapes = PRIOR.place_of_shapes(shapes, seen.of_shapes(means), seen).log_mass
        of_both = -(a * means).sum(axis=0) - (theta * r).sum(axis=0)  # which both have
        own.append(of_means + of_shapes - of_both)
    same(np.diff(printed, axis=0), np.diff(brute, axis=0))
    same(np.diff(own, axis=0), np.diff(printed, axis=0))


@formula("16.5")
def messages_of_members():
    r"""w_c = \sum_d (\pi_{cd} + \pi_{dc}) \sum_j \theta_{jd}"""
    rng = np.random.default_rng(3)
    theta, pi = rng.gamma(1.0, 1.0, (5, 2)), rng.gamma(1.0, 1.0, (2, 2))
    printed = (pi + pi.T) @ theta.sum(axis=0)
    each = np.einsum("ic,cd,jd->ijcd", theta, pi, theta)
    same(theta * printed, each.sum(axis=(1, 3)) + each.sum(axis=(0, 2)))
    total = theta.sum(axis=0)  # which a posterior has in pi
    posterior = xr.Dataset({"pi": (("chain", "draw", "c", "d"), (pi * np.outer(total, total))[None, None])})
    fit = SimpleNamespace(posterior={"posterior": posterior})
    same(BlockModel._sizes_by_chain(fit)[0, 0], total * printed)
