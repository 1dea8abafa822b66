"""The largest counts that a protected table hides, for the page."""

from typing import NamedTuple

import numpy as np

from countveil.data.observations import Observations
from countveil.fit.base import FactorizationEstimator
from countveil.fit.counts_table import HIDDEN
from countveil.laws.noise import AnyMechanismNoise
from countveil.report.pictures import Picture, hidden_picture

MOST_SHOWN = 20
MOST_CELLS = 10_000  # whose laws take some seconds


class HiddenCounts(NamedTuple):
    """What the page shows of counts that have no report because of what they are."""

    counts: int
    shown: int
    picture: Picture | None  # None where there are too many counts


def hidden_counts(fit: FactorizationEstimator, data: Observations) -> HiddenCounts | None:
    """Those with the largest means, from data over the fit's axes; None where no count is hidden."""
    if not isinstance(data.noise, AnyMechanismNoise):
        return None
    if data.reports.size > MOST_CELLS:
        n = int((np.isnan(data.noise.value_c)[np.maximum(data.reports, 0)] & (data.reports > 0)).sum())
        return HiddenCounts(n, 0, None) if n else None
    table = fit.counts_table(data)
    hidden = table[table["kind"] == HIDDEN]
    if hidden.empty:
        return None
    largest = hidden.nlargest(MOST_SHOWN, "mean")
    return HiddenCounts(len(hidden), len(largest), hidden_picture(largest))
