"""Gibbs sweeps that propose tokens in the cells with the commonest reports, and visit the others.

Most cells of a sparse table have the same report: 0 under rounding, none below a threshold, a noisy 0. Such a report
has nearly the same chance at all small counts, and a proposal at rate c mu (mathematics, equation 14.1) is nearly
always kept. A sweep then costs what the tokens and the visited cells cost, and draws from the same law as one that
visits all cells.
"""

from typing import Any, NamedTuple

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine, Map, row_blocks
from countveil.inference import tokens
from countveil.inference.factors import sample_gammas
from countveil.inference.facts import facts_of
from countveil.inference.streams import ROWS, Streams
from countveil.kernels import gibbs
from countveil.kernels.report_kernels import CONCAVE, LEAST, MOST, RATIO, ReportKernels
from countveil.laws.counts.laws import counts_of, in_block
from countveil.laws.counts.negative_binomial import NegativeBinomialCounts
from countveil.laws.counts.poisson import PoissonCounts
from countveil.laws.counts.protocol import Likelihood, Parameters, Unseen
from countveil.laws.noise import report_scores as scores
from countveil.laws.noise import report_tokens as kernels

MIN_CELLS = 100_000  # fewer are visited faster than the tables of columns are made
MIN_SHARE = 0.3  # of all cells, that are proposed
MAX_CODES = 64  # that are proposed
TOKENS_PER_VISIT = 8.0  # proposals that cost as much as one visit, of few units
FEW_TOKENS, MANY_TOKENS = 4.0, 1000.0  # for each cell of a row: fewer are always proposed, more never
CELLS_AT_ONCE = 1 << 20  # that are compared with the commonest code
LARGEST_RATIO = 5.0  # of Poisson counts; parts of others have a law only up to 1
NONE_UNSEEN = Unseen(np.zeros(0), np.zeros((0, 1)))  # after a sweep that draws the parts of all cells


class Codes(NamedTuple):
    """The codes that are proposed, as ``Proposals`` have them."""

    code_c: np.ndarray
    ratio_c: np.ndarray
    keep_cy: np.ndarray
    place_v: np.ndarray


class Split(NamedTuple):
    """Observations whose cells are visited or proposed.

    Stored entries of ``visited`` are visited, masked (-1), known to be zero (0), or proposed (``LOOKED_UP``). All other
    cells are proposed: their code is that of their row, at the place unstored_d, or that of their column.
    """

    visited: Observations
    codes: Codes
    unstored_d: np.ndarray
    blocks: list[slice]


def split(observations: Observations, law: tuple[Any, ...]) -> Split | None:
    """How sweeps go where proposals are worth it; else None. Decided by the data and the kind of likelihood alone.

    Beside known totals all stored entries are visited: nearly all of them have counts that are known by then. So are
    all cells with exposures of their own.
    """
    if observations.totals is not None or observations.exposure is not None:
        return None
    most = largest_ratio(law)
    if most == 0.0 or not isinstance(observations.noise.kernel, ReportKernels):
        return None
    return make_split(observations, most)


def largest_ratio(law: tuple[Any, ...]) -> float:
    """The largest c = k(1) / k(0) of a proposal; 0 if there are none for this likelihood."""
    counts = counts_of(law)
    if isinstance(counts, PoissonCounts):
        return LARGEST_RATIO
    bursty = isinstance(counts, NegativeBinomialCounts)
    return 1.0 if bursty else 0.0


def make_split(observations: Observations, most: float) -> Split | None:
    """The split of observations; None where few cells can be proposed."""
    o = observations
    noise: Any = o.noise.kernel
    n_cells = o.shape[0] * o.shape[1]
    cells_c = np.bincount(np.maximum(o.reports, 0), minlength=len(noise.whole_cj))
    cells_c[0] = 0  # masked ones
    code_c = proposed_codes(o, cells_c, most)
    if code_c.size == 0 or cells_c[code_c].sum() < max(MIN_CELLS, MIN_SHARE * n_cells):
        return None
    by_row, commonest = commonest_codes(o, code_c)
    commonest_d = commonest if by_row else np.full(o.shape[0], code_c[0])
    ratio_c = noise.real_cj[code_c, RATIO]
    keep_cy = np.empty((code_c.size, kernels.TABLED))
    kernels.fill_keeping(noise, code_c, ratio_c, keep_cy)
    place = np.full(len(noise.whole_cj), kernels.NOT_PROPOSED)
    place[code_c] = np.arange(code_c.size)
    visited = without(o, commonest, by_row, place)
    place_v = np.empty(0, dtype=np.int64) if by_row else place[commonest]
    blocks = tokens.cut(work_of_rows(o, visited), len(row_blocks(o.shape[0], None, o.shape[1])))
    return Split(visited, Codes(code_c, ratio_c, keep_cy, place_v), place[commonest_d], blocks)


