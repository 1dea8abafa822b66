"""The law of reports of negative binomial counts under two-sided geometric noise (mathematics, section 13).

Given a positive report r, a count y has the weight NB(y; s, p) alpha^|r - y|. Weights are running products, with ratios
p / alpha (s + y - 1) / y up to r and p alpha (s + y - 1) / y above. With s >= 1 they have one mode, and are summed from
there. With s < 1 they are log-convex up to r and fall above it: modes may be at 0 and at r, and they are summed from
both. Sums end where a bound on all that is left is negligible.

With w(y) = NB(y; s, p) / NB(0; s, p), the sum over all counts of w(y) alpha^y is (1 - p alpha)^-s. So the sum above a
small report is this less the sum up to it, unless the difference loses too many digits.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from countveil.kernels import law
from countveil.kernels.compiled import subroutine
from countveil.kernels.entries import BATCH
from countveil.kernels.general import add_to_tally, likelihood_at, parts_exposure
from countveil.kernels.law import provides
from countveil.kernels.negative_binomial import (
    draw_bursts_of_all,
    expected_bursts,
    log_rising,
    negative_binomial_logpmf,
)
from countveil.kernels.random import SMALLEST, fill_uniforms
from countveil.laws.noise.two_sided_geometric.batches import LARGEST_LOWER, MOST, count_passed, restart
from countveil.laws.noise.two_sided_geometric.formulas import log_normaliser
from countveil.laws.noise.two_sided_geometric.negative_binomial_sums import expectations

NEGLIGIBLE = 1e-16  # share of a sum
FEW = 16  # up to such reports and shapes, weights are summed from 0 on
LARGEST_RATIO = 1e15  # of neighbouring weights there, whose products stay finite
SMALL = 64  # up to such reports the counts above them are a difference
LARGEST_SUM = 1e280  # its products with the numbers here are floats
LARGEST_LOSS = 1e4  # of a difference, relative to the sum that it is a part of: 12 digits are left


class TwoSidedGeometricNegativeBinomial(NamedTuple):
    """The law of reports of negative binomial counts under this noise; levels are alpha, where 0 is no noise."""

    likelihood: Any  # for all cells; of one cell, with the fields p and q = -log(1 - p)


@subroutine
def shape_of(likelihood, rate):
    """s of a cell with this rate of bursts."""
    return max(rate, SMALLEST) / likelihood.q


@subroutine
def negligible(total, moment, moments):
    """What may be left out of both sums; a moment is far smaller than the total where bursts are rare."""
    return NEGLIGIBLE * (min(total, moment) if moments else total)


@subroutine
def sum_from_zero(r, s, p, alpha, left, moments):
    """``sum_weights`` from 0 on; the reference is the weight of 0."""
    lower, upper = p / alpha, p * alpha
    weight = total = 1.0
    bursts = moment = 0.0
    y = 0
    while total <= left:
        if moments:
            bursts += s / (s + y)
        y += 1
        ratio = (lower if y <= r else upper) * (s + (y - 1)) / y
        weight *= ratio
        total += weight
        if moments:
            moment += weight * bursts
        if y > r and ratio < 1.0:  # ratios above r come closer to upper
            most = max(ratio, upper)
            if weight * most <= negligible(total, moment, moments) * (1.0 - most):
                break
    return y, 0.0, total, moment


@subroutine
def sum_by_difference(r, s, p, alpha, moments):
    """(sum of w(y) alpha^|r - y|, the same times bursts); the sum is 0 where too many digits would be lost.

    The bursts of a count y are b(y) = s / s + ... + s / (s + y - 1) in the mean (13.4), and b(y) w(y) is s times the
    derivative of w(y) in s. So the second sum over all counts is s times the derivative of the first.
    """
    # 1 - p alpha near 0 has all its digits only as (1 - p) + p (1 - alpha)
    log_rest = math.log((1.0 - p) + p * (1.0 - alpha)) if p * alpha > 0.5 else math.log1p(-p * alpha)
    exponent = -s * log_rest
    whole = math.exp(exponent)
    # w(y), w(y) alpha^y, and their sums; the former's with alpha^(r - y)
    weight = tilted = below = up_to = 1.0
    bursts = below_bursts = up_to_bursts = 0.0
    back = 1.0  # alpha^-r
    for y in range(r):
        ratio = p * (s + y) / (y + 1.0)
        weight *= ratio
        tilted *= ratio * alpha
        back /= alpha
        below = below * alpha + weight
        up_to += tilted
        if moments:
            bursts += s / (s + y)
            below_bursts = below_bursts * alpha + weight * bursts
            up_to_bursts += tilted * bursts
    total, lost = below + back * (whole - up_to), (1.0 + exponent) * back * whole
    if not (lost < LARGEST_SUM and lost <= LARGEST_LOSS * total):
        return 0.0, 0.0
    if not moments:
        return total, 0.0
    moment = below_bursts + back * (exponent * whole - up_to_bursts)
    return (total if exponent * lost <= LARGEST_LOSS * moment else 0.0), moment


@subroutine
def mode_of(r, s, p, alpha):
    """The mode of the weights, s >= 1."""
    lower, upper = p / alpha, p * alpha
    if lower < 1.0 and lower * (s - 1.0) < r * (1.0 - lower):
        return int(lower * (s - 1.0) / (1.0 - lower))
    return max(r, int(upper * (s - 1.0) / (1.0 - upper)))


@subroutine
def log_weight(y, r, s, p, alpha):
    """log of the weight of y over that of 0."""
    return log_rising(s, y) + y * math.log(p) + (abs(r - y) - r) * math.log(alpha)


@subroutine
def sum_from_mode(r, s, p, alpha, left, moments):
    """``sum_weights`` where there is one mode; the reference is its weight."""
    lower, upper = p / alpha, p * alpha
    mode = mode_of(r, s, p, alpha)
    at_mode = expected_bursts(mode, s) if moments else 0.0
    total, moment = 1.0, at_mode
    if total > left:
        return mode, 0.0, total, moment
    for step in (1, -1):
        y, weight, bursts = mode, 1.0, at_mode
        while step > 0 or y > 0:
            above = y + 1 if step > 0 else y  # the greater one of two neighbours
            ratio = (lower if above <= r else upper) * (s + (above - 1)) / above
            if step < 0:
                ratio = 1.0 / ratio
            y += step
            weight *= ratio
            total += weight
            if moments:
                bursts += step * s / (s + (above - 1))
                moment += weight * bursts
            if total > left:
                return y, 0.0, total, moment
            if ratio < 1.0 and weight * ratio <= negligible(total, moment, moments) * (1.0 - ratio):
                break
    return mode, log_weight(mode, r, s, p, alpha), total, moment


@subroutine
def sum_from_ends(r, s, p, alpha, left, moments):
    """``sum_weights`` for s < 1, from 0 upwards and from r both ways; the reference is the greater of their weights."""
    lower, upper = p / alpha, p * alpha
    log_last = log_weight(r, r, s, p, alpha)
    reference = max(0.0, log_last)
    low, high = math.exp(-reference), math.exp(log_last - reference)
    at_r = expected_bursts(r, s) if moments else 0.0
    total, moment = low, high * at_r
    if total > left:
        return 0, reference, total, moment
    total += high
    if total > left:
        return r, reference, total, moment
    y, weight, bursts = r, high, at_r
    while weight * upper > negligible(total, moment, moments) * (1.0 - upper):
        if moments:
            bursts += s / (s + y)
        y += 1
        weight *= upper * (s + (y - 1)) / y
        total += weight
        if moments:
            moment += weight * bursts
        if total > left:
            return y, reference, total, moment
    first, last, few, many = 0, r, 0.0, at_r
    while last - first > 1 and (last - first - 1) * max(low, high) > negligible(total, moment, moments):
        if low >= high:
            if moments:
                few += s / (s + first)
            first += 1
            low *= lower * (s + (first - 1)) / first
            y, weight, bursts = first, low, few
        else:
            if moments:
                many -= s / (s + (last - 1))
            high *= last / (lower * (s + (last - 1)))
            last -= 1
            y, weight, bursts = last, high, many
        total += weight
        moment += weight * bursts
        if total > left:
            return y, reference, total, moment
    return (r if log_last > 0.0 else 0), reference, total, moment


@subroutine
def sum_weights(r, s, p, alpha, left, moments):
    """(a count, log of the reference weight over that of 0, sum of weights over it, sum of weights times bursts).

    The sum stops at the count at which it exceeds ``left``, if it does: with a uniform part of the whole sum, that is a
    draw. Moments are computed on request.
    """
    if r <= FEW and s <= FEW and p <= LARGEST_RATIO * alpha:
        return sum_from_zero(r, s, p, alpha, left, moments)
    if s < 1.0:
        return sum_from_ends(r, s, p, alpha, left, moments)
    return sum_from_mode(r, s, p, alpha, left, moments)


@subroutine
def draw_count(r, s, p, alpha, rng):
    """A draw of the count behind a positive report (13.3)."""
    if alpha <= 0.0:
        return r
    _, _, total, _ = sum_weights(r, s, p, alpha, math.inf, False)
    y, _, _, _ = sum_weights(r, s, p, alpha, rng.random() * total, False)
    return y


@subroutine
def log_of_none(r, s, p, alpha):
    """log P(report and count 0)."""
    return log_normaliser(alpha) + s * math.log1p(-p) + r * math.log(alpha)


@subroutine
def score_and_bursts(r, s, p, alpha):
    """(log P(report), E[bursts | report]) of a positive report."""
    if alpha <= 0.0:
        return negative_binomial_logpmf(r, s, p), expected_bursts(r, s)
    if r <= SMALL:
        total, moment = sum_by_difference(r, s, p, alpha, True)
        if total > 0.0:
            return s * math.log1p(-p) + math.log((1.0 - alpha) / (1.0 + alpha) * total), moment / total
    _, reference, total, moment = sum_weights(r, s, p, alpha, math.inf, True)
    return log_of_none(r, s, p, alpha) + reference + math.log(total), moment / total


# Counts of many entries at once, given their positive reports, by loops that the compiler can vectorise.
#
# As in ``draws``, with negative binomial weights: for a report r <= MOST the weights w(y)/w(0), y = 0 to MOST, are
# running products of p / alpha (up to r) or p alpha (above) times (s + y - 1) / y. The rest beyond MOST is bounded by a
# geometric tail. Suffix i is the entry in its batch, j a count.

LARGEST_TAIL_RATIO = 0.75  # of neighbouring weights beyond MOST
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
        fits = small and tail_ratio(shape_i[i], upper_i[i]) < LARGEST_TAIL_RATIO and lower_i[i] < LARGEST_LOWER
        count = np.int64(passed_i[i]) if fits else -1
        if count > MOST:
            count = draw_beyond(shape_i[i], upper_i[i], rng)
        count_i[i] = count


@provides(law.law_at, TwoSidedGeometricNegativeBinomial)
def law_at(law, row, column):
    """That of the cell's likelihood."""
    return TwoSidedGeometricNegativeBinomial(likelihood_at(law.likelihood, row, column))


