"""Reports with noise of which only large ones are published."""

from collections.abc import Iterator

import numpy as np

from countveil.noise.additive import AdditiveLaw
from countveil.noise.report_law import MOST, Counts, Flags, Floats, ReportLaw, whole_numbers


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

    def support(self, reports: Floats) -> tuple[Counts, Counts]:
        """That of the noise where there is a report, all counts where there is none."""
        least, most = self.noise.support(reports)
        absent = np.isnan(reports)
        return np.where(absent, 0, least), np.where(absent, MOST, most)

    def peak(self, reports: Floats) -> Counts:
        """That of the noise where there is a report, 0 where there is none."""
        return np.where(np.isnan(reports), whole_numbers(np.zeros(reports.shape)), self.noise.peak(reports))

    def draw(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """count + tau, NaN up to the threshold."""
        noisy = self.noise.draw(counts, rng)
        return np.where(noisy > self.above, noisy, np.nan)
