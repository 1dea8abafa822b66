"""Totals over groups of cells, matched by the names of the groups: those of a table's own columns, or of a file."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countveil.data.margins import SIDES, Family, check_once, keys_of, margin_of_frame, places_of
from countveil.privacy.mechanisms import Mechanism


class Grouping(NamedTuple):
    """Groups of labels of some axes: every label, or combination of labels, is in one of them, or in none."""

    axes: tuple[int, ...]
    place: NDArray[np.int64]  # over these axes, in their order; -1 for none
    names: tuple[str, ...]


def family_of_frame(
    frame: pd.DataFrame,
    axes: Sequence[str],
    labels: Sequence[Sequence[str] | None],
    value: str,
    shape: tuple[int, ...],
    mechanism: Mechanism | None,
    groupings: dict[str, Grouping],
) -> Family:
    """The totals of a table with columns that are axes or groupings, and one of sums over all cells that they name.

    Raises:
        ValueError: as ``margin_of_frame``, and a group that no cell is in.
    """
    keys = keys_of(frame, [*axes, *groupings], value)
    if not any(key in groupings for key in keys):
        return margin_of_frame(frame, axes, labels, value, shape, mechanism)
    number, row = np.zeros(shape, np.int64), np.zeros(len(frame), np.int64)
    inside = np.ones(shape, bool)
    for key in keys:
        known = groupings.get(key) or of_axis(axes.index(key), labels)
        spread = spread_over(known, shape)
        inside &= spread >= 0
        number = number * len(known.names) + np.maximum(spread, 0)
        row = row * len(known.names) + places_of(frame[key], known.names, key)
    check_once(row, frame, keys)
    order = np.argsort(row)
    of_number = order[np.minimum(np.searchsorted(row, number, sorter=order), len(row) - 1)]
    names = [", ".join(str(frame[key].iloc[i]) for key in keys) for i in range(len(frame))]
    values = pd.Series(
        frame[value].to_numpy(dtype=np.float64, na_value=np.nan), pd.Index(names, dtype=object)
    )
    group = np.where(inside & (row[of_number] == number), of_number, -1)
    return group, values, "exact" if mechanism is None else mechanism


def of_axis(axis: int, labels: Sequence[Sequence[str] | None]) -> Grouping:
    """Every label of an axis as a group of its own."""
    own = tuple(map(str, labels[axis] or ()))
    return Grouping((axis,), np.arange(len(own)), own)


def spread_over(grouping: Grouping, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The group of every cell."""
    order = np.argsort(grouping.axes)
    place = grouping.place.transpose(order)
    lengths = [n if axis in grouping.axes else 1 for axis, n in enumerate(shape)]
    return np.broadcast_to(place.reshape(lengths), shape)


def grouping_of_frame(
    frame: pd.DataFrame, axes: Sequence[str], labels: Sequence[Sequence[str] | None]
) -> tuple[str, Grouping]:
    """(the name, the groups) of a table with columns of some axes and one more, the group of what they name.

    A label without a row, or with an empty group, is in no group.

    Raises:
        ValueError: other columns, a label that the axis does not have, one with two rows, or no group at all.
    """
    known = [str(name) for name in frame.columns if name in axes]
    others = [str(name) for name in frame.columns if name not in axes]
    if not known or len(others) != 1 or len(set(frame.columns)) < len(frame.columns):
        raise ValueError(
            f"groups must have columns among {list(axes)}, and one more, the group of what they name, got "
            f"{[str(name) for name in frame.columns]}"
        )
    numbered = [axes.index(name) for name in known]
    places = [
        places_of(frame[name], labels[axis] or (), name) for name, axis in zip(known, numbered, strict=True)
    ]
    lengths = tuple(len(labels[axis] or ()) for axis in numbered)
    flat = np.ravel_multi_index(tuple(places), lengths)
    check_once(flat, frame, known)
    place, names = coded(frame[others[0]])
    found = np.full(prod(lengths), -1)
    found[flat] = place
    if not names:
        raise ValueError(f"groups must be named in the column {others[0]!r}, got none")
    return others[0], Grouping(tuple(numbered), found.reshape(lengths), names)


def grouping_of_column(
    frame: pd.DataFrame, column: str, axes: Sequence[str], labels: Sequence[Sequence[str] | None]
) -> Grouping:
    """The groups of a column of a long table that goes by one of the axes, such as the states of counties.

    Raises:
        ValueError: no such column, or one that has two values for a label of every axis.
    """
    if list(frame.columns).count(column) != 1:
        raise ValueError(
            f"columns of totals must be axes, the column of reports, or columns of the table, got {column!r}"
        )
    place, names = coded(frame[column])
    for axis, name in enumerate(axes):
        own = places_of(frame[name], labels[axis] or (), name)
        found = np.full(len(labels[axis] or ()), -1)
        found[own] = place
        if (found[own] == place).all():
            return Grouping((axis,), found, names)
    raise ValueError(
        f"{column!r} must have one value for every label of an axis, to have totals, got several: say in a file of "
        "--totals-of which cells are in which group"
    )


def coded(groups: pd.Series) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """(the number of each group, -1 for an empty one; their names in order of first use)."""
    empty = np.asarray(groups.isna())
    texts = [("" if gone else str(name).strip()) for name, gone in zip(groups, empty, strict=True)]
    numbers: dict[str, int] = {}
    place = [numbers.setdefault(text, len(numbers)) if text else -1 for text in texts]
    return np.array(place, dtype=np.int64), tuple(numbers)


def sided(frame: pd.DataFrame, labels: Sequence[Sequence[str] | None]) -> pd.DataFrame:
    """Groups of a wide table, whose axes are called "rows" and "columns", by what the first column's labels are of.

    Raises:
        ValueError: two columns whose labels are of neither axis, or of both.
    """
    if frame.shape[1] != 2 or frame.columns[0] in SIDES:
        columns = list(frame.columns)
        return frame.set_axis([*SIDES, columns[-1]], axis=1) if frame.shape[1] == 3 else frame
    given = list(map(str, frame.iloc[:, 0]))
    of = [side for side, own in zip(SIDES, labels, strict=True) if set(given) <= set(map(str, own or ()))]
    if len(of) == 2:
        raise ValueError(
            "groups must be of labels of rows or of columns, got labels of both: call their column rows or columns"
        )
    if not of:
        own = {str(label) for each in labels for label in each or ()}
        odd = next((label for label in given if label not in own), given[0])
        raise ValueError(
            f"groups must be of labels of rows or of columns, got {odd!r}, which is not one with the others"
        )
    return frame.set_axis([of[0], frame.columns[1]], axis=1)


def by_side(frame: pd.DataFrame, labels: Sequence[Sequence[str] | None], value: str) -> list[pd.DataFrame]:
    """Totals of rows and of columns in one table, a column of labels and one of totals, as a table for each side.

    Raises:
        ValueError: a label of neither, or of both.
    """
    rows, columns = (set(map(str, own or ())) for own in labels)
    key = next(str(name) for name in frame.columns if name != value)
    names = frame[key].astype(str)
    odd = next((name for name in names if (name in rows) == (name in columns)), None)
    if odd is not None:
        which = "both have" if odd in rows else "neither has"
        raise ValueError(f"totals must be of labels of rows or of columns, got {odd!r}, which {which}")
    parts: list[Any] = []
    for side, own in zip(SIDES, (rows, columns), strict=True):
        part = frame[names.isin(own)].rename(columns={key: side}).reset_index(drop=True)
        if part.empty:
            raise ValueError(f"totals of both must be of rows and of columns, got none of {side}")
        parts.append(part)
    return parts
