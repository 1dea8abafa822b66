"""Counts and vocabularies from files, for the command line.

Counts are private: no message here shows one. It names the file, the place and the rule.
"""

import csv
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.io
import scipy.sparse as sp

FLOAT_EXACT = 2**53
UNREADABLE = (ValueError, TypeError, KeyError, EOFError, OSError, OverflowError, zipfile.BadZipFile)


class CountTable(NamedTuple):
    """Counts as a file holds them, with the names of rows and columns where it has them."""

    values: Any  # (D, V) NumPy array or scipy.sparse matrix
    row_labels: list[str] | None
    column_labels: list[str] | None


def read_counts(path: str | Path) -> CountTable:
    """Read a matrix of counts, one record a row, by the file's extension.

    .npz: a matrix written by scipy.sparse.save_npz; .npy: an array written by numpy.save; .mtx: MatrixMarket;
    .csv: a header row of column labels, then one row a record. The first column of a .csv holds row labels
    if its header cell is empty or if one of its cells is no number. Nothing is ever unpickled.

    Raises:
        FileNotFoundError: no such file.
        ValueError: an unknown extension, a file that cannot be read, or no matrix in it.
    """
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(_READERS)
        raise ValueError(f"{path} must end in one of {known}, got {path.suffix or 'no extension'!r}")
    if not path.is_file():
        raise FileNotFoundError(f"no counts at {path}")
    table = reader(path)
    if table.values.ndim != 2:
        raise ValueError(f"{path} must hold a matrix (2 dimensions), got {table.values.ndim}")
    return table


def read_vocabulary(path: str | Path) -> list[str]:
    """Read the words that name the columns, one a line, in their order.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not UTF-8 text, no line, or an empty line.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no vocabulary at {path}")
    words = [line.strip() for line in _text(path).splitlines()]
    if not words:
        raise ValueError(f"{path} must hold one word a line, got an empty file")
    if "" in words:
        raise ValueError(f"{path} must hold one word a line, got an empty line {words.index('') + 1}")
    return words


def _read_sparse(path: Path) -> CountTable:
    try:
        with zipfile.ZipFile(path) as archive:
            is_release = "meta.json" in archive.namelist()
    except UNREADABLE:
        is_release = False
    if is_release:
        raise ValueError(f"{path} must hold counts, got a release, which is privatized already")
    return _unlabelled(path, sp.load_npz, "a matrix written by scipy.sparse.save_npz")


def _read_dense(path: Path) -> CountTable:
    return _unlabelled(path, lambda file: np.load(file, allow_pickle=False), "an array written by numpy.save")


def _read_matrix_market(path: Path) -> CountTable:
    return _unlabelled(path, scipy.io.mmread, "a MatrixMarket matrix")


def _unlabelled(path: Path, load: Callable[[Any], Any], what: str) -> CountTable:
    try:
        values = load(path)
        if not hasattr(values, "ndim"):
            raise ValueError(f"{type(values).__name__} instead of an array")
    except UNREADABLE as error:
        raise ValueError(f"{path} must hold {what}, got {type(error).__name__}: {error}") from error
    return CountTable(values, None, None)


def _read_csv(path: Path) -> CountTable:
    """Cells become integers one by one, so that large counts stay exact."""
    try:
        rows = [row for row in csv.reader(_text(path).splitlines()) if row]
    except csv.Error as error:
        raise ValueError(f"{path} must be comma-separated text, got {error}") from error
    if len(rows) < 2 or not rows[0]:
        raise ValueError(f"{path} must hold a header row and a row of counts or more, got {len(rows)} rows")
    header, body = [cell.strip() for cell in rows[0]], rows[1:]
    for number, row in enumerate(body, start=1):
        if len(row) != len(header):
            raise ValueError(
                f"{path} must have {len(header)} cells in every row, got {len(row)} in row {number}"
            )
    labelled = header[0] == "" or not all(_is_number(row[0]) for row in body)
    first = 1 if labelled else 0
    if len(header) == first:
        raise ValueError(f"{path} must hold at least one column of counts, got row labels only")
    values = [
        [_count(path, cell, number, header[column]) for column, cell in enumerate(row) if column >= first]
        for number, row in enumerate(body, start=1)
    ]
    row_labels = [row[0].strip() for row in body] if labelled else None
    return CountTable(np.array(values, dtype=np.int64), row_labels, header[first:])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _count(path: Path, cell: str, row: int, column: str) -> int:
    """A cell as a whole number; whether it may be a count is checked where the noise is added."""
    try:
        value = int(cell)
    except ValueError:
        value = _whole(path, cell, row, column)
    if not -(2**63) <= value < 2**63:
        raise _bad(path, "a number above 2**63", row, column)
    return value


def _whole(path: Path, cell: str, row: int, column: str) -> int:
    if not _is_number(cell):
        raise _bad(path, "an empty cell" if not cell.strip() else "something that is no number", row, column)
    value = float(cell)
    if not math.isfinite(value) or value != math.floor(value):
        raise _bad(path, "a value that is not whole", row, column)
    if abs(value) > FLOAT_EXACT:
        raise _bad(path, "a decimal number above 2**53, which may have lost digits", row, column)
    return int(value)


def _bad(path: Path, what: str, row: int, column: str) -> ValueError:
    rule = "must hold non-negative whole numbers"
    return ValueError(f"{path} {rule}, got {what} in row {row}, column {column!r}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be UTF-8 text, got other bytes at {error.start}") from error


_READERS: dict[str, Callable[[Path], CountTable]] = {
    ".npz": _read_sparse,
    ".npy": _read_dense,
    ".mtx": _read_matrix_market,
    ".csv": _read_csv,
}
