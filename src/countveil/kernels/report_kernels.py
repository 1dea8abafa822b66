"""The kernels of all different reports in some data, as tables that compiled loops read.

Reports are numbered: a *code* stands for a report under its mechanism, or for several reports of one count. Code 0 says
that the count is zero. The kernel of a code is a product of *pieces*, each the kernel of one report,

    log k(y) = constant                              flat: the report only says in which range the count lies
             = constant - scale |value - y|          linear: two-sided geometric and Laplace noise
             = constant - scale (value - y)^2        quadratic: Gaussian noise, discrete or not
             = log(1 - |value - y| / scale)          tent: random rounding
             = table[begin + y - offset]             any other, with slopes beyond the ends of its table

within the counts that are possible (mathematics, section 14).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from countveil.kernels import general, law, tokens, windows
from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.law import provides
from countveil.kernels.negative_binomial import logarithmic_size
from countveil.kernels.random import SMALLEST
from countveil.kernels.windows import STEEP

FLAT, LINEAR, QUADRATIC, TENT, TABLE = range(5)
UNBOUNDED = 2**62
"""The largest count that is considered where a report does not bound it."""

FIRST, LAST, LEAST, MOST, PEAK, CONCAVE = range(6)  # columns of ``whole_cj``: a code's pieces, counts, and shape
RATIO, GUESS = range(2)  # of ``real_cj``: k(1) / k(0), and an estimate of the count
KIND, BEGIN, LENGTH, OFFSET = range(4)  # of ``whole_aj``
VALUE, SCALE, CONSTANT, LEFT, RIGHT = range(5)  # of ``real_aj``


class ReportKernels(NamedTuple):
    """Codes c, and the pieces a of their kernels; columns are named above."""

    whole_cj: NDArray[np.int64]
    real_cj: NDArray[np.float64]
    whole_aj: NDArray[np.int64]
    real_aj: NDArray[np.float64]
    table: NDArray[np.float64]


@subroutine
def tent(value, scale, y):
    """1 - |value - y| / scale, to the last digit also where it is small."""
    return (scale - abs(value - y)) / scale


@subroutine
def log_of_piece(kernels, a, y):
    """log k(y) of one piece."""
    kind = kernels.whole_aj[a, KIND]
    if kind == QUADRATIC:
        gap = kernels.real_aj[a, VALUE] - y
        return kernels.real_aj[a, CONSTANT] - gap * gap * kernels.real_aj[a, SCALE]
    if kind == LINEAR:
        return kernels.real_aj[a, CONSTANT] - abs(kernels.real_aj[a, VALUE] - y) * kernels.real_aj[a, SCALE]
    if kind == FLAT:
        return kernels.real_aj[a, CONSTANT]
    if kind == TENT:
        return math.log(tent(kernels.real_aj[a, VALUE], kernels.real_aj[a, SCALE], y))
    begin, length = kernels.whole_aj[a, BEGIN], kernels.whole_aj[a, LENGTH]
    at = y - kernels.whole_aj[a, OFFSET]
    if at < 0:
        return kernels.table[begin] + at * kernels.real_aj[a, LEFT]
    if at >= length:
        return kernels.table[begin + length - 1] + (at - length + 1) * kernels.real_aj[a, RIGHT]
    return kernels.table[begin + at]


@subroutine
def step_of_piece(kernels, a, y):
    """log k(y + 1) - log k(y) of one piece."""
    kind = kernels.whole_aj[a, KIND]
    if kind == QUADRATIC:
        return (2.0 * (kernels.real_aj[a, VALUE] - y) - 1.0) * kernels.real_aj[a, SCALE]
    if kind == LINEAR:
        gap = kernels.real_aj[a, VALUE] - y  # between 0 and 1 where the value lies between both counts
        return min(max(2.0 * gap - 1.0, -1.0), 1.0) * kernels.real_aj[a, SCALE]
    if kind == FLAT:
        return 0.0
    return log_of_piece(kernels, a, y + 1) - log_of_piece(kernels, a, y)


@provides(general.log_kernel, ReportKernels)
def log_kernel(noise, report, count, level):
    """The sum over the code's pieces."""
    total = 0.0
    for a in range(noise.whole_cj[report, FIRST], noise.whole_cj[report, LAST]):
        total += log_of_piece(noise, a, count)
    return total


