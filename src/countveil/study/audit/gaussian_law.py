"""Discrete Gaussian noise as the checks of an audit need it: its probabilities, summed term by term."""

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from countveil.privacy.mechanisms import DiscreteGaussian

LARGEST_SIGMA = 10**5
"""Probabilities are summed over about 13 sigma terms."""


class GaussianLaw:
    """P(tau) = exp(-tau^2 / (2 sigma^2)) / sum_k exp(-k^2 / (2 sigma^2)); ValueError if sigma is above 10^5."""

    def __init__(self, mechanism: DiscreteGaussian) -> None:
        self.sigma = math.sqrt(mechanism.variance_parameter)
        if self.sigma > LARGEST_SIGMA:
            raise ValueError(f"sigma must be at most {LARGEST_SIGMA} to be audited, got {self.sigma:.6g}")

    @cached_property
    def _masses(self) -> NDArray[np.float64]:
        """P(tau = k) for k from 0 as far as it is above 10^-36."""
        weights = np.exp(-0.5 * (np.arange(int(13 * self.sigma) + 3) / self.sigma) ** 2)
        return weights / (2 * weights.sum() - 1)

    @cached_property
    def _survival(self) -> NDArray[np.float64]:
        """P(tau >= k) for the same k."""
        return np.cumsum(self._masses[::-1])[::-1]

    def tail(self, k: int) -> float:
        """P(|tau| > k)."""
        return 2 * float(self._survival[k + 1]) if k + 1 < self._survival.size else 0.0

    @property
    def false_positive_rate(self) -> float:
        """P(tau > 0)."""
        return self.tail(0) / 2

    @cached_property
    def _magnitudes(self) -> tuple[float, float, float]:
        """E|tau|, its variance, and the covariance of |tau| with (tau/sigma)^2, its slope in ln sigma."""
        k, mass = np.arange(self._masses.size), np.append(self._masses[:1], 2 * self._masses[1:])
        mean, square = float(k @ mass), float(k**2 @ mass)
        return mean, square - mean**2, (float(k.astype(float) ** 3 @ mass) - mean * square) / self.sigma**2

    @property
    def mean_magnitude(self) -> float:
        """E|tau|."""
        return self._magnitudes[0]

    @property
    def magnitude_variance(self) -> float:
        """The variance of |tau|."""
        return self._magnitudes[1]

    @property
    def magnitude_information(self) -> float:
        """What the mean of |tau| says of ln sigma, per draw: its slope, squared, over its variance."""
        return self._magnitudes[2] ** 2 / self._magnitudes[1]

    def residue(self, k: int, modulus: int) -> float:
        """P(tau mod m = k)."""
        return float(self._masses[k::modulus].sum() + self._masses[modulus - k :: modulus].sum())
