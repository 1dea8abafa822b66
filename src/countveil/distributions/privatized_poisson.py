"""A report: a Poisson count plus two-sided geometric noise."""

import math
from typing import Any

import numpy as np
from numba import njit, vectorize
from numpy.typing import ArrayLike, NDArray

from countveil.distributions._checks import FloatArray, check_alpha, check_non_negative
from countveil.distributions._law import Law
from countveil.distributions._series import log_complement
from countveil.kernels.poisson import poisson_logpmf, sum_above, sum_below
from countveil.noise.two_sided_geometric import formulas
from countveil.noise.two_sided_geometric.formulas import exposure
from countveil.noise.two_sided_geometric.poisson import censored_logpmf, report_logpmf, weight_sums

# Both tails come from the same three numbers: with A = sum_{y <= k} P(y) alpha^(k - y) and B = sum_{y > k}
# P(y) alpha^(y - k), the noise's own tails summed over the count y give     P(r <= k) = P(y <= k) + (B -
# alpha A) / (1 + alpha),     P(r > k) = P(y > k) + (alpha A - B) / (1 + alpha). A <= P(y <= k) and B <= alpha
# P(y > k), so what is subtracted is never more than half of what it is taken from.


@vectorize(cache=True)
def _logpmf(k: Any, rate: Any, alpha: Any) -> Any:
    return report_logpmf(k, rate, alpha)


@njit(cache=True, nogil=True)
def _log_sum(log_a: float, log_b: float, factor: float) -> float:
    """log(a + factor b), for a sum known to be positive."""
    top = max(log_a, log_b)
    if top == -math.inf:
        return top
    return top + math.log(math.exp(log_a - top) + factor * math.exp(log_b - top))


@njit(cache=True, nogil=True)
def _lower_tail(k: int, rate: float, alpha: float) -> float:
    """log P(r <= k), for k below the rate."""
    if alpha > 0.0 and k <= 0:
        return censored_logpmf(rate, alpha) - k * math.log(alpha)
    if k < 0:
        return -math.inf
    log_count = poisson_logpmf(k, rate) + math.log1p(sum_below(k, rate))
    if alpha <= 0.0:
        return log_count
    scale, below, at, above = weight_sums(k, rate, alpha)
    return _log_sum(log_count, scale, (above - alpha * (below + at)) / (1.0 + alpha))


@njit(cache=True, nogil=True)
def _upper_tail(k: int, rate: float, alpha: float) -> float:
    """log P(r > k), for k >= 0 above the rate less one."""
    log_count = poisson_logpmf(k + 1, rate) + math.log1p(sum_above(k + 1, rate))
    if alpha <= 0.0:
        return log_count
    if k == 0:
        return math.log(alpha - math.expm1(-exposure(alpha) * rate)) - math.log1p(alpha)
    if rate <= 0.0:
        return (k + 1) * math.log(alpha) - math.log1p(alpha)
    scale, below, at, above = weight_sums(k, rate, alpha)
    return _log_sum(log_count, scale, (alpha * (below + at) - above) / (1.0 + alpha))


@vectorize(cache=True)
def _logcdf(k: Any, rate: Any, alpha: Any) -> Any:
    if k < 0 or k < rate:
        return _lower_tail(k, rate, alpha)
    return log_complement(_upper_tail(k, rate, alpha))


@vectorize(cache=True)
def _logsf(k: Any, rate: Any, alpha: Any) -> Any:
    if k < 0 or k < rate - 1.0:
        return log_complement(_lower_tail(k, rate, alpha))
    return _upper_tail(k, rate, alpha)


@njit(cache=True, nogil=True)
def _rises(r: int, rate: float, alpha: float) -> bool:
    """Whether P(r) >= P(r - 1): the weight at r and above against that below, less one factor alpha."""
    if r <= 0:
        return True
    _, below, at, above = weight_sums(r, rate, alpha)
    return at + above >= below / alpha


@vectorize(cache=True)
def _mode(rate: Any, alpha: Any) -> Any:
    r = int(rate)
    if alpha <= 0.0 or rate <= 0.0:
        return r
    while not _rises(r, rate, alpha):
        r -= 1
    while _rises(r + 1, rate, alpha):
        r += 1
    return r


class PrivatizedPoisson(Law):
    """The law of a report r = y + tau: a Poisson count y plus two-sided geometric noise tau.

    P(r) = (1 - alpha) / (1 + alpha) * sum_y rate^y e^(-rate) / y! * alpha^|r - y|,   r any integer

    rate is a number or an array, finite and non-negative; alpha a number or an array in [0, 1), where 0
    leaves the Poisson law. ValueError otherwise. At zero and below the law is geometric: P(r <= k) =
    alpha^(-k) e^(-(1 - alpha) rate) / (1 + alpha) for k <= 0. Source: Schein et al. (2019), equation 9, with
    the count summed out.

    >>> float(PrivatizedPoisson(rate=1.0, alpha=0.5).cdf(0).round(6))
    0.404354
    """

    rate: float | FloatArray
    alpha: float | FloatArray
    _kernel_logpmf = staticmethod(_logpmf)
    _kernel_logcdf = staticmethod(_logcdf)
    _kernel_logsf = staticmethod(_logsf)

    def __init__(self, rate: ArrayLike, alpha: ArrayLike) -> None:
        super().__init__(rate=check_non_negative("rate", rate), alpha=check_alpha(alpha))

    def mean(self) -> Any:
        """E[r] = rate."""
        return np.broadcast_to(self._parameters[0], self.shape).copy()[()]

    def var(self) -> Any:
        """Var[r] = rate + 2 alpha / (1 - alpha)^2."""
        return np.asarray(self.rate + formulas.variance(self.alpha))[()]

    def mode(self) -> Any:
        """The most probable report, the greater where two tie; the law is log-concave, so it has one peak."""
        with np.errstate(all="ignore"):
            return _mode(*self._parameters)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
        rate, alpha = self._parameters
        return rng.poisson(rate, shape) + formulas.sample(alpha, rng, shape)
