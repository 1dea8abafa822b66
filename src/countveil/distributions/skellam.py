"""The difference of two Poisson counts."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countveil.distributions._checks import FloatArray, check_non_negative
from countveil.distributions._law import Law
from countveil.distributions._series import balance_point, log_complement, sum_downwards, sum_upwards
from countveil.kernels.compiled import elementwise, kernel
from countveil.kernels.poisson import poisson_logpmf, sum_above

NEGLIGIBLE = 1e-22


@elementwise
def _logpmf(k: Any, rate1: Any, rate2: Any) -> Any:
    order, high, low = (k, rate1, rate2) if k >= 0 else (-k, rate2, rate1)
    n = int(balance_point(order, math.sqrt(low) * math.sqrt(high)))
    at_n = poisson_logpmf(n, low) + poisson_logpmf(n + order, high)
    return at_n + math.log1p(sum_upwards(n, order, low, high) + sum_downwards(n, order, low, high))


@kernel
def _upper_tail(k: int, rate1: float, rate2: float) -> float:
    """log P(N1 - N2 > k), for k above the mean less one: the sum over n of P(N2 = n) P(N1 > n + k).

    The summand is log-concave in n. The sum runs downwards, because P(N1 > x - 1) = P(N1 > x) + P(N1 = x)
    only adds. Everything is relative to P(N2 = n) P(N1 = n + k) at the n where that is largest.
    """
    n = int(balance_point(abs(k), math.sqrt(rate1) * math.sqrt(rate2))) + max(0, -k)
    scale = poisson_logpmf(n, rate2) + poisson_logpmf(n + k, rate1)
    mass = 1.0
    while True:
        step = (rate2 / (n + 1.0)) * (rate1 / (n + k + 1.0))
        if mass * step <= NEGLIGIBLE:
            break
        mass *= step
        n += 1
    tail = mass * sum_above(n + k, rate1)
    total = tail
    while n > 0:
        tail = (tail + mass) * (n / rate2)
        mass = mass * (n / rate2) * ((n + k) / rate1) if n + k > 0 else 0.0
        n -= 1
        total += tail
        if tail + mass <= NEGLIGIBLE * total:
            break
    return scale + math.log(total) if total > 0.0 and scale > -math.inf else -math.inf


@elementwise
def _logsf(k: Any, rate1: Any, rate2: Any) -> Any:
    if k > rate1 - rate2 - 1.0:
        return _upper_tail(k, rate1, rate2)
    return log_complement(_upper_tail(-k - 1, rate2, rate1))


@elementwise
def _logcdf(k: Any, rate1: Any, rate2: Any) -> Any:
    if k < rate1 - rate2:
        return _upper_tail(-k - 1, rate2, rate1)
    return log_complement(_upper_tail(k, rate1, rate2))


class Skellam(Law):
    """The law of N1 - N2 for independent Poisson counts N1 and N2.

    P(k) = e^(-rate1 - rate2) (rate1 / rate2)^(k/2) I_|k|(2 sqrt(rate1 rate2)),   k any integer

    rate1 and rate2 are numbers or arrays, finite and non-negative; ValueError otherwise. At zero it is a
    Poisson law or its mirror image. Work per value grows with the fourth root of rate1 rate2, in the tails'
    sums with the square root of the rates. Source: Skellam (1946); Schein et al. (2019), theorem 4.1.

    >>> float(Skellam(2.0, 1.0).pmf(1).round(6))
    0.238463
    """

    rate1: float | FloatArray
    rate2: float | FloatArray
    _kernel_logpmf = staticmethod(_logpmf)
    _kernel_logcdf = staticmethod(_logcdf)
    _kernel_logsf = staticmethod(_logsf)

    def __init__(self, rate1: ArrayLike, rate2: ArrayLike) -> None:
        super().__init__(rate1=check_non_negative("rate1", rate1), rate2=check_non_negative("rate2", rate2))

    def mean(self) -> Any:
        """E[X] = rate1 - rate2."""
        return np.asarray(self.rate1 - self.rate2)[()]

    def var(self) -> Any:
        """Var[X] = rate1 + rate2."""
        return np.asarray(self.rate1 + self.rate2)[()]

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
        rate1, rate2 = self._parameters
        return rng.poisson(rate1, shape) - rng.poisson(rate2, shape)
