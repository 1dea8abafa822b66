"""Bursty counts of many entries at once, given their positive reports, by loops that the compiler can vectorise.

As in ``draws``, with negative binomial weights: for a report r <= MOST the weights w(y)/w(0), y = 0 to MOST, are
running products of p / alpha (up to r) or p alpha (above) times (s + y - 1) / y. The rest beyond MOST is bounded by a
geometric tail. Suffix i is the entry in its batch, j a count.
"""

import numpy as np

from countveil.kernels.compiled import subroutine
from countveil.kernels.random import fill_uniforms
from countveil.laws.noise.two_sided_geometric.draws import LARGEST_LOWER, MOST, count_passed, restart

LARGEST_RATIO = 0.75  # of the tail
LARGEST_SHAPE = 1e3  # up to here weights stay finite


@subroutine
def next_weights(n, j, report_i, lower_i, upper_i, shape_i, term_i, total_i):
    """term_i = w(j)/w(0) from w(j-1)/w(0), added to total_i."""
    share, before = 1.0 / j, j - 1.0
    for i in range(n):
        lower, upper = lower_i[i], upper_i[i]
        weight = term_i[i] * ((lower if j <= report_i[i] else upper) * (shape_i[i] + before) * share)
        term_i[i] = weight
        total_i[i] = total_i[i] + weight


@subroutine
def tail_ratio(s, upper):
    """The greatest ratio of neighbouring weights beyond MOST."""
    return upper * max(1.0, (s + MOST) / (MOST + 1.0))


@subroutine
def draw_beyond(s, upper, rng):
    """A count beyond MOST by rejection from the geometric tail; -1 if it is rejected."""
    ratio = tail_ratio(s, upper)
    y = MOST + 1
    taken = upper * (s + (y - 1)) / (y * ratio)
    while rng.random() < ratio:
        y += 1
        taken *= upper * (s + (y - 1)) / (y * ratio)
    return y if rng.random() < taken else -1


@subroutine(error_model="numpy")
def draw_few(n, shape_i, batch, source, rng):
    """count_i ~ w(y) at report_i, lower_i, upper_i and shape_i (13.3); -1 where the entry has to be drawn by itself.

    That is where the report or the shape is large or there is no noise, and where a count beyond MOST was rejected. A
    draw of its own has the same law.
    """
    _, report_i, _, _, count_i, (lower_i, upper_i, left_i, term_i, total_i, passed_i) = batch
    restart(n, term_i, total_i)
    for i in range(n):
        passed_i[i] = 0.0
    for j in range(1, MOST + 1):
        next_weights(n, j, report_i, lower_i, upper_i, shape_i, term_i, total_i)
    fill_uniforms(source, n, left_i)
    for i in range(n):
        ratio = tail_ratio(shape_i[i], upper_i[i])
        left_i[i] *= total_i[i] + term_i[i] * ratio / (1.0 - ratio)
    restart(n, term_i, total_i)
    count_passed(n, total_i, left_i, passed_i)
    for j in range(1, MOST + 1):
        next_weights(n, j, report_i, lower_i, upper_i, shape_i, term_i, total_i)
        count_passed(n, total_i, left_i, passed_i)
    for i in range(n):
        small = report_i[i] <= MOST and shape_i[i] < LARGEST_SHAPE
        fits = small and tail_ratio(shape_i[i], upper_i[i]) < LARGEST_RATIO and lower_i[i] < LARGEST_LOWER
        count = np.int64(passed_i[i]) if fits else -1
        if count > MOST:
            count = draw_beyond(shape_i[i], upper_i[i], rng)
        count_i[i] = count
