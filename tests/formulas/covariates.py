"""Checks of section 16: covariates of the rows."""

from types import SimpleNamespace

import numpy as np
import xarray as xr
from scipy import integrate, special, stats
from scipy.special import gammaln

from countveil.estimators import BlockModel
from countveil.models.priors import RegressionPrior, regression
from countveil.models.priors.expected_shares import expected_shares
from tests.formulas.brute import formula, same
from tests.joint import small_model

S, C = 0.8, 0.5
X = np.array([[-1.0, 0.5], [1.0, -1.5], [0.5, 0.4], [-0.5, 0.6]])
PRIOR, FACTOR = RegressionPrior(S, None, X, C), small_model((4, 3)).factors[0]
A, B, BETA = np.array([0.3, 1.7]), np.array([0.6, 2.0]), np.array([[0.4, -0.7], [0.0, 1.1]])
HYPERS = np.stack([A, B, *BETA])[:, None]


@formula("16.1")
def entries_and_coefficients():
    """theta_dk ~ Gamma(a_k, b_k exp(-x_d beta_k)),   beta_pk ~ Normal(0, c^2),   b_k | a_k ~ Gamma(1, s / a_k)"""
    shape, rate = PRIOR.gamma(HYPERS, 1.0)
    same(np.broadcast_to(shape, (4, 2)), np.tile(A, (4, 1)))
    same(rate, B * np.exp(-X @ BETA))
    nothing = PRIOR.told(1.0, np.zeros((4, 2)), np.zeros((4, 2)))
    log_m = np.array([-0.4, 0.9])
    one, other = (
        PRIOR.log_mass(np.vstack([u, b]), np.log(A), nothing)
        for u, b in ((log_m, BETA), (0 * log_m, 0 * BETA))
    )
    by_rates = [  # of log m, by the density of b_k = a_k / m_k
        stats.gamma.logpdf(A * np.exp(-u), 1.0, scale=A / S) + np.log(A) - u for u in (log_m, 0 * log_m)
    ]
    by_normal = stats.norm.logpdf(BETA, 0.0, C).sum(axis=0) - stats.norm.logpdf(0 * BETA, 0.0, C).sum(axis=0)
    same(one - other, by_rates[0] - by_rates[1] + by_normal)


@formula("16.2")
def all_that_is_learned_given_counts():
    """log p(a_k, m_k, beta_k | n, e) = log p(a_k) + log p(m_k) + log p(beta_k)
    + sum_d [lgamma(a_k + n_dk) - lgamma(a_k) + a_k log r_dk - (a_k + n_dk) log(r_dk + e_dk)]"""
    rng = np.random.default_rng(1)
    n, e = rng.poisson(1.0, (4, 2)).astype(float), rng.gamma(2.0, 1.0, (4, 2))
    r, log_x = B * np.exp(-X @ BETA), np.linspace(-300.0, 6.0, 60_000)
    printed = (gammaln(A + n) - gammaln(A) + A * np.log(r) - (A + n) * np.log(r + e)).sum(axis=0)
    brute = np.zeros(2)
    for d, k in np.ndindex(4, 2):
        law = stats.gamma.logpdf(np.exp(log_x), A[k], scale=1.0 / r[d, k]) + log_x
        law = law + n[d, k] * log_x - e[d, k] * np.exp(log_x)
        brute[k] += special.logsumexp(law) + np.log(log_x[1] - log_x[0])
    same(printed, brute, 1e-6)
    told, found = PRIOR.told(1.0, n, e), np.vstack([np.log(A / B), BETA])
    own = regression.mass_of_shapes(PRIOR.slopes(found, told), told)(np.log(A))
    own -= stats.norm.logpdf(np.log(A), np.log(0.1), 1.0) - stats.norm.logpdf(np.log(0.1), np.log(0.1), 1.0)
    same(own, printed - (n * PRIOR.slopes(found, told)).sum(axis=0))  # which do not depend on the shape


