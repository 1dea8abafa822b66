"""Sparse matrices from text files: LDA-C, SVMlight, CLUTO and lists of coordinates.

Counts are private: no message here shows one.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from countveil.data.array_files import check_length
from countveil.data.frames import cells_of_coordinates


def load_lda_c(path: Path) -> sp.csr_array:
    """Documents by words as LDA-C writes them: ``n word:count ...`` in each line, words numbered from 0.

    Raises:
        ValueError, OSError: anything else; a line that does not hold the n entries it declares.
    """
    rows, columns, counts = [], [], []
    lines = lines_of(path)
    for row, line in enumerate(lines):
        size, *entries = line.split()
        if int(size) != len(entries):
            raise ValueError(f"line {row + 1} declares another number of entries than it holds")
        for entry in entries:
            word, count = entry.split(":")
            rows.append(row)
            columns.append(int(word))
            counts.append(int(count))
    return matrix_of(path, rows, columns, counts, (len(lines), max(columns, default=-1) + 1))


def load_svmlight(path: Path) -> sp.csr_array:
    """Documents by words as SVMlight writes them, ``label word:count ...`` in each line; column i has number i.

    Labels are left out.

    Raises:
        ValueError, OSError: anything else.
    """
    from sklearn.datasets import load_svmlight_file

    found = sp.csr_array(load_svmlight_file(str(path), zero_based=True)[0])
    check_length(path, max(found.shape))
    return found


def from_first(
    path: Path, values: sp.csr_array, numbered_from: int | None, n_words: int | None
) -> sp.csr_array:
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
        raise ValueError(
            f"numbered_from (--numbered-from) must be 0 for {path}, which has a word 0, got {first}"
        )
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
        raise ValueError(
            f"n_rows (--n-rows) must be at least the {values.shape[0]} rows of {path}, got {n_rows}"
        )
    check_length(path, n_rows)
    if not sp.issparse(values):
        return np.vstack([values, np.zeros((missing, values.shape[1]), values.dtype)])
    return sp.vstack(
        [sp.csr_array(values), sp.csr_array((missing, values.shape[1]), dtype=values.dtype)], format="csr"
    )


def lines_of(path: Path) -> list[str]:
    """The lines of a text file without the empty ones at its end, which hold no row."""
    return path.read_text(encoding="utf-8-sig").rstrip().split("\n")


def begins_with_sizes(path: Path) -> bool:
    """Whether the first line of a text file has three numbers, as ``load_coordinates`` expects."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        return len(file.readline(1024).split()) == 3
