"""Totals that somebody else published beside reports, in families: which there may be, and how a release says so.

Whether counts with these reports can have these totals is checked where the mechanisms' laws are known, when they are
imported and again whenever they are read for a fit.
"""

import math
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from countveil.privacy import _npy
from countveil.privacy._reports import WRITABLE, unwritable
from countveil.privacy._text import difference, first_wrong, shown
from countveil.privacy.errors import ReleaseError
from countveil.privacy.mechanisms import Mechanism, from_json

UNKNOWN = -1
"""In files, in the place of an exact total that is not known; and the group of a cell that is in none."""
LARGEST = 2**53
"""Above every total, and every report of one."""
_KEYS = {"over", "groups", "labels", "mechanism", "size"}


class ReleasedTotals(NamedTuple):
    """A family of sums of counts, or of reports of such sums: over some of the axes, or over groups of cells.

    Values are in the order of the cells of the axes that are left, or of the numbers of groups. None is a total that
    was hidden, where the mechanism hides some, and an unknown one elsewhere.
    """

    over: tuple[int, ...] | None  # axes, rising; None where there are groups
    values: tuple[int | float | None, ...]
    mechanism: Mechanism | None = None  # None where totals are exact
    groups: Any = None  # of every cell in row-major order, the number of its total or -1: a read-only array or a tuple
    labels: tuple[str, ...] | None = None  # of groups


