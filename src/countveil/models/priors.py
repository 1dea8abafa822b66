"""Gamma priors of factors, with rates fixed or learned."""

import math
from typing import NamedTuple

import numpy as np


class GammaPrior(NamedTuple):
    """Independent Gamma(shape, rate) over the entries of a factor.

    Shape and rate are numbers, or arrays that broadcast against the factor. With ``learned`` rates every
    component has its own, rate ~ Exponential(scale ``rate``), so that the size of the rates is found from the
    data (mathematics, section 11); a factor without an observed axis then has a single one.
    """

    shape: float | np.ndarray
    rate: float | np.ndarray
    learned: bool

    def initial_rates(self, rate_shape: tuple[int, ...]) -> np.ndarray:
        """Rates to start from: of ``rate_shape`` where they are learned, else as given."""
        return (
            np.broadcast_to(self.rate, rate_shape).astype(float)
            if self.learned
            else np.asarray(self.rate, float)
        )

    def draw_rates(
        self, rate: np.ndarray, size: np.ndarray, total: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Rates given the sums over their entries, ``size`` of shapes and ``total`` of values; unchanged if fixed.

        rate_k | factor ~ Gamma(1 + sum of shapes, 1/scale + total_k).
        """
        if not self.learned:
            return rate
        return rng.standard_gamma(1.0 + size) / (1.0 / self.rate + total)


def typical_prior(shape: float, rate: float | None, scale: float) -> GammaPrior:
    """A prior of this shape; rate None learns the rates around shape / scale, where scale is the entries' mean."""
    if rate is None:
        return GammaPrior(shape, shape / scale, learned=True)
    return GammaPrior(shape, rate, learned=False)


def typical_scale(mean_count: float, n_terms: int, n_factors: int) -> float:
    """The factor mean at which n_terms products of n_factors entries add up to the mean count."""
    return math.pow(max(mean_count, 1e-8) / n_terms, 1.0 / n_factors)
