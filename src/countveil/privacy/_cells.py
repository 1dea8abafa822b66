"""What releases of imported reports say cell by cell: which cells have no report at all, and what was done to each.

A cell is *masked* if it was never reported, for reasons that have nothing to do with its count. Its report is 0 in
memory and in files, and says nothing.
"""

from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import Any

from countveil.privacy import _npy
from countveil.privacy._reports import index_of
from countveil.privacy._text import first_wrong, shown
from countveil.privacy.errors import ReleaseError
from countveil.privacy.mechanisms import Mechanism

ALL_MASKED = "mask must leave a report, got one of all cells"


@dataclass(frozen=True, eq=False)
class ByCell:
    """Mechanisms that differ from cell to cell, over axes that are 1 where all along one have the same.

    ``mechanisms`` are the different ones, in order of first use; ``of_cell`` has the place among them for every cell of
    ``shape``, which broadcasts to that of the reports, in row-major order: a read-only array of whole numbers, or a
    tuple where NumPy is not installed.
    """

    mechanisms: tuple[Mechanism, ...]
    of_cell: Any
    shape: tuple[int, ...]

    def __repr__(self) -> str:
        return f"ByCell({', '.join(map(repr, self.mechanisms))})"


def checked(given: ByCell, shape: tuple[int, ...], source: str | None) -> ByCell:
    """The same with places that cannot be changed; raises ReleaseError where they do not fit the reports."""
    if source is None:
        raise ReleaseError(
            "mechanism must be one, or one for each row, unless reports are imported, got mechanisms by cell"
        )
    own = tuple(given.shape)
    if len(own) != len(shape) or not all(n in (1, length) for n, length in zip(own, shape, strict=True)):
        raise ReleaseError(f"mechanisms by cell must have a shape that broadcasts to {shape}, got {own}")
    numpy = _npy.optional("numpy")
    places = given.of_cell if numpy is None else numpy.asarray(given.of_cell)
    rule = "mechanisms by cell must be numbered by whole numbers"
    if numpy is not None and places.dtype.kind not in "iu":
        raise ReleaseError(f"{rule}, got {places.dtype}")
    if numpy is None and (wrong := first_wrong(places, lambda place: type(place) is int)):
        raise ReleaseError(f"{rule}, got {wrong}")
    if len(places) != prod(own):
        raise ReleaseError(f"mechanisms by cell must be {prod(own)}, one for each of {own}, got {len(places)}")
    known = tuple(given.mechanisms)
    rule = "mechanisms by cell must be two or more different mechanisms"
    if wrong := first_wrong(known, lambda each: isinstance(each, Mechanism)):
        raise ReleaseError(f"{rule}, got {wrong}")
    if len(set(known)) < max(2, len(known)):
        twice = next((each for each in known if known.count(each) > 1), None)
        raise ReleaseError(f"{rule}, got {len(known) if twice is None else f'{shown(twice)} twice'}")
    uses = _first_uses(places)
    if uses != list(range(len(known))):
        raise ReleaseError(
            f"mechanisms by cell must be numbered from 0 to {len(known) - 1} in order of first use, and all used, "
            f"got {shown(uses)}"
        )
    if numpy is None:
        return ByCell(known, tuple(places), own)
    places = _npy.narrowed(places).copy()
    places.flags.writeable = False
    return ByCell(known, places, own)


def _first_uses(places: Any) -> list[int]:
    """The different places, in order of first use."""
    if hasattr(places, "dtype"):
        numpy = _npy.optional("numpy")
        different, first = numpy.unique(places, return_index=True)  # type: ignore[union-attr]
        return [int(different[i]) for i in first.argsort()]
    return list(dict.fromkeys(places))


def places_of(stated: ByCell, shape: tuple[int, ...]) -> Any:
    """The place of the mechanism of every cell: an array of the reports' shape, or a flat list without NumPy."""
    numpy = _npy.optional("numpy")
    if numpy is not None:
        return numpy.broadcast_to(numpy.reshape(stated.of_cell, stated.shape), shape)
    steps = [0 if n == 1 else prod(stated.shape[axis + 1 :]) for axis, n in enumerate(stated.shape)]
    every = product(*map(range, shape))
    return [stated.of_cell[sum(i * step for i, step in zip(cell, steps, strict=True))] for cell in every]


