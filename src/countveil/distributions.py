"""The laws behind private counts, under SciPy's method names, accurate far into the tails.

A law states three functions of one integer and its parameters, each returning a logarithm: the mass, and the
two tails. What laws share is in ``Law``: fixed parameters, whole-number arguments, both tails, draws of any shape.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from countveil.common.arrays import (
    FloatArray,
    check_alpha,
    check_dispersion,
    check_generator,
    check_non_negative,
    check_positive,
    check_together,
    check_whole,
    refuse,
)
from countveil.kernels.bessel import sample_bessel
from countveil.kernels.compiled import elementwise, kernel
from countveil.kernels.poisson import poisson_logpmf
from countveil.kernels.series import (
    balance_point,
    log_complement,
    moments_about,
    skellam_logcdf,
    skellam_logpmf,
    skellam_logsf,
    sum_downwards,
    sum_upwards,
)
from countveil.laws.noise.two_sided_geometric import bursty_reports as laws
from countveil.laws.noise.two_sided_geometric import formulas
from countveil.laws.noise.two_sided_geometric.poisson import lower_tail, report_logpmf, upper_tail, weight_sums

__all__ = ["Bessel", "PrivatizedNegativeBinomial", "PrivatizedPoisson", "Skellam", "TwoSidedGeometric"]

LARGEST_ARGUMENT = 2.0**62
"""Arguments beyond this in size are treated as this: they fit in 64 bits, with room for sums."""

RandomState = int | np.integer | np.random.Generator | None
Shape = int | tuple[int, ...] | None


class Law(ABC):
    """A law on the integers with parameters that broadcast against each other and against the argument."""

    _kernel_logpmf: ClassVar[Callable[..., Any]]
    _kernel_logcdf: ClassVar[Callable[..., Any]]
    _kernel_logsf: ClassVar[Callable[..., Any]]
    _parameters: tuple[NDArray[Any], ...]
    shape: tuple[int, ...]

    def __init__(self, **parameters: NDArray[Any]) -> None:
        for name, array in parameters.items():
            array.setflags(write=False)
            vars(self)[name] = array if array.ndim else array.item()
        vars(self)["_parameters"] = tuple(parameters.values())
        vars(self)["_names"] = tuple(parameters)
        vars(self)["shape"] = check_together(**parameters)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable, so {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable, so {name} cannot be deleted")

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={vars(self)[name]!r}" for name in vars(self)["_names"])
        return f"{type(self).__name__}({inside})"

    def logpmf(self, k: ArrayLike) -> Any:
        """log P(X = k); minus infinity where k is not a whole number."""
        k = np.asarray(k, dtype=np.float64)
        whole = np.isfinite(k) & (np.floor(k) == k)
        return _choose(k, whole, _apply(self._kernel_logpmf, k, whole, self._parameters), -np.inf)

    def pmf(self, k: ArrayLike) -> Any:
        """P(X = k); zero where k is not a whole number."""
        return np.exp(self.logpmf(k))

    def logcdf(self, k: ArrayLike) -> Any:
        """log P(X <= k)."""
        k = np.floor(np.asarray(k, dtype=np.float64))
        finite = np.isfinite(k)
        values = _apply(self._kernel_logcdf, k, finite, self._parameters)
        return _choose(k, finite, values, np.where(k > 0, 0.0, -np.inf))

    def cdf(self, k: ArrayLike) -> Any:
        """P(X <= k)."""
        return np.exp(self.logcdf(k))

    def logsf(self, k: ArrayLike) -> Any:
        """log P(X > k)."""
        k = np.floor(np.asarray(k, dtype=np.float64))
        finite = np.isfinite(k)
        values = _apply(self._kernel_logsf, k, finite, self._parameters)
        return _choose(k, finite, values, np.where(k > 0, -np.inf, 0.0))

    def sf(self, k: ArrayLike) -> Any:
        """P(X > k), summed by itself and not as 1 - cdf."""
        return np.exp(self.logsf(k))

    def support(self) -> tuple[float, float]:
        """The least and the greatest value, both included."""
        return (-np.inf, np.inf)

    @abstractmethod
    def mean(self) -> Any:
        """E[X]."""

    @abstractmethod
    def var(self) -> Any:
        """Var[X]."""

    def std(self) -> Any:
        """The square root of the variance."""
        return np.sqrt(self.var())

    def rvs(self, size: Shape = None, random_state: RandomState = None) -> Any:
        """Independent draws, for simulation: noise that must protect anybody comes from ``countveil.privacy``.

        size is the shape of the result; by default it is the shape that the parameters broadcast to, and that
        shape must broadcast to it. random_state is None (fresh entropy), an integer seed or a
        numpy.random.Generator, which is advanced. Integers of 64 bits; a single one where the shape is ().
        """
        shape = self.shape if size is None else (size,) if isinstance(size, int | np.integer) else tuple(size)
        try:
            fits = np.broadcast_shapes(self.shape, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(f"size must be a shape that {self.shape} broadcasts to, got {shape}")
        if random_state is None or isinstance(random_state, int | np.integer):
            random_state = np.random.default_rng(random_state)
        return np.asarray(self._draw(shape, check_generator(random_state)))[()]

    @abstractmethod
    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draws of a shape that the parameters broadcast to."""


