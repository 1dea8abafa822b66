"""What releases of reports that somebody else published have in addition: a source, and reports of any mechanism.

Only what needs no law of a mechanism is checked here, with the standard library alone: which reports are real numbers,
and which counts may have none. Whether a mechanism can have made a report is checked where its law is known, when the
reports are imported and again whenever they are read for a fit.
"""

import math
from collections.abc import Iterator
from typing import Any

from countveil.privacy import _cells, _npy
from countveil.privacy._cells import ByCell
from countveil.privacy.errors import ReleaseError
from countveil.privacy.mechanisms import Mechanism

LONGEST_SOURCE = 200
"""Characters of the line that says where imported reports are from."""


def checked_source(source: Any) -> str | None:
    """One line of text, or None; raises ReleaseError for anything else."""
    if source is None:
        return None
    if not isinstance(source, str) or not source.strip() or len(source) > LONGEST_SOURCE:
        raise ReleaseError(
            f"source must be a line of 1 to {LONGEST_SOURCE} characters, got {ascii(source)[:60]}"
        )
    if not source.isprintable():
        raise ReleaseError(f"source must be one line of printable text, got {ascii(source)[:60]}")
    return source


def in_words(source: str | None) -> str:
    """Who vouches for imported reports, and that nobody else does; empty for others."""
    if source is None:
        return ""
    return (
        f"Imported from: {source}. Whoever imported them vouches for the mechanism; countveil "
        "neither drew the noise nor can check how the reports were made. "
    )


def check_kinds(
    reports: Any, mechanism: Mechanism | tuple[Mechanism, ...] | ByCell, shape: tuple[int, ...]
) -> None:
    """Raises ReleaseError for NaN where every count has a report, and for fractions where reports are whole.

    ``reports`` is an array or nested lists, or sparse, whose reports are whole.
    """
    if hasattr(reports, "indptr") or getattr(getattr(reports, "dtype", None), "kind", "f") == "i":
        return
    for each, part in _parts(reports, mechanism, shape):
        absent, fraction = _absent_and_fraction(part)
        if absent and not getattr(each, "absent", False):
            raise ReleaseError(
                f"reports must not be missing, because {each.name} gives every count one, got NaN"
            )
        if fraction and not getattr(each, "real", False):
            raise ReleaseError(f"reports must be whole numbers with {each.name}, got a fraction")


def _parts(
    reports: Any, mechanism: Mechanism | tuple[Mechanism, ...] | ByCell, shape: tuple[int, ...]
) -> Iterator[tuple[Mechanism, Any]]:
    """Every different mechanism with its reports, as an array or nested lists."""
    if isinstance(mechanism, Mechanism):
        yield mechanism, reports
    elif isinstance(mechanism, ByCell):
        places, values = _cells.places_of(mechanism, shape), reports
        if not hasattr(values, "dtype"):
            values = _cells.flat(reports, len(shape))
            places = places.ravel().tolist() if hasattr(places, "ravel") else places
        for number, each in enumerate(mechanism.mechanisms):
            if hasattr(values, "dtype"):
                yield each, values[places == number]
            else:
                yield each, [value for value, own in zip(values, places, strict=True) if own == number]
    else:
        for each in dict.fromkeys(mechanism):
            chosen = [row for row, own in enumerate(mechanism) if own == each]
            yield each, reports[chosen] if hasattr(reports, "dtype") else [reports[row] for row in chosen]


def _absent_and_fraction(reports: Any) -> tuple[bool, bool]:
    """Whether any report is NaN, and whether any is a fraction."""
    numpy = _npy.optional("numpy")
    if numpy is not None and isinstance(reports, numpy.ndarray):
        absent = numpy.isnan(reports)
        return bool(absent.any()), bool((numpy.floor(reports) != reports)[~absent].any())
    flat: list[Any] = list(reports)
    while isinstance(flat[0], list | tuple):
        flat = [value for part in flat for value in part]
    there = [value for value in flat if value == value]
    return len(there) < len(flat), any(math.floor(value) != value for value in there)
