"""The law of a report whose kernel is log-concave in the count, or has finitely many counts: windows of counts.

    w(y) = P(y | rate) k(y),   k(y) = P(report | y)                                          (mathematics, section 14)

Sums run over the counts around the mode of w whose weights matter, by the ratio of one weight to the next. Where w
falls from the least count on before it rises again, as that of bursty counts may, counts from the least on are added.
Where few counts are expected, a draw is that of an exposure: y from P(y | rate) c^y with c = k(1) / k(0), kept with
probability k(y) / (k(0) c^y) (14.1). The same holds with the tangent at another count m, c = k(m + 1) / k(m) and
probability k(y) / (k(m) c^(y - m)), which is near 1 where counts are near m.

A noise is a named tuple for whose class the functions of this module are provided, besides ``general.log_kernel``; a
likelihood provides ``mass_ratio``, ``mode_of_counts`` and ``has_one_mode``, besides those of ``general``.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from countveil.kernels.compiled import subroutine
from countveil.kernels.general import expected_parts, log_kernel, log_mass, parts_exposure
from countveil.kernels.law import by_class, by_default
from countveil.kernels.random import SMALLEST

NEGLIGIBLE = 1e-18  # weights below this, over the largest, are left out of draws
TINY = 1e-28  # and of sums, since an expectation may be as small as the rate
BESIDE = 2  # counts on either side of the mode, which decide the expectation where the rate is tiny
FEW = 1.0  # draws of fewer counts than this are by rejection from a tangent at 0: at least 73% are kept
SEVERAL = 8.0  # and of fewer than this from a tangent at their mode
CURVED = 4.0  # unless the mode times the bend of log k there is above this: about 45% are kept then
SHORT = 16  # where a count lies in so few, all are added up
ORDINARY = 1e-6, 1e6  # rates at which their weights surely are floats
STEEP = 700.0  # the log of a ratio of weights is cut here, so that it is a float
LONGEST = 10_000  # terms of an inversion, which ends long before: a guard against rates that are no numbers
NO_TARGET = math.inf
TRIES = 64  # draws from the likelihood alone, where a report only says that a count is large
MOST_BELOW = 4096  # counts that are subtracted from the whole
LEAST_TAIL = 1e-6  # what is left then, so that its digits are right


class WindowLaw(NamedTuple):
    """A noise and a likelihood, named tuples for whose classes the functions of this module are provided."""

    noise: Any
    likelihood: Any


@by_class
def least_and_most(noise, report):
    """The least and the greatest count that can have this report."""
    raise NotImplementedError


@by_class
def peak_of_kernel(noise, report):
    """A count at which the kernel is greatest."""
    raise NotImplementedError


@by_class
def is_log_concave(noise, report):
    """Whether the kernel is log-concave; otherwise all counts that can have the report are added up."""
    raise NotImplementedError


@by_class
def first_ratio(noise, report):
    """c = k(1) / k(0), no number where k(0) is 0."""
    raise NotImplementedError


@by_class
def log_step(noise, report, count):
    """log k(count + 1) / k(count), without a difference of large numbers."""
    raise NotImplementedError


@by_class
def step_ratio(noise, report, count):
    """k(count + 1) / k(count); by default from its log, cut where it would be no float."""
    raise NotImplementedError


@by_class
def is_open(noise, report):
    """Whether the report only says that the count is at least the least one."""
    raise NotImplementedError


@by_class
def can_tilt(likelihood, ratio):
    """Whether P(count) ratio^count has a finite sum."""
    raise NotImplementedError


@by_class
def draw_unseen(likelihood, rate, rng):
    """A draw of a count without a report."""
    raise NotImplementedError


@by_class
def mass_ratio(likelihood, count, rate):
    """P(count + 1 | rate) / P(count | rate)."""
    raise NotImplementedError


@by_class
def draw_cell(noise, likelihood, report, rate, rng):
    """``draw_count`` by what the noise knows of this report alone: loops that pass all of it are far slower."""
    raise NotImplementedError


@by_class
def moments_of_cell(noise, likelihood, report, rate, averaged):
    """``moments`` likewise."""
    raise NotImplementedError


@by_class
def mean_count(likelihood, rate):
    """The mean of a count without a report."""
    raise NotImplementedError


@by_class
def mode_of_counts(likelihood, rate):
    """The most probable count without a report, as a float."""
    raise NotImplementedError


@by_class
def has_one_mode(likelihood, rate):
    """Whether P(count | rate) is log-concave in the count."""
    raise NotImplementedError


class Window(NamedTuple):
    """Where the sums over a cell's counts begin: at the mode, and at the least count where that has another mode."""

    least: int
    most: int
    top: int
    at_top: float  # weight there, over the largest of both
    at_least: float
    log_largest: float


@subroutine
def log_weight(law, report, count, rate):
    """log w(count)."""
    return log_mass(law.likelihood, count, rate) + log_kernel(law.noise, report, count, 1.0)


