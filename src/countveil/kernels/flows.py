"""Whole flows in a graph, changed until the flow of every edge lies within its bounds.

What comes into a vertex goes out of it. An edge whose flow is too large or too small is closed into a cycle by a
shortest path on which no edge leaves its bounds, or goes further beyond them, and as much as the cycle takes is moved
around it. Where there is no such path no flow lies within all bounds, since a cut cannot carry what it has to (Hoffman
1960). Source of the method: Fulkerson (1961), without costs.
"""

from typing import Any, NamedTuple

import numpy as np

from countveil.kernels.compiled import kernel, subroutine


class Graph(NamedTuple):
    """Edges and their vertices; edge v is that of vertex v, for all vertices but the last."""

    end_e: Any  # (E, 2) the vertices that it leads from and to
    start_v: Any  # where the edges of a vertex begin
    edge_e: Any


@subroutine
def room(low_e, high_e, flow_e, e, more):
    """By how much the flow of an edge can become more, or less, without leaving its bounds."""
    return max(high_e[e] - flow_e[e], 0) if more else max(flow_e[e] - low_e[e], 0)


@subroutine
def find_path(graph, low_e, high_e, flow_e, ends, forward, search, scratch):
    """Whether there is a path between two vertices, from the first or, where not forward, to it; edges in scratch."""
    seen_v, queue, edge_v = scratch
    first, wanted = ends
    seen_v[first], queue[0] = search, first
    begin, end = 0, 1
    while begin < end:
        vertex = queue[begin]
        begin += 1
        for k in range(graph.start_v[vertex], graph.start_v[vertex + 1]):
            e = graph.edge_e[k]
            leaves = graph.end_e[e, 0] == vertex
            other = graph.end_e[e, 1] if leaves else graph.end_e[e, 0]
            if seen_v[other] == search or room(low_e, high_e, flow_e, e, leaves == forward) == 0:
                continue
            seen_v[other], edge_v[other], queue[end] = search, e, other
            end += 1
            if other == wanted:
                return True
            if other < seen_v.size - 1:  # its own edge may lead there at once
                leaves = graph.end_e[other, 0] == other
                beyond = graph.end_e[other, 1] if leaves else graph.end_e[other, 0]
                if beyond == wanted and room(low_e, high_e, flow_e, other, leaves == forward) > 0:
                    edge_v[wanted] = other
                    return True
    return False


@subroutine
def move_along(graph, low_e, high_e, flow_e, ends, forward, most, edge_v):
    """Move as much along the path as it takes, ``most`` at most, in place; returns how much."""
    first, wanted = ends
    step = most
    for applied in range(2):
        vertex = wanted
        while vertex != first:
            e = edge_v[vertex]
            enters = graph.end_e[e, 1] == vertex
            if applied:
                flow_e[e] += step if enters == forward else -step
            else:
                step = min(step, room(low_e, high_e, flow_e, e, enters == forward))
            vertex = graph.end_e[e, 0] if enters else graph.end_e[e, 1]
    return step


@kernel
def meet_bounds(graph, low_e, high_e, flow_e):
    """Change a flow until the edges of vertices, and all that were before, lie within their bounds, in place.

    Returns whether that is possible.
    """
    n_vertices = graph.start_v.size - 1
    seen_v, queue = np.full(n_vertices, -1), np.empty(n_vertices, dtype=np.int64)
    edge_v, search = np.empty(n_vertices, dtype=np.int64), 0
    for v in range(n_vertices - 1):
        outward = graph.end_e[v, 0] == v
        ends = v, graph.end_e[v, 1] if outward else graph.end_e[v, 0]
        while not low_e[v] <= flow_e[v] <= high_e[v]:
            above = flow_e[v] > high_e[v]
            missing = flow_e[v] - high_e[v] if above else low_e[v] - flow_e[v]
            forward = outward == above
            if not find_path(graph, low_e, high_e, flow_e, ends, forward, search, (seen_v, queue, edge_v)):
                return False
            search += 1
            step = move_along(graph, low_e, high_e, flow_e, ends, forward, missing, edge_v)
            flow_e[v] += -step if above else step
    return True
