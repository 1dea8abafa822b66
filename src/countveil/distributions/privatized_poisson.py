"""A report: a Poisson count plus two-sided geometric noise."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countveil.distributions._checks import FloatArray, check_alpha, check_non_negative
from countveil.distributions._law import Law
from countveil.kernels.compiled import elementwise, kernel
from countveil.kernels.series import log_complement
from countveil.laws.noise.two_sided_geometric import formulas
from countveil.laws.noise.two_sided_geometric.poisson import lower_tail, report_logpmf, upper_tail, weight_sums


@elementwise
def _logpmf(k: Any, rate: Any, alpha: Any) -> Any:
    return report_logpmf(k, rate, alpha)


@elementwise
def _logcdf(k: Any, rate: Any, alpha: Any) -> Any:
    if k < 0 or k < rate:
        return lower_tail(k, rate, alpha)
    return log_complement(upper_tail(k, rate, alpha))


@elementwise
def _logsf(k: Any, rate: Any, alpha: Any) -> Any:
    if k < 0 or k < rate - 1.0:
        return log_complement(lower_tail(k, rate, alpha))
    return upper_tail(k, rate, alpha)


@kernel
def _rises(r: int, rate: float, alpha: float) -> bool:
    """Whether P(r) >= P(r - 1): the weight at r and above against that below, less one factor alpha."""
    if r <= 0:
        return True
    _, below, at, above = weight_sums(r, rate, alpha)
    return at + above >= below / alpha


@elementwise
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
