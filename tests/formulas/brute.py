"""The register of the checks, and the sums over true counts that formulas are compared with.

A check's docstring is its formula as docs/mathematics.md prints it. The test compares both.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import special

CHECKS: dict[str, Callable[[], None]] = {}
ALPHAS = (0.1, float(np.exp(-1.0)), 0.7, 0.95)
RATES = (0.01, 0.3, 1.0, 3.7, 21.5, 90.0, 200.0)
REPORTS = np.arange(-20, 151)
COUNTS = np.arange(700)  # at rate 200 the counts beyond have a chance below 1e-100
NOISE = np.arange(-1500, 1501)


def formula(number: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a check under the number of its formula."""

    def register(check: Callable[[], None]) -> Callable[[], None]:
        assert number not in CHECKS, number
        CHECKS[number] = check
        return check

    return register


@cache
def noise_table(alpha: float) -> np.ndarray:
    """The chance that two geometric variables differ by 0, 1, ..., summed over the smaller one."""
    geometric = (1 - alpha) * alpha ** np.arange(4000.0)
    return np.correlate(geometric, geometric[:1000])


def noise_pmf(tau: np.ndarray, alpha: float) -> np.ndarray:
    """Two-sided geometric noise as what it is, a difference of two geometric variables; |tau| up to 3000."""
    return noise_table(float(alpha))[np.abs(tau)]


@cache
def log_terms(alpha: float, rate: float) -> np.ndarray:
    """(report, count) log of P(y | rate) P(r - y), over ``REPORTS`` and ``COUNTS``."""
    log_poisson = COUNTS * np.log(rate) - rate - special.gammaln(COUNTS + 1.0)
    distance = np.abs(REPORTS[:, None] - COUNTS)
    return log_poisson + np.log((1 - alpha) / (1 + alpha)) + distance * np.log(alpha)


@cache
def log_chance(alpha: float, rate: float) -> np.ndarray:
    """log P(r | rate) over ``REPORTS``, by the sum over all counts."""
    return special.logsumexp(log_terms(alpha, rate), axis=1)


@cache
def count_law(alpha: float, rate: float) -> np.ndarray:
    """(report, count) P(y | r, rate), by Bayes' rule."""
    return np.exp(log_terms(alpha, rate) - log_chance(alpha, rate)[:, None])


def expected_count(alpha: float, rate: float) -> np.ndarray:
    """E[y | r, rate] over ``REPORTS``."""
    return count_law(alpha, rate) @ COUNTS


def settings() -> list[tuple[float, float]]:
    """Every level with every rate."""
    return [(alpha, rate) for alpha in ALPHAS for rate in RATES]


def same(one: object, other: object, rtol: float = 1e-10, atol: float = 0.0) -> None:
    """Equal up to rounding."""
    np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, equal_nan=False)


def slope(function: Callable[[float], float], at: float, step: float = 1e-4) -> float:
    """A derivative by a central difference of fourth order."""
    h = step * max(abs(at), 1.0)
    near, far = function(at + h) - function(at - h), function(at + 2 * h) - function(at - 2 * h)
    return (8 * near - far) / (12 * h)


def gamma_logpdf(x: np.ndarray, shape: float, rate: float) -> np.ndarray:
    """log of the Gamma(shape, rate) density."""
    return shape * np.log(rate) + (shape - 1) * np.log(x) - rate * x - special.gammaln(shape)
