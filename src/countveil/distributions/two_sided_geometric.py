"""The noise that makes a count private: two geometric counts, one subtracted from the other."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from countveil.distributions._checks import FloatArray, check_alpha
from countveil.distributions._law import Law
from countveil.laws.noise.two_sided_geometric import formulas


def _logpmf(k: NDArray[np.int64], alpha: FloatArray) -> Any:
    return formulas.log_normaliser(alpha) + xlogy(np.abs(k), alpha)


def _logsf(k: NDArray[np.int64], alpha: FloatArray) -> Any:
    upper = formulas.log_survival(np.maximum(k, -1), alpha)
    lower = formulas.log_survival(np.maximum(-k - 1, -1), alpha)
    return np.where(k >= 0, upper, np.log1p(-np.exp(lower)))


def _logcdf(k: NDArray[np.int64], alpha: FloatArray) -> Any:
    return _logsf(-k - 1, alpha)


class TwoSidedGeometric(Law):
    """Two-sided geometric noise, also called the discrete Laplace law.

    P(tau) = (1 - alpha) / (1 + alpha) * alpha^|tau|,   tau any integer

    alpha, the noise level, is a number or an array in [0, 1); 0 is no noise. ValueError outside it.
    Source: Schein et al. (2019), equation 4, after Ghosh et al. (2012).

    >>> TwoSidedGeometric(0.5).pmf([-1, 0, 1, 2]).round(4).tolist()
    [0.1667, 0.3333, 0.1667, 0.0833]
    """

    alpha: float | FloatArray
    _kernel_logpmf = staticmethod(_logpmf)
    _kernel_logcdf = staticmethod(_logcdf)
    _kernel_logsf = staticmethod(_logsf)

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
