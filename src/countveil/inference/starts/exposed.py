"""A start for data with exposures by cell: expectation maximisation from the best of several random beginnings.

Least squares of the reports would fit the exposures first, where these differ by orders of magnitude.
"""

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Engine
from countveil.engines.threads import one_blas_thread
from countveil.inference.ascent import maximise
from countveil.inference.plan import Plan
from countveil.inference.starts.multiplicative import floored, random_factors
from countveil.laws.counts import POISSON
from countveil.models.factorization import Factorization

BEGINNINGS = 4
FIRST_ITERATIONS = 10  # of each beginning
ITERATIONS = 40  # more of the best


def exposed_start(
    observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine
) -> Arrays:
    """Positive factors whose rates are expected counts for one unit of exposure."""
    plan, law, best, most = Plan(observations, model), observations.law(POISSON), None, -np.inf
    with one_blas_thread():
        for _ in range(BEGINNINGS):
            factors = begun(observations, model, rng, engine)
            for _ in range(FIRST_ITERATIONS):
                factors, score = maximise(plan, model, law, tuple(factors), engine)
            if best is None or score > most:
                best, most = factors, score
        assert best is not None
        for _ in range(ITERATIONS):
            best, _ = maximise(plan, model, law, tuple(best), engine)
    return floored(model, best)


def begun(
    observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine
) -> list[np.ndarray]:
    """Random factors of about the right size, less even than those from which least squares begins."""
    factors = random_factors(observations, model, rng, engine)
    for f in model.free:
        uneven = factors[f] * rng.standard_gamma(2.0, factors[f].shape)
        factors[f] = 0.5 * (uneven + uneven.T) if model.factors[f].symmetric else uneven
    return factors
