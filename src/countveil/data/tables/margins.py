"""Totals published with a table or beside it, in a row or a column, or over groups matched by their names."""

from collections import Counter
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countveil.data.labels import Axis, texts_of
from countveil.data.tables.cells import NO_WORDS, Words, read_cells
from countveil.data.tables.published import ProtectedTable, read_frame
from countveil.data.tables.text import NOTHING_STATED, Format
from countveil.data.totals import axes_summed, checked_values, families_given, grouped, is_groups
from countveil.laws.noise.reading import numbers_of, read_reports
from countveil.privacy._totals import ReleasedTotals
from countveil.privacy.mechanisms import Mechanism

Family = tuple[Any, Any, Any]
"""(axes or groups, values, "exact" or a mechanism), as ``import_reports`` takes it."""
SIDES = ("rows", "columns")


def released_totals(totals: Any, shape: tuple[int, ...], axes: Sequence[Axis] = ()) -> list[ReleasedTotals] | None:
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
    table: ProtectedTable, row: str | None, column: str | None, of: str | None, mechanism: Mechanism | None = None
) -> tuple[ProtectedTable, list[Family]]:
    """A wide table without its row and column of totals, and those of ``of``: "rows", "columns" or "both".

    Where there is a row or a column only, ``of`` may be None. Both come with the total of the table, unless exact ones
    give it.

    Raises:
        ValueError: no such row or column, or several; both, and nothing that says which of them to keep; exact totals
            of rows that do not add up to that of the table.
    """
    if row is None and column is None:
        return table, []
    if row is not None and column is not None and of is None:
        raise ValueError(
            "--total-row and --total-column must come with --totals-of rows, columns or both, which states whose "
            "totals are kept"
        )
    of = of or ("columns" if column is None else "rows")
    wanted = {"rows": ["column"], "columns": ["row"], "both": ["row", "column"]}.get(of)
    if wanted is None:
        raise ValueError(f"--totals-of must be rows, columns or both with --total-row and --total-column, got {of!r}")
    there = [name for name, given in (("row", row), ("column", column)) if given is not None]
    if not set(wanted) <= set(there):
        raise ValueError(f"--totals-of {of} must come with {' and '.join(f'--total-{name}' for name in wanted)}")
    values: Any = table.values
    rows, columns = table.row_labels, table.column_labels
    keep_rows, keep_columns = np.ones(values.shape[0], bool), np.ones(values.shape[1], bool)
    if row is not None:
        keep_rows[place_of(row, rows, "--total-row")] = False
    if column is not None:
        keep_columns[place_of(column, columns, "--total-column")] = False
    values = np.ma.masked_array(np.ma.getdata(values).astype(float), np.ma.getmaskarray(values))
    if not keep_rows.any() or not keep_columns.any():
        raise ValueError("the table must have rows and columns besides its totals, got none")
    shape, margins = (int(keep_rows.sum()), int(keep_columns.sum())), []
    if of in ("rows", "both"):
        margins.append(((1,), values[keep_rows][:, ~keep_columns].ravel()))
    if of in ("columns", "both"):
        margins.append(((0,), values[~keep_rows][:, keep_columns].ravel()))
    if of == "both":
        margins += whole_beside(margins, values[~keep_rows][:, ~keep_columns].reshape(()), mechanism)
    families = [
        family_over(over, np.ma.filled(found, np.nan), ~np.ma.getmaskarray(found), shape, mechanism)
        for over, found in margins
    ]
    return table.part(keep_rows, keep_columns), families


def whole_beside(margins: Sequence[Any], whole: Any, mechanism: Mechanism | None) -> list[Any]:
    """The total of a table beside those of its rows and columns, where it says something in addition to them.

    Raises:
        ValueError: exact totals of rows or columns that do not add up to it.
    """
    absent = getattr(mechanism, "absent", False)
    if np.ma.getmaskarray(whole).any() or (np.isnan(whole.data).any() and not absent):
        return []
    if mechanism is None:
        for over, values in margins:
            found = np.ma.filled(values, np.nan).sum()
            if not np.isnan(found):
                if found != float(whole):
                    side = SIDES[0] if over == (1,) else SIDES[1]
                    raise ValueError(
                        f"totals of {side} must add up to the total of the table, got {found:.0f} and "
                        f"{float(whole):.0f}"
                    )
                return []
    return [((0, 1), whole)]


def family_over(
    over: tuple[int, ...],
    values: NDArray[np.float64],
    known: NDArray[np.bool_],
    shape: tuple[int, ...],
    mechanism: Mechanism | None,
) -> Family:
    """Totals over axes as ``import_reports`` takes them, of which some are not known, by groups where NaN is hidden."""
    stated = "exact" if mechanism is None else mechanism
    if known.all() or not getattr(mechanism, "absent", False):
        return over, np.where(known, values, np.nan), stated
    numbers = np.where(known, np.cumsum(known).reshape(known.shape) - 1, -1)
    numbers = numbers.reshape([1 if axis in over else length for axis, length in enumerate(shape)])
    return np.broadcast_to(numbers, shape), values[known], stated


def place_of(name: str, labels: Sequence[str] | None, option: str) -> int:
    """Where the one label of this name is; raises ValueError where there is none, or several."""
    found = [place for place, label in enumerate(labels or ()) if label == name.strip()]
    if len(found) != 1:
        raise ValueError(f"{option} must be the name of one in the table, got {name!r}, which {len(found)} have")
    return found[0]


