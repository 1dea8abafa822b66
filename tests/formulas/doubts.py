"""Checks of section 19: what reports say of their mechanism, whatever the counts are."""

from functools import reduce
from itertools import product
from math import exp

import numpy as np
from scipy import stats

from countveil import mechanisms as m
from countveil.data.mechanism_checks import excess
from countveil.data.provenance import log_agreement, log_most_probable
from tests.formulas.brute import ALPHAS, NOISE, formula, noise_pmf, same

SKELLAMS = (0.2, 1.0, 7.5)  # both rates


def laws():
    """(mechanism, P(tau) over ``NOISE``) of symmetric noise of whole numbers."""
    for alpha in ALPHAS:
        yield m.TwoSidedGeometric(alpha), noise_pmf(NOISE, alpha)
    for rate in SKELLAMS:
        yield m.Skellam(rate, rate), stats.skellam.pmf(NOISE, rate, rate)


def moments(mass, noise=NOISE):
    """(variance, kurtosis) by their sums."""
    variance = mass @ noise**2.0
    return variance, mass @ noise**4.0 / variance**2


@formula("19.1")
def equal_reports():
    r"""P(\tau_1 = \tau_2) = \frac{(1 - \alpha)(1 + \alpha^2)}{(1 + \alpha)^3}"""
    for alpha in ALPHAS:
        printed = (1 - alpha) * (1 + alpha**2) / (1 + alpha) ** 3
        same(printed, noise_pmf(NOISE, alpha) @ noise_pmf(NOISE, alpha))
        same(exp(log_agreement(m.TwoSidedGeometric(alpha), m.TwoSidedGeometric(alpha))), printed)


@formula("19.2")
def equal_reports_of_two_counts():
    r"""P(y + \tau_1 = z + \tau_2) \le \max_t P(\tau = t)"""
    for mechanism, mass in laws():
        most = exp(log_most_probable(mechanism))
        same(most, mass.max())
        assert all(mass[shift:] @ mass[: mass.size - shift] <= most for shift in range(12))


@formula("19.3")
def reports_below_zero():
    r"""P(y + \tau \le r) \le P(\tau \le r), \quad \mathrm{E}[\min(y + \tau, 0)^2] \le \mathrm{E}[\min(\tau,
    0)^2] = \frac{s^2}{2}
    """
    for (_, mass), y in product(laws(), range(12)):
        assert all(mass @ (y + NOISE <= r) <= mass @ (r >= NOISE) for r in range(-20, 1))
        squares = [mass @ np.minimum(count + NOISE, 0) ** 2.0 for count in (y, 0)]
        assert squares[0] <= squares[1]
        same(squares[1], moments(mass)[0] / 2)


@formula("19.4")
def their_spread():
    r"""\mathrm{Var}[\min(\tau, 0)^2] = s^4 \Big( \frac{k}{2} - \frac{1}{4} \Big)"""
    for _, mass in laws():
        variance, kurtosis = moments(mass)
        squares = np.minimum(NOISE, 0) ** 2.0
        same(variance**2 * (kurtosis / 2 - 0.25), mass @ squares**2 - (mass @ squares) ** 2)


@formula("19.5")
def kurtoses():
    r"""k = \begin{cases} 6 + (1 - \alpha)^2 / (2 \alpha) & \text{for two-sided geometric noise} \cr 3 + 1 /
    (\lambda_1 + \lambda_2) & \text{for Skellam noise} \end{cases}
    """
    for alpha in ALPHAS:
        printed = 6 + (1 - alpha) ** 2 / (2 * alpha)
        same([printed, 3 + excess(m.TwoSidedGeometric(alpha))], moments(noise_pmf(NOISE, alpha))[1])
    for rate in SKELLAMS:
        printed = 3 + 1 / (rate + rate)
        same([printed, 3 + excess(m.Skellam(rate, rate))], moments(stats.skellam.pmf(NOISE, rate, rate))[1])
    same([excess(m.Laplace(2.0)), excess(m.Gaussian(2.0))], [stats.laplace.stats(moments="k"), 0.0])


@formula("19.6")
def squares_of_sums():
    r"""\mathrm{Var}\Big[ \frac{(\tau_1 + \cdots + \tau_n)^2}{S} \Big] = 2 + \frac{(k_1 - 3) s_1^4 + \cdots +
    (k_n - 3) s_n^4}{S^2}
    """
    near = np.abs(NOISE) <= 400
    narrow = [mass[near] for _, mass in laws() if moments(mass)[0] <= 100]  # wider sums need a longer table
    assert len(narrow) > 2
    for laws_of_sum in ([each] * n for each in narrow for n in (2, 3)):
        check_sum(laws_of_sum)
    for other in narrow[1:]:
        check_sum([narrow[0], other, narrow[0]])


def check_sum(masses):
    """Equation (19.6) of independent noise with these laws."""
    reach = (masses[0].size - 1) // 2
    variance, kurtosis = np.transpose([moments(mass, np.arange(-reach, reach + 1)) for mass in masses])
    total = reduce(np.convolve, masses)
    tau, size = np.arange(total.size) - total.size // 2, variance.sum()
    squares = tau**2 / size
    same(total @ squares, 1.0)
    same(2 + ((kurtosis - 3) * variance**2).sum() / size**2, total @ squares**2 - 1.0)
