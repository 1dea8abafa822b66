"""Checks of section 18: learned shapes of the priors."""

import numpy as np
from scipy import special, stats
from scipy.special import gammaln

from countveil.kernels.random import SMALLEST
from countveil.models.priors import LearnedShapePrior, SeededPrior
from tests.formulas.brute import formula, gamma_logpdf, same
from tests.joint import small_model

S, X = (0.8, np.array([[0.2, 1.9], [0.6, 3.1], [0.05, 0.4], [1e-6, 0.02]]))  # the usual size; a factor's entries
A = np.array([0.05, 0.3, 1.7])
FACTOR = small_model((4, 3)).factors[0]
PRIOR = stats.norm.logpdf(np.log(A), np.log(0.1), 1.0)


def own(prior, value=X):
    """log-densities of the library."""
    return prior.log_density(np.log(A), prior.given_entries(FACTOR, 1.0, value))


@formula("18.1")
def priors_of_shape_and_rates():
    r"""\log a \sim \mathrm{Normal}(\log 0.1, 1), \quad b_k \mid a \sim \mathrm{Gamma}(1, s / a)"""
    start = LearnedShapePrior(S, None).start(FACTOR)
    same(start[0] / start[1], S)
    for a in A:  # an entry's mean at the rate's mean is s
        same(a / stats.gamma(1, scale=a / S).mean(), S)
    no_entries = FACTOR._replace(shape=(0, 2))
    prior = LearnedShapePrior(None, 1.0)
    found = prior.log_density(np.log(A), prior.given_entries(no_entries, 1.0, np.empty((0, 2))))
    same(np.diff(found), np.diff(PRIOR))


@formula("18.2")
def shape_given_entries():
    r"""\begin{aligned} \log p(\log a \mid x) = {} & \log p(\log a) + \sum_k \Big[ \log \frac{s}{a} + \log
    \Gamma(1 + a n_k) - (1 + a n_k) \log\Big( \frac{s}{a} + S_k \Big) \Big] \cr & + a \sum_i \log x_i - n
    \log \Gamma(a) \end{aligned}
    """
    printed, brute = np.array(PRIOR), np.array(PRIOR)
    log_b = np.linspace(-25.0, 8.0, 4000)
    for k in range(2):
        size = 1 + A * 4
        printed += np.log(S / A) + gammaln(size) - size * np.log(S / A + X[:, k].sum())
        for i, a in enumerate(A):
            joint = gamma_logpdf(np.exp(log_b), 1.0, S / a) + log_b
            for x in X[:, k]:
                joint = joint + gamma_logpdf(x, a, np.exp(log_b))
            brute[i] += special.logsumexp(joint)
    printed += A * np.log(X).sum() - X.size * gammaln(A)
    same(np.diff(printed), np.diff(brute), 1e-6)
    same(np.diff(own(LearnedShapePrior(S, None))), np.diff(printed))


@formula("18.3")
def shape_given_entries_and_rates():
    r"""\log p(\log a \mid x, b) = \log p(\log a) + \sum_i \big[ a \log b_i + a \log x_i - \log \Gamma(a) \big]"""
    b = np.array([[0.5, 2.5]])
    brute = PRIOR + [gamma_logpdf(X, a, b).sum() for a in A]
    printed = PRIOR + [(a * np.log(b) + a * np.log(X) - gammaln(a)).sum() for a in A]
    same(np.diff(printed), np.diff(brute), 1e-9)
    same(np.diff(own(LearnedShapePrior(None, b))), np.diff(printed))


@formula("18.4")
def entries_that_were_cut():
    r"""P(x < S) = \frac{(b S)^a}{\Gamma(1 + a)} = p(S) \, \frac{S}{a}, \quad b S \to 0"""
    b, cut = 2.5, 1e-9
    for a in A:
        printed = (b * cut) ** a / special.gamma(1 + a)
        same(printed, stats.gamma(a, scale=1 / b).cdf(cut), 1e-7)
        same(printed, stats.gamma(a, scale=1 / b).pdf(cut) * cut / a, 1e-7)
    value, prior = np.full((4, 2), SMALLEST), LearnedShapePrior(None, b)
    brute = PRIOR + [8 * (a * np.log(b * SMALLEST) - gammaln(1 + a)) for a in A]
    same(np.diff(own(prior, value)), np.diff(brute))