def margin_of_frame(
    frame: pd.DataFrame,
    axes: Sequence[str],
    labels: Sequence[Sequence[str] | None],
    value: str,
    shape: tuple[int, ...],
    mechanism: Mechanism | None = None,
) -> Family:
    """The totals of a long table: a column for each axis that is left, and one of sums over all others.

    Rows are matched by labels; without an axis there is one, the total of the table. Where there is no row, a total is
    not known; so it is where there is NaN, unless the mechanism hides some.

    Raises:
        ValueError: a column that is no axis, all axes, a label that the axis does not have, a total that has two rows.
    """
    left = keys_of(frame, axes, value)
    if len(left) == len(axes) or (not left and len(frame) != 1):
        raise ValueError(
            f"totals must have some of the columns {list(axes)}, not all, or one row without any, got {left} and "
            f"{len(frame)} rows"
        )
    left = [name for name in axes if name in left]
    numbered = [axes.index(name) for name in left]
    places = [places_of(frame[name], labels[axis] or (), name) for name, axis in zip(left, numbered, strict=True)]
    kept = tuple(shape[axis] for axis in numbered)
    flat = np.ravel_multi_index(tuple(places), kept) if left else np.zeros(1, np.int64)
    check_once(flat, frame, left)
    found, known = np.full(prod(kept), np.nan), np.zeros(prod(kept), bool)
    found[flat], known[flat] = frame[value].to_numpy(dtype=np.float64, na_value=np.nan), True
    over = tuple(a for a, name in enumerate(axes) if name not in left)
    return family_over(over, found.reshape(kept), known.reshape(kept), shape, mechanism)


def keys_of(frame: pd.DataFrame, known: Sequence[str], value: str) -> list[str]:
    """The columns of a table of totals that say which total a row has; raises ValueError for others, or no row."""
    if frame.empty:
        raise ValueError("totals must have at least one row, got none")
    odd = [str(name) for name in frame.columns if name not in (*known, value)]
    if odd:
        raise ValueError(
            f"columns of totals must be among {list(known)}, and {value!r}, got {odd[0]!r}: leave out columns "
            "that are not axes"
        )
    if list(frame.columns).count(value) != 1 or len(set(frame.columns)) < len(frame.columns):
        raise ValueError(f"totals must have one column {value!r}, and each axis once, got {list(frame.columns)}")
    return [str(name) for name in frame.columns if name != value]


def places_of(given: pd.Series, own: Sequence[str], axis: str) -> NDArray[np.int64]:
    """The place of every label among an axis' own; raises ValueError for one that is not there, or there twice."""
    known, times = {str(label): place for place, label in enumerate(own)}, Counter(map(str, own))
    names = [str(label) for label in given]
    unknown = next((label for label in names if label not in known), None)
    if unknown is not None:
        raise ValueError(
            f"totals must use labels of the table's {axis!r}, got {unknown!r}, which the table does not have"
        )
    shared = next((label for label in names if times[label] > 1), None)
    if shared is not None:
        raise ValueError(f"the table's {axis!r} must have the label of every total once, got {shared!r} twice or more")
    return np.array([known[label] for label in names], dtype=np.int64)


def check_once(flat: NDArray[np.int64], frame: pd.DataFrame, keys: Sequence[str]) -> None:
    """Refuse a total that has two rows; raises ValueError that names it."""
    twice = np.flatnonzero(pd.Series(flat).duplicated())
    if twice.size:
        said = ", ".join(str(frame[key].iloc[twice[0]]) for key in keys)
        raise ValueError(f"totals must have one row each, got several of {said}")


def read_margin(
    path: Path, value: str, words: Words = NO_WORDS, stated: Format = NOTHING_STATED, of: str | None = None
) -> pd.DataFrame:
    """A file of totals, a column called ``value`` and others with labels; with ``of``, labels and totals of that.

    Rows that were never reported are left out: these totals are not known.

    Raises:
        FileNotFoundError, ValueError: as ``read_protected``.
    """
    frame = read_frame(path)
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    if of is not None:
        if frame.shape[1] != 2:
            raise ValueError(f"{path} must have two columns, labels and totals, got {frame.shape[1]}")
        frame.columns = pd.Index([of, value])
    elif list(frame.columns).count(value) != 1:
        raise ValueError(f"{path} must have one column {value!r}, got columns {list(frame.columns)}")
    marks = Format(thousands=stated.thousands, decimal=stated.decimal)
    cells = read_cells(path, [frame[value]], [value], words, marks)
    found = {
        name: cells.values[:, 0] if name == value else frame[name].astype(str).str.strip() for name in frame.columns
    }
    left = pd.DataFrame(found)[~cells.masked[:, 0]].reset_index(drop=True)
    if left.empty:
        raise ValueError(f"{path} must hold a total or more, got none that is not missing")
    return left


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
    values = pd.Series(frame[value].to_numpy(dtype=np.float64, na_value=np.nan), pd.Index(names, dtype=object))
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
    places = [places_of(frame[name], labels[axis] or (), name) for name, axis in zip(known, numbered, strict=True)]
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
        f"{column!r} must have one value for each label of some axis if it has totals, got several: state in a file of "
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
            "groups must have labels of rows or of columns, got labels of both: call their column rows or columns"
        )
    if not of:
        own = {str(label) for each in labels for label in each or ()}
        odd = next((label for label in given if label not in own), given[0])
        raise ValueError(f"groups must have labels of rows or of columns, got {odd!r}, which is not one of these")
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
        raise ValueError(f"totals must have labels of rows or of columns, got {odd!r}, which {which}")
    parts: list[Any] = []
    for side, own in zip(SIDES, (rows, columns), strict=True):
        part = frame[names.isin(own)].rename(columns={key: side}).reset_index(drop=True)
        if part.empty:
            raise ValueError(f"totals of rows and columns in one table must cover both, got none of {side}")
        parts.append(part)
    return parts
