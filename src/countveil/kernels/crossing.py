"""Counts of a table whose row and column sums are all known: moves along cycles of cells.

Cells that reports leave open are edges between their row and their column. Along a cycle of edges, +d and -d in turns
keep all sums, and d is drawn from its whole law given all else,

    P(d) proportional to prod_k w_k(y_k + s_k d),   w(y) = P(y | rate) P(report | y),   s_k = +1, -1, +1, ...

Which cycle is drawn does not look at counts: a rectangle of two rows and two columns, or the first cycle that a random
walk closes, so that every cycle without a repeated row or column has a positive probability. The difference of two
tables with the same sums is a sum of such cycles, each of which has the difference's sign in all its cells; hence
single moves lead from one to the other through tables whose counts lie between theirs, and any two tables are connected
if the counts that a report allows have no gap. Rows and columns with one open cell must have been left out.
Source of the sign-consistent cycles: Graver (1975), for matrices that are totally unimodular.
"""

import math

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.general import likelihood_at
from countveil.kernels.windows import WindowLaw, least_and_most, log_weight

RECTANGLES = 0.5  # of the moves: they are short, and all that a table without shown cells needs


@subroutine
def other_end(end_i, e, vertex):
    """The other vertex of an edge."""
    return end_i[e, 1] if end_i[e, 0] == vertex else end_i[e, 0]


@subroutine
def draw_rectangle(end_i, start_v, edge_e, rng, path):
    """The four edges of two rows and two columns into path; their number, or 0 where the last one is not there."""
    e = int(rng.random() * end_i.shape[0])
    row, column = end_i[e, 0], end_i[e, 1]
    beside = edge_e[start_v[row] + int(rng.random() * (start_v[row + 1] - start_v[row]))]
    below = edge_e[start_v[column] + int(rng.random() * (start_v[column + 1] - start_v[column]))]
    if beside == e or below == e:
        return 0
    wanted, a, b = end_i[beside, 1], start_v[end_i[below, 0]], start_v[end_i[below, 0] + 1]
    while a < b:
        middle = a + (b - a) // 2
        if end_i[edge_e[middle], 1] < wanted:
            a = middle + 1
        else:
            b = middle
    if a == start_v[end_i[below, 0] + 1] or end_i[edge_e[a], 1] != wanted:
        return 0
    path[0], path[1], path[2], path[3] = beside, e, below, edge_e[a]
    return 4


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


@subroutine
def draw_along(kernels, likelihood, cells, rate_i, edges, rng, count_i):
    """Counts of a cycle's cells given all others, in place."""
    row_i, column_i, code_i = cells
    low, high = -(1 << 62), 1 << 62
    for k in range(edges.size):
        i = edges[k]
        least, most = least_and_most(kernels, code_i[i])
        if k % 2 == 0:
            low, high = max(low, least - count_i[i]), min(high, most - count_i[i])
        else:
            low, high = max(low, count_i[i] - most), min(high, count_i[i] - least)
    largest, total, found = -math.inf, 0.0, 0
    for d in range(low, high + 1):
        log = 0.0
        for k in range(edges.size):
            i = edges[k]
            own = WindowLaw(kernels, likelihood_at(likelihood, row_i[i], column_i[i]))
            log += log_weight(own, code_i[i], count_i[i] + (d if k % 2 == 0 else -d), rate_i[i])
        if log > largest:
            total *= math.exp(largest - log)
            largest = log
        if log > -math.inf:
            weight = math.exp(log - largest)
            total += weight
            if rng.random() * total < weight:
                found = d
    for k in range(edges.size):
        count_i[edges[k]] += found if k % 2 == 0 else -found


@kernel
def sweep_crossing(kernels, likelihood, cells, rate_i, graph, rng, count_i):
    """As many moves as there are cells, in place; graph is (end_i, start_v, edge_e).

    end_i has the row and the column of every cell, numbered together; edge_e[start_v[v] : start_v[v + 1]] are the cells
    of row or column v, those of a row in the order of their columns; every v has two or more.
    """
    end_i, start_v, edge_e = graph
    path, place_v = np.empty(start_v.size + 4, dtype=np.int64), np.full(start_v.size - 1, -1)
    for _ in range(count_i.size):
        if rng.random() < RECTANGLES:
            begin, end = 0, draw_rectangle(end_i, start_v, edge_e, rng, path)
        else:
            begin, end = draw_cycle(end_i, start_v, edge_e, rng, path, place_v)
        if end > begin:
            draw_along(kernels, likelihood, cells, rate_i, path[begin:end], rng, count_i)