def flat(values: Any, n_axes: int) -> list[Any]:
    """Nested lists as one list."""
    found: list[Any] = list(values)
    for _ in range(n_axes - 1):
        found = [value for part in found for value in part]
    return found


def checked_mask(mask: Any, reports: Any, shape: tuple[int, ...], source: str | None) -> Any:
    """Booleans of the shape of the reports, read-only where there is NumPy; None where nothing is masked.

    Raises:
        ReleaseError: a mask of other than imported, dense reports, of another shape or of everything; a report that is
            not 0 where there is none.
    """
    if mask is None:
        return None
    if source is None or hasattr(reports, "indptr"):
        raise ReleaseError("mask must be of imported reports that are not sparse, got a mask of other reports")
    numpy = _npy.optional("numpy")
    if numpy is None:
        return _checked_lists(mask, reports, shape)
    try:
        found = numpy.array(mask)
    except ValueError:
        raise ReleaseError(f"mask must be booleans of shape {shape}, got {shown(mask)}") from None
    if found.dtype != bool or found.shape != shape:
        raise ReleaseError(f"mask must be booleans of shape {shape}, got {found.dtype} of shape {found.shape}")
    if found.all():
        raise ReleaseError(ALL_MASKED)
    stated = numpy.asarray(reports)
    wrong = (found & (stated != 0)).ravel().nonzero()[0]
    if wrong.size:
        raise _not_zero(stated.flat[wrong[0]], int(wrong[0]), shape)
    found.flags.writeable = False
    return found if found.any() else None


def _checked_lists(mask: Any, reports: Any, shape: tuple[int, ...]) -> Any:
    try:
        hidden = flat(mask, len(shape))
        fits = _lengths(mask, len(shape)) == shape and all(type(value) is bool for value in hidden)
    except (TypeError, IndexError):
        fits = False
    if not fits or len(hidden) != prod(shape):
        raise ReleaseError(f"mask must be booleans of shape {shape}, got {shown(mask)}")
    if all(hidden):
        raise ReleaseError(ALL_MASKED)
    for place, (gone, value) in enumerate(zip(hidden, flat(reports, len(shape)), strict=True)):
        if gone and value != 0:
            raise _not_zero(value, place, shape)
    return mask if any(hidden) else None


def _not_zero(report: Any, place: int, shape: tuple[int, ...]) -> ReleaseError:
    got = f"{shown(report)} at index {index_of(place, shape)}"
    return ReleaseError(f"reports must be 0 where they are masked, got {got}")


def _lengths(values: Any, n_axes: int) -> tuple[int, ...]:
    """The length of the first part along each axis of nested lists."""
    found: list[int] = []
    for _ in range(n_axes):
        found.append(len(values))
        values = values[0]
    return tuple(found)


def encoded_mask(mask: Any, n_axes: int) -> Any:
    """The numbers of the masked cells in row-major order, rising, as a file holds them."""
    if hasattr(mask, "dtype"):
        return mask.ravel().nonzero()[0]
    return [place for place, gone in enumerate(flat(mask, n_axes)) if gone]


def decoded_mask(masked: Any, shape: tuple[int, ...]) -> Any:
    """The mask of a file; raises ReleaseError for numbers of no cells, or that do not rise."""
    numpy, size = _npy.optional("numpy"), prod(shape)
    rising = (masked[1:] > masked[:-1]).all() if numpy else all(one < other for one, other in pairwise(masked))
    if not len(masked) or masked[0] < 0 or masked[-1] >= size or not rising:
        got = shown([int(place) for place in masked[:8]])
        raise ReleaseError(f"must have masked cells numbered from 0 to {size - 1}, rising, got {got}")
    if numpy is not None:
        found = numpy.zeros(size, dtype=bool)
        found[masked] = True
        return found.reshape(shape)
    gone = [False] * size
    for place in masked:
        gone[place] = True
    return _npy.nested(gone, shape)


def in_words(mask: Any, n_axes: int) -> str:
    """How many cells are masked; empty where none are."""
    if mask is None:
        return ""
    n = int(mask.sum()) if hasattr(mask, "sum") else sum(flat(mask, n_axes))
    cells = "cell was" if n == 1 else "cells were"
    return f"{n:,} {cells} never reported, for reasons that have nothing to do with their counts. "
