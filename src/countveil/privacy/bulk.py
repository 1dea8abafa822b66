"""Counts in, many release files out: for records that do not fit in memory at once."""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from countveil.privacy import _counts
from countveil.privacy._counts import Counts
from countveil.privacy._text import shown
from countveil.privacy.level import Level
from countveil.privacy.privatize import Levels, privatize_checked, read_levels, read_truncate

ROWS_PER_FILE = 1000
NAME = "part-{:06}.npz"


def privatize_to_files(
    counts: Any,
    level: Level | Sequence[Level],
    folder: str | os.PathLike[str],
    truncate: bool | None = None,
    *,
    rows_per_file: int = ROWS_PER_FILE,
    row_labels: Iterable[Any] | None = None,
    column_labels: Iterable[Any] | None = None,
    threads: int = 1,
) -> list[Path]:
    """``privatize`` one run of rows at a time into one release file each, in a new folder; returns their paths.

    Every cell gets exact noise, once. ``counts``: what ``privatize`` takes, or an iterator of such counts, one
    file each: then at most ``threads`` + 2 of them are in memory at once. Column labels are the same for all. With
    an iterator there is one ``level``, and row labels are those of its own tables.

    The folder appears when all files are written: after an error there is none, and the noise drawn is lost. Files
    of matrices are read by ``ReleaseFiles(folder)``, those of tensors one by one.

    Raises FileExistsError if ``folder`` exists, FileNotFoundError if the folder around it does not, and what
    ``privatize`` raises; ValueError for parts whose columns differ.
    """
    for name, number in (("rows_per_file", rows_per_file), ("threads", threads)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {number!r}")
    target = Path(folder)
    if target.exists() or target.is_symlink():
        raise FileExistsError(f"{target} must be a new folder, got an existing folder")
    if isinstance(counts, Iterator):
        if row_labels is not None or not isinstance(level, Level):
            got = "row_labels" if row_labels is not None else f"level {shown(level)}"
            raise ValueError(
                f"an iterator of counts must come with one level and without row_labels, got {got}: privatize each "
                "part by itself"
            )
        names = None if column_labels is None else tuple(column_labels)
        tables: Iterator[tuple[Counts, Levels]] = ((_counts.read(part, None, names, None), level) for part in counts)
    else:
        table = _counts.read(counts, row_labels, column_labels, None)
        tables = _runs(table, read_levels(level, table.shape[0], table.labels[0]), rows_per_file)
    temporary = target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")
    temporary.mkdir()
    try:
        names_of_files = _write(tables, truncate, temporary, threads)
        os.rename(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return [target / name for name in names_of_files]


def _runs(table: Counts, levels: Levels, size: int) -> Iterator[tuple[Counts, Levels]]:
    """Checked counts and their levels, ``size`` rows at a time."""
    for start in range(0, table.shape[0], size):
        rows = slice(start, min(start + size, table.shape[0]))
        labels = (None if table.labels[0] is None else table.labels[0][rows], *table.labels[1:])
        part = Counts(table.values[rows], (rows.stop - start, *table.shape[1:]), labels, table.sparse, table.axis_names)
        yield part, levels if isinstance(levels, Level) else levels[rows]


def _write(tables: Iterator[tuple[Counts, Levels]], truncate: bool | None, folder: Path, threads: int) -> list[str]:
    """Writes one file per table, ``threads`` at a time; returns their names."""
    names: list[str] = []
    columns: Any = None
    waiting: list[Future[None]] = []
    with ThreadPoolExecutor(threads) as pool:
        for table, levels in tables:
            schema = (table.shape[1:], table.labels[1:])
            columns = schema if columns is None else columns
            if schema != columns:
                raise ValueError(
                    "counts must have the columns of the first part, in the same order, "
                    f"got {_columns_that_differ(schema, columns)} in part {len(names)}"
                )
            names.append(NAME.format(len(names)))
            waiting.append(pool.submit(_write_one, table, levels, truncate, folder / names[-1]))
            if len(waiting) > threads:
                waiting.pop(0).result()
        for each in waiting:
            each.result()
    if not names:
        raise ValueError("counts must have at least one part, got none")
    return names


def _columns_that_differ(schema: Any, first: Any) -> str:
    """What the columns of a part have that differs from those of the first part, for a message."""
    (sizes, labels), (wanted, names) = schema, first
    if sizes != wanted:
        return f"shape {sizes} after the rows and not {wanted}"
    for axis, (given, known) in enumerate(zip(labels, names, strict=True), start=1):
        if given is None or known is None:
            if given is not known:
                return f"{'no labels' if given is None else 'labels'} along axis {axis}"
            continue
        for one, other in zip(given, known, strict=True):
            if one != other:
                return f"{shown(one)} and not {shown(other)} along axis {axis}"
    return "other columns"


def _write_one(table: Counts, levels: Levels, truncate: bool | None, path: Path) -> None:
    privatize_checked(table, levels, read_truncate(truncate, table, levels)).save(path)
