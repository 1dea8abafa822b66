"""Counts as people keep them: lists of cells, tables of events, networks, annotated matrices.

Everything becomes cells (coordinates and values) with labels for each axis, and from there a sparse array of any
number of axes for an analyst, or a table that ``privatize`` takes for an owner.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.data.dates import in_usual_order
from countveil.data.labels import SEPARATOR
from countveil.data.matrices import whole_values

MAX_COLUMNS = 2**31 - 1


class Cells(NamedTuple):
    """Some cells of an array; all others are zero (or, in reports, not positive)."""

    coordinates: np.ndarray  # (axes, cells) int64
    values: np.ndarray  # (cells,) int64, or as they were passed where they need not be whole
    shape: tuple[int, ...]
    labels: list[list[str] | None] | None

    def to_sparse(self) -> sp.coo_array:
        """The whole array, with as many axes as there are."""
        return sp.coo_array((self.values, tuple(self.coordinates)), shape=self.shape)


def cells_of_coordinates(
    coordinates: Any,
    values: Any,
    shape: Sequence[int] | None = None,
    labels: Sequence[Sequence[str] | None] | None = None,
    *,
    sum_duplicates: bool = False,
    show: bool = True,
    whole: bool = True,
) -> Cells:
    """Cells from one array of coordinates for each axis, checked.

    Without a shape an axis is as long as its labels, or else as its largest coordinate requires. ``show`` says
    whether errors may show values: they may show reports, never true counts. ``whole`` says whether values must be
    whole numbers.

    Raises:
        ValueError: coordinates that are not whole, negative, out of range, of other lengths or repeated; fewer than
            two axes; a shape or labels that do not fit; values that are not whole.
    """
    where = check_coordinates(coordinates)
    entries = check_values(values, where.shape[1], show, whole)
    sizes = check_shape(where, shape, labels)
    for axis, (along, size) in enumerate(zip(where, sizes, strict=True)):
        bad = (along < 0) | (along >= size)
        if bad.any():
            first = int(np.argmax(bad))
            raise ValueError(
                f"coordinates along axis {axis} must be from 0 to {size - 1}, got {along[first]} in entry {first}"
            )
    where, entries = join_duplicates(where, entries, sizes, sum_duplicates)
    named = None if labels is None else [None if names is None else list(names) for names in labels]
    return Cells(where, entries, sizes, named)


def check_coordinates(coordinates: Any) -> np.ndarray:
    """(axes, cells) whole numbers, from one array for each of two axes or more."""
    arrays = [np.asarray(along) for along in coordinates]
    if len(arrays) < 2:
        raise ValueError(f"coordinates must have one array for each of 2 axes or more, got {len(arrays)}")
    for axis, along in enumerate(arrays):
        if along.ndim != 1 or along.shape != arrays[0].shape:
            raise ValueError(
                "coordinates must be one vector for each axis, all of one length, "
                f"got shapes {arrays[0].shape} for axis 0 and {along.shape} for axis {axis}"
            )
        whole = along.dtype.kind in "iu" or (along.dtype.kind == "f" and (along == np.floor(along)).all())
        if along.size and not whole:
            number = along.dtype.kind == "f"
            place = int(np.argmax(along != np.floor(along))) if number else 0
            raise ValueError(
                f"coordinates must be whole numbers, got {along[place]!s:.40} in entry {place} of axis {axis}"
            )
    return np.stack([along.astype(np.int64) for along in arrays])


def check_values(values: Any, n_cells: int, show: bool, whole: bool) -> np.ndarray:
    """One value for each cell."""
    name = "reports" if show else "counts"
    entries = np.asarray(values)
    if entries.shape != (n_cells,):
        raise ValueError(
            f"{name} must have one entry for each cell of coordinates, ({n_cells},), got shape {entries.shape}"
        )
    return whole_values(entries if entries.size else entries.astype(np.int64), None, show) if whole else entries


def check_shape(
    where: np.ndarray, shape: Sequence[int] | None, labels: Sequence[Sequence[str] | None] | None
) -> tuple[int, ...]:
    """The length of every axis: as given, as its labels, or as its largest coordinate requires."""
    n_axes = len(where)
    for name, told in (("shape", shape), ("labels", labels)):
        if told is not None and len(told) != n_axes:
            raise ValueError(
                f"{name} must have one entry for each of the {n_axes} axes of coordinates, got {len(told)}"
            )
    if shape is None:
        given = labels or [None] * n_axes
        if where.shape[1] == 0 and any(names is None for names in given):
            raise ValueError("shape must be given if there are no cells to infer it from, got None")
        shape = [
            int(along.max(initial=-1)) + 1 if names is None else len(names)
            for along, names in zip(where, given, strict=True)
        ]
    sizes = tuple(int(size) for size in shape)
    if min(sizes) < 1:
        raise ValueError(f"shape must have at least one entry along every axis, got {sizes}")
    if math.prod(sizes[1:]) > MAX_COLUMNS or math.prod(sizes) >= 2**63:
        raise ValueError(f"shape must have at most {MAX_COLUMNS} cells for each entry of the first axis, got {sizes}")
    return sizes


def join_duplicates(
    where: np.ndarray, values: np.ndarray, sizes: tuple[int, ...], wanted: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Every cell once: sums where they are wanted, an error otherwise."""
    keys = np.ravel_multi_index(tuple(where), sizes)
    unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if unique.size == keys.size:
        return where, values
    if not wanted:
        again = int(np.setdiff1d(np.arange(keys.size), first)[0])
        cell = tuple(int(i) for i in where[:, again])
        raise ValueError(
            f"coordinates must name each cell once, got cell {cell} again in entry {again}; "
            "for true counts, sum_duplicates=True adds them up (sums of noisy reports carry the noise of each)"
        )
    total = np.zeros(unique.size, dtype=np.int64)
    np.add.at(total, inverse, values)
    return where[:, first], total


