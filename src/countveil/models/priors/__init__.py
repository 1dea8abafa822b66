"""Priors of factors: one prior, one module, and a line in this table."""

from typing import Any

from countveil.models.priors.dated_rows import DatedRowsPrior
from countveil.models.priors.dirichlet import DirichletPrior
from countveil.models.priors.gamma import GammaPrior
from countveil.models.priors.gamma_chain import GammaChainPrior
from countveil.models.priors.learned_shape import LearnedShapePrior
from countveil.models.priors.protocol import (
    CollapsedPrior,
    Grid,
    JointPrior,
    Prior,
    ReportingPrior,
    RowPrior,
    Scale,
    SizedPrior,
    VariationalPrior,
    draws_jointly,
    is_collapsed,
    learns_size,
)
from countveil.models.priors.regression import RegressionPrior
from countveil.models.priors.seeded import SeededPrior
from countveil.models.priors.typical import LEARNED, USUAL_SHAPE, typical_prior, typical_scale

__all__ = [
    "LEARNED",
    "PRIORS",
    "USUAL_SHAPE",
    "CollapsedPrior",
    "DatedRowsPrior",
    "DirichletPrior",
    "GammaChainPrior",
    "GammaPrior",
    "Grid",
    "JointPrior",
    "LearnedShapePrior",
    "Prior",
    "RegressionPrior",
    "ReportingPrior",
    "RowPrior",
    "Scale",
    "SeededPrior",
    "SizedPrior",
    "VariationalPrior",
    "draws_jointly",
    "is_collapsed",
    "learns_shape",
    "learns_size",
    "prior_of",
    "typical_prior",
    "typical_scale",
]  # fmt: skip

PRIORS: dict[str, Any] = {
    "dirichlet": DirichletPrior,
    "gamma": GammaPrior,
    "gamma-chain": GammaChainPrior,
    "gamma-of-learned-shape": LearnedShapePrior,
    "gamma-with-covariates": RegressionPrior,
    "gamma-with-dates": DatedRowsPrior,
    "gamma-with-seeds": SeededPrior,
}
"""By kind: classes with ``from_facts``."""


def prior_of(facts: dict[str, Any]) -> Prior:
    """The prior that some ``Prior.facts`` described.

    Raises:
        ValueError: an unknown kind.
    """
    if facts["kind"] not in PRIORS:
        raise ValueError(f"prior must be of a kind among {sorted(PRIORS)}, got {facts['kind']!r:.40}")
    prior: Prior = PRIORS[facts["kind"]].from_facts(facts)
    return prior


def learns_shape(prior: Prior) -> bool:
    """Whether a prior of gammas learns one shape of all entries, those with seeds excepted."""
    usual = prior.usual if isinstance(prior, SeededPrior) else prior
    return isinstance(usual, LearnedShapePrior)
