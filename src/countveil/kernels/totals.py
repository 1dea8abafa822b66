"""Counts whose sums are known: sweeps that move units between two cells of one sum.

Given all other cells of a sum, y_i + y_j = n is fixed, and y_i is drawn from its whole law,

    P(y_i) proportional to w_i(y_i) w_j(n - y_i),   w(y) = P(y | rate) P(report | y)         (mathematics, section 14)

by ratios of its weights. Where both weights are log-concave so is their product, and only the counts around its mode
are added up; otherwise all possible ones are. A sweep goes along a random order of the cells of each sum and draws
every neighbouring pair, so that all but the first and last are drawn twice. Any two tables whose sums agree are
connected by such moves if the counts that a report allows have no gap.
"""

import math

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.gamma import SMALLEST
from countveil.kernels.general import likelihood_at
from countveil.kernels.gibbs import inner
from countveil.kernels.report_kernels import (
    FIRST,
    FLAT,
    KIND,
    LAST,
    LEAST,
    MOST,
    PEAK,
    RATIO,
    TABLE,
    SmoothKernel,
    smooth,
)
from countveil.kernels.windows import (
    NEGLIGIBLE,
    WindowLaw,
    draw_cell,
    has_one_mode,
    is_log_concave,
    least_and_most,
    log_weight,
    step_up,
)

SHORT = 32  # where a count lies in so few, all are added up


@subroutine
def has_formula(noise, report):
    """Whether the report's kernel is that of one piece with a formula, or of none, which is flat."""
    a, last = noise.whole_cj[report, FIRST], noise.whole_cj[report, LAST]
    return a == last or (last - a == 1 and noise.whole_aj[a, KIND] != TABLE)


@subroutine
def formula_of(noise, report):
    """The kernel of a report that ``has_formula``; no kernel of others."""
    a = noise.whole_cj[report, FIRST]
    if a != noise.whole_cj[report, LAST]:
        return smooth(noise, report, a)
    return SmoothKernel(
        FLAT, 0.0, 0.0, 0.0, noise.whole_cj[report, LEAST], noise.whole_cj[report, MOST],
        noise.whole_cj[report, PEAK], noise.real_cj[report, RATIO],
    )  # fmt: skip


@subroutine
def log_both(first, second, codes, rates, n, y):
    """log w_i(y) w_j(n - y)."""
    return log_weight(first, codes[0], y, rates[0]) + log_weight(second, codes[1], n - y, rates[1])


@subroutine(error_model="numpy")
def ratio_of_both(first, second, codes, rates, n, y):
    """w_i(y + 1) w_j(n - y - 1) / w_i(y) w_j(n - y)."""
    return step_up(first, codes[0], y, rates[0]) / step_up(second, codes[1], n - y - 1, rates[1])


@subroutine(error_model="numpy")
def draw_of_few(first, second, codes, rates, n, low, high, rng, scratch):
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
        found = draw_of_few(first, second, codes, rates, n, low, high, rng, scratch)
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


@kernel
def sweep_totals(kernels, likelihood, cells, rate_i, start_g, rng, count_i):
    """One sweep over the cells start_g[g] to start_g[g + 1] - 1 of every sum g, in place.

    cells is (row_i, column_i, code_i): those that the likelihood asks for, and the numbers of reports.
    """
    row_i, column_i, code_i = cells
    order, scratch = np.arange(count_i.size), np.empty(SHORT)
    for g in range(start_g.size - 1):
        begin, end = start_g[g], start_g[g + 1]
        if end - begin < 2:
            continue
        for a in range(end - 1, begin, -1):
            b = begin + int(rng.random() * (a - begin + 1))
            order[a], order[b] = order[b], order[a]
        i = order[begin]
        first = likelihood_at(likelihood, row_i[i], column_i[i])
        formula, is_formula = formula_of(kernels, code_i[i]), has_formula(kernels, code_i[i])
        for a in range(begin + 1, end):
            j = order[a]
            n = count_i[i] + count_i[j]
            second = likelihood_at(likelihood, row_i[j], column_i[j])
            beyond, is_beyond = formula_of(kernels, code_i[j]), has_formula(kernels, code_i[j])
            codes, rates = (code_i[i], code_i[j]), (rate_i[i], rate_i[j])
            if is_formula and is_beyond:
                laws = WindowLaw(formula, first), WindowLaw(beyond, second)
                y = draw_of_two(laws[0], laws[1], codes, rates, n, rng, scratch)
            else:  # loops that pass all kernels are far slower
                laws_by_code = WindowLaw(kernels, first), WindowLaw(kernels, second)
                y = draw_of_two(laws_by_code[0], laws_by_code[1], codes, rates, n, rng, scratch)
            count_i[i], count_i[j] = y, n - y
            i, first, formula, is_formula = j, second, beyond, is_beyond


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
