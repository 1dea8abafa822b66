"""Checks of sections 1, 2 and 9: the noise, and one report of one count."""

from fractions import Fraction
from functools import cache
from itertools import product
from math import exp, floor, log

import mpmath
import numpy as np
from mpmath import mpf
from scipy import special, stats

import countveil as cv
from countveil.distributions import TwoSidedGeometric
from countveil.privacy import promise
from tests.formulas.brute import (
    ALPHAS,
    COUNTS,
    NOISE,
    REPORTS,
    count_law,
    expected_count,
    formula,
    log_chance,
    log_terms,
    noise_pmf,
    same,
    settings,
    slope,
)
from tests.reference import chi_square_p_value

POSITIVE = (1, 2, 3, 7, 20, 61, 150)  # reports for what takes many digits


def rows(reports):
    """Where these reports are in ``REPORTS``."""
    return np.searchsorted(REPORTS, reports)


@formula("1.1")
def the_noise():
    r"""P(\tau) = \frac{1 - \alpha}{1 + \alpha} \, \alpha^{|\tau|}, \quad \tau = \ldots, -1, 0, 1, \ldots"""
    tau = np.arange(-60, 61)
    for alpha in ALPHAS:
        printed = (1 - alpha) / (1 + alpha) * alpha ** np.abs(tau)
        same(printed, noise_pmf(tau, alpha))
        same(TwoSidedGeometric(alpha).pmf(tau), printed)


@formula("1.2")
def its_moments():
    r"""\mathrm{E}[\tau] = 0, \quad \mathrm{Var}[\tau] = \frac{2 \alpha}{(1 - \alpha)^2}"""
    for alpha in ALPHAS:
        chance, law = noise_pmf(NOISE, alpha), TwoSidedGeometric(alpha)
        same(chance @ NOISE, 0.0, atol=1e-9)
        same(2 * alpha / (1 - alpha) ** 2, chance @ NOISE**2)
        same([law.mean(), law.var()], [0.0, 2 * alpha / (1 - alpha) ** 2])


@formula("1.3")
def the_promise():
    r"""\max_r \, \log \frac{P(r \mid y)}{P(r \mid z)} = \log(1/\alpha) \sum_i |y_i - z_i|"""
    shifts = np.arange(-12, 13)
    for alpha, y, z in product(ALPHAS, [(0, 0), (3, 1)], [(0, 0), (2, 5), (4, 0)]):
        loss = [np.log(noise_pmf(shifts - a, alpha) / noise_pmf(shifts - b, alpha)) for a, b in zip(y, z, strict=True)]
        largest = np.add.outer(*loss).max()
        same(log(1 / alpha) * sum(abs(a - b) for a, b in zip(y, z, strict=True)), largest, atol=1e-12)


@formula("1.4")
def the_level():
    r"""\alpha = \exp(-\varepsilon / N)"""
    for epsilon, precision in product((0.5, 1.0, 4.0), (1, 2, 7)):
        alpha = exp(-epsilon / precision)
        y, shifts = np.arange(precision + 1), np.arange(-30, 31)
        losses = [np.abs(np.log(noise_pmf(shifts, alpha) / noise_pmf(shifts - far, alpha))).max() for far in y]
        same(max(losses), epsilon)
        same(cv.PrivacyLevel(epsilon=epsilon, precision=precision).alpha, alpha, 1e-15)


def renyi(one: np.ndarray, other: np.ndarray, order: float) -> float:
    """The divergence of this order between two laws by their logs."""
    return float(np.logaddexp.reduce(order * one + (1 - order) * other)) / (order - 1)


@formula("1.5")
def gaussian_noise():
    r"""P(\tau) = \frac{\exp(-\tau^2 / (2 \sigma^2))}{\sum_k \exp(-k^2 / (2 \sigma^2))}, \quad \sigma^2 =
    \frac{1}{2 \rho}
    """
    for rho in (0.01, 0.125, 2.0):
        law = cv.mechanisms.DiscreteGaussian.keeping(rho)
        sigma = (1 / (2 * rho)) ** 0.5
        printed = np.exp(-(NOISE**2) / (2 * sigma**2)) / np.exp(-(NOISE**2) / (2 * sigma**2)).sum()
        same(float(law.sigma), sigma)
        same(law.standard_deviation**2, printed @ NOISE**2, 1e-9)
        same(law.false_positive_rate, printed[NOISE > 0].sum(), 1e-9)


