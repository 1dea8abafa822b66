"""Rates of the cells without a positive report, added up by level: what a likelihood's parameters are drawn from."""

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.likelihoods.protocol import Unseen
from countveil.models.factorization import Factorization

ENTRIES_AT_ONCE = 1 << 16


def unseen_rates(
    model: Factorization, factors: list[np.ndarray], observations: Observations, engine: Engine
) -> Unseen:
    """Sums of rates over the cells with the same level that have no positive report and are not masked."""
    o = observations
    levels, (theta, phi) = np.unique(o.level_e if o.stores_all else o.level_d), model.matrices(factors)
    _, (rates,) = engine.over_rows(unseen_block, o, (levels, phi, phi.sum(axis=0)), (theta,))
    return Unseen(np.asarray(o.noise.ratio(levels)), rates)


def unseen_block(
    block: Block, levels: np.ndarray, phi: np.ndarray, phi_total: np.ndarray, theta: np.ndarray
) -> tuple[Arrays, Arrays]:
    """The block's part of the rates, (levels,)."""
    entries = block.entries
    rows, rates = np.repeat(np.arange(block.n_rows), np.diff(entries.indptr)), np.empty(entries.size)
    for start in range(0, entries.size, ENTRIES_AT_ONCE):
        part = slice(start, start + ENTRIES_AT_ONCE)
        rates[part] = np.einsum("ek,ek->e", theta[rows[part]], phi[entries.columns[part]])
    unseen = entries.reports == 0
    if entries.level_e.size:
        level, rate = entries.level_e[unseen], rates[unseen]
    else:
        rates[unseen] = 0.0
        seen = np.bincount(rows, rates, block.n_rows)
        level, rate = entries.level_d, np.maximum(theta @ phi_total - seen, 0.0)
    return (), (np.bincount(np.searchsorted(levels, level), rate, levels.size),)