@formula("18.5")
def shape_given_counts():
    r"""\log p(\log a \mid n, e) = \log p(\log a) + \sum_i \Big[ \log \frac{\Gamma(a + n_i)}{\Gamma(a)} + a \log
    b_i - (a + n_i) \log(b_i + e_i) \Big]
    """
    rng = np.random.default_rng(1)
    n, e, c = rng.poisson(1.0, (4, 2)).astype(float), rng.gamma(2.0, 1.0, (4, 2)), np.array([[1.5, 4.0]])
    printed, brute = np.array(PRIOR), np.array(PRIOR)
    log_x = np.linspace(-600.0, 6.0, 60_000)
    for i, a in enumerate(A):
        b = np.broadcast_to(a * c, n.shape)
        terms = gammaln(a + n) - gammaln(a) + a * np.log(b) - (a + n) * np.log(b + e)
        printed[i] += terms.sum()
        for at in np.ndindex(*n.shape):
            x = np.exp(log_x)
            log_law = a * np.log(b[at]) - gammaln(a) + a * log_x - b[at] * x + n[at] * log_x - e[at] * x
            brute[i] += special.logsumexp(log_law)
    same(np.diff(printed), np.diff(brute), 1e-5)
    prior = LearnedShapePrior(S, None)
    hypers = np.stack([np.full((1, 2), 0.7), 0.7 * c])
    same(np.diff(prior.log_mass(np.log(A), prior.given_counts(FACTOR, hypers, 1.0, n, e))), np.diff(printed))


ADDED = np.array([[0.0, 0.7], [2.5, 0.0], [0.0, 1.2], [0.0, 0.0]])
SEEDED = SeededPrior(LearnedShapePrior(S, None), ADDED)


@formula("18.6")
def entries_with_seeds():
    r"""\phi_{vk} \mid a, b_k \sim \mathrm{Gamma}(a + w_{vk}, b_k)"""
    rate = np.array([[1.5, 4.0]])
    shape, found = SEEDED.gamma(np.stack([np.full((1, 2), 0.7), rate]), 2.0)
    same(shape, 0.7 + ADDED)
    same(found, 2.0 * rate)


@formula("18.7")
def shape_given_entries_with_seeds():
    r"""\begin{aligned} \log p(\log a \mid x) = {} & \log p(\log a) + \sum_k \Big[ \log \frac{s}{a} + \log
    \Gamma(1 + a n_k + W_k) - (1 + a n_k + W_k) \log\Big( \frac{s}{a} + S_k \Big) \Big] \cr & + a \sum_i
    \log x_i - \sum_i \log \Gamma(a + w_i) \end{aligned}
    """
    printed, brute = np.array(PRIOR), np.array(PRIOR)
    log_b = np.linspace(-25.0, 8.0, 4000)
    for k in range(2):
        size = 1 + A * 4 + ADDED[:, k].sum()
        printed += np.log(S / A) + gammaln(size) - size * np.log(S / A + X[:, k].sum())
        for i, a in enumerate(A):
            joint = gamma_logpdf(np.exp(log_b), 1.0, S / a) + log_b
            for x, w in zip(X[:, k], ADDED[:, k], strict=True):
                joint = joint + gamma_logpdf(x, a + w, np.exp(log_b))
            brute[i] += special.logsumexp(joint)
    printed += A * np.log(X).sum() - gammaln(A[:, None, None] + ADDED).sum(axis=(1, 2))
    same(np.diff(printed), np.diff(brute), 1e-6)
    found = SEEDED.log_density(np.log(A), SEEDED.given_entries(FACTOR, 1.0, X), X)
    same(np.diff(found), np.diff(printed))


@formula("18.8")
def shape_given_counts_with_seeds():
    r"""\begin{aligned} \log p(\log a \mid n, e) = {} & \log p(\log a) + \sum_i \Big[ \log \frac{\Gamma(a + w_i
    + n_i)}{\Gamma(a + w_i)} \cr & + (a + w_i) \log b_i - (a + w_i + n_i) \log(b_i + e_i) \Big]
    \end{aligned}
    """
    rng = np.random.default_rng(2)
    n, e, c = rng.poisson(1.0, (4, 2)).astype(float), rng.gamma(2.0, 1.0, (4, 2)), np.array([[1.5, 4.0]])
    printed, brute = np.array(PRIOR), np.array(PRIOR)
    log_x = np.linspace(-600.0, 6.0, 60_000)
    for i, a in enumerate(A):
        b, shape = np.broadcast_to(a * c, n.shape), a + ADDED
        terms = gammaln(shape + n) - gammaln(shape) + shape * np.log(b) - (shape + n) * np.log(b + e)
        printed[i] += terms.sum()
        for at in np.ndindex(*n.shape):
            x, own = np.exp(log_x), shape[at]
            log_law = own * np.log(b[at]) - gammaln(own) + own * log_x - b[at] * x
            brute[i] += special.logsumexp(log_law + n[at] * log_x - e[at] * x)
    same(np.diff(printed), np.diff(brute), 1e-5)
    hypers = np.stack([np.full((1, 2), 0.7), 0.7 * c])
    told = SEEDED.usual.given_counts(FACTOR, hypers, 1.0, n, e)
    same(np.diff(SEEDED.log_mass(np.log(A), told)), np.diff(printed))
