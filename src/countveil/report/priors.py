"""The priors of a fit's factors in words, with what the fit learned of their shapes."""

import numpy as np

from countveil.fit.base import FactorizationEstimator
from countveil.inference.posterior import flat_draws
from countveil.models.factorization import Factor
from countveil.models.priors import (
    DatedRowsPrior,
    DirichletPrior,
    GammaChainPrior,
    GammaPrior,
    LearnedShapePrior,
    RegressionPrior,
    SeededPrior,
    learned_shape,
)
from countveil.models.priors.regression import OF_SHAPES

LEARNED_SHAPE = (
    f"log-normal of median {learned_shape.MEDIAN:g} and log standard deviation {learned_shape.SPREAD:g}"
)
NUMBER = "{:.2g}"


def priors_of(fit: FactorizationEstimator) -> list[tuple[str, str]]:
    """(factor, its prior in words) of every factor of the model."""
    return [(factor.name, " ".join(filter(None, words_of(fit, factor)))) for factor in fit.model_.factors]


def words_of(fit: FactorizationEstimator, factor: Factor) -> tuple[str, str]:
    """The prior, and what was learned of its shape."""
    prior = factor.prior
    if factor.fixed is not None:
        return "Known: it was given, and not inferred.", ""
    if isinstance(prior, GammaPrior):
        return f"Independent gammas of shape {ranged(prior.shape)}, {rates_of(prior)}.", ""
    if isinstance(prior, LearnedShapePrior):
        sized = f"entries are of size {number(prior.mean)}" if prior.mean is not None else ""
        rates = (
            f"rates that are learned so that {sized} by the prior" if sized else f"rate {ranged(prior.rate)}"
        )
        said = f"Independent gammas of one learned shape (prior: {LEARNED_SHAPE}) and {rates}."
        return said, learned(fit, factor)
    if isinstance(prior, SeededPrior):
        said, found = words_of(fit, factor._replace(prior=prior.usual))
        more = f"{number(prior.added.max())} is added to the shape of every seeded word in its topic."
        return f"{said} Seeded topics: {prior.n_seeded}; {more}", found
    if isinstance(prior, DirichletPrior):
        known = (
            f"concentration {number(prior.concentration)}"
            if prior.concentration is not None
            else (f"a learned concentration (prior: {LEARNED_SHAPE})")
        )
        one = (
            f"; one is spread out, with concentration {number(prior.background)}" if prior.background else ""
        )
        return f"Each component is Dirichlet with {known}{one}.", learned(fit, factor)
    if isinstance(prior, RegressionPrior):
        shape = (
            f"shape {number(prior.shape)}"
            if prior.shape is not None
            else (f"a learned shape for each component (prior: {LEARNED_SHAPE})")
        )
        said = (
            f"Gammas of {shape}; means and shapes depend on covariates. Coefficients of standardised columns are "
            f"Normal(0, {number(prior.spread)}^2), those of shapes Normal(0, {number(OF_SHAPES * prior.spread)}^2)."
        )
        return said, learned(fit, factor)
    if isinstance(prior, DatedRowsPrior):
        said = f"Gammas whose shapes are a gamma chain over {prior.n_steps} steps of time"
        return f"{said}, with a learned rate for each row (mathematics, section 17).", ""
    if isinstance(prior, GammaChainPrior):
        steady = "" if prior.steady else ", and every step has a volume of its own"
        season = "" if prior.season is None else f", times a gamma factor for each of {prior.season} seasons"
        return (
            f"A gamma chain: each step depends on the step before{steady}{season} (mathematics, section 17).",
            "",
        )
    return f"Of kind {prior.kind}.", learned(fit, factor)


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
        else (" (90% interval {} to {})".format(*(number(end) for end in np.quantile(draws, [0.05, 0.95]))))
    )
    return f"Posterior mean of the shape: {number(draws.mean())}{ends}."


def rates_of(prior: GammaPrior) -> str:
    """The rates of a gamma prior in words."""
    if prior.learned:
        return f"and learned rates, a component's own, exponential of mean {ranged(prior.rate)} by the prior"
    return f"and rate {ranged(prior.rate)}"


def ranged(values: object) -> str:
    """A number, or the least and the greatest of several."""
    flat = np.ravel(np.asarray(values, dtype=float))
    low, high = number(flat.min()), number(flat.max())
    return low if low == high else f"{low} to {high}"


def number(value: object) -> str:
    """Two digits."""
    return NUMBER.format(float(value))  # type: ignore[arg-type]
