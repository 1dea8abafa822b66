"""Two fits beside each other: which component of one is which of the other."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from countveil.inference.matching import LEAST_OVERLAP, overlap
from countveil.report.browse.listings import Along, Kind, short

BESIDE = 10  # members of each of two components that are shown beside each other


def check_comparable(first: list[Kind], second: list[Kind]) -> None:
    """Refuse fits whose components are of other kinds, or have no member in common.

    Raises:
        ValueError: such fits.
    """
    ours, theirs = ([(kind.part.one, kind.part.axes) for kind in each] for each in (first, second))
    if ours != theirs or not ours:
        one, other = (", ".join(name for name, _ in each) or "none" for each in (ours, theirs))
        raise ValueError(
            f"other must be a fit with components of the same kinds along the same axes, got {other} beside {one}"
        )
    for mine, its in zip(first, second, strict=True):
        for one_axis, other_axis in zip(mine.along, its.along, strict=True):
            if not set(one_axis.names) & set(other_axis.names):
                raise ValueError(
                    f"other must be a fit with some of the same labels along {one_axis.axis}, got none"
                )


def pairs_of(first: Kind, second: Kind) -> list[tuple[int, int, float]]:
    """(component, component of the other fit, overlap), by place, one to one, so that overlaps are largest together.

    overlap = sum_v min(p_v, q_v), the least of those along the axes; a member that one fit does not have is 0 there.
    """
    found = np.min(
        [overlap(*on_one_axis(one, other)) for one, other in zip(first.along, second.along, strict=True)],
        axis=0,
    )
    rows, columns = linear_sum_assignment(found, maximize=True)
    return [(int(i), int(j), float(found[i, j])) for i, j in zip(rows, columns, strict=True)]


def on_one_axis(one: Along, other: Along) -> tuple[np.ndarray, np.ndarray]:
    """(K, V), (L, V) means of two fits over the members of either."""
    places = {name: v for v, name in enumerate(dict.fromkeys([*one.names, *other.names]))}
    found = []
    for each in (one, other):
        wide = np.zeros((len(each.mean), len(places)))
        wide[:, [places[name] for name in each.names]] = each.mean
        found.append(wide / np.maximum(wide.sum(axis=1, keepdims=True), 1e-300))
    return found[0], found[1]


def needed(one: Kind, other: Kind, pairs: list[tuple[int, int]]) -> list[np.ndarray]:
    """For each axis (K, V) of one fit: what its counterpart in the other fit, by pairs of places, lists first."""
    found = []
    for mine, its in zip(one.along, other.along, strict=True):
        keep, places = np.zeros(mine.mean.shape, dtype=bool), {name: v for v, name in enumerate(mine.names)}
        for i, j in pairs:
            top = np.argsort(-its.mean[j], kind="stable")[:BESIDE]
            keep[i, [places[its.names[v]] for v in top if its.names[v] in places]] = True
        found.append(keep)
    return found


def compared(
    first: list[Kind], second: list[Kind]
) -> tuple[list[Any], list[list[np.ndarray]], list[list[np.ndarray]]]:
    """The pairs of every kind as the page has them, and what each of the two fits has to keep for them.

    Raises:
        ValueError: fits that cannot be compared.
    """
    check_comparable(first, second)
    pairs, ours, theirs = [], [], []
    for mine, its in zip(first, second, strict=True):
        found = pairs_of(mine, its)
        pairs.append([[i, j, *short([share]), share >= LEAST_OVERLAP] for i, j, share in found])
        ours.append(needed(mine, its, [(i, j) for i, j, _ in found]))
        theirs.append(needed(its, mine, [(j, i) for i, j, _ in found]))
    return pairs, ours, theirs
