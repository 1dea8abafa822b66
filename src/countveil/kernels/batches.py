"""Space for a batch of entries, on which the vectorised loops of a law work. Suffix i is the entry in its batch."""

import numpy as np

from countveil.kernels.compiled import subroutine

BATCH = 128


@subroutine
def new_batch():
    """Space for BATCH entries: (column_i, report_i, rate_i, level_i, count_i, inner space)."""
    columns, counts = np.empty(BATCH, dtype=np.uint32), np.empty(BATCH, dtype=np.int64)
    reports, rates, levels = np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
    lower, upper, left = np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
    term, total, passed = np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
    return columns, reports, rates, levels, counts, (lower, upper, left, term, total, passed)


@subroutine
def new_expectations():
    """Space for BATCH entries: (column_i, report_i, rate_i, level_i, ratio_i, inner space)."""
    columns = np.empty(BATCH, dtype=np.uint32)
    reports, rates, levels, ratios = np.empty(BATCH), np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
    lower, upper = np.empty(BATCH), np.empty(BATCH)
    term, total, moment = np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
    return columns, reports, rates, levels, ratios, (lower, upper, term, total, moment)
