"""How probable a report and smaller ones are, where the law of its count is known: for PIT values.

A count without a report comes before all numbers. So P(report < r) is a distribution function for every mechanism.
"""

from collections.abc import Sequence

import numpy as np

from countveil.laws.noise.laws import law_of
from countveil.laws.noise.report_law import Counts, Floats
from countveil.privacy.mechanisms import Mechanism


def report_chances(
    mechanisms: Sequence[Mechanism], number: Counts, reports: Floats, laws: Floats
) -> tuple[Floats, Floats]:
    """(P(report < the one given), P(report = it)), (m,) each, for counts with laws (m, Y); NaN where there is none.

    ``number`` (m,) is that of each cell's mechanism. A report that is a real number is met with probability 0. Where a
    mechanism has no report for some counts, as beyond the last row of a table, all is given that there is one.
    """
    below, at = np.zeros(reports.shape), np.zeros(reports.shape)
    for place in np.unique(number):
        chosen, mechanism = number == place, mechanisms[place]
        law, weights = law_of(mechanism), laws[chosen]
        y = np.arange(laws.shape[1])
        most = getattr(law, "last", None)
        weights = weights[:, : len(y) if most is None else most + 1]
        each, counts = np.broadcast_arrays(reports[chosen][:, None], y[None, : weights.shape[1]])
        total = weights.sum(axis=1)
        below[chosen] = (weights * law.less(each, counts)).sum(axis=1) / total
        exactly = (weights * np.exp(law.log_kernel(each, counts))).sum(axis=1) / total
        real = getattr(mechanism, "real", False)
        at[chosen] = np.where(real & ~np.isnan(reports[chosen]), 0.0, exactly)
    return np.clip(below, 0.0, 1.0), np.clip(at, 0.0, 1.0)
