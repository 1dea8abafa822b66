"""The log-likelihood of reports given the factors, and the sum of all rates."""

from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.kernels import gibbs as kernels
from countveil.kernels.gamma import SMALLEST
from countveil.kernels.scoring import score_cells
from countveil.likelihoods.laws import exposed, law_of
from countveil.likelihoods.protocol import Parameters
from countveil.models.factorization import Factorization

Factors = list[np.ndarray] | tuple[np.ndarray, ...]


def total_rate(model: Factorization, factors: Factors) -> float:
    """Sum of the rates of all cells, masked ones included."""
    theta, phi = model.matrices(factors)
    return float(theta.sum(axis=0) @ phi.sum(axis=0))


def log_likelihood(
    factors: Factors,
    observations: Observations,
    model: Factorization,
    engine: Engine,
    parameters: Parameters = (),
) -> float:
    """log P(max(reports, 0) | factors), with the true counts summed out and masked cells left out."""
    theta, phi = model.matrices(factors)
    law = law_of(observations.noise, model.likelihood, parameters)
    _, (total,) = engine.over_rows(score_block, observations, (law, phi, phi.sum(axis=0)), (theta,))
    return float(total[0])


def score_block(
    block: Block, law: tuple[Any, ...], phi: np.ndarray, phi_total: np.ndarray, theta: np.ndarray
) -> tuple[Arrays, Arrays]:
    """The block's part of the log-likelihood."""
    entries = exposed(block.entries, law)
    return (), (np.array([kernels.log_likelihood_rows(law, entries, theta, phi, phi_total)]),)


def report_scores(
    law: tuple[Any, ...], reports: np.ndarray, levels: np.ndarray, rates: np.ndarray
) -> np.ndarray:
    """(cells,) log P(max(report, 0) | rate) of each cell."""
    levels = np.broadcast_to(levels, reports.shape).astype(np.float64)
    scores = np.empty(reports.shape)
    score_cells(law, reports.astype(np.int64), np.maximum(rates, SMALLEST), levels, scores)
    return scores