@provides(law.draw_counts, TwoSidedGeometricNegativeBinomial)
def draw_counts(law, row, n, batch, tally, source, rng):
    """Counts of all entries at once, and then their bursts."""
    column_i, report_i, rate_i, level_i, count_i, (lower_i, upper_i, _, _, _, _) = batch
    shape_i, bursts_i = np.empty(BATCH), np.empty(BATCH, dtype=np.int64)
    for i in range(n):
        cell = likelihood_at(law.likelihood, row, column_i[i])
        shape_i[i] = shape_of(cell, rate_i[i])
        lower_i[i] = cell.p / level_i[i] if level_i[i] > 0.0 else math.inf
        upper_i[i] = cell.p * level_i[i]
    draw_few(n, shape_i, batch, source, rng)
    for i in range(n):
        if count_i[i] < 0:
            cell = likelihood_at(law.likelihood, row, column_i[i])
            count_i[i] = draw_count(int(report_i[i]), shape_i[i], cell.p, level_i[i], rng)
    draw_bursts_of_all(n, count_i, shape_i, bursts_i, source, rng)
    for i in range(n):
        if tally.size > 0:
            add_to_tally(law.likelihood, row, column_i[i], count_i[i], bursts_i[i], tally)
        count_i[i] = bursts_i[i]