@provides(windows.log_step, ReportKernels)
def log_step(noise, report, count):
    """The sum over the code's pieces."""
    total = 0.0
    for a in range(noise.whole_cj[report, FIRST], noise.whole_cj[report, LAST]):
        total += step_of_piece(noise, a, count)
    return total


@provides(windows.least_and_most, ReportKernels)
def least_and_most(noise, report):
    """From the table."""
    return noise.whole_cj[report, LEAST], noise.whole_cj[report, MOST]


@provides(windows.peak_of_kernel, ReportKernels)
def peak_of_kernel(noise, report):
    """From the table."""
    return noise.whole_cj[report, PEAK]


@provides(windows.is_log_concave, ReportKernels)
def is_log_concave(noise, report):
    """From the table."""
    return noise.whole_cj[report, CONCAVE] == 1


@provides(windows.is_open, ReportKernels)
def is_open(noise, report):
    """Without a bound, and flat in all pieces."""
    if noise.whole_cj[report, MOST] < UNBOUNDED:
        return False
    for a in range(noise.whole_cj[report, FIRST], noise.whole_cj[report, LAST]):
        if noise.whole_aj[a, KIND] != FLAT:
            return False
    return True


@provides(windows.first_ratio, ReportKernels)
def first_ratio(noise, report):
    """From the table."""
    return noise.real_cj[report, RATIO]


@provides(general.least_count, ReportKernels)
def least_count(noise, report, level):
    """From the table."""
    return noise.whole_cj[report, LEAST]


@provides(general.most_count, ReportKernels)
def most_count(noise, report, level):
    """From the table; -1 without a bound."""
    most = noise.whole_cj[report, MOST]
    return -1 if most >= UNBOUNDED else most


@provides(general.kernel_ratio, ReportKernels)
def kernel_ratio(noise, level):
    """0: a report that is not stored says that the count is zero."""
    return 0.0


@provides(general.log_unseen, ReportKernels)
def log_unseen(noise, level):
    """0: a count of zero has that report."""
    return 0.0


class SmoothKernel(NamedTuple):
    """One report whose kernel is a formula."""

    kind: int
    value: float
    scale: float
    constant: float
    least: int
    most: int
    peak: int
    ratio: float


class TabledKernel(NamedTuple):
    """One report whose kernel is in the table."""

    table: NDArray[np.float64]
    begin: int
    length: int
    offset: int
    left: float
    right: float
    least: int
    most: int
    peak: int
    concave: int
    ratio: float


@subroutine
def smooth(noise, report, a):
    """The report's kernel by its only piece."""
    return SmoothKernel(
        noise.whole_aj[a, KIND], noise.real_aj[a, VALUE], noise.real_aj[a, SCALE], noise.real_aj[a, CONSTANT],
        noise.whole_cj[report, LEAST], noise.whole_cj[report, MOST], noise.whole_cj[report, PEAK],
        noise.real_cj[report, RATIO],
    )  # fmt: skip


@subroutine
def tabled(noise, report, a):
    """The report's kernel by its only piece."""
    return TabledKernel(
        noise.table, noise.whole_aj[a, BEGIN], noise.whole_aj[a, LENGTH], noise.whole_aj[a, OFFSET],
        noise.real_aj[a, LEFT], noise.real_aj[a, RIGHT], noise.whole_cj[report, LEAST],
        noise.whole_cj[report, MOST], noise.whole_cj[report, PEAK], noise.whole_cj[report, CONCAVE],
        noise.real_cj[report, RATIO],
    )  # fmt: skip


