"""Totals that were published with a table: in it as a row or a column, or in a table of their own."""

from collections import Counter
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countveil.data.beside import Axis
from countveil.data.frames import texts_of
from countveil.data.io import CountTable
from countveil.data.protected_files import numbers, read_frame
from countveil.data.totals import axes_summed, checked_values, families_given, grouped, is_groups
from countveil.noise.reading import numbers_of, read_reports
from countveil.privacy._totals import ReleasedTotals

Margin = tuple[tuple[int, ...], NDArray[np.float64]]
"""The axes that are summed over, and the totals, of the shape that is left; NaN where one is not known."""
SIDES = ("rows", "columns")


def known_totals(
    totals: Any, shape: tuple[int, ...], axes: Sequence[Axis] = ()
) -> list[ReleasedTotals] | None:
    """The totals of a list as ``Reports`` takes it, as a release holds them; groups have the labels of a Series.

    Raises:
        TypeError, ValueError: as ``read_totals``.
    """
    if totals is None:
        return None
    found = []
    for where, values, mechanism in families_given(totals):
        group, numbers = grouped(where, values, shape, axes, numbers_of if mechanism else checked_values)
        if mechanism is not None:
            read_reports(numbers, mechanism, np.isnan(numbers))
        real = bool(getattr(mechanism, "real", False))
        kept = tuple(None if np.isnan(v) else float(v) if real else int(v) for v in numbers)
        if is_groups(where):
            found.append(ReleasedTotals(None, kept, mechanism, group.ravel(), labels_of_groups(values)))
        else:
            found.append(ReleasedTotals(axes_summed(where, len(shape)), kept, mechanism))
    return found


def labels_of_groups(values: Any) -> tuple[str, ...] | None:
    """The index of a Series that has text in it, as labels."""
    if not isinstance(values, pd.Series) or pd.api.types.is_integer_dtype(values.index.dtype):
        return None
    return tuple(texts_of(values.index))


def without_margins(
    table: CountTable, row: str | None, column: str | None, of: str | None
) -> tuple[CountTable, Margin | None]:
    """A wide table without its row and column of totals, and those of ``of``: "rows", "columns", or the one there is.

    Raises:
        ValueError: no such row or column, or several; both, and nothing that says which of them to keep.
    """
    if row is None and column is None:
        return table, None
    if row is not None and column is not None and of is None:
        raise ValueError(
            "--total-row and --total-column must come with --totals-of rows or --totals-of columns: a fit meets one of "
            "them, and the other is left out"
        )
    of = of or ("columns" if column is None else "rows")
    if (of == "rows" and column is None) or (of == "columns" and row is None):
        raise ValueError(f"--totals-of {of} must come with --total-{'column' if of == 'rows' else 'row'}")
    values: Any = table.values
    values = values.astype(float) if np.ma.isMaskedArray(values) else np.asarray(values, dtype=float)
    rows, columns = table.row_labels, table.column_labels
    keep_rows, keep_columns = np.ones(values.shape[0], bool), np.ones(values.shape[1], bool)
    if row is not None:
        keep_rows[place_of(row, rows, "--total-row")] = False
    if column is not None:
        keep_columns[place_of(column, columns, "--total-column")] = False
    if not keep_rows.any() or not keep_columns.any():
        raise ValueError("the table must have rows and columns beside its totals, got none")
    margin: Margin = (
        ((1,), np.ma.filled(values[keep_rows][:, ~keep_columns].ravel(), np.nan))
        if of == "rows"
        else ((0,), np.ma.filled(values[~keep_rows][:, keep_columns].ravel(), np.nan))
    )
    left = CountTable(
        values[keep_rows][:, keep_columns],
        None if rows is None else [name for name, kept in zip(rows, keep_rows, strict=True) if kept],
        None if columns is None else [name for name, kept in zip(columns, keep_columns, strict=True) if kept],
    )
    return left, margin


def place_of(name: str, labels: Sequence[str] | None, option: str) -> int:
    """Where the one label of this name is; raises ValueError where there is none, or several."""
    found = [place for place, label in enumerate(labels or ()) if label == name.strip()]
    if len(found) != 1:
        raise ValueError(
            f"{option} must be the name of one in the table, got {name!r}, which {len(found)} have"
        )
    return found[0]


def margin_of_frame(
    frame: pd.DataFrame, axes: Sequence[str], labels: Sequence[Sequence[str] | None], value: str
) -> Margin:
    """The totals of a long table: a column for each axis that is left, and one of sums over all others.

    Rows are matched by labels. Where there is no row, or NaN, a total is not known.

    Raises:
        ValueError: a column that is no axis, all axes or none of them, a label that the axis does not have, a total
            that has two rows.
    """
    left = [name for name in axes if name in frame.columns]
    odd = [str(name) for name in frame.columns if name not in (*axes, value)]
    if odd:
        raise ValueError(
            f"columns of totals must be among {list(axes)}, and {value!r}, got {odd[0]!r}: leave out what is no axis"
        )
    if list(frame.columns).count(value) != 1 or len(set(frame.columns)) < len(frame.columns):
        raise ValueError(
            f"totals must have one column {value!r}, and each axis once, got {list(frame.columns)}"
        )
    if not left or len(left) == len(axes):
        raise ValueError(f"totals must have some of the columns {list(axes)}, not all, got {left}")
    names = [labels[axes.index(axis)] or () for axis in left]
    places = []
    for axis, own in zip(left, names, strict=True):
        known = {str(label): place for place, label in enumerate(own)}
        given = [str(label) for label in frame[axis]]
        unknown = next((label for label in given if label not in known), None)
        if unknown is not None:
            raise ValueError(
                f"totals must be of the table's {axis!r}, got {unknown!r}, which it does not have"
            )
        times = Counter(str(label) for label in own)
        shared = next((label for label in given if times[label] > 1), None)
        if shared is not None:
            raise ValueError(
                f"the table's {axis!r} must have the label of every total once, got {shared!r} twice or more"
            )
        places.append([known[label] for label in given])
    shape = tuple(len(own) for own in names)
    flat = np.ravel_multi_index(tuple(np.array(each, dtype=np.int64) for each in places), shape)
    if len(np.unique(flat)) < len(flat):
        twice = int(np.flatnonzero(pd.Series(flat).duplicated())[0])
        said = ", ".join(str(frame[axis].iloc[twice]) for axis in left)
        raise ValueError(f"totals must have one row each, got several of {said}")
    found = np.full(prod(shape), np.nan)
    found[flat] = frame[value].to_numpy(dtype=np.float64, na_value=np.nan)
    return tuple(a for a, name in enumerate(axes) if name not in left), found.reshape(shape)


def read_margin(
    path: Path, axes: Sequence[str] | None, value: str | None, absent: Sequence[str], of: str | None
) -> pd.DataFrame:
    """A file of totals: with axes, its columns are some of them and ``value``; without, labels and totals of a side.

    Raises:
        FileNotFoundError, ValueError: as ``read_protected``.
    """
    frame = read_frame(path, True)
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    if axes is None:
        if frame.shape[1] != 2:
            raise ValueError(f"{path} must have two columns, labels and totals, got {frame.shape[1]}")
        frame.columns = pd.Index([of, value])
    elif list(frame.columns).count(value) != 1:
        raise ValueError(f"{path} must have one column {value!r}, got columns {list(frame.columns)}")
    found = {
        name: numbers(path, frame[name], str(name), absent)
        if name == value
        else frame[name].astype(str).str.strip()
        for name in frame.columns
    }
    return pd.DataFrame(found)
