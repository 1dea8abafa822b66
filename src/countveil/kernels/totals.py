"""Counts whose sums are known or reported: sweeps that leave the law of all counts as it is.

P(y) proportional to prod_i w_i(y_i) prod_t P(report_t | sum of y_i over i in t),   w(y) = P(y | rate) P(report | y)

A known sum is one that a single value is possible for (mathematics, section 14). Sums may overlap. A move changes some
cells i by s_i d, s_i = +1 or -1, and d is drawn given all else. Which cells it changes does not look at counts.

Pairs. Neighbours in a random order of the cells of a sum move by +d and -d. Where no sum changes, y_i + y_j = n is
fixed, and y_i is drawn from its whole law, proportional to w_i(y_i) w_j(n - y_i), by ratios of its weights. Where both
weights are log-concave so is their product, and only the counts around its mode are added up; otherwise all possible
ones are. If no two sums overlap, pairs alone connect any two tables, as long as the counts that a report allows have no
gap.

Other moves. Cells in no known sum move one by one. Where sums cross, cells move along rectangles and cycles of a graph,
whose vertices are the sums, and one more for what is outside; a cell joins the finest sums that it is in, and a sum
that may vary joins the next coarser one. Along a cycle nothing changes but the cells and the sums on it. A random walk
draws the first cycle that it closes, so that every cycle without a repeated vertex has a positive probability, whatever
the counts are. The difference of two tables with the same sums is a sum of such cycles, each with the difference's sign
in all its cells; hence single moves lead from one to the other through tables whose counts lie between theirs. Vertices
with one edge must have been left out. d is drawn from its whole law if it may have few values, and otherwise by slice
sampling, with intervals that step out and shrink.

Starts. Counts within bounds of sums are whole flows in the graph, changed until the flow of every edge lies within its
bounds: an edge whose flow is too large or too small is closed into a cycle by a shortest path on which no edge leaves
its bounds, or goes further beyond them. Where there is no such path no flow lies within all bounds, since a cut cannot
carry what it has to (Hoffman 1960).

Sources: of the slice sampler, Neal (2003), section 4, which leaves any law on whole numbers as it is; of cycles with
one sign, Graver (1975), for matrices that are totally unimodular, as sums of two nested families are; of the flows,
Fulkerson (1961), without costs.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.general import likelihood_at, log_kernel
from countveil.kernels.gibbs import inner
from countveil.kernels.random import SMALLEST
from countveil.kernels.report_kernels import (
    CONSTANT,
    FIRST,
    FLAT,
    KIND,
    LAST,
    LEAST,
    MOST,
    PEAK,
    RATIO,
    SCALE,
    TABLE,
    VALUE,
    SmoothKernel,
)
from countveil.kernels.windows import (
    NEGLIGIBLE,
    WindowLaw,
    draw_cell,
    has_one_mode,
    is_log_concave,
    least_and_most,
    log_weight,
    mean_count,
    step_up,
)

SHORT = 32  # where a count lies in so few, all are added up
RECTANGLES = 0.9, 0.5
"""The share of rectangles among moves where sums cross, if most tries find one, and otherwise. The other moves are
cycles, which take longer to draw, and are needed where rectangles lead nowhere."""
TRIES = 64  # of rectangles at the beginning of a sweep
ALL, LEVEL, LEFT, RIGHT, WITHIN, GIVEN = range(6)  # what a weight is computed for; they all are given
NO_FORMULA = SmoothKernel(FLAT, 0.0, 0.0, 0.0, 0, 0, 0, 0.0)
LEAST_WEIGHT = 1e-280  # beyond it products lose digits


class Sums(NamedTuple):
    """Sums t and their reports; the last three are scratch."""

    kernels: Any  # sum t has the code t + 1
    member_fi: Any  # (F, n) the number of each cell's sum in each family, or -1
    value_t: Any  # (T,) the current ones, of all their cells
    change_t: Any  # (T,) zeros
    touched: Any  # (F m, 2) for moves of at most m cells
    weight_d: Any  # (SHORT,)


class Moves(NamedTuple):
    """Which cells move together."""

    alone_i: Any  # cells in no known sum
    pair_e: Any  # (families' cells,) cells of one sum after another
    start_p: Any  # where each sum's cells begin
    side_i: Any  # (n, 2) the finest sum of every cell on two sides, of which each has nested families
    order_i: Any  # (2, n) cells by their sum on the first side, then the second; and the other way round
    start_s: Any  # (2, sums + 1) where those of a sum begin
    end_e: Any  # (E, 2) the ends of the edges of the graph
    start_v: Any  # where the edges of a vertex begin
    edge_e: Any
    cell_e: Any  # (E,) the edge's cell, or -1


class Graph(NamedTuple):
    """Edges and their vertices; edge v is that of vertex v, for all vertices but the last."""

    end_e: Any  # (E, 2) the vertices that it leads from and to
    start_v: Any  # where the edges of a vertex begin
    edge_e: Any


@subroutine
def log_both(first, second, codes, rates, n, y):
    """log w_i(y) w_j(n - y)."""
    return log_weight(first, codes[0], y, rates[0]) + log_weight(second, codes[1], n - y, rates[1])


@subroutine(error_model="numpy")
def ratio_of_both(first, second, codes, rates, n, y):
    """w_i(y + 1) w_j(n - y - 1) / w_i(y) w_j(n - y)."""
    return step_up(first, codes[0], y, rates[0]) / step_up(second, codes[1], n - y - 1, rates[1])


@subroutine(error_model="numpy")
def draw_pair_of_few(first, second, codes, rates, n, low, high, rng, scratch):
    """y_i from low to high, by inversion; -1 where the weights are no floats."""
    weight = total = 1.0
    for y in range(low, high):
        weight *= ratio_of_both(first, second, codes, rates, n, y)
        scratch[y - low] = weight
        total += weight
    if not total < math.inf:
        return -1
    left, y = rng.random() * total - 1.0, low
    while left >= 0.0 and y < high:
        left -= scratch[y - low]
        y += 1
    return y


@subroutine(error_model="numpy")
def draw_around_mode(first, second, codes, rates, n, low, high, rng):
    """y_i from low to high, whose weights have one mode."""
    top, above = low, high
    while top < above:
        middle = top + (above - top) // 2
        if ratio_of_both(first, second, codes, rates, n, middle) > 1.0:
            top = middle + 1
        else:
            above = middle
    found, total = top, 1.0
    weight, y = 1.0, top
    while y < high:
        weight *= ratio_of_both(first, second, codes, rates, n, y)
        if not weight > NEGLIGIBLE:
            break
        y += 1
        total += weight
        if rng.random() * total < weight:
            found = y
    weight, y = 1.0, top
    while y > low:
        weight /= ratio_of_both(first, second, codes, rates, n, y - 1)
        if not weight > NEGLIGIBLE:
            break
        y -= 1
        total += weight
        if rng.random() * total < weight:
            found = y
    return found


@subroutine
def draw_of_all(first, second, codes, rates, n, low, high, rng):
    """y_i from low to high, whose weights may have any form."""
    largest = -math.inf
    for y in range(low, high + 1):
        largest = max(largest, log_both(first, second, codes, rates, n, y))
    found, total = low, 0.0
    for y in range(low, high + 1):
        weight = math.exp(log_both(first, second, codes, rates, n, y) - largest)
        total += weight
        if rng.random() * total < weight:
            found = y
    return found


@subroutine
def draw_of_two(first, second, codes, rates, n, rng, scratch):
    """y_i given y_i + y_j = n, by the laws of both cells; scratch is (SHORT,)."""
    least, most = least_and_most(first.noise, codes[0])
    least_other, most_other = least_and_most(second.noise, codes[1])
    low, high = max(least, n - most_other), min(most, n - least_other)
    if low >= high:
        return low
    if high - low < SHORT:
        found = draw_pair_of_few(first, second, codes, rates, n, low, high, rng, scratch)
        if found >= 0:
            return found
    concave = is_log_concave(first.noise, codes[0]) and is_log_concave(second.noise, codes[1])
    concave = concave and has_one_mode(first.likelihood, rates[0])
    if concave and has_one_mode(second.likelihood, rates[1]):
        return draw_around_mode(first, second, codes, rates, n, low, high, rng)
    return draw_of_all(first, second, codes, rates, n, low, high, rng)


@kernel
def fill_rates(theta_dk, phi_vk, row_i, column_i, rate_i):
    """rate_i = the rate of every cell, in place."""
    for i in range(rate_i.size):
        rate_i[i] = max(inner(theta_dk, row_i[i], phi_vk, column_i[i]), SMALLEST)


@kernel
def draw_without_totals(kernels, likelihood, cells, rate_i, rng, count_i):
    """count_i = a draw given the report alone, in place; cells is (row_i, column_i, code_i)."""
    row_i, column_i, code_i = cells
    for i in range(count_i.size):
        own = likelihood_at(likelihood, row_i[i], column_i[i])
        count_i[i] = draw_cell(kernels, own, code_i[i], rate_i[i], rng)


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


@subroutine
def gather(sums, edges, signs, size):
    """The number of sums that a unit of the move changes; they and their changes are in ``touched``."""
    for k in range(size):
        for f in range(sums.member_fi.shape[0]):
            t = sums.member_fi[f, edges[k]]
            if t >= 0:
                sums.change_t[t] += signs[k]
    found = 0
    for k in range(size):
        for f in range(sums.member_fi.shape[0]):
            t = sums.member_fi[f, edges[k]]
            if t >= 0 and sums.change_t[t] != 0:
                sums.touched[found, 0], sums.touched[found, 1] = t, sums.change_t[t]
                sums.change_t[t] = 0
                found += 1
    return found


@subroutine
def bounds_of_move(kernels, code_i, sums, touched, edges, signs, size, count_i):
    """(the least, the greatest) d that all reports allow."""
    low, high = -(1 << 62), 1 << 62
    for k in range(size):
        least, most = least_and_most(kernels, code_i[edges[k]])
        y = count_i[edges[k]]
        if signs[k] > 0:
            low, high = max(low, least - y), min(high, most - y)
        else:
            low, high = max(low, y - most), min(high, y - least)
    for j in range(touched):
        t, change = sums.touched[j, 0], sums.touched[j, 1]
        least, most = least_and_most(sums.kernels, t + 1)
        below, above = sums.value_t[t] - least, most - sums.value_t[t]
        if change > 0:
            low, high = max(low, -(below // change)), min(high, above // change)
        else:
            low, high = max(low, -(above // -change)), min(high, below // -change)
    return low, high


@subroutine
def log_of_move(kernels, likelihood, cells, rate_i, sums, touched, edges, signs, size, count_i, d):
    """The log of the weights of all that the move changes, at d."""
    row_i, column_i, code_i = cells
    total = 0.0
    for k in range(size):
        i = edges[k]
        own = WindowLaw(kernels, likelihood_at(likelihood, row_i[i], column_i[i]))
        total += log_weight(own, code_i[i], count_i[i] + signs[k] * d, rate_i[i])
    for j in range(touched):
        t = sums.touched[j, 0]
        total += log_kernel(sums.kernels, t + 1, sums.value_t[t] + sums.touched[j, 1] * d, 1.0)
    return total


@subroutine(error_model="numpy")
def take_steps(law, report, rate, y, sign, ratio_d):
    """Multiply ratio_d by those of a cell's weights where its count goes up from y, or down from y + 1, in place."""
    for j in range(ratio_d.size):
        if sign > 0:
            ratio_d[j] *= step_up(law, report, y + j, rate)
        else:
            ratio_d[j] /= step_up(law, report, y - j, rate)