@subroutine
def step_up(law, report, count, rate):
    """w(count + 1) / w(count)."""
    return mass_ratio(law.likelihood, count, rate) * step_ratio(law.noise, report, count)


@by_default(step_ratio)
def step_ratio_by_log(noise, report, count):
    """From its log."""
    return math.exp(min(log_step(noise, report, count), STEEP))


@subroutine
def window_of(law, report, rate):
    """The window; ``log_largest`` is NaN where nothing but a score needs it."""
    least, most = least_and_most(law.noise, report)
    peak = min(max(peak_of_kernel(law.noise, report), least), most)
    if not has_one_mode(law.likelihood, rate):
        top = peak
        while top > least and step_up(law, report, top - 1, rate) < 1.0:
            top -= 1
        above = log_weight(law, report, top, rate)
        if top == least:
            return Window(least, most, top, 1.0, 0.0, above)
        below = log_weight(law, report, least, rate)
        largest = max(above, below)
        return Window(least, most, top, math.exp(above - largest), math.exp(below - largest), largest)
    likely = mode_of_counts(law.likelihood, rate)
    mode = most if likely > most else max(int(likely), least)
    low, high = min(mode, peak), max(mode, peak)
    while low < high:
        middle = low + (high - low) // 2
        if step_up(law, report, middle, rate) > 1.0:
            low = middle + 1
        else:
            high = middle
    return Window(least, most, low, 1.0, 0.0, math.nan)


@subroutine
def walk(law, report, rate, window, target):
    """(a count, the sum of weights): the count at which the sum passes ``target``; the sum of all if none does."""
    total, weight, y = 0.0, window.at_top, window.top
    while weight > NEGLIGIBLE:
        total += weight
        if total >= target:
            return y, total
        if y == window.most:
            break
        weight *= step_up(law, report, y, rate)
        y += 1
    weight, y = window.at_top, window.top
    while y > window.least:
        weight /= step_up(law, report, y - 1, rate)
        if not weight > NEGLIGIBLE:
            break
        y -= 1
        total += weight
        if total >= target:
            return y, total
    weight, up = window.at_least, window.least
    while up < y and weight > NEGLIGIBLE:
        total += weight
        if total >= target:
            return up, total
        weight *= step_up(law, report, up, rate)
        up += 1
    return window.top if window.at_top > 0.5 else window.least, total


@subroutine
def moments(law, report, rate, averaged):
    """(log P(report | rate), E[count], E[parts]) given a report; of the last two nothing, unless they are asked for.

    The score alone costs less: fewer weights matter, and parts are not averaged.
    """
    if not is_log_concave(law.noise, report):
        return moments_of_all(law, report, rate)
    if is_open(law.noise, report):
        possible, score, all_counts, all_parts = moments_of_rest(law, report, rate)
        if possible:
            return score, all_counts, all_parts
    window = window_of(law, report, rate)
    if averaged:
        total, counts, parts = added_up(law, report, rate, window)
    else:
        (_, total), counts, parts = walk(law, report, rate, window, NO_TARGET), 0.0, 0.0
    largest = window.log_largest
    if math.isnan(largest):
        largest = log_weight(law, report, window.top, rate)
    return largest + math.log(total), counts / total, parts / total


@subroutine
def added_up(law, report, rate, window):
    """(sum of weights, of weights times counts, of weights times expected parts)."""
    weight, y = window.at_top, window.top
    total = counts = parts = 0.0
    while weight > TINY or y <= window.top + BESIDE:
        total += weight
        counts += weight * y
        parts += weight * expected_parts(law.likelihood, y, rate)
        if y == window.most:
            break
        weight *= step_up(law, report, y, rate)
        y += 1
    weight, y = window.at_top, window.top
    while y > window.least:
        weight /= step_up(law, report, y - 1, rate)
        if not weight > TINY and y <= window.top - BESIDE:
            break
        y -= 1
        total += weight
        counts += weight * y
        parts += weight * expected_parts(law.likelihood, y, rate)
    weight, up = window.at_least, window.least
    while up < y and weight > TINY:
        total += weight
        counts += weight * up
        parts += weight * expected_parts(law.likelihood, up, rate)
        weight *= step_up(law, report, up, rate)
        up += 1
    return total, counts, parts


@subroutine
def moments_of_all(law, report, rate):
    """The same, over all counts that can have the report."""
    least, most = least_and_most(law.noise, report)
    largest = -math.inf
    for y in range(least, most + 1):
        largest = max(largest, log_weight(law, report, y, rate))
    total = counts = parts = 0.0
    for y in range(least, most + 1):
        weight = math.exp(log_weight(law, report, y, rate) - largest)
        total += weight
        counts += weight * y
        parts += weight * expected_parts(law.likelihood, y, rate)
    return largest + math.log(total), counts / total, parts / total


