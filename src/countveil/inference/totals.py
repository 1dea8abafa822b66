"""Counts of cells in totals: part of a chain's state, moved so that every state meets the totals.

Where a total is known or reported, its counts are no longer independent given the rates, and cannot be drawn one by
one. A chain holds those that their reports leave open. Each sweep first moves them (``kernels.totals``), and then takes
them as known counts: the pass over the data visits them as it visits reports of a single possible count.
"""

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from countveil.data.observations import Observations
from countveil.data.totals import NONE, Overlap, moved_within, overlap_of, sums_of, with_codes
from countveil.engines.blocks import Engine
from countveil.inference import tokens
from countveil.inference.streams import TOTALS, Streams
from countveil.kernels import totals as kernels
from countveil.kernels.report_kernels import LEAST, MOST, UNBOUNDED, ReportKernels

CELLS_PER_BLOCK = 1 << 14  # each block has a stream of its own; a run of pairs is never cut
Matrices = tuple[np.ndarray, np.ndarray]


class OpenCells(NamedTuple):
    """The cells in totals whose reports leave them open, (n,) each."""

    entry: np.ndarray  # the place among the stored entries
    row: np.ndarray
    column: np.ndarray
    code: np.ndarray
    kernel: ReportKernels  # with a last code for cells without a report
    exposure: np.ndarray  # known factors of the rates
    overlap: Overlap
    blocks: list[slice]  # of runs of pairs; one where runs are not apart


def open_cells(observations: Observations) -> OpenCells:
    """The open cells of observations with totals; masked ones have the code of a cell without a report."""
    o, totals = observations, observations.totals
    assert totals is not None
    assert isinstance(o.noise.kernel, ReportKernels)
    kernel = with_codes(o.noise.kernel, np.array([0]), np.array([UNBOUNDED]))
    row, code = o.row_numbers, o.reports.astype(np.int64)
    code[code < 0] = len(kernel.whole_cj) - 1
    groups = [group[row, o.columns].astype(np.int64) for group in totals.groups]
    within = np.flatnonzero(np.any([group != NONE for group in groups], axis=0))
    groups, code = [group[within] for group in groups], code[within]
    is_open = kernel.whole_cj[code, LEAST] < kernel.whole_cj[code, MOST]
    overlap, entry = overlap_of(totals, groups, is_open, kernel, code), within[is_open]
    where = row[entry], o.columns[entry].astype(np.int64)
    exposure = np.broadcast_to(o.exposure_of(*where), entry.shape)
    sizes = np.diff(overlap.moves.start_p) + 1
    n_blocks = max(1, entry.size // CELLS_PER_BLOCK) if overlap.apart else 1
    blocks = tokens.cut(sizes, n_blocks) if sizes.size else []
    return OpenCells(entry, *where, code[is_open], kernel, exposure, overlap, blocks)


def begin(cells: OpenCells, law: Any, matrices: Matrices, streams: Streams, sweep: int = 0) -> np.ndarray:
    """(n,) counts of the open cells that meet all totals: draws given reports alone, moved until they do."""
    counts, rates = np.empty(cells.entry.size, dtype=np.int64), rates_of(cells, matrices)
    own = cells.row, cells.column, cells.code
    rng = streams.generator(sweep, TOTALS)
    kernels.draw_without_totals(cells.kernel, law.likelihood, own, rates, rng, counts)
    return moved_within(cells.overlap, cells.kernel, cells.code, counts)


def redrawn(
    counts: np.ndarray,
    cells: OpenCells,
    law: tuple[Any, ...],
    matrices: Matrices,
    streams: Streams,
    sweep: int,
    engine: Engine,
) -> np.ndarray:
    """The counts after a sweep; every block has a stream of its own, and so have the moves after all pairs."""
    given = sweeping(cells, law, matrices, counts)

    def sweep_block(number: int, runs: slice) -> None:
        given.sweep_runs(runs, streams.generator(sweep, TOTALS, number))

    list(engine.map(sweep_block, range(len(cells.blocks)), cells.blocks))
    given.sweep_others(streams.generator(sweep, TOTALS, len(cells.blocks)))
    return given.counts


class Sweeping(NamedTuple):
    """What a sweep moves, and by which laws."""

    cells: OpenCells
    likelihood: Any
    rates: np.ndarray
    sums: Any
    counts: np.ndarray

    def sweep_runs(self, runs: slice, rng: np.random.Generator) -> None:
        """Move the pairs of some runs."""
        cells, moves = self.cells, self.cells.overlap.moves
        own, start = (cells.row, cells.column, cells.code), moves.start_p[runs.start : runs.stop + 1]
        kernels.sweep_pairs(
            cells.kernel, self.likelihood, own, self.rates, self.sums, moves.pair_e, start, rng, self.counts
        )

    def sweep_others(self, rng: np.random.Generator) -> None:
        """Move cells one by one, and along cycles."""
        cells, moves = self.cells, self.cells.overlap.moves
        if moves.alone_i.size or moves.cell_e.size:
            own = cells.row, cells.column, cells.code
            kernels.sweep_others(cells.kernel, self.likelihood, own, self.rates, self.sums, moves, rng, self.counts)


def sweeping(cells: OpenCells, law: Any, matrices: Matrices, counts: np.ndarray) -> Sweeping:
    """A sweep of a copy of these counts."""
    sums = sums_of(cells.overlap, counts)
    return Sweeping(cells, law.likelihood, rates_of(cells, matrices), sums, counts.copy())


def meet(
    counts: np.ndarray,
    cells: OpenCells,
    law: tuple[Any, ...],
    matrices: Matrices,
    rng: np.random.Generator,
    sweeps: int,
) -> None:
    """Move the open cells' counts among those of all cells (D, V), in place: to meet all totals, then for sweeps."""
    found = moved_within(cells.overlap, cells.kernel, cells.code, given(cells, counts))
    moved = sweeping(cells, law, matrices, found)
    for _ in range(sweeps):
        for runs in cells.blocks:
            moved.sweep_runs(runs, rng)
        moved.sweep_others(rng)
    counts[cells.row, cells.column] = moved.counts


def rates_of(cells: OpenCells, matrices: Matrices) -> np.ndarray:
    """The rates of the open cells, times their exposures if there are any by cell."""
    theta, phi = map(np.ascontiguousarray, matrices)
    rates = np.empty(cells.entry.size)
    kernels.fill_rates(theta, phi, cells.row, cells.column, rates)
    return rates * cells.exposure


def with_counts(observations: Observations, cells: OpenCells, counts: np.ndarray) -> Observations:
    """The observations as if each open cell's report were its count."""
    value, place = np.unique(counts, return_inverse=True)
    kernel = with_codes(cells.kernel, value, value)
    known, noise = copy(observations), copy(observations.noise)
    noise.kernel = kernel  # type: ignore[misc]
    known.noise, known.reports = noise, observations.reports.astype(np.int32)
    known.reports[cells.entry] = np.where(counts > 0, len(cells.kernel.whole_cj) + place.reshape(-1), 0)
    return known


def given(cells: OpenCells, counts: np.ndarray) -> np.ndarray:
    """(n,) the counts of the open cells among those of all cells (D, V)."""
    return counts[cells.row, cells.column].astype(np.int64)