@subroutine
def take_products(weight_d, size):
    """weight_d = the weights whose ratios, one to the last, are weight_d[1:size], in place; whether they are floats."""
    weight = weight_d[0] = 1.0
    for j in range(1, size):
        ratio = weight_d[j]
        if not LEAST_WEIGHT < ratio < math.inf or (weight < LEAST_WEIGHT and ratio > 1.0):
            return False  # digits are lost
        weight *= ratio
        weight_d[j] = weight
    return weight < math.inf


@subroutine
def take_exp(log_d, size):
    """weight_d = exp(log_d), over the largest, in place."""
    largest = -math.inf
    for d in range(size):
        largest = max(largest, log_d[d])
    for d in range(size):
        log_d[d] = math.exp(log_d[d] - largest)


@subroutine
def draw_of_few(weight_d, low, high, rng):
    """d from low to high, given all weights."""
    total = 0.0
    for d in range(high - low + 1):
        total += weight_d[d]
    left, found = rng.random() * total, 0
    for d in range(low, high + 1):
        if weight_d[d - low] > 0.0:
            found = d  # the last possible one, in case rounding leaves something beyond it
        left -= weight_d[d - low]
        if left < 0.0:
            break
    return found


@subroutine
def width_of(likelihood, cells, rate_i, edges, size):
    """How far intervals of the slice sampler step: twice the standard deviation of the smallest Poisson count."""
    row_i, column_i, _ = cells
    least = math.inf
    for k in range(size):
        i = edges[k]
        least = min(least, mean_count(likelihood_at(likelihood, row_i[i], column_i[i]), rate_i[i]))
    return 2.0 * math.sqrt(least + 1.0)