@formula("1.6")
def its_promise():
    r"""D_a(P(r \mid y), P(r \mid z)) \le a \rho \sum_i (y_i - z_i)^2"""
    r = np.arange(-200, 201)
    for rho, order, y, z in product((0.01, 0.125, 1.0), (1.01, 2.0, 6.0), [(0, 0), (3, 1)], [(2, 5), (4, 0)]):
        logs = [[-rho * (r - c) ** 2.0 for c in cells] for cells in (y, z)]
        logs = [[log_p - np.logaddexp.reduce(log_p) for log_p in cells] for cells in logs]
        found = sum(renyi(one, other, order) for one, other in zip(*logs, strict=True))
        distance = sum((a - b) ** 2 for a, b in zip(y, z, strict=True))
        assert found <= order * rho * distance * (1 + 1e-9)
        same(found, order * rho * distance, 0.05 if rho < 1 else 0.9)  # attained, nearly, where noise is wide


@formula("1.7")
def epsilon_and_delta():
    r"""\varepsilon = \min_{a > 1} \left[ a \rho + \frac{\log(1 / (a \delta))}{a - 1} + \log(1 - 1/a) \right]"""
    tau = np.arange(-400, 401)
    for rho, delta in product((0.01, 0.125, 2.0), (1e-3, 1e-6)):
        a = 1 + np.exp(np.linspace(-8, 8, 20_001))
        printed = (a * rho + np.log(1 / (a * delta)) / (a - 1) + np.log(1 - 1 / a)).min()
        same(cv.PrivacyLevel.zcdp(rho).epsilon_for(delta), printed, 1e-6)
        here, there = (np.exp(-rho * (tau - shift) ** 2.0) for shift in (0, 1))
        needed = np.maximum(here / here.sum() - exp(printed) * there / there.sum(), 0).sum()
        assert needed <= delta


@formula("1.8")
def the_other_noise():
    r"""D_a(P(r \mid y), P(r \mid z)) \le a \, \frac{(\varepsilon / N)^2}{2} \sum_i (y_i - z_i)^2"""
    r = np.arange(-600, 601)
    for rate, order, far in product((0.1, 0.5, 2.0), (1.01, 2.0, 6.0), (1, 2, 5)):
        one, other = (np.log(np.tanh(rate / 2)) - rate * np.abs(r - count) for count in (0, far))
        assert renyi(one, other, order) <= order * rate**2 / 2 * far**2 * (1 + 1e-9)
        level = cv.PrivacyLevel(epsilon=rate, precision=1)
        same(float(level.kept_rho), rate**2 / 2)


@formula("1.9")
def wrong_guesses():
    r"""\frac{1 - \mathrm{TV}}{2} = \begin{cases} \tfrac{1}{2} \exp(-d \varepsilon / (2 N)) & \text{if } d
    \text{ is even} \cr \exp(-d \varepsilon / (2 N)) / (2 \cosh(\varepsilon / (2 N))) & \text{if } d \text{
    is odd} \end{cases}
    """
    r = np.arange(-900, 901)
    for rate, d in product((0.1, 0.5, 2.0), (1, 2, 3, 6)):
        one, other = (np.tanh(rate / 2) * np.exp(-rate * np.abs(r - count)) for count in (0, d))
        wrong = np.minimum(one, other).sum() / 2
        same(exp(-d * rate / 2) / 2 / (1 if d % 2 == 0 else np.cosh(rate / 2)), wrong, 1e-9)
        same(promise.wrong_guesses(Fraction(rate), d), wrong, 1e-9)
        assert wrong >= 1 / (1 + exp(d * rate)) * (1 - 1e-9)
        pairs = np.minimum(np.multiply.outer(one, one), np.multiply.outer(other, other)).sum() / 2
        assert pairs > promise.wrong_guesses(Fraction(rate), 2 * d)


