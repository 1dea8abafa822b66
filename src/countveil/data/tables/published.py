"""Protected tables from files, for the command line: reports, and what stands for counts that have none."""

import csv
import re
import shlex
import warnings
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.common.extras import install
from countveil.common.names import names_in
from countveil.data.io import UNREADABLE, check_npy, read_counts
from countveil.data.tables.axes import (
    COUNTED,
    MOST_COLUMNS,
    are_codes,
    are_intervals,
    column_filled_once,
    is_all_text,
    key_column,
    key_columns,
    long_axes,
    rates_among,
    share_columns,
)
from countveil.data.tables.cells import (
    BLANK,
    MASKED,
    NO_WORDS,
    Cells,
    NumberFormat,
    Words,
    format_of,
    is_number,
    plain_number,
    read_cells,
)
from countveil.data.tables.formats import (
    STATUSES,
    UNITS,
    VALUE,
    axes_of_eurostat,
    beside_status,
    check_units,
    is_eurostat,
    is_reason,
    long_of_eurostat,
    statuses_of,
    without_numbers,
)
from countveil.data.tables.text import (
    NOTHING_STATED,
    TABLES,
    TIMES,
    Format,
    Layout,
    amount,
    on_one_line,
    read_text_table,
    text_of,
    units_said,
)
from countveil.data.tables.total_lines import has_name, is_part
from countveil.privacy._counts import reads_as_number
from countveil.privacy._index import check_columns

ONE_HEADER = Format(header_rows=1)
UNCALCULATED = re.compile(
    rb"""<c\b(?=[^>]*\sr="([A-Z]+[0-9]+)")(?![^>]*\st="str")[^>]*>"""
    rb"""\s*<f\b[^<>]*(?:/>|>[^<]*</f>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>"""
)
"""A cell of a sheet with a formula and no value; that of an empty text is one."""
ROWS_WITHOUT = 3  # decimals, in which noise would have had some
ROW_LABELS = "name its column with --row-labels, which needs a header row"


class ProtectedTable(NamedTuple):
    """A table with a row for each record."""

    values: Any  # (D, V) NumPy array, masked where cells were never reported, or scipy.sparse matrix
    row_labels: list[str] | None
    column_labels: list[str] | None
    cells: Cells | None = None  # None of arrays in files of their own
    layout: Layout | None = None
    axis_names: tuple[str | None, ...] = ()  # rows have that of the column of labels

    def part(self, rows: np.ndarray, columns: np.ndarray) -> "ProtectedTable":
        """The rows and columns with True."""
        sides = (self.row_labels, rows), (self.column_labels, columns)
        labels = [
            None if names is None else [n for n, k in zip(names, kept, strict=True) if k] for names, kept in sides
        ]
        values = self.values.tocsr() if hasattr(self.values, "tocsr") else self.values
        inside = values[rows][:, columns]
        if isinstance(inside, np.ma.MaskedArray) and not np.ma.is_masked(inside):
            inside = inside.data
        cells = None if self.cells is None else self.cells._replace(code=self.cells.code[rows][:, columns])
        return ProtectedTable(inside, labels[0], labels[1], cells, self.layout, self.axis_names)


class LongTable(NamedTuple):
    """A table with a row for each cell."""

    frame: pd.DataFrame  # the columns of its axes, and others, as text; its reports as numbers
    cells: Cells  # (rows,)
    layout: Layout | None
    flags: Counter[str]

    @property
    def masked(self) -> np.ndarray:
        """(rows,) where a cell was never reported."""
        return self.cells.masked

    def part(self, rows: np.ndarray) -> "LongTable":
        """The rows with True."""
        frame = self.frame[rows].reset_index(drop=True)
        return self._replace(frame=frame, cells=self.cells._replace(code=self.cells.code[rows]))


class Columns(NamedTuple):
    """The columns of a file: texts, or what its types are."""

    names: list[str] | None
    columns: list[Any]
    layout: Layout | None

    @property
    def separator(self) -> str | None:
        """What is between cells, if anything."""
        return None if self.layout is None else self.layout.separator


