"""The matrix model mu_dv = sum_k theta_dk phi_vk and its gamma priors, with rates fixed or learned."""

import math
from typing import NamedTuple

import numpy as np


class GammaPrior(NamedTuple):
    """Independent Gamma(shape, rate_k) over the entries of a factor with K components.

    With ``learned`` rates every component has its own, rate_k ~ Exponential(scale ``rate``), so that the size
    of the rates is found from the data (mathematics, section 11); otherwise rate_k = ``rate``.
    """

    shape: float
    rate: float
    learned: bool

    def initial_rates(self, n_components: int) -> np.ndarray:
        """(K,) rates to start from."""
        return np.full(n_components, self.rate)

    def draw_rates(
        self, rate_k: np.ndarray, size: int, total_k: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """(K,) rates given the sums total_k over the ``size`` entries of each component; unchanged if fixed.

        rate_k | factor ~ Gamma(1 + shape size, 1/rate + total_k).
        """
        if not self.learned:
            return rate_k
        return rng.standard_gamma(1.0 + self.shape * size, size=rate_k.shape) / (1.0 / self.rate + total_k)


class MatrixModel(NamedTuple):
    """mu_dv = sum_k theta_dk phi_vk with gamma priors over theta (rows) and phi (columns)."""

    n_components: int
    row_prior: GammaPrior
    column_prior: GammaPrior


def matrix_model(n_components: int, shape: float, rate: float | None, mean_count: float) -> MatrixModel:
    """A matrix model with one prior for both factors; rate None learns the rates around shape / s.

    s = sqrt(mean count / K) is the factor mean at which K components add up to the mean count.
    """
    if rate is None:
        scale = math.sqrt(max(mean_count, 1e-8) / n_components)
        prior = GammaPrior(shape, shape / scale, learned=True)
    else:
        prior = GammaPrior(shape, rate, learned=False)
    return MatrixModel(n_components, prior, prior)