@provides(law.expect_counts, TwoSidedGeometricNegativeBinomial)
def expect_counts(law, row, n, batch):
    """Entry by entry."""
    column_i, report_i, rate_i, level_i, ratio_i, _ = batch
    bound = 0.0
    for i in range(n):
        cell = likelihood_at(law.likelihood, row, column_i[i])
        score, bursts = score_and_bursts(int(report_i[i]), shape_of(cell, rate_i[i]), cell.p, level_i[i])
        rate_i[i] = max(rate_i[i], SMALLEST)
        ratio_i[i] = bursts / rate_i[i]
        bound += score + rate_i[i]
    return bound


@provides(law.expected_ratio, TwoSidedGeometricNegativeBinomial)
def expected_ratio(law, report, rate, level):
    """E[bursts | report] / rate (13.5)."""
    cell = law.likelihood
    _, bursts = score_and_bursts(report, shape_of(cell, rate), cell.p, level)
    return bursts / max(rate, SMALLEST)


@provides(law.expect_both, TwoSidedGeometricNegativeBinomial)
def expect_both(law, report, rate, level):
    """Both from the same sums."""
    cell = law.likelihood
    _, count, bursts = expectations(report, shape_of(cell, rate), cell.p, level)
    return count, bursts


@provides(law.report_score, TwoSidedGeometricNegativeBinomial)
def report_score(law, report, rate, level):
    """log P(report | rate)."""
    cell = law.likelihood
    s, p = shape_of(cell, rate), cell.p
    if level <= 0.0:
        return negative_binomial_logpmf(report, s, p)
    if report <= SMALL:
        total, _ = sum_by_difference(report, s, p, level, False)
        if total > 0.0:
            return math.log((1.0 - level) / (1.0 + level) * total) - s * cell.q
    _, reference, total, _ = sum_weights(report, s, p, level, math.inf, False)
    return log_of_none(report, s, p, level) + reference + math.log(total)


@provides(law.unseen_exposure, TwoSidedGeometricNegativeBinomial)
def unseen_exposure(law, level):
    """1 - h (13.2)."""
    return parts_exposure(law.likelihood, level)


@provides(law.unseen_constant, TwoSidedGeometricNegativeBinomial)
def unseen_constant(law, level):
    """log P(report <= 0 | rate 0)."""
    return -math.log1p(level)


@provides(law.unseen_score, TwoSidedGeometricNegativeBinomial)
def unseen_score(law, rate, level):
    """log P(report <= 0 | rate)."""
    return -math.log1p(level) - parts_exposure(law.likelihood, level) * rate
