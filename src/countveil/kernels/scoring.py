"""Log-likelihoods of reports in a list of cells."""

import numpy as np

from countveil.kernels.compiled import kernel
from countveil.kernels.law import law_at, report_score, unseen_score


@kernel
def score_cells(law, row_i, column_i, report_i, rate_i, level_i, score_i):
    """score_i = log P(max(report_i, 0) | rate_i), in place."""
    for i in range(report_i.size):
        report, cell = np.int64(report_i[i]), law_at(law, row_i[i], column_i[i])
        if report > 0:
            score_i[i] = report_score(cell, report, rate_i[i], level_i[i])
        else:
            score_i[i] = unseen_score(cell, rate_i[i], level_i[i])