def shape_of(over: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The lengths of the axes that are left; raises ReleaseError for axes that are none, or not rising."""
    axes = tuple(over)
    if (
        not axes
        or not all(type(axis) is int and 0 <= axis < len(shape) for axis in axes)
        or list(axes) != sorted(set(axes))
    ):
        raise ReleaseError(f"totals must be over axes from 0 to {len(shape) - 1}, rising, got {shown(axes)}")
    return tuple(length for axis, length in enumerate(shape) if axis not in axes)


def checked(totals: Any, shape: tuple[int, ...]) -> tuple[ReleasedTotals, ...]:
    """The families as tuples; raises ReleaseError where they do not fit the reports."""
    try:
        families = tuple(ReleasedTotals(*family) for family in totals)
    except TypeError as error:
        raise ReleaseError(
            f"totals must be a list of families, each with axes and values, got {shown(totals)}"
        ) from error
    if not families:
        raise ReleaseError("totals must have at least one family, got none")
    return tuple(_checked_family(family, shape) for family in families)


def _checked_family(family: ReleasedTotals, shape: tuple[int, ...]) -> ReleasedTotals:
    """A family whose parts fit each other and the reports; raises ReleaseError for others."""
    over, values, mechanism, groups, labels = family
    if (over is None) == (groups is None):
        got = "neither" if over is None else "both"
        raise ReleaseError(f"totals must be over axes or over groups, got {got}")
    values = tuple(values)
    size = len(values) if over is None else prod(shape_of(over, shape))
    if len(values) != size:
        raise ReleaseError(f"totals must be {size}, one for each cell that remains, got {len(values)}")
    if mechanism is None:
        _check_exact(values)
    elif isinstance(mechanism, Mechanism):
        values = _checked_reports(values, mechanism)
    else:
        raise ReleaseError(f"totals must be exact or have a mechanism, got {type(mechanism).__name__}")
    if over is not None and labels is not None:
        raise ReleaseError("totals over axes cannot have labels other than those of the axes")
    if labels is not None:
        labels = _checked_labels(labels, size)
    placed = None if groups is None else _checked_groups(groups, prod(shape), size)
    return ReleasedTotals(None if over is None else tuple(over), values, mechanism, placed, labels)


def _check_exact(values: tuple[Any, ...]) -> None:
    wrong = first_wrong(values, lambda each: each is None or (type(each) is int and 0 <= each < LARGEST))
    if wrong:
        raise ReleaseError(f"totals must be whole numbers from 0 to 2^53 - 1, or None, got {wrong}")
    if all(value is None for value in values):
        raise ReleaseError("at least one total must be known, got none")


def _checked_reports(values: tuple[Any, ...], mechanism: Mechanism) -> tuple[int | float | None, ...]:
    """Reports of totals: floats where the mechanism makes real numbers, and whole numbers elsewhere."""
    real = bool(getattr(mechanism, "real", False))
    if wrong := first_wrong(values, lambda v: v is None or (type(v) in (int, float) and abs(v) < LARGEST)):
        raise ReleaseError(f"reports of totals must be numbers below 2^53 in size, or None, got {wrong}")
    if not real and (wrong := first_wrong(values, lambda v: v is None or v == int(v))):
        raise ReleaseError(f"reports of totals must be whole numbers with {mechanism.name}, got {wrong}")
    if all(v is None for v in values) and not getattr(mechanism, "absent", False):
        raise ReleaseError("at least one total must be known, got none")
    return tuple(None if v is None else float(v) if real else int(v) for v in values)


def _checked_labels(labels: Any, size: int) -> tuple[str, ...]:
    found = tuple(labels)
    if len(found) != size:
        raise ReleaseError(f"labels of groups must be {size} strings, got {len(found)}")
    if wrong := first_wrong(found, lambda name: type(name) is str):
        raise ReleaseError(f"labels of groups must be {size} strings, got {wrong}")
    if len(set(found)) < size:
        twice = shown(next(name for name in found if found.count(name) > 1))
        raise ReleaseError(f"labels of groups must differ from each other, got {twice} twice")
    place = unwritable(found)
    if place is not None:
        raise ReleaseError(f"labels of groups must be {WRITABLE}, got {shown(found[place])} in entry {place}")
    return found


def _checked_groups(groups: Any, n_cells: int, size: int) -> Any:
    """The number of each cell's total as an array that cannot be changed; a tuple without NumPy."""
    numpy = _npy.optional("numpy")
    if numpy is None:
        listed: Any = tuple(groups)
        wrong = first_wrong(listed, lambda n: type(n) is int)
    else:
        listed = numpy.asarray(groups).reshape(-1)
        wrong = None if listed.dtype.kind in "iu" else str(listed.dtype)
    rule = f"groups of totals must be {n_cells} whole numbers, one for each cell"
    if len(listed) != n_cells:
        raise ReleaseError(f"{rule}, got {len(listed)}")
    if wrong:
        raise ReleaseError(f"{rule}, got {wrong}")
    low, high = (min(listed), max(listed)) if numpy is None else (int(listed.min()), int(listed.max()))
    if low < UNKNOWN or high >= size:
        got = low if low < UNKNOWN else high
        raise ReleaseError(f"groups of totals must be from -1 to {size - 1}, got {got}")
    if high < 0:
        raise ReleaseError("groups of totals must contain at least one cell, got none")
    if numpy is not None:
        listed = _npy.narrowed(listed).copy()
        listed.flags.writeable = False
    return listed


def described(totals: Sequence[ReleasedTotals]) -> list[dict[str, Any]]:
    """The entry of a file's description for all families."""
    return [
        {
            "over": None if each.over is None else list(each.over),
            "groups": each.groups is not None,
            "labels": None if each.labels is None else list(each.labels),
            "mechanism": None if each.mechanism is None else each.mechanism.to_json(),
            "size": len(each.values),
        }
        for each in totals
    ]


def check_described(families: list[Any], shape: tuple[int, ...]) -> None:
    """Refuses what no file says of its totals, as far as no array is needed; raises ReleaseError."""
    if not families:
        raise ReleaseError("must state at least one family of totals, got none")
    for number, each in enumerate(families):
        got = difference(each, _KEYS) if isinstance(each, dict) else shown(each)
        if got:
            raise ReleaseError(
                f"must describe every family of totals with the keys {sorted(_KEYS)}, got {got} in family {number}"
            )
        over, size, groups, labels = each["over"], each["size"], each["groups"], each["labels"]
        if type(groups) is not bool or groups != (over is None) or type(size) is not int or not 0 < size < LARGEST:
            got = f"over {shown(over)}, groups {shown(groups)} and size {shown(size)} in family {number}"
            raise ReleaseError(f"must have families of totals over axes or groups, of a positive size, got {got}")
        if over is not None:
            left = prod(shape_of(over, shape)) if type(over) is list else None
            if left != size:
                got = f"{size} over {shown(over)} in family {number}"
                raise ReleaseError(f"must have as many totals as cells that are left, got {got}")
        if labels is not None and type(labels) is not list:
            raise ReleaseError(f"must have labels of groups as a list, got {shown(labels)} in family {number}")


def array_shapes(meta: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The arrays of totals in a file."""
    found: dict[str, tuple[int, ...]] = {}
    for number, each in enumerate(meta.get("totals", ())):
        found[f"totals_{number}"] = (each["size"],)
        if each["groups"]:
            found[f"total_of_cell_{number}"] = (prod(shape),)
    return found


def arrays(totals: Sequence[ReleasedTotals]) -> dict[str, Any]:
    """What the arrays of ``array_shapes`` hold."""
    found: dict[str, Any] = {}
    for number, each in enumerate(totals):
        found[f"totals_{number}"] = encoded(each)
        if each.groups is not None:
            found[f"total_of_cell_{number}"] = each.groups
    return found


def encoded(totals: ReleasedTotals) -> list[int] | list[float]:
    """The values as a file holds them: exact ones with ``UNKNOWN``, reports as real numbers where some are absent."""
    if totals.mechanism is None:
        return [UNKNOWN if value is None else int(value) for value in totals.values]
    if getattr(totals.mechanism, "real", False) or None in totals.values:
        return [math.nan if value is None else float(value) for value in totals.values]
    return [int(value) for value in totals.values if value is not None]


def decoded(meta: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[ReleasedTotals, ...] | None:
    """The totals of a file, None without any; raises ReleaseError for a mechanism that is none."""
    return tuple(_family_of(n, each, values) for n, each in enumerate(meta.get("totals", ()))) or None


def _family_of(number: int, stated: Mapping[str, Any], values: Mapping[str, Any]) -> ReleasedTotals:
    try:
        mechanism = None if stated["mechanism"] is None else from_json(stated["mechanism"])
    except ValueError as error:
        raise ReleaseError(f"must state known mechanisms of totals: {error}") from error
    own = values[f"totals_{number}"]
    return ReleasedTotals(
        None if stated["over"] is None else tuple(stated["over"]),
        _exact_of(own) if mechanism is None else _reports_of(own),
        mechanism,
        values.get(f"total_of_cell_{number}"),
        None if stated["labels"] is None else tuple(stated["labels"]),
    )


def _exact_of(values: Any) -> tuple[int | None, ...]:
    return tuple(None if value == UNKNOWN else value for value in map(_plain, values))


def _reports_of(values: Any) -> tuple[int | float | None, ...]:
    return tuple(None if value != value else value for value in map(_plain, values))


def _plain(value: Any) -> Any:
    """A number of NumPy's as one of Python's."""
    return value.item() if hasattr(value, "item") else value


def family_in_words(n: int, over: Sequence[int] | None, mechanism: Mechanism | None) -> str:
    """How many totals a family has, what was done to them, and what they are sums over."""
    what = "exact total" if mechanism is None else "total"
    done = "" if mechanism is None else f" with {mechanism.in_words}"
    where = "groups of cells" if over is None else f"axis {' and '.join(map(str, over))}"
    return f"{n:,} {what}{'' if n == 1 else 's'}{done}, sum{'' if n == 1 else 's'} over {where}"


def in_words(totals: Sequence[ReleasedTotals] | None) -> str:
    """How many totals there are, and of what; empty where there are none."""
    if totals is None:
        return ""
    said = []
    for each in totals:
        known = sum(value is not None for value in each.values)
        text = family_in_words(known, each.over, each.mechanism)
        missing = len(each.values) - known
        hidden = each.mechanism is not None and getattr(each.mechanism, "absent", False)
        more = "hidden" if hidden else "not known"
        said.append(f"{text}{f' ({missing:,} more are {more})' if missing else ''}")
    exact = any(each.mechanism is None for each in totals)
    warned = " The mechanism of the counts does not protect exact totals." if exact else ""
    return f"Totals were published alongside them: {'; '.join(said)}.{warned} "
