"""True counts of many entries at once, given their positive reports, by loops that the compiler can vectorise.

For a report r <= MOST the weights w(y)/w(0), y = 0 to MOST, are running products of rate/alpha (up to r) or
rate alpha (above) over y, added up for all entries of a batch together. The rest beyond MOST is bounded by a
geometric tail. The count is the number of running sums that a uniform part of the total passes. Other entries (with
large reports or very large rates) are drawn one by one. Suffix i is the entry in its batch, j a count.
"""

import numpy as np

from countveil.kernels.compiled import subroutine
from countveil.kernels.random import fill_uniforms
from countveil.laws.noise.two_sided_geometric.poisson import sample_count_given_positive

MOST = 12
LARGEST_UPPER = 0.75 * (MOST + 1)
LARGEST_LOWER = 1e20


@subroutine
def next_weights(n, j, report_i, lower_i, upper_i, term_i, total_i):
    """term_i = w(j)/w(0) from w(j-1)/w(0), added to total_i."""
    share = 1.0 / j
    for i in range(n):
        lower, upper = lower_i[i], upper_i[i]
        weight = term_i[i] * ((lower if j <= report_i[i] else upper) * share)
        term_i[i] = weight
        total_i[i] = total_i[i] + weight


@subroutine
def restart(n, term_i, total_i):
    """Set both to w(0)/w(0) = 1."""
    for i in range(n):
        term_i[i] = 1.0
    for i in range(n):
        total_i[i] = 1.0


@subroutine
def count_passed(n, total_i, left_i, passed_i):
    """Add one where left_i is not below total_i."""
    for i in range(n):
        passed_i[i] += np.float64(left_i[i] >= total_i[i])


@subroutine
def draw_beyond(upper, rng):
    """A count beyond MOST by rejection from the geometric tail; -1 if it is rejected."""
    ratio = upper / (MOST + 1)
    y = MOST + 1
    taken = 1.0
    while rng.random() < ratio:
        y += 1
        taken *= (MOST + 1) / y
    return y if rng.random() < taken else -1


@subroutine
def any_noise(n, batch):
    """Whether any of the first n entries has noise."""
    alpha_i, i = batch[3], 0
    while i < n and alpha_i[i] <= 0.0:
        i += 1
    return i < n


@subroutine(error_model="numpy")
def draw_counts(law, row, n, batch, tally, source, rng):
    """count_i ~ w(y) at report_i > 0, rate_i and alpha_i (mathematics, equation 2.1) of the first n entries.

    Where none of them is noisy, all stay as they are.
    """
    if not any_noise(n, batch):
        return
    _, report_i, rate_i, alpha_i, count_i, (lower_i, upper_i, left_i, term_i, total_i, passed_i) = batch
    for i in range(n):
        lower_i[i] = rate_i[i] / alpha_i[i]
        upper_i[i] = rate_i[i] * alpha_i[i]
        passed_i[i] = 0.0
    restart(n, term_i, total_i)
    for j in range(1, MOST + 1):
        next_weights(n, j, report_i, lower_i, upper_i, term_i, total_i)
    fill_uniforms(source, n, left_i)
    for i in range(n):
        ratio = upper_i[i] * (1.0 / (MOST + 1))
        left_i[i] *= total_i[i] + term_i[i] * ratio / (1.0 - ratio)
    restart(n, term_i, total_i)
    count_passed(n, total_i, left_i, passed_i)
    for j in range(1, MOST + 1):
        next_weights(n, j, report_i, lower_i, upper_i, term_i, total_i)
        count_passed(n, total_i, left_i, passed_i)
    for i in range(n):
        fits = report_i[i] <= MOST and upper_i[i] < LARGEST_UPPER and lower_i[i] < LARGEST_LOWER
        count = np.int64(passed_i[i]) if fits else -1
        if count > MOST:
            count = draw_beyond(upper_i[i], rng)
        if count < 0:
            count = sample_count_given_positive(np.int64(report_i[i]), rate_i[i], alpha_i[i], rng)
        count_i[i] = count
