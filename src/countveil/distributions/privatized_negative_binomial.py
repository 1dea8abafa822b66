"""A report: a count that comes in bursts, which is negative binomial, plus two-sided geometric noise."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countveil.distributions._checks import FloatArray, check_alpha, check_dispersion, check_non_negative
from countveil.distributions._law import Law
from countveil.kernels.compiled import elementwise
from countveil.kernels.series import log_complement
from countveil.laws.noise.two_sided_geometric import bursty_reports as laws
from countveil.laws.noise.two_sided_geometric import formulas

LOG_HALF = math.log(0.5)


@elementwise
def _logpmf(k: Any, rate: Any, dispersion: Any, alpha: Any) -> Any:
    return laws.report_logpmf(k, rate, dispersion, alpha)


@elementwise
def _logcdf(k: Any, rate: Any, dispersion: Any, alpha: Any) -> Any:
    lower = laws.lower_tail(k, rate, dispersion, alpha)
    return lower if lower < LOG_HALF else log_complement(laws.upper_tail(k, rate, dispersion, alpha))


@elementwise
def _logsf(k: Any, rate: Any, dispersion: Any, alpha: Any) -> Any:
    upper = laws.upper_tail(k, rate, dispersion, alpha)
    return upper if upper < LOG_HALF else log_complement(laws.lower_tail(k, rate, dispersion, alpha))


@elementwise
def _mode(rate: Any, dispersion: Any, alpha: Any) -> Any:
    return laws.mode(rate, dispersion, alpha)


class PrivatizedNegativeBinomial(Law):
    """The law of a report r = y + tau: a count y that comes in bursts plus two-sided geometric noise tau.

    P(r) = (1 - alpha) / (1 + alpha) * sum_y NB(y) alpha^|r - y|,   r any integer

    The number of bursts is Poisson with the given rate, and each has a logarithmic size with the parameter dispersion,
    p. Then y is negative binomial with mean rate p / (q (1 - p)), q = -log(1 - p), and variance mean / (1 - p), and at
    p near 0 it is Poisson. NumPy and SciPy call 1 - p ``p``, and rate / q ``n``; given their ``n`` and ``p``, the
    rate is -n log(p) and the dispersion 1 - p. Given a mean and a concentration, as regressions have them, the rate is
    concentration log(1 + mean / concentration) and the dispersion mean / (mean + concentration).

    rate is a number or an array, finite and non-negative; dispersion in (0, 1); alpha in [0, 1), where 0 leaves the
    negative binomial law. ValueError otherwise. At zero and below the law is geometric. Work per value grows with the
    standard deviation of the count, or where that is less with 1 / (1 - alpha).

    >>> float(PrivatizedNegativeBinomial(rate=1.0, dispersion=0.5, alpha=0.5).cdf(0).round(6))
    0.371418
    """

    rate: float | FloatArray
    dispersion: float | FloatArray
    alpha: float | FloatArray
    _kernel_logpmf = staticmethod(_logpmf)
    _kernel_logcdf = staticmethod(_logcdf)
    _kernel_logsf = staticmethod(_logsf)

    def __init__(self, rate: ArrayLike, dispersion: ArrayLike, alpha: ArrayLike) -> None:
        super().__init__(
            rate=check_non_negative("rate", rate), dispersion=check_dispersion(dispersion), alpha=check_alpha(alpha)
        )

    def mean(self) -> Any:
        """E[r] = rate p / (q (1 - p))."""
        return np.broadcast_to(self._mean_of_count(), self.shape).copy()[()]

    def var(self) -> Any:
        """Var[r] = rate p / (q (1 - p)^2) + 2 alpha / (1 - alpha)^2."""
        _, p, alpha = self._parameters
        return np.asarray(self._mean_of_count() / (1.0 - p) + formulas.variance(alpha))[()]

    def mode(self) -> Any:
        """The most probable report, the greater where two tie; there is one peak."""
        with np.errstate(all="ignore"):
            return _mode(*self._parameters)

    def _mean_of_count(self) -> FloatArray:
        rate, p, _ = self._parameters
        return np.asarray(rate * (p / (-np.log1p(-p) * (1.0 - p))))

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
        rate, p, alpha = self._parameters
        means = rng.standard_gamma(rate / -np.log1p(-p), shape) * (p / (1.0 - p))
        return rng.poisson(means) + formulas.sample(alpha, rng, shape)