def read_protected(
    path: str | Path,
    *,
    header: bool = True,
    row_labels: str | None = None,
    words: Words = NO_WORDS,
    stated: Format = NOTHING_STATED,
    **matrix: Any,
) -> ProtectedTable:
    """Read a table of reports with a row for each record.

    .csv, .tsv, .txt, .xlsx and .parquet: cells are numbers, intervals, empty, or one of the words. Where some were
    never reported, values are a numpy.ma array. Row labels are in the column ``row_labels`` (or several, separated by
    commas), or else in the first ones if their headers are empty, or in the first one if none of its cells is a
    number, or all are years in order. Other files are those of ``read_counts``, to which further options by
    name are passed on.

    Warns of a column among the reports that looks like an index or an id.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file that cannot be read, a cell that is no number, no such column, a column called as pandas
            calls an index.
    """
    path = Path(path)
    options = sorted(name for name, option in matrix.items() if option not in (None, False))
    if path.suffix.lower() not in TABLES or is_bag_of_words(path):
        if path.suffix.lower() == ".npy" and path.is_file() and not options:
            return ProtectedTable(read_array(path), None, None)
        return ProtectedTable(*read_counts(path, with_totals=True, **matrix)[:3])
    if options:
        named = ", ".join("--" + name.replace("_", "-") for name in options)
        raise ValueError(
            f"{path} must be a matrix, such as .mtx, to be read with {named}, got a table: leave out {named}"
        )
    words.check()
    given = read_columns(path, stated, header)
    if is_eurostat(given.names):
        axes = ",".join(axes_of_eurostat(given.names or []))
        raise ValueError(
            f"{path} must be read by its axes, as a Eurostat table: --long '{axes}' --value {VALUE}, without the axes "
            "that have one level"
        )
    names = given.names if given.names is not None else [str(place + 1) for place in range(len(given.columns))]
    places = label_places(path, given, row_labels, (*words.absent, *words.missing, *words.zero))
    kept = [place for place in range(len(names)) if place not in places]
    if row_labels is None and given.names is not None:
        check_wide(path, given, places, kept)
    elif given.names is None and not places and len(kept) > 1 and is_labelled_by_numbers(given):
        raise ValueError(
            f"{path} must have counts in its first column, got years or numbers of rows: add a row of names, and "
            "state --row-labels"
        )
    if given.names is not None:
        check_shares(path, [names[place] for place in kept])
    if len(places) > 1 and given.names is not None:
        parts = {names[place] or str(place + 1): texts(given.columns[place]) for place in places}
        check_filled_down(path, parts, list(parts))
    if not kept:
        raise ValueError(f"{path} must hold at least one column of reports, got row labels only")
    cells = read_cells(path, [given.columns[p] for p in kept], [names[p] for p in kept], words, stated, given.separator)
    warn_of_units(given, cells.values)
    warn_of_decimals(cells.values, [names[place] for place in kept])
    values, titles = cells.values, [names[place] for place in kept]
    check_columns(f"reports in {path}", titles if given.names else [], values, not places, ROW_LABELS)
    if not places and given.names and are_codes(names[0], texts(given.columns[0])):
        warnings.warn(
            f"{names[0]!r:.60} has a different number of several digits in each row: if it names the rows, state "
            f"--row-labels {shlex.quote(names[0])}",
            UserWarning,
            stacklevel=2,
        )
    labels = [" ".join(filter(None, parts)) for parts in zip(*(texts(given.columns[p]) for p in places), strict=True)]
    warn_of_parts([*labels, *titles])
    masked = cells.masked
    return ProtectedTable(
        np.ma.masked_array(values, masked) if masked.any() else values,
        labels if places else None,
        titles if given.names is not None else None,
        cells,
        given.layout,
        (" ".join(filter(None, (names[place] for place in places))) or None, None) if given.names else (),
    )


