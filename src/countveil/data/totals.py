"""Totals over groups of counts, exact or reported, as they were published with reports of the counts themselves."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countveil.data.labels import Axis, in_order
from countveil.kernels.report_kernels import CONCAVE, GUESS, LEAST, MOST, PEAK, RATIO, UNBOUNDED, ReportKernels
from countveil.kernels.totals import SHORT, Graph, Moves, Sums, meet_bounds, meet_totals
from countveil.laws.noise.any_mechanism import UNBIASED, Said, all_said, kernels_of, said_by
from countveil.laws.noise.laws import law_of
from countveil.laws.noise.reading import numbers_of, read_reports
from countveil.privacy._text import listed
from countveil.privacy._totals import family_in_words
from countveil.privacy.mechanisms import Mechanism

NONE = -1
"""The number of the total of a cell that is in none."""
NAMED = 3  # totals in an error, before the number of further ones
LONGEST_SAID = 2000
"""Characters of the line on totals that files of fits state."""


class Totals(NamedTuple):
    """Families of sums of counts, exact or reported; no count is in two totals of one family."""

    groups: tuple[NDArray[np.int32], ...]
    """Of every family, the number of each cell's total or NONE, of the shape of the cells; totals of all families are
    numbered together."""
    kernel: ReportKernels  # total t has the code t + 1
    variance: NDArray[np.float64]  # (T,) of each total as an estimate of its sum, at most; NaN where it is biased
    mechanisms: tuple[Mechanism, ...] = ()  # of the families of reports
    said: str = ""  # every family in words; empty where some of the rows were taken

    def arranged(self, shape: Sequence[int], rows: tuple[int, ...], columns: tuple[int, ...]) -> "Totals":
        """The same for cells of this shape whose axes are put into rows and columns."""

        def turned(group: NDArray[np.int32]) -> NDArray[np.int32]:
            moved = group.reshape(shape).transpose(rows + columns)
            return moved.reshape(math.prod(shape[a] for a in rows), -1)

        return self._replace(groups=tuple(map(turned, self.groups)))

    def with_steps(
        self, shape: Sequence[int], axis: int, places: NDArray[Any], left_out: NDArray[np.bool_]
    ) -> "Totals":
        """The same for cells of this shape with other places along an axis; some of the cells are in no total."""

        def moved(group: NDArray[np.int32]) -> NDArray[np.int32]:
            there = np.where(left_out, NONE, group.reshape(shape).take(places, axis))
            return there.reshape(len(there), -1).astype(np.int32)

        return self._replace(groups=tuple(map(moved, self.groups)))

    def of_rows(self, rows: NDArray[Any]) -> "Totals":
        """Those of some rows. A total that loses a cell is unknown: it has none left, and may be any sum."""
        lost = np.zeros(self.size + 1, np.bool_)  # the last one stands for NONE
        for group in self.groups:
            whole, left = (np.bincount(each[each >= 0], minlength=self.size) for each in (group, group[rows]))
            lost[:-1] |= whole != left
        groups = tuple(np.where(lost[group[rows]], NONE, group[rows]).astype(np.int32) for group in self.groups)
        whole_cj = self.kernel.whole_cj.copy()
        whole_cj[1:][lost[:-1], LEAST], whole_cj[1:][lost[:-1], MOST] = 0, UNBOUNDED
        return self._replace(groups=groups, kernel=self.kernel._replace(whole_cj=whole_cj), said="")

    @property
    def size(self) -> int:
        """How many totals there are in all families."""
        return len(self.kernel.whole_cj) - 1

    @property
    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(least, most) of every total."""
        return self.kernel.whole_cj[1:, LEAST], self.kernel.whole_cj[1:, MOST]

    @property
    def in_words(self) -> str:
        """How many totals there are, and of which mechanisms."""
        noisy = ", ".join(each.in_words for each in self.mechanisms)
        return f"{self.size} totals" + (f", noisy ones with {noisy}" if noisy else "")

    @property
    def facts(self) -> dict[str, Any]:
        """What files of fits state: how many totals of which one value is possible, how many others, and which.

        Names of none are absent.
        """
        least, most = self.bounds
        there = np.unique(np.concatenate([[], *(group[group >= 0] for group in self.groups)])).astype(np.int64)
        exact = int((least[there] == most[there]).sum())
        found = {"exact_totals": exact, "noisy_totals": there.size - exact, "totals_used": self.said[:LONGEST_SAID]}
        return {name: number for name, number in found.items() if number}