@subroutine
def move(kernels, likelihood, cells, rate_i, sums, edges, signs, size, rng, count_i):
    """Draw d for these cells, and change their counts and sums in place.

    Weights are computed at one place, since each place is compiled: d goes through all its values where they are few;
    otherwise it is first 0, for the level, then the left end of the interval, the right one, and what is tried in it.
    """
    touched = gather(sums, edges, signs, size)
    low, high = bounds_of_move(kernels, cells[2], sums, touched, edges, signs, size, count_i)
    if low >= high:
        return
    stage = ALL if high - low < SHORT else LEVEL
    d = low if stage == ALL else 0
    width = left = right = level = 0.0
    if stage == LEVEL:
        width = width_of(likelihood, cells, rate_i, edges, size)
        left = rng.random() - width * rng.random()
        right = left + width
    while stage != GIVEN:
        log = log_of_move(kernels, likelihood, cells, rate_i, sums, touched, edges, signs, size, count_i, d)
        if stage == ALL:
            sums.weight_d[d - low] = log
            d += 1
            if d > high:
                take_exp(sums.weight_d, high - low + 1)
                stage = GIVEN
            continue
        if stage == LEVEL:
            level, stage = log + math.log(1.0 - rng.random()), LEFT
        elif stage == LEFT:
            if log > level:
                left -= width
            else:
                stage = RIGHT
        elif stage == RIGHT:
            if log > level:
                right += width
            else:
                stage = WITHIN
        elif log > level:
            break
        elif d < 0:
            left = d + 1.0  # all of a rejected number's unit is
        else:
            right = float(d)
        if stage == LEFT:
            if left >= low:
                d = math.floor(left)
                continue
            left, stage = float(low), RIGHT
        if stage == RIGHT:
            if right < high + 1:
                d = math.floor(right)
                continue
            right, stage = float(high + 1), WITHIN
        d = min(max(math.floor(left + rng.random() * (right - left)), low), high)
        if d == 0:
            break
    if stage == GIVEN:
        d = draw_of_few(sums.weight_d, low, high, rng)
    for k in range(size):
        count_i[edges[k]] += signs[k] * d
    for j in range(touched):
        sums.value_t[sums.touched[j, 0]] += sums.touched[j, 1] * d


