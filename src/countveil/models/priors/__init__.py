"""Priors of factors: one prior, one module, and a line in this table."""

import math
from typing import Any

from countveil.models.priors.dated_rows import DatedRowsPrior
from countveil.models.priors.dirichlet import DirichletPrior
from countveil.models.priors.gamma import GammaPrior
from countveil.models.priors.gamma_chain import GammaChainPrior
from countveil.models.priors.layered_rows import LayeredRowsPrior
from countveil.models.priors.learned_shape import LearnedShapePrior
from countveil.models.priors.levels import LevelPrior
from countveil.models.priors.prior import Conditional, Factor, Prior
from countveil.models.priors.regression import RegressionPrior
from countveil.models.priors.seeded import SeededPrior

__all__ = [
    "LEARNED",
    "PRIORS",
    "USUAL_SHAPE",
    "Conditional",
    "DatedRowsPrior",
    "DirichletPrior",
    "Factor",
    "GammaChainPrior",
    "GammaPrior",
    "LayeredRowsPrior",
    "LearnedShapePrior",
    "LevelPrior",
    "Prior",
    "RegressionPrior",
    "SeededPrior",
    "prior_of",
    "typical_prior",
    "typical_scale",
]

PRIORS: dict[str, Any] = {
    prior.kind: prior
    for prior in (
        DirichletPrior,
        GammaPrior,
        GammaChainPrior,
        LearnedShapePrior,
        LevelPrior,
        RegressionPrior,
        DatedRowsPrior,
        LayeredRowsPrior,
        SeededPrior,
    )
}
"""By kind."""
LEARNED = "learned"  # what stands for a shape that is found from the data
USUAL_SHAPE = 0.1  # where it is not learned; see ``sensitivity`` in docs/reproduction.md


def prior_of(facts: dict[str, Any]) -> Prior:
    """The prior that some ``Prior.facts`` described.

    Raises:
        ValueError: an unknown kind.
    """
    if facts["kind"] not in PRIORS:
        raise ValueError(f"prior must be of a kind among {sorted(PRIORS)}, got {facts['kind']!r:.40}")
    prior: Prior = PRIORS[facts["kind"]].from_facts(facts)
    return prior


def typical_prior(shape: float | str, rate: float | None, scale: float) -> GammaPrior | LearnedShapePrior:
    """A prior of this shape; rate None learns the rates around shape / scale, where scale is the entries' mean."""
    if shape == LEARNED:
        return LearnedShapePrior(scale, None) if rate is None else LearnedShapePrior(None, rate)
    shape = float(shape)
    if rate is None:
        return GammaPrior(shape, shape / scale, learned=True)
    return GammaPrior(shape, rate, learned=False)


def typical_scale(mean_count: float, n_terms: int, n_factors: int) -> float:
    """The factor mean at which n_terms products of n_factors entries add up to the mean count (section 11)."""
    return math.pow(max(mean_count, 1e-8) / n_terms, 1.0 / n_factors)