def cells_of_frame(
    frame: pd.DataFrame,
    axes: Sequence[str],
    value: str | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    *,
    sum_duplicates: bool = False,
    show: bool = True,
    whole: bool = True,
) -> Cells:
    """Cells from a long table: one column for each axis, and one of values, or none where a row is an event.

    Categories become labels: as given, else in the order of a categorical column, else sorted: dates by time, text
    that differs in one whole number by this number. Other text in a column whose name is of time, such as "season",
    stays in the order of the table.

    Raises:
        ValueError: a column that is missing, a category that is missing or not among those given, and as
            ``cells_of_coordinates``.
    """
    axes = check_axes(frame, axes, value)
    for axis in categories or {}:
        if axis not in axes:
            raise ValueError(f"categories must be for axes among {axes}, got {axis!r}")
    coordinates, labels = [], []
    for axis in axes:
        codes, names = axis_codes(frame[axis], axis, (categories or {}).get(axis), show)
        coordinates.append(codes)
        labels.append(names)
    if value is None:
        values, sum_duplicates = np.ones(len(frame), dtype=np.int64), True
    else:
        values = frame_values(frame[value]) if whole else frame[value].to_numpy()
    return cells_of_coordinates(
        coordinates, values, labels=labels, sum_duplicates=sum_duplicates, show=show, whole=whole
    )


def with_places(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The table with a column that holds the place of each row, and the name of that column, which no other has."""
    name = "place of the row"
    while name in frame.columns:
        name += "_"
    return frame.assign(**{name: np.arange(len(frame))}), name


def check_axes(frame: Any, axes: Sequence[str], value: str | None) -> list[str]:
    """Names of columns that the table has."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a pandas DataFrame, got {type(frame).__name__}")
    if isinstance(axes, str) or len(axes) < 2 or len(set(axes)) != len(axes):
        raise ValueError(f"axes must name two columns or more, each once, got {axes!r}")
    for name in (*axes, *([] if value is None else [value])):
        if list(frame.columns).count(name) != 1:
            raise ValueError(f"frame must have one column {name!r}, got columns {list(frame.columns)}")
    return list(axes)


def frame_values(column: pd.Series) -> np.ndarray:
    """A column of numbers; missing ones are NaN."""
    if column.dtype.kind in "iuf" and isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    if column.isna().any():
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(column.tolist())


