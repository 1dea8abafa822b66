"""What the laws share: fixed parameters, whole-number arguments, both tails, draws of any shape.

A law states three functions of one integer and its parameters, each returning a logarithm: the mass, and the
two tails. The rest is here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countveil.distributions._checks import check_generator, check_together

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
