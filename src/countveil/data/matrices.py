"""Matrices and tables as people pass them in: labels and masks taken off, values checked."""

from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.data.labels import Axis, axis_labels, in_order, is_annotated, is_default, tabled
from countveil.kernels.entries import MASKED
from countveil.privacy._index import REMEDY, check_columns

FLOAT_EXACT = 2.0**53
LARGEST_REPORT = 2**53
NARROW_TYPES = (np.int8, np.int16, np.int32)
LARGEST_FACTOR = 1e100
"""Of an offset or an exposure: beyond it, and below its inverse, rates may be infinite or no numbers."""
RANGE_SAID = f", and use units in which all are from {1.0 / LARGEST_FACTOR:g} to {LARGEST_FACTOR:g}"


def unwrap(reports: Any, mask: Any, rows: Any, columns: Any) -> tuple[Any, Any, Any, Any]:
    """Reports as an array with the labels of a DataFrame and the mask of a masked array taken off."""
    if is_annotated(reports):
        reports, *own = annotated_parts(reports)
        rows, columns = (o if g is None else g for g, o in zip((rows, columns), own, strict=True))
    if isinstance(reports, pd.DataFrame):
        rows = rows if rows is not None else axis_labels(reports.index, "row")
        columns = columns if columns is not None else axis_labels(reports.columns, "column")
        reports = frame_values(reports)
    if isinstance(reports, np.ma.MaskedArray):
        hidden, given = np.ma.getmaskarray(reports), check_mask(mask, reports.shape)
        mask = hidden if given is None else hidden | given
        reports = reports.filled(0)
    return reports if sp.issparse(reports) else np.asarray(reports), mask, rows, columns


def annotated_parts(data: Any, layer: str | None = None) -> tuple[Any, Any, Any]:
    """Values and names of rows and columns.

    Raises:
        TypeError: neither an AnnData object nor a ``CountTable``.
        ValueError: no such layer, or no X.
    """
    if not is_annotated(data):
        raise TypeError(f"data must be an AnnData object, got {type(data).__name__}")
    if not hasattr(data, "obs_names"):
        return data.values, data.row_labels, data.column_labels
    if getattr(data, "isbacked", False):
        data = data.to_memory()
    if layer is not None and layer not in data.layers:
        raise ValueError(f"layer must be one of {list(data.layers)}, got {layer!r}")
    values = data.X if layer is None else data.layers[layer]
    if values is None:
        raise ValueError("data must have an X, got None; name one of its layers")
    return values, list(data.obs_names), list(data.var_names)


def as_matrices(reports: Any, mask: Any, alpha: Any) -> tuple[Any, Any, Any, tuple[int, ...]]:
    """A tensor's reports, mask and alpha with all axes but the first flattened into columns; and its own shape.

    Matrices stay as they are; an alpha of shape (1, V) is spread over the rows.
    """
    shape = tuple(int(n) for n in reports.shape)
    levels = np.asarray(alpha)
    if len(shape) == 2 and levels.shape == (1, shape[1]) and shape[0] > 1:
        return reports, mask, np.broadcast_to(levels, shape), shape
    if len(shape) <= 2:
        return reports, mask, alpha, shape
    if mask is not None:
        hidden = mask.toarray() if sp.issparse(mask) else np.asarray(mask)
        if hidden.shape != shape:
            raise ValueError(f"mask must have the shape of reports {shape}, got {hidden.shape}")
        mask = hidden.reshape(shape[0], -1)
    if levels.ndim > 1:
        try:
            alpha = np.broadcast_to(levels, shape).reshape(shape[0], -1)
        except ValueError:
            raise ValueError(
                f"alpha must be a number, one per row ({shape[0]},) or broadcast to {shape}, got shape {levels.shape}"
            ) from None
    flat = (shape[0], int(np.prod(shape[1:])))
    return reports.reshape(flat), mask, alpha, shape


