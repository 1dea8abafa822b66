"""Priors of a size that fits data of a given mean count (mathematics, section 11)."""

import math

from countveil.models.priors.gamma import GammaPrior
from countveil.models.priors.learned_shape import LearnedShapePrior

LEARNED = "learned"  # what stands for a shape that is found from the data
USUAL_SHAPE = 0.1  # where it is not learned; see ``sensitivity`` in docs/reproduction.md


def typical_prior(shape: float | str, rate: float | None, scale: float) -> GammaPrior | LearnedShapePrior:
    """A prior of this shape; rate None learns the rates around shape / scale, where scale is the entries' mean."""
    if shape == LEARNED:
        return LearnedShapePrior(scale, None) if rate is None else LearnedShapePrior(None, rate)
    shape = float(shape)
    if rate is None:
        return GammaPrior(shape, shape / scale, learned=True)
    return GammaPrior(shape, rate, learned=False)


def typical_scale(mean_count: float, n_terms: int, n_factors: int) -> float:
    """The factor mean at which n_terms products of n_factors entries add up to the mean count."""
    return math.pow(max(mean_count, 1e-8) / n_terms, 1.0 / n_factors)
