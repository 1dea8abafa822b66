"""Expected counts and parts at the positive reports of a block of rows, tallied as sweeps tally drawn ones."""

import numpy as np

from countveil.kernels.compiled import kernel
from countveil.kernels.entries import level_at
from countveil.kernels.general import add_to_tally
from countveil.kernels.gibbs import inner
from countveil.kernels.law import expect_both, law_at
from countveil.kernels.random import SMALLEST


@kernel
def expect_tally(law, entries, theta_dk, phi_vk, tally):
    """Add E[count | report] and E[parts | report] of each positive report to the tally."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    for d in range(theta_dk.shape[0]):
        for e in range(indptr[d], indptr[d + 1]):
            if reports[e] > 0:
                v, level = columns[e], level_at(entries.level_d, entries.level_e, d, e)
                rate = max(inner(theta_dk, d, phi_vk, v), SMALLEST)
                count, parts = expect_both(law_at(law, d, v), np.int64(reports[e]), rate, level)
                add_to_tally(law.likelihood, d, v, count, parts, tally)
