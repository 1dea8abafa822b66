"""Expected true counts and log-likelihoods of many reports at once, by loops that the compiler can vectorise.

For a report r <= MOST the weights w(y)/w(0) are running products of rate/alpha (up to r) or rate alpha (above) over y.
Their sum scores the report and their mean is the expected count. Entries with larger reports, or whose sums do not
converge within MOST + BEYOND terms, are computed one by one. Suffix i is the entry in its batch.
"""

import math

import numpy as np

from countveil.kernels.compiled import subroutine
from countveil.kernels.poisson import poisson_logpmf
from countveil.kernels.random import SMALLEST
from countveil.laws.noise.two_sided_geometric.formulas import log_normaliser
from countveil.laws.noise.two_sided_geometric.poisson import expected_count_ratio, weight_sums

MOST = 12
BEYOND = 14
ROUNDING = 1e-16
LARGEST_LOWER = 1e6
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
def next_weights(n, j, report_i, lower_i, upper_i, term_i):
    """term_i = w(j)/w(0) from w(j-1)/w(0)."""
    share = 1.0 / j
    for i in range(n):
        lower, upper = lower_i[i], upper_i[i]
        term_i[i] = term_i[i] * ((lower if j <= report_i[i] else upper) * share)


@subroutine
def next_weights_above(n, j, upper_i, term_i):
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
        next_weights(n, j, report_i, lower_i, upper_i, term_i)
        add_up(n, j, term_i, total_i, moment_i)
    for j in range(MOST + 1, MOST + BEYOND + 1):
        next_weights_above(n, j, upper_i, term_i)
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
        if report <= MOST and lower_i[i] < LARGEST_LOWER and term_i[i] <= ROUNDING * total_i[i]:
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
