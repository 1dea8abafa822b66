"""Counts whose sums are known or reported, where sums may overlap: sweeps that leave the law of all counts as it is.

    P(y) proportional to prod_i P(y_i | rate_i) P(report_i | y_i) prod_t P(report_t | sum of y_i over i in t)

A known sum is one that a single value is possible for (mathematics, section 14). A move changes some cells i by s_i d,
s_i = +1 or -1, and d is drawn given all else: from its whole law where it may have few values, and otherwise by slice
sampling, with intervals that step out and shrink. Which cells it changes does not look at counts. Cells are moved one
by one, by pairs of one sum, and, where sums cross, along rectangles and cycles of a graph. Its vertices are the sums,
and one more for what is outside; a cell joins the finest sums that it is in, and a sum that may vary joins the next
coarser one. Along a cycle nothing changes but the cells and the sums on it, so that any two tables are connected (see
``crossing``; sums that two nested families have are totally unimodular as well).
Source of the slice sampler: Neal (2003), section 4, which leaves any law on whole numbers as it is.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.crossing import draw_cycle, other_end
from countveil.kernels.general import likelihood_at, log_kernel
from countveil.kernels.totals import formula_of, has_formula
from countveil.kernels.windows import WindowLaw, least_and_most, log_weight, mean_count, step_up

SHORT = 32  # where d has so few values, all are added up
RECTANGLES = 0.5  # of the moves where sums cross
ALL, LEVEL, LEFT, RIGHT, WITHIN, GIVEN = range(6)  # what a weight is computed for; they all are given
LEAST_WEIGHT = 1e-280  # beyond it products lose digits


class Sums(NamedTuple):
    """Sums t and what is said of them; the last three are scratch."""

    kernels: Any  # sum t has the code t + 1
    member_fi: Any  # (F, n) the number of each cell's sum in each family, or -1
    value_t: Any  # (T,) the current ones, of all their cells
    change_t: Any  # (T,) zeros
    touched: Any  # (F m, 2) for moves of at most m cells
    weight_d: Any  # (SHORT,)


class Plan(NamedTuple):
    """Which cells move together."""

    alone_i: Any  # cells in no known sum
    pair_e: Any  # (families' cells,) cells of one sum after another
    start_p: Any  # where each sum's cells begin
    side_i: Any  # (n, 2) the finest sum of every cell on two sides, of which each has nested families
    order_i: (
        Any  # (2, n) cells sorted by their sum on the first side, then the second; and the other way round
    )
    start_s: Any  # (2, sums + 1) where those of a sum begin
    end_e: Any  # (E, 2) the ends of the edges of the graph
    start_v: Any  # where the edges of a vertex begin
    edge_e: Any
    cell_e: Any  # (E,) the edge's cell, or -1


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
def fill_few(kernels, likelihood, cells, rate_i, edges, signs, size, count_i, low, high, weight_d):
    """weight_d = the weights of d from low to high, where no sum changes, by ratios; whether they are floats."""
    row_i, column_i, code_i = cells
    ratio_d = weight_d[1 : high - low + 1]
    ratio_d[:] = 1.0
    for k in range(size):
        i = edges[k]
        own, code = likelihood_at(likelihood, row_i[i], column_i[i]), code_i[i]
        y = count_i[i] + low if signs[k] > 0 else count_i[i] - low - 1
        if has_formula(kernels, code):
            take_steps(WindowLaw(formula_of(kernels, code), own), code, rate_i[i], y, signs[k], ratio_d)
        else:  # loops that pass all kernels are far slower
            take_steps(WindowLaw(kernels, own), code, rate_i[i], y, signs[k], ratio_d)
    weight = weight_d[0] = 1.0
    for j in range(ratio_d.size):
        ratio = ratio_d[j]
        if not LEAST_WEIGHT < ratio < math.inf or (weight < LEAST_WEIGHT and ratio > 1.0):
            return False  # digits are lost
        weight *= ratio
        ratio_d[j] = weight
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
    if (
        stage == ALL
        and touched == 0
        and fill_few(
            kernels, likelihood, cells, rate_i, edges, signs, size, count_i, low, high, sums.weight_d
        )
    ):
        stage = GIVEN
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
def draw_rectangle(plan, rng, edges, signs):
    """Four cells, of two sums on each side, into edges and signs; their number, or 0 where there are none."""
    i = int(rng.random() * plan.side_i.shape[0])
    a, b = plan.side_i[i, 0], plan.side_i[i, 1]
    begin, end = plan.start_s[0, a], plan.start_s[0, a + 1]
    beside = plan.order_i[0, begin + int(rng.random() * (end - begin))]
    begin, end = plan.start_s[1, b], plan.start_s[1, b + 1]
    below = plan.order_i[1, begin + int(rng.random() * (end - begin))]
    if beside == i or below in (i, beside):  # a cell that comes twice would move by 2 d
        return 0
    wanted = plan.side_i[beside, 1]
    begin, end = plan.start_s[0, plan.side_i[below, 0]], plan.start_s[0, plan.side_i[below, 0] + 1]
    first, beyond = begin, end
    while first < beyond:
        middle = first + (beyond - first) // 2
        if plan.side_i[plan.order_i[0, middle], 1] < wanted:
            first = middle + 1
        else:
            beyond = middle
    last = first
    while last < end and plan.side_i[plan.order_i[0, last], 1] == wanted:
        last += 1
    if last == first:
        return 0
    across = plan.order_i[0, first + int(rng.random() * (last - first))]
    if across in (i, beside, below):
        return 0
    edges[0], edges[1], edges[2], edges[3] = i, beside, across, below
    signs[0], signs[1], signs[2], signs[3] = 1, -1, 1, -1
    return 4


@subroutine
def draw_walk(plan, rng, path, place_v, edges, signs):
    """The cells of a cycle of the graph into edges and signs; their number."""
    begin, end = draw_cycle(plan.end_e, plan.start_v, plan.edge_e, rng, path, place_v)
    vertex, size = plan.end_e[path[begin], 0], 0
    if end - begin > 2:
        beyond = path[begin + 1]
        if vertex == plan.end_e[beyond, 0] or vertex == plan.end_e[beyond, 1]:
            vertex = plan.end_e[path[begin], 1]
    for k in range(begin, end):
        e = path[k]
        if plan.cell_e[e] >= 0:
            edges[size] = plan.cell_e[e]
            signs[size] = 1 if plan.end_e[e, 0] == vertex else -1
            size += 1
        vertex = other_end(plan.end_e, e, vertex)
    return size


@subroutine
def draw_pairs(plan, rng):
    """(cells alone and neighbours in a random order of the cells of each sum, 2), -1 where there is no second one."""
    pairs = np.full((plan.alone_i.size + plan.pair_e.size, 2), -1)
    found = plan.alone_i.size
    pairs[:found, 0] = plan.alone_i
    for p in range(plan.start_p.size - 1):
        begin, end = plan.start_p[p], plan.start_p[p + 1]
        for a in range(end - 1, begin, -1):
            b = begin + int(rng.random() * (a - begin + 1))
            plan.pair_e[a], plan.pair_e[b] = plan.pair_e[b], plan.pair_e[a]
        for a in range(begin, end - 1):
            pairs[found, 0], pairs[found, 1] = plan.pair_e[a], plan.pair_e[a + 1]
            found += 1
    return pairs[:found]


@kernel
def sweep_overlapping(kernels, likelihood, cells, rate_i, sums, plan, rng, count_i):
    """One sweep: every cell alone, neighbours in a random order of the cells of each sum, and cycles; in place."""
    longest = plan.start_v.size + 4
    edges, signs = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    path, place_v = np.empty(longest, dtype=np.int64), np.full(plan.start_v.size - 1, -1)
    pairs = draw_pairs(plan, rng)
    cycles = count_i.size if plan.cell_e.size else 0
    for step in range(len(pairs) + cycles):
        if step < len(pairs):
            edges[0], edges[1], signs[0], signs[1] = pairs[step, 0], pairs[step, 1], 1, -1
            size = 1 if edges[1] < 0 else 2
        elif rng.random() < RECTANGLES:
            size = draw_rectangle(plan, rng, edges, signs)
        else:
            size = draw_walk(plan, rng, path, place_v, edges, signs)
        if size:
            move(kernels, likelihood, cells, rate_i, sums, edges, signs, size, rng, count_i)