@subroutine
def draw_rectangle(side_i, order_i, start_s, rng, edges, signs):
    """Four cells, of two sums on each side, into edges and signs; their number, or 0 where there are none."""
    i = int(rng.random() * side_i.shape[0])
    a, b = side_i[i, 0], side_i[i, 1]
    begin, end = start_s[0, a], start_s[0, a + 1]
    beside = order_i[0, begin + int(rng.random() * (end - begin))]
    begin, end = start_s[1, b], start_s[1, b + 1]
    below = order_i[1, begin + int(rng.random() * (end - begin))]
    if beside == i or below in (i, beside):  # a cell that comes twice would move by 2 d
        return 0
    wanted = side_i[beside, 1]
    begin, end = start_s[0, side_i[below, 0]], start_s[0, side_i[below, 0] + 1]
    first, beyond = begin, end
    while first < beyond:
        middle = first + (beyond - first) // 2
        if side_i[order_i[0, middle], 1] < wanted:
            first = middle + 1
        else:
            beyond = middle
    last = first
    while last < end and side_i[order_i[0, last], 1] == wanted:
        last += 1
    if last == first:
        return 0
    across = order_i[0, first + int(rng.random() * (last - first))]
    if across in (i, beside, below):
        return 0
    edges[0], edges[1], edges[2], edges[3] = i, beside, across, below
    signs[0], signs[1], signs[2], signs[3] = 1, -1, 1, -1
    return 4


