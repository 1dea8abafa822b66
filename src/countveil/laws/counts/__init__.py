"""The distribution of a count given its rate: one module per likelihood, and a line in this table."""

from typing import Any

from countveil.laws.counts.negative_binomial import NegativeBinomial
from countveil.laws.counts.poisson import Poisson
from countveil.laws.counts.protocol import Likelihood, Parameters, Unseen

__all__ = [
    "LIKELIHOODS",
    "POISSON",
    "Likelihood",
    "NegativeBinomial",
    "Parameters",
    "Poisson",
    "Unseen",
    "likelihood_called",
]

LIKELIHOODS: dict[str, Likelihood] = {likelihood.name: likelihood for likelihood in (Poisson(), NegativeBinomial())}
"""By name."""

POISSON: Likelihood = LIKELIHOODS["poisson"]


def likelihood_called(name: str, settings: dict[str, Any]) -> Likelihood:
    """The likelihood of this name with its settings.

    Raises:
        ValueError: an unknown name, or settings that the likelihood refuses.
    """
    if name not in LIKELIHOODS:
        raise ValueError(f"likelihood must be one of {list(LIKELIHOODS)}, got {name!r:.60}")
    known = LIKELIHOODS[name]
    if set(settings) != set(known.settings):
        raise ValueError(f"settings of {name} must be {list(known.settings)}, got {list(settings)}")
    return known.with_settings(**settings) if settings else known
