"""Gibbs sweeps over rows that draw the true counts of all cells, token by token.

The collapsed sweep visits every positive report, and almost all of these are noise where counts are few and noise is
strong. Here a sweep costs what the tokens cost. It also draws the counts of cells without a positive report, which the
collapsed sweep sums out, so a chain needs up to about 1 + 2 alpha times as many sweeps.
"""

from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine, Map, row_blocks
from countveil.inference.factors import sample_gammas
from countveil.inference.facts import facts_of
from countveil.inference.streams import ROWS, Streams
from countveil.kernels import gibbs
from countveil.kernels.tiles import DENSE_SHARE
from countveil.laws.noise.two_sided_geometric import tokens as kernels
from countveil.laws.noise.two_sided_geometric.law import TwoSidedGeometricPoisson
from countveil.laws.noise.two_sided_geometric.negative_binomial import TwoSidedGeometricNegativeBinomial

ROWS_PER_BLOCK = 1024
MIN_BLOCKS = 8  # of this size; smaller data are cut into as many blocks as other sweeps cut them
MIN_REPORTS = 100_000  # positive ones: fewer are visited faster than the tables of columns are made
WORK_PER_ROW = 80  # the cost of a row's draws of numbers and of factors, in tokens
TOPICS_AT_ONCE = 5
MAX_LEVELS = 16  # different ones of rows, where bursts are proposed: each has a table of the size of all p
ENTRIES_PER_TOKEN = 25  # stored entries that are listed at the cost of one token
MAX_PROPOSALS_PER_REPORT = 2.0  # positive ones: about where both kinds of sweep are equally fast


def pays(observations: Observations, law: tuple[Any, ...]) -> bool:
    """Whether sweeps by tokens are worth it, decided by the data alone: a choice by the state would bias the chain.

    Such sweeps exist for two-sided geometric noise, for Poisson counts and for negative binomial counts whose p does
    not vary by row (see ``burst_tokens``). They are worth it in two cases: if few tokens are proposed per positive
    report; or if positive reports are sparse and few tokens are proposed in the other cells. In the second case the
    collapsed sweep cannot compute its exposures by matrix products, and they cost as much as all the rest. Large counts
    under weak noise would be drawn token by token, so they are excluded.
    """
    if not (isinstance(law, TwoSidedGeometricPoisson) or comes_in_bursts(law, observations)):
        return False
    return _estimate(observations)


def comes_in_bursts(law: tuple[Any, ...], observations: Observations) -> bool:
    """Whether the tokens are bursts: of negative binomial counts, with tables of few levels and no p by row."""
    if not isinstance(law, TwoSidedGeometricNegativeBinomial) or law.likelihood.by_row:
        return False
    return len(np.unique(observations.level_d)) <= MAX_LEVELS


def _estimate(observations: Observations) -> bool:
    alpha, (_, n_columns) = observations.level_d, observations.shape
    positive = observations.reports.size
    if positive < MIN_REPORTS or observations.stores_all or observations.n_masked or (alpha <= 0.0).any():
        return False
    rate_of_rows = n_columns * facts_of(observations).mean_count
    cost, beside = ((1.0 + 2.0 * alpha) / alpha).sum() * rate_of_rows, alpha.sum() * rate_of_rows
    few = positive < DENSE_SHARE * alpha.size * n_columns and beside < MAX_PROPOSALS_PER_REPORT * positive
    return bool(cost < MAX_PROPOSALS_PER_REPORT * positive or few)


def blocks_of(observations: Observations) -> list[slice]:
    """Runs of rows of about equal work, decided by the data alone, since a few rows may hold most tokens."""
    n_rows, n_columns = observations.shape
    many = n_rows >= MIN_BLOCKS * ROWS_PER_BLOCK
    n_blocks = len(row_blocks(n_rows, ROWS_PER_BLOCK if many else None, n_columns))
    return cut(work_of_rows(observations), n_blocks)


def work_of_rows(observations: Observations) -> np.ndarray:
    """(D,) each row's estimated cost in tokens: tokens proposed and reports listed, or entries visited if cheaper."""
    alpha, count = observations.level_d, np.maximum(facts_of(observations).row_totals, 0.0)
    entries = np.diff(observations.indptr)
    work = np.minimum(count / alpha + entries / ENTRIES_PER_TOKEN, entries + alpha * count)
    return np.rint(work) + WORK_PER_ROW  # whole numbers, so that no cut depends on rounding in a sum


def cut(work: np.ndarray, n_blocks: int) -> list[slice]:
    """At most ``n_blocks`` nonempty runs of about equal sums of work."""
    total = np.cumsum(work)
    stops = np.searchsorted(total, total[-1] * np.arange(1, n_blocks) / n_blocks) + 1
    ends = np.unique(np.append(stops, len(work)))
    return [slice(int(start), int(stop)) for start, stop in zip([0, *ends], ends, strict=False)]


def sweep_rows(
    observations: Observations,
    blocks: list[slice],
    theta: np.ndarray,
    phi: np.ndarray,
    prior: tuple[np.ndarray, np.ndarray],
    streams: Streams,
    sweep: int,
    engine: Engine,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A draw of theta (D, K) and its counts, and the columns' (V, K) counts and exposures."""
    (new, row_counts), (counts, total) = engine.over_rows(
        sweep_block,
        observations,
        (phi, streams, sweep),
        (theta, *prior),
        blocks,
        with_tables,
    )
    return new, row_counts, counts, np.tile(total, (len(phi), 1))


def with_tables(many: Map, phi: np.ndarray, streams: Streams, sweep: int) -> tuple[Any, ...]:
    """(phi, its totals, tables to draw each topic's columns from, streams, sweep)."""
    return phi, phi.sum(axis=0), aliases_of(many, np.ascontiguousarray(phi.T)), streams, sweep


def aliases_of(many: Map, weights: np.ndarray) -> np.ndarray:
    """Tables to draw a column of each topic from, in proportion to its weights (K, V)."""
    aliases = np.empty(weights.shape, dtype=np.uint64)
    topics = row_blocks(len(weights), TOPICS_AT_ONCE)
    list(many(lambda part: kernels.fill_aliases(weights[part], aliases[part]), topics))
    return aliases


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
    """Theta's rows and their counts, and the block's part of (counts, theta's totals)."""
    rng = streams.generator(sweep, ROWS, block.number)
    row_counts, counts = np.zeros(theta.shape), np.zeros(phi.shape)
    if expected_proposals(block, theta, total) < MAX_PROPOSALS_PER_REPORT * block.entries.size + phi.size:
        kernels.propose_rows(block.entries, theta, phi, total, aliases, row_counts, counts, rng)
    else:  # the same distribution, in bounded memory whatever the rates
        sums = row_counts, counts, np.empty(0)
        gibbs.allocate_rows(TwoSidedGeometricPoisson(), block.entries, theta, phi, total, sums, rng)
        kernels.propose_rest(block.entries, theta, total, aliases, row_counts, counts, rng)
    new = sample_gammas(row_counts, total, shape, rate, rng)
    return (new, row_counts), (counts, new.sum(axis=0))


def expected_proposals(block: Block, theta: np.ndarray, phi_total: np.ndarray) -> float:
    """How many tokens ``propose_rows`` will draw on average."""
    return float(((theta @ phi_total) / block.entries.level_d).sum())
