"""Totals that overlap, exact or reported: which cells can move together, and counts that all of them allow.

Two sides hold nested families each: counties and states on one, ages on the other. A cell joins the finest total that
it is in on each side, or what is outside of all; a total that may vary joins the next coarser one. Counts within bounds
are then flows in a graph (Edmonds 1970: two nested families are totally unimodular): whole ones meet all totals if any
do (``kernels.flows``), and cycles lead from any counts to any others (``kernels.overlapping``). Families that fit on no
side must be reports that any sum can have.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countveil.data.totals import NONE, Totals, with_codes
from countveil.kernels.flows import Graph, meet_bounds
from countveil.kernels.overlapping import SHORT, Plan, Sums
from countveil.kernels.report_kernels import GUESS, LEAST, MOST, UNBOUNDED, ReportKernels
from countveil.kernels.totals import meet_totals

Whole = NDArray[np.int64]


class Overlap(NamedTuple):
    """Totals as sweeps use them, for the n cells that their reports leave open."""

    member_fi: Whole  # (F, n)
    fixed_t: Whole  # (T,) the sum of the cells that are not open
    kernel: ReportKernels  # of the totals
    sides: tuple[tuple[int, ...], ...]  # two of them: the families of each, finest first
    plan: Plan
    graph: Graph  # edges are totals, then cells; the last vertex is what is outside of all

    @property
    def bounds(self) -> tuple[Whole, Whole]:
        """(least, most) of every total."""
        return self.kernel.whole_cj[1:, LEAST], self.kernel.whole_cj[1:, MOST]


def overlap_of(
    totals: Totals, groups: Sequence[Whole], is_open: NDArray[np.bool_], kernels: ReportKernels, code: Whole
) -> Overlap:
    """Groups are those of all families at the n cells whose reports have these codes; raises ValueError."""
    kernel = totals.kernel
    least_t, most_t = kernel.whole_cj[1:, LEAST], kernel.whole_cj[1:, MOST]
    fixed = np.zeros(least_t.size, dtype=np.int64)
    for group in groups:
        there = (group >= 0) & ~is_open
        np.add.at(fixed, group[there], kernels.whole_cj[code[there], LEAST])
    member = np.array([group[is_open] for group in groups], dtype=np.int64).reshape(len(groups), -1)
    sides = sides_of(member, (least_t > 0) | (most_t < UNBOUNDED))
    joined, parents = zip(*(ends_of(member, side, least_t.size) for side in sides), strict=True)
    side, exact = np.stack(joined, axis=1), least_t == most_t
    return Overlap(
        member, fixed, kernel, sides, plan_of(member, exact, side, parents), flows_of(side, parents)
    )


def bounded_of(overlap: Overlap, f: int) -> NDArray[np.bool_]:
    """(n,) which cells are in a total of this family that not every sum is possible for."""
    least, most = overlap.bounds
    member = overlap.member_fi[f]
    bounded = np.append((least > 0) | (most < UNBOUNDED), False)
    return bounded[member]


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
            if all(is_nested(member_fi[h], own) for h in finer) and all(
                is_nested(own, member_fi[h]) for h in coarser
            ):
                side.insert(at, f)
                break
        else:
            if bounded_t[own[own >= 0]].any():
                raise ValueError(
                    "totals must be of families that are nested on two sides, such as counties and states, and ages, "
                    "unless they are reports that any sum can have; got a family that crosses two others"
                )
    return tuple(sides[0]), tuple(sides[1])


def plan_of(member_fi: Whole, exact_t: NDArray[np.bool_], side: Whole, parents: Sequence[Whole]) -> Plan:
    """Which cells move together: two cells if all exact totals that one of them is in are those of the other."""
    exact = np.append(exact_t, False)
    known = np.where(exact[member_fi], member_fi, NONE)
    in_exact = (known != NONE).any(axis=0)
    pairs, starts = [np.empty(0, np.int64)], [0]
    _, alike = np.unique(known, axis=1, return_inverse=True)
    for label in (np.where(in_exact, alike.reshape(-1), NONE), *np.where(in_exact, NONE, member_fi)):
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
    return Plan(
        np.flatnonzero(~in_exact), np.concatenate(pairs), np.array(starts, dtype=np.int64),
        np.ascontiguousarray(side), np.ascontiguousarray(order), start.astype(np.int64), *graph,
    )  # fmt: skip


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
NO_GRAPH: Cycles = (
    np.empty((0, 2), np.int64),
    np.zeros(1, np.int64),
    np.empty(0, np.int64),
    np.empty(0, np.int64),
)


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
    most = (overlap.plan.start_v.size + 4) * len(overlap.member_fi)
    return Sums(
        overlap.kernel, overlap.member_fi, value, np.zeros_like(value), np.empty((most, 2), np.int64),
        np.empty(SHORT),
    )  # fmt: skip


def moved_within(overlap: Overlap, kernels: ReportKernels, code: Whole, counts: Whole) -> Whole:
    """Counts that their reports allow, changed until all totals allow them: evenly, then along paths of cells.

    Raises:
        ValueError: totals allow no counts.
    """
    counts, (least, most) = counts.copy(), overlap.bounds
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
        raise ValueError("totals must be possible together, with all reports, got ones that no counts have")
    return flow[fixed.size :]


def near_reports(kernels: ReportKernels, code: Whole) -> Whole:
    """Counts as near to the estimates that reports give as they allow."""
    guess = np.nan_to_num(kernels.real_cj[code, GUESS], nan=0.0, posinf=0.0)
    return np.round(np.clip(guess, kernels.whole_cj[code, LEAST], kernels.whole_cj[code, MOST])).astype(
        np.int64
    )


def check_overlap(
    totals: Totals, place: Any, kernels: ReportKernels, code: Whole, masked: NDArray[np.bool_]
) -> None:
    """Refuse totals that counts in these places, with these codes, cannot have together; raises ValueError."""
    if totals.beside is None:
        return
    open_code = len(kernels.whole_cj)
    kernels = with_codes(kernels, np.array([0]), np.array([UNBOUNDED]))
    code = np.where(masked, open_code, code).astype(np.int64)
    least, most = kernels.whole_cj[code, LEAST], kernels.whole_cj[code, MOST]
    groups = [group[place].astype(np.int64) for group in totals.families]
    check_each_possible(totals.kernel, groups, least.astype(float), most.astype(float))
    within = np.any([group >= 0 for group in groups], axis=0)
    groups = [group[within] for group in groups]
    is_open, code = (least < most)[within], code[within]
    overlap = overlap_of(totals, groups, is_open, kernels, code)
    moved_within(overlap, kernels, code[is_open], near_reports(kernels, code[is_open]))


def check_each_possible(kernel: ReportKernels, groups: Sequence[Whole], low: Any, high: Any) -> None:
    """Refuse totals that their cells, between low and high each, cannot add up to; raises ValueError."""
    for group in groups:
        number, place = np.unique(group, return_inverse=True)
        least, most = (np.bincount(place.reshape(-1), bound) for bound in (low, high))
        own = number >= 0
        said_least, said_most = (kernel.whole_cj[number[own] + 1, at] for at in (LEAST, MOST))
        wrong = np.flatnonzero((said_most < least[own]) | (said_least > most[own]))
        if wrong.size:
            g, places = wrong[0], np.flatnonzero(own)
            raise ValueError(
                "totals must be possible beside the reports of their cells, got one "
                f"{words(said_least[g], said_most[g], 'of ')} from cells that add up to "
                f"{words(least[places[g]], most[places[g]])}"
            )


def words(low: float, high: float, before: str = "") -> str:
    """A range of counts, with a word before its one end."""
    if low == high:
        return f"{before}{low:.0f}"
    return f"{before}{low:.0f} or more" if high >= 2.0**60 else f"between {low:.0f} and {high:.0f}"
