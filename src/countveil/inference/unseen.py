"""Rates of the cells without a positive report, added up by level: what a likelihood's parameters are drawn from."""

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.kernels.rates import stored_rates
from countveil.laws.counts.protocol import Likelihood, Unseen
from countveil.models.factorization import Factorization


def unseen_rates(
    model: Factorization, factors: list[np.ndarray], observations: Observations, engine: Engine
) -> Unseen:
    """Sums of rates over the cells with the same level that have no positive report and are not masked."""
    o, axis = observations, shared_along(model.likelihood)
    levels, (theta, phi) = np.unique(o.level_e if o.stores_all else o.level_d), model.matrices(factors)
    own = (theta,) if o.exposure is None else (theta, o.exposure)
    by_row, (rates,) = engine.over_rows(unseen_block, o, (levels, phi, phi.sum(axis=0), axis), own)
    return Unseen(np.asarray(o.noise.ratio(levels)), by_row[0].T if axis == "row" else rates)


def unseen_block(
    block: Block,
    levels: np.ndarray,
    phi: np.ndarray,
    phi_total: np.ndarray,
    axis: str,
    theta: np.ndarray,
    exposure: np.ndarray | None = None,
) -> tuple[Arrays, Arrays]:
    """(The rates of each row (rows, levels) if they are wanted by row, else their sums (levels, 1 or V)).

    With exposures by cell they are times these; every cell is stored then.
    """
    entries, n_columns = block.entries, len(phi)
    rows, rates = np.repeat(np.arange(block.n_rows), np.diff(entries.indptr)), np.empty(entries.size)
    stored_rates(entries, theta, phi, rates)
    if exposure is not None:
        rates *= exposure[rows, entries.columns]
    unseen = entries.reports == 0
    if entries.level_e.size:
        place, rate = np.searchsorted(levels, entries.level_e[unseen]), rates[unseen]
        row, column = rows[unseen], entries.columns[unseen]
    elif axis == "column":
        rates[unseen] = 0.0
        place = np.searchsorted(levels, entries.level_d)
        totals = np.zeros((levels.size, theta.shape[1]))
        np.add.at(totals, place, theta)
        seen = np.bincount(place[rows] * n_columns + entries.columns, rates, levels.size * n_columns)
        return (), (np.maximum(totals @ phi.T - seen.reshape(-1, n_columns), 0.0),)
    else:
        rates[unseen] = 0.0
        seen = np.bincount(rows, rates, block.n_rows)
        rate = np.maximum(theta @ phi_total - seen, 0.0)
        place, row = np.searchsorted(levels, entries.level_d), np.arange(block.n_rows)
        column = np.zeros(block.n_rows, dtype=np.int64)
    if axis == "row":
        found = np.bincount(row * levels.size + place, rate, block.n_rows * levels.size)
        return (found.reshape(block.n_rows, levels.size),), (np.zeros(0),)
    n, column = (n_columns, column) if axis == "column" else (1, 0)
    return (), (np.bincount(place * n + column, rate, levels.size * n).reshape(levels.size, n),)


def shared_along(likelihood: Likelihood) -> str:
    """Whether the likelihood has parameters by "row" or by "column"; "all" if each is the same for all cells."""
    axes = set(likelihood.parameter_axes.values()) - {"all"}
    return axes.pop() if axes else "all"