def axis_codes(column: pd.Series, axis: str, told: Sequence[Any] | None, show: bool) -> tuple[np.ndarray, list[str]]:
    """Each row's place along an axis, and the axis's labels."""
    if column.isna().any():
        raise ValueError(f"column {axis!r} must have no missing entries, got {int(column.isna().sum())}")
    if told is not None:
        known = pd.Index(list(told))
    elif isinstance(column.dtype, pd.CategoricalDtype):
        known = column.cat.categories
    else:
        try:
            listed = list(column.unique())
            if all(isinstance(name, str) for name in listed):
                known = pd.Index(in_usual_order(listed, str(axis)))
            else:
                known = pd.Index(sorted(listed))
        except TypeError:
            raise ValueError(
                f"column {axis!r} must hold values that can be sorted, got mixed types; give its categories"
            ) from None
    labels = [str(name) for name in known]
    if len(set(labels)) != len(labels):
        twice = next(name for name in labels if labels.count(name) > 1)
        got = f"{twice!r:.60} twice" if show else "a duplicate (not shown: it may be private)"
        raise ValueError(f"categories of {axis!r} must differ from each other as text, got {got}")
    if not labels:
        raise ValueError(f"categories of {axis!r} must list at least one value, got none")
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    codes = known.get_indexer(pd.Index(column))
    unknown = codes < 0
    if unknown.any():
        value = column.iloc[int(np.argmax(unknown))]
        got = f"got {value!r}" if show else "got a value outside them (not shown: it may be private)"
        raise ValueError(f"column {axis!r} must hold its categories only, {got} in row {int(np.argmax(unknown))}")
    return codes.astype(np.int64), labels


def count_table(
    frame: pd.DataFrame, axes: Sequence[str], categories: Mapping[str, Sequence[Any]], value: str | None = None
) -> pd.DataFrame:
    """The owner's table of counts, for ``privatize``: one row for each entry of the first axis.

    Each row of ``frame`` is an event, or adds ``value`` to its cell. Columns are the cells of all other axes in C
    order, named by their categories; with more than one other axis their names are joined by " | ", by which
    ``folded`` finds the axes again. Categories must be given for every axis: they are published as they are, and
    which of them occur is part of what the noise must hide.

    Returns:
        DataFrame of int64, (length of the first axis, product of the lengths of all others).

    Raises:
        ValueError: an axis without categories, a name that holds the separator, counts that are negative or not
            whole, and whatever a long table is refused for. No message shows a count or a private category.
    """
    axes = check_axes(frame, axes, value)
    for axis in axes:
        if axis not in categories:
            raise ValueError(
                f"categories must be given for every axis, got none for {axis!r}: which ones occur is private"
            )
    if value is not None and (negative := frame_values(frame[value]) < 0).any():
        row = int(np.argmax(negative))
        raise ValueError(f"counts must be non-negative, got a negative count in row {row} of column {value!r}")
    cells = cells_of_frame(frame, axes, value, categories, sum_duplicates=True, show=False)
    labels: list[Any] = list(cells.labels or [])
    if len(axes) > 2:
        refuse_separator(axes[1:], labels[1:])
    flat = np.zeros((cells.shape[0], math.prod(cells.shape[1:])), dtype=np.int64)
    flat.reshape(cells.shape)[tuple(cells.coordinates)] = cells.values
    return pd.DataFrame(flat, index=pd.Index(labels[0]), columns=pd.Index(joined_labels(labels[1:])))


def refuse_separator(axes: Sequence[str], labels: Sequence[list[str]]) -> None:
    """Refuses names that hold the separator: joined, they could not be split again."""
    for axis, names in zip(axes, labels, strict=True):
        for name in names:
            if SEPARATOR in name:
                raise ValueError(f"categories of {axis!r} must not hold {SEPARATOR!r}, got {name!r}")


def joined_labels(labels: Sequence[Sequence[str]]) -> list[str]:
    """Names of the cells of several axes, in C order."""
    found = [""]
    for i, names in enumerate(labels):
        found = [f"{first}{SEPARATOR if i else ''}{name}" for first in found for name in names]
    return found


def split_labels(joined: Sequence[str] | None) -> list[list[str]]:
    """Labels of each axis from the names of all their cells in C order.

    Raises:
        ValueError: no names, or names that are not all cells of some axes in C order.
    """
    rule = f"columns must be named by the cells of their axes, joined by {SEPARATOR!r}, in C order"
    if joined is None:
        raise ValueError(f"{rule}, got no names; give the shape")
    parts = [name.split(SEPARATOR) for name in joined]
    if len({len(part) for part in parts}) != 1 or len(parts[0]) < 2:
        raise ValueError(f"{rule}, got {joined[0]!r} and the like; give the shape")
    labels = [list(dict.fromkeys(names)) for names in zip(*parts, strict=True)]
    wanted = joined_labels(labels)
    if wanted != list(joined):
        place = next((n for n, pair in enumerate(zip(wanted, joined, strict=False)) if pair[0] != pair[1]), len(joined))
        got = f"{joined[place]!r:.60} in column {place}" if place < len(joined) else f"{place} of {len(wanted)} columns"
        raise ValueError(f"{rule}, got {got}; give the shape")
    return labels
