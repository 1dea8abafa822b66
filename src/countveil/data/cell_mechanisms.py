"""Mechanisms of tables in which some cells are intervals: these cells have another one than the numbers."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from countveil.data.cell_kinds import HIDDEN, Cells, bracketed
from countveil.privacy.mechanisms import Interval, Mechanism, Suppression, TopCoding


def interval_mechanism(low: float, high: float) -> Mechanism:
    """That of a cell which is an interval: its count is in it."""
    return Interval(int(low), None if np.isinf(high) else int(high))


def shows_counts(stated: Iterable[Mechanism]) -> bool:
    """Whether all numbers under these mechanisms are counts, so that totals next to them are exact."""
    return all(isinstance(each, Suppression | TopCoding | Interval) for each in stated)


def mechanism_of_intervals(cells: Cells) -> Mechanism | None:
    """The mechanism of a table for which none is stated, if it has intervals: then its numbers are counts.

    Raises:
        ValueError: other cells without a number, of which nothing says what their counts may be.
    """
    if not cells.has_intervals:
        return None
    hidden = cells.tally()[HIDDEN]
    if hidden:
        raise ValueError(
            f"--mechanism must say what was done to hidden counts, got {hidden.total():,} cells{bracketed(hidden)}"
        )
    ends = cells.intervals.reshape(-1, 2)
    low, high = ends[~np.isnan(ends[:, 0])][0]
    return interval_mechanism(low, high)


def by_cell(stated: Any, bounds: np.ndarray) -> Any:
    """The mechanism of every cell, given the ends of intervals (D, V, 2), NaN elsewhere; ``stated`` without any."""
    inside = ~np.isnan(bounds[..., 0])
    if not inside.any():
        return stated
    mechanism = np.empty(bounds.shape[:-1], dtype=object)
    if isinstance(stated, Mechanism):
        mechanism.fill(stated)
    else:
        mechanism[...] = stated
    for low, high in np.unique(bounds[inside], axis=0):
        inside = (bounds[..., 0] == low) & (bounds[..., 1] == high)
        each = interval_mechanism(low, high)
        for other in set(mechanism[inside]):
            if not hides(other, low, high):
                mechanism[inside & (mechanism == other)] = each
    return mechanism


def hides(mechanism: Mechanism, low: float, high: float) -> bool:
    """Whether a mechanism hides just these counts: "<10" under suppression below 10 says what the mechanism says."""
    return isinstance(mechanism, Suppression) and high == mechanism.below - 1 and low <= 1


def by_row(
    frame: pd.DataFrame, stated: Any, by: str | None, bounds: np.ndarray
) -> tuple[pd.DataFrame, Mechanism | Mapping[Hashable, Mechanism], str | None]:
    """(the table, mechanisms by the values of a column, that column) of a table with a row for each cell.

    Without intervals all are as given; with some, ``bounds`` (rows, 2), a column is added.
    """
    if np.isnan(bounds[:, 0]).all():
        return frame, stated, by
    by_cells = np.empty(len(frame), dtype=object)
    if by is None:
        by_cells.fill(stated)
    else:
        by_cells[:] = [stated[value] for value in frame[by].astype(str)]
    by_cells = by_cell(by_cells, bounds)
    numbers: dict[Mechanism, int] = {}
    codes = [numbers.setdefault(each, len(numbers)) for each in by_cells]
    name = "mechanism of the cell"
    while name in frame.columns:
        name += "_"
    return frame.assign(**{name: codes}), {code: each for each, code in numbers.items()}, name