@provides(windows.draw_cell, ReportKernels)
def draw_cell(noise, likelihood, report, rate, rng):
    """By the report's kernel alone, if it has one piece."""
    report = np.int64(report)  # loops below are compiled for one kind of reports
    least, a = noise.whole_cj[report, LEAST], noise.whole_cj[report, FIRST]
    if least == noise.whole_cj[report, MOST]:
        return least
    if noise.whole_cj[report, LAST] - a != 1:
        return windows.draw_count(windows.WindowLaw(noise, likelihood), report, rate, rng)
    if noise.whole_aj[a, KIND] == TABLE:
        return windows.draw_count(windows.WindowLaw(tabled(noise, report, a), likelihood), report, rate, rng)
    return windows.draw_count(windows.WindowLaw(smooth(noise, report, a), likelihood), report, rate, rng)


@provides(windows.moments_of_cell, ReportKernels)
def moments_of_cell(noise, likelihood, report, rate, averaged):
    """By the report's kernel alone, if it has one piece."""
    report = np.int64(report)
    a = noise.whole_cj[report, FIRST]
    if noise.whole_cj[report, LAST] - a != 1:
        return windows.moments(windows.WindowLaw(noise, likelihood), report, rate, averaged)
    if noise.whole_aj[a, KIND] == TABLE:
        return windows.moments(windows.WindowLaw(tabled(noise, report, a), likelihood), report, rate, averaged)
    return windows.moments(windows.WindowLaw(smooth(noise, report, a), likelihood), report, rate, averaged)


@provides(general.log_kernel, SmoothKernel)
def smooth_kernel(noise, report, count, level):
    """The formula."""
    gap = noise.value - count
    if noise.kind == QUADRATIC:
        return noise.constant - gap * gap * noise.scale
    if noise.kind == TENT:
        return math.log(tent(noise.value, noise.scale, count))
    return noise.constant - abs(gap) * noise.scale  # flat where the scale is 0


@provides(windows.step_ratio, SmoothKernel)
def smooth_ratio(noise, report, count):
    """Of the formula."""
    if noise.kind == FLAT:
        return 1.0
    if noise.kind == TENT:
        return tent(noise.value, noise.scale, count + 1) / tent(noise.value, noise.scale, count)
    slope = 2.0 * (noise.value - count) - 1.0
    slope = slope if noise.kind == QUADRATIC else min(max(slope, -1.0), 1.0)
    return math.exp(min(slope * noise.scale, windows.STEEP))


@provides(windows.log_step, SmoothKernel)
def smooth_step(noise, report, count):
    """Of the formula."""
    if noise.kind == TENT:
        return math.log(smooth_ratio(noise, report, count))
    slope = 2.0 * (noise.value - count) - 1.0
    return (slope if noise.kind == QUADRATIC else min(max(slope, -1.0), 1.0)) * noise.scale


@provides(general.log_kernel, TabledKernel)
def tabled_kernel(noise, report, count, level):
    """The table's entry, or a line beyond its ends."""
    at = count - noise.offset
    if at < 0:
        return noise.table[noise.begin] + at * noise.left
    if at >= noise.length:
        return noise.table[noise.begin + noise.length - 1] + (at - noise.length + 1) * noise.right
    return noise.table[noise.begin + at]


@provides(windows.log_step, TabledKernel)
def tabled_step(noise, report, count):
    """The difference of two entries."""
    return tabled_kernel(noise, report, count + 1, 1.0) - tabled_kernel(noise, report, count, 1.0)


@subroutine
def own_bounds(noise, report):
    """The least and the greatest count."""
    return noise.least, noise.most


@subroutine
def own_peak(noise, report):
    """Its own."""
    return noise.peak


@subroutine
def own_ratio(noise, report):
    """Its own."""
    return noise.ratio


