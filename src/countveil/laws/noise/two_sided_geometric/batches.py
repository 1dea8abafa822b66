"""Many entries with positive reports at once, by loops that the compiler can vectorise: draws, scores, expectations.

For a report r <= MOST the weights w(y)/w(0), y = 0 to MOST, are running products of rate/alpha (up to r) or
rate alpha (above) over y, added up for all entries of a batch together. Suffix i is the entry in its batch, j a count.

A draw is the number of running sums that a uniform part of the total passes; the rest beyond MOST is bounded by a
geometric tail. Other entries (with large reports or very large rates) are drawn one by one.
"""

import math

import numpy as np

from countveil.kernels.compiled import subroutine
from countveil.kernels.poisson import poisson_logpmf
from countveil.kernels.random import SMALLEST, fill_uniforms
from countveil.laws.noise.two_sided_geometric.formulas import log_normaliser
from countveil.laws.noise.two_sided_geometric.poisson import (
    expected_count_ratio,
    sample_count_given_positive,
    weight_sums,
)

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


# The sum of the weights scores the report and their mean is the expected count. Entries with larger reports, or whose
# sums do not converge within MOST + BEYOND terms, are computed one by one.

BEYOND = 14
ROUNDING = 1e-16
LARGEST_LOWER_SUMMED = 1e6
LARGEST_PRODUCT = 1e200
LOG_FACTORIALS = np.array([math.lgamma(n + 1.0) for n in range(256)])


@subroutine
def score_and_ratio(r, rate, alpha):
    """(log P(r | rate), E[y | r, rate] / rate) of a positive report, from one evaluation of its sums."""
    rate = max(rate, SMALLEST)
    if alpha <= 0.0:
        return poisson_logpmf(r, rate), r / rate
    scale, below, at, above = weight_sums(r, rate, alpha)
    total = below + at + above
    score = log_normaliser(alpha) + scale + math.log(total)
    return score, (below / alpha + alpha * (at + above)) / total


@subroutine
def ratio_only(r, rate, alpha):
    """E[y | r, rate] / rate of a positive report."""
    rate = max(rate, SMALLEST)
    return r / rate if alpha <= 0.0 else expected_count_ratio(r, rate, alpha)


@subroutine
def next_terms(n, j, report_i, lower_i, upper_i, term_i):
    """term_i = w(j)/w(0) from w(j-1)/w(0)."""
    share = 1.0 / j
    for i in range(n):
        lower, upper = lower_i[i], upper_i[i]
        term_i[i] = term_i[i] * ((lower if j <= report_i[i] else upper) * share)


@subroutine
def next_terms_above(n, j, upper_i, term_i):
    """The same where j is above every report."""
    share = 1.0 / j
    for i in range(n):
        term_i[i] = term_i[i] * (upper_i[i] * share)


@subroutine
def add_up(n, j, term_i, total_i, moment_i):
    """Add the weights to their totals, and j times them to their moments."""
    for i in range(n):
        total_i[i] += term_i[i]
        moment_i[i] += j * term_i[i]


@subroutine(error_model="numpy")
def expect_counts(law, row, n, batch):
    """ratio_i = E[y | report_i, rate_i] / rate_i; returns the sum of log P(report_i | rate_i) + rate_i."""
    _, report_i, rate_i, alpha_i, ratio_i, (lower_i, upper_i, term_i, total_i, moment_i) = batch
    for i in range(n):
        rate_i[i] = max(rate_i[i], SMALLEST)
        lower_i[i] = rate_i[i] / alpha_i[i]
        upper_i[i] = rate_i[i] * alpha_i[i]
        term_i[i] = 1.0
        total_i[i] = 1.0
        moment_i[i] = 0.0
    for j in range(1, MOST + 1):
        next_terms(n, j, report_i, lower_i, upper_i, term_i)
        add_up(n, j, term_i, total_i, moment_i)
    for j in range(MOST + 1, MOST + BEYOND + 1):
        next_terms_above(n, j, upper_i, term_i)
        add_up(n, j, term_i, total_i, moment_i)
    for i in range(n):
        ratio_i[i] = moment_i[i] / (total_i[i] * rate_i[i])
    return finish(n, report_i, rate_i, alpha_i, ratio_i, lower_i, term_i, total_i)


@subroutine(error_model="numpy")
def finish(n, report_i, rate_i, alpha_i, ratio_i, lower_i, term_i, total_i):
    """The batch's sum of scores and rates; entries that the sums do not fit are computed here, one by one.

    Totals are multiplied as long as the product does not overflow, so that one logarithm serves many of them.
    """
    bound, product = 0.0, 1.0
    known, log_alpha, constant = -1.0, 0.0, 0.0
    for i in range(n):
        report, alpha = report_i[i], alpha_i[i]
        if report <= MOST and lower_i[i] < LARGEST_LOWER_SUMMED and term_i[i] <= ROUNDING * total_i[i]:
            if alpha != known:
                known, log_alpha = alpha, math.log(alpha)
                constant = log_normaliser(alpha)
            bound += constant + report * log_alpha
            product *= total_i[i]
            if product > LARGEST_PRODUCT:
                bound += math.log(product)
                product = 1.0
        elif alpha <= 0.0 and report < LOG_FACTORIALS.size:
            bound += report * math.log(rate_i[i]) - LOG_FACTORIALS[int(report)]
            ratio_i[i] = report / rate_i[i]
        else:
            score, ratio_i[i] = score_and_ratio(np.int64(report), rate_i[i], alpha)
            bound += score + rate_i[i]
    return bound + math.log(product)
