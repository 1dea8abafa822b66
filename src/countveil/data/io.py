"""Counts and vocabularies from files, for the command line.

Counts are private: no message here shows one. It names the file, the place and the rule.
"""

import csv
import math
import os
import re
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.data.frames import cells_of_coordinates
from countveil.data.matrices import annotated_parts
from countveil.data.tables.axes import MOST_COLUMNS, long_axes
from countveil.data.tables.total_lines import refuse_totals
from countveil.privacy._archive import packed_otherwise, too_much
from countveil.privacy._counts import reads_as_number
from countveil.privacy._index import check_columns
from countveil.privacy.wording import BOTH

FLOAT_EXACT = 2**53
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
NUMBERS = "biufc"  # kinds of arrays; which values may be counts is checked where the noise is added
UNREADABLE = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, EOFError, OSError, OverflowError),
    *(MemoryError, RuntimeError, SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
"""What readers raise about a file that is something else; NumPy reads a header with Python's own parser."""


class CountTable(NamedTuple):
    """Counts as a file holds them, with the names of rows and columns where it has them."""

    values: Any  # (D, V) NumPy array or scipy.sparse matrix
    row_labels: list[str] | None
    column_labels: list[str] | None
    axis_names: tuple[str | None, ...] = ()


def read_counts(
    path: str | Path,
    header: bool = True,
    row_labels: str | None = None,
    vocabulary: str | Path | None = None,
    *,
    transpose: bool = False,
    n_rows: int | None = None,
    numbered_from: int | None = None,
    layer: str | None = None,
    with_totals: bool = False,
) -> CountTable:
    """Read a matrix of counts, one record per row, by the file's extension.

    .npz: a matrix written by scipy.sparse.save_npz; .npy: an array written by numpy.save; .mtx: MatrixMarket;
    .txt or .txt.gz: a UCI bag of words (docword: documents, words, entries, then "document word count" from 1), or a
    .txt with all three numbers in its first line (``load_coordinates``); .dat or .ldac: LDA-C; .svmlight, .libsvm or
    .svm: SVMlight; .h5ad: AnnData; .csv: a header row of column labels, then one row per record. Nothing is ever
    unpickled. ``vocabulary`` is a file that names the columns, one per line (``read_vocabulary``). Estimators take
    what comes back in ``ExactCounts`` or ``PrivatizedCounts`` with its labels.

    A header must hold no number, since it would be published: a .csv without one must be read with
    ``header=False`` and has no column labels. Row labels are in the column whose header cell is
    ``row_labels``, or else in the first one if its header cell is empty or none of its cells is a number.

    A column of a .csv with the name of a saved index is refused; one that looks like an index or an id is warned of.
    A .csv that looks like a table with a row for each cell is refused, unless ``row_labels`` is given.
    An LDA-C or SVMlight file without a vocabulary is warned of, too, since it does not state its number of columns.
    Rows and columns that are totals of others are refused, unless ``with_totals``.

    Args:
        transpose: whether the file has its columns, such as words, in rows.
        n_rows: the number of rows, if the file leaves out empty ones at its end.
        numbered_from: the number of the first word in an SVMlight file, 0 or 1; needed if nothing in the file shows it.
        layer: the layer of an AnnData file that has the counts, if its X does not.
        with_totals: whether rows and columns may be totals of others.

    Raises:
        FileNotFoundError: no such file.
        ValueError: an unknown extension, a file that cannot be read, no matrix in it, a header of numbers, an index
            among the counts, totals among the counts, a row for each cell, a vocabulary of another length, more rows
            than ``n_rows``, or an argument for another kind of file.
    """
    path = Path(path)
    extension = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]).lower()
    reader = _READERS.get(extension)
    if reader is None:
        known = ", ".join(_READERS)
        remedy = "unpack it" if path.suffix.lower() in (".zip", ".gz") else "save a table as .csv"
        raise ValueError(f"{path} must end in one of {known}, got {path.suffix or 'no extension'!r}: {remedy}")
    if not path.is_file():
        raise FileNotFoundError(f"no counts at {path}")
    if reader is not _read_csv and not (header and row_labels is None):
        raise ValueError(f"header (--no-header) and row labels (--row-labels) apply only to a .csv, got {path}")
    if numbered_from is not None and (reader is not _read_svmlight or numbered_from not in (0, 1)):
        raise ValueError(
            f"numbered_from (--numbered-from) must be 0 or 1, for an SVMlight file only, got {numbered_from!r}"
        )
    if layer is not None and reader is not _read_anndata:
        raise ValueError(f"layer (--layer) must be given for an .h5ad only, got {path}")
    words = None if vocabulary is None else read_vocabulary(vocabulary)
    if reader is _read_csv:
        table = _read_csv(path, header, row_labels)
    elif reader is _read_svmlight:
        table = _read_svmlight(path, numbered_from, None if words is None else len(words))
    elif reader is _read_anndata:
        table = _read_anndata(path, layer)
    else:
        table = reader(path)
    if table.values.ndim != 2:
        raise ValueError(f"{path} must hold a matrix (2 dimensions), got {table.values.ndim}")
    if transpose:
        table = CountTable(table.values.T, table.column_labels, table.row_labels, table.axis_names[::-1])
    if extension in WIDTH_NOT_STATED and not transpose:
        table = table._replace(values=widened(path, table.values, None if words is None else len(words)))
    if words is not None:
        table = _named(path, table, words, vocabulary, transpose)
    if not with_totals:
        refuse_totals(path, *table[:3])
    if n_rows is None or n_rows == table.values.shape[0]:
        return table
    if table.row_labels is not None:
        raise ValueError(
            f"n_rows (--n-rows) must be {table.values.shape[0]}, as {path} has labels for that many rows, got {n_rows}"
        )
    return table._replace(values=lengthened(path, table.values, n_rows))


