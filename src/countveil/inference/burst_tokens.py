"""Gibbs sweeps by ``tokens`` where counts are negative binomial, with one p for all cells or one per column.

The tokens are bursts, and each comes with its size, so that the tally holds the counts and bursts of all cells: p is
then drawn as if they had been observed.
"""

from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine, Map
from countveil.inference import tokens
from countveil.inference.factors import sample_gammas
from countveil.inference.streams import ROWS, Streams
from countveil.kernels import gibbs
from countveil.laws.counts.protocol import Unseen
from countveil.laws.noise.two_sided_geometric import burst_tokens as kernels

MOST_REPORT = 8  # the largest report beside which bursts may be proposed
TOKENS_PER_VISIT = 3.0  # proposals that cost as much as to draw the bursts of one cell by its own law
LARGEST_MASS = 1e200  # its products with rates are numbers, and it is never chosen
NONE_UNSEEN = Unseen(np.zeros(0), np.zeros((0, 1)))  # after a sweep that draws the bursts of all cells


def sweep_rows(
    observations: Observations,
    blocks: list[slice],
    above: np.ndarray,
    law: tuple[Any, ...],
    theta: np.ndarray,
    phi: np.ndarray,
    prior: tuple[np.ndarray, np.ndarray],
    tally_size: int,
    streams: Streams,
    sweep: int,
    engine: Engine,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A draw of theta (D, K) and its counts, the columns' (V, K) counts and exposures, and the tally.

    ``above`` is ``reports_above``.
    """
    levels = np.unique(observations.level_d)
    most = most_proposed(above, law, levels, theta, phi)
    (new, row_counts), (counts, total, tally) = engine.over_rows(
        sweep_block,
        observations,
        (law, phi, levels, most, tally_size, streams, sweep),
        (theta, *prior),
        blocks,
        with_proposals,
    )
    return new, row_counts, counts, np.tile(total, (len(phi), 1)), tally


def masses(law: Any, levels: np.ndarray, most: int) -> np.ndarray:
    """(levels, reports up to ``most``, p) c of the mathematics' equation 13.10, LARGEST_MASS beyond that."""
    p = law.likelihood.parameters[0]
    found = np.empty((len(levels), most + 1, len(p)))
    kernels.fill_masses(levels, p, found)
    return np.fmin(found, LARGEST_MASS)


def most_proposed(above: np.ndarray, law: Any, levels: np.ndarray, theta: np.ndarray, phi: np.ndarray) -> int:
    """The largest report beside which bursts are proposed: the cheapest, which all have the same law.

    Sums are added up in a fixed order, so that the choice does not depend on the number of threads.
    """
    rates = (phi * theta.sum(axis=0)).sum(axis=1) / law.likelihood.q
    proposals = (masses(law, levels, MOST_REPORT).max(axis=0) * rates).sum(axis=1)
    return int(np.argmin(proposals + TOKENS_PER_VISIT * above))


def reports_above(observations: Observations) -> np.ndarray:
    """How many reports are above 0, 1, ... and MOST_REPORT."""
    tops = np.minimum(observations.reports, MOST_REPORT + 1).astype(np.uint8)
    return tops.size - np.cumsum(np.bincount(tops, minlength=MOST_REPORT + 2))[:-1]


def with_proposals(
    many: Map, law: Any, phi: np.ndarray, levels: np.ndarray, most: int, *rest: Any
) -> tuple[Any, ...]:
    """(law, phi, its totals, levels, how tokens are proposed, and the rest)."""
    mass = masses(law, levels, most)
    bound = mass[:, most].max(axis=0)
    scale = (mass[:, most] / bound).max(axis=1)
    chance = np.zeros((len(levels), most + 2, mass.shape[2]))
    chance[:, :-1] = mass / (scale[:, None, None] * bound)
    weights = np.ascontiguousarray(phi.T * (bound / law.likelihood.q))
    aliases = tokens.aliases_of(many, weights)
    proposals = kernels.Proposals(aliases, weights.sum(axis=1), bound, scale, chance)
    return law, phi, phi.sum(axis=0), levels, proposals, *rest


def sweep_block(
    block: Block,
    law: tuple[Any, ...],
    phi: np.ndarray,
    total: np.ndarray,
    levels: np.ndarray,
    proposals: kernels.Proposals,
    tally_size: int,
    streams: Streams,
    sweep: int,
    theta: np.ndarray,
    shape: np.ndarray,
    rate: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """Theta's rows and their counts, and the block's part of (counts, theta's totals, tally)."""
    rng, place = streams.generator(sweep, ROWS, block.number), np.searchsorted(levels, block.entries.level_d)
    sums = np.zeros(theta.shape), np.zeros(phi.shape), np.zeros(tally_size)
    if proposes_beside_reports(block, theta, proposals, place):
        kernels.propose_rows(law, block.entries, (theta, phi, total), proposals, place, sums, rng)
    else:  # the same distribution, in bounded memory whatever the rates
        gibbs.allocate_rows(law, block.entries, theta, phi, total, sums, rng)
        kernels.propose_rest(law, block.entries, theta, proposals, place, sums, rng)
    new = sample_gammas(sums[0], total, shape, rate, rng)
    return (new, sums[0]), (sums[1], new.sum(axis=0), sums[2])


def proposes_beside_reports(
    block: Block, theta: np.ndarray, proposals: kernels.Proposals, place: np.ndarray
) -> bool:
    """Whether bursts are proposed beside positive reports too: if that is worth it, and they are not too many."""
    expected = float((theta @ proposals.total_k * proposals.scale_l[place]).sum())
    limit = tokens.MAX_PROPOSALS_PER_REPORT * block.entries.size + proposals.alias_kv.size
    return proposals.chance_lrn.shape[1] > 2 and expected < limit