def proposed_codes(observations: Observations, cells_c: np.ndarray, most: float) -> np.ndarray:
    """The codes to propose, commonest first: those up to some ratio c, with which sweeps cost least.

    All tokens are proposed at the largest c, so that codes with a large one are better visited.
    """
    noise: Any = observations.noise.kernel
    ratio_c = noise.real_cj[:, RATIO]
    possible = (noise.whole_cj[:, LEAST] == 0) & (noise.whole_cj[:, CONCAVE] == 1) & (cells_c > 0)
    possible &= (ratio_c > 0.0) & (ratio_c <= most) & (noise.whole_cj[:, MOST] > 0)
    codes = np.flatnonzero(possible)
    codes = codes[np.argsort(-cells_c[codes], kind="stable")][:MAX_CODES]
    if codes.size == 0:
        return codes
    ordered = codes[np.argsort(ratio_c[codes], kind="stable")]
    total = max(facts_of(observations).total_count, 0.0)
    cost = total * ratio_c[ordered] - TOKENS_PER_VISIT * np.cumsum(cells_c[ordered])
    last = ratio_c[ordered[np.argmin(cost)]]
    return codes[ratio_c[codes] <= last]


def commonest_codes(observations: Observations, code_c: np.ndarray) -> tuple[bool, np.ndarray]:
    """(whether they go by row, the commonest code of each row or column), whichever fits more cells."""
    o, noise = observations, observations.noise.kernel
    assert isinstance(noise, ReportKernels)
    place = np.full(len(noise.whole_cj), -1)
    place[code_c] = np.arange(code_c.size)
    places = place[np.maximum(o.reports, 0)]
    proposed = places >= 0
    found = []
    for where, size in ((o.row_numbers, o.shape[0]), (o.columns, o.shape[1])):
        key = where[proposed].astype(np.int64) * code_c.size + places[proposed]
        cells = np.bincount(key, minlength=size * code_c.size).reshape(size, code_c.size)
        found.append((cells.max(axis=1).sum(), code_c[cells.argmax(axis=1)]))
    by_row = bool(found[0][0] >= found[1][0])
    return by_row, found[0 if by_row else 1][1]


