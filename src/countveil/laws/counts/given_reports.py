"""The law of a count given its report, cell by cell: draws and probabilities, for any noise and any likelihood.

A report without noise is the count. A cell without a report, -1 here, has the likelihood's own law. Probabilities are
added up over draws of the rates, so that what is averaged is the law itself and not a sample of it.
"""

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from countveil.kernels import general
from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.gibbs import inner
from countveil.kernels.law import by_class, law_at, provides, report_score, unseen_score
from countveil.kernels.random import SMALLEST
from countveil.kernels.windows import WindowLaw, draw_cell
from countveil.laws.counts.laws import general_law, law_of
from countveil.laws.counts.protocol import Likelihood, Parameters
from countveil.laws.noise.protocol import Noise
from countveil.laws.noise.two_sided_geometric import negative_binomial, poisson
from countveil.laws.noise.two_sided_geometric.negative_binomial import TwoSidedGeometricNegativeBinomial
from countveil.laws.noise.two_sided_geometric.noise import TwoSidedGeometricPoisson

Draw: TypeAlias = tuple[tuple[np.ndarray, np.ndarray], Parameters]
"""((theta (D, K), phi (V, K)), the likelihood's own parameters) of one draw of the posterior."""


class Cells(NamedTuple):
    """Some cells of a matrix; all fields are (n,), and ``exposure`` is None where there are none by cell."""

    rows: np.ndarray
    columns: np.ndarray
    reports: np.ndarray  # max(report, 0), or -1 where there is none
    level: np.ndarray  # of the noise
    exposure: np.ndarray | None = None

    def take(self, chosen: np.ndarray) -> "Cells":
        """Some of these cells."""
        return Cells(*(None if values is None else values[chosen] for values in self))  # type: ignore[arg-type]

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All fields as arrays: exposures are 1 where there are none."""
        known = np.ones(len(self.rows)) if self.exposure is None else self.exposure
        return *self[:4], known


class CountsGivenReports(NamedTuple):
    """What the counts of a model's cells are given their reports: a noise and a likelihood."""

    noise: Noise
    likelihood: Likelihood

    def draw(self, draw: Draw, cells: Cells, rng: np.random.Generator) -> np.ndarray:
        """(n,) a count for each of these cells, all of which have a report, given it and a draw of the posterior."""
        (theta, phi), parameters = draw
        counts = np.empty(len(cells.rows), dtype=np.int64)
        draw_cells(law_of(self.noise, self.likelihood, parameters), theta, phi, *cells.arrays, rng, counts)
        return counts

    def near(self, cells: Cells) -> np.ndarray:
        """(n,) a count of about the size that goes with each report, or 0 without one."""
        found = np.zeros(len(cells.rows), dtype=np.int64)
        fill_near(self.noise.kernel, cells.reports, cells.level, found)
        return found

    def add_laws(self, draw: Draw, cells: Cells, total: np.ndarray, cut: np.ndarray) -> None:
        """Add P(count = y | report), y = 0 to Y - 1, to ``total`` (n, Y), and set ``cut`` (n,) where Y is too small."""
        (theta, phi), parameters = draw
        add_laws(general_law(self.noise, self.likelihood, parameters), theta, phi, *cells.arrays, total, cut)

    def add_report_probabilities(self, draw: Draw, cells: Cells, below: np.ndarray, at: np.ndarray) -> None:
        """Add P(max(report, 0) < the cell's) to ``below`` (n,), and P(max(report, 0) = the cell's) to ``at`` (n,).

        Raises:
            ValueError: reports that are no numbers in an order, as suppressed ones.
        """
        if not self.noise.counts_positive:
            raise ValueError(
                "reports must have noise under which all values at or below zero mean the same, got reports by "
                f"{self.noise.in_words(cells.level):.200}"
            )
        (theta, phi), parameters = draw
        add_scores(law_of(self.noise, self.likelihood, parameters), theta, phi, *cells.arrays, below, at)


@by_class
def draw_given(law: Any, report: Any, rate: Any, level: Any, rng: Any) -> Any:
    """A draw of the count given a report that is not below zero, with noise."""
    raise NotImplementedError


@provides(draw_given, TwoSidedGeometricPoisson)
def draw_poisson(law: Any, report: Any, rate: Any, level: Any, rng: Any) -> Any:
    """In closed form (2.1, 2.4)."""
    return poisson.sample_count(report, rate, level, rng)


@provides(draw_given, TwoSidedGeometricNegativeBinomial)
def draw_negative_binomial(law: Any, report: Any, rate: Any, level: Any, rng: Any) -> Any:
    """From running products (13.3)."""
    s = negative_binomial.shape_of(law.likelihood, rate)
    return negative_binomial.draw_count(report, s, law.likelihood.p, level, rng)


@provides(draw_given, WindowLaw)
def draw_in_window(law: Any, report: Any, rate: Any, level: Any, rng: Any) -> Any:
    """As the sampler draws it."""
    return draw_cell(law.noise, law.likelihood, report, rate, rng)


@provides(draw_given, general.GeneralLaw)
def draw_generally(law: Any, report: Any, rate: Any, level: Any, rng: Any) -> Any:
    """By inversion."""
    size = 64
    while True:
        weight_y = np.zeros(size)
        total = fill_weights(law, report, rate, level, weight_y)
        if total > 0.0:
            break
        size *= 2
    left, drawn = rng.random() * total, 0
    for count in range(size):
        if weight_y[count] > 0.0:
            drawn = count  # the last possible one, in case rounding leaves something beyond it
        left -= weight_y[count]
        if left < 0.0:
            break
    return drawn