@formula("1.10")
def wrong_guesses_between_neighbours():
    r"""\frac{1 - \mathrm{TV}}{2} = \frac{1 - P(\tau = 0)}{2}"""
    tau = np.arange(-400, 401)
    for rho in (1e-3, 0.125, 2.0, 12.0):
        here, there = (np.exp(-rho * (tau - count) ** 2.0) for count in (0, 1))
        here, there = here / here.sum(), there / there.sum()
        wrong = np.minimum(here, there).sum() / 2
        same((1 - here[400]) / 2, wrong, 1e-9)
        same(promise.wrong_guesses_of_rho(Fraction(rho)), wrong, 1e-9)


@formula("2.1")
def the_weights():
    r"""w(y) = \frac{\mu^y}{y!} \, \alpha^{|r - y|}, \quad y = 0, 1, 2, \ldots"""
    y = np.arange(60)
    for alpha, mu, r in product(ALPHAS, (0.3, 3.7, 9.0), (-3, 0, 1, 8)):
        w = mu**y / special.factorial(y) * alpha ** np.abs(r - y).astype(float)
        bayes = stats.poisson.pmf(y, mu) * noise_pmf(r - y, alpha)
        same(w / w.sum(), bayes / bayes.sum(), atol=1e-14)
        rng = np.random.default_rng(1)
        draws = cv.sample_true_counts(np.full(4000, r), mu, alpha, rng)
        assert chi_square_p_value(draws, 0, w / w.sum()) > 1e-4


@formula("2.2")
def chance_of_a_report():
    r"""P(r \mid \mu) = \frac{1 - \alpha}{1 + \alpha} \left[ \alpha^r e^{\mu / \alpha - \mu} \, Q(r + 1, \mu /
    \alpha) + \alpha^{-r} e^{\mu \alpha - \mu} \, P(r + 1, \mu \alpha) \right], \quad r \ge 0
    """
    for alpha, mu in settings():
        printed = [float(mpmath.log(chance(r, mpf(alpha), mpf(mu)))) for r in (0, *POSITIVE)]
        same(printed, log_chance(alpha, mu)[rows((0, *POSITIVE))], 1e-11, 1e-11)
        same(cv.log_likelihood(REPORTS, mu, alpha), log_chance(alpha, mu), 1e-11, 1e-11)


def upper(s, x):
    """Q(s, x)."""
    return mpmath.gammainc(s, x, regularized=True)


def lower(s, x):
    """P(s, x)."""
    return mpmath.gammainc(s, 0, x, regularized=True)


def chance(r, alpha, mu):
    """P(r | mu) by (2.2)."""
    left = alpha**r * mpmath.exp(mu / alpha - mu) * upper(r + 1, mu / alpha)
    right = alpha**-r * mpmath.exp(mu * alpha - mu) * lower(r + 1, mu * alpha)
    return (1 - alpha) / (1 + alpha) * (left + right)


@formula("2.3")
def expectation_of_a_count():
    r"""\mathrm{E}[y \mid r, \mu] = \frac{1 - \alpha}{1 + \alpha} \cdot \frac{ \frac{\mu}{\alpha} \, \alpha^r
    e^{\mu / \alpha - \mu} \, Q(r, \mu / \alpha) + \mu \alpha \, \alpha^{-r} e^{\mu \alpha - \mu} \, P(r,
    \mu \alpha) }{ P(r \mid \mu) }, \quad r > 0
    """
    for alpha, mu in settings():
        a, m, printed = mpf(alpha), mpf(mu), []
        for r in POSITIVE:
            left = m / a * a**r * mpmath.exp(m / a - m) * upper(r, m / a)
            right = m * a * a**-r * mpmath.exp(m * a - m) * lower(r, m * a)
            printed.append(float((1 - a) / (1 + a) * (left + right) / chance(r, a, m)))
        same(printed, expected_count(alpha, mu)[rows(POSITIVE)])
        same(cv.expected_true_counts(REPORTS, mu, alpha), expected_count(alpha, mu))


