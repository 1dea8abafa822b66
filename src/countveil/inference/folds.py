"""Folds of cells, the same for all models that are compared: what each fit does not see, and what it is scored on."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from countveil.data.observations import Observations

MAX_CELLS = 200_000  # in each fold: more take time and memory, and add little precision
CELLS_DRAWN_FROM = 4  # times as many as are wanted: fewer are listed, more are drawn from at random
ATTEMPTS = 50  # to draw enough cells that were seen


class Cells(NamedTuple):
    """Numbers of rows and columns of cells."""

    rows: np.ndarray
    columns: np.ndarray

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.rows.size)

    def both_directions(self) -> "Cells":
        """These cells and those on the other side of the diagonal."""
        return Cells(np.concatenate([self.rows, self.columns]), np.concatenate([self.columns, self.rows]))


def folds_of(
    seen_by: Sequence[Observations], n_folds: int, rng: np.random.Generator, pairs: bool = False
) -> list[Cells]:
    """Disjoint random sets of cells, about equally large, of those that none of the observations has masked.

    Together they hold all these cells, or ``MAX_CELLS`` for each fold where there are more. With ``pairs`` a pair of
    actors is one unit, known by its cell above the diagonal.

    Raises:
        ValueError: fewer such cells than folds.
    """
    n_rows, n_columns = seen_by[0].shape
    wanted, n_cells = n_folds * MAX_CELLS, n_rows * n_columns

    def usable(cells: np.ndarray) -> np.ndarray:
        rows, columns = np.divmod(cells, n_columns)
        kept = rows <= columns if pairs else np.ones(cells.size, dtype=bool)
        for observations in seen_by:
            kept &= observations.cells(rows, columns)[0] >= 0
        return cells[kept]

    if n_cells <= CELLS_DRAWN_FROM * wanted:
        found = usable(np.arange(n_cells))
    else:
        found = np.empty(0, dtype=np.int64)
        for _ in range(ATTEMPTS):
            if found.size < wanted:
                found = np.union1d(found, usable(np.unique(rng.integers(n_cells, size=wanted))))
    if found.size < n_folds:
        raise ValueError(
            f"folds must be at most the number of cells that are seen, {found.size}, got {n_folds}"
        )
    parts = np.array_split(rng.permutation(found)[:wanted], n_folds)
    return [Cells(*np.divmod(part, n_columns)) for part in parts]


def is_mirrored(observations: Observations) -> bool:
    """Whether a square matrix reports the same on both sides of the diagonal, as undirected pairs may be written."""
    o = observations
    if o.shape[0] != o.shape[1]:
        return False
    off = (o.reports > 0) & (o.row_numbers != o.columns)
    rows, columns = o.row_numbers[off], o.columns[off]
    return bool(off.any() and (o.cells(columns, rows)[0] == o.reports[off]).all())
