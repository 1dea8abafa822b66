"""The law of a report for any noise and any likelihood, by summation over the counts that can have the report.

Given the rate, a count y has weight P(y | rate) k(y), with k(y) = P(report | y) the noise's kernel (mathematics,
section 14). The sum runs from the least count that can have the report to where weights beyond the report are
negligible, so the cost grows with the counts. A pair of a noise and a likelihood with closed forms provides its own law
instead. It is assumed that the kernel falls beyond the report, and that the likelihood has at most one mode.

A noise and a likelihood are named tuples. Their modules provide the functions below for their classes.
"""

import math
from typing import Any, NamedTuple

from countveil.kernels.compiled import subroutine
from countveil.kernels.law import (
    by_class,
    by_default,
    draw_counts,
    expect_both,
    expect_counts,
    expected_ratio,
    law_at,
    provides,
    report_score,
    unseen_constant,
    unseen_exposure,
    unseen_score,
)
from countveil.kernels.random import SMALLEST

NEGLIGIBLE = -42.0  # the sum ends at weights whose log, less that of the largest, is below this


class GeneralLaw(NamedTuple):
    """A noise and a likelihood, named tuples for whose classes the functions of this module are provided."""

    noise: Any
    likelihood: Any


@by_class
def log_kernel(noise, report, count, level):
    """log P(report | count), for a stored report."""
    raise NotImplementedError


@by_class
def least_count(noise, report, level):
    """The least count that can have this report."""
    raise NotImplementedError


@by_class
def most_count(noise, report, level):
    """The greatest count that can have this report; -1 if there is no greatest one."""
    raise NotImplementedError


@by_class
def near_count(noise, report, level):
    """A count of about the size that goes with a stored report; by default the report."""
    raise NotImplementedError


@by_class
def kernel_ratio(noise, level):
    """P(a report that is not stored | count 1) over P(the same | count 0)."""
    raise NotImplementedError


@by_class
def log_unseen(noise, level):
    """log P(a report that is not stored | count 0)."""
    raise NotImplementedError


@by_class
def likelihood_at(likelihood, row, column):
    """The likelihood of one cell; by default the likelihood itself."""
    raise NotImplementedError


@by_class
def log_mass(likelihood, count, rate):
    """log P(count | rate)."""
    raise NotImplementedError


@by_class
def draw_parts(likelihood, count, rate, rng):
    """A draw of what is allocated to components, given the count."""
    raise NotImplementedError


@by_class
def add_to_tally(likelihood, row, column, count, parts, tally):
    """Add a cell's count and its parts to the tally from which the likelihood's parameters are updated."""
    raise NotImplementedError


@by_class
def expected_parts(likelihood, count, rate):
    """The mean of what is allocated to components, given the count."""
    raise NotImplementedError


@by_class
def parts_exposure(likelihood, ratio):
    """The exposure of a cell whose report is not stored, given its ``kernel_ratio``."""
    raise NotImplementedError


@by_default(near_count)
def same_count(noise, report, level):
    """The report."""
    return report


@by_default(likelihood_at)
def same_likelihood(likelihood, row, column):
    """The likelihood itself."""
    return likelihood


@provides(law_at, GeneralLaw)
def general_law_at(law, row, column):
    """The same noise, and the likelihood of the cell."""
    return GeneralLaw(law.noise, likelihood_at(law.likelihood, row, column))


@subroutine
def log_weight(law, report, count, rate, level):
    """log P(count | rate) P(report | count)."""
    return log_mass(law.likelihood, count, rate) + log_kernel(law.noise, report, count, level)


@subroutine
def counts_behind(law, report, rate, level):
    """(first, last, log of the largest weight): the counts whose weights matter."""
    rate = rate if rate > SMALLEST else SMALLEST  # also of a rate that is no number, whose sum would not end
    least = least_count(law.noise, report, level)
    most = most_count(law.noise, report, level)
    top, count = -math.inf, least
    while True:
        weight = log_weight(law, report, count, rate, level)
        top = max(top, weight)
        negligible = math.isfinite(weight) and weight - top < NEGLIGIBLE  # an impossible count does not end the sum
        if count == most or (count > report and negligible):
            return least, count, top
        count += 1