def read_long(
    path: str | Path,
    axes: Sequence[str],
    value: str,
    words: Words = NO_WORDS,
    also: Sequence[str] = (),
    *,
    numbers: Sequence[str] = (),
    status: str | None = None,
    stated: Format = NOTHING_STATED,
) -> LongTable:
    """Read a table with a row for each cell: the columns of its axes, and ``also``, and of its reports.

    Columns ``numbers``, such as of exposures, are in the format of the reports, and come without thousands separators.
    A cell without a number has the word in the column ``status``; elsewhere that is a flag, which is left out. A number
    beside one of the words for hidden or masked cells is left out, with a warning. Columns of Eurostat and SDMX-CSV
    that do so are known.

    Raises:
        FileNotFoundError, ValueError: as ``read_protected``.
    """
    path = Path(path)
    if path.suffix.lower() not in TABLES:
        raise ValueError(f"{path} must be a {', '.join(TABLES[:-1])} or {TABLES[-1]} to have a row for each cell")
    words.check()
    given = long_columns(path, stated)
    names = list(given.names or [])
    wanted = list(dict.fromkeys([*axes, *also, *numbers]))
    for name in (*wanted, value, *([] if status is None else [status])):
        if names.count(name) != 1:
            raise ValueError(f"{path} must have one column {name!r}, got columns {names[:20]}")
    column = dict(zip(names, given.columns, strict=True))
    if value == VALUE and UNITS in column:
        check_units(path, column[UNITS])
    check_filled_down(path, {name: texts(column[name]) for name in axes}, axes)
    cells, blank, flags, n_dropped = column[value], None, Counter[str](), 0
    official = {name: column[name] for name in STATUSES if name in column and value == VALUE}
    if status is not None:
        cells, flags, n_dropped = beside_status(cells, column[status], (*words.absent, *words.missing))
    elif official:
        cells, hidden, masked, flags, n_dropped = statuses_of(cells, official)
        words = Words((*words.absent, *hidden), (*words.missing, *masked), words.zero)
        blank = MASKED
        if stated.thousands is None and stated.decimal is None:
            stated = stated._replace(decimal=".")  # as the format has it
    else:
        warn_of_reasons({name: column[name] for name in names if name not in (*wanted, value)}, cells)
    if n_dropped:
        warnings.warn(
            f"{amount(n_dropped, 'number')} left out, because the status says that there is none",
            UserWarning,
            stacklevel=2,
        )
    form = None
    if numbers:
        listed = [cells, *(column[name] for name in numbers)]
        every = [cell for each in listed for cell in each if cell is not pd.NA]
        form = format_of(path, every, words, stated, given.separator)
        column |= {name: [without_marks(cell, form) for cell in column[name]] for name in numbers}
    read = read_cells(path, [cells], [value], words, stated, given.separator, blank, form)
    others = [set(texts(cells)) for name, cells in column.items() if name not in (*wanted, value)]
    warn_of_units(given, read.values, [cell for cells in others if len(cells) == 1 for cell in cells])
    warn_of_parts([label for name in axes for label in dict.fromkeys(texts(column[name]))])
    flat = read._replace(code=read.code[:, 0])
    frame = pd.DataFrame({name: texts(column[name]) for name in wanted} | {value: flat.values})
    return LongTable(frame, flat, given.layout, flags)


def long_columns(path: Path, stated: Format = NOTHING_STATED) -> Columns:
    """The columns of a table with a row for each cell; those of a Eurostat .tsv by the names of SDMX-CSV."""
    given = read_columns(path, stated, True)
    if not is_eurostat(given.names):
        return given
    try:
        names, rows = long_of_eurostat(given.names or [], list(zip(*given.columns, strict=True)))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return Columns(names, [list(column) for column in zip(*rows, strict=True)], given.layout)


def read_columns(path: Path, stated: Format, header: bool) -> Columns:
    """The columns of a file: of text as lists, of a .parquet as pandas has them."""
    if not path.is_file():
        raise FileNotFoundError(f"no table at {path}")
    try:
        if path.suffix.lower() == ".parquet":
            frame = pd.read_parquet(path)
            names = [on_one_line(str(name)) for name in frame.columns]
            return Columns(names if header else None, [frame.iloc[:, c] for c in range(frame.shape[1])], None)
        names_, rows, layout = read_text_table(path, stated, header)
        if names_ is not None and stated.header_rows is None:
            check_numbers_of_columns(path, rows)
        if path.suffix.lower() == ".xlsx":
            check_calculated(path)
    except ImportError as error:
        raise ValueError(
            f"{path} must be read by pyarrow, which is not installed: {install('tables')}, or save it as .csv"
        ) from error
    except (csv.Error, *UNREADABLE) as error:
        if isinstance(error, ValueError) and str(error).startswith((str(path), "--")):
            raise
        reason = " ".join(str(error).split())[:300]
        raise ValueError(f"{path} must hold a table, got {type(error).__name__}: {reason}") from error
    return Columns(names_, [list(column) for column in zip(*rows, strict=True)], layout)