@formula("2.4")
def counts_behind_reports_that_are_not_positive():
    r"""y \mid r, \mu \sim \mathrm{Poisson}(\alpha \mu), \quad r \le 0"""
    for alpha, mu in settings():
        law = count_law(alpha, mu)[REPORTS <= 0]
        same(law, np.tile(stats.poisson.pmf(COUNTS, alpha * mu), (len(law), 1)), 1e-9, 1e-15)
        draws = cv.sample_true_counts(np.repeat([-5, 0], 1000), mu, alpha, np.random.default_rng(2))
        assert chi_square_p_value(draws, 0, stats.poisson.pmf(COUNTS, alpha * mu)) > 1e-4


@formula("2.5")
def chance_of_reports_that_are_not_positive():
    r"""P(r \mid \mu) = \frac{1 - \alpha}{1 + \alpha} \, \alpha^{-r} e^{-(1 - \alpha) \mu}, \quad r \le 0"""
    r = REPORTS[REPORTS <= 0]
    for alpha, mu in settings():
        printed = (1 - alpha) / (1 + alpha) * alpha ** -r.astype(float) * exp(-(1 - alpha) * mu)
        same(printed, np.exp(log_chance(alpha, mu)[REPORTS <= 0]))
        same(np.exp(cv.log_likelihood(r, mu, alpha)), printed)


@formula("2.6")
def chance_of_not_positive():
    r"""P(r \le 0 \mid \mu) = \frac{e^{-(1 - \alpha) \mu}}{1 + \alpha}"""
    for alpha, mu in settings():
        tails = np.cumsum(noise_pmf(NOISE, alpha))[NOISE <= 0][::-1][: len(COUNTS)]  # P(tau <= -y)
        printed = exp(-(1 - alpha) * mu) / (1 + alpha)
        same(printed, stats.poisson.pmf(COUNTS, mu) @ tails, 1e-9, 1e-15)
        same(cv.log_likelihood(-3, mu, alpha, truncated=True), log(printed))


@formula("2.7")
def chance_that_a_zero_turns_positive():
    r"""P(r > 0 \mid y = 0) = \frac{\alpha}{1 + \alpha}"""
    for alpha in ALPHAS:
        same(alpha / (1 + alpha), noise_pmf(NOISE[NOISE > 0], alpha).sum())
        same(alpha / (1 + alpha), TwoSidedGeometric(alpha).sf(0))


@formula("2.8")
def gradient():
    r"""\frac{d}{d \mu} \log P(r \mid \mu) = \frac{\mathrm{E}[y \mid r, \mu]}{\mu} - 1"""
    for alpha, mu in settings():
        for r in (-20, -1, 0, *POSITIVE):
            y = np.arange(700)

            def brute(rate, r=r, alpha=alpha, y=y):
                return special.logsumexp(
                    special.xlogy(y, rate) - rate - special.gammaln(y + 1) + abs(r - y) * log(alpha)
                )

            printed = expected_count(alpha, mu)[rows(r)] / mu - 1
            same(printed, slope(brute, mu, 1e-4 * min(mu, 1.0)), 1e-6, 1e-7)


@formula("2.9")
def ratios():
    r"""\frac{w(y)}{w(y - 1)} = \begin{cases} \mu / (\alpha y) & \text{if } y \le r \cr \mu \alpha / y &
    \text{if } y > r \end{cases}
    """
    y = np.arange(1, 50)
    for alpha, mu in settings():
        for r in (-4, 0, 5, 40):
            law = count_law(alpha, mu)[rows(r), :50]
            seen = law[1:] > 1e-250
            printed = np.where(y <= r, mu / (alpha * y), mu * alpha / y)
            same(printed[seen], law[1:][seen] / law[:-1][seen], 1e-9)


