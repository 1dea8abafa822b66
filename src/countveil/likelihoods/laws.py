"""The law of a report given its rate: noise times likelihood, resolved once for a pass over the data."""

from typing import Any

import numpy as np

from countveil.kernels.general import GeneralLaw
from countveil.likelihoods.protocol import Likelihood, Parameters
from countveil.noise.protocol import Noise
from countveil.noise.two_sided_geometric.law import TwoSidedGeometricPoisson

CLOSED: dict[tuple[str, str], Any] = {
    ("two-sided geometric", "poisson"): TwoSidedGeometricPoisson,
}
"""The pairs with closed forms, and their laws for compiled loops. All other pairs use ``GeneralLaw``."""


def law_of(noise: Noise, likelihood: Likelihood, parameters: Parameters = ()) -> tuple[Any, ...]:
    """The law of reports, as compiled loops take it; ``parameters`` are the likelihood's own."""
    closed = CLOSED.get((noise.mechanism, likelihood.name))
    if closed is None:
        return GeneralLaw(noise.kernel, type(likelihood.counts)(parameters))
    law: tuple[Any, ...] = closed(parameters)
    return law


def positive_beyond_noise(noise: Noise, likelihood: Likelihood, rate: Any, level: Any) -> Any:
    """P(report > 0 | rate) - P(report > 0 | rate 0) = (1 - e^(-exposure rate)) P(report <= 0 | rate 0)."""
    exposure = likelihood.exposure(noise.ratio(level))
    return -np.expm1(-exposure * rate) * (1.0 - noise.positive_by_noise(level))
