"""The stored entries of a block of rows, as all loops take them, and space for a batch of them.

A stored entry is a cell that differs from its row's baseline: a positive report, or a cell with an exposure of its own
(masked, or with a noise level of its own). Every other cell has a report that is not positive, and exposure
``exposure_d``. Suffixes are shapes throughout the loops: d rows of the block, v columns, k components, e stored
entries.
"""

from typing import NamedTuple

import numpy as np

from countveil.kernels.compiled import subroutine

BATCH = 128


@subroutine
def new_batch():
    """Space for BATCH entries: (column_i, report_i, rate_i, level_i, count_i, inner space)."""
    columns, counts = np.empty(BATCH, dtype=np.uint32), np.empty(BATCH, dtype=np.int64)
    reports, rates, levels = np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
    lower, upper, left = np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
    term, total, passed = np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
    return columns, reports, rates, levels, counts, (lower, upper, left, term, total, passed)


@subroutine
def new_expectations():
    """Space for BATCH entries: (column_i, report_i, rate_i, level_i, ratio_i, inner space)."""
    columns = np.empty(BATCH, dtype=np.uint32)
    reports, rates, levels, ratios = np.empty(BATCH), np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
    lower, upper = np.empty(BATCH), np.empty(BATCH)
    term, total, moment = np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
    return columns, reports, rates, levels, ratios, (lower, upper, term, total, moment)


MASKED = -1


NO_WEIGHTS, NO_PLACES = np.empty((0, 0)), np.empty(0, dtype=np.int64)


class Entries(NamedTuple):
    """Compressed rows of stored entries, with the noise level and the exposure of the cells between them."""

    indptr: np.ndarray  # (D + 1,) where each row's entries begin
    columns: np.ndarray  # (E,)
    reports: np.ndarray  # (E,) MASKED where a cell is masked
    level_e: np.ndarray  # (E,) noise level of each entry where levels vary within rows; empty otherwise
    level_d: np.ndarray  # (D,) noise level of each row's other cells
    exposure_d: np.ndarray  # (D,) exposure of each row's other cells; 0 where it varies by column
    weight_lv: np.ndarray = NO_WEIGHTS  # (levels, V) where it does: the exposure of those cells by level and column
    place_d: np.ndarray = NO_PLACES  # (D,) and the place of each row's level there

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.indptr) - 1

    @property
    def size(self) -> int:
        """How many entries are stored."""
        return len(self.columns)


@subroutine
def level_at(level_d, level_e, d, e):
    """The noise level of stored entry e, which is in row d.

    The innermost loops write it out instead: passing two arrays for every entry costs about 4% of a sweep.
    """
    return level_d[d] if level_e.size == 0 else level_e[e]