@formula("2.10")
def mode():
    r"""\text{mode of } w = \begin{cases} \lfloor \mu / \alpha \rfloor & \text{if } \mu / \alpha < r \cr \lfloor
    \mu \alpha \rfloor & \text{if } \mu \alpha > r \cr r & \text{otherwise} \end{cases} \qquad r \ge 0
    """
    for alpha, mu in settings():
        for r in REPORTS[REPORTS >= 0]:
            printed = floor(mu / alpha) if mu / alpha < r else floor(mu * alpha) if mu * alpha > r else r
            law = count_law(alpha, mu)[rows(r)]
            same(law[printed], law.max())  # the two greatest may be equal


@cache
def printed_sides(r, alpha, mu):
    """B and A of (9.1), in many digits: B may be beyond the doubles."""
    below = [mpf(1)]
    for j in range(1, r + 1):
        below.append(below[-1] * (r - j + 1) * mpf(alpha) / mpf(mu))
    above = [mpf(1)]
    while above[-1] > mpf(10) ** -40:
        above.append(above[-1] * mpf(mu) * mpf(alpha) / (r + len(above)))
    return mpmath.fsum(below[1:]), mpmath.fsum(above[1:])


@formula("9.1")
def sums_on_both_sides():
    r"""\begin{aligned} B & = \sum_{y < r} \frac{w(y)}{w(r)} = \sum_{j=1}^{r} \frac{r!}{(r - j)!} \Big(
    \frac{\alpha}{\mu} \Big)^j, \cr A & = \sum_{y > r} \frac{w(y)}{w(r)} = \sum_{j \ge 1} \frac{r!}{(r +
    j)!} (\mu \alpha)^j \end{aligned}
    """
    for alpha, mu in settings():
        for r in POSITIVE:
            terms = log_terms(alpha, mu)[rows(r)]
            brute = [special.logsumexp(part) - terms[r] for part in (terms[:r], terms[r + 1 :])]
            same([float(mpmath.log(side)) for side in printed_sides(r, alpha, mu)], brute, 1e-10, 1e-10)


@formula("9.2")
def chance_by_the_sums():
    r"""\log P(r \mid \mu) = \log \frac{1 - \alpha}{1 + \alpha} + r \log \mu - \mu - \log r! + \log(B + 1 + A),
    \quad r \ge 0
    """
    for alpha, mu in settings():
        for r in (0, *POSITIVE):
            below, above = printed_sides(r, alpha, mu)
            at_report = log((1 - alpha) / (1 + alpha)) + r * log(mu) - mu - special.gammaln(r + 1)
            printed = at_report + float(mpmath.log(below + 1 + above))
            same(printed, log_chance(alpha, mu)[rows(r)], 1e-10, 1e-10)


@formula("9.3")
def expectation_by_the_sums():
    r"""\frac{\mathrm{E}[y \mid r, \mu]}{\mu} = \frac{B / \alpha + \alpha (1 + A)}{B + 1 + A}, \quad r > 0"""
    for alpha, mu in settings():
        for r in POSITIVE:
            below, above = printed_sides(r, alpha, mu)
            printed = float((below / alpha + alpha * (1 + above)) / (below + 1 + above))
            same(printed, expected_count(alpha, mu)[rows(r)] / mu, 1e-9)
            same(printed, cv.expected_true_counts(r, mu, alpha) / mu, 1e-9)


@formula("9.4")
def expectation_at_small_rates():
    r"""\frac{\mathrm{E}[y \mid r, \mu]}{\mu} \to \frac{1}{\alpha} \text{ as } \mu \to 0, \quad r > 0"""
    for alpha, r in product(ALPHAS, POSITIVE):
        for mu in (1e-6, 1e-12):
            w = [mpf(mu) ** y / mpmath.factorial(y) * mpf(alpha) ** abs(r - y) for y in range(12)]
            brute = float(sum(y * each for y, each in enumerate(w)) / sum(w) / mu)
            same(1 / alpha, brute, 100 * mu / alpha**2)
            same(cv.expected_true_counts(r, mu, alpha) / mu, brute, 1e-12)