@subroutine
def draw_walk(moves, rng, path, place_v, edges, signs):
    """The cells of a cycle of the graph into edges and signs; their number."""
    begin, end = draw_cycle(moves.end_e, moves.start_v, moves.edge_e, rng, path, place_v)
    vertex, size = moves.end_e[path[begin], 0], 0
    if end - begin > 2:
        beyond = path[begin + 1]
        if vertex == moves.end_e[beyond, 0] or vertex == moves.end_e[beyond, 1]:
            vertex = moves.end_e[path[begin], 1]
    for k in range(begin, end):
        e = path[k]
        if moves.cell_e[e] >= 0:
            edges[size] = moves.cell_e[e]
            signs[size] = 1 if moves.end_e[e, 0] == vertex else -1
            size += 1
        vertex = other_end(moves.end_e, e, vertex)
    return size


@kernel
def sweep_pairs(kernels, likelihood, cells, rate_i, sums, pair_e, start_p, rng, count_i):
    """Neighbours in a random order of the cells pair_e[start_p[p]] to pair_e[start_p[p + 1] - 1] of every p, in place.

    cells is (row_i, column_i, code_i): those that the likelihood asks for, and the numbers of reports. All but the
    first and last cells are drawn twice. Arrays are read here, and most calls are given numbers alone: references
    to arrays would be counted at each, which took half of the time.
    """
    row_i, column_i, code_i = cells
    member_fi, whole_cj, real_cj = sums.member_fi, kernels.whole_cj, kernels.real_cj
    whole_aj, real_aj = kernels.whole_aj, kernels.real_aj
    origin = start_p[0]
    order = pair_e[origin : start_p[-1]].copy()
    scratch, edges, signs = np.empty(SHORT), np.empty(2, dtype=np.int64), np.array([1, -1])
    for p in range(start_p.size - 1):
        begin, end = start_p[p] - origin, start_p[p + 1] - origin
        if end - begin < 2:
            continue
        for a in range(end - 1, begin, -1):
            b = begin + int(rng.random() * (a - begin + 1))
            order[a], order[b] = order[b], order[a]
        i = order[begin]
        first, formula, is_formula = likelihood_at(likelihood, row_i[i], column_i[i]), NO_FORMULA, False
        for a in range(begin, end):
            j = order[a]
            second, code = likelihood_at(likelihood, row_i[j], column_i[j]), code_i[j]
            piece = whole_cj[code, FIRST]
            pieces = whole_cj[code, LAST] - piece
            is_beyond = pieces == 0 or (pieces == 1 and whole_aj[piece, KIND] != TABLE)
            beyond = NO_FORMULA
            if pieces == 0:
                beyond = SmoothKernel(
                    FLAT, 0.0, 0.0, 0.0, whole_cj[code, LEAST], whole_cj[code, MOST], whole_cj[code, PEAK],
                    real_cj[code, RATIO],
                )  # fmt: skip
            elif is_beyond:
                beyond = SmoothKernel(
                    whole_aj[piece, KIND], real_aj[piece, VALUE], real_aj[piece, SCALE], real_aj[piece, CONSTANT],
                    whole_cj[code, LEAST], whole_cj[code, MOST], whole_cj[code, PEAK], real_cj[code, RATIO],
                )  # fmt: skip
            alike = a > begin
            for f in range(member_fi.shape[0]):
                alike &= member_fi[f, i] == member_fi[f, j]
            if alike:
                n = count_i[i] + count_i[j]
                codes, rates = (code_i[i], code), (rate_i[i], rate_i[j])
                if is_formula and is_beyond:
                    laws = WindowLaw(formula, first), WindowLaw(beyond, second)
                    y = draw_of_two(laws[0], laws[1], codes, rates, n, rng, scratch)
                else:  # loops that pass all kernels are far slower
                    laws_by_code = WindowLaw(kernels, first), WindowLaw(kernels, second)
                    y = draw_of_two(laws_by_code[0], laws_by_code[1], codes, rates, n, rng, scratch)
                count_i[i], count_i[j] = y, n - y
            elif a > begin:
                edges[0], edges[1] = i, j
                move(kernels, likelihood, cells, rate_i, sums, edges, signs, 2, rng, count_i)
            i, first, formula, is_formula = j, second, beyond, is_beyond