NO_KERNELS = ReportKernels(
    np.zeros((1, 6), np.int64), np.zeros((1, 2)), np.zeros((0, 4), np.int64), np.zeros((0, 5)), np.empty(0)
)


def with_codes(kernel: ReportKernels, least: NDArray[Any], most: NDArray[Any]) -> ReportKernels:
    """The kernels, with more codes that only say between which counts a count lies."""
    whole, real = np.zeros((least.size, kernel.whole_cj.shape[1]), np.int64), np.zeros((least.size, 2))
    whole[:, LEAST], whole[:, MOST], whole[:, PEAK], whole[:, CONCAVE] = least, most, least, 1
    real[:, RATIO] = np.where(least > 0, np.nan, 1.0)
    real[:, GUESS] = least
    return kernel._replace(
        whole_cj=np.concatenate([kernel.whole_cj, whole]), real_cj=np.concatenate([kernel.real_cj, real])
    )


def read_totals(totals: Any, shape: tuple[int, ...], axes: Sequence[Axis] = ()) -> Totals:
    """The totals of a list of (axis or groups, values) or (axis or groups, values, "exact" or a mechanism).

    Raises:
        TypeError: no list of such tuples, or something that is no mechanism.
        ValueError: a mechanism whose kernel is not log-concave, and as ``exact_totals`` and ``reported_totals``.
    """
    families = [
        exact_totals(where, values, shape, axes)
        if mechanism is None
        else reported_totals(where, values, mechanism, shape, axes)
        for where, values, mechanism in families_given(totals)
    ]
    return together(families)


class Family(NamedTuple):
    """A family of totals by itself."""

    group: NDArray[np.int32]  # of every cell
    least: NDArray[np.int64]  # (T,) of exact totals: their values
    reports: Said | None  # of totals that were reported
    mechanism: Mechanism | None
    said: str  # in words

    @property
    def size(self) -> int:
        """How many totals there are."""
        return self.least.size


def together(families: Sequence[Family]) -> Totals:
    """The families, their totals numbered one after another, reported ones first."""
    noisy = [each for each in families if each.reports is not None]
    exact = [each for each in families if each.reports is None]
    kernel = NO_KERNELS
    if noisy:
        said = all_said([each.reports for each in noisy if each.reports is not None])
        kernel = kernels_of(said, np.arange(said.least.size)[:, None])
    for each in exact:
        kernel = with_codes(kernel, each.least, each.least)
    ordered = [*noisy, *exact]
    firsts = np.cumsum([0, *(each.size for each in ordered)])
    groups = tuple(
        np.where(each.group >= 0, each.group + first, NONE).astype(np.int32)
        for each, first in zip(ordered, firsts, strict=False)
    )
    variance = np.concatenate([variance_of(each) for each in ordered])
    mechanisms = tuple(each.mechanism for each in noisy if each.mechanism is not None)
    return Totals(groups, kernel, variance, mechanisms, "; ".join(each.said for each in families))


def in_words(where: Any, group: NDArray[Any], n_axes: int, mechanism: Mechanism | None) -> str:
    """A family in words."""
    known = np.count_nonzero(np.bincount(group.ravel() + 1)[1:])
    return family_in_words(int(known), None if is_groups(where) else axes_summed(where, n_axes), mechanism)


def families_given(totals: Any) -> list[tuple[Any, Any, Mechanism | None]]:
    """(axis or groups, values, mechanism) of every family, where None stands for exact totals; raises as below."""
    if not isinstance(totals, list | tuple) or not all(isinstance(each, list | tuple) for each in totals):
        raise TypeError(f"totals must be a list of (axis or groups, values), got {type(totals).__name__}")
    if not totals:
        raise ValueError("totals must have at least one family, got none")
    found: list[tuple[Any, Any, Mechanism | None]] = []
    for family in totals:
        if len(family) not in (2, 3):
            raise TypeError(f"totals must be pairs of axis or groups and values, got one of length {len(family)}")
        mechanism = family[2] if len(family) == 3 else "exact"
        if not isinstance(mechanism, Mechanism) and not (isinstance(mechanism, str) and mechanism == "exact"):
            raise TypeError(
                f'mechanism of totals must be "exact" or one of countveil.mechanisms, got {type(mechanism).__name__}'
            )
        found.append((family[0], family[1], mechanism if isinstance(mechanism, Mechanism) else None))
    return found


