"""Log-likelihoods of reports in a list of cells."""

import numpy as np

from countveil.kernels.compiled import kernel
from countveil.kernels.law import report_score, unseen_score


@kernel
def score_cells(law, report_i, rate_i, level_i, score_i):
    """score_i = log P(max(report_i, 0) | rate_i), in place."""
    for i in range(report_i.size):
        report = np.int64(report_i[i])
        if report > 0:
            score_i[i] = report_score(law, report, rate_i[i], level_i[i])
        else:
            score_i[i] = unseen_score(law, rate_i[i], level_i[i])
