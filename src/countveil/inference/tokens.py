"""Gibbs sweeps over rows that draw the true counts of all cells, token by token.

The collapsed sweep visits every positive report, and almost all of them are noise where counts are few and noise is
strong. Here a sweep costs what the tokens cost. It draws also the counts of cells without a positive report, which the
collapsed sweep sums out: a chain needs up to about 1 + 2 alpha times the sweeps.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine, Map, row_blocks
from countveil.inference.factors import sample_gammas
from countveil.inference.facts import facts_of
from countveil.inference.streams import ROWS, Streams
from countveil.kernels import gibbs
from countveil.kernels.tiles import DENSE_SHARE
from countveil.noise.two_sided_geometric import tokens as kernels
from countveil.noise.two_sided_geometric.law import TwoSidedGeometricPoisson

ROWS_PER_BLOCK = 1024
BLOCKS_OF_MANY_ROWS = 8
LEAST_REPORTS = 100_000  # positive ones; fewer are soon visited, and tables of columns cost more
WORK_OF_A_ROW = 80  # what its draws of numbers and of factors cost, in tokens
TOPICS_AT_ONCE = 5
ENTRIES_LISTED = 25  # for what a token costs
MOST_PROPOSALS = 2.0  # for each positive report: about what makes the two sweeps worth the same


_pays: WeakKeyDictionary[Observations, bool] = WeakKeyDictionary()
_blocks: WeakKeyDictionary[Observations, list[slice]] = WeakKeyDictionary()


def pays(observations: Observations, law: tuple[Any, ...]) -> bool:
    """Whether sweeps by tokens are worth it, decided by the data alone: a choice by the state would bias the chain.

    There are such sweeps for Poisson counts under two-sided geometric noise.

    They are where few tokens are proposed for each positive report; or where reports are so few that the exposures of
    the collapsed sweep, which cannot go by matrix products then, cost as much as all of its rest, and few tokens are
    proposed beside them: large counts under weak noise would be drawn token by token.
    """
    if not isinstance(law, TwoSidedGeometricPoisson):
        return False
    if observations not in _pays:
        _pays[observations] = _estimate(observations)
    return _pays[observations]


def _estimate(observations: Observations) -> bool:
    alpha, (_, n_columns) = observations.level_d, observations.shape
    positive = observations.reports.size
    if positive < LEAST_REPORTS or observations.stores_all or observations.n_masked or (alpha <= 0.0).any():
        return False
    rate_of_rows = n_columns * facts_of(observations).mean_count
    cost, beside = ((1.0 + 2.0 * alpha) / alpha).sum() * rate_of_rows, alpha.sum() * rate_of_rows
    few = positive < DENSE_SHARE * alpha.size * n_columns and beside < MOST_PROPOSALS * positive
    return bool(cost < MOST_PROPOSALS * positive or few)


def blocks_of(observations: Observations) -> list[slice]:
    """Runs of rows of about the same work, as told by the data alone: some rows hold most of all tokens."""
    if observations not in _blocks:
        n_rows, n_columns = observations.shape
        many = n_rows >= BLOCKS_OF_MANY_ROWS * ROWS_PER_BLOCK
        n_blocks = len(row_blocks(n_rows, ROWS_PER_BLOCK if many else None, n_columns))
        _blocks[observations] = cut(work_of_rows(observations), n_blocks)
    return _blocks[observations]


def work_of_rows(observations: Observations) -> np.ndarray:
    """(D,) what each row costs, in tokens, at a guess: those proposed and reports listed, or entries visited."""
    alpha, count = observations.level_d, np.maximum(facts_of(observations).row_totals, 0.0)
    entries = np.diff(observations.indptr)
    work = np.minimum(count / alpha + entries / ENTRIES_LISTED, entries + alpha * count)
    return np.rint(work) + WORK_OF_A_ROW  # whole numbers, so that no cut hangs on the last bit of a sum


def cut(work: np.ndarray, n_blocks: int) -> list[slice]:
    """At most so many runs, none of them empty, of about the same sum."""
    total = np.cumsum(work)
    stops = np.searchsorted(total, total[-1] * np.arange(1, n_blocks) / n_blocks) + 1
    ends = np.unique(np.append(stops, len(work)))
    return [slice(int(start), int(stop)) for start, stop in zip([0, *ends], ends, strict=False)]


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
    (new,), (counts, total) = engine.over_rows(
        sweep_block,
        observations,
        (phi, streams, sweep),
        (theta, *prior),
        blocks_of(observations),
        with_tables,
    )
    return new, counts, np.tile(total, (len(phi), 1))


def with_tables(many: Map, phi: np.ndarray, streams: Streams, sweep: int) -> tuple[Any, ...]:
    """(phi, its totals, tables to draw each topic's columns from, streams, sweep)."""
    weights, aliases = np.ascontiguousarray(phi.T), np.empty(phi.T.shape, dtype=np.uint64)
    topics = row_blocks(len(weights), TOPICS_AT_ONCE)
    list(many(lambda part: kernels.fill_aliases(weights[part], aliases[part]), topics))
    return phi, phi.sum(axis=0), aliases, streams, sweep


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
    if expected_proposals(block, theta, total) < MOST_PROPOSALS * block.entries.size + phi.size:
        kernels.propose_rows(block.entries, theta, phi, total, aliases, row_counts, counts, rng)
    else:  # the same law, and room enough whatever the rates
        sums = row_counts, counts, np.empty(0)
        gibbs.allocate_rows(TwoSidedGeometricPoisson(), block.entries, theta, phi, total, sums, rng)
        kernels.propose_rest(block.entries, theta, total, aliases, row_counts, counts, rng)
    new = sample_gammas(row_counts, total, shape, rate, rng)
    return (new,), (counts, new.sum(axis=0))


def expected_proposals(block: Block, theta: np.ndarray, phi_total: np.ndarray) -> float:
    """How many tokens ``propose_rows`` will draw on average."""
    return float(((theta @ phi_total) / block.entries.level_d).sum())