def check_mode_labels(labels: Any, shape: tuple[int, ...]) -> list[list[str] | None]:
    """Labels of every axis, a list or None each; empty where no labels are given."""
    if labels is None:
        return []
    if len(labels) != len(shape):
        raise ValueError(f"labels must have {len(shape)} entries, a list or None for each axis, got {len(labels)}")
    sizes = zip(labels, shape, strict=True)
    return [check_labels(f"labels[{i}]", names, size) for i, (names, size) in enumerate(sizes)]


def check_whole_counts(name: str, counts: np.ndarray) -> None:
    """Refuse anything but whole numbers, 0 or more; the message has the place, since the value may be a true count."""
    if counts.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be whole numbers, 0 or more, got values of type {counts.dtype}")
    wrong = ~(np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts)))
    if wrong.any():
        index = tuple(map(int, np.argwhere(wrong)[0]))
        raise ValueError(f"{name} must be whole numbers, 0 or more, got something else at index {index}")


def check_matrix(reports: Any) -> tuple[int, int]:
    """The shape of a non-empty matrix."""
    if reports.ndim != 2:
        raise ValueError(f"reports must have 2 dimensions or more, got {reports.ndim}")
    n_rows, n_columns = reports.shape
    if n_rows == 0 or n_columns == 0:
        raise ValueError(
            f"reports must have at least one row and one column, got an empty matrix {n_rows} x {n_columns}"
        )
    return int(n_rows), int(n_columns)


def check_labels(name: str, labels: Any, size: int) -> list[str] | None:
    """Labels as strings, one per row or column."""
    if labels is None:
        return None
    labels = [str(label) for label in labels]
    if len(labels) != size:
        raise ValueError(f"{name} must have {size} entries, got {len(labels)}")
    return labels


def check_offset(name: str, offset: Any, size: int) -> np.ndarray:
    """A positive number for each row or column; ones where nothing is given."""
    if offset is None:
        return np.ones(size)
    values = np.asarray(offset, dtype=np.float64)
    if values.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {values.shape}")
    bad = out_of_range(values)
    if bad.any():
        raise ValueError(
            f"{name} must be positive and finite, got {values[bad][0]} at index {int(np.argmax(bad))}{RANGE_SAID}"
        )
    return values


def out_of_range(values: np.ndarray) -> np.ndarray:
    """Which factors of rates are not positive numbers between the bounds for which rates are finite."""
    return ~((values >= 1.0 / LARGEST_FACTOR) & (values <= LARGEST_FACTOR))


def check_mask(mask: Any, shape: tuple[int, ...], name: str = "mask", of: str = "reports") -> np.ndarray | None:
    """A boolean mask of this shape, that of what it is ``of``, or None if nothing is masked; raises ValueError."""
    if mask is None:
        return None
    hidden = mask.toarray() if sp.issparse(mask) else np.asarray(mask)
    if hidden.dtype != np.bool_:
        true = "held out" if name == "mask" else "chosen"
        raise ValueError(f"{name} must be boolean (True where a cell is {true}), got dtype {hidden.dtype}")
    if hidden.shape != shape:
        raise ValueError(f"{name} must have the shape of {of} {shape}, got {hidden.shape}")
    return hidden if hidden.any() else None