def _apply(kernel: Any, k: NDArray[np.float64], valid: NDArray[np.bool_], parameters: tuple[Any, ...]) -> Any:
    integers = np.clip(np.where(valid, k, 0.0), -LARGEST_ARGUMENT, LARGEST_ARGUMENT).astype(np.int64)
    with np.errstate(all="ignore"):
        return kernel(integers, *parameters)


def _choose(k: NDArray[np.float64], valid: NDArray[np.bool_], inside: Any, outside: Any) -> Any:
    return np.where(valid, inside, np.where(np.isnan(k), np.nan, outside))[()]


# The noise that makes a count private: two geometric counts, one subtracted from the other.


def _logpmf_of_noise(k: NDArray[np.int64], alpha: FloatArray) -> Any:
    return formulas.log_normaliser(alpha) + xlogy(np.abs(k), alpha)


def _logsf_of_noise(k: NDArray[np.int64], alpha: FloatArray) -> Any:
    upper = formulas.log_survival(np.maximum(k, -1), alpha)
    lower = formulas.log_survival(np.maximum(-k - 1, -1), alpha)
    return np.where(k >= 0, upper, np.log1p(-np.exp(lower)))


def _logcdf_of_noise(k: NDArray[np.int64], alpha: FloatArray) -> Any:
    return _logsf_of_noise(-k - 1, alpha)


class TwoSidedGeometric(Law):
    """Two-sided geometric noise, also called the discrete Laplace law.

    P(tau) = (1 - alpha) / (1 + alpha) * alpha^|tau|,   tau any integer

    alpha, the noise level, is a number or an array in [0, 1); 0 is no noise. ValueError outside it.
    Source: Schein et al. (2019), equation 4, after Ghosh et al. (2012).

    >>> TwoSidedGeometric(0.5).pmf([-1, 0, 1, 2]).round(4).tolist()
    [0.1667, 0.3333, 0.1667, 0.0833]
    """

    alpha: float | FloatArray
    _kernel_logpmf = staticmethod(_logpmf_of_noise)
    _kernel_logcdf = staticmethod(_logcdf_of_noise)
    _kernel_logsf = staticmethod(_logsf_of_noise)

    def __init__(self, alpha: ArrayLike) -> None:
        super().__init__(alpha=check_alpha(alpha))

    def mean(self) -> Any:
        """E[tau] = 0."""
        return np.zeros(self.shape)[()]

    def var(self) -> Any:
        """Var[tau] = 2 alpha / (1 - alpha)^2."""
        return np.asarray(formulas.variance(self.alpha))[()]

    def mode(self) -> Any:
        """The most probable value, 0."""
        return np.zeros(self.shape, dtype=np.int64)[()]

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
        return formulas.sample(self._parameters[0], rng, shape)


# The difference of two Poisson counts.


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
    _kernel_logpmf = staticmethod(skellam_logpmf)
    _kernel_logcdf = staticmethod(skellam_logcdf)
    _kernel_logsf = staticmethod(skellam_logsf)

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


