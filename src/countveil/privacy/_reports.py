"""The parts of a release, checked: reports in any of their containers, and the labels of their axes."""

import math
from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any

from countveil.privacy import _npy
from countveil.privacy._text import first_wrong, listed, shown
from countveil.privacy.errors import ReleaseError

Labels = tuple[tuple[str, ...] | None, ...]
"""The names along each axis, or None where an axis has none."""
WRITABLE = "Unicode text without NUL and without lone surrogates"


def unwritable(names: tuple[str, ...]) -> int | None:
    """The place of the first label that a text file cannot hold, if there is one."""
    for place, name in enumerate(names):
        if "\0" in name or any("\ud800" <= character <= "\udfff" for character in name):
            return place
    return None


def frozen(reports: Any, truncated: bool, real: bool = False) -> tuple[Any, tuple[int, ...]]:
    """The reports, read-only where their container allows it, and their shape; raises ReleaseError.

    ``real`` says that they may be real numbers, and NaN where a count has none; such reports are float64.
    """
    if isinstance(reports, list | tuple):
        return _frozen_lists(reports, truncated, real)
    numpy = _npy.optional("numpy")
    if real and numpy is not None and isinstance(reports, numpy.ndarray) and reports.dtype.kind == "f":
        return _frozen_real(reports, truncated, numpy)
    if numpy is not None and isinstance(reports, numpy.ndarray):
        if reports.dtype.kind not in "iu" or reports.ndim < 1 or reports.size == 0:
            raise ReleaseError(
                f"reports must be integers with at least one row and column, got {reports.dtype} "
                f"of shape {reports.shape}"
            )
        frozen = reports.astype(numpy.int64, order="C", copy=False).view()
        _check_sign(int(frozen.min()), truncated)
        frozen.flags.writeable = False
        return frozen, frozen.shape
    if hasattr(reports, "indptr"):
        return _frozen_csr(reports, truncated, real)
    raise ReleaseError(f"reports must be an array, a csr_array or nested lists, got {type(reports).__name__}")


def _frozen_real(reports: Any, truncated: bool, numpy: Any) -> tuple[Any, tuple[int, ...]]:
    if reports.ndim < 1 or reports.size == 0:
        raise ReleaseError(f"reports must have at least one row and column, got shape {reports.shape}")
    if numpy.isinf(reports).any():
        raise ReleaseError("reports must be finite, or NaN for a count without a report, got infinity")
    frozen = reports.astype(numpy.float64, order="C") + 0.0  # no negative zero
    _check_sign(frozen.min(where=frozen < 0, initial=0), truncated)
    frozen.flags.writeable = False
    return frozen, frozen.shape


def _frozen_lists(reports: Any, truncated: bool, real: bool) -> tuple[Any, tuple[int, ...]]:
    shape: tuple[int, ...] = ()
    flat: Any = [reports]
    while flat and all(isinstance(part, list | tuple) for part in flat):
        rule, lengths = "reports must be rectangular and not empty", {len(part): None for part in flat}
        if 0 in lengths:
            raise ReleaseError(f"{rule}, got an empty list")
        if len(lengths) > 1:
            one, other = list(lengths)[:2]
            raise ReleaseError(f"{rule}, got rows of {one} and of {other} entries")
        shape += (len(flat[0]),)
        flat = [value for part in flat for value in part]
    for place, value in enumerate(flat):
        whole = type(value) is int and -(2**63) <= value < 2**63
        if not (whole or (real and type(value) is float and abs(value) != math.inf)):
            wanted = "numbers, or NaN where a count has none" if real else "64-bit whole numbers"
            raise ReleaseError(f"reports must be {wanted}, got {shown(value)} at index {index_of(place, shape)}")
    _check_sign(min((value for value in flat if value < 0), default=0), truncated)
    return reports, shape


def _frozen_csr(reports: Any, truncated: bool, imported: bool) -> tuple[Any, tuple[int, ...]]:
    if reports.format != "csr" or reports.ndim != 2 or reports.dtype.kind not in "iu":
        raise ReleaseError(f"sparse reports must be an integer csr_array, got {type(reports).__name__}")
    if not truncated and not imported:
        raise ReleaseError("sparse reports must be truncated, got signed ones")
    if 0 in reports.shape:
        raise ReleaseError(f"reports must have at least one row and one column, got shape {reports.shape}")
    if not reports.has_canonical_format:
        place = misplaced(reports.indices, reports.indptr, reports.shape[1])
        row, column = place or (0, 0)
        raise ReleaseError(
            "sparse reports must have sorted columns without duplicates, "
            f"got column {column} out of order or repeated in row {row}: call their sum_duplicates() first"
        )
    if reports.nnz and reports.data.min() <= 0:
        raise ReleaseError(f"sparse reports must store only positive reports, got {reports.data.min()}")
    frozen = type(reports)(reports, copy=False)
    index = "int32" if max(reports.nnz, *reports.shape) < 2**31 else "int64"
    for part in ("data", "indices", "indptr"):
        values = getattr(frozen, part)
        kept = _npy.narrowed(values) if part == "data" else values.astype(index, copy=False)
        view = kept.view()
        view.flags.writeable = False
        setattr(frozen, part, view)
    return frozen, tuple(int(length) for length in frozen.shape)


