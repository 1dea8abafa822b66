"""Topics over the dates of their documents: expected shares in every step of time, from the joint posterior."""

from typing import Any

import numpy as np
import pandas as pd

from countveil.fit.dates import HasDates
from countveil.fit.effects import table_of
from countveil.fit.intervals import as_calibrated
from countveil.fit.reading import Readable
from countveil.inference.mixture import places
from countveil.inference.posterior import OVER_TIME


class HasPrevalenceOverTime(HasDates, Readable):
    """Adds ``prevalence_over`` to topics of documents that have dates."""

    takes_dates = True

    def prevalence_over(self: Any, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """Each topic's expected share of a document, in every step of time (mathematics, equation 17.11).

        Columns: topic, support, time, estimate (the posterior mean), lower, upper. Steps without documents are there,
        too. It is the share in the words of a document that could have been written then, not the mean of those that
        were. Topics are those of ``prevalences``, each from the chains that have it; support is as in ``topics``. Where
        intervals are not calibrated: as in ``members``.

        Raises:
            ValueError: a fit without dates, or an interval out of range.
        """
        if self.dates_ is None:
            raise ValueError(
                "prevalence_over needs a fit with dates of the rows (time=), got a fit without dates"
            )
        row = self.model_.factors[self.model_.row_factor].name
        draws = self.posterior["posterior"][f"{row}{OVER_TIME}"].to_numpy()
        shares = draws / draws.sum(axis=3, keepdims=True, dtype=np.float64)
        kept = places(self.weights_, [draws.shape[1]] * draws.shape[0])
        drawn = [shares[c, own] for c, own in enumerate(kept)]
        table = table_of(self, drawn, list(self.dates_.names), "time", interval)
        return as_calibrated(table, self.why_no_intervals, uncalibrated)
