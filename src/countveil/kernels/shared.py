"""A factor used for both rows and columns, theta_ic in mu_ijr = sum_cd theta_ic theta_jd middle_rcd.

theta_i and theta_j are coupled through the exposures of the cells that join them, so actors are updated one
after another with running sums (mathematics, section 6). A column is (j, r), flattened. Suffixes are shapes: i actors,
c components, r rests of a column, e stored entries of a row, f stored entries of an actor's columns.
"""

import math
from typing import NamedTuple

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.law import by_class, provides
from countveil.kernels.random import SMALLEST, sample_gamma, standard_gamma


class RowBaselines(NamedTuple):
    """Exposures of unstored cells that are the same in all columns of a row."""

    exposure_i: np.ndarray


class ColumnBaselines(NamedTuple):
    """Exposures of unstored cells by the noise level of the row (l) and by column."""

    level_i: np.ndarray  # the number of each row's level
    exposure_lir: np.ndarray


@by_class
def add_actor(baseline, i, sign, theta_ic, running):
    """Add sign times actor i's theta to the running sums."""
    raise NotImplementedError


@by_class
def unstored_cells(baseline, i, running, to_rc, from_rc):
    """Fill in sums over all actors of theta times exposure, if no cell were stored: of i's row, and of i's columns."""
    raise NotImplementedError


def running_sums(baseline, n_components):
    """Space for running sums, zero."""
    if isinstance(baseline, RowBaselines):
        return np.zeros((2, n_components))
    n_levels, _, n_rests = baseline.exposure_lir.shape
    return np.zeros((n_levels, n_components)), np.zeros((n_levels, n_rests, n_components))


@provides(add_actor, RowBaselines)
def add_actor_to_totals(baseline, i, sign, theta_ic, running):
    """running = (sum of theta, sum of exposure theta)."""
    exposure = baseline.exposure_i[i]
    for c in range(theta_ic.shape[1]):
        theta = sign * theta_ic[i, c]
        running[0, c] += theta
        running[1, c] += exposure * theta


@provides(unstored_cells, RowBaselines)
def unstored_cells_by_row(baseline, i, running, to_rc, from_rc):
    """The same in every rest."""
    for c in range(to_rc.shape[1]):
        for r in range(to_rc.shape[0]):
            to_rc[r, c] = baseline.exposure_i[i] * running[0, c]
            from_rc[r, c] = running[1, c]


@provides(add_actor, ColumnBaselines)
def add_actor_by_level(baseline, i, sign, theta_ic, running):
    """running = (sum of theta by level of the row, sum of theta times its columns' exposure to each level)."""
    total_lc, weighted_lrc = running
    for c in range(theta_ic.shape[1]):
        theta = sign * theta_ic[i, c]
        total_lc[baseline.level_i[i], c] += theta
        for l in range(weighted_lrc.shape[0]):  # noqa: E741
            for r in range(weighted_lrc.shape[1]):
                weighted_lrc[l, r, c] += baseline.exposure_lir[l, i, r] * theta


@provides(unstored_cells, ColumnBaselines)
def unstored_cells_by_column(baseline, i, running, to_rc, from_rc):
    """Those of the row's level; and over levels, the exposures of i's columns."""
    total_lc, weighted_lrc = running
    for r in range(to_rc.shape[0]):
        for c in range(to_rc.shape[1]):
            to_rc[r, c] = weighted_lrc[baseline.level_i[i], r, c]
            from_rc[r, c] = 0.0
            for l in range(total_lc.shape[0]):  # noqa: E741
                from_rc[r, c] += baseline.exposure_lir[l, i, r] * total_lc[l, c]


