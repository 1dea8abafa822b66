"""The distribution of a count given its rate: one module per likelihood, and a line in this table."""

from countveil.likelihoods.poisson import Poisson
from countveil.likelihoods.protocol import Likelihood, Parameters, Unseen

__all__ = ["LIKELIHOODS", "POISSON", "Likelihood", "Parameters", "Poisson", "Unseen"]

LIKELIHOODS: dict[str, Likelihood] = {likelihood.name: likelihood for likelihood in (Poisson(),)}
"""By name."""

POISSON: Likelihood = LIKELIHOODS["poisson"]