def is_groups(where: Any) -> bool:
    """Whether totals are over groups of cells, and not over an axis or a tuple of axes."""
    return np.ndim(where) > 0 and not isinstance(where, tuple)


def axes_summed(where: Any, n_axes: int) -> tuple[int, ...]:
    """The axes that are summed over, rising; raises ValueError for one that is none, or twice."""
    if any(np.asarray(axis).dtype == np.bool_ for axis in (where if isinstance(where, tuple) else (where,))):
        raise ValueError(f"axis of totals must be a whole number, got {where!r}")
    try:
        summed = np.lib.array_utils.normalize_axis_tuple(where, n_axes)
    except (np.exceptions.AxisError, TypeError, ValueError) as error:
        raise ValueError(f"axis of totals must be one of the {n_axes} axes, got {where!r}") from error
    return tuple(sorted(int(axis) for axis in summed))


def variance_of(family: Family) -> NDArray[np.float64]:
    """(T,) of totals as estimates of sums, 0 where only one sum is possible; NaN where they are biased."""
    if family.reports is None:
        return np.zeros(family.size)
    known = family.reports.least == family.reports.most
    return np.where(known | isinstance(family.mechanism, UNBIASED), family.reports.variance, np.nan)


def reported_totals(
    where: Any, values: Any, mechanism: Mechanism, shape: tuple[int, ...], axes: Sequence[Axis] = ()
) -> Family:
    """Reports of totals. NaN is a total without a report because of what it is where the mechanism has that.

    Elsewhere it is an unknown total, which says nothing.

    Raises:
        ValueError: as ``exact_totals``, reports that the mechanism cannot have made, and a mechanism whose kernel
            is not log-concave, since the sums it allows may have gaps.
    """
    refusal = f"mechanism of totals must have a log-concave kernel, got {mechanism.in_words}"
    if not law_of(mechanism).log_concave:
        raise ValueError(refusal)
    group, found = grouped(where, values, shape, axes, numbers_of)
    unknown = np.zeros(found.size, np.bool_) if getattr(mechanism, "absent", False) else np.isnan(found)
    reports = read_reports(found, mechanism, unknown)
    empty = np.bincount(group[group >= 0].ravel(), minlength=found.size)[: found.size] == 0
    check_of_no_cells(reports, mechanism, empty & ~unknown)
    said = said_by(mechanism, reports[~unknown])
    if not said.concave.all():
        raise ValueError(refusal)
    place = np.append(np.where(unknown, NONE, np.cumsum(~unknown) - 1), NONE)
    group = np.ascontiguousarray(place[group], dtype=np.int32)
    return Family(group, said.least, said, mechanism, in_words(where, group, len(shape), mechanism))


def check_of_no_cells(reports: NDArray[np.float64], mechanism: Mechanism, empty: NDArray[np.bool_]) -> None:
    """Refuse reports of sums of no counts that no 0 has; raises ValueError that names the first."""
    places = np.flatnonzero(empty)
    if not places.size:
        return
    log = law_of(mechanism).log_kernel(reports[places], np.zeros(places.size, np.int64))
    wrong = places[np.isneginf(log)]
    if wrong.size:
        raise ValueError(f"total {wrong[0]} must be a report of 0, since no cell is in it, got {reports[wrong[0]]:g}")


def exact_totals(where: Any, values: Any, shape: tuple[int, ...], axes: Sequence[Axis] = ()) -> Family:
    """The totals over an axis or several, or over groups; NaN where one is unknown, which then says nothing.

    Raises:
        ValueError: an axis that is none, values of another shape, negative or fractional ones, groups that are no index
            of the values, a positive total of no cells.
    """
    group, found = grouped(where, values, shape, axes, checked_values)
    unknown = np.append(np.isnan(found), False)
    if unknown.any():
        group = np.where(unknown[group], NONE, group)
    value = np.where(unknown[:-1], 0.0, found).astype(np.int64)
    empty = np.bincount(group[group >= 0].ravel(), minlength=value.size) == 0
    if (value[empty] > 0).any():
        g = int(np.flatnonzero(empty & (value > 0))[0])
        raise ValueError(f"total {g} must be 0, since no cell is in it, got {value[g]}")
    group = np.ascontiguousarray(group, dtype=np.int32)
    return Family(group, value, None, None, in_words(where, group, len(shape), None))


