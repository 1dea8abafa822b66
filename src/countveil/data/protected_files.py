"""Protected tables from files, for the command line: reports, and words for counts that have none."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from countveil.data.array_files import check_npy
from countveil.data.io import UNREADABLE, CountTable, read_counts
from countveil.privacy._counts import reads_as_number
from countveil.privacy._index import check_columns

ABSENT = ("", "NA", "N/A", "NaN", "nan", "null", "None")
"""Cells of a text file that always mean: no report."""
ROW_LABELS = "name its column with --row-labels, which needs a header row"
TEXT = (".csv", ".tsv")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)


def read_protected(
    path: str | Path,
    *,
    header: bool = True,
    row_labels: str | None = None,
    absent: Sequence[str] = (),
    missing: Sequence[str] = (),
    **matrix: Any,
) -> CountTable:
    """Read a table of reports with a row for each record.

    .csv, .tsv and .parquet: cells are numbers, empty, or one of the words in ``absent``, or in ``missing``, which
    stand for cells that were never reported: where there are some, values are a numpy.ma array; row labels are in the
    column ``row_labels``, or else in the first one if its header is empty or none of its cells is a number. Other files
    are those of ``read_counts``, to which further options by name are passed on.

    Warns of a column among the reports that looks like an index or an id.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file that cannot be read, a cell that is no number, no such column, a column called as pandas
            calls an index.
    """
    path = Path(path)
    given = sorted(name for name, option in matrix.items() if option not in (None, False))
    if path.suffix.lower() not in (*TEXT, ".parquet"):
        if path.suffix.lower() == ".npy" and path.is_file() and not given:
            return CountTable(read_array(path), None, None)
        return read_counts(path, **matrix)
    if given:
        named = ", ".join("--" + name.replace("_", "-") for name in given)
        raise ValueError(f"{path} must be a matrix, such as .mtx, to be read with {named}, got a table")
    frame = read_frame(path, header)
    names = [str(name).strip() for name in frame.columns]
    check_words(absent, missing)
    none = (*absent, *missing)
    place = label_place(path, frame, names, row_labels, header, none)
    kept = [column for column in range(frame.shape[1]) if column != place]
    if not kept:
        raise ValueError(f"{path} must hold at least one column of reports, got row labels only")
    columns: Any = frame.to_numpy(object).T  # pandas takes far longer to give out its columns one by one
    if path.suffix.lower() not in TEXT:
        columns = [frame.iloc[:, c] for c in range(frame.shape[1])]
    values = np.column_stack([numbers(path, columns[c], names[c], none) for c in kept])
    check_columns(
        f"reports in {path}", [names[c] for c in kept] if header else [], values, place is None, ROW_LABELS
    )
    labels = None if place is None else [str(name).strip() for name in frame.iloc[:, place]]
    found = values
    if missing:
        gone = np.column_stack([never_reported(columns[c], missing) for c in kept])
        found = np.ma.masked_array(values, gone) if gone.any() else values
    return CountTable(found, labels, [names[c] for c in kept] if header else None)


def read_long(
    path: str | Path,
    axes: Sequence[str],
    value: str,
    absent: Sequence[str] = (),
    missing: Sequence[str] = (),
    also: Sequence[str] = (),
) -> tuple[pd.DataFrame, np.ndarray]:
    """Read a table with a row for each cell: (the columns of its axes, and ``also``, as text, and its reports as
    numbers; which rows have a word of ``missing``, of cells that were never reported).

    Raises:
        FileNotFoundError, ValueError: as ``read_protected``.
    """
    path = Path(path)
    if path.suffix.lower() not in (*TEXT, ".parquet"):
        raise ValueError(f"{path} must be a .csv, .tsv or .parquet to have a row for each cell")
    check_words(absent, missing)
    frame = read_frame(path, True)
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    wanted = list(dict.fromkeys([*axes, *also]))
    for name in (*wanted, value):
        if list(frame.columns).count(name) != 1:
            raise ValueError(f"{path} must have one column {name!r}, got columns {list(frame.columns)}")
    found = {name: frame[name].astype(str).str.strip() for name in wanted}
    reports = numbers(path, frame[value], value, (*absent, *missing))
    return pd.DataFrame(found | {value: reports}), never_reported(frame[value], missing)


def check_words(absent: Sequence[str], missing: Sequence[str]) -> None:
    """Refuse a word that is to stand for both; raises ValueError."""
    both = {word.strip() for word in absent} & {word.strip() for word in missing}
    if both:
        raise ValueError(f"--absent and --missing must name different words, got {min(both)!r} in both")


def never_reported(column: Any, missing: Sequence[str]) -> np.ndarray:
    """Where a column has one of these words; of an empty one, where it has nothing."""
    words = {word.strip() for word in missing}
    if not words:
        return np.zeros(len(column), dtype=bool)
    if pd.api.types.is_numeric_dtype(column.dtype):
        return np.asarray(pd.isna(column)) & ("" in words)
    empty = np.asarray(pd.isna(column))
    return np.array(
        [("" if none else str(cell).strip()) in words for cell, none in zip(column, empty, strict=True)]
    )


def read_frame(path: Path, header: bool) -> pd.DataFrame:
    """The cells of a file: as text, or typed as a .parquet file has them."""
    if not path.is_file():
        raise FileNotFoundError(f"no table at {path}")
    try:
        if path.suffix.lower() == ".parquet":
            return pd.read_parquet(path)
        rows = rows_of_text(path)
    except ImportError as error:
        raise ValueError(
            f"{path} must be read by pyarrow, which is not installed: save it as .csv"
        ) from error
    except (csv.Error, *UNREADABLE) as error:
        said = " ".join(str(error).split())[:300]
        raise ValueError(f"{path} must hold a table, got {type(error).__name__}: {said}") from error
    cells = frame_of_rows(path, rows)
    if not header:
        return cells
    body = cells.iloc[1:].reset_index(drop=True)
    body.columns = pd.Index(list(cells.iloc[0]))
    if body.empty:
        raise ValueError(f"{path} must hold a header row and a row of reports or more, got {len(cells)} rows")
    return body


def rows_of_text(path: Path) -> list[list[str]]:
    """The cells of every row of a text file; raises csv.Error for quotes that are not closed, or a giant cell."""
    known: dict[str, str] = {}  # equal cells are one text in memory
    with open(path, encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
        return [[known.setdefault(cell, cell) for cell in line] for line in lines]


def frame_of_rows(path: Path, rows: list[list[str]]) -> pd.DataFrame:
    """Rows of the same length, without blank lines, which are cells where there is one column; raises ValueError."""
    width = next((len(row) for row in rows if row), 0)
    if not width:
        raise ValueError(f"{path} must hold a table, got no cells")
    rows = [row or [""] for row in rows] if width == 1 else [row for row in rows if row]
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            short = len(row) < width
            remedy = (
                "an absent report is an empty cell" if short else "a cell with a separator in it needs quotes"
            )
            raise ValueError(
                f"{path} must have {width} cells in every row, got {len(row)} in row {number}: {remedy}"
            )
    return pd.DataFrame(np.array([row for row in rows if width == 1 or any(row)], dtype=object))


def read_array(path: Path) -> np.ndarray:
    """An array saved by NumPy, of any number of axes."""
    try:
        check_npy(path)
        return np.asarray(np.load(path, allow_pickle=False))
    except UNREADABLE as error:
        raise ValueError(f"{path} must hold an array written by numpy.save, got another file") from error


def label_place(
    path: Path, frame: pd.DataFrame, names: list[str], wanted: str | None, header: bool, absent: Sequence[str]
) -> int | None:
    """Where the row labels are, if anywhere."""
    if wanted is not None:
        if not header or names.count(wanted.strip()) != 1:
            raise ValueError(f"{path} must have one column {wanted!r}, got columns {names[:20]}")
        return names.index(wanted.strip())
    if header and names[0] == "":
        return 0
    cells = [str(cell).strip() for cell in frame.iloc[:, 0]]
    cells = [cell for cell in cells if cell not in {*ABSENT, *(word.strip() for word in absent)} or not cell]
    return 0 if not any(reads_as_number(cell) for cell in cells) and any(cells) else None


def numbers(path: Path, column: Any, name: str, absent: Sequence[str]) -> np.ndarray:
    """A column's reports, NaN where there is none; raises ValueError for a cell that is neither."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    none = {*ABSENT, *(word.strip() for word in absent)}
    found = np.empty(len(column))
    for row, cell in enumerate(column):
        text = "" if cell is None or cell is pd.NA else str(cell).strip()
        if text not in none and not NUMBER.fullmatch(text):
            raise ValueError(
                f"{path} must hold numbers, or words that --absent names where a count has no report, got "
                f"{text[:40]!r} in row {row + 1}, column {name!r}; a file with a row for each cell is read with --long "
                "and --value"
            )
        found[row] = np.nan if text in none else float(text)
    return found