def check_level(level: Any, shape: tuple[int, int], name: str, below: float) -> np.ndarray:
    """Noise levels, called ``name``, in [0, below): (D,) where they are constant in each row, (D, V) otherwise."""
    try:
        levels = np.asarray(level, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number in [0, {below:g}) or an array of them, got {level!r:.60}") from None
    bad = ~((levels >= 0.0) & (levels < below))
    if bad.any():
        at = f" at index {tuple(int(i) for i in np.argwhere(bad)[0])}" if levels.ndim else ""
        raise ValueError(f"{name} must be in [0, {below:g}), got {levels[bad].flat[0]}{at}")
    if levels.ndim == 0:
        return np.full(shape[0], float(levels))
    if levels.shape == (shape[0],) or levels.shape == (shape[0], 1):
        return levels.reshape(shape[0])
    if levels.shape == (1, shape[1]):
        levels = np.repeat(levels, shape[0], axis=0)
    if levels.shape != shape:
        raise ValueError(
            f"{name} must be a number, one per row ({shape[0]},), one per column (1, {shape[1]}) or one per cell "
            f"{shape}, got shape {levels.shape}"
        )
    return levels[:, 0].copy() if (levels == levels[:, :1]).all() else levels


def whole_numbers(reports: Any, hidden: np.ndarray | None, show: bool = True) -> Any:
    """Reports as int64 (dense or CSR), zero where masked; fractional and NaN entries are refused.

    Sparse ones of a narrower signed type keep it.
    """
    if sp.issparse(reports):
        compressed = sp.csr_array(widened(reports))
        if not compressed.has_canonical_format:
            compressed = compressed.copy()
            compressed.sum_duplicates()
        if show and reports.format in ("coo", "csc", "csr") and compressed.nnz < reports.nnz:
            raise ValueError(
                "reports must name each cell once, got a duplicate: a sum of reports carries the noise of each of them"
            )
        if hidden is not None:
            cells = compressed.tocoo()
            compressed.data = np.where(hidden[cells.row, cells.col], 0, compressed.data)
        refuse_missing(compressed.data, compressed)
        if compressed.data.dtype not in NARROW_TYPES:
            compressed.data = whole_values(compressed.data, compressed, show)
        return compressed
    if hidden is not None:
        reports = np.where(hidden, 0, reports)
    refuse_missing(reports, None)
    return whole_values(reports, None, show)


def refuse_missing(values: np.ndarray, compressed: Any) -> None:
    """Refuses NaN outside the mask, and names the mask."""
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(1, dtype=bool)
    if missing.any():
        raise ValueError(
            f"reports must be whole numbers, got nan at index {place_of(missing, compressed)}: mask cells without a "
            "report, mask=frame.isna() or mask=numpy.isnan(array)"
        )


def place_of(bad: np.ndarray, compressed: Any) -> tuple[int, ...]:
    """The index of the first bad value, of an array or of the stored values of compressed rows."""
    first = tuple(int(i) for i in np.argwhere(bad)[0])
    if compressed is None:
        return first
    row = int(np.searchsorted(compressed.indptr, first[0], side="right")) - 1
    return (row, int(compressed.indices[first[0]]))


def widened(reports: Any) -> Any:
    """A sparse matrix in which sums of cells that are named several times fit: narrow types become the widest ones."""
    if getattr(reports, "has_canonical_format", False) or reports.dtype.itemsize >= 8:
        return reports
    if reports.dtype.kind not in "iubf":
        return reports
    return reports.astype(np.float64 if reports.dtype.kind == "f" else np.int64)


def whole_values(values: np.ndarray, compressed: Any, show: bool) -> np.ndarray:
    """Values as int64, or an error that names the first that is not a whole number; true counts are not shown."""
    if values.dtype.kind not in "iubf":
        raise ValueError(f"reports must be whole numbers, got dtype {values.dtype}")
    if values.dtype.kind == "f":
        bad, rule = ~(np.abs(values) <= FLOAT_EXACT) | (values != np.floor(values)), "whole numbers"
    else:
        bad, rule = (values > LARGEST_REPORT) | (values < -LARGEST_REPORT), "at most 2^53 in size"
    if bad.any():
        first, value = place_of(bad, compressed), values[bad][0]
        if not show:
            raise ValueError(f"counts must be {rule}, got one that is not at index {first}")
        raise ValueError(f"reports must be {rule}, got {value} at index {first}")
    return values.astype(np.int64)


def check_exact_cells(values: Any, alpha: np.ndarray) -> None:
    """A negative report is impossible where alpha = 0."""
    exact = alpha == 0.0
    if not exact.any():
        return
    if sp.issparse(values):
        if not (values.data < 0).any():
            return
        coordinates = values.tocoo()
        rows, columns, entries = coordinates.row, coordinates.col, coordinates.data
    else:
        rows, columns = np.nonzero(values < 0)
        entries = values[rows, columns]
    bad = (entries < 0) & (exact[rows] if alpha.ndim == 1 else exact[rows, columns])
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            "counts seen without noise (alpha = 0) must not be negative, got a negative one "
            f"at index ({rows[i]}, {columns[i]})"
        )