@kernel
def fill_near(noise: Any, report_i: Any, level_i: Any, count_i: Any) -> None:
    """count_i = a count near report_i, in place."""
    for i in range(count_i.size):
        if report_i[i] > 0:
            count_i[i] = general.near_count(noise, report_i[i], level_i[i])


@kernel
def draw_cells(
    law: Any,
    theta_dk: Any,
    phi_vk: Any,
    row_i: Any,
    column_i: Any,
    report_i: Any,
    level_i: Any,
    exposure_i: Any,
    rng: Any,
    count_i: Any,
) -> None:
    """count_i = a draw given report_i, in place."""
    for i in range(count_i.size):
        d, v = row_i[i], column_i[i]
        if level_i[i] <= 0.0:
            count_i[i] = report_i[i]
        else:
            rate = max(exposure_i[i] * inner(theta_dk, d, phi_vk, v), SMALLEST)
            count_i[i] = draw_given(law_at(law, d, v), report_i[i], rate, level_i[i], rng)


@kernel
def add_laws(
    law: Any,
    theta_dk: Any,
    phi_vk: Any,
    row_i: Any,
    column_i: Any,
    report_i: Any,
    level_i: Any,
    exposure_i: Any,
    total_iy: Any,
    cut_i: Any,
) -> None:
    """total_iy += P(count = y | report_i), in place; cut_i = True, and nothing is added, where y may be larger."""
    weight_y = np.zeros(total_iy.shape[1])
    for i in range(total_iy.shape[0]):
        d, v = row_i[i], column_i[i]
        if cut_i[i] or general.near_count(law.noise, report_i[i], level_i[i]) >= weight_y.size:
            cut_i[i] = True
        elif report_i[i] >= 0 and level_i[i] <= 0.0:
            total_iy[i, report_i[i]] += 1.0
        else:
            rate = max(exposure_i[i] * inner(theta_dk, d, phi_vk, v), SMALLEST)
            total = fill_weights(law_at(law, d, v), report_i[i], rate, level_i[i], weight_y)
            cut_i[i] = total <= 0.0
            for y in range(0 if cut_i[i] else weight_y.size):
                total_iy[i, y] += weight_y[y] / total


@kernel
def add_scores(
    law: Any,
    theta_dk: Any,
    phi_vk: Any,
    row_i: Any,
    column_i: Any,
    report_i: Any,
    level_i: Any,
    exposure_i: Any,
    below_i: Any,
    at_i: Any,
) -> None:
    """below_i += P(max(report, 0) < report_i) and at_i += P(max(report, 0) = report_i), in place."""
    for i in range(report_i.size):
        d, v = row_i[i], column_i[i]
        cell, rate = law_at(law, d, v), max(exposure_i[i] * inner(theta_dk, d, phi_vk, v), SMALLEST)
        for report in range(report_i[i] + 1):
            sum_i = below_i if report < report_i[i] else at_i
            if report > 0:
                sum_i[i] += math.exp(report_score(cell, report, rate, level_i[i]))
            else:
                sum_i[i] += math.exp(unseen_score(cell, rate, level_i[i]))


@subroutine
def log_weight(law: Any, report: Any, count: Any, rate: Any, level: Any) -> Any:
    """log P(count | rate) P(report | count), up to a constant in the count."""
    weight = general.log_mass(law.likelihood, count, rate)
    if report > 0:
        return weight + general.log_kernel(law.noise, report, count, level)
    if report == 0 and count > 0:
        ratio = general.kernel_ratio(law.noise, level)
        return weight + count * math.log(ratio) if ratio > 0.0 else -math.inf
    return weight


@subroutine
def negligible(weight: Any, top: Any) -> Any:
    """Whether a log weight may be left out; the weight of an impossible count says nothing about its neighbours."""
    return math.isfinite(weight) and weight - top < general.NEGLIGIBLE


@subroutine
def fill_weights(law: Any, report: Any, rate: Any, level: Any, weight_y: Any) -> Any:
    """weight_y = the weights of counts over the largest, in place; returns their sum, or 0 if Y is too small.

    Counts are visited from the report (from the rate where there is none) upwards and downwards, and from the least one
    upwards, each time until weights are negligible. That finds all modes where weights have one, or where they fall
    beyond the report and have one mode at the least count and another at the report, as bursty counts do (13.3).
    """
    weight_y[:] = -math.inf
    least, most, start = 0, -1, int(min(rate, 1e15)) if report < 0 else report
    if report == 0 and general.kernel_ratio(law.noise, level) <= 0.0:
        most = 0
    if report > 0:
        least, most = (general.least_count(law.noise, report, level), general.most_count(law.noise, report, level))
        start = max(general.near_count(law.noise, report, level), least)
        start = start if most < 0 else min(start, most)
    top, y = -math.inf, start
    while True:
        if y >= weight_y.size:
            return 0.0
        weight_y[y] = log_weight(law, report, y, rate, level)
        top = max(top, weight_y[y])
        if y == most or negligible(weight_y[y], top):
            break
        y += 1
    down = start
    while down > least:
        down -= 1
        weight_y[down] = log_weight(law, report, down, rate, level)
        top = max(top, weight_y[down])
        if negligible(weight_y[down], top):
            break
    for y in range(least, down):
        weight_y[y] = log_weight(law, report, y, rate, level)
        top = max(top, weight_y[y])
        if negligible(weight_y[y], top):
            break
    total = 0.0
    for y in range(weight_y.size):
        weight_y[y] = math.exp(weight_y[y] - top) if weight_y[y] > -math.inf else 0.0
        total += weight_y[y]
    return total