for one in (SmoothKernel, TabledKernel):
    provides(windows.least_and_most, one)(own_bounds)
    provides(windows.peak_of_kernel, one)(own_peak)
    provides(windows.first_ratio, one)(own_ratio)


@provides(windows.is_log_concave, SmoothKernel)
def smooth_is_log_concave(noise, report):
    """All formulas are."""
    return True


@provides(windows.is_log_concave, TabledKernel)
def tabled_is_log_concave(noise, report):
    """As the mechanism says."""
    return noise.concave == 1


@provides(windows.is_open, SmoothKernel)
def smooth_is_open(noise, report):
    """Flat, and without a bound."""
    return noise.kind == FLAT and noise.most >= UNBOUNDED


@provides(windows.is_open, TabledKernel)
def tabled_is_open(noise, report):
    """Never."""
    return False


@provides(general.near_count, ReportKernels)
def near_count(noise, report, level):
    """The peak of the kernel."""
    return noise.whole_cj[report, PEAK]


@provides(law.debiased, ReportKernels)
def debiased(noise, report, level):
    """The estimate of the count, which is 0 where that is known to be zero."""
    return noise.real_cj[report, GUESS]


@provides(law.bias, ReportKernels)
def bias(noise, level):
    """0."""
    return 0.0


@provides(law.unbiased, ReportKernels)
def unbiased(noise, report, level):
    """The estimate of the count."""
    return noise.real_cj[report, GUESS]


@kernel
def fill_kernels(kernels, code_i, count_i, found_i):
    """found_i = log P(report | count), minus infinity where that is impossible; in place."""
    for i in range(code_i.size):
        c, y = code_i[i], count_i[i]
        possible = kernels.whole_cj[c, LEAST] <= y <= kernels.whole_cj[c, MOST]
        found_i[i] = log_kernel(kernels, c, y, 1.0) if possible else -math.inf


@kernel
def fill_peaks(kernels, low_c, high_c):
    """Fill in every code's peak, which lies between two counts, and k(1) / k(0); in place."""
    for c in range(low_c.size):
        least, most = kernels.whole_cj[c, LEAST], kernels.whole_cj[c, MOST]
        low, high = min(max(low_c[c], least), most), min(max(high_c[c], least), most)
        while low < high:
            middle = low + (high - low) // 2
            if log_step(kernels, c, middle) > 0.0:
                low = middle + 1
            else:
                high = middle
        kernels.whole_cj[c, PEAK] = low
        kernels.real_cj[c, RATIO] = math.nan
        if least == 0:
            kernels.real_cj[c, RATIO] = math.exp(min(log_step(kernels, c, 0), STEEP)) if most > 0 else 0.0


@kernel
def fill_gains(noise, code_c, gain_cy):
    """gain_cy = log k(y) / k(0) of these codes, which allow the count 0; in place."""
    for c in range(code_c.size):
        for y in range(gain_cy.shape[1]):
            gain_cy[c, y] = log_gain(noise, code_c[c], y)


@subroutine
def log_gain(noise, code, y):
    """log k(y) / k(0)."""
    if y > noise.whole_cj[code, MOST]:
        return -math.inf
    return log_kernel(noise, code, y, 1.0) - log_kernel(noise, code, 0, 1.0)


@provides(tokens.gain_of, ReportKernels)
def gain_of(noise, codes, place, y):
    """From the table, as far as it goes."""
    if y < codes.gain_cy.shape[1]:
        return codes.gain_cy[place - 1, y]
    return log_gain(noise, codes.code_c[place - 1], y)


@provides(tokens.burst_size, ReportKernels)
def burst_size(noise, p, place, level, chance, uniform, left, codes, rng):
    """Logarithmic with parameter p c, c = k(1) / k(0), which is kept with probability k(n) / (k(0) c^n)."""
    size = logarithmic_size(p * codes.ratio_c[place - 1], uniform / chance, rng)
    if size > 1:
        excess = size * gain_of(noise, codes, place, 1) - gain_of(noise, codes, place, size)
        if excess > 0.0 and rng.random() >= math.exp(-excess):
            return 0
    return size