def check_numbers_of_columns(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    """Refuse a first record of numbers or units of columns, above records with labels; raises ValueError."""
    cells = [text_of(cell).strip("()[]") for cell in rows[0]]
    numbers = cells if cells[0] else cells[1:]
    labelled = any(text_of(row[0]) and not reads_as_number(text_of(row[0])) for row in rows[1:])
    numbered = len(numbers) > 2 and numbers == [str(number) for number in range(1, len(numbers) + 1)]
    bare = {re.sub(r"[., ]", "", cell) for cell in numbers}
    units = not cells[0] and bool(bare - {"%"}) and bare <= {"1000", "100000", "1000000", "%"}
    if labelled and (numbered or units):
        what = "numbers of columns" if numbered else "units, in which the numbers below are stated"
        raise ValueError(
            f"{path} must have records below the names of columns, got {', '.join(numbers[:4])}, which look like "
            f"{what}: delete that row, or state --header-rows if it is a record"
        )


def check_calculated(path: Path) -> None:
    """Refuse a workbook with formulas that no program has calculated, whose cells are empty; raises ValueError."""
    with zipfile.ZipFile(path) as book:
        for name in book.namelist():
            if re.fullmatch(r"xl/worksheets/[^/]+\.xml", name):
                cell = UNCALCULATED.search(book.read(name))
                if cell is not None:
                    raise ValueError(
                        f"{path} must have values of its formulas, got none in cell {cell[1].decode()}: open and save "
                        "it in Excel or LibreOffice"
                    )


def read_frame(path: Path, stated: Format = ONE_HEADER) -> pd.DataFrame:
    """The cells of a small file beside a table, with a header row: as text, or typed as a .parquet has them."""
    names, columns, _ = read_columns(path, stated, True)
    typed = [column if isinstance(column, pd.Series) else pd.Series(column, dtype=object) for column in columns]
    frame = pd.concat(typed, axis=1)
    frame.columns = pd.Index(names or [])
    return frame


def is_bag_of_words(path: Path) -> bool:
    """Whether a .txt begins with three sizes: of a UCI bag of words in three lines, of coordinates in one."""
    if path.suffix.lower() != ".txt" or not path.is_file():
        return False
    with open(path, "rb") as file:
        lines = [file.readline(1000).split() for _ in range(3)]
    sizes = lines[0] if len(lines[0]) == 3 else [line[0] for line in lines if len(line) == 1]
    return len(sizes) == 3 and all(size.isdigit() for size in sizes)


def read_array(path: Path) -> np.ndarray:
    """An array saved by NumPy, of any number of axes."""
    try:
        check_npy(path)
        return np.asarray(np.load(path, allow_pickle=False))
    except UNREADABLE as error:
        raise ValueError(
            f"{path} must hold an array written by numpy.save, got a file that NumPy cannot read: {error!s:.100}"
        ) from error


def texts(column: Any) -> list[str]:
    """A column as text."""
    return ["" if cell is None or cell is pd.NA else text_of(cell) for cell in column]


def without_marks(cell: Any, form: NumberFormat) -> Any:
    """A number in text without thousands separators; any other cell as it is."""
    plain = None if cell is None or cell is pd.NA or is_number(cell) else plain_number(text_of(cell), form)
    return cell if plain is None else plain


def label_places(path: Path, given: Columns, wanted: str | None, words: Sequence[str]) -> list[int]:
    """Where the row labels are, if anywhere."""
    names = given.names
    if wanted is not None:
        listed = [wanted.strip()] if names and names.count(wanted.strip()) == 1 else names_in(wanted)
        for name in listed:
            if names is None or names.count(name) != 1:
                raise ValueError(f"{path} must have one column {name!r}, got columns {(names or [])[:20]}")
        return [(names or []).index(name) for name in listed]
    if names is not None and names[0] == "":
        n = next((place for place, name in enumerate(names) if name), 1)
        return list(range(n))
    cells = texts(given.columns[0])
    known = {*BLANK, *(word.strip() for word in words)}
    cells = [cell for cell in cells if cell not in known or not cell]
    if not any(cells):
        return []
    if names is not None and (are_years(cells) or any(map(has_name, cells))):
        return [0]
    if any(reads_as_number(cell) for cell in cells) or are_repeated_intervals(cells):
        return []
    return [0]


def is_labelled_by_numbers(given: Columns) -> bool:
    """Whether the first column of a table without names has years, codes or numbers of rows."""
    columns = {str(place + 1): texts(column) for place, column in enumerate(given.columns[:MOST_COLUMNS])}
    return key_column(columns) == "1"


def are_years(cells: Sequence[str]) -> bool:
    """Whether three cells or more are years or other times, each later than the one before."""
    whole = [cell for cell in cells if TIMES.fullmatch(cell) and cell.isdecimal()]
    return len(whole) == len(cells) > 2 and all(a < b for a, b in pairwise(cells))


def are_repeated_intervals(cells: Sequence[str]) -> bool:
    """Whether all cells are intervals and some occur twice: these are reports, and no groups of ages."""
    full = [cell for cell in cells if cell]
    return are_intervals(full) and len(set(full)) < len(full)


def named_texts(given: Columns, places: Sequence[int] | None = None) -> dict[str, list[str]]:
    """The columns as text, by their names; none where these are not there, or not different."""
    names = given.names or []
    if len(set(names)) < len(names):
        return {}
    wanted = range(len(names)) if places is None else places
    return {names[place]: texts(given.columns[place]) for place in wanted}


def check_filled_down(path: Path, columns: Mapping[str, list[str]], axes: Sequence[str]) -> None:
    """Refuse labels that are in the first row of each group only; raises ValueError."""
    name = column_filled_once(columns, axes)
    if name is not None:
        raise ValueError(
            f"{path} must have a label in every row of column {name!r:.60}, got labels in the first row of each group "
            "only, as in pivot tables: fill them down in a spreadsheet"
        )


def check_wide(path: Path, given: Columns, places: Sequence[int], rest: Sequence[int]) -> None:
    """Refuse a table with a row for each cell, and a column of labels among the counts; raises ValueError."""
    n_columns = len(given.names or [])
    columns = named_texts(given, range(min(n_columns, MOST_COLUMNS)))
    axes, value, further = long_axes(columns) if n_columns <= MOST_COLUMNS else ([], None, [])
    if value is not None and len(axes) > 1:
        check_filled_down(path, columns, axes)
        wide = shlex.join(["--row-labels", ",".join(axes)])
        long = shlex.join(["--long", ",".join(axes), "--value", value])
        reports = f" and {', '.join(map(repr, further[:3]))} beside it" if further else ""
        raise ValueError(
            f"{path} looks like a table with a row for each cell, with reports in {value!r:.60}{reports}: state "
            f"{long}, or {wide} if all other columns are counts"
        )
    keys = key_columns(named_texts(given, rest[:MOST_COLUMNS]), bool(places))
    if keys:
        names = [name for name in (given.names or []) if name]
        labels = [name for name in names if name in keys or (given.names or []).index(name) in places]
        labels += [name for name in names if name not in labels and is_all_text(columns.get(name, []))]
        labels.sort(key=names.index)
        if any(not (given.names or [])[place] for place in places):
            raise ValueError(
                f"{path} must have counts in its columns, got {keys[0]!r:.60}, which looks like labels: give the first "
                "column a name, and name both by --row-labels; or rename it if it has counts"
            )
        others = [name for name in labels if name not in keys]
        remedy = (
            f", or {shlex.join(['--row-labels', ','.join(others)])} if they are counts"
            if others
            else ("; if they are counts, put a column of row labels before them")
        )
        raise ValueError(
            f"{path} must have counts in its columns, got {keys[0]!r:.60}, which looks like labels: state "
            f"{shlex.join(['--row-labels', ','.join(labels)])}{remedy}"
        )


def empty_lines(table: ProtectedTable) -> list[str]:
    """The rows and columns without any cell, by their labels, in a table that has some."""
    if table.cells is None or table.row_labels is None or table.column_labels is None:
        return []
    blank = np.flatnonzero([text in BLANK for text in table.cells.texts])
    empty = np.isin(table.cells.code, blank)
    if empty.shape[1] < 2 or empty.all():
        return []
    sides = (("row", table.row_labels, 1), ("column", table.column_labels, 0))
    return [
        f"{side} {labels[place]!r:.60}"
        for side, labels, axis in sides
        for place in np.flatnonzero(empty.all(axis=axis))
    ]


def check_empty(path: Path, table: ProtectedTable, words: Words) -> None:
    """Refuse lines without any cell, which may be headings, unless the words state empty cells; raises ValueError."""
    stated = {word.strip() for word in (*words.absent, *words.missing, *words.zero)}
    lines = [] if stated & set(BLANK) else empty_lines(table)
    if lines:
        raise ValueError(
            f"{path} must have cells in every row and column, got none in {', '.join(lines[:3])}: delete headings and "
            "notes; state --absent '' if these counts are hidden, or --missing '' if they were never reported"
        )


def rate_lines(table: ProtectedTable) -> list[str]:
    """The rows and columns of a wide table that have rates, averages or a population, by their names."""
    if table.cells is None:
        return []
    values = np.ma.filled(np.ma.asarray(table.values, dtype=np.float64), np.nan)
    known = ~np.isnan(values)
    found = []
    for side, labels, axis in (("row", table.row_labels, 1), ("column", table.column_labels, 0)):
        if labels:
            n = np.maximum(known.sum(axis=axis), 1)
            absent, means = (values <= 0).sum(axis=axis) / n, np.nansum(values, axis=axis) / n
            found += [f"{side} {name!r:.60}" for name in rates_among(labels, absent, means)]
    return found


def rate_levels(table: LongTable, axes: Sequence[str], value: str) -> list[str]:
    """The levels of the axes of a long table that have rates, averages or a population, by their names."""
    known = table.frame[table.frame[value].notna()]
    found = []
    for axis in axes:
        names = list(dict.fromkeys(table.frame[axis]))
        absent, means = (
            numbers.groupby(known[axis]).mean().reindex(names, fill_value=0.0).tolist()
            for numbers in (known[value].le(0), known[value])
        )
        found += [f"{axis} {name!r:.60}" for name in rates_among(names, absent, means)]
    return found


def check_rates(path: Path, lines: Sequence[str]) -> None:
    """Refuse lines of rates, averages or a population among those of counts; raises ValueError."""
    if lines:
        raise ValueError(
            f"{path} must have counts only, got {', '.join(lines[:6])}: delete rates, shares and averages, put a "
            f"population into a file or a column for --exposure, and end the names of counts with {COUNTED!r}"
        )


def check_shares(path: Path, names: Sequence[str]) -> None:
    """Refuse columns of rates, shares and averages among those of counts; raises ValueError."""
    shares = share_columns(names) if len(names) <= MOST_COLUMNS else []
    if shares:
        raise ValueError(
            f"{path} must have counts in its columns, got {', '.join(f'{name!r:.60}' for name in shares[:6])}: delete "
            f"columns of rates, shares and averages, or of flags, and end the names of counts with {COUNTED!r}"
        )


def warn_of_reasons(others: Mapping[str, Any], values: Any) -> None:
    """Warn of a column that nothing names, whose words stand beside zeros only."""
    plain = texts(values)
    for name, words in others.items():
        if is_reason(texts(words), plain):
            found = ", ".join(sorted(f"{word!r:.40}" for word in without_numbers(texts(words), plain)))
            warnings.warn(
                f"{name!r:.60} has {found} only next to zeros: are these counts hidden or missing? Then state --status "
                f"{shlex.quote(name)}, and its words by --absent or --missing",
                UserWarning,
                stacklevel=3,
            )


def warn_of_decimals(values: np.ndarray, names: Sequence[str]) -> None:
    """Warn of columns that have decimals beside columns of several numbers that have none."""
    known = ~np.isnan(values)
    decimals = (np.floor(values) != values) & known
    some, none = decimals.any(axis=0), ~decimals.any(axis=0) & (known.sum(axis=0) >= ROWS_WITHOUT)
    if some.any() and none.any() and len(names) <= MOST_COLUMNS:
        listed = [f"{name!r:.60}" for name, has in zip(names, some, strict=False) if has]
        warnings.warn(
            f"{', '.join(listed[:3])} {'have' if len(listed) > 1 else 'has'} decimals, unlike the other columns: "
            "delete rates, averages and coordinates",
            UserWarning,
            stacklevel=3,
        )


def warn_of_parts(labels: Sequence[str]) -> None:
    """Warn of rows, columns or levels whose names say that others contain them."""
    parts = list(filter(is_part, labels))
    if parts:
        warnings.warn(
            f"{parts[0]!r:.60} may be a part of another line of the table: unless that is dropped as a total, its "
            "counts are there twice. Delete one of them",
            UserWarning,
            stacklevel=3,
        )


def warn_of_units(given: Columns, values: Any, constant: Sequence[str] = ()) -> None:
    """Warn of titles, notes, names and constant columns that say that numbers are thousands, or rates."""
    said = units_said(given.names or [], given.layout, constant)
    if said and (np.nan_to_num(values) % 1000).any():  # thousands were not multiplied yet
        warnings.warn(
            f"{', '.join(f'{text!r:.60}' for text in said[:3])}: are the numbers thousands, or rates, rather than "
            "counts? Multiply thousands by 1,000 in the file, and state --mechanism rounding --base 1000",
            UserWarning,
            stacklevel=3,
        )
