"""The log-likelihood of reports, where most cells have one of a few reports: a table of each by the rate.

log P(report | rate) of a report is a smooth function of log rate, and its derivative is E[parts | report] - rate
(mathematics, equations 2.8 and 13.5). It is tabled on a grid, and interpolated in between by cubics with these values
and slopes (Hermite). All cells are passed over, but those with these reports need no sums over counts.

Suffixes are shapes, as in ``gibbs``; c is the number of a code among those that are proposed (see ``kernels.tokens``),
g a place on the grid.
"""

import math
from typing import NamedTuple

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.gibbs import inner
from countveil.kernels.law import expected_ratio, law_at, report_score, unseen_score
from countveil.kernels.tokens import Codes, fill_places, reset_places, set_places

FIRST, LAST, STEP = math.log(1e-6), math.log(1e5), 0.01  # of log rates: scores err by below 1e-8


class Scores(NamedTuple):
    """log P(report | rate) of the codes that are proposed, on a grid of log rates, and its derivative."""

    codes: Codes
    score_cg: np.ndarray
    slope_cg: np.ndarray


def scores_of(law, codes):
    """The table of these codes, for a law that is the same in all cells."""
    shape = len(codes.code_c), int((LAST - FIRST) / STEP) + 1
    found = Scores(codes, np.empty(shape), np.empty(shape))
    fill_scores(law, codes.code_c, found.score_cg, found.slope_cg)
    return found


@kernel
def fill_scores(law, code_c, score_cg, slope_cg):
    """Fill the table, in place."""
    cell = law_at(law, 0, 0)
    for c in range(code_c.size):
        for g in range(score_cg.shape[1]):
            rate = math.exp(FIRST + g * STEP)
            score_cg[c, g] = report_score(cell, code_c[c], rate, 1.0)
            slope_cg[c, g] = (expected_ratio(cell, code_c[c], rate, 1.0) - 1.0) * rate


@subroutine
def tabled_score(law, scores, c, rate):
    """log P(report | rate) by the table; by the sum over counts beyond its end, and linear in the rate before it."""
    x = (math.log(max(rate, 1e-300)) - FIRST) / STEP
    if x <= 0.0:
        first = math.exp(FIRST)
        return scores.score_cg[c, 0] + scores.slope_cg[c, 0] * (rate / first - 1.0)
    g = np.int64(x)
    if g + 1 >= scores.score_cg.shape[1]:
        return report_score(law_at(law, 0, 0), scores.codes.code_c[c], rate, 1.0)
    t = x - g
    left, right = (1.0 - t) * (1.0 - t), t * t
    value = left * (1.0 + 2.0 * t) * scores.score_cg[c, g] + right * (3.0 - 2.0 * t) * scores.score_cg[c, g + 1]
    slope = left * t * scores.slope_cg[c, g] - right * (1.0 - t) * scores.slope_cg[c, g + 1]
    return value + STEP * slope


@kernel
def score_rows(law, entries, theta_dk, phi_vk, scores, unstored_d):
    """log P(reports | theta, phi) of a block of rows, masked cells left out."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    n_columns, total = phi_vk.shape[0], 0.0
    place_v, unstored_v = np.empty(n_columns, dtype=np.int32), np.empty(n_columns, dtype=np.int32)
    visits = np.empty(n_columns + 1, dtype=np.uint32), np.empty(n_columns + 1, dtype=np.int64)
    unstored = np.int64(-1)
    for d in range(theta_dk.shape[0]):
        if unstored_d[d] != unstored:
            unstored = np.int64(unstored_d[d])
            fill_places(scores.codes, unstored, unstored_v)
            place_v[:] = unstored_v
        set_places(entries, d, 0, place_v, visits)
        row = 0.0
        for v in range(n_columns):
            if place_v[v] > 0:
                row += tabled_score(law, scores, place_v[v] - 1, inner(theta_dk, d, phi_vk, v))
        for e in range(indptr[d], indptr[d + 1]):
            report = np.int64(reports[e])
            rate = inner(theta_dk, d, phi_vk, columns[e])
            if report > 0:
                row += report_score(law_at(law, d, columns[e]), report, rate, 1.0)
            elif report == 0:
                row += unseen_score(law_at(law, d, columns[e]), rate, 1.0)
        total += row
        reset_places(entries, d, unstored_v, place_v)
    return total
