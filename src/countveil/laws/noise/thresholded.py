"""Reports with noise of which only large ones are published."""

import math
from collections.abc import Iterator

import numpy as np

from countveil.kernels.report_kernels import FLAT, TABLE
from countveil.laws.noise.additive import AdditiveLaw
from countveil.laws.noise.report_law import (
    MOST,
    Counts,
    Flags,
    Floats,
    Pieces,
    ReportLaw,
    joined,
    pieces,
    table_reach,
    whole_numbers,
)


class ThresholdedLaw(ReportLaw):
    """report = count + tau if that exceeds ``above``, absent otherwise; P(absent | count) = P(count + tau <= above)."""

    def __init__(self, noise: AdditiveLaw, above: float) -> None:
        self.noise, self.above = noise, above

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Reports that are there are above the threshold, and follow the rules of the noise."""
        yield f"reports must be above {self.above:g}, or absent", reports <= self.above
        yield from self.noise.broken(reports)

    def log_kernel(self, reports: Floats, counts: Counts) -> Floats:
        """That of the noise where there is a report, the probability of no report where there is none."""
        absent = np.isnan(reports)
        found = np.empty(reports.shape)
        found[absent] = self.noise.log_cdf(self.above - counts[absent].astype(np.float64))
        found[~absent] = self.noise.log_kernel(reports[~absent], counts[~absent])
        return found

    def less(self, reports: Floats, counts: Counts) -> Floats:
        """That of the noise where there is a report, 0 where there is none."""
        absent = np.isnan(reports)
        return np.where(absent, 0.0, self.noise.less(np.where(absent, 0.0, reports), counts))

    def pieces(self, reports: Floats) -> Pieces:
        """Those of the noise, and a table of P(absent | count) around the threshold."""
        if self.noise.exact:
            return pieces(FLAT, reports.size)
        absent, reach = np.isnan(reports), table_reach(self.noise.spread)
        first = max(int(self.above) - self.noise.centre - reach, 0)
        last = max(int(self.above) - self.noise.centre, 0) + reach
        table = self.noise.log_cdf(self.above - np.arange(first, last + 1, dtype=np.float64))
        slopes = (0.0, table[-1] - table[-2])
        both = joined(
            [
                self.noise.pieces(reports[~absent]),
                pieces(TABLE, int(absent.sum()), table=table, length=table.size, offset=first, slopes=slopes),
            ]
        )
        place = np.empty(reports.size, np.int64)
        place[~absent], place[absent] = np.split(np.arange(reports.size), [int((~absent).sum())])
        return both.take(place)

    def support(self, reports: Floats) -> tuple[Counts, Counts]:
        """That of the noise where there is a report, all counts where there is none."""
        least, most = self.noise.support(reports)
        absent = np.isnan(reports)
        hidden = math.floor(self.above) if self.noise.exact else MOST
        return np.where(absent, 0, least), np.where(absent, hidden, most)

    def peak(self, reports: Floats) -> Counts:
        """That of the noise where there is a report, 0 where there is none."""
        return np.where(np.isnan(reports), whole_numbers(np.zeros(reports.shape)), self.noise.peak(reports))

    def draw(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """count + tau, NaN up to the threshold."""
        noisy = self.noise.draw(counts, rng)
        return np.where(noisy > self.above, noisy, np.nan)
