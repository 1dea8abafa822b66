"""The parts of a release, checked: reports in any of their containers, and the labels of their axes."""

import math
from collections import Counter
from typing import Any

from countveil.privacy import _npy
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
        raise ReleaseError("reports must be finite, or NaN where a count has none, got infinity")
    frozen = reports.astype(numpy.float64, order="C") + 0.0  # no negative zero
    if truncated and (frozen < 0).any():
        _check_sign(-1, truncated)
    frozen.flags.writeable = False
    return frozen, frozen.shape


def _frozen_lists(reports: Any, truncated: bool, real: bool) -> tuple[Any, tuple[int, ...]]:
    shape: tuple[int, ...] = ()
    flat: Any = [reports]
    while flat and all(isinstance(part, list | tuple) for part in flat):
        if not flat[0] or any(len(part) != len(flat[0]) for part in flat):
            raise ReleaseError("reports must be rectangular and not empty, got rows of other lengths")
        shape += (len(flat[0]),)
        flat = [value for part in flat for value in part]
    if not all(
        (type(value) is int and -(2**63) <= value < 2**63)
        or (real and type(value) is float and abs(value) != math.inf)
        for value in flat
    ):
        wanted = "numbers, or NaN where a count has none" if real else "64-bit whole numbers"
        raise ReleaseError(f"reports must be {wanted}, got something else")
    _check_sign(-1 if any(value < 0 for value in flat) else 0, truncated)
    return reports, shape


def _frozen_csr(reports: Any, truncated: bool, imported: bool) -> tuple[Any, tuple[int, ...]]:
    if reports.format != "csr" or reports.ndim != 2 or reports.dtype.kind not in "iu":
        raise ReleaseError(f"sparse reports must be an integer csr_array, got {type(reports).__name__}")
    if not truncated and not imported:
        raise ReleaseError("sparse reports must be truncated, got signed ones")
    if 0 in reports.shape:
        raise ReleaseError(f"reports must have at least one row and one column, got shape {reports.shape}")
    if not reports.has_canonical_format:
        raise ReleaseError("sparse reports must have sorted columns without duplicates, got others")
    if reports.nnz and reports.data.min() <= 0:
        raise ReleaseError("sparse reports must store only positive reports, got zero or a negative report")
    frozen = type(reports)(reports, copy=False)
    index = "int32" if max(reports.nnz, *reports.shape) < 2**31 else "int64"
    for part in ("data", "indices", "indptr"):
        values = getattr(frozen, part)
        kept = _npy.narrowed(values) if part == "data" else values.astype(index, copy=False)
        view = kept.view()
        view.flags.writeable = False
        setattr(frozen, part, view)
    return frozen, tuple(int(length) for length in frozen.shape)


def _check_sign(smallest: int, truncated: bool) -> None:
    if truncated and smallest < 0:
        raise ReleaseError("truncated reports must not be negative, got a negative report")


def check_directed(directed: bool | None, reports: Any, shape: tuple[int, ...]) -> None:
    """Raises ReleaseError unless the reports can be those of a directed or an undirected network, as it is stated."""
    if directed is None:
        return
    if type(directed) is not bool:
        raise ReleaseError(f"directed must be True, False or None, got {directed!r}")
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ReleaseError(
            f"reports of a network must be square, one row and one column per actor, got {shape}"
        )
    if not directed and anything_below(reports):
        raise ReleaseError(
            "reports of an undirected network must be 0 below the diagonal, got a nonzero report there"
        )


def anything_below(values: Any) -> bool:
    """Whether anything is not zero below the diagonal of a square array, csr_array or list of lists."""
    if isinstance(values, list | tuple):
        return any(any(row[:i]) for i, row in enumerate(values))
    if hasattr(values, "indptr"):
        stored = values.tocoo()
        return bool(((stored.row > stored.col) & (stored.data != 0)).any())
    return any(row[:i].any() for i, row in enumerate(values))


def check_labels(labels: Labels, shape: tuple[int, ...]) -> None:
    """Raises ReleaseError unless there are labels, or None, for each axis, as many as it is long."""
    if len(labels) != len(shape):
        raise ReleaseError(f"labels must have one entry for each of {len(shape)} axes, got {len(labels)}")
    for axis, names in enumerate(labels):
        if names is None:
            continue
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            raise ReleaseError(f"labels of axis {axis} must be a tuple of strings, got something else")
        if len(names) != shape[axis]:
            raise ReleaseError(f"labels of axis {axis} must number {shape[axis]}, got {len(names)}")
        if axis > 0 and len(set(names)) != len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise ReleaseError(f"labels of axis {axis} must differ from each other, got {twice!r:.60} twice")
        place = unwritable(names)
        if place is not None:
            raise ReleaseError(
                f"labels of axis {axis} must be {WRITABLE}, got something else in entry {place}"
            )


def describe_labels(labels: Labels) -> str:
    """One sentence that counts the labels, which no noise protects; empty where there are none."""
    kinds = ["row label", "column label", *(f"label of axis {axis}" for axis in range(2, len(labels)))]
    counted = [
        f"{len(names)} {kind if len(names) == 1 else kind.replace('label', 'labels', 1)}"
        for names, kind in zip(labels, kinds, strict=False)
        if names is not None
    ]
    if not counted:
        return ""
    said = " and ".join(counted) if len(counted) < 3 else f"{', '.join(counted[:-1])} and {counted[-1]}"
    verb = (
        "is published as it is"
        if said.startswith("1 ") and len(counted) == 1
        else "are published as they are"
    )
    return f"{said} {verb}, without noise."
