"""Checks of section 21: topics of topics."""

import numpy as np
from scipy import integrate, special, stats

from countveil.models.factorization import Factor
from countveil.models.priors import LayeredRowsPrior, layered_rows
from countveil.models.priors.prior import Conditional
from tests.formulas.brute import formula, same
from tests.layers import draw_layers

SHAPE, B = (3, 2), np.array([0.5, 1.3, 2.0])
ONE, TWO = LayeredRowsPrior(1.5, 4.0, ()), LayeredRowsPrior(1.5, 4.0, (2,))
ONES = np.ones(SHAPE[0])


def uniform(places):
    """Whether values of distribution functions are uniform."""
    return stats.kstest(np.ravel(places), "uniform").pvalue > 1e-4


def place(shape, rate, value):
    """The distribution function of a gamma; ``stats.gamma`` takes ten times as long for it."""
    return special.gammainc(shape, rate * value)


def known(prior, **values):
    """Layers of three rows and two components, some of whose values are known."""
    return draw_layers(prior, SHAPE, ONES, np.random.default_rng(1))[0]._replace(**values)


@formula("21.1")
def layers():
    r"""\theta^{(t)}_{dk} \sim \mathrm{Gamma}\Big( \sum_j \phi^{(t+1)}_{kj} \theta^{(t+1)}_{dj}, \; b_{td} \Big),
    \quad \theta^{(T)}_{dl} \sim \mathrm{Gamma}(r_l, b_{Td})
    """
    rng, nothing = np.random.default_rng(2), layered_rows.Seated((np.zeros(SHAPE),) * 2, (0.0 * ONES,) * 2)
    own = known(TWO, rates=np.array([B, B[::-1]]))
    places = []
    for _ in range(800):  # without counts, sweeps draw from the prior
        drawn, value = TWO.pass_downwards(own, ONES, nothing, rng)
        places.append(place(own.top, B[::-1, None], drawn.upper[0]))
        places.append(place(drawn.upper[0] @ own.loadings[0].T, B[:, None], value))
    assert uniform(places)


@formula("21.2")
def exposures_of_shapes():
    r"""\mathrm{E}\big[ e^{-q_{t-1} \theta} \mid x \big] = e^{-q_t x}, \quad q_t = \log\Big( 1 +
    \frac{q_{t-1}}{b_t} \Big)
    """
    for b, q, x in ((0.5, 1.0, 0.7), (2.0, 0.3, 3.0)):
        law = stats.gamma(x, scale=1.0 / b)
        brute = integrate.quad(lambda y, law=law, q=q: np.exp(-q * y) * law.pdf(y), 0.0, np.inf)[0]
        same(np.exp(-np.log(1.0 + q / b) * x), brute, rtol=1e-6)
        same(layered_rows.lost(np.array([q]), np.array([b])), [np.log(1.0 + q / b)])
    found = TWO.pass_upwards(
        known(TWO, rates=np.array([B, B[::-1]])), ONES, np.ones(SHAPE), 0.7 * ONES, np.random.default_rng(3)
    )[1]
    same(found.exposures[1], np.log(1.0 + 0.7 / B))


@formula("21.3")
def loadings_and_shapes_of_the_top():
    r"""\phi^{(t+1)}_{\cdot j} \mid l \sim \mathrm{Dirichlet}\Big( \eta + \sum_d l_{d \cdot j} \Big), \quad r_l
    \mid l \sim \mathrm{Gamma}\Big( .5 + \sum_d l_{dl}, \; \frac{.5}{r_0} + \sum_d q_{Td} \Big)
    """
    count, rng = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]]), np.random.default_rng(4)  # as many tables
    q, tables, r_0 = np.log(1.0 + 0.7 / B), count.sum(axis=0), ONE.usual_top(2)
    for number in range(2):

        def brute(r, number=number):
            means = np.multiply.outer(r, q)
            prior = stats.gamma.logpdf(r, 0.5, scale=r_0 / 0.5)
            return prior + stats.poisson.logpmf(count[:, number], means).sum(axis=1)

        r = np.array([0.3, 1.0, 2.5])
        printed = stats.gamma.logpdf(r, 0.5 + tables[number], scale=1.0 / (0.5 / r_0 + q.sum()))
        same(np.diff(printed), np.diff(brute(r)))
    own, found = known(ONE, rates=B[None]), []
    for _ in range(800):
        drawn = ONE.pass_upwards(own, ONES, count, 0.7 * ONES, rng)[0].top
        found.append(place(0.5 + tables, 0.5 / r_0 + q.sum(), drawn))
    assert uniform(found)
    single, found = LayeredRowsPrior(1.5, 4.0, (1,)), []
    own = known(single, rates=np.array([B, B]))
    for _ in range(800):
        drawn = single.pass_upwards(own, ONES, count, 0.7 * ONES, rng)[0]
        a, b = drawn.concentrations[0] + tables
        found.append(special.betainc(a, b, drawn.loadings[0][0, 0]))
    assert uniform(found)


