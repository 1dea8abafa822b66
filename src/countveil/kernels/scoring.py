"""Log-likelihoods of reports in a list of cells, and their derivatives in the rates of stored ones."""

import numpy as np

from countveil.kernels.compiled import kernel
from countveil.kernels.entries import MASKED, level_at
from countveil.kernels.gamma import SMALLEST
from countveil.kernels.gibbs import inner
from countveil.kernels.law import expected_ratio, law_at, report_score, unseen_exposure, unseen_score


@kernel
def score_cells(law, row_i, column_i, report_i, rate_i, level_i, score_i):
    """score_i = log P(max(report_i, 0) | rate_i), in place."""
    for i in range(report_i.size):
        report, cell = np.int64(report_i[i]), law_at(law, row_i[i], column_i[i])
        if report > 0:
            score_i[i] = report_score(cell, report, rate_i[i], level_i[i])
        else:
            score_i[i] = unseen_score(cell, rate_i[i], level_i[i])


@kernel
def slope_entries(law, entries, theta_dk, phi_vk, slope_e):
    """slope_e = the derivative in the rate of log P(max(report, 0) | rate) of each stored cell, in place."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    for d in range(theta_dk.shape[0]):
        for e in range(indptr[d], indptr[d + 1]):
            report, level = np.int64(reports[e]), level_at(entries.level_d, entries.level_e, d, e)
            if report == MASKED:
                slope_e[e] = 0.0
            elif report > 0:
                rate = max(inner(theta_dk, d, phi_vk, columns[e]), SMALLEST)
                slope_e[e] = expected_ratio(law_at(law, d, columns[e]), report, rate, level) - 1.0
            else:
                slope_e[e] = -unseen_exposure(law_at(law, d, columns[e]), level)
