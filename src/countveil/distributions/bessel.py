"""The Bessel law: one Poisson count given its difference from another."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countveil.distributions._checks import FloatArray, check_positive, check_whole
from countveil.distributions._law import Law
from countveil.kernels.bessel import sample_bessel
from countveil.kernels.compiled import elementwise, kernel
from countveil.kernels.poisson import poisson_logpmf
from countveil.kernels.series import balance_point, log_complement, moments_about, sum_downwards, sum_upwards
from countveil.laws.noise.reading import refuse

LARGEST_DRAWN = 2.0**53

# Given N1 - N2 = order, N2 has the Bessel law for any two Poisson rates with product (argument/2)^2. With the
# rates x and x + order, x the real mode, both masses are near their peaks: that is the scale at which nothing
# cancels.


@kernel
def _log_joint(n: int, order: int, x: float) -> float:
    """log P(N2 = n, N1 = n + order) at the rates x and x + order."""
    return poisson_logpmf(n, x) + poisson_logpmf(n + order, x + order)


@kernel
def _log_mass(n: int, order: int, x: float) -> float:
    """log P(N = n): the joint mass over its sum, which runs outwards from the mode, relative to the mode."""
    mode = int(x)
    around = sum_upwards(mode, order, x, x + order) + sum_downwards(mode, order, x, x + order)
    return _log_joint(n, order, x) - _log_joint(mode, order, x) - math.log1p(around)


@kernel
def _lower_tail(n: int, order: int, x: float) -> float:
    """log P(N <= n), for n below the mode."""
    return _log_mass(n, order, x) + math.log1p(sum_downwards(n, order, x, x + order))


@kernel
def _upper_tail(n: int, order: int, x: float) -> float:
    """log P(N > n), for n at the mode or above."""
    return _log_mass(n + 1, order, x) + math.log1p(sum_upwards(n + 1, order, x, x + order))


@elementwise
def _logpmf(n: Any, order: Any, argument: Any) -> Any:
    return _log_mass(n, order, balance_point(order, 0.5 * argument)) if n >= 0 else -math.inf


@elementwise
def _logcdf(n: Any, order: Any, argument: Any) -> Any:
    if n < 0:
        return -math.inf
    x = balance_point(order, 0.5 * argument)
    return _lower_tail(n, order, x) if n < int(x) else log_complement(_upper_tail(n, order, x))


@elementwise
def _logsf(n: Any, order: Any, argument: Any) -> Any:
    if n < 0:
        return 0.0
    x = balance_point(order, 0.5 * argument)
    return _upper_tail(n, order, x) if n >= int(x) else log_complement(_lower_tail(n, order, x))


@elementwise
def _mean(order: Any, argument: Any) -> Any:
    x = balance_point(order, 0.5 * argument)
    mode = int(x)
    return mode + moments_about(mode, order, x, x + order)[0]


@elementwise
def _var(order: Any, argument: Any) -> Any:
    x = balance_point(order, 0.5 * argument)
    first, second = moments_about(int(x), order, x, x + order)
    return second - first * first


@elementwise
def _mode(order: Any, argument: Any) -> Any:
    return int(balance_point(order, 0.5 * argument))


@kernel
def _draw_each(order: Any, argument: Any, rng: np.random.Generator, draws: Any) -> None:
    for i in range(draws.size):
        draws[i] = sample_bessel(order[i], argument[i], rng)


class Bessel(Law):
    """The law of a Poisson count N2 given that another, N1, exceeds it by the order.

    P(n) = (argument/2)^(2n + order) / (n! (n + order)! I_order(argument)),   n = 0, 1, 2, ...

    The product of the two rates is (argument/2)^2. order is a non-negative integer or an array of them,
    argument a positive number or an array; ValueError otherwise, and for draws where the argument is above
    2^53. Work per value grows with the square root of the mode; a draw's is bounded. Source: Yuan and
    Kalbfleisch (2000); Schein et al. (2019), theorems 4.1 and 6.1.

    >>> float(Bessel(0, 2.0).pmf(1).round(6))
    0.438676
    """

    order: int | NDArray[np.int64]
    argument: float | FloatArray
    _kernel_logpmf = staticmethod(_logpmf)
    _kernel_logcdf = staticmethod(_logcdf)
    _kernel_logsf = staticmethod(_logsf)

    def __init__(self, order: ArrayLike, argument: ArrayLike) -> None:
        orders = check_whole("order", order)
        refuse("order must be non-negative", orders < 0, orders)
        super().__init__(order=orders, argument=check_positive("argument", argument))

    def support(self) -> tuple[float, float]:
        """The least and the greatest value, both included: (0, inf)."""
        return (0.0, np.inf)

    def mean(self) -> Any:
        """E[N] = (argument/2) I_(order+1)(argument) / I_order(argument), from the weights around the mode."""
        with np.errstate(all="ignore"):
            return _mean(*self._parameters)

    def var(self) -> Any:
        """Var[N], from the weights around the mode."""
        with np.errstate(all="ignore"):
            return _var(*self._parameters)

    def mode(self) -> Any:
        """The most probable value, floor((sqrt(argument^2 + order^2) - order) / 2)."""
        return _mode(*self._parameters)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
        order, argument = (np.broadcast_to(p, shape).flatten() for p in self._parameters)
        refuse("argument must be at most 2^53 for draws", argument > LARGEST_DRAWN, argument)
        draws = np.empty(order.size, dtype=np.int64)
        _draw_each(order, argument, rng, draws)
        return draws.reshape(shape)
