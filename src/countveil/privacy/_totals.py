"""Exact totals that somebody else published beside reports: which there may be, and how a release says so.

Whether counts with these reports can have these totals is checked where the mechanism's law is known, when they are
imported and again whenever they are read for a fit.
"""

from math import prod
from typing import Any, NamedTuple

from countveil.privacy.errors import ReleaseError

UNKNOWN = -1
"""In files, in the place of a total that is not known."""
LARGEST = 2**53
"""Above every total."""


class KnownTotals(NamedTuple):
    """Exact sums of counts over some of the axes, in the order of the cells of the axes that are left."""

    over: tuple[int, ...]  # axes, rising
    values: tuple[int | None, ...]  # None where one is not known


def shape_of(over: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The lengths of the axes that are left; raises ReleaseError for axes that are none, or not rising."""
    axes = tuple(over)
    if (
        not axes
        or not all(type(axis) is int and 0 <= axis < len(shape) for axis in axes)
        or list(axes) != sorted(set(axes))
    ):
        raise ReleaseError(f"totals must be over axes from 0 to {len(shape) - 1}, rising, got others")
    return tuple(length for axis, length in enumerate(shape) if axis not in axes)


def checked(
    totals: Any, shape: tuple[int, ...], source: str | None, network_or_waves: bool
) -> KnownTotals | None:
    """The totals as tuples; raises ReleaseError where they do not fit the reports, or would break a promise."""
    if totals is None:
        return None
    if source is None:
        raise ReleaseError(
            "totals must be beside imported reports, since exact ones break the promise of noise, got some beside "
            "one's own"
        )
    if network_or_waves:
        raise ReleaseError("totals must be of no network and of no study in waves, got some")
    over, values = tuple(totals[0]), tuple(totals[1])
    size = prod(shape_of(over, shape))
    if len(values) != size:
        raise ReleaseError(f"totals must be {size}, one for each cell that is left, got {len(values)}")
    known = [value for value in values if value is not None]
    if not all(type(value) is int and 0 <= value < LARGEST for value in known):
        raise ReleaseError("totals must be whole numbers from 0 to 2^53 - 1, or None, got others")
    if not known:
        raise ReleaseError("totals must be known, at least one of them, got none")
    return KnownTotals(over, values)


def encoded(totals: KnownTotals) -> list[int]:
    """The values as a file holds them."""
    return [UNKNOWN if value is None else value for value in totals.values]


def decoded(over: Any, values: Any) -> KnownTotals:
    """The totals of a file."""
    found = (int(value) for value in values)
    return KnownTotals(tuple(over), tuple(None if value == UNKNOWN else value for value in found))


def in_words(totals: KnownTotals | None) -> str:
    """How many totals there are, and of what; empty where there are none."""
    if totals is None:
        return ""
    known = sum(value is not None for value in totals.values)
    axes = " and ".join(map(str, totals.over))
    said = (
        f"{known} exact totals were published beside them, sums over axis {axes}"
        if known > 1
        else f"One exact total was published beside them, a sum over axis {axes}"
    )
    unknown = len(totals.values) - known
    return f"{said}{f' ({unknown} more are not known)' if unknown else ''}. The mechanism does not protect totals. "