def without(
    observations: Observations, commonest: np.ndarray, by_row: bool, place: np.ndarray
) -> Observations:
    """The observations without the cells that have the commonest code of their row or column."""
    o = observations
    (n_rows, n_columns), kept = o.shape, []
    for rows in row_blocks(n_rows, max(1, CELLS_AT_ONCE // n_columns)):
        entries = o.block(rows)
        cells = np.zeros((entries.n_rows, n_columns), dtype=o.reports.dtype)
        cells[np.repeat(np.arange(entries.n_rows), np.diff(entries.indptr)), entries.columns] = (
            entries.reports
        )
        d, v = np.nonzero(cells != (commonest[rows, None] if by_row else commonest))
        kept.append(
            (np.bincount(d, minlength=entries.n_rows), v.astype(np.int32), cells[d, v].astype(np.int32))
        )
    lengths, columns, reports = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    visited = o._copy()
    visited.indptr = np.concatenate([[0], np.cumsum(lengths)])
    visited.columns, visited.reports = columns, reports
    looked_up = (visited.reports > 0) & (place[np.maximum(visited.reports, 0)] >= 0)
    visited.reports[looked_up] = kernels.LOOKED_UP - place[visited.reports[looked_up]]
    return visited


def work_of_rows(observations: Observations, visited: Observations) -> np.ndarray:
    """(D,) each row's estimated cost in tokens: tokens proposed, at most as many as are worth it, and cells visited."""
    count, n_columns = np.maximum(facts_of(observations).row_totals, 0.0), observations.shape[1]
    starts = np.concatenate([[0], np.cumsum(visited.reports > 0)])
    visits = starts[visited.indptr[1:]] - starts[visited.indptr[:-1]]
    work = np.minimum(count, MANY_TOKENS * n_columns) + TOKENS_PER_VISIT * visits
    return np.rint(work) + tokens.WORK_PER_ROW


def sweep_rows(
    parted: Split,
    law: tuple[Any, ...],
    factors: tuple[np.ndarray, np.ndarray],
    likelihood: tuple[Likelihood, Parameters],
    prior: tuple[np.ndarray, np.ndarray] | None,
    streams: Streams,
    sweep: int,
    engine: Engine,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A draw of theta (D, K) and its counts, the columns' (V, K) counts and exposures, and the tally.

    Without a prior, theta is not drawn, and exposures are empty.
    """
    theta, phi = factors
    size = likelihood[0].tally_size(parted.visited.shape)
    shape, rate = (np.empty((len(theta), 0)),) * 2 if prior is None else prior
    (new, row_counts), (counts, exposure, tally) = engine.over_rows(
        sweep_block,
        parted.visited,
        (law, phi, likelihood, parted.codes, size, streams, sweep),
        (theta, shape, rate, parted.unstored_d),
        parted.blocks,
        with_proposals,
    )
    return new, row_counts, counts, exposure, tally


def with_proposals(
    many: Map,
    law: Any,
    phi: np.ndarray,
    likelihood: tuple[Likelihood, Parameters],
    codes: Codes,
    *rest: Any,
) -> tuple[Any, ...]:
    """(law, phi, its totals, how tokens are proposed, and the rest)."""
    bound, chance = chances(law, likelihood, codes.ratio_c)
    weights = np.ascontiguousarray(phi.T * bound)
    aliases = tokens.aliases_of(many, weights)
    proposals = kernels.Proposals(aliases, weights.sum(axis=1), chance, *codes, FEW_TOKENS, MANY_TOKENS)
    return law, phi, phi.sum(axis=0), proposals, *rest


def chances(
    law: Any, likelihood: tuple[Likelihood, Parameters], ratio_c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(what phi is multiplied by, the chance of a token of each code): of all columns or of each.

    The parts of a cell with the ratio c have the rate (1 - its exposure) mu.
    """
    if getattr(counts_of(law), "by_row", 0):
        return np.ones(1), np.empty((ratio_c.size, 0))
    kind, parameters = likelihood
    mass = 1.0 - np.asarray(kind.exposure(ratio_c[:, None], parameters))
    bound = mass.max(axis=0)
    return bound, np.ascontiguousarray(mass / bound)


def sweep_block(
    block: Block,
    law: tuple[Any, ...],
    phi: np.ndarray,
    total: np.ndarray,
    proposals: kernels.Proposals,
    tally_size: int,
    streams: Streams,
    sweep: int,
    theta: np.ndarray,
    shape: np.ndarray,
    rate: np.ndarray,
    unstored: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """Theta's rows and their counts, and the block's part of (counts, exposures, tally)."""
    rng, sums = streams.generator(sweep, ROWS, block.number), (np.zeros(theta.shape), np.zeros(phi.shape))
    tally, entries = np.zeros(tally_size), block.entries
    law, _ = in_block(law, entries, block.first_row)
    gibbs.allocate_rows(law, entries, theta, phi, total, (*sums, tally), rng)
    kernels.propose_rows(law, entries, (theta, phi, total), proposals, unstored, (*sums, tally), rng)
    if shape.shape[1] == 0:
        return (theta, sums[0]), (sums[1], np.empty((0, 0)), tally)
    exposure = np.tile(total, (len(theta), 1))
    kernels.subtract_masked(entries, phi, exposure, True)
    new = sample_gammas(sums[0], exposure, shape, rate, rng)
    exposures = np.tile(new.sum(axis=0), (len(phi), 1))
    kernels.subtract_masked(entries, new, exposures, False)
    return (new, sums[0]), (sums[1], exposures, tally)


def one_law(law: tuple[Any, ...]) -> bool:
    """Whether the law is the same in all cells."""
    counts = counts_of(law)
    bursty = isinstance(counts, NegativeBinomialCounts) and not counts.by_row and not counts.by_column
    return bursty or isinstance(counts, PoissonCounts)


def log_likelihood(
    parted: Split, law: tuple[Any, ...], theta: np.ndarray, phi: np.ndarray, engine: Engine
) -> float:
    """log P(reports | rates) with the true counts summed out: by tables of the codes that are proposed."""
    tables = scores.scores_of(law, parted.codes.code_c, parted.codes.place_v)
    _, (total,) = engine.over_rows(
        score_block, parted.visited, (law, phi, tables), (theta, parted.unstored_d)
    )
    return float(total[0])


def score_block(
    block: Block,
    law: tuple[Any, ...],
    phi: np.ndarray,
    tables: scores.Scores,
    theta: np.ndarray,
    unstored: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """The block's part of the log-likelihood."""
    return (), (np.array([scores.score_rows(law, block.entries, theta, phi, tables, unstored)]),)