@formula("21.4")
def a_layer_given_its_counts():
    r"""\theta^{(t)}_{dj} \mid x, m \sim \mathrm{Gamma}(x_{dj} + m_{dj}, \; b_{td} + q_{t-1,d})"""
    theta, x, m, b, q = np.array([0.2, 0.9, 3.0]), 0.7, 2.0, 1.3, 0.6
    printed = stats.gamma.logpdf(theta, x + m, scale=1.0 / (b + q))
    brute = stats.gamma.logpdf(theta, x, scale=1.0 / b) + stats.poisson.logpmf(m, q * theta)
    same(np.diff(printed), np.diff(brute))
    rng, own = np.random.default_rng(5), known(TWO, rates=np.array([B, B[::-1]]))
    m = np.array([[3.0, 0.0], [1.0, 9.0], [5.0, 2.0]])
    seated, places = layered_rows.Seated((m, m[::-1]), (0.4 * ONES, 0.9 * ONES)), []
    for _ in range(800):
        drawn, value = TWO.pass_downwards(own, ONES, seated, rng)
        (upper,) = drawn.upper
        places.append(place(own.top + m[::-1], (B[::-1] + 0.9)[:, None], upper))
        places.append(place(upper @ own.loadings[0].T + m, (B + 0.4)[:, None], value))
    assert uniform(places)


@formula("21.5")
def rates_of_layers():
    r"""\begin{aligned} b_{td} \mid \theta & \sim \mathrm{Gamma}\Big( s_t + \sum_j \theta^{(t+1)}_{dj}, \; s_t
    c_t + \sum_k \theta^{(t)}_{dk} \Big), \cr c_t \mid b & \sim \mathrm{Gamma}\Big( .1 + D s_t, \;
    \frac{.1}{c_{t0}} + s_t \sum_d b_{td} \Big) \end{aligned}
    """
    own, rng = known(TWO, steadiness=np.array([3.0, 1.7])), np.random.default_rng(6)
    value, (upper,) = np.array([[0.3, 2.0], [1.0, 0.2], [4.0, 1.0]]), own.upper
    s, c, usual = own.steadiness, own.levels, TWO.usual_levels(2)
    shapes, b = upper @ own.loadings[0].T, np.array([0.3, 1.0, 2.5])
    for d in range(3):
        printed = stats.gamma.logpdf(b, s[0] + upper[d].sum(), scale=1.0 / (s[0] * c[0] + value[d].sum()))
        brute = stats.gamma.logpdf(b, s[0], scale=1.0 / (s[0] * c[0]))
        for v, x in zip(value[d], shapes[d], strict=True):
            brute = brute + stats.gamma.logpdf(v, x, scale=1.0 / b)
        same(np.diff(printed), np.diff(brute))
    levels = np.array([0.4, 1.1, 3.0])
    printed = stats.gamma.logpdf(levels, 0.1 + 3 * s[0], scale=1.0 / (0.1 / usual[0] + s[0] * b.sum()))
    brute = stats.gamma.logpdf(levels, 0.1, scale=usual[0] / 0.1)
    brute = brute + sum(stats.gamma.logpdf(each, s[0], scale=1.0 / (s[0] * levels)) for each in b)
    same(np.diff(printed), np.diff(brute))
    places = []
    for _ in range(800):
        drawn = TWO.draw_rates(own, ONES, value, rng)
        for t, (shape, sums) in enumerate(((upper.sum(axis=1), value), (own.top.sum(), upper))):
            places.append(place(s[t] + shape, s[t] * c[t] + sums.sum(axis=1), drawn.rates[t]))
            rate = 0.1 / usual[t] + s[t] * drawn.rates[t].sum()
            places.append([place(0.1 + 3 * s[t], rate, drawn.levels[t])])
    assert uniform(np.concatenate(places))


@formula("21.6")
def shares_of_upper_topics():
    r"""s_j = \sum_d \theta_{d \cdot} \frac{\theta^{(t)}_{dj}}{\sum_i \theta^{(t)}_{di}} \Big/ \sum_d \theta_{d
    \cdot}
    """
    prior, rng = TWO, np.random.default_rng(7)
    own, value = draw_layers(prior, SHAPE, ONES, rng)
    given = Conditional(1.0, value, np.ones(SHAPE), np.ones(SHAPE))
    factor = Factor("theta", "dk", SHAPE, (1, SHAPE[1]), prior)
    value, hypers = prior.draw(factor, layered_rows.packed(own), given, rng)
    (upper,) = prior.layers_of(hypers, SHAPE).upper
    words = [value[d].sum() * upper[d] / upper[d].sum() for d in range(3)]
    found = prior.reported(factor, hypers[None, None])["_layer2_share"][1][0, 0]
    same(found, np.sum(words, axis=0) / value.sum())
