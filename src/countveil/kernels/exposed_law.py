"""A law of reports whose cells have known exposures: that of another law, at exposure times rate (mathematics, 3.4).

Loops see rates for one unit of exposure. What is allocated to components is split in the same shares, since a cell's
exposure cancels; and the exposure of a cell is its own times what the other law gives it. All cells are stored, so that
no exposure is a row's or a column's.
"""

from typing import Any, NamedTuple

import numpy as np

from countveil.kernels.compiled import subroutine
from countveil.kernels.law import (
    draw_counts,
    expect_both,
    expect_counts,
    expected_ratio,
    law_at,
    provides,
    report_score,
    seen_exposures,
    unseen_constant,
    unseen_exposure,
    unseen_score,
)

UNWANTED = np.empty((0, 0))


class ExposedLaw(NamedTuple):
    """A law for one unit of exposure, its likelihood, the exposures of all cells, and the number of the first row.

    Where ``parts_dv`` is not empty, draws of counts write the parts of each cell's count there: what levels are drawn
    from.
    """

    plain: Any
    likelihood: Any
    exposure_dv: np.ndarray
    first_row: int = 0
    parts_dv: np.ndarray = UNWANTED


class ExposedCell(NamedTuple):
    """The law of one cell, and its exposure."""

    plain: Any
    likelihood: Any
    exposure: float


@subroutine
def exposure_at(exposed, row, column):
    """The exposure of a cell, with rows counted from the block's first."""
    return exposed.exposure_dv[exposed.first_row + row, column]


@provides(law_at, ExposedLaw)
def cell_of(exposed, row, column):
    """Both."""
    plain = law_at(exposed.plain, row, column)
    return ExposedCell(plain, exposed.likelihood, exposure_at(exposed, row, column))


@provides(seen_exposures, ExposedLaw)
def seen_exposures_exposed(exposed, row):
    """The row's."""
    return exposed.exposure_dv[exposed.first_row + row]


@provides(draw_counts, ExposedLaw)
def draw_counts_exposed(exposed, row, n, batch, tally, source, rng):
    """At exposure times rate; rates come back as they were, since counts are split in proportion to them."""
    column_i, rate_i = batch[0], batch[2]
    plain_i = np.empty(n)
    for i in range(n):
        plain_i[i] = rate_i[i]
        rate_i[i] *= exposure_at(exposed, row, column_i[i])
    draw_counts(exposed.plain, row, n, batch, tally, source, rng)
    for i in range(n):
        rate_i[i] = plain_i[i]
    if exposed.parts_dv.size > 0:
        count_i = batch[4]
        for i in range(n):
            exposed.parts_dv[exposed.first_row + row, column_i[i]] = count_i[i]


@provides(expect_counts, ExposedLaw)
def expect_counts_exposed(exposed, row, n, batch):
    """At exposure times rate; the sum is of log P(report_i) + exposure_i rate_i."""
    column_i, rate_i, ratio_i = batch[0], batch[2], batch[4]
    plain_i = np.empty(n)
    for i in range(n):
        plain_i[i] = rate_i[i]
        rate_i[i] *= exposure_at(exposed, row, column_i[i])
    bound = expect_counts(exposed.plain, row, n, batch)
    for i in range(n):
        ratio_i[i] *= exposure_at(exposed, row, column_i[i])
        rate_i[i] = plain_i[i]
    return bound


@provides(unseen_constant, ExposedLaw)
def unseen_constant_exposed(exposed, level):
    """The other law's: no exposure matters at rate zero."""
    return unseen_constant(exposed.plain, level)


@provides(unseen_constant, ExposedCell)
def unseen_constant_of_cell(cell, level):
    """The other law's."""
    return unseen_constant(cell.plain, level)


@provides(unseen_exposure, ExposedCell)
def unseen_exposure_of_cell(cell, level):
    """The cell's times the other law's."""
    return cell.exposure * unseen_exposure(cell.plain, level)


@provides(unseen_score, ExposedCell)
def unseen_score_of_cell(cell, rate, level):
    """At exposure times rate."""
    return unseen_score(cell.plain, cell.exposure * rate, level)


@provides(report_score, ExposedCell)
def report_score_of_cell(cell, report, rate, level):
    """At exposure times rate."""
    return report_score(cell.plain, report, cell.exposure * rate, level)


@provides(expected_ratio, ExposedCell)
def expected_ratio_of_cell(cell, report, rate, level):
    """Over the rate for one unit of exposure."""
    return cell.exposure * expected_ratio(cell.plain, report, cell.exposure * rate, level)


@provides(expect_both, ExposedCell)
def expect_both_of_cell(cell, report, rate, level):
    """At exposure times rate."""
    return expect_both(cell.plain, report, cell.exposure * rate, level)