def _named(path: Path, table: CountTable, words: list[str], vocabulary: Any, transposed: bool) -> CountTable:
    """The table with these column labels; raises ValueError if there are more or fewer columns."""
    n_rows, n_columns = table.values.shape
    if len(words) == n_columns:
        return table._replace(column_labels=words)
    remedy = ""
    if len(words) == n_rows:
        remedy = " and as many rows: it has words in rows; " + (
            "leave out transpose=True (--transpose)" if transposed else "pass transpose=True (--transpose)"
        )
    raise ValueError(f"{vocabulary} must name the {n_columns} columns of {path}, got {len(words)} words{remedy}")


def read_vocabulary(path: str | Path) -> list[str]:
    """Read the words that name the columns, one per line, in their order.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not UTF-8 text, no line, or an empty line.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no vocabulary at {path}")
    words = [line.strip() for line in _text(path).splitlines()]
    if not words:
        raise ValueError(f"{path} must hold one word per line, got an empty file")
    if "" in words:
        raise ValueError(f"{path} must hold one word per line, got an empty line {words.index('') + 1}")
    return words


def _read_sparse(path: Path) -> CountTable:
    try:
        with zipfile.ZipFile(path) as archive:
            is_release = "meta.json" in archive.namelist()
    except UNREADABLE:
        is_release = False
    if is_release:
        raise ValueError(f"{path} must hold counts, got a release, which is privatized already")
    return _unlabelled(path, _load_npz, "a matrix written by scipy.sparse.save_npz")


def _load_npz(path: Path) -> Any:
    check_npz(path)
    found = sp.load_npz(path)
    if hasattr(found, "check_format"):
        found.check_format(full_check=True)
    check_length(path, max(found.shape))
    return found


def _read_dense(path: Path) -> CountTable:
    return _unlabelled(path, _load_npy, "an array written by numpy.save")


def _load_npy(path: Path) -> Any:
    check_npy(path)
    return np.load(path, allow_pickle=False)


def _read_matrix_market(path: Path) -> CountTable:
    return _unlabelled(path, _load_matrix_market, "a MatrixMarket matrix")


def _load_matrix_market(path: Path) -> Any:
    check_matrix_market(path)
    from scipy.io import mmread  # for these files alone, since importing it takes time

    return mmread(path)


def _read_bag_of_words(path: Path) -> CountTable:
    """Numbers of documents, words and entries, one per line; then one line per entry, numbered from 1."""
    if path.suffix.lower() == ".txt" and begins_with_sizes(path):
        return _unlabelled(path, load_coordinates, "coordinates after a line with their numbers")
    what = "a UCI bag of words: three lines of one number each, then three whole numbers per line"
    try:
        sizes = pd.read_csv(path, header=None, nrows=3, dtype=np.int64, sep=r"\s+")
        if sizes.shape != (3, 1):
            raise ValueError
        n_rows, n_columns, n_entries = (int(size) for size in sizes[0])
        check_length(path, max(n_rows, n_columns))
        names = ["row", "column", "count"]
        table = pd.read_csv(path, header=None, skiprows=3, names=names, dtype=np.int64, sep=r"\s+")
        if not isinstance(table.index, pd.RangeIndex):  # a fourth number in each line
            raise ValueError
    except UNREADABLE:
        raise ValueError(f"{path} must hold {what}, got lines of a different form") from None
    if len(table) != n_entries:
        raise ValueError(f"{path} must hold the {n_entries} entries that it announces, got {len(table)}")
    where = [table["row"].to_numpy() - 1, table["column"].to_numpy() - 1]
    try:
        cells = cells_of_coordinates(where, table["count"].to_numpy(), (n_rows, n_columns), show=False)
    except ValueError as error:
        raise ValueError(f"{path} must number its entries by document and word: {error}") from error
    return CountTable(sp.csr_array(cells.to_sparse()), None, None)


def _read_lda_c(path: Path) -> CountTable:
    return _unlabelled(path, load_lda_c, 'LDA-C, "n word:count ..." in each line')


def _read_svmlight(path: Path, numbered_from: int | None, n_words: int | None) -> CountTable:
    table = _unlabelled(path, load_svmlight, 'SVMlight, "label word:count ..." in each line')
    return table._replace(values=from_first(path, table.values, numbered_from, n_words))


def _read_anndata(path: Path, layer: str | None) -> CountTable:
    """X or a layer of an AnnData file, with the names of observations and variables."""
    try:
        from anndata import read_h5ad
    except ImportError as error:
        raise ValueError(f"{path} must be read by anndata, which is not installed") from error
    try:
        values, rows, columns = annotated_parts(read_h5ad(path), layer)
    except UNREADABLE as error:
        said = " ".join(str(error).split())[:300]
        raise ValueError(f"{path} must hold an AnnData object, got {type(error).__name__}: {said}") from error
    if values.dtype.kind not in NUMBERS:
        raise ValueError(f"{path} must hold numbers, got {values.dtype}")
    return CountTable(values, rows, columns)


def _unlabelled(path: Path, load: Callable[[Any], Any], what: str) -> CountTable:
    try:
        values = load(path)
        if not hasattr(values, "ndim"):
            raise ValueError(f"{type(values).__name__} instead of an array")
        if values.dtype.kind not in NUMBERS:
            raise ValueError(f"counts must be numbers, got {values.dtype}")
    except UNREADABLE as error:
        said = " ".join(str(error).split())[:300]
        raise ValueError(f"{path} must hold {what}, got {type(error).__name__}: {said}") from error
    return CountTable(values, None, None)


def _read_csv(path: Path, header: bool, row_labels: str | None) -> CountTable:
    """Cells become integers one by one, so that large counts stay exact."""
    rows = _csv_rows(path, header)
    names = [cell.strip() for cell in rows[0]] if header else None
    body = rows[1:] if header else rows
    labels = _label_column(path, names, body, row_labels)
    kept = [column for column in range(len(rows[0])) if column != labels]
    if not kept:
        raise ValueError(f"{path} must hold at least one column of counts, got row labels only")
    if names is not None:
        _check_header(path, [names[column] for column in kept])
        if row_labels is None:
            _refuse_long(path, names, body)
    values = [
        [_count(path, row[column], number, names[column] if names else column + 1) for column in kept]
        for number, row in enumerate(body, start=1)
    ]
    found = np.array(values, dtype=np.int64)
    remedy = "name it with --row-labels" + ("" if header else ", once the file has a header row")
    titles = [names[column] for column in kept] if names else kept
    check_columns(f"counts in {path}", titles, found, labels is None, remedy)
    return CountTable(
        found,
        None if labels is None else [row[labels].strip() for row in body],
        None if names is None else [names[column] for column in kept],
        () if names is None or labels is None else (names[labels] or None, None),
    )


def _csv_rows(path: Path, header: bool) -> list[list[str]]:
    """The cells of every row, header included, the same number in each."""
    lines = [line for line in _text(path).splitlines() if line.strip()]
    for separator, name in SEPARATORS.items():
        if len(lines) > 1 and "," not in lines[0] and all(separator in line for line in lines):
            raise ValueError(
                f"{path} must separate its cells by commas, got {name}; save it again with commas as separators"
            )
    try:
        rows = [row for row in csv.reader(lines) if row]
    except csv.Error as error:
        raise ValueError(f"{path} must be comma-separated text, got {error}") from error
    if len(rows) < 1 + header:
        wanted = "a header row and at least one row of counts" if header else "at least one row of counts"
        raise ValueError(f"{path} must hold {wanted}, got {len(rows)} rows")
    for number, row in enumerate(rows[header:], start=1):
        if len(row) != len(rows[0]):
            raise ValueError(f"{path} must have {len(rows[0])} cells in every row, got {len(row)} in row {number}")
    return rows


def _label_column(path: Path, names: list[str] | None, body: list[list[str]], wanted: str | None) -> int | None:
    """Where the row labels are; a first column that mixes numbers and names could be either, and is refused."""
    if wanted is not None:
        if names is None:
            raise ValueError(f"row labels must be named by a header cell, got {path} read without a header")
        if names.count(wanted.strip()) != 1:
            raise ValueError(f"{path} must have one column {wanted!r}, got {names.count(wanted.strip())}")
        return names.index(wanted.strip())
    if names is not None and names[0] == "":
        return 0
    numbers = sum(reads_as_number(row[0]) for row in body)
    if numbers == 0:
        return 0 if any(row[0].strip() for row in body) else None
    if numbers < len(body):
        raise ValueError(
            f"{path} must have row labels or counts in its first column, got {numbers} numbers in {len(body)} "
            "rows; if they are labels, name the column with --row-labels, or leave its header cell empty"
        )
    return None


def _check_header(path: Path, names: list[str]) -> None:
    """Column labels are published as they are, so a record must never be taken for them."""
    numbers = sum(reads_as_number(name) for name in names)
    if numbers:
        raise ValueError(
            f"{path} must have names, not numbers, in its header row, got {numbers} numbers (not shown: they "
            "may be counts); if the first row is a record, add a header row above it or pass --no-header; if "
            "it is a header, put a letter before each number, as in y1990"
        )
    if "" in names:
        raise ValueError(
            f"{path} must name every column of counts in its header row, got an empty cell; name it, or pass "
            "--no-header if the first row is a record"
        )


def _refuse_long(path: Path, names: list[str], body: list[list[str]]) -> None:
    """Refuse a table with a row for each cell, since numbers that name a cell would be taken for counts."""
    if len(names) > MOST_COLUMNS or len(set(names)) < len(names):
        return
    axes, value, _ = long_axes({name: [row[column].strip() for row in body] for column, name in enumerate(names)})
    if value is not None:
        first, *others = map(repr, axes)
        raise ValueError(
            f"{path} must have a row for each record, got what looks like a row for each cell, with counts in "
            f"{value!r}: make a row for each {first} and a column for each {' and '.join(others)}, zeros included, "
            "with cv.count_table or as a pivot table; if all its numbers are counts, put a column of row labels "
            "before them"
        )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _count(path: Path, cell: str, row: int, column: str | int) -> int:
    """A cell as a whole number; whether it may be a count is checked where the noise is added."""
    try:
        value = int(cell)
    except ValueError:
        value = _whole(path, cell, row, column)
    if not -(2**63) <= value < 2**63:
        raise _bad(path, "a number above 2**63", row, column)
    return value


def _whole(path: Path, cell: str, row: int, column: str | int) -> int:
    if not _is_number(cell):
        raise _bad(path, "an empty cell" if not cell.strip() else "something that is not a number", row, column)
    value = float(cell)
    if not math.isfinite(value) or value != math.floor(value):
        raise _bad(path, "a value that is not whole", row, column)
    if abs(value) > FLOAT_EXACT:
        raise _bad(path, "a decimal number above 2**53, which may have lost digits", row, column)
    return int(value)


def _bad(path: Path, what: str, row: int, column: str | int) -> ValueError:
    rule = "must hold non-negative whole numbers"
    remedy = "a table that somebody else protected goes to `countveil import`"
    return ValueError(f"{path} {rule}, got {what} in row {row}, column {column!r}; {remedy}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} must be UTF-8 text, got bytes that are not at {error.start}. {BOTH['not_text']}"
        ) from error


_READERS: dict[str, Callable[..., CountTable]] = {
    ".npz": _read_sparse,
    ".npy": _read_dense,
    ".mtx": _read_matrix_market,
    ".txt": _read_bag_of_words,
    ".txt.gz": _read_bag_of_words,
    ".dat": _read_lda_c,
    ".ldac": _read_lda_c,
    ".svmlight": _read_svmlight,
    ".libsvm": _read_svmlight,
    ".svm": _read_svmlight,
    ".h5ad": _read_anndata,
    ".csv": _read_csv,
}
WIDTH_NOT_STATED = ".dat", ".ldac", ".svmlight", ".libsvm", ".svm"


# Sparse matrices from text files: LDA-C, SVMlight, CLUTO and lists of coordinates.
#
# Counts are private: no message here shows one.
def load_lda_c(path: Path) -> sp.csr_array:
    """Documents by words as LDA-C writes them: ``n word:count ...`` in each line, words numbered from 0.

    Raises:
        ValueError, OSError: anything else; a line that does not hold the n entries it declares.
    """
    rows, columns, counts = [], [], []
    lines = lines_of(path)
    for row, line in enumerate(lines):
        try:
            size, *entries = line.split()
            pairs = [(int(word), int(count)) for word, count in (entry.split(":") for entry in entries)]
            stated = int(size)
        except ValueError:
            raise ValueError(f"a different form in line {row + 1} (not shown: it may be private)") from None
        if stated != len(pairs):
            raise ValueError(
                f"a different number of entries in line {row + 1} than it declares (not shown: both may be private)"
            )
        rows += [row] * len(pairs)
        columns += [word for word, _ in pairs]
        counts += [count for _, count in pairs]
    return matrix_of(path, rows, columns, counts, (len(lines), max(columns, default=-1) + 1))


def load_svmlight(path: Path) -> sp.csr_array:
    """Documents by words as SVMlight writes them, ``label word:count ...`` in each line; column i has number i.

    Labels are left out.

    Raises:
        ValueError, OSError: anything else.
    """
    from sklearn.datasets import load_svmlight_file

    try:
        found = sp.csr_array(load_svmlight_file(str(path), zero_based=True)[0])
    except ValueError:  # which may quote the line
        raise ValueError(
            "lines of a different form, or words whose numbers do not rise within a line (not shown: they "
            "may be private)"
        ) from None
    check_length(path, max(found.shape))
    return found


def from_first(path: Path, values: sp.csr_array, numbered_from: int | None, n_words: int | None) -> sp.csr_array:
    """The columns from the first word on, whose number is ``numbered_from``.

    If that is None, an entry of number 0 shows that it is 0, and one whose number is the number of words that it is 1.

    Raises:
        ValueError: a first number that is neither stated nor shown, or is not the least.
    """
    least = int(values.indices.min()) if values.nnz else 1
    first = numbered_from
    if first is None:
        first = 0 if least == 0 else 1 if values.nnz and values.shape[1] - 1 == n_words else None
    if first is None:
        raise ValueError(
            f"{path} numbers its words from 0 or from 1, and nothing in it shows which: state it by numbered_from= "
            "(--numbered-from)"
        )
    if least < first:
        raise ValueError(f"numbered_from (--numbered-from) must be 0 for {path}, which has a word 0, got {first}")
    return values[:, first:]


def load_coordinates(path: Path) -> sp.csr_array:
    """A matrix whose first line has the numbers of rows, columns and entries; rows and columns are numbered from 1.

    Then either "row column count" for each entry, or, as CLUTO writes it, "column count column count ..." for each row.

    Raises:
        ValueError, OSError: anything else; another number of rows or entries than declared.
    """
    first, *lines = lines_of(path)
    n_rows, n_columns, n_entries = map(int, first.split())
    check_length(path, max(n_rows, n_columns))
    numbers = [[int(number) for number in line.split()] for line in lines]
    if len(numbers) == n_entries and all(len(each) == 3 for each in numbers):
        rows, columns, counts = map(list, zip(*numbers, strict=True))
        rows = [row - 1 for row in rows]
    elif len(numbers) == n_rows and all(len(each) % 2 == 0 for each in numbers):
        rows = [row for row, each in enumerate(numbers) for _ in each[::2]]
        columns = [column for each in numbers for column in each[::2]]
        counts = [count for each in numbers for count in each[1::2]]
    else:
        raise ValueError(f"must hold {n_entries} lines of three numbers, or {n_rows} lines of pairs")
    if len(counts) != n_entries:
        raise ValueError(f"must hold the {n_entries} entries that it declares, got {len(counts)}")
    return matrix_of(path, rows, [column - 1 for column in columns], counts, (n_rows, n_columns))


def matrix_of(
    path: Path, rows: list[int], columns: list[int], counts: list[int], shape: tuple[int, int]
) -> sp.csr_array:
    """Entries as a sparse matrix, (D, V) int64; raises ValueError for an entry that is repeated or out of range."""
    check_length(path, max(shape))
    if 0 in shape:
        raise ValueError(f"must hold at least one row and one column, got {shape[0]} x {shape[1]}")
    where = [np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64)]
    found = cells_of_coordinates(where, np.array(counts, dtype=np.int64), shape, show=False)
    return sp.csr_array(found.to_sparse())


def widened(path: Path, values: sp.csr_array, n_words: int | None) -> sp.csr_array:
    """A matrix with a column for every word, whose file may leave out the last ones; warns if that is not known."""
    if n_words is None:
        warnings.warn(
            f"{path} does not state its number of words: {values.shape[1]} were read, up to the last one with a count. "
            "Name all words in a file, one per line, by vocabulary= (--vocabulary)",
            UserWarning,
            stacklevel=3,
        )
    if n_words is None or n_words <= values.shape[1]:
        return values
    return sp.csr_array((values.data, values.indices, values.indptr), shape=(values.shape[0], n_words))


def lengthened(path: Path, values: Any, n_rows: int) -> Any:
    """A dense or sparse matrix with rows of zeros at its end; raises ValueError if it has more rows."""
    missing = n_rows - values.shape[0]
    if missing < 0:
        raise ValueError(f"n_rows (--n-rows) must be at least the {values.shape[0]} rows of {path}, got {n_rows}")
    check_length(path, n_rows)
    if not sp.issparse(values):
        return np.vstack([values, np.zeros((missing, values.shape[1]), values.dtype)])
    return sp.vstack([sp.csr_array(values), sp.csr_array((missing, values.shape[1]), dtype=values.dtype)], format="csr")


def lines_of(path: Path) -> list[str]:
    """The lines of a text file without the empty ones at its end, which hold no row."""
    return path.read_text(encoding="utf-8-sig").rstrip().split("\n")


def begins_with_sizes(path: Path) -> bool:
    """Whether the first line of a text file has three numbers, as ``load_coordinates`` expects."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        return len(file.readline(1024).split()) == 3


