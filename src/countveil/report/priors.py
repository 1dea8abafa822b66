"""The priors of a fit's factors in words, with what the fit learned of their shapes."""

import numpy as np

from countveil.fit.base import FactorizationEstimator
from countveil.inference.posterior import flat_draws
from countveil.models.factorization import Factor
from countveil.models.priors.prior import ranged


def priors_of(fit: FactorizationEstimator) -> list[tuple[str, str]]:
    """(factor, its prior in words) of every factor of the model."""
    return [(factor.name, " ".join(filter(None, words_of(fit, factor)))) for factor in fit.model_.factors]


def words_of(fit: FactorizationEstimator, factor: Factor) -> tuple[str, str]:
    """The prior, and what was learned of its shape."""
    if factor.fixed is not None:
        return "Known: it was given, and not inferred.", ""
    return factor.prior.describe(), learned(fit, factor)


def learned(fit: FactorizationEstimator, factor: Factor) -> str:
    """The posterior of a shape that was learned, with an interval where those are calibrated; empty without one."""
    name = f"{factor.name}_shape"
    if name not in fit.posterior["posterior"]:
        return ""
    draws = flat_draws(fit.posterior, name)
    if draws.ndim > 1:
        return f"Posterior means of the shapes: {ranged(draws.mean(axis=0))}."
    ends = (
        ""
        if fit._reader.why_no_intervals
        else (" (90% interval {} to {})".format(*(ranged(end) for end in np.quantile(draws, [0.05, 0.95]))))
    )
    return f"Posterior mean of the shape: {ranged(draws.mean())}{ends}."
