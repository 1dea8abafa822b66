"""True counts from whatever container they come in, checked cell by cell.

No message here shows a count or a word of the record: those are what must be protected. It names the place
and the rule.
"""

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from numbers import Integral, Real
from typing import Any, NamedTuple

from countveil.privacy import _index, _npy, _reports
from countveil.privacy._text import first_wrong

MAX_COUNT = 2**62

_RULE = "counts must be non-negative whole numbers"
_FILL = "; put 0 where nothing was counted, and leave out rows that were not observed"
_MAX_AXES = 32
_SEPARATORS = str.maketrans("", "", " ,_'’\u00a0\u2009\u202f")
_UNNAMED = re.compile(r"Unnamed: \d+")
_BETWEEN_LEVELS = " | "


class Counts(NamedTuple):
    """Checked counts: an int64 array, a canonical int64 csr_array, or (without NumPy) nested lists."""

    values: Any
    shape: tuple[int, ...]
    labels: tuple[tuple[str, ...] | None, ...]
    sparse: bool
    axis_names: tuple[str | None, ...] | None = None


def read(
    counts: Any, row_labels: Iterable[Any] | None, column_labels: Iterable[Any] | None, vocabulary: Sequence[str] | None
) -> Counts:
    """Checks the counts and finds their labels; raises TypeError or ValueError, which show no count."""
    sparse, called = _is_sparse(counts), [_name(row_labels), _name(column_labels)]
    if vocabulary is not None or (isinstance(counts, Mapping) and not sparse):
        if column_labels is not None:
            raise ValueError("column_labels must be left out if a vocabulary names the columns, got both")
        values, column_labels = _from_mapping(counts, vocabulary)
    elif sparse:
        values = _from_sparse(counts)
    elif hasattr(counts, "iloc") and hasattr(counts, "index"):
        values, own_rows, own_columns = _from_pandas(counts)
        if row_labels is None:
            row_labels, called[0] = own_rows, None if own_rows is None else _name(counts.index)
        if column_labels is None:
            _refuse_numbers(own_columns, counts)
            column_labels, called[1] = own_columns, None if own_columns is None else _name(counts.columns)
    elif isinstance(counts, list | tuple):
        values = _from_lists(counts)
    elif hasattr(counts, "__array__"):
        values = _from_array(counts)
    else:
        raise TypeError(f"counts must be an array, a table, lists or a mapping, got {type(counts).__name__}")
    shape = _shape(values)
    labels = [_labels("row_labels", row_labels, shape[0])]
    if len(shape) > 1:
        labels.append(_labels("column_labels", column_labels, shape[1]))
    elif column_labels is not None:
        raise ValueError(f"column_labels must be left out if there are no columns, got {len(shape)} axis")
    labels += [None] * (len(shape) - len(labels))
    called = [*called, *[None] * len(shape)][: len(shape)]
    return Counts(values, shape, tuple(labels), _is_sparse(values), tuple(called) if any(called) else None)


def _name(labels: Any) -> str | None:
    """What an Index or a Series calls its labels; None if it has no name, or is neither."""
    name = labels.name if hasattr(labels, "to_frame") else None
    return None if name is None else str(name) or None


def _is_sparse(counts: Any) -> bool:
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(counts))


def _shape(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list):
        return tuple(int(length) for length in values.shape)
    shape: tuple[int, ...] = ()
    while isinstance(values, list):
        shape += (len(values),)
        values = values[0]
    return shape


def _labels(name: str, labels: Iterable[Any] | None, length: int) -> tuple[str, ...] | None:
    if labels is None:
        return None
    if isinstance(labels, str | bytes | Set | Mapping):
        raise TypeError(f"{name} must be a sequence of names, got {type(labels).__name__}")
    names = tuple(str(label) for label in labels)
    if len(names) != length:
        raise ValueError(f"{name} must have {length} entries, got {len(names)}")
    if name != "row_labels" and len(set(names)) != length:
        last = {each: place for place, each in enumerate(names)}
        first, other = next((i, last[each]) for i, each in enumerate(names) if last[each] != i)
        raise ValueError(f"{name} must differ from each other, got a duplicate, in entries {first} and {other}")
    place = _reports.unwritable(names)
    if place is not None:
        raise ValueError(f"{name} must be {_reports.WRITABLE}, got {_unwritable(names[place])} in entry {place}")
    return names


def _unwritable(name: str) -> str:
    return "a NUL" if "\0" in name else "a lone surrogate"