@kernel
def sweep_others(kernels, likelihood, cells, rate_i, sums, moves, rng, count_i):
    """Every cell in no known sum by itself, then as many rectangles and cycles as there are cells, in place.

    How often rectangles are found depends on which cells are open alone, and so does the share of them. A move that
    changes no sum, of few values, is drawn here, since a call that is given all arrays takes longer than the draw.
    """
    row_i, column_i, code_i = cells
    side_i, order_i, start_s = moves.side_i, moves.order_i, moves.start_s
    member_fi, change_t, weight_d = sums.member_fi, sums.change_t, sums.weight_d
    whole_cj, real_cj = kernels.whole_cj, kernels.real_cj
    whole_aj, real_aj = kernels.whole_aj, kernels.real_aj
    longest = moves.start_v.size + 4
    edges, signs = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    path, place_v = np.empty(longest, dtype=np.int64), np.full(moves.start_v.size - 1, -1)
    cycles, rectangles = 0, 0.0
    if moves.cell_e.size:
        hits = 0
        for _ in range(TRIES):
            hits += draw_rectangle(side_i, order_i, start_s, rng, edges, signs) > 0
        cycles, rectangles = count_i.size, RECTANGLES[0] if 2 * hits > TRIES else RECTANGLES[1]
    for step in range(moves.alone_i.size + cycles):
        if step < moves.alone_i.size:
            edges[0], signs[0], size = moves.alone_i[step], 1, 1
        elif rng.random() < rectangles:
            size = draw_rectangle(side_i, order_i, start_s, rng, edges, signs)
        else:
            size = draw_walk(moves, rng, path, place_v, edges, signs)
        if size == 0:
            continue
        for k in range(size):
            for f in range(member_fi.shape[0]):
                if member_fi[f, edges[k]] >= 0:
                    change_t[member_fi[f, edges[k]]] += signs[k]
        few = True
        for k in range(size):
            for f in range(member_fi.shape[0]):
                t = member_fi[f, edges[k]]
                if t >= 0 and change_t[t] != 0:
                    few, change_t[t] = False, 0
        low, high = -(1 << 62), 1 << 62
        for k in range(size):
            code, y = code_i[edges[k]], count_i[edges[k]]
            least, most = whole_cj[code, LEAST] - y, whole_cj[code, MOST] - y
            if signs[k] < 0:
                least, most = -most, -least
            low, high = max(low, least), min(high, most)
        if few and low >= high:
            continue
        few &= high - low < SHORT
        if few:  # the weights of all d from low to high, by ratios
            ratio_d = weight_d[1 : high - low + 1]
            ratio_d[:] = 1.0
            for k in range(size):
                i = edges[k]
                own, code = likelihood_at(likelihood, row_i[i], column_i[i]), code_i[i]
                y = count_i[i] + low if signs[k] > 0 else count_i[i] - low - 1
                piece = whole_cj[code, FIRST]
                pieces = whole_cj[code, LAST] - piece
                if pieces == 0:
                    take_steps(WindowLaw(NO_FORMULA, own), code, rate_i[i], y, signs[k], ratio_d)
                elif pieces == 1 and whole_aj[piece, KIND] != TABLE:
                    formula = SmoothKernel(
                        whole_aj[piece, KIND], real_aj[piece, VALUE], real_aj[piece, SCALE], real_aj[piece, CONSTANT],
                        whole_cj[code, LEAST], whole_cj[code, MOST], whole_cj[code, PEAK], real_cj[code, RATIO],
                    )  # fmt: skip
                    take_steps(WindowLaw(formula, own), code, rate_i[i], y, signs[k], ratio_d)
                else:
                    take_steps(WindowLaw(kernels, own), code, rate_i[i], y, signs[k], ratio_d)
            few = take_products(weight_d, high - low + 1)
        if few:
            d = draw_of_few(weight_d, low, high, rng)
            for k in range(size):
                count_i[edges[k]] += signs[k] * d
        else:
            move(kernels, likelihood, cells, rate_i, sums, edges, signs, size, rng, count_i)


@kernel
def meet_totals(kernels, code_i, start_g, total_g, count_i):
    """Move counts that their reports allow until every sum is met, in place; the sums must be possible."""
    for g in range(start_g.size - 1):
        begin, end = start_g[g], start_g[g + 1]
        missing = total_g[g]
        for i in range(begin, end):
            missing -= count_i[i]
        moved = True
        while missing != 0 and moved:
            moved = False
            for i in range(begin, end):
                least, most = least_and_most(kernels, code_i[i])
                cells = end - i
                if missing > 0:
                    step = min((missing + cells - 1) // cells, most - count_i[i])
                else:
                    step = max(-((cells - 1 - missing) // cells), least - count_i[i])
                count_i[i] += step
                missing -= step
                moved |= step != 0


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