def _check_sign(smallest: float, truncated: bool) -> None:
    if truncated and smallest < 0:
        raise ReleaseError(f"truncated reports must not be negative, got {smallest}")


def index_of(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of the cell at a place in row-major order."""
    return tuple(place // prod(shape[axis + 1 :]) % length for axis, length in enumerate(shape))


def misplaced(indices: Any, indptr: Any, width: int) -> tuple[int, int] | None:
    """The row and the column of the first entry of a csr_array that is outside or not after the one before it."""
    wrong = (indices < 0) | (indices >= width)
    wrong[1:] |= indices[1:] <= indices[:-1]
    starts = indptr[:-1][indptr[1:] > indptr[:-1]]
    wrong[starts] = (indices[starts] < 0) | (indices[starts] >= width)
    if not wrong.any():
        return None
    place = int(wrong.argmax())
    return int(indptr.searchsorted(place, side="right")) - 1, int(indices[place])


def check_directed(directed: bool | None, reports: Any, shape: tuple[int, ...]) -> None:
    """Raises ReleaseError unless the reports can be those of a directed or an undirected network, as it is stated."""
    if directed is None:
        return
    if type(directed) is not bool:
        raise ReleaseError(f"directed must be True, False or None, got {directed!r}")
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ReleaseError(f"reports of a network must be square, one row and one column per actor, got {shape}")
    if not directed and (below := first_below(reports)):
        raise ReleaseError(
            f"reports of an undirected network must be 0 below the diagonal, got a nonzero report at index {below}"
        )


def first_below(values: Any) -> tuple[int, int] | None:
    """Where the first value below the diagonal is that is not zero, in a square array, csr_array or list of lists."""
    if hasattr(values, "indptr"):
        stored = values.tocoo()
        places = ((stored.row > stored.col) & (stored.data != 0)).nonzero()[0]
        found = sorted(zip(stored.row[places].tolist(), stored.col[places].tolist(), strict=True))
        return found[0] if found else None
    for i, row in enumerate(values):
        left = row[:i]
        below = left.nonzero()[0].tolist() if hasattr(left, "nonzero") else [j for j in range(i) if left[j]]
        if below:
            return i, below[0]
    return None


def check_labels(labels: Labels, shape: tuple[int, ...]) -> None:
    """Raises ReleaseError unless there are labels, or None, for each axis, as many as it is long."""
    if len(labels) != len(shape):
        raise ReleaseError(f"labels must have one entry for each of {len(shape)} axes, got {len(labels)}")
    for axis, names in enumerate(labels):
        if names is None:
            continue
        rule = f"labels of axis {axis} must be a tuple of strings"
        if not isinstance(names, tuple):
            raise ReleaseError(f"{rule}, got {shown(names)}")
        if wrong := first_wrong(names, lambda name: isinstance(name, str)):
            raise ReleaseError(f"{rule}, got {wrong}")
        if len(names) != shape[axis]:
            raise ReleaseError(f"labels of axis {axis} must number {shape[axis]}, got {len(names)}")
        if axis > 0 and len(set(names)) != len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise ReleaseError(f"labels of axis {axis} must differ from each other, got {twice!r:.60} twice")
        place = unwritable(names)
        if place is not None:
            got = f"{shown(names[place])} in entry {place}"
            raise ReleaseError(f"labels of axis {axis} must be {WRITABLE}, got {got}")


def checked_names(names: Any, n_axes: int) -> tuple[str | None, ...]:
    """What axes are called, None for one without a name; raises ReleaseError for anything else."""
    rule = f"names of axes must be {n_axes} strings or None, one of them a string"
    found = tuple(names) if isinstance(names, list | tuple) else ()
    if len(found) != n_axes or not any(found):
        raise ReleaseError(f"{rule}, got {shown(names)}")
    if wrong := first_wrong(found, lambda name: name is None or (type(name) is str and name != "")):
        raise ReleaseError(f"{rule}, got {wrong}")
    place = unwritable(tuple(name or "" for name in found))
    if place is not None:
        raise ReleaseError(f"names of axes must be {WRITABLE}, got {shown(found[place])} in entry {place}")
    return found


def describe_labels(labels: Labels, names: Sequence[str | None] | None = None) -> str:
    """One sentence that counts the labels, which no noise protects; empty where there are none."""
    kinds = ["row label", "column label", *(f"label of axis {axis}" for axis in range(2, len(labels)))]
    if names is not None:
        both = zip(kinds, names, strict=False)
        kinds = [kind if name is None else f"label of {name}" for kind, name in both]
    counted = [
        f"{len(names)} {kind if len(names) == 1 else kind.replace('label', 'labels', 1)}"
        for names, kind in zip(labels, kinds, strict=False)
        if names is not None
    ]
    if not counted:
        return ""
    said = listed(counted)
    verb = "is published as it is" if said.startswith("1 ") and len(counted) == 1 else "are published as they are"
    return f"{said} {verb}, without noise."
