"""Checks of section 20: p along the curve on which expected counts stay as they are."""

import numpy as np
from scipy import stats
from scipy.special import expit

from countveil.inference.dispersion import log_mean
from countveil.models.priors import GammaPrior
from tests.formulas.brute import formula, same

TIMES = (0.2, 0.9, 3.0)


@formula("20.1")
def mean_of_a_burst():
    r"""m(p) = \frac{p}{(1 - p) \, q}, \quad \log m(p) = x - \log \log(1 + e^x) \text{ at } x =
    \operatorname{logit} p
    """
    for x in (-5.0, 0.0, 4.0):
        p, sizes = expit(x), np.arange(1.0, 5000.0)
        mass = stats.logser.pmf(sizes, p)
        same(p / ((1 - p) * -np.log1p(-p)), mass @ sizes)
        same(np.exp(log_mean(np.array([x])))[0], mass @ sizes)


@formula("20.2")
def entries_alone():
    r"""c^{\sum_i a_i} \exp\Big( -(c - 1) \sum_i b_i x_i \Big)"""
    a, b, x = np.array([0.3, 2.0]), np.array([1.5, 0.4]), np.array([0.7, 3.0])
    prior = stats.gamma(a, scale=1 / b)
    for c in TIMES:
        printed = c ** a.sum() * np.exp(-(c - 1) * (b @ x))
        same(printed, np.prod(c * prior.pdf(c * x) / prior.pdf(x)))


class Component:
    """Three entries of one component."""

    shape, component_shape = (3, 1), (1, 1)


@formula("20.3")
def entries_with_their_rates():
    r"""\prod_k \frac{g(b_k / c)}{c \, g(b_k)}"""
    a, b, mean, x = 0.6, 1.4, 0.8, np.array([0.7, 3.0, 0.1])
    learned = GammaPrior(a, mean, True)
    for c in TIMES:
        entries = np.prod(stats.gamma.pdf(c * x, a, scale=c / b) / stats.gamma.pdf(x, a, scale=1 / b))
        rates = stats.expon.pdf(b / c, scale=mean) / stats.expon.pdf(b, scale=mean)
        jacobian = c ** (x.size - 1)  # the rate is divided
        same(rates / c, entries * rates * jacobian)
        same(np.exp(learned.resized(Component(), np.array([[b]]), c)[1]), rates / c)
