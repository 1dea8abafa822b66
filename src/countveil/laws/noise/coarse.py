"""Reports that say in which range a count lies: rounding, random rounding, hiding and top-coding."""

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from countveil.kernels.report_kernels import FLAT, TENT
from countveil.laws.noise.pieces import Pieces, pieces
from countveil.laws.noise.report_law import MOST, Counts, Flags, Floats, ReportLaw, log, whole_numbers


class RangeLaw(ReportLaw):
    """A report is certain given its count, and says that the count lies in a range."""

    @abstractmethod
    def support(self, reports: Floats) -> tuple[Counts, Counts]:
        """The range."""

    def log_kernel(self, reports: Floats, counts: Counts) -> Floats:
        """0 in the range, minus infinity outside."""
        least, most = self.support(reports)
        return np.where((counts >= least) & (counts <= most), 0.0, -np.inf)

    @abstractmethod
    def certain(self, counts: Counts) -> Floats:
        """The report of each count, NaN where there is none."""

    def less(self, reports: Floats, counts: Counts) -> Floats:
        """1 where the count has a smaller report, or none."""
        own = self.certain(counts)
        return np.where(np.isnan(reports), 0.0, np.isnan(own) | (own < reports))

    def draw(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """Certain reports."""
        return self.certain(counts)

    def pieces(self, reports: Floats) -> Pieces:
        """Flat."""
        return pieces(FLAT, reports.size)

    def peak(self, reports: Floats) -> Counts:
        """The beginning of the range."""
        return self.support(reports)[0]


class RoundingLaw(RangeLaw):
    """report = base floor(count / base + 1/2)."""

    def __init__(self, base: int) -> None:
        self.base = base

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Reports are multiples of the base."""
        yield from multiples(reports, self.base)

    def support(self, reports: Floats) -> tuple[Counts, Counts]:
        """From report - base / 2, rounded up, to less than report + base / 2."""
        half = self.base // 2
        return whole_numbers(reports - half), whole_numbers(reports + (self.base - half - 1))

    def certain(self, counts: Counts) -> Floats:
        """Rounded counts."""
        return ((counts + self.base // 2) // self.base * self.base).astype(np.float64)


class RandomRoundingLaw(ReportLaw):
    """P(report | count) = 1 - |report - count| / base, or 0 where that is negative."""

    def __init__(self, base: int) -> None:
        self.base = base

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Reports are multiples of the base."""
        yield from multiples(reports, self.base)

    def log_kernel(self, reports: Floats, counts: Counts) -> Floats:
        """log (1 - |report - count| / base)+."""
        return log(np.maximum(self.base - np.abs(reports - counts), 0.0) / self.base)

    def support(self, reports: Floats) -> tuple[Counts, Counts]:
        """Less than a base away."""
        return whole_numbers(reports - (self.base - 1)), whole_numbers(reports + (self.base - 1))

    def pieces(self, reports: Floats) -> Pieces:
        """A tent."""
        return pieces(TENT, reports.size, value=reports, scale=self.base)

    def peak(self, reports: Floats) -> Counts:
        """The report."""
        return whole_numbers(reports)

    def less(self, reports: Floats, counts: Counts) -> Floats:
        """P(rounded to less)."""
        down, rest = np.divmod(counts, self.base)
        up = rest / self.base
        low, high = down * self.base < reports, (down + 1) * self.base < reports
        return np.asarray(low * (1.0 - up) + high * up)

    def draw(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """Rounded up with probability (count mod base) / base."""
        down, rest = np.divmod(counts, self.base)
        return ((down + (rng.random(counts.shape) * self.base < rest)) * self.base).astype(np.float64)


class HidingLaw(RangeLaw):
    """Absent where least <= count <= most, else the count itself.

    ``shows`` says that a count in the range may be shown nevertheless, in a cell to which the rule does not apply.
    """

    def __init__(self, least: int, most: int, shows: bool = False) -> None:
        self.least, self.most, self.shows = least, most, shows

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Reports that are there are counts that are shown."""
        yield "reports must be non-negative", reports < 0
        if not self.shows:
            rule = f"reports must be {'0, ' if self.least else ''}at least {self.most + 1}, or absent"
            yield rule, (reports >= self.least) & (reports <= self.most)

    def support(self, reports: Floats) -> tuple[Counts, Counts]:
        """The hidden counts, or the report."""
        absent, shown = np.isnan(reports), whole_numbers(reports)
        return np.where(absent, self.least, shown), np.where(absent, self.most, shown)

    def certain(self, counts: Counts) -> Floats:
        """Counts, NaN where they are hidden."""
        return np.where((counts >= self.least) & (counts <= self.most), np.nan, counts.astype(np.float64))


class TopCodingLaw(RangeLaw):
    """report = min(count, above)."""

    def __init__(self, above: int) -> None:
        self.above = above

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Reports are counts up to the bound."""
        yield "reports must be non-negative", reports < 0
        yield f"reports must be at most {self.above}", reports > self.above

    def support(self, reports: Floats) -> tuple[Counts, Counts]:
        """The report, or all counts from the bound on."""
        shown = whole_numbers(reports)
        return shown, np.where(shown >= self.above, MOST, shown)

    def certain(self, counts: Counts) -> Floats:
        """Counts, cut off."""
        return np.minimum(counts, self.above).astype(np.float64)


def multiples(reports: Floats, base: int) -> Iterator[tuple[str, Flags]]:
    """The rules of what was rounded to multiples."""
    yield "reports must be non-negative", reports < 0
    yield f"reports must be multiples of {base}", np.mod(reports, base) > 0
