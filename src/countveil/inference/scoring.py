"""The log-likelihood of reports given the factors, and the sum of all rates."""

from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.inference.tokens import Tokens
from countveil.kernels import scoring as kernels
from countveil.kernels.random import SMALLEST
from countveil.kernels.tiles import add_baselines_by_column, is_dense
from countveil.kernels.tokens import Codes
from countveil.laws.counts.laws import in_block
from countveil.laws.counts.protocol import Parameters, in_counts
from countveil.models.factorization import Factorization

Factors = list[np.ndarray] | tuple[np.ndarray, ...]


def total_rate(
    model: Factorization, factors: Factors, parameters: Parameters = (), exposure: np.ndarray | None = None
) -> float:
    """Sum of the expected counts of all cells, masked ones included, at their exposures by cell (D, V) if any."""
    theta, phi = in_counts(model.likelihood, *model.matrices(factors), parameters)
    if exposure is not None:
        return float((theta * (exposure @ phi)).sum())
    return float(theta.sum(axis=0) @ phi.sum(axis=0))


def log_likelihood(
    factors: Factors,
    observations: Observations,
    model: Factorization,
    engine: Engine,
    parameters: Parameters = (),
    tokens: Tokens | None = None,
) -> float:
    """log P(max(reports, 0) | factors), with the true counts summed out and masked cells left out.

    Cells that sweeps by tokens propose by their codes are scored by tables.
    """
    if model.level is not None:  # as exposures, which cost less than the matrices of all rates
        levels = model.by_cell(factors[model.level])
        observations, model, tokens = observations.at_levels(levels), model.without_level, None
    theta, phi = model.matrices(factors)
    law: Any = observations.law(model.likelihood, parameters)
    varies = any(getattr(law.likelihood, name, 0) for name in ("by_row", "by_column"))
    if tokens is not None and tokens.codes.code_c.size and not varies:
        given = law, phi, tables_of(law, tokens.codes)
        _, (total,) = engine.over_rows(score_by_tables, tokens.entries, given, (theta, tokens.unstored_d))
        return float(total[0])
    _, (total,) = engine.over_rows(score_block, observations, (law, phi, phi.sum(axis=0)), (theta,))
    return float(total[0])


def tables_of(law: tuple[Any, ...], codes: Codes) -> kernels.Scores:
    """The scores of these codes, for a law that is the same in all cells."""
    shape = len(codes.code_c), int((kernels.LAST - kernels.FIRST) / kernels.STEP) + 1
    found = kernels.Scores(codes, np.empty(shape), np.empty(shape))
    kernels.fill_scores(law, codes.code_c, found.score_cg, found.slope_cg)
    return found


def score_by_tables(
    block: Block, law: tuple[Any, ...], phi: np.ndarray, tables: kernels.Scores, theta: np.ndarray, unstored: np.ndarray
) -> tuple[Arrays, Arrays]:
    """The block's part of the log-likelihood."""
    return (), (np.array([kernels.score_rows_by_tables(law, block.entries, theta, phi, tables, unstored)]),)


def score_block(
    block: Block, law: tuple[Any, ...], phi: np.ndarray, phi_total: np.ndarray, theta: np.ndarray
) -> tuple[Arrays, Arrays]:
    """The block's part of the log-likelihood."""
    law, entries = in_block(law, block.entries, block.first_row)
    total = kernels.log_likelihood_rows(law, entries, theta, phi, phi_total, is_dense(entries, len(phi)))
    if entries.place_d.size:  # baselines vary by column
        exposure = np.zeros(theta.shape)
        add_baselines_by_column(entries, phi, exposure, True)
        total -= float((theta * exposure).sum())
    return (), (np.array([total]),)


def report_scores(
    law: tuple[Any, ...],
    rows: np.ndarray,
    columns: np.ndarray,
    reports: np.ndarray,
    levels: np.ndarray,
    rates: np.ndarray,
) -> np.ndarray:
    """(cells,) log P(max(report, 0) | rate) of the cells in these rows and columns."""
    levels = np.broadcast_to(levels, reports.shape).astype(np.float64)
    scores = np.empty(reports.shape)
    kernels.score_cells(law, rows, columns, reports.astype(np.int64), np.maximum(rates, SMALLEST), levels, scores)
    return scores
