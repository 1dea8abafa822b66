"""Whether the reports contradict the noise level that came with them."""

import numpy as np
import scipy.sparse as sp

from countveil.data.observations import Observations
from countveil.data.runs import runs_of
from countveil.kernels.entries import MASKED
from countveil.laws.noise.protocol import Contradiction, Tally


def contradiction_of(data: Observations) -> Contradiction | None:
    """The stated and the found noise level of the cells that are seen, where they differ beyond chance; else None."""
    return data.noise.contradiction(tallied(data))


def tallied(data: Observations) -> Tally:
    """Cells by row, or each by itself where levels vary within rows."""
    if data.stores_all:
        return tally_of_cells(data)
    rows = [tally_of_rows(data, run) for run in runs_of(data)]
    level, cells, at_most_zero, ones, twos, below = (np.concatenate(each) for each in zip(*rows, strict=True))
    return Tally(level, cells, at_most_zero, ones, twos, None if data.below_zero is None else below)


def tally_of_rows(data: Observations, run: slice) -> tuple[np.ndarray, ...]:
    """(levels, cells, at most zero, ones, twos, below zero) of a run of rows."""
    block = data.block(run)
    lengths, n_rows = np.diff(block.indptr), run.stop - run.start
    row = np.repeat(np.arange(n_rows), lengths)

    def by_row(chosen: np.ndarray, sizes: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(row[chosen], sizes, minlength=n_rows).astype(np.int64)

    hidden = block.reports == MASKED
    cells = data.shape[1] - by_row(hidden)
    below = np.zeros(n_rows, dtype=np.int64)
    if data.below_zero is not None:
        own = data.below_zero[run]
        masked = np.asarray(own[row[hidden], block.columns[hidden]])
        below = np.asarray(own.sum(axis=1, dtype=np.int64)) - by_row(hidden, masked)
    few = (by_row(block.reports == 1), by_row(block.reports == 2))
    return block.level_d, cells, cells - by_row(block.reports > 0), *few, below


def tally_of_cells(data: Observations) -> Tally:
    """Each cell by itself."""
    reports, below = data.reports, data.below_zero
    seen = (reports != MASKED).astype(np.int64)
    if below is not None:
        below = (below.toarray() if sp.issparse(below) else below).ravel() * seen
    return Tally(data.level_e, seen, (reports == 0) * seen, reports == 1, reports == 2, below)
