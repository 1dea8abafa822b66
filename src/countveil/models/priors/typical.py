"""Priors of a size that fits data of a given mean count (mathematics, section 11)."""

import math

from countveil.models.priors.gamma import GammaPrior


def typical_prior(shape: float, rate: float | None, scale: float) -> GammaPrior:
    """A prior of this shape; rate None learns the rates around shape / scale, where scale is the entries' mean."""
    if rate is None:
        return GammaPrior(shape, shape / scale, learned=True)
    return GammaPrior(shape, rate, learned=False)


def typical_scale(mean_count: float, n_terms: int, n_factors: int) -> float:
    """The factor mean at which n_terms products of n_factors entries add up to the mean count."""
    return math.pow(max(mean_count, 1e-8) / n_terms, 1.0 / n_factors)
