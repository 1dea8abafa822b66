"""The likelihood's own parameters moved uphill, for methods that maximise.

Given expected counts and parts at the positive reports, and the rates of all other cells, each parameter goes to where
(13.6) is greatest, with a uniform prior (mathematics, equation 13.9).
"""

from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.inference.dispersion import shared_along, unseen_rates
from countveil.inference.scoring import Factors
from countveil.kernels.tallies import expect_tally
from countveil.laws.counts.laws import in_block
from countveil.laws.counts.protocol import Parameters, rates_at
from countveil.models.factorization import Factorization


def moved(
    parameters: Parameters,
    observations: Observations,
    model: Factorization,
    before: Factors,
    after: Factors,
    engine: Engine,
    penalty: float = 0.0,
) -> Parameters:
    """The parameters given expectations at the factors ``before``, and rates at those ``after``.

    A penalty is one on the sum of the expected counts of all cells. Without parameters there is nothing to do.
    """
    if not parameters:
        return parameters
    law = observations.law(model.likelihood, parameters)
    theta, phi = model.matrices(before)
    size = model.likelihood.tally_size(observations.shape)
    _, (tally,) = engine.over_rows(tally_block, observations, (law, phi, size), (theta,))
    unseen = unseen_rates(model, list(after), observations, engine)
    return model.likelihood.maximised(
        parameters, tally, unseen, penalty * summed_rates(model, after, observations.exposure)
    )


def tally_block(
    block: Block, law: tuple[Any, ...], phi: np.ndarray, size: int, theta: np.ndarray
) -> tuple[Arrays, Arrays]:
    """The block's part of the tally."""
    tally = np.zeros(size)
    law, entries = in_block(law, block.entries, block.first_row)
    expect_tally(law, entries, theta, phi, tally)
    return (), (tally,)


def summed_rates(model: Factorization, factors: Factors, exposure: np.ndarray | None = None) -> np.ndarray:
    """Sums of the rates of all cells, (1,), (D,) or (V,): those of the cells that share a parameter."""
    theta, phi = model.matrices(factors)
    axis = shared_along(model.likelihood)
    if exposure is not None:
        rates = rates_at(theta, phi, exposure)
        return rates.sum(axis={"row": 1, "column": 0}[axis]) if axis != "all" else rates.sum(keepdims=True)[0]
    if axis == "row":
        return np.asarray(theta @ phi.sum(axis=0))
    return np.asarray(phi @ theta.sum(axis=0) if axis == "column" else [theta.sum(axis=0) @ phi.sum(axis=0)])
