"""The law of a report for any noise and any likelihood whose weights are log-concave: by walking out from the mode.

Given the rate, a count y has weight P(y | rate) k(y), with k(y) = P(report | y) the noise's kernel. Both are
log-concave, so the weight has one mode and falls off on both sides faster than a geometric sequence: a short walk sums
all of it (mathematics, section 14). A pair of a noise and a likelihood with closed forms provides its own law instead.

A noise and a likelihood are named tuples; a module that knows one says what the functions below are for its class.
"""

import math
from typing import Any, NamedTuple

from numba import njit

from countveil.kernels.law import (
    draw_counts,
    expect_counts,
    expected_ratio,
    provides,
    report_score,
    unseen_constant,
    unseen_exposure,
    unseen_score,
)

NEGLIGIBLE = -42.0  # log of what a weight is to the largest where a walk ends
FARTHEST = 2**62


class GeneralLaw(NamedTuple):
    """A noise and a likelihood, each a named tuple whose class provides the functions of this module."""

    noise: Any
    likelihood: Any


def log_kernel(noise, report, count, level):
    """log P(report | count), for a stored report."""
    raise NotImplementedError


def least_count(noise, report, level):
    """The least count that can have this report."""
    raise NotImplementedError


def most_count(noise, report, level):
    """The greatest count that can have this report; -1 where there is none."""
    raise NotImplementedError


def kernel_ratio(noise, level):
    """P(a report that is not stored | count 1) over P(the same | count 0)."""
    raise NotImplementedError


def log_unseen(noise, level):
    """log P(a report that is not stored | count 0)."""
    raise NotImplementedError


def log_mass(likelihood, count, rate):
    """log P(count | rate)."""
    raise NotImplementedError


def draw_parts(likelihood, count, rate, rng):
    """A draw of what is allocated to components, given the count."""
    raise NotImplementedError


def add_to_tally(likelihood, column, count, parts, tally):
    """Add a cell's count and its parts to what the likelihood's parameters are updated by."""
    raise NotImplementedError


def expected_parts(likelihood, count, rate):
    """The mean of what is allocated to components, given the count."""
    raise NotImplementedError


def parts_exposure(likelihood, ratio):
    """The exposure of a cell whose report is not stored, given its ``kernel_ratio``."""
    raise NotImplementedError


@njit(cache=True, nogil=True)
def log_weight(law, report, count, rate, level):
    """log P(count | rate) P(report | count)."""
    return log_mass(law.likelihood, count, rate) + log_kernel(law.noise, report, count, level)


@njit(cache=True, nogil=True)
def mode_of(law, report, rate, level, least, most):
    """The count of the largest weight: where the weights stop rising, by bisection."""
    low, high = least, least + 1
    while high < most and log_weight(law, report, high, rate, level) >= log_weight(
        law, report, high - 1, rate, level
    ):
        low, high = high, min(most, least + 2 * (high - least))
    while high > low:
        middle = low + (high - low + 1) // 2
        if log_weight(law, report, middle, rate, level) >= log_weight(law, report, middle - 1, rate, level):
            low = middle
        else:
            high = middle - 1
    return low


@njit(cache=True, nogil=True)
def summed(law, report, rate, level):
    """(mode, log weight there, the sum of all weights and of weights times parts, both relative to the mode's)."""
    least = least_count(law.noise, report, level)
    most = most_count(law.noise, report, level)
    most = FARTHEST if most < 0 else most
    mode = least if most == least else mode_of(law, report, rate, level, least, most)
    top = log_weight(law, report, mode, rate, level)
    total, moment = 1.0, expected_parts(law.likelihood, mode, rate)
    for direction in (-1, 1):
        count = mode + direction
        while least <= count <= most:
            gap = log_weight(law, report, count, rate, level) - top
            if gap < NEGLIGIBLE and math.isfinite(gap):
                break
            weight = math.exp(gap)
            total += weight
            moment += weight * expected_parts(law.likelihood, count, rate)
            count += direction
    return mode, top, total, moment


@njit(cache=True, nogil=True)
def draw_count(law, report, rate, level, rng):
    """A draw of the count given a stored report: the walk of ``summed`` until a uniform part of the sum is passed."""
    mode, top, total, _ = summed(law, report, rate, level)
    least = least_count(law.noise, report, level)
    most = most_count(law.noise, report, level)
    most = FARTHEST if most < 0 else most
    left = rng.random() * total - 1.0
    if left < 0.0:
        return mode
    for direction in (-1, 1):
        count = mode + direction
        while least <= count <= most:
            gap = log_weight(law, report, count, rate, level) - top
            if gap < NEGLIGIBLE and math.isfinite(gap):
                break
            left -= math.exp(gap)
            if left < 0.0:
                return count
            count += direction
    return mode


@provides(draw_counts, GeneralLaw)
def draw_counts_generally(law, n, batch, tally, source, rng):
    """Entry by entry."""
    column_i, report_i, rate_i, level_i, count_i, _ = batch
    for i in range(n):
        count = draw_count(law, int(report_i[i]), rate_i[i], level_i[i], rng)
        count_i[i] = draw_parts(law.likelihood, count, rate_i[i], rng)
        add_to_tally(law.likelihood, column_i[i], count, count_i[i], tally)


@provides(expect_counts, GeneralLaw)
def expect_counts_generally(law, n, batch):
    """Entry by entry."""
    _, report_i, rate_i, level_i, ratio_i, _ = batch
    bound = 0.0
    for i in range(n):
        _, top, total, moment = summed(law, int(report_i[i]), rate_i[i], level_i[i])
        ratio_i[i] = moment / total / rate_i[i]
        bound += top + math.log(total) + rate_i[i]
    return bound


@provides(expected_ratio, GeneralLaw)
def expected_ratio_generally(law, report, rate, level):
    """The moment over the sum, over the rate."""
    _, _, total, moment = summed(law, report, rate, level)
    return moment / total / rate


@provides(report_score, GeneralLaw)
def report_score_generally(law, report, rate, level):
    """The log of the sum."""
    _, top, total, _ = summed(law, report, rate, level)
    return top + math.log(total)


@provides(unseen_exposure, GeneralLaw)
def unseen_exposure_generally(law, level):
    """As the likelihood has it for the noise's ratio."""
    return parts_exposure(law.likelihood, kernel_ratio(law.noise, level))


@provides(unseen_constant, GeneralLaw)
def unseen_constant_generally(law, level):
    """As the noise has it."""
    return log_unseen(law.noise, level)


@provides(unseen_score, GeneralLaw)
def unseen_score_generally(law, rate, level):
    """Minus the exposure times the rate, and the constant."""
    return (
        log_unseen(law.noise, level) - parts_exposure(law.likelihood, kernel_ratio(law.noise, level)) * rate
    )