_BANNER = re.compile(rb"%%MatrixMarket\s+matrix\s+(coordinate|array)\s", re.IGNORECASE)
_NUMBERS = re.compile(rb"[-+0-9.eE \t\r\n]*")
_LEAST_LINE = {b"coordinate": 4, b"array": 2}
"""The fewest bytes that an entry of a MatrixMarket file takes: "1 1" or "1", and the end of the line."""


def check_npy(path: str | os.PathLike[str]) -> None:
    """Refuse a .npy file that does not hold exactly the array that its header declares; raises ValueError."""
    with open(path, "rb") as file:
        _check_member(file, os.fstat(file.fileno()).st_size)


def check_npz(path: str | os.PathLike[str]) -> None:
    """Refuse a .npz file with a member that is not the array that it declares, or that unpacks to far too much.

    Raises:
        ValueError, OSError, zipfile.BadZipFile: what is wrong with it.
    """
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        found = packed_otherwise(infos) or too_much(sum(info.file_size for info in infos), os.path.getsize(path))
        if found is not None:
            raise ValueError(found)
        if len({info.filename for info in infos}) != len(infos):
            raise ValueError("must hold every array once, got a duplicate")
        for info in infos:
            with archive.open(info) as member:
                _check_member(member, info.file_size)  # type: ignore[arg-type]


