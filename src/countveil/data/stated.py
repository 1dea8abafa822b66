"""The mechanisms that somebody states for a table, in the form that releases have: one, by row, or by cell."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from countveil.data.numbering import by_mechanism
from countveil.privacy._cells import ByCell
from countveil.privacy.mechanisms import Mechanism

Stated = Mechanism | tuple[Mechanism, ...] | ByCell


def stated_of(mechanism: Any, shape: tuple[int, ...]) -> Stated:
    """One mechanism, one for each row (a sequence), or an array of them that broadcasts to the reports' shape.

    Raises:
        TypeError: something that is no mechanism.
        ValueError: another number of them, or an array that does not broadcast.
    """
    if isinstance(mechanism, Mechanism):
        return mechanism
    if isinstance(mechanism, pd.Series):
        mechanism = list(mechanism)
    if isinstance(mechanism, np.ndarray | pd.DataFrame):
        mechanism = np.asarray(mechanism, dtype=object)
    listed = isinstance(mechanism, Iterable) and not isinstance(mechanism, str)
    found = mechanism if isinstance(mechanism, np.ndarray) else list(mechanism) if listed else []
    flat = found.ravel() if isinstance(found, np.ndarray) else found
    if not listed or not all(isinstance(each, Mechanism) for each in flat):
        raise TypeError(
            "mechanism must be one of countveil.mechanisms, one for each row, or an array of them by cell, got "
            f"{type(mechanism).__name__}"
        )
    if np.ndim(found) < 2 and len(flat) != shape[0]:
        raise ValueError(f"mechanism must be one, or one for each of {shape[0]} rows, got {len(flat)}")
    if np.ndim(found) < 2:
        return mechanism_of(tuple(flat))
    return of_array(found, shape)


def mechanism_of(stated: tuple[Mechanism, ...]) -> Mechanism | tuple[Mechanism, ...]:
    """One where all rows have the same."""
    return stated[0] if len(set(stated)) == 1 else stated


def of_array(given: Any, shape: tuple[int, ...]) -> Stated:
    """An array of mechanisms by cell, in the simplest form that says the same."""
    own = np.shape(given)
    if len(own) > len(shape) or any(n not in (1, m) for n, m in zip(own[::-1], shape[::-1], strict=False)):
        raise ValueError(f"mechanism must be one, one per row, or broadcast to {shape}, got shape {own}")
    numbers: dict[Mechanism, int] = {}
    places = np.array([numbers.setdefault(each, len(numbers)) for each in given.ravel()])
    places = places.reshape((1,) * (len(shape) - len(own)) + own)
    known = tuple(numbers)
    for axis in range(len(shape)):  # as short as they can be
        first = places.take([0], axis=axis)
        if (places == first).all():
            places = first
    if len(known) == 1:
        return known[0]
    if places.size == shape[0] == places.shape[0]:
        return tuple(known[place] for place in places.ravel())
    return ByCell(known, places.ravel(), places.shape)


def cells_of(stated: Stated, shape: tuple[int, ...]) -> list[tuple[Mechanism, np.ndarray | None]]:
    """Every different mechanism with the cells that have it, booleans of this shape; None for all."""
    if isinstance(stated, tuple):
        given = np.empty(len(stated), dtype=object)
        given[:] = stated
        return by_mechanism(given.reshape(-1, *[1] * (len(shape) - 1)), shape)
    return by_mechanism(stated, shape)


def of_values(
    mechanism: Mapping[Hashable, Mechanism],
    by: str,
    frame: pd.DataFrame,
    axes: Sequence[str],
    labels: Sequence[Sequence[str] | None],
    shape: tuple[int, ...],
    coordinates: tuple[np.ndarray, ...],
) -> tuple[np.ndarray, bool]:
    """(mechanisms (1, .., n, .., 1) by the value of an axis, or of cells by that of another column, whether of all).

    Cells without a row have no value in another column than an axis; they get the mechanism of the first row.

    Raises:
        ValueError: no such column, or a value for which no mechanism is stated.
    """
    known = {str(value): each for value, each in mechanism.items()}
    if len(known) < len(mechanism):
        texts = [str(value) for value in mechanism]
        twice = next(text for place, text in enumerate(texts) if text in texts[:place])
        raise ValueError(f"mechanism must have every value of {by!r} once, as text, got {twice!r:.60} twice")
    for each in known.values():
        if not isinstance(each, Mechanism):
            raise TypeError(f"mechanism must be of countveil.mechanisms, got {type(each).__name__}")
    if list(frame.columns).count(by) != 1:
        raise ValueError(f"by must be one column of the table, got {by!r}")
    names: Sequence[str] = (labels[axes.index(by)] or ()) if by in axes else list(frame[by].astype(str))
    odd = next((name for name in names if name not in known), None)
    if odd is not None:
        raise ValueError(f"mechanism must be stated for every value of {by!r}, got none for {odd!r:.60}")
    own = np.empty(len(names), dtype=object)
    own[:] = [known[name] for name in names]
    if by in axes:
        place = axes.index(by)
        return own.reshape([len(own) if axis == place else 1 for axis in range(len(axes))]), True
    found = np.empty(shape, dtype=object)
    found.fill(own[0])
    found[coordinates] = own
    return found, len(frame) == found.size