@subroutine
def summed(law, report, rate, level):
    """(log of the largest weight, the sum of all weights over it, the sum of weights times parts over it)."""
    rate = rate if rate > SMALLEST else SMALLEST
    first, last, top = counts_behind(law, report, rate, level)
    total = moment = 0.0
    for count in range(first, last + 1):
        weight = math.exp(log_weight(law, report, count, rate, level) - top)
        total += weight
        moment += weight * expected_parts(law.likelihood, count, rate)
    return top, total, moment


@subroutine
def draw_count(law, report, rate, level, rng):
    """A draw of the count given a stored report: where the running sum of weights passes a uniform part of all."""
    rate = rate if rate > SMALLEST else SMALLEST
    first, last, top = counts_behind(law, report, rate, level)
    total = 0.0
    for count in range(first, last + 1):
        total += math.exp(log_weight(law, report, count, rate, level) - top)
    left, drawn = rng.random() * total, first
    for count in range(first, last + 1):
        weight = math.exp(log_weight(law, report, count, rate, level) - top)
        if weight > 0.0:
            drawn = count  # the last possible one, in case rounding leaves something beyond it
        left -= weight
        if left < 0.0:
            break
    return drawn


@provides(draw_counts, GeneralLaw)
def draw_counts_generally(law, row, n, batch, tally, source, rng):
    """Entry by entry."""
    column_i, report_i, rate_i, level_i, count_i, _ = batch
    for i in range(n):
        cell = law_at(law, row, column_i[i])
        count = draw_count(cell, int(report_i[i]), rate_i[i], level_i[i], rng)
        count_i[i] = draw_parts(cell.likelihood, count, rate_i[i], rng)
        if tally.size > 0:
            add_to_tally(law.likelihood, row, column_i[i], count, count_i[i], tally)


@provides(expect_counts, GeneralLaw)
def expect_counts_generally(law, row, n, batch):
    """Entry by entry."""
    column_i, report_i, rate_i, level_i, ratio_i, _ = batch
    bound = 0.0
    for i in range(n):
        rate_i[i] = max(rate_i[i], SMALLEST)
        cell = law_at(law, row, column_i[i])
        top, total, moment = summed(cell, int(report_i[i]), rate_i[i], level_i[i])
        ratio_i[i] = moment / total / rate_i[i]
        bound += top + math.log(total) + rate_i[i]
    return bound


@provides(expected_ratio, GeneralLaw)
def expected_ratio_generally(law, report, rate, level):
    """The moment divided by the sum and by the rate."""
    _, total, moment = summed(law, report, rate, level)
    return moment / total / max(rate, SMALLEST)


@provides(expect_both, GeneralLaw)
def expect_both_generally(law, report, rate, level):
    """The moments divided by the sum."""
    rate = rate if rate > SMALLEST else SMALLEST
    first, last, top = counts_behind(law, report, rate, level)
    total = counts = parts = 0.0
    for count in range(first, last + 1):
        weight = math.exp(log_weight(law, report, count, rate, level) - top)
        total += weight
        counts += weight * count
        parts += weight * expected_parts(law.likelihood, count, rate)
    return counts / total, parts / total


@provides(report_score, GeneralLaw)
def report_score_generally(law, report, rate, level):
    """The log of the sum."""
    top, total, _ = summed(law, report, rate, level)
    return top + math.log(total)


@provides(unseen_exposure, GeneralLaw)
def unseen_exposure_generally(law, level):
    """The likelihood's exposure at the noise's ratio."""
    return parts_exposure(law.likelihood, kernel_ratio(law.noise, level))


@provides(unseen_constant, GeneralLaw)
def unseen_constant_generally(law, level):
    """The noise's log P at count 0."""
    return log_unseen(law.noise, level)


@provides(unseen_score, GeneralLaw)
def unseen_score_generally(law, rate, level):
    """The constant, minus the exposure times the rate."""
    return log_unseen(law.noise, level) - parts_exposure(law.likelihood, kernel_ratio(law.noise, level)) * rate