def check_matrix_market(path: str | os.PathLike[str]) -> None:
    """Refuse a MatrixMarket file that declares more entries than its bytes can hold; raises ValueError."""
    with open(path, "rb") as file:
        banner = _BANNER.match(file.readline(1024))
        if banner is None:
            raise ValueError(
                "must begin with %%MatrixMarket matrix coordinate, or array as the last word, "
                "got a different first line"
            )
        line = b"%"
        while line.startswith(b"%") or (line and not line.strip()):
            line = file.readline(1 << 16)
        sizes = [int(part) for part in line.split()]
    kind = banner[1].lower()
    if len(sizes) != (3 if kind == b"coordinate" else 2) or not all(0 <= size < 2**62 for size in sizes):
        raise ValueError(
            f"must state {'three' if kind == b'coordinate' else 'two'} sizes in one line, got {sizes!r:.60}"
        )
    if 0 in sizes[:2]:  # by which SciPy's reader divides
        raise ValueError(f"must have at least one row and one column, got {sizes[0]} x {sizes[1]}")
    entries = sizes[2] if kind == b"coordinate" else prod(sizes) // 2  # a symmetric one holds half
    if entries * _LEAST_LINE[kind] > os.path.getsize(path):
        raise ValueError(f"must hold the {entries} entries that it declares, got fewer bytes")
    if not _NUMBERS.fullmatch(Path(path).read_bytes().partition(line)[2]):  # on other text SciPy's reader crashes
        raise ValueError("must hold only numbers after its sizes, got other characters")
    check_length(path, max(sizes[:2]))


def check_length(path: str | os.PathLike[str], length: int) -> None:
    """Refuse an axis that is too long for a file of this size; raises ValueError."""
    found = too_much(8 * length, Path(path).stat().st_size)
    if found is not None:
        raise ValueError(found)


def _check_member(file: BinaryIO, size: int) -> None:
    """Compare the header of an array with the bytes that there are."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"must hold arrays of version 1 or 2, got {version[0]}.{version[1]}")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject:
        raise ValueError("must hold numbers and text, got objects")
    if file.tell() + prod(shape) * dtype.itemsize != size:
        raise ValueError(f"must hold what it declares, got {size} bytes for shape {shape} of {dtype}")