def kept(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Values of that type in memory that nobody else writes to: an array that is read-only (a release's) is shared.

    It is writable all the same, so that the kernels are compiled once.
    """
    if values.dtype == dtype and not values.flags.writeable:
        shared = values.view()
        try:
            shared.flags.writeable = True
            return shared
        except ValueError:  # its memory is not Python's to write to
            pass
    return values.astype(dtype)


def positive_part(values: Any) -> sp.csr_array:
    """The positive entries of a matrix, as CSR without explicit zeros."""
    if sp.issparse(values):
        if values.data.min(initial=1) > 0:
            return sp.csr_array(values)
        kept = sp.csr_array(values, copy=True)
        kept.data = np.maximum(kept.data, 0)
        kept.eliminate_zeros()
        return kept
    return sp.csr_array(np.maximum(values, 0))


def stored_cells(values: Any, hidden: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(where rows begin, columns, values) of the positive entries in order, and of hidden ones, as ``MASKED``."""
    if sp.issparse(values):
        stored = positive_part(values)
        if hidden is not None:
            stored = sp.csr_array(stored + MASKED * sp.csr_array(hidden.astype(stored.dtype)))
        stored.sort_indices()
        return stored.indptr, stored.indices, stored.data
    (n_rows, n_columns), entries = values.shape, np.maximum(values, 0)
    if hidden is not None:
        entries[hidden] = MASKED
    entries = entries.ravel()
    places = np.flatnonzero(entries)
    return np.searchsorted(places, n_columns * np.arange(n_rows + 1)), places % n_columns, entries[places]


def negative_part(values: Any) -> Any:
    """The sizes of a matrix's negative entries, dense or CSR as it is, in a narrow type; None if there are none."""
    least = int((values.data if sp.issparse(values) else values).min(initial=0))
    if least == 0:
        return None
    narrow = next(t for t in (np.int8, np.int16, np.int32, np.int64) if -least <= np.iinfo(t).max)
    if not sp.issparse(values):
        return (-np.minimum(values, 0)).astype(narrow)
    sizes = (-np.minimum(values.data, 0)).astype(narrow)
    found = sp.csr_array((sizes, values.indices, values.indptr), shape=values.shape)
    found = found.copy()
    found.eliminate_zeros()
    return found


def last_there(places: np.ndarray) -> np.ndarray:
    """The places, and at each -1 the one before it; the first is no -1."""
    return places[np.maximum.accumulate(np.where(places < 0, 0, np.arange(places.size)))]


def moved_along(values: sp.coo_array, axis: int, places: np.ndarray) -> sp.coo_array:
    """A sparse array whose entry i along an axis is that at ``places[i]``, or empty at -1; each place comes once."""
    there = np.flatnonzero(places >= 0)
    moved = np.empty(values.shape[axis], dtype=np.int64)
    moved[places[there]] = there
    coords = [moved[along] if a == axis else along for a, along in enumerate(values.coords)]
    shape = (*values.shape[:axis], places.size, *values.shape[axis + 1 :])
    return sp.coo_array((values.data, tuple(coords)), shape=shape)


def report_type(largest: int) -> type:
    """The narrowest type for reports up to ``largest``, one of only a few, since kernels are compiled for each."""
    return next(t for t in (np.int16, np.int32, np.int64) if largest <= np.iinfo(t).max)


def frame_values(frame: pd.DataFrame) -> Any:
    """The numbers of a frame, missing ones as NaN: a sparse array where all columns are sparse and mostly zero.

    Raises:
        ValueError: a column of text or dates, or an index among the columns; names the remedy.
    """
    values = numbers_of(frame)
    if 0 not in frame.shape:
        check_columns("reports", list(frame.columns), values, is_default(frame.index))
    return values


def numbers_of(frame: pd.DataFrame) -> Any:
    """The numbers of a frame, whatever its columns are; errors as ``frame_values``."""
    kinds = {dtype.kind if isinstance(dtype, np.dtype) else "" for dtype in frame.dtypes}
    if kinds <= set("iufc") or kinds == {"b"}:
        return frame.to_numpy()
    if all(isinstance(dtype, pd.SparseDtype) and dtype.fill_value == 0 for dtype in frame.dtypes):
        return sp.csr_array(frame.sparse.to_coo())
    return np.column_stack([column_values(frame, place) for place in range(frame.shape[1])])


def column_values(frame: pd.DataFrame, place: int) -> np.ndarray:
    """The numbers of one column, of any type that pandas has for numbers."""
    column = frame.iloc[:, place]
    if isinstance(column.dtype, pd.CategoricalDtype) or column.dtype == object:
        column = pd.Series(np.asarray(column)).infer_objects()
    missing = column.isna().to_numpy()
    known = column[~missing]
    if column.dtype == object and all(isinstance(value, bool | np.bool_ | Real | Decimal) for value in known):
        column = column.mask(column.isna(), np.nan).astype(np.float64)  # pandas' NA is no number
    elif not (is_number(column.dtype) or known.empty):
        what = "text" if isinstance(known.iloc[0], str) else f"values of type {type(known.iloc[0]).__name__}"
        raise ValueError(
            f"reports must be whole numbers, got {what} in column {place}: if it names the rows, {REMEDY}; a table "
            "with a row for each cell or event goes to from_frame"
        )
    if missing.any():
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return column.to_numpy(dtype=np.int64 if pd.api.types.is_integer_dtype(column.dtype) else np.float64)


def is_number(dtype: Any) -> bool:
    """Whether a type is of numbers or booleans, also among those of PyArrow."""
    return pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)


MOST_CELLS = 1 << 24
"""All cells of data with an exposure by cell are stored, in about 25 bytes each."""


class Exposure(NamedTuple):
    """Exposures as factors of the rates of rows (D,) and of columns (V,), and of cells (D, V) where these do not do."""

    of_rows: np.ndarray | float
    of_columns: np.ndarray | float
    by_cell: np.ndarray | None


def read_exposure(exposure: Any, axes: Sequence[Axis], shape: tuple[int, ...]) -> Exposure:
    """Exposures that broadcast to this shape, of the data's axes; a Series has one for each row.

    Raises:
        ValueError: exposures that are no positive finite numbers, do not broadcast to the shape, or have other labels
            than the data.
    """
    if exposure is None:
        return Exposure(1.0, 1.0, None)
    by_row = isinstance(tabled(exposure), pd.Series)
    values = exposure_values(in_order("exposure", exposure, axes))
    if by_row and values.shape == shape[:1]:
        values = values.reshape(-1, *(1 for _ in shape[1:]))
    if values.ndim == 1 and shape[0] in (shape[-1], values.size) and values.size > 1:
        raise ValueError(
            f"exposure must show whether it belongs to rows or to columns, got shape {values.shape} for data {shape}: "
            "reshape it to (-1, 1) for rows, or to (1, -1) for columns"
        )
    try:
        whole = np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(
            f"exposure must broadcast to the shape of the reports {shape}, got shape {values.shape}"
        ) from None
    bad = out_of_range(values)
    if bad.any():
        raise ValueError(
            f"exposure must be positive and finite, got {values[bad][0]} at index "
            f"{tuple(int(i) for i in np.argwhere(bad)[0])}: mask a cell that can have no count, with exposure 1"
            f"{RANGE_SAID}"
        )
    sizes = (1,) * (len(shape) - values.ndim) + values.shape
    if all(size == 1 for size in sizes[1:]):
        return Exposure(np.broadcast_to(values.ravel(), shape[:1]), 1.0, None)
    if len(shape) == 2 and sizes[0] == 1:
        return Exposure(1.0, values.ravel(), None)
    return Exposure(1.0, 1.0, whole.reshape(shape[0], -1))


def exposure_values(exposure: Any) -> np.ndarray:
    """Exposures as floats; raises ValueError for what is not numbers."""
    if np.ma.is_masked(exposure):
        raise ValueError(
            "exposure must have no masked entries: give these cells exposure 1, and mask them in the reports"
        )
    values = exposure.toarray() if sp.issparse(exposure) else exposure
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"exposure must be numbers, got {type(exposure).__name__} {exposure!r:.60}") from None