@formula("16.3")
def expected_shares_of_rows():
    """E[theta_k / sum_j theta_j] = E[w_k(T)],   w_k(t) = a_k / (r_k + t) / sum_j [a_j / (r_j + t)]"""
    found = expected_shares(A, B)
    for k in range(2):

        def density(u, k=k):
            """Of theta_k exp(-t sum theta), integrated over t."""
            t = np.exp(u)
            return t * A[k] / (B[k] + t) * np.exp(-(A * np.log1p(t / B)).sum())

        same(found[k], integrate.quad(density, -40.0, 40.0, limit=500)[0], 1e-3)


@formula("16.4")
def shapes_given_memberships():
    """log p(log a_c | theta, beta) = log p(log a_c) + log(s / a_c) + lgamma(1 + a_c n) - (1 + a_c n) log(s / a_c + S_c)
    + a_c sum_i (log theta_ic - x_i beta_c) - n lgamma(a_c)"""
    theta, log_b = np.random.default_rng(2).gamma(0.7, 1.0, (4, 2)), np.linspace(-25.0, 8.0, 4000)
    of_rows, n = X @ BETA, 4
    total = (theta * np.exp(-of_rows)).sum(axis=0)
    seen, printed, brute, own = PRIOR.seen(1.0, theta), [], [], []
    for a in (A, 2.0 * A):
        size, known = 1.0 + a * n, stats.norm.logpdf(np.log(a), np.log(0.1), 1.0)
        law = known + np.log(S / a) + gammaln(size) - size * np.log(S / a + total)
        printed.append(law + a * (np.log(theta) - of_rows).sum(axis=0) - n * gammaln(a))
        rates = np.exp(log_b)[:, None, None] * np.exp(-of_rows)  # (grid, 4, 2)
        joint = stats.gamma.logpdf(theta, a, scale=1.0 / rates).sum(axis=1) + log_b[:, None]
        joint += stats.gamma.logpdf(np.exp(log_b)[:, None], 1.0, scale=a / S)
        brute.append(known + special.logsumexp(joint, axis=0))
        own.append(PRIOR.mass_of_shapes_given_values(of_rows, total, seen)(np.log(a)))
    same(np.diff(printed, axis=0), np.diff(brute, axis=0), 1e-6)
    same(np.diff(own, axis=0), np.diff(printed, axis=0))


@formula("16.5")
def coefficients_given_memberships():
    """log p(log m_c, beta_c | theta, a_c) = log p(log m_c) + log p(beta_c)
    - a_c sum_i [log m_c + x_i beta_c + theta_ic exp(-x_i beta_c) / m_c]"""
    theta = np.random.default_rng(2).gamma(0.7, 1.0, (4, 2))
    nothing = PRIOR.told(1.0, np.zeros((4, 2)), np.zeros((4, 2)))
    printed, brute, own = [], [], []
    for log_m, beta in ((np.log(A / B), BETA), (np.log(A / B) + 0.7, -0.5 * BETA)):
        found, slopes = np.vstack([log_m, beta]), log_m + X @ beta
        known = PRIOR.log_mass(found, np.log(A), nothing)  # by (16.1)
        printed.append(known - (A * (slopes + theta * np.exp(-slopes))).sum(axis=0))
        brute.append(known + stats.gamma.logpdf(theta, A, scale=np.exp(slopes) / A).sum(axis=0))
        own.append(PRIOR.log_mass(found, np.log(A), PRIOR.seen(1.0, theta)))
    same(np.diff(printed, axis=0), np.diff(brute, axis=0))
    same(own, printed)


@formula("16.6")
def messages_of_members():
    """g_c = sum_d (pi_cd + pi_dc) sum_j theta_jd"""
    rng = np.random.default_rng(3)
    theta, pi = rng.gamma(1.0, 1.0, (5, 2)), rng.gamma(1.0, 1.0, (2, 2))
    printed = (pi + pi.T) @ theta.sum(axis=0)
    each = np.einsum("ic,cd,jd->ijcd", theta, pi, theta)
    same(theta * printed, each.sum(axis=(1, 3)) + each.sum(axis=(0, 2)))
    total = theta.sum(axis=0)  # which a posterior has in pi
    posterior = xr.Dataset({"pi": (("chain", "draw", "c", "d"), (pi * np.outer(total, total))[None, None])})
    fit = SimpleNamespace(posterior={"posterior": posterior})
    same(BlockModel._sizes_by_chain(fit)[0, 0], total * printed)