def grouped(
    where: Any, values: Any, shape: tuple[int, ...], axes: Sequence[Axis], read: Callable[[Any], NDArray[Any]]
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """(the number of each cell's total, the values of all totals in a row); ``read`` checks the values."""
    if not is_groups(where):
        summed = axes_summed(where, len(shape))
        left = [axis for axis in range(len(shape)) if axis not in summed]
        if axes and all(axis < len(axes) for axis in left):
            values = in_order("totals", values, [axes[axis] for axis in left]) if left else values
        found = read(values)
        kept = tuple(shape[axis] for axis in left)
        if found.shape != kept:
            raise ValueError(f"values of totals must have the shape {kept}, got {found.shape}")
        numbers = np.arange(found.size, dtype=np.int32)
        numbers = numbers.reshape([1 if a in summed else n for a, n in enumerate(shape)])
        return np.broadcast_to(numbers, shape), found.ravel()
    where = in_order("groups of totals", where, axes) if axes else where
    found, group = read(in_order_of_groups(values)), checked_groups(where, shape)
    if found.ndim != 1:
        raise ValueError(f"values of totals must have one axis if there are groups, got shape {found.shape}")
    outside = (group < NONE) | (group >= found.size)
    if outside.any():
        raise ValueError(f"groups of totals must be from -1 to {found.size - 1}, got {group[outside].flat[0]}")
    return group, found


def in_order_of_groups(values: Any) -> Any:
    """Totals as they are; raises ValueError for a Series that numbers them in another way than from 0 on."""
    if isinstance(values, pd.Series) and pd.api.types.is_integer_dtype(values.index.dtype):
        odd = np.flatnonzero(values.index.to_numpy() != np.arange(len(values)))
        if odd.size:
            raise ValueError(
                f"values of totals must be in the order of the groups' numbers, got {values.index[odd[0]]} at place "
                f"{odd[0]}"
            )
    return values


def checked_values(values: Any) -> NDArray[np.float64]:
    """Totals as floats; raises ValueError for values that no total has."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"values of totals must be whole numbers or NaN, got {type(values).__name__}") from error
    seen = found[~np.isnan(found)]
    if (seen < 0).any():
        raise ValueError(f"values of totals must be non-negative, got {seen.min():g}")
    whole = np.isfinite(seen) & (seen == np.floor(seen)) & (seen < 2.0**53)
    if not whole.all():
        raise ValueError(f"values of totals must be whole numbers below 2^53, or NaN, got {seen[~whole][0]:g}")
    return found


def checked_groups(groups: Any, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Groups as whole numbers; raises ValueError for others, or another shape."""
    found = np.asarray(groups)
    if found.shape != shape:
        raise ValueError(f"groups of totals must have the shape {shape}, got {found.shape}")
    whole = found.dtype.kind == "f" and (np.isfinite(found) & (found == np.floor(found))).all()
    if found.dtype.kind not in "iu" and not whole:
        said = "others" if found.dtype.kind == "f" else f"type {found.dtype}"
        raise ValueError(f"groups of totals must be whole numbers, got {said}")
    return found.astype(np.int64)


def refuse_totals(data: Any) -> None:
    """Raises ValueError for data with totals, where laws of single counts would ignore them."""
    if data is not None and data.totals is not None:
        raise ValueError(
            "X must have no totals, because these laws describe single counts: use counts_table or predict_counts"
        )


# Which cells can move together, and counts that all totals allow.
#
# Two sides hold nested families each: counties and states on one, ages on the other. A cell joins the finest
# total that it is in on each side, or what is outside of all; a total that may vary joins the next coarser
# one. Counts within bounds are then flows in a graph (Edmonds 1970: two nested families are totally
# unimodular): whole ones meet all totals if any do and cycles lead from any counts to any
# others (``kernels.totals``). Families that fit on no side must be reports that any sum can have.

Whole = NDArray[np.int64]


class Overlap(NamedTuple):
    """Totals as sweeps use them, for the n cells that their reports leave open."""

    member_fi: Whole  # (F, n)
    fixed_t: Whole  # (T,) the sum of the cells that are not open
    totals: Totals
    sides: tuple[tuple[int, ...], ...]  # two of them: the families of each, finest first
    moves: Moves
    graph: Graph  # edges are totals, then cells; the last vertex is what is outside of all
    apart: bool  # whether no cell is in two runs of pairs, and no pair changes a sum


def overlap_of(
    totals: Totals, groups: Sequence[Whole], is_open: NDArray[np.bool_], kernels: ReportKernels, code: Whole
) -> Overlap:
    """Groups are those of all families at the n cells whose reports have these codes; raises ValueError."""
    least_t, most_t = totals.bounds
    fixed = np.zeros(least_t.size, dtype=np.int64)
    for group in groups:
        there = (group >= 0) & ~is_open
        np.add.at(fixed, group[there], kernels.whole_cj[code[there], LEAST])
    member = np.array([group[is_open] for group in groups], dtype=np.int64).reshape(len(groups), -1)
    sides = sides_of(member, (least_t > 0) | (most_t < UNBOUNDED))
    joined, parents = zip(*(ends_of(member, side, least_t.size) for side in sides), strict=True)
    side, exact = np.stack(joined, axis=1), least_t == most_t
    moves = moves_of(member, exact, side, parents)
    return Overlap(member, fixed, totals, sides, moves, flows_of(side, parents), runs_apart(member, moves))


def runs_apart(member_fi: Whole, moves: Moves) -> bool:
    """Whether no cell is in two runs of pairs, and neighbours in a run are in the same totals."""
    alike = (member_fi[:, moves.pair_e[1:]] == member_fi[:, moves.pair_e[:-1]]).all(axis=0)
    alike[moves.start_p[1:-1] - 1] = True  # from the end of a run to the next one
    return bool(alike.all() and np.bincount(moves.pair_e, minlength=1).max() <= 1)


def bounded_of(overlap: Overlap, f: int) -> NDArray[np.bool_]:
    """(n,) which cells are in a total of this family that not every sum is possible for."""
    least, most = overlap.totals.bounds
    bounded = np.append((least > 0) | (most < UNBOUNDED), False)
    return bounded[overlap.member_fi[f]]


def is_nested(fine: Whole, coarse: Whole) -> bool:
    """Whether every total of the first family lies in one of the second, or in none."""
    inside = fine >= 0
    pairs = np.unique(np.stack([fine[inside], coarse[inside]]), axis=1)
    return bool(np.unique(pairs[0]).size == pairs.shape[1])


def sides_of(member_fi: Whole, bounded_t: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """The families of two sides, finest first.

    Raises:
        ValueError: a family that fits on neither, and has totals that not every sum is possible for.
    """
    sizes = [np.unique(member[member >= 0]).size for member in member_fi]
    sides: list[list[int]] = [[], []]
    for f in sorted(range(len(sizes)), key=lambda f: (-sizes[f], f)):
        own = member_fi[f]
        for side in sides:
            at = next((a for a, h in enumerate(side) if is_nested(own, member_fi[h])), len(side))
            finer, coarser = side[:at], side[at:]
            if all(is_nested(member_fi[h], own) for h in finer) and all(is_nested(own, member_fi[h]) for h in coarser):
                side.insert(at, f)
                break
        else:
            if bounded_t[own[own >= 0]].any():
                raise ValueError(
                    "totals must belong to two hierarchies, such as counties in states and ages in age groups, unless "
                    "every sum can have these reports; got a family that crosses two others"
                )
    return tuple(sides[0]), tuple(sides[1])


def moves_of(member_fi: Whole, exact_t: NDArray[np.bool_], side: Whole, parents: Sequence[Whole]) -> Moves:
    """Which cells move together: two cells if all exact totals that one of them is in are those of the other."""
    exact = np.append(exact_t, False)
    known = np.where(exact[member_fi], member_fi, NONE)
    in_exact = (known != NONE).any(axis=0)
    pairs, starts = [np.empty(0, np.int64)], [0]
    for label in (np.where(in_exact, numbered(known), NONE), *np.where(in_exact, NONE, member_fi)):
        inside = np.flatnonzero(label >= 0)
        order = inside[np.argsort(label[inside], kind="stable")]
        ends = np.flatnonzero(np.diff(label[order], append=-2)) + 1
        starts += list(ends + sum(map(len, pairs)))
        pairs.append(order)
    outside = exact_t.size
    crosses = bool((side < outside).any(axis=0).all())
    order = np.stack([np.lexsort((side[:, 1 - s], side[:, s])) for s in (0, 1)])
    places = np.arange(outside + 2)
    start = np.stack([np.searchsorted(side[order[s], s], places) for s in (0, 1)])
    graph = graph_of(side, parents, exact_t) if crosses else NO_GRAPH
    return Moves(
        np.flatnonzero(~in_exact), np.concatenate(pairs), np.array(starts, dtype=np.int64),
        np.ascontiguousarray(side), np.ascontiguousarray(order), start.astype(np.int64), *graph,
    )  # fmt: skip


def numbered(columns: Whole) -> Whole:
    """(n,) equal numbers of equal columns (F, n), in the order of the columns."""
    order = np.lexsort(columns[::-1])
    new = (np.diff(columns[:, order], axis=1) != 0).any(axis=0)
    found = np.empty(columns.shape[1], dtype=np.int64)
    found[order] = np.concatenate([np.zeros(min(1, order.size), np.int64), np.cumsum(new)])
    return found


def ends_of(member_fi: Whole, side: Sequence[int], outside: int) -> tuple[Whole, Whole]:
    """((n,) the finest total of every cell on this side, (T,) the next coarser one of its totals, NONE of others)."""
    end = np.full(member_fi.shape[1], outside)
    parent = np.full(outside, NONE)
    for f in reversed(side):
        inside = member_fi[f] >= 0
        parent[member_fi[f][inside]] = end[inside]
        end = np.where(inside, member_fi[f], end)
    return end, parent


def flows_of(side: Whole, parents: Sequence[Whole]) -> Graph:
    """The graph in which counts that totals allow are flows: from outside down one side, and up the other."""
    outside = len(parents[0])
    end = np.full((outside, 2), outside)
    for parent, down in zip(parents, (0, 1), strict=True):
        t = np.flatnonzero(parent != NONE)
        end[t, down], end[t, 1 - down] = parent[t], t
    end = np.concatenate([end, side])
    owner = end.T.ravel()
    order = np.argsort(owner, kind="stable")
    start = np.searchsorted(owner[order], np.arange(outside + 2))
    return Graph(end.astype(np.int64), start.astype(np.int64), (order % len(end)).astype(np.int64))


Cycles = tuple[Whole, Whole, Whole, Whole]
NO_GRAPH: Cycles = (np.empty((0, 2), np.int64), np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def graph_of(side: Whole, parents: Sequence[Whole], exact_t: NDArray[np.bool_]) -> Cycles:
    """(end_e, start_v, edge_e, cell_e) without the edges that are in no cycle because a vertex has no other one."""
    outside = exact_t.size
    varying = [np.flatnonzero((parent != NONE) & ~exact_t) for parent in parents]
    ends = [side, *(np.stack([t, parent[t]], axis=1) for t, parent in zip(varying, parents, strict=True))]
    cell = np.concatenate([np.arange(len(side)), np.full(sum(map(len, varying)), NONE)])
    end = np.concatenate(ends)
    kept = end[:, 0] != end[:, 1]
    while True:
        degree = np.bincount(end[kept].ravel(), minlength=outside + 1)
        fewer = kept & (degree[end] > 1).all(axis=1)
        if (fewer == kept).all():
            break
        kept = fewer
    end, cell = end[kept], cell[kept]
    if not len(end):
        return NO_GRAPH
    vertex, numbered = np.unique(end, return_inverse=True)
    end = numbered.reshape(end.shape).astype(np.int64)
    owner = end.T.ravel()
    order = np.argsort(owner, kind="stable")
    start = np.searchsorted(owner[order], np.arange(vertex.size + 1))
    return end, start.astype(np.int64), (order % len(end)).astype(np.int64), cell.astype(np.int64)


def sums_of(overlap: Overlap, counts: Whole) -> Sums:
    """The current sums, with scratch."""
    value = overlap.fixed_t.copy()
    for member in overlap.member_fi:
        inside = member >= 0
        np.add.at(value, member[inside], counts[inside])
    most = (overlap.moves.start_v.size + 4) * len(overlap.member_fi)
    return Sums(
        overlap.totals.kernel, overlap.member_fi, value, np.zeros_like(value), np.empty((most, 2), np.int64),
        np.empty(SHORT),
    )  # fmt: skip


NamedAxes = Sequence[tuple[str, Sequence[Any]]]
"""The name of every axis, and its labels or numbers."""


def moved_within(overlap: Overlap, kernels: ReportKernels, code: Whole, counts: Whole, axes: NamedAxes = ()) -> Whole:
    """Counts that their reports allow, changed until all totals allow them: evenly, then along paths of cells.

    Raises:
        ValueError: totals allow no counts; by ``axes`` it names some that cannot all be right.
    """
    counts, (least, most) = counts.copy(), overlap.totals.bounds
    for side in overlap.sides:
        for f in side:
            cells = np.flatnonzero(bounded_of(overlap, f))
            if not cells.size:
                continue
            cells = cells[np.argsort(overlap.member_fi[f][cells], kind="stable")]
            number, begin = np.unique(overlap.member_fi[f][cells], return_index=True)
            value = sums_of(overlap, counts).value_t[number]
            wanted = np.clip(value, least[number], most[number]) - overlap.fixed_t[number]
            found = counts[cells]
            meet_totals(kernels, code[cells], np.append(begin, cells.size), wanted, found)
            counts[cells] = found
    fixed = overlap.fixed_t
    low = np.concatenate([least - fixed, kernels.whole_cj[code, LEAST]])
    high = np.concatenate([most - fixed, kernels.whole_cj[code, MOST]])
    flow = np.concatenate([sums_of(overlap, counts).value_t - fixed, counts])
    if not meet_bounds(overlap.graph, low, high, flow):
        conflict = conflict_in_words(overlap.totals, *conflict_of(overlap.graph, low, high, flow), axes)
        raise ValueError(
            f"totals must agree with each other and with the reports, got totals that no counts have: {conflict}. "
            "Correct one of them, or leave it out"
        )
    return flow[fixed.size :]


def conflict_of(graph: Graph, low: Whole, high: Whole, flow: Whole) -> tuple[Whole, Whole]:
    """Totals that are too large for others, and the others, when ``meet_bounds`` has failed with this flow.

    What no path reaches from the edge that failed is cut off: all that enters is at its least, all that leaves at its
    most, and the least of the one is more than the most of the other (Hoffman 1960).
    """
    end, outside = graph.end_e, graph.start_v.size - 2
    failed = int(np.flatnonzero((flow < low)[:outside] | (flow > high)[:outside])[0])
    reached = np.zeros(outside + 1, np.bool_)
    reached[end[failed, int(flow[failed] < low[failed])]] = True
    size = 0
    while size < reached.sum():
        size = int(reached.sum())
        reached[end[(flow < high) & reached[end[:, 0]], 1]] = True
        reached[end[(flow > low) & reached[end[:, 1]], 0]] = True
    first, last = reached[end[:outside]].T
    return np.flatnonzero(last & ~first), np.flatnonzero(first & ~last)


def conflict_in_words(totals: Totals, large: Whole, small: Whole, axes: NamedAxes) -> str:
    """Which totals add up to too much, and which to too little."""
    sign = np.zeros(totals.size + 1, np.int64)  # the last one stands for NONE
    sign[large], sign[small] = 1, -1
    same_cells = not np.sum([sign[group] for group in totals.groups], axis=0).any()
    least, most = totals.bounds
    parts = [in_sum(totals, of, least, most, axes) for of in (large[least[large] > 0], small) if of.size]
    why = "of the same cells" if same_cells else "and the cells in only one of these sums cannot make up for it"
    return f"{', but '.join(parts)}, {why}"


def in_sum(totals: Totals, chosen: Whole, least: Whole, most: Whole, axes: NamedAxes) -> str:
    """Some totals by name, and their sum."""
    named = [
        cells_in_words(np.flatnonzero(group.ravel() == t), axes)
        for t in chosen[:NAMED]
        for group in totals.groups
        if (group == t).any()
    ]
    more = [f"{chosen.size - NAMED} more"] if chosen.size > NAMED else []
    verb = "totals {} add up to" if chosen.size > 1 else "total {} is"
    total = words(float(least[chosen].sum()), float(most[chosen].astype(float).sum()))
    return f"the {verb.format('of ' + listed([*named, *more]))} {total}"


def near_reports(kernels: ReportKernels, code: Whole) -> Whole:
    """Counts as near to the estimates that reports give as they allow."""
    guess = np.nan_to_num(kernels.real_cj[code, GUESS], nan=0.0, posinf=0.0)
    return np.round(np.clip(guess, kernels.whole_cj[code, LEAST], kernels.whole_cj[code, MOST])).astype(np.int64)


def check_possible(
    totals: Totals,
    place: Any,
    kernels: ReportKernels,
    code: Whole,
    masked: NDArray[np.bool_] | bool = False,
    axes: NamedAxes = (),
) -> None:
    """Refuse totals that counts in these places, with these codes, cannot have together; raises ValueError.

    ``axes`` are the names and labels by which an error names a total.
    """
    open_code = len(kernels.whole_cj)
    kernels = with_codes(kernels, np.array([0]), np.array([UNBOUNDED]))
    code = np.where(masked, open_code, code).astype(np.int64)
    least, most = kernels.whole_cj[code, LEAST], kernels.whole_cj[code, MOST]
    groups = [group[place].astype(np.int64) for group in totals.groups]
    check_each_possible(totals, groups, least.astype(float), most.astype(float), axes)
    if len(groups) < 2:
        return  # totals that no other one crosses are possible together if each of them is
    within = np.any([group >= 0 for group in groups], axis=0)
    groups = [group[within] for group in groups]
    is_open, code = (least < most)[within], code[within]
    overlap = overlap_of(totals, groups, is_open, kernels, code)
    moved_within(overlap, kernels, code[is_open], near_reports(kernels, code[is_open]), axes)


def check_each_possible(totals: Totals, groups: Sequence[Whole], low: Any, high: Any, axes: NamedAxes) -> None:
    """Refuse totals that their cells, between low and high each, cannot add up to; raises ValueError."""
    least_t, most_t = totals.bounds
    for whole, group in zip(totals.groups, groups, strict=True):
        inside, known = group >= 0, np.bincount(whole.ravel() + 1, minlength=totals.size + 1)[1:] > 0
        least, most = (np.bincount(group[inside], each[inside], totals.size) for each in (low, high))
        wrong = np.flatnonzero(known & ((most_t < least) | (least_t > most)))
        if wrong.size:
            t = wrong[0]
            of_cells = cells_in_words(np.flatnonzero(whole.ravel() == t), axes)
            raise ValueError(
                "totals must be possible with the reports of their cells, got one "
                f"{words(least_t[t], most_t[t], 'of ')} from cells that add up to {words(least[t], most[t])}, the "
                f"total of {of_cells}: correct it, or leave it out"
            )


def cells_in_words(cells: Whole, axes: NamedAxes) -> str:
    """The cells of a total, by the labels that all of them have, or else by the first cell."""
    sizes = [len(labels) for _, labels in axes]
    if axes and cells.size == math.prod(sizes):
        return "all cells"
    places = np.unravel_index(cells, sizes) if sizes else ()
    named = [
        (f"{name} {labels[along[0]]!r:.60}", bool((along == along[0]).all()))
        for (name, labels), along in zip(axes, places, strict=True)
    ]
    shared = [words for words, is_shared in named if is_shared]
    first = ", ".join(words for words, _ in named) or f"cell {cells[0]}"
    return ", ".join(shared) or f"{cells.size} cells, the first of them in {first}"


def words(low: float, high: float, before: str = "") -> str:
    """A range of counts, with a word before its one end."""
    if low == high:
        return f"{before}{low:.0f}"
    return f"{before}{low:.0f} or more" if high >= 2.0**60 else f"between {low:.0f} and {high:.0f}"