def reads_as_number(text: str) -> bool:
    """Whether a label could be a count: a number, with or without thousands separators.

    "nan" and "infinity" are words here.
    """
    try:
        float(text.translate(_SEPARATORS))
    except ValueError:
        return False
    return any(character.isdigit() for character in text)


def _bad(what: str, index: tuple[int, ...]) -> ValueError:
    place = ", ".join(str(int(i)) for i in index) + ("," if len(index) == 1 else "")
    remedy = _FILL if "missing" in what else ""
    return ValueError(f"{_RULE}, got {what} at index ({place}){remedy}")


def _refuse_empty(shape: tuple[int, ...]) -> None:
    if not shape or 0 in shape:
        raise ValueError(f"counts must have at least one row and one column, got shape {shape}")


def _whole(value: Any, index: tuple[int, ...]) -> int:
    """One Python number as a count."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _bad("a boolean" if isinstance(value, bool) else "something that is not a number", index)
    if not isinstance(value, Integral):
        real = float(value)
        if not math.isfinite(real):
            raise _bad("a missing value (NaN)" if math.isnan(real) else "an infinite value", index)
        if value != math.floor(real):
            raise _bad("a fractional value", index)
        value = math.floor(real)
    if value < 0:
        raise _bad("a negative value", index)
    if value > MAX_COUNT:
        raise _bad("a value above 2**62", index)
    return int(value)


def _from_mapping(counts: Any, vocabulary: Sequence[str] | None) -> tuple[Any, tuple[str, ...]]:
    """One record, word -> count, as a matrix with one row and a column for each word of the vocabulary."""
    if not isinstance(counts, Mapping):
        raise TypeError(f"counts must be a mapping if a vocabulary is given, got {type(counts).__name__}")
    if vocabulary is None:
        raise ValueError("vocabulary must be given for a mapping (words in the order of the columns), got None")
    if isinstance(vocabulary, str | bytes | Set | Mapping):
        raise TypeError(f"vocabulary must be words in a fixed order, got {type(vocabulary).__name__}")
    words = tuple(vocabulary)
    if wrong := first_wrong(words, lambda word: isinstance(word, str)):
        raise TypeError(f"vocabulary must hold strings, got {wrong}")
    known = set(words)
    if len(known) != len(words):
        word, times = Counter(words).most_common(1)[0]
        raise ValueError(f"vocabulary must name each word once, got {word!r:.60} {times} times")
    _refuse_empty((1, len(words)))
    outside = sum(word not in known for word in counts)
    if outside:
        raise ValueError(
            f"counts must have only words of the vocabulary, got {outside} outside it "
            "(not shown: they are private); "
            "to drop them, pass {word: n for word, n in counts.items() if word in vocabulary}"
        )
    row = [_whole(counts.get(word, 0), (0, column)) for column, word in enumerate(words)]
    return _packed([row]), words


def _packed(lists: list[Any]) -> Any:
    """Checked lists as an array where NumPy is installed."""
    numpy = _npy.optional("numpy")
    return lists if numpy is None else numpy.array(lists, dtype=numpy.int64)


def _from_lists(counts: Any) -> Any:
    shape: tuple[int, ...] = ()
    first = _unpacked(counts)
    while isinstance(first, list | tuple):
        shape += (len(first),)
        if not first or len(shape) > _MAX_AXES:
            break
        first = _unpacked(first[0])
    if len(shape) > _MAX_AXES:
        raise ValueError(f"counts must have at most {_MAX_AXES} axes, got more")
    _refuse_empty(shape)
    return _packed(_walk(counts, (), shape))


def _unpacked(node: Any) -> Any:
    """A NumPy array or scalar among the lists as plain Python."""
    return node.tolist() if hasattr(node, "tolist") else node


def _walk(node: Any, index: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    node = _unpacked(node)
    if len(index) == len(shape):
        if isinstance(node, list | tuple):
            raise ValueError(f"counts must be rectangular, got a deeper list at index {index}")
        return _whole(node, index)
    if not isinstance(node, list | tuple) or len(node) != shape[len(index)]:
        raise ValueError(f"counts must be rectangular, got a row of a different length at index {index}")
    return [_walk(child, (*index, i), shape) for i, child in enumerate(node)]


def _from_array(counts: Any) -> Any:
    import numpy as np

    if isinstance(counts, np.ma.MaskedArray) and np.ma.is_masked(counts):
        raise ValueError(f"{_RULE}, got masked values; fill them, or leave their rows out")
    values = np.asarray(counts)
    _refuse_empty(values.shape)
    return _checked(values, lambda flat: np.unravel_index(flat, values.shape))


def _checked(values: Any, place: Callable[[int], tuple[Any, ...]]) -> Any:
    """An array of any dtype as int64; ``place`` turns a flat position into the index that errors name."""
    import numpy as np

    if values.dtype.kind == "O":
        flat = [_whole(_unpacked(value), place(i)) for i, value in enumerate(values.ravel().tolist())]
        return np.array(flat, dtype=np.int64).reshape(values.shape)
    if values.dtype.kind not in "iuf":
        raise ValueError(f"{_RULE}, got an array of {values.dtype}")
    if values.dtype.kind == "f":
        values = values.astype(np.promote_types(values.dtype, np.float64), copy=False)
        _refuse(np.isnan(values), "a missing value (NaN)", place)
        _refuse(np.isinf(values), "an infinite value", place)
        _refuse(values != np.floor(values), "a fractional value", place)
    _refuse(values < 0, "a negative value", place)
    if values.dtype.itemsize >= 8:
        _refuse(values > values.dtype.type(MAX_COUNT), "a value above 2**62", place)
    return values.astype(np.int64)


def _refuse(faulty: Any, what: str, place: Callable[[int], tuple[Any, ...]]) -> None:
    if faulty.any():
        raise _bad(what, place(int(faulty.argmax())))


def _from_pandas(counts: Any) -> tuple[Any, Any, Any]:
    """A data frame column by column, so that mixed dtypes lose nothing; a series as one count per row."""
    import numpy as np

    if counts.ndim == 1:
        _refuse_empty(counts.shape)
        return _checked(counts.to_numpy(), lambda i: (i,)), labels_of(counts.index), None
    rows, columns = counts.shape
    _refuse_empty((rows, columns))
    if isinstance(counts.iloc[0, 0], str):
        raise ValueError(f"{_RULE}, got text in the first column: if it names the rows, {_index.REMEDY}")
    values = np.empty((rows, columns), dtype=np.int64)
    for column in range(columns):
        values[:, column] = _checked(counts.iloc[:, column].to_numpy(), lambda i, j=column: (i, j))  # type: ignore[misc]
    _index.check_columns("counts", list(counts.columns), values, _is_default(counts.index))
    return values, labels_of(counts.index), labels_of(counts.columns)


def _refuse_numbers(names: list[str] | None, table: Any) -> None:
    """Refuses column labels that are all numbers: without a header, pandas takes them from the first record."""
    if names is None or table.ndim == 1 or not all(isinstance(label, str) for label in table.columns):
        return
    given = [name for name in names if not _UNNAMED.fullmatch(name)]
    if given and all(reads_as_number(name) for name in given):
        raise ValueError(
            "column labels must be names, got text that reads as numbers in every column (not shown: they "
            "may be counts); if the file has no header, read it with header=None, else pass column_labels"
        )


def labels_of(index: Any) -> list[str] | None:
    """An index's labels, those of several levels joined; None for the default numbering from 0."""
    if _is_default(index):
        return None
    levels = index.nlevels > 1
    names = [_BETWEEN_LEVELS.join(map(str, label)) if levels else str(label) for label in index]
    if len(set(names)) < index.nunique(dropna=False):
        alike = f"once their levels are joined by {_BETWEEN_LEVELS!r}" if levels else "as 1 and '1'"
        raise ValueError(f"labels must differ as text, got two that do not, {alike}")
    return names


def _is_default(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)


def _from_sparse(counts: Any) -> Any:
    """Any sparse format as a canonical csr_array: duplicates summed, explicit zeros dropped."""
    import numpy as np
    from scipy.sparse import csr_array

    if counts.ndim != 2:
        raise ValueError(f"sparse counts must have two axes, got {counts.ndim}")
    _refuse_empty(counts.shape)
    triplets = counts.tocoo()
    data = _checked(triplets.data, lambda i: (triplets.row[i], triplets.col[i]))
    values = csr_array((data, (triplets.row, triplets.col)), shape=counts.shape, dtype=np.int64)
    values.sum_duplicates()
    if float(data.sum(dtype=np.float64)) > MAX_COUNT and values.nnz < data.size:
        raise ValueError(f"{_RULE}, got repeated cells whose sum may exceed 2**62; sum them first")
    values.eliminate_zeros()
    return values
