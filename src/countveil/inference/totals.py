"""Counts of cells in known totals: part of a chain's state, moved by pairs of cells of one total.

Where a total is known, its counts are no longer independent given the rates, and cannot be drawn one by one. A chain
holds those that their reports leave open. Each sweep first draws pairs of them given their sum
(``kernels.totals``), and then takes them as known counts: the pass over the data visits them as it visits reports of a
single possible count. Totals are met by every state.
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
from countveil.kernels.overlapping import sweep_overlapping
from countveil.kernels.report_kernels import (
    LEAST,
    MOST,
    UNBOUNDED,
    ReportKernels,
)
from countveil.laws.counts.laws import counts_of

CELLS_PER_BLOCK = 1 << 14  # each block has a stream of its own; a total is never cut
Matrices = tuple[np.ndarray, np.ndarray]


class OpenCells(NamedTuple):
    """The cells in known totals whose reports leave them open, (n,) each, one total after another."""

    entry: np.ndarray  # the place among the stored entries
    row: np.ndarray
    column: np.ndarray
    code: np.ndarray
    start: np.ndarray  # (G + 1,) where each total's cells begin
    left: np.ndarray  # (G,) what they add up to
    blocks: list[slice]  # runs of totals
    kernel: ReportKernels  # with a last code for cells without a report
    exposure: np.ndarray  # known factors of the rates
    overlap: Overlap | None = None  # where totals are noisy or overlap; cells are in no order then


def open_cells(observations: Observations) -> OpenCells:
    """The open cells of observations with totals; masked ones have the code of a cell without a report."""
    o, totals = observations, observations.totals
    assert totals is not None
    assert isinstance(o.noise.kernel, ReportKernels)
    kernel = with_codes(o.noise.kernel, np.array([0]), np.array([UNBOUNDED]))
    row = o.row_numbers
    code = o.reports.astype(np.int64)
    code[code < 0] = len(kernel.whole_cj) - 1
    if totals.beside is not None:
        return cells_of_families(o, kernel, row, code)
    group = totals.group[row, o.columns]
    least, most = (kernel.whole_cj[code, column] for column in (LEAST, MOST))
    fixed, is_open = (group >= 0) & (least == most), (group >= 0) & (least < most)
    left = totals.value.copy()
    np.subtract.at(left, group[fixed], least[fixed])
    entry = np.flatnonzero(is_open)
    entry = entry[np.argsort(group[entry], kind="stable")]
    start = np.searchsorted(group[entry], np.arange(left.size + 1))
    blocks = tokens.cut(np.diff(start) + 1, max(1, entry.size // CELLS_PER_BLOCK)) if left.size else []
    where = row[entry], o.columns[entry].astype(np.int64)
    exposure = np.broadcast_to(o.exposure_of(*where), entry.shape)
    return OpenCells(entry, *where, code[entry], start, left, blocks, kernel, exposure)


def cells_of_families(
    observations: Observations, kernel: ReportKernels, row: np.ndarray, code: np.ndarray
) -> OpenCells:
    """The open cells where totals are noisy or overlap."""
    o, totals = observations, observations.totals
    assert totals is not None
    groups = [group[row, o.columns].astype(np.int64) for group in totals.families]
    within = np.flatnonzero(np.any([group != NONE for group in groups], axis=0))
    groups, code = [group[within] for group in groups], code[within]
    is_open = kernel.whole_cj[code, LEAST] < kernel.whole_cj[code, MOST]
    overlap, entry = overlap_of(totals, groups, is_open, kernel, code), within[is_open]
    none, where = np.empty(0, dtype=np.int64), (row[entry], o.columns[entry].astype(np.int64))
    exposure = np.broadcast_to(o.exposure_of(*where), entry.shape)
    return OpenCells(entry, *where, code[is_open], none, none, [], kernel, exposure, overlap)


def begin(
    cells: OpenCells, law: tuple[Any, ...], matrices: Matrices, streams: Streams, sweep: int = 0
) -> np.ndarray:
    """(n,) counts of the open cells that meet all totals: draws given reports alone, moved until they do."""
    counts, rates = np.empty(cells.entry.size, dtype=np.int64), rates_of(cells, slice(None), matrices)
    rng = streams.generator(sweep, TOTALS)
    own = cells.row, cells.column, cells.code
    kernels.draw_without_totals(cells.kernel, counts_of(law), own, rates, rng, counts)
    if cells.overlap is not None:
        return moved_within(cells.overlap, cells.kernel, cells.code, counts)
    kernels.meet_totals(cells.kernel, cells.code, cells.start, cells.left, counts)
    return counts


def redrawn(
    counts: np.ndarray,
    cells: OpenCells,
    law: tuple[Any, ...],
    matrices: Matrices,
    streams: Streams,
    sweep: int,
    engine: Engine,
) -> np.ndarray:
    """The counts after a sweep of moves by pairs; every block of totals has a stream of its own."""
    new, likelihood = counts.copy(), counts_of(law)
    if cells.overlap is not None:
        rates = rates_of(cells, slice(None), matrices)
        sweep_all(cells, likelihood, rates, streams.generator(sweep, TOTALS), new)
        return new

    def sweep_block(number: int, groups: slice) -> None:
        part = slice(cells.start[groups.start], cells.start[groups.stop])
        own = cells.row[part], cells.column[part], cells.code[part]
        start = cells.start[groups.start : groups.stop + 1] - part.start
        rng = streams.generator(sweep, TOTALS, number)
        rates = rates_of(cells, part, matrices)
        kernels.sweep_totals(cells.kernel, likelihood, own, rates, start, rng, new[part])

    list(engine.map(sweep_block, range(len(cells.blocks)), cells.blocks))
    return new


def sweep_all(
    cells: OpenCells, likelihood: Any, rates: np.ndarray, rng: np.random.Generator, counts: np.ndarray
) -> None:
    """One sweep where totals are noisy or overlap, in place; they cannot be cut into blocks."""
    assert cells.overlap is not None
    own, plan = (cells.row, cells.column, cells.code), cells.overlap.plan
    plan = plan._replace(pair_e=plan.pair_e.copy())
    sums = sums_of(cells.overlap, counts)
    sweep_overlapping(cells.kernel, likelihood, own, rates, sums, plan, rng, counts)


def meet(
    counts: np.ndarray,
    cells: OpenCells,
    law: tuple[Any, ...],
    matrices: Matrices,
    rng: np.random.Generator,
    sweeps: int,
) -> None:
    """Move the open cells' counts among those of all cells (D, V), in place: to meet all totals, then for sweeps."""
    likelihood, rates = counts_of(law), rates_of(cells, slice(None), matrices)
    own, found = (cells.row, cells.column, cells.code), given(cells, counts)
    if cells.overlap is not None:
        found = moved_within(cells.overlap, cells.kernel, cells.code, found)
        for _ in range(sweeps):
            sweep_all(cells, likelihood, rates, rng, found)
        counts[cells.row, cells.column] = found
        return
    kernels.meet_totals(cells.kernel, cells.code, cells.start, cells.left, found)
    for _ in range(sweeps):
        kernels.sweep_totals(cells.kernel, likelihood, own, rates, cells.start, rng, found)
    counts[cells.row, cells.column] = found


def rates_of(cells: OpenCells, part: slice, matrices: Matrices) -> np.ndarray:
    """The rates of some of the open cells, times their exposures if there are any by cell."""
    theta, phi = map(np.ascontiguousarray, matrices)
    rates = np.empty(cells.entry[part].size)
    kernels.fill_rates(theta, phi, cells.row[part], cells.column[part], rates)
    return rates * cells.exposure[part]


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
