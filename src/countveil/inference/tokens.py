"""Gibbs sweeps over rows that draw the true counts of all cells, token by token.

The collapsed sweep visits every positive report, and almost all of them are noise where counts are few and noise is
strong. Here a sweep costs what the tokens cost. It draws also the counts of cells without a positive report, which the
collapsed sweep sums out: a chain needs up to about 1 + 2 alpha times the sweeps.
"""

from weakref import WeakKeyDictionary

import numpy as np

from countveil.engines.blocks import Arrays, Block, Engine
from countveil.inference.factors import sample_gammas
from countveil.inference.start import mean_count
from countveil.inference.streams import ROWS, Streams
from countveil.kernels import gibbs, proposals
from countveil.kernels.tiles import DENSE_SHARE
from countveil.observations import Observations

ROWS_PER_BLOCK = 1024
BLOCKS_OF_MANY_ROWS = 8
LEAST_REPORTS = 100_000  # positive ones; fewer are soon visited, and tables of columns cost more
MOST_PROPOSALS = 2.0  # for each positive report: about what makes the two sweeps worth the same


_pays: WeakKeyDictionary[Observations, bool] = WeakKeyDictionary()


def pays(observations: Observations) -> bool:
    """Whether sweeps by tokens are worth it, as told by the data alone: a choice by the state would bias the chain.

    They are where few tokens are proposed for each positive report; or where reports are so few that the exposures of
    the collapsed sweep, which cannot go by matrix products then, cost as much as all of its rest, and few tokens are
    proposed beside them: large counts under weak noise would be drawn token by token.
    """
    if observations not in _pays:
        _pays[observations] = _estimate(observations)
    return _pays[observations]


def _estimate(observations: Observations) -> bool:
    alpha, (_, n_columns) = observations.alpha_d, observations.shape
    positive = observations.reports.size
    if positive < LEAST_REPORTS or observations.alpha_e.size or observations.n_masked or (alpha <= 0.0).any():
        return False
    rate_of_rows = n_columns * mean_count(observations)
    cost, beside = ((1.0 + 2.0 * alpha) / alpha).sum() * rate_of_rows, alpha.sum() * rate_of_rows
    few = positive < DENSE_SHARE * alpha.size * n_columns and beside < MOST_PROPOSALS * positive
    return bool(cost < MOST_PROPOSALS * positive or few)


def sweep_rows(
    observations: Observations,
    theta: np.ndarray,
    phi: np.ndarray,
    prior: tuple[np.ndarray, np.ndarray],
    streams: Streams,
    sweep: int,
    engine: Engine,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A draw of theta (D, K), and the (V, K) counts and exposures that fell to the columns."""
    aliases = np.empty((*phi.T.shape, 2))
    proposals.fill_aliases(np.ascontiguousarray(phi.T), aliases)
    many = len(theta) >= BLOCKS_OF_MANY_ROWS * ROWS_PER_BLOCK
    (new,), (counts, total) = engine.over_rows(
        sweep_block, observations, (phi, phi.sum(axis=0), aliases, streams, sweep), (theta, *prior),
        ROWS_PER_BLOCK if many else None,
    )  # fmt: skip
    return new, counts, np.tile(total, (len(phi), 1))


def sweep_block(
    block: Block,
    phi: np.ndarray,
    total: np.ndarray,
    aliases: np.ndarray,
    streams: Streams,
    sweep: int,
    theta: np.ndarray,
    shape: np.ndarray,
    rate: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """Theta's rows, and the block's part of (counts, theta's totals)."""
    rng = streams.generator(sweep, ROWS, block.number)
    row_counts, counts = np.zeros(theta.shape), np.zeros(phi.shape)
    if expected_proposals(block, theta, total) < MOST_PROPOSALS * block.entries[1].size + phi.size:
        proposals.propose_rows(block.entries, theta, phi, total, aliases, row_counts, counts, rng)
    else:  # the same law, and room enough whatever the rates
        gibbs.allocate_rows(block.entries, theta, phi, total, row_counts, counts, rng)
        proposals.propose_rest(block.entries, theta, total, aliases, row_counts, counts, rng)
    new = sample_gammas(row_counts, total, shape, rate, rng)
    return (new,), (counts, new.sum(axis=0))


def expected_proposals(block: Block, theta: np.ndarray, phi_total: np.ndarray) -> float:
    """How many tokens ``propose_rows`` will draw on average."""
    return float(((theta @ phi_total) / block.entries[4]).sum())