@subroutine
def moments_of_rest(law, report, rate):
    """(whether it can be done, the same) where all counts from the least on are possible: all, less those below.

    The tail of bursty counts may be very long. Where next to nothing lies in it, the difference would be inexact.
    """
    least, _ = least_and_most(law.noise, report)
    if least > MOST_BELOW:
        return False, 0.0, 0.0, 0.0
    total, counts, parts = 1.0, mean_count(law.likelihood, rate), rate
    for y in range(least):
        mass = math.exp(log_mass(law.likelihood, y, rate))
        total -= mass
        counts -= mass * y
        parts -= mass * expected_parts(law.likelihood, y, rate)
    if not total > LEAST_TAIL:
        return False, 0.0, 0.0, 0.0
    score = math.log(total) + log_kernel(law.noise, report, least, 1.0)
    return True, score, counts / total, parts / total


@subroutine
def draw_of_all(law, report, rate, rng):
    """A draw of the count, from all counts that can have the report."""
    least, most = least_and_most(law.noise, report)
    largest = -math.inf
    for y in range(least, most + 1):
        largest = max(largest, log_weight(law, report, y, rate))
    total = 0.0
    for y in range(least, most + 1):
        total += math.exp(log_weight(law, report, y, rate) - largest)
    left, drawn = rng.random() * total, least
    for y in range(least, most + 1):
        weight = math.exp(log_weight(law, report, y, rate) - largest)
        if weight > 0.0:
            drawn = y  # the last possible one, in case rounding leaves something beyond it
        left -= weight
        if left < 0.0:
            break
    return drawn


@subroutine
def draw_short(law, report, rate, least, most, rng):
    """A draw of the count, from the few that can have the report; -1 where their weights are no floats."""
    weight = total = 1.0
    for y in range(least, most):
        weight *= step_up(law, report, y, rate)
        total += weight
    if not total < math.inf:
        return -1
    left, weight, y = rng.random() * total - 1.0, 1.0, least
    while left >= 0.0 and y < most:
        weight *= step_up(law, report, y, rate)
        left -= weight
        y += 1
    return y


@subroutine
def draw_by_tangent(law, report, rate, tangent, ratio, rng):
    """A draw of the count by rejection (14.1), by the tangent at a count, where log k rises by the log of ``ratio``."""
    least, most = least_and_most(law.noise, report)
    at_tangent, slope = log_kernel(law.noise, report, tangent, 1.0), math.log(ratio)
    at_zero = math.exp((parts_exposure(law.likelihood, ratio) - 1.0) * rate)
    while True:
        left, weight, y = rng.random(), at_zero, 0
        while left >= weight and y < LONGEST:
            left -= weight
            weight *= ratio * mass_ratio(law.likelihood, y, rate)
            y += 1
        if y < least or y > most:
            continue
        if y == tangent or y == tangent + 1:
            return y
        kept = log_kernel(law.noise, report, y, 1.0) - at_tangent - (y - tangent) * slope
        if math.log(1.0 - rng.random()) <= kept:
            return y


@subroutine
def few_are_expected(law, rate, ratio, few):
    """Whether counts tilted by a ratio exist, and their parts are at most ``few`` in the mean."""
    return can_tilt(law.likelihood, ratio) and (1.0 - parts_exposure(law.likelihood, ratio)) * rate <= few


@subroutine
def draw_count(law, report, rate, rng):
    """An exact draw of the count given a stored report."""
    rate = rate if rate > SMALLEST else SMALLEST
    least, most = least_and_most(law.noise, report)
    if least == most:
        return least
    if not is_log_concave(law.noise, report):
        return draw_of_all(law, report, rate, rng)
    if most - least < SHORT and ORDINARY[0] < rate < ORDINARY[1]:
        drawn = draw_short(law, report, rate, least, most, rng)
        if drawn >= 0:
            return drawn
    if is_open(law.noise, report):
        for _ in range(TRIES):
            count = draw_unseen(law.likelihood, rate, rng)
            if count >= least:
                return count
    ratio = first_ratio(law.noise, report)
    if ratio <= 0.0:  # 1 is impossible, and so is all beyond
        return least
    if few_are_expected(law, rate, ratio, FEW):
        return draw_by_tangent(law, report, rate, np.int64(0), ratio, rng)
    window = window_of(law, report, rate)
    if least == 0 and window.at_least == 0.0 and window.top < min(SEVERAL, most - 1.0):
        before = step_ratio(law.noise, report, max(window.top - 1, 0))
        ratio = step_ratio(law.noise, report, window.top)
        beyond = step_ratio(law.noise, report, window.top + 1)
        curved = before > beyond * math.exp(CURVED / (window.top + 1.0))
        if ratio > 0.0 and not curved and few_are_expected(law, rate, ratio, SEVERAL):
            return draw_by_tangent(law, report, rate, window.top, ratio, rng)
    _, total = walk(law, report, rate, window, NO_TARGET)
    drawn, _ = walk(law, report, rate, window, rng.random() * total)
    return drawn
