"""The difference of two Poisson counts."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countveil.distributions._checks import FloatArray, check_non_negative
from countveil.distributions._law import Law
from countveil.kernels.skellam import skellam_logcdf, skellam_logpmf, skellam_logsf


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
