"""Gibbs sweeps that propose tokens and visit only the remaining cells: they cost what the tokens and the visits cost.

Where counts are few, most cells have the same report, or a report that is only noise: 0 under rounding, none below a
threshold, a noisy number. The tokens of all these cells are drawn together (``kernels.tokens``), from the same law as
by visiting them. The counts of all cells are drawn, so every cell has exposure 1 unless it is masked, and the tally has
the counts and bursts of all cells: p is drawn as if they had been observed.

Under two-sided geometric noise, other sweeps visit the positive reports and sum out the counts of all other cells. A
chain by tokens, which draws these counts too, needs up to about 1 + 2 alpha times as many sweeps.

How sweeps go is decided once (``Plan``), by the data and the kind of likelihood alone: a choice by the state would bias
the chain. Only the cheapest of several ways to draw from one law is chosen in every sweep or row.
"""

from typing import Any, NamedTuple

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine, Map, row_blocks
from countveil.inference.factors import sample_gammas
from countveil.inference.facts import facts_of
from countveil.inference.streams import ROWS, Streams
from countveil.kernels import tokens as kernels
from countveil.kernels.report_kernels import CONCAVE, LEAST, MOST, RATIO, ReportKernels, fill_gains
from countveil.kernels.tiles import DENSE_SHARE
from countveil.kernels.tokens import LARGEST_REPORT, Codes, Proposals
from countveil.laws.counts.laws import counted_from, general_law
from countveil.laws.counts.negative_binomial import NegativeBinomialCounts
from countveil.laws.counts.poisson import PoissonCounts
from countveil.laws.counts.protocol import Likelihood, Parameters, Unseen
from countveil.laws.noise.two_sided_geometric.negative_binomial import TwoSidedGeometricNegativeBinomial
from countveil.laws.noise.two_sided_geometric.noise import TwoSidedGeometricKernel, TwoSidedGeometricPoisson
from countveil.laws.noise.two_sided_geometric.tokens import fill_masses

ROWS_PER_BLOCK = 1024
MIN_BLOCKS = 8  # of this size; smaller data are cut into as many blocks as other sweeps cut them
WORK_PER_ROW = 80  # the cost of a row's draws of numbers and of factors, in tokens
TOPICS_AT_ONCE = 5
FEW_TOKENS, MANY_TOKENS = 4.0, 1000.0  # for each cell of a row: fewer are always proposed, more never
TABLED = 64  # counts whose gains are in a table
NONE_UNSEEN = Unseen(np.zeros(0), np.zeros((0, 1)))  # after a sweep that draws the parts of all cells

# Of two-sided geometric noise:
MIN_REPORTS = 100_000  # positive ones: fewer are visited faster than the tables of columns are made
MAX_LEVELS = 16  # different ones of rows, where bursts are proposed: each has a table of the size of all p
ENTRIES_PER_TOKEN = 25  # stored entries that are listed at the cost of one token
MAX_PROPOSALS_PER_REPORT = 2.0  # positive ones: about where both kinds of sweep are equally fast
MOST_REPORT = 8  # the largest report beside which bursts may be proposed
TOKENS_PER_BURST_VISIT = 3.0  # proposals that cost as much as to draw the bursts of one cell by its own law
LARGEST_MASS = 1e200  # its products with rates are numbers, and it is never chosen

# Of other mechanisms:
MIN_CELLS = 100_000  # fewer are visited faster than the tables of columns are made
MIN_SHARE = 0.3  # of all cells, that are proposed
MAX_CODES = 64  # that are proposed
TOKENS_PER_VISIT = 8.0  # proposals that cost as much as one visit, of few units
CELLS_AT_ONCE = 1 << 20  # that are compared with the commonest code
LARGEST_RATIO = 5.0  # of Poisson counts; bursts are drawn from a law that only exists up to 1

NO_CODES = Codes(np.empty(0, np.int64), np.empty(0), np.empty((0, TABLED)), np.empty(0, np.int64))