@subroutine
def sample_tilted_gamma(shape, rate, square, rng):
    """A draw from x^(shape - 1) exp(-rate x - square x^2), by rejection from a gamma that touches it.

    exp(-square x^2) = exp(-square (x - t)^2 - 2 square t x + square t^2): propose Gamma(shape, rate + 2 square t),
    accept with probability exp(-square (x - t)^2), with t the proposal's own mean.
    """
    if square <= 0.0:
        return sample_gamma(shape, rate, rng)
    touch = 2.0 * shape / (rate + math.sqrt(rate * rate + 8.0 * square * shape))
    while True:
        x = standard_gamma(shape, rng) / (rate + 2.0 * square * touch)
        if rng.random() < math.exp(-square * (x - touch) ** 2):
            return max(x, SMALLEST)


def update_actors(theta_ic, count_ic, shape_ic, rate_ic, middle_rcd, links, sample, rng):
    """Replace theta, actor by actor, by a draw (or, if not ``sample``, the mean) of Gamma(shape + count, rate + e).

    Without ``sample``, count_ic becomes the new shapes and rate_ic the new rates. links is (baseline, out, into,
    loop_ir): ``RowBaselines`` or ``ColumnBaselines``; (indptr, actor_e, rest_e, excess_e) of the stored entries of
    each row; the same for each actor's columns; exposures of the cells (i, i, r), which the others leave out. A draw
    with self-loops has the density of equation 6.5.
    """
    sums = (
        np.zeros(theta_ic.shape[1]),
        running_sums(links[0], theta_ic.shape[1]),
        np.empty((2, *middle_rcd.shape[:2])),
    )
    visit_actors(theta_ic, count_ic, shape_ic, rate_ic, middle_rcd, links, sample, sums, rng)


@kernel
def visit_actors(theta_ic, count_ic, shape_ic, rate_ic, middle_rcd, links, sample, sums, rng):
    """``update_actors``, with space for running sums; arrays made in here would take longer to compile."""
    baseline, out, into, loop_ir = links
    n_actors, n_components = theta_ic.shape
    n_rests = middle_rcd.shape[0]
    exposure_c, running, unstored = sums
    to_rc, from_rc = unstored[0], unstored[1]
    for i in range(n_actors):
        add_actor(baseline, i, 1.0, theta_ic, running)
    for i in range(n_actors):
        add_actor(baseline, i, -1.0, theta_ic, running)
        exposure_c[:] = 0.0
        unstored_cells(baseline, i, running, to_rc, from_rc)
        add_neighbours(out, i, theta_ic, to_rc)
        add_neighbours(into, i, theta_ic, from_rc)
        for r in range(n_rests):
            for c in range(n_components):
                for d in range(n_components):
                    exposure_c[c] += middle_rcd[r, c, d] * to_rc[r, d] + middle_rcd[r, d, c] * from_rc[r, d]
        for c in range(n_components):
            rate = rate_ic[i, c] + max(exposure_c[c], 0.0)
            if sample:
                square = 0.0
                for r in range(n_rests):
                    square += loop_ir[i, r] * middle_rcd[r, c, c]
                    for d in range(n_components):
                        if d != c and loop_ir[i, r] > 0.0:
                            pair = middle_rcd[r, c, d] + middle_rcd[r, d, c]
                            rate += loop_ir[i, r] * pair * theta_ic[i, d]
                theta_ic[i, c] = sample_tilted_gamma(shape_ic[i, c] + count_ic[i, c], rate, square, rng)
            else:
                count_ic[i, c] += shape_ic[i, c]
                rate_ic[i, c] = max(rate, SMALLEST)
                theta_ic[i, c] = max(count_ic[i, c] / rate_ic[i, c], SMALLEST)
        add_actor(baseline, i, 1.0, theta_ic, running)


@subroutine
def add_neighbours(entries, i, theta_ic, sum_rc):
    """Add excess theta_j over actor i's stored entries to the sums of their rests."""
    indptr, actor_e, rest_e, excess_e = entries
    for e in range(indptr[i], indptr[i + 1]):
        j, r, excess = actor_e[e], rest_e[e], excess_e[e]
        for c in range(theta_ic.shape[1]):
            sum_rc[r, c] += excess * theta_ic[j, c]