# The Bessel law: one Poisson count given its difference from another.

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
def _logpmf_of_bessel(n: Any, order: Any, argument: Any) -> Any:
    return _log_mass(n, order, balance_point(order, 0.5 * argument)) if n >= 0 else -math.inf


@elementwise
def _logcdf_of_bessel(n: Any, order: Any, argument: Any) -> Any:
    if n < 0:
        return -math.inf
    x = balance_point(order, 0.5 * argument)
    return _lower_tail(n, order, x) if n < int(x) else log_complement(_upper_tail(n, order, x))


@elementwise
def _logsf_of_bessel(n: Any, order: Any, argument: Any) -> Any:
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
def _mode_of_bessel(order: Any, argument: Any) -> Any:
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
    _kernel_logpmf = staticmethod(_logpmf_of_bessel)
    _kernel_logcdf = staticmethod(_logcdf_of_bessel)
    _kernel_logsf = staticmethod(_logsf_of_bessel)

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
        return _mode_of_bessel(*self._parameters)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
        order, argument = (np.broadcast_to(p, shape).flatten() for p in self._parameters)
        refuse("argument must be at most 2^53 for draws", argument > LARGEST_DRAWN, argument)
        draws = np.empty(order.size, dtype=np.int64)
        _draw_each(order, argument, rng, draws)
        return draws.reshape(shape)


# A report: a Poisson count plus two-sided geometric noise.


@elementwise
def _logpmf_of_poisson(k: Any, rate: Any, alpha: Any) -> Any:
    return report_logpmf(k, rate, alpha)


@elementwise
def _logcdf_of_poisson(k: Any, rate: Any, alpha: Any) -> Any:
    if k < 0 or k < rate:
        return lower_tail(k, rate, alpha)
    return log_complement(upper_tail(k, rate, alpha))


@elementwise
def _logsf_of_poisson(k: Any, rate: Any, alpha: Any) -> Any:
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
def _mode_of_poisson(rate: Any, alpha: Any) -> Any:
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
    _kernel_logpmf = staticmethod(_logpmf_of_poisson)
    _kernel_logcdf = staticmethod(_logcdf_of_poisson)
    _kernel_logsf = staticmethod(_logsf_of_poisson)

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
            return _mode_of_poisson(*self._parameters)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
        rate, alpha = self._parameters
        return rng.poisson(rate, shape) + formulas.sample(alpha, rng, shape)


# A report: a count that comes in bursts, which is negative binomial, plus two-sided geometric noise.

LOG_HALF = math.log(0.5)


@elementwise
def _logpmf_of_bursts(k: Any, rate: Any, dispersion: Any, alpha: Any) -> Any:
    return laws.report_logpmf(k, rate, dispersion, alpha)


@elementwise
def _logcdf_of_bursts(k: Any, rate: Any, dispersion: Any, alpha: Any) -> Any:
    lower = laws.lower_tail(k, rate, dispersion, alpha)
    return lower if lower < LOG_HALF else log_complement(laws.upper_tail(k, rate, dispersion, alpha))


@elementwise
def _logsf_of_bursts(k: Any, rate: Any, dispersion: Any, alpha: Any) -> Any:
    upper = laws.upper_tail(k, rate, dispersion, alpha)
    return upper if upper < LOG_HALF else log_complement(laws.lower_tail(k, rate, dispersion, alpha))


@elementwise
def _mode_of_bursts(rate: Any, dispersion: Any, alpha: Any) -> Any:
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
    _kernel_logpmf = staticmethod(_logpmf_of_bursts)
    _kernel_logcdf = staticmethod(_logcdf_of_bursts)
    _kernel_logsf = staticmethod(_logsf_of_bursts)

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
            return _mode_of_bursts(*self._parameters)

    def _mean_of_count(self) -> FloatArray:
        rate, p, _ = self._parameters
        return np.asarray(rate * (p / (-np.log1p(-p) * (1.0 - p))))

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
        rate, p, alpha = self._parameters
        means = rng.standard_gamma(rate / -np.log1p(-p), shape) * (p / (1.0 - p))
        return rng.poisson(means) + formulas.sample(alpha, rng, shape)