# The law by windows of counts around the mode (``windows``), as loops ask for it (``law``).


@provides(law.law_at, windows.WindowLaw)
def window_law_at(law, row, column):
    """The same noise, and the likelihood of the cell."""
    return windows.WindowLaw(law.noise, general.likelihood_at(law.likelihood, row, column))


@provides(law.draw_counts, windows.WindowLaw)
def draw_counts(law, row, n, batch, tally, source, rng):
    """Entry by entry. Most calls are given numbers alone: references to arrays would be counted at each."""
    column_i, report_i, rate_i, _, count_i, _ = batch
    noise = law.noise
    whole_cj, real_cj, whole_aj, real_aj = noise.whole_cj, noise.real_cj, noise.whole_aj, noise.real_aj
    for i in range(n):
        likelihood, report = general.likelihood_at(law.likelihood, row, column_i[i]), int(report_i[i])
        a, least = whole_cj[report, FIRST], whole_cj[report, LEAST]
        if least == whole_cj[report, MOST]:
            count = least
        elif whole_cj[report, LAST] - a == 1 and whole_aj[a, KIND] != TABLE:
            smooth = SmoothKernel(
                whole_aj[a, KIND], real_aj[a, VALUE], real_aj[a, SCALE], real_aj[a, CONSTANT], whole_cj[report, LEAST],
                whole_cj[report, MOST], whole_cj[report, PEAK], real_cj[report, RATIO],
            )  # fmt: skip
            count = windows.draw_count(windows.WindowLaw(smooth, likelihood), report, rate_i[i], rng)
        else:
            count = windows.draw_cell(law.noise, likelihood, report, rate_i[i], rng)
        count_i[i] = general.draw_parts(likelihood, count, rate_i[i], rng)
        if tally.size > 0:
            general.add_to_tally(law.likelihood, row, column_i[i], count, count_i[i], tally)


@provides(law.expect_counts, windows.WindowLaw)
def expect_counts(law, row, n, batch):
    """Entry by entry."""
    column_i, report_i, rate_i, _, ratio_i, _ = batch
    bound = 0.0
    for i in range(n):
        rate_i[i] = max(rate_i[i], SMALLEST)
        likelihood = general.likelihood_at(law.likelihood, row, column_i[i])
        score, _, parts = windows.moments_of_cell(law.noise, likelihood, int(report_i[i]), rate_i[i], True)
        ratio_i[i] = parts / rate_i[i]
        bound += score + rate_i[i]
    return bound


@provides(law.expected_ratio, windows.WindowLaw)
def expected_ratio(law, report, rate, level):
    """The expected parts over the rate."""
    rate = rate if rate > SMALLEST else SMALLEST
    return windows.moments_of_cell(law.noise, law.likelihood, report, rate, True)[2] / rate


@provides(law.expect_both, windows.WindowLaw)
def expect_both(law, report, rate, level):
    """Counts and parts."""
    rate = rate if rate > SMALLEST else SMALLEST
    found = windows.moments_of_cell(law.noise, law.likelihood, report, rate, True)
    return found[1], found[2]


@provides(law.report_score, windows.WindowLaw)
def report_score(law, report, rate, level):
    """The log of the sum of all weights."""
    rate = rate if rate > SMALLEST else SMALLEST
    return windows.moments_of_cell(law.noise, law.likelihood, report, rate, False)[0]


for same, as_generally in (
    (law.unseen_exposure, general.unseen_exposure_generally),
    (law.unseen_constant, general.unseen_constant_generally),
    (law.unseen_score, general.unseen_score_generally),
):
    provides(same, windows.WindowLaw)(as_generally)
