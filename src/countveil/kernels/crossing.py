"""Cycles of cells whose row and column sums are all known, drawn at random.

Cells that reports leave open are edges between their row and their column. Along a cycle of edges, +d and -d in turns
keep all sums. A random walk draws the first cycle that it closes, so that every cycle without a repeated row or column
has a positive probability, whatever the counts are. The difference of two tables with the same sums is a sum of such
cycles, each of which has the difference's sign in all its cells; hence single moves lead from one to the other through
tables whose counts lie between theirs, and any two tables are connected if the counts that a report allows have no gap.
Rows and columns with one open cell must have been left out.
Source of the sign-consistent cycles: Graver (1975), for matrices that are totally unimodular.
"""

from countveil.kernels.compiled import subroutine


@subroutine
def other_end(end_i, e, vertex):
    """The other vertex of an edge."""
    return end_i[e, 1] if end_i[e, 0] == vertex else end_i[e, 0]


@subroutine
def draw_cycle(end_i, start_v, edge_e, rng, path, place_v):
    """(begin, end) in path of the first cycle that a walk closes that never turns back; place_v is -1 everywhere."""
    vertex = int(rng.random() * place_v.size)
    first, length, last = vertex, 0, -1
    while place_v[vertex] < 0:
        place_v[vertex] = length
        e = last
        while e == last:
            e = edge_e[start_v[vertex] + int(rng.random() * (start_v[vertex + 1] - start_v[vertex]))]
        path[length] = last = e
        length += 1
        vertex = other_end(end_i, e, vertex)
    begin = place_v[vertex]
    vertex = first
    for k in range(length):
        place_v[vertex] = -1
        vertex = other_end(end_i, path[k], vertex)
    return begin, length