class Tokens(NamedTuple):
    """How sweeps by tokens go through some observations.

    Stored entries of ``entries`` are visited, masked (-1), known to be zero (0), or have a place (see
    ``kernels.tokens.place_of``). All other cells have that of their row, or of their column.
    """

    entries: Observations
    codes: Codes  # that have places; none if reports have
    unstored_d: np.ndarray  # place of the cells of each row that are not stored
    group_d: np.ndarray  # each row's place among the levels
    levels: np.ndarray  # different ones
    above: np.ndarray  # how many reports are above 0, 1, ... and MOST_REPORT
    masked: bool  # whether there are masked cells
    blocks: list[slice]


def planned(observations: Observations, law: tuple[Any, ...], fused: bool) -> Tokens | None:
    """How sweeps by tokens go, where they are worth it; else None.

    Cells with exposures of their own are all visited. So are all stored ones beside known totals: nearly all of them
    have counts that are known by then.
    """
    way = WAYS.get(type(observations.noise.kernel))
    if way is None or observations.totals is not None or observations.exposure is not None:
        return None
    return way(observations, law, fused)


def sweep_rows(
    found: Tokens,
    law: Any,
    factors: tuple[np.ndarray, np.ndarray],
    likelihood: Likelihood,
    prior: tuple[np.ndarray, np.ndarray] | None,
    streams: Streams,
    sweep: int,
    engine: Engine,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A draw of theta (D, K) and its counts, the columns' (V, K) counts and exposures, and the tally.

    Without a prior, theta is not drawn, and exposures are empty.
    """
    theta, phi = factors
    pair = general_law(found.entries.noise, likelihood, law.likelihood.parameters)
    most = most_proposed(found, pair, theta, phi)
    group_d = found.group_d
    if getattr(pair.likelihood, "by_row", 0):  # every row is a group
        group_d = np.arange(len(theta))
    shape, rate = (np.empty((len(theta), 0)),) * 2 if prior is None else prior
    size, kind = likelihood.tally_size(found.entries.shape), (likelihood, law.likelihood.parameters)
    given = kind, found.codes, found.levels, most, found.masked, size, streams, sweep
    (new, row_counts), (counts, total, masked, tally) = engine.over_rows(
        sweep_block,
        found.entries,
        (law, pair, phi, *given),
        (theta, shape, rate, found.unstored_d, group_d),
        found.blocks,
        with_proposals,
    )
    exposures = np.empty((0, 0)) if prior is None else np.tile(total, (len(phi), 1))
    return new, row_counts, counts, exposures + masked if masked.size else exposures, tally


def with_proposals(
    many: Map,
    law: Any,
    pair: Any,
    phi: np.ndarray,
    likelihood: tuple[Likelihood, Parameters],
    codes: Codes,
    levels: np.ndarray,
    most: int,
    *rest: Any,
) -> tuple[Any, ...]:
    """(law, pair, phi, its totals, how tokens are proposed, beside which reports, and the rest)."""
    if codes.code_c.size:
        weight, bound, scale, chance, unit = beside_codes(likelihood, codes, pair)
    elif isinstance(pair.likelihood, PoissonCounts):
        weight, bound, scale, chance, unit = beside_reports(levels)
    else:
        weight, bound, scale, chance, unit = burst_rates(pair, levels, most)
    weights = np.ascontiguousarray(phi.T * weight)
    proposals = Proposals(
        aliases_of(many, weights), weights.sum(axis=1), bound, scale, chance, unit, codes, FEW_TOKENS, MANY_TOKENS
    )
    return law, pair, phi, phi.sum(axis=0), proposals, most, *rest


def sweep_block(
    block: Block,
    law: tuple[Any, ...],
    pair: Any,
    phi: np.ndarray,
    total: np.ndarray,
    proposals: Proposals,
    most: int,
    masked: bool,
    tally_size: int,
    streams: Streams,
    sweep: int,
    theta: np.ndarray,
    shape: np.ndarray,
    rate: np.ndarray,
    unstored: np.ndarray,
    group: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """Theta's rows and their counts, and the block's part of (counts, theta's totals, exposures masked, tally)."""
    rng, entries = streams.generator(sweep, ROWS, block.number), block.entries
    sums = np.zeros(theta.shape), np.zeros(phi.shape), np.zeros(tally_size)
    law, pair = (counted_from(each, block.first_row) for each in (law, pair))
    if most > 0 and not proposes_beside_reports(block, theta, proposals, group):
        proposals, most = beside_others(proposals), 0
    places = group, unstored
    kernels.propose_rows(law, pair, entries, (theta, phi, total), proposals, places, most, sums, rng)
    none = np.empty((0, 0))
    if shape.shape[1] == 0:
        return (theta, sums[0]), (sums[1], np.empty(0), none, sums[2])
    if not masked:
        new = sample_gammas(sums[0], total, shape, rate, rng)
        return (new, sums[0]), (sums[1], new.sum(axis=0), none, sums[2])
    exposure, exposures = np.tile(total, (len(theta), 1)), np.zeros(phi.shape)
    kernels.subtract_masked(entries, phi, exposure, True)
    new = sample_gammas(sums[0], exposure, shape, rate, rng)
    kernels.subtract_masked(entries, new, exposures, False)
    return (new, sums[0]), (sums[1], new.sum(axis=0), exposures, sums[2])


def aliases_of(many: Map, weights: np.ndarray) -> np.ndarray:
    """Tables to draw a column of each topic from, in proportion to its weights (K, V)."""
    aliases = np.empty(weights.shape, dtype=np.uint64)
    topics = row_blocks(len(weights), TOPICS_AT_ONCE)
    list(many(lambda part: kernels.fill_aliases(weights[part], aliases[part]), topics))
    return aliases


def cut(work: np.ndarray, n_blocks: int) -> list[slice]:
    """At most ``n_blocks`` nonempty runs of about equal sums of work."""
    total = np.cumsum(work)
    stops = np.searchsorted(total, total[-1] * np.arange(1, n_blocks) / n_blocks) + 1
    ends = np.unique(np.append(stops, len(work)))
    return [slice(int(start), int(stop)) for start, stop in zip([0, *ends], ends, strict=False)]


# Two-sided geometric noise: places are those of reports.


def by_reports(observations: Observations, law: tuple[Any, ...], fused: bool) -> Tokens | None:
    """Sweeps that draw theta along with the counts, where they are worth it."""
    if not fused or not pays(observations, law):
        return None
    levels, group_d = np.unique(observations.level_d, return_inverse=True)
    unstored_d = np.ones(len(group_d), dtype=np.int64)
    above, blocks = reports_above(observations), blocks_of(observations)
    return Tokens(observations, NO_CODES, unstored_d, group_d, levels, above, False, blocks)


def pays(observations: Observations, law: tuple[Any, ...]) -> bool:
    """Whether sweeps by tokens are worth it.

    Bursts are only proposed where p does not vary by row, and rows have few levels. Sweeps by tokens are worth it in
    two cases: if few tokens are proposed per positive report; or if positive reports are sparse and few tokens are
    proposed in the other cells. In the second case the collapsed sweep cannot compute its exposures by matrix products,
    and they cost as much as all the rest. Large counts under weak noise would be drawn token by token, so they are
    excluded.
    """
    alpha, (_, n_columns) = observations.level_d, observations.shape
    possible, positive = isinstance(law, TwoSidedGeometricPoisson), observations.reports.size
    if isinstance(law, TwoSidedGeometricNegativeBinomial):
        possible = not law.likelihood.by_row and len(np.unique(alpha)) <= MAX_LEVELS
    if not possible or positive < MIN_REPORTS or observations.stores_all or observations.n_masked:
        return False
    if (alpha <= 0.0).any():
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


def reports_above(observations: Observations) -> np.ndarray:
    """How many reports are above 0, 1, ... and MOST_REPORT."""
    tops = np.minimum(observations.reports, MOST_REPORT + 1).astype(np.uint8)
    return tops.size - np.cumsum(np.bincount(tops, minlength=MOST_REPORT + 2))[:-1]


def most_proposed(found: Tokens, pair: Any, theta: np.ndarray, phi: np.ndarray) -> int:
    """The largest report beside which tokens are proposed: of bursts the cheapest one, which all have the same law.

    Sums are added up in a fixed order, so that the choice does not depend on the number of threads.
    """
    if found.codes.code_c.size:
        return 0
    if isinstance(pair.likelihood, PoissonCounts):
        return LARGEST_REPORT
    rates = (phi * theta.sum(axis=0)).sum(axis=1) / pair.likelihood.q
    proposals = (masses(pair, found.levels, MOST_REPORT).max(axis=0) * rates).sum(axis=1)
    return int(np.argmin(proposals + TOKENS_PER_BURST_VISIT * found.above))


def beside_reports(levels: np.ndarray) -> tuple[Any, ...]:
    """How units are proposed: at 1 / alpha times the rate, of which alpha^2 are kept if the report is not positive."""
    chance = np.zeros((len(levels), 3, 1))
    chance[:, 1, 0], chance[:, 2, 0] = levels**2, 1.0
    return np.ones(1), np.ones(1), 1.0 / levels, chance, -np.log(levels)


def burst_rates(pair: Any, levels: np.ndarray, most: int) -> tuple[Any, ...]:
    """How bursts are proposed: as beside the report ``most``, and kept in proportion to the masses of other reports."""
    mass = masses(pair, levels, most)
    bound = mass.max(axis=(0, 1))
    scale = (mass / bound).max(axis=(1, 2))
    chance = np.zeros((len(levels), most + 2, mass.shape[2]))
    chance[:, 1:] = mass / (scale[:, None, None] * bound)
    return bound / pair.likelihood.q, bound, scale, chance, -np.log(levels)


def masses(pair: Any, levels: np.ndarray, most: int) -> np.ndarray:
    """(levels, reports up to ``most``, p) sums over n of p^n / n k(n) / k(0), LARGEST_MASS beyond that."""
    p = pair.likelihood.parameters[0]
    found = np.empty((len(levels), most + 1, len(p)))
    fill_masses(levels, p, found)
    return np.fmin(found, LARGEST_MASS)


def proposes_beside_reports(block: Block, theta: np.ndarray, proposals: Proposals, group: np.ndarray) -> bool:
    """Whether tokens are proposed beside positive reports too: if there are not too many of them."""
    expected = float((theta @ proposals.total_k * proposals.scale_g[group]).sum())
    return expected < MAX_PROPOSALS_PER_REPORT * block.entries.size + proposals.alias_kv.size


def beside_others(proposals: Proposals) -> Proposals:
    """The same if only cells whose reports are not positive are proposed."""
    chance = proposals.chance_gcn[:, :2].copy()
    most = chance[:, 1].max(axis=1)
    chance[:, 1] /= most[:, None]
    return proposals._replace(scale_g=proposals.scale_g * most, chance_gcn=chance)


# Other mechanisms: places are those of the codes that are proposed, and one code of every row or column is not stored.


def by_codes(observations: Observations, law: tuple[Any, ...], fused: bool) -> Tokens | None:
    """Sweeps that propose the cells with the commonest codes; None where few cells can be proposed."""
    o, most = observations, largest_ratio(law)
    if most == 0.0:
        return None
    noise: Any = o.noise.kernel
    cells_c = np.bincount(np.maximum(o.reports, 0), minlength=len(noise.whole_cj))
    cells_c[0] = 0  # masked ones
    code_c = proposed_codes(o, cells_c, most)
    if code_c.size == 0 or cells_c[code_c].sum() < max(MIN_CELLS, MIN_SHARE * o.shape[0] * o.shape[1]):
        return None
    by_row, commonest = commonest_codes(o, code_c)
    commonest_d = commonest if by_row else np.full(o.shape[0], code_c[0])
    gain_cy = np.empty((code_c.size, TABLED))
    fill_gains(noise, code_c, gain_cy)
    place = np.zeros(len(noise.whole_cj), dtype=np.int64)
    place[code_c] = np.arange(1, code_c.size + 1)
    place_v = np.empty(0, dtype=np.int64) if by_row else place[commonest]
    codes = Codes(code_c, noise.real_cj[code_c, RATIO], gain_cy, place_v)
    entries = without(o, commonest, by_row, place)
    blocks = cut(work_of_visits(o, entries), len(row_blocks(o.shape[0], None, o.shape[1])))
    one = np.zeros(o.shape[0], dtype=np.int64)
    return Tokens(entries, codes, place[commonest_d], one, np.ones(1), np.zeros(1), o.n_masked > 0, blocks)


def largest_ratio(law: Any) -> float:
    """The largest c = k(1) / k(0) of a proposal; 0 if there are none for this likelihood."""
    if isinstance(law.likelihood, PoissonCounts):
        return LARGEST_RATIO
    return 1.0 if isinstance(law.likelihood, NegativeBinomialCounts) else 0.0


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


def without(observations: Observations, commonest: np.ndarray, by_row: bool, place: np.ndarray) -> Observations:
    """The observations without the cells that have the commonest code of their row or column."""
    o = observations
    (n_rows, n_columns), kept = o.shape, []
    for rows in row_blocks(n_rows, max(1, CELLS_AT_ONCE // n_columns)):
        entries = o.block(rows)
        cells = np.zeros((entries.n_rows, n_columns), dtype=o.reports.dtype)
        cells[np.repeat(np.arange(entries.n_rows), np.diff(entries.indptr)), entries.columns] = entries.reports
        d, v = np.nonzero(cells != (commonest[rows, None] if by_row else commonest))
        kept.append((np.bincount(d, minlength=entries.n_rows), v.astype(np.int32), cells[d, v].astype(np.int32)))
    lengths, columns, reports = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    visited = o._copy()
    visited.indptr = np.concatenate([[0], np.cumsum(lengths)])
    visited.columns, visited.reports = columns, reports
    looked_up = (visited.reports > 0) & (place[np.maximum(visited.reports, 0)] > 0)
    visited.reports[looked_up] = -1 - place[visited.reports[looked_up]]
    return visited


def work_of_visits(observations: Observations, visited: Observations) -> np.ndarray:
    """(D,) each row's estimated cost in tokens: tokens proposed, at most as many as are worth it, and cells visited."""
    count, n_columns = np.maximum(facts_of(observations).row_totals, 0.0), observations.shape[1]
    starts = np.concatenate([[0], np.cumsum(visited.reports > 0)])
    visits = starts[visited.indptr[1:]] - starts[visited.indptr[:-1]]
    work = np.minimum(count, MANY_TOKENS * n_columns) + TOKENS_PER_VISIT * visits
    return np.rint(work) + WORK_PER_ROW


def beside_codes(likelihood: tuple[Likelihood, Parameters], codes: Codes, pair: Any) -> tuple[Any, ...]:
    """How tokens are proposed: the parts of a cell with the ratio c have the rate (1 - its exposure) mu."""
    kind, parameters = likelihood
    mass = 1.0 - np.asarray(kind.exposure(codes.ratio_c[:, None], parameters))  # (C, 1 or p)
    if getattr(pair.likelihood, "by_row", 0):
        chance = np.zeros((mass.shape[1], len(mass) + 1, 1))
        chance[:, 1:, 0], bound = mass.T, np.ones(1)
    else:
        chance, bound = np.zeros((1, len(mass) + 1, mass.shape[1])), mass.max(axis=0)
        chance[0, 1:] = mass / bound
    ones = np.ones(len(chance))
    return bound, bound, ones, chance, ones


WAYS: dict[type, Any] = {TwoSidedGeometricKernel: by_reports, ReportKernels: by_codes}
"""By the class of a noise's kernel."""
