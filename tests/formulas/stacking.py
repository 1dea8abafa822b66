"""Checks of section 15: several predictive distributions, weighted."""

import numpy as np
from scipy import stats
from scipy.optimize import minimize

from countveil.inference.folds import stacking_weights
from tests.formulas.brute import formula, same


def probabilities():
    """(cells, 3) of which the last distribution is worse than any mixture of the others."""
    found = np.random.default_rng(3).dirichlet(np.full(4, 0.6), 400)[:, :3]
    found[:, 2] = 0.5 * found[:, :2].min(axis=1)
    return found


def objective(p, weights):
    """What stacking makes large."""
    return np.log(p @ weights).mean()


@formula("15.1")
def best_weights():
    r"""w = \operatorname*{arg\,max}_w \sum_i \log\Big( \sum_c w_c \, p_{ic} \Big) \text{ over } w_c \ge 0
    \text{ with } \sum_c w_c = 1
    """
    p = probabilities()
    ours = stacking_weights(np.log(p))
    found = minimize(
        lambda w: -objective(p, w), np.full(3, 1 / 3), bounds=[(0.0, 1.0)] * 3, method="SLSQP",
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0}, options={"ftol": 1e-14},
    )  # fmt: skip
    same(ours, found.x, 0.0, 1e-3)
    same(objective(p, ours), objective(p, found.x), 0.0, 1e-8)


@formula("15.2")
def one_round():
    r"""w_c \leftarrow w_c \, \operatorname*{mean}_i \left( \frac{p_{ic}}{\sum_b w_b \, p_{ib}} \right)"""
    p, weights = probabilities(), np.array([0.2, 0.5, 0.3])
    for _ in range(5):
        before, weights = weights, weights * (p / (p @ weights)[:, None]).mean(axis=0)
        same(weights.sum(), 1.0)
        assert objective(p, weights) > objective(p, before)


@formula("15.3")
def left_out():
    r"""P(r_i \mid \text{all others}) = \frac{1}{\mathrm{E}[1 / P(r_i \mid \mu)]} \text{ over } \mu \text{ given
    all reports}
    """
    mu, prior = np.linspace(0.01, 30.0, 6000), stats.gamma.pdf(np.linspace(0.01, 30.0, 6000), 2.0)
    counts = np.array([3, 0, 5])
    likelihood = stats.poisson.pmf(counts[:, None], mu)
    whole = prior * likelihood.prod(axis=0)
    others = prior * likelihood[1:].prod(axis=0)
    given_all, given_others = whole / whole.sum(), others / others.sum()
    same(1.0 / (given_all @ (1.0 / likelihood[0])), given_others @ likelihood[0])


@formula("15.4")
def many_draws():
    r"""\begin{aligned} L(\text{infinitely many}) & \approx 2 L(S \text{ draws}) - L(S / 2 \text{ draws}), \cr
    L(n) & = \log\big( \text{mean over } n \text{ draws of } P(r \mid \text{draw}) \big) \end{aligned}
    """
    one, other, chance = 0.2, 0.5, 0.4  # P(r | draw) takes two values
    right = np.log(chance * one + (1 - chance) * other)

    def expected(n):
        ones = np.arange(n + 1)
        means = (ones * one + (n - ones) * other) / n
        return stats.binom.pmf(ones, n, chance) @ np.log(means)

    for n in (10, 20, 40):
        off, extrapolated = expected(n) - right, 2 * expected(n) - expected(n // 2) - right
        assert off < 0
        assert abs(extrapolated) < 0.4 * abs(off)


@formula("15.5")
def more_chains():
    r"""L(M \text{ chains}) \approx L(C) + (L(C) - L(1)) \, \frac{1/C - 1/M}{1 - 1/C}, \quad L(1) \text{ the
    mean of } L \text{ over single chains}
    """
    low, high, chance = 0.3, 0.5, 0.4  # P(r | chain) takes two values

    def expected(n):
        ones = np.arange(n + 1)
        return stats.binom.pmf(ones, n, chance) @ np.log((ones * low + (n - ones) * high) / n)

    for c, m in ((2, 4), (2, 8), (4, 8), (4, 2)):
        told = expected(c) + (expected(c) - expected(1)) * (1 / c - 1 / m) / (1 - 1 / c)
        assert expected(1) < expected(2) < expected(4) < expected(8)
        assert abs(told - expected(m)) < 0.1 * abs(expected(m) - expected(c))
