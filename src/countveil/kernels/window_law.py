"""A law by windows of counts, as loops ask for it (``law``): entry by entry, in ``windows`` around the mode."""

from countveil.kernels import general, law
from countveil.kernels.general import add_to_tally, draw_parts, likelihood_at
from countveil.kernels.law import provides
from countveil.kernels.random import SMALLEST
from countveil.kernels.report_kernels import (
    CONSTANT,
    FIRST,
    KIND,
    LAST,
    LEAST,
    MOST,
    PEAK,
    RATIO,
    SCALE,
    TABLE,
    VALUE,
    SmoothKernel,
)
from countveil.kernels.windows import WindowLaw, draw_cell, draw_count, moments_of_cell

__all__ = ["WindowLaw"]


@provides(law.law_at, WindowLaw)
def window_law_at(law, row, column):
    """The same noise, and the likelihood of the cell."""
    return WindowLaw(law.noise, likelihood_at(law.likelihood, row, column))


@provides(law.draw_counts, WindowLaw)
def draw_counts(law, row, n, batch, tally, source, rng):
    """Entry by entry. Most calls are given numbers alone: references to arrays would be counted at each."""
    column_i, report_i, rate_i, _, count_i, _ = batch
    noise = law.noise
    whole_cj, real_cj, whole_aj, real_aj = noise.whole_cj, noise.real_cj, noise.whole_aj, noise.real_aj
    for i in range(n):
        likelihood, report = likelihood_at(law.likelihood, row, column_i[i]), int(report_i[i])
        a, least = whole_cj[report, FIRST], whole_cj[report, LEAST]
        if least == whole_cj[report, MOST]:
            count = least
        elif whole_cj[report, LAST] - a == 1 and whole_aj[a, KIND] != TABLE:
            smooth = SmoothKernel(
                whole_aj[a, KIND], real_aj[a, VALUE], real_aj[a, SCALE], real_aj[a, CONSTANT], whole_cj[report, LEAST],
                whole_cj[report, MOST], whole_cj[report, PEAK], real_cj[report, RATIO],
            )  # fmt: skip
            count = draw_count(WindowLaw(smooth, likelihood), report, rate_i[i], rng)
        else:
            count = draw_cell(law.noise, likelihood, report, rate_i[i], rng)
        count_i[i] = draw_parts(likelihood, count, rate_i[i], rng)
        if tally.size > 0:
            add_to_tally(law.likelihood, row, column_i[i], count, count_i[i], tally)


@provides(law.expect_counts, WindowLaw)
def expect_counts(law, row, n, batch):
    """Entry by entry."""
    column_i, report_i, rate_i, _, ratio_i, _ = batch
    bound = 0.0
    for i in range(n):
        rate_i[i] = max(rate_i[i], SMALLEST)
        likelihood = likelihood_at(law.likelihood, row, column_i[i])
        score, _, parts = moments_of_cell(law.noise, likelihood, int(report_i[i]), rate_i[i], True)
        ratio_i[i] = parts / rate_i[i]
        bound += score + rate_i[i]
    return bound


@provides(law.expected_ratio, WindowLaw)
def expected_ratio(law, report, rate, level):
    """The expected parts over the rate."""
    rate = rate if rate > SMALLEST else SMALLEST
    return moments_of_cell(law.noise, law.likelihood, report, rate, True)[2] / rate


@provides(law.expect_both, WindowLaw)
def expect_both(law, report, rate, level):
    """Counts and parts."""
    rate = rate if rate > SMALLEST else SMALLEST
    found = moments_of_cell(law.noise, law.likelihood, report, rate, True)
    return found[1], found[2]


@provides(law.report_score, WindowLaw)
def report_score(law, report, rate, level):
    """The log of the sum of all weights."""
    rate = rate if rate > SMALLEST else SMALLEST
    return moments_of_cell(law.noise, law.likelihood, report, rate, False)[0]


for same, as_generally in (
    (law.unseen_exposure, general.unseen_exposure_generally),
    (law.unseen_constant, general.unseen_constant_generally),
    (law.unseen_score, general.unseen_score_generally),
):
    provides(same, WindowLaw)(as_generally)
