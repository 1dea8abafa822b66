"""Reports that are coarser than their counts: rounded, rounded at random, hidden, cut off, or several in order."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from countveil.kernels.report_kernels import FLAT, TABLE, TENT
from countveil.laws.noise.report_law import (
    LONGEST_TABLE,
    MOST,
    Counts,
    Flags,
    Floats,
    Pieces,
    ReportLaw,
    joined,
    log,
    pieces,
    whole_numbers,
)

Outcomes = list[tuple[Floats, Floats]]
"""What numbers become: (probabilities, reports), NaN where they are hidden."""
Range = tuple[Floats, Floats]
"""(the least, the largest), of each; there is none where the least is above the largest."""


class CoarseLaw(ReportLaw):
    """A rule that makes a number coarser. It is known by what numbers become, and by what may have become a report.

    Several rules may be applied in order, so that values are counts or what an earlier rule left of them, NaN where it
    hid them. What is hidden stays hidden.
    """

    size: int
    """How many neighbouring values, at most, the rule makes one, apart from those beyond a bound."""

    @abstractmethod
    def outcomes(self, values: Floats) -> Outcomes:
        """What each value becomes."""

    @abstractmethod
    def sources(self, low: Floats, high: Floats) -> Range:
        """The least and the largest value that may become a report from low to high."""

    def hidden(self) -> list[tuple[float, float]]:
        """Ranges of values that may become hidden, with all values between."""
        return []

    def support(self, reports: Floats) -> tuple[Counts, Counts]:
        """The least and the largest count that may have the report."""
        absent, shown = np.isnan(reports), np.nan_to_num(reports)
        low, high = self.sources(shown, shown)
        ranges = self.hidden()
        low = np.where(absent, min((low for low, _ in ranges), default=1.0), low)
        high = np.where(absent, max((high for _, high in ranges), default=0.0), high)
        return whole_numbers(low), whole_numbers(high)

    def log_kernel(self, reports: Floats, counts: Counts) -> Floats:
        """The log of the sum of the probabilities of outcomes that are the report."""
        return log(self._sum_over(counts, lambda value: same(value, reports)))

    def less(self, reports: Floats, counts: Counts) -> Floats:
        """The sum of the probabilities of smaller outcomes, and of none."""
        there = ~np.isnan(reports)
        return self._sum_over(counts, lambda value: there & (np.isnan(value) | (value < reports)))

    def _sum_over(self, counts: Counts, chosen: Callable[[Floats], Flags]) -> Floats:
        values = counts.astype(np.float64)
        return np.asarray(sum(chance * chosen(value) for chance, value in self.outcomes(values)))

    def draw(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """One of the outcomes."""
        outcomes = self.outcomes(counts.astype(np.float64))
        found = outcomes[-1][1]
        if len(outcomes) > 1:
            left = rng.random(counts.shape)
            for chance, value in reversed(outcomes[:-1]):
                found = np.where(left < chance, value, found)
                left = np.where(left < chance, np.inf, left - chance)
        return found


class RangeLaw(CoarseLaw):
    """A report is certain given its count, and all counts that have it form a range."""

    @abstractmethod
    def certain(self, values: Floats) -> Floats:
        """The report of each value, NaN where there is none."""

    def outcomes(self, values: Floats) -> Outcomes:
        """The only one."""
        return [(np.ones(values.shape), self.certain(values))]

    def log_kernel(self, reports: Floats, counts: Counts) -> Floats:
        """0 in the range, minus infinity outside."""
        least, most = self.support(reports)
        return np.where((counts >= least) & (counts <= most), 0.0, -np.inf)

    def pieces(self, reports: Floats) -> Pieces:
        """Flat."""
        return pieces(FLAT, reports.size)

    def peak(self, reports: Floats) -> Counts:
        """The beginning of the range."""
        return self.support(reports)[0]


class RoundingLaw(RangeLaw):
    """Rounding to multiples of a base, in one of the ways of ``Rounding``."""

    def __init__(self, base: int, to: str) -> None:
        self.base, self.to, self.size = base, to, base
        self.middle = base // 2 if to == "midpoint" else 0  # by which positive reports are below multiples

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Reports are multiples of the base, or that much below."""
        yield "reports must be non-negative", reports < 0
        rule = f"reports must be multiples of {self.base}"
        if self.middle:
            rule = f"reports must be 0, or {self.middle} below a multiple of {self.base}"
        yield rule, (reports > 0) & (np.mod(reports + self.middle, self.base) > 0)

    def certain(self, values: Floats) -> Floats:
        """Rounded values."""
        down = np.floor(values / self.base)
        rest = values - self.base * down
        if self.to == "down":
            return down * self.base
        if self.to in ("up", "midpoint"):
            return (down + (rest > 0)) * self.base - self.middle * (values > 0)
        up = 2 * rest >= self.base
        if self.to == "even":
            up &= (2 * rest > self.base) | (down % 2 == 1)
        return (down + up) * self.base

    def sources(self, low: Floats, high: Floats) -> Range:
        """The values that become one of the multiples from low to high."""
        base = self.base
        first = np.ceil((low + self.middle) / base) if self.middle else np.ceil(low / base)
        first = np.where(low <= 0, 0.0, first)
        last = np.where(high < base - self.middle, 0.0, np.floor((high + self.middle) / base))
        least, most = self._ends(first)[0], self._ends(last)[1]
        return np.where(first <= last, least, 1.0), np.where(first <= last, most, 0.0)

    def _ends(self, multiple: Floats) -> Range:
        """The values that become the base times this, the ``middle`` less."""
        base, half, at = self.base, self.base // 2, multiple * self.base
        if self.to == "down":
            return at, at + (base - 1)
        if self.to in ("up", "midpoint"):
            return np.where(multiple > 0, at - (base - 1), 0.0), at
        least, most = at - half, at + (base - half - 1)
        if self.to == "even" and base % 2 == 0:
            odd = multiple % 2 == 1
            least, most = least + odd, most + ~odd
        return np.maximum(least, 0.0), most


class HidingLaw(RangeLaw):
    """Absent where least <= count <= most, else the count itself.

    ``shows`` states that a count in the range may be shown nevertheless, in a cell to which the rule does not apply.
    """

    def __init__(self, least: int, most: int, shows: bool = False) -> None:
        self.least, self.most, self.shows, self.size = least, most, shows, most + 1

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Reports that are there are counts that are shown."""
        yield "reports must be non-negative", reports < 0
        if not self.shows:
            rule = f"reports must be {'0, ' if self.least else ''}at least {self.most + 1}, or absent"
            yield rule, self._hides(reports)

    def certain(self, values: Floats) -> Floats:
        """Values, NaN where they are hidden."""
        return np.where(self._hides(values), np.nan, values)

    def sources(self, low: Floats, high: Floats) -> Range:
        """The same values, without hidden ends."""
        if self.shows:
            return low, high
        return (np.where(self._hides(low), self.most + 1.0, low), np.where(self._hides(high), self.least - 1.0, high))

    def hidden(self) -> list[tuple[float, float]]:
        """The range."""
        return [(float(self.least), float(self.most))]

    def _hides(self, values: Floats) -> Flags:
        return np.asarray((values >= self.least) & (values <= self.most))


class TopCodingLaw(RangeLaw):
    """report = min(count, above)."""

    def __init__(self, above: int) -> None:
        self.above, self.size = above, 1

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Reports are counts up to the bound."""
        yield "reports must be non-negative", reports < 0
        yield f"reports must be at most {self.above}", reports > self.above

    def certain(self, values: Floats) -> Floats:
        """Values, cut off."""
        return np.minimum(values, self.above)

    def sources(self, low: Floats, high: Floats) -> Range:
        """The same values, or all from the bound on."""
        reached = high >= self.above
        return low, np.where(low > self.above, -1.0, np.where(reached, float(MOST), high))


class RandomRoundingLaw(CoarseLaw):
    """P(report | count) = 1 - |report - count| / base, or 0 where that is negative."""

    def __init__(self, base: int) -> None:
        self.base, self.size = base, 2 * base

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Reports are multiples of the base."""
        yield "reports must be non-negative", reports < 0
        yield f"reports must be multiples of {self.base}", np.mod(reports, self.base) > 0

    def outcomes(self, values: Floats) -> Outcomes:
        """The multiples on both sides."""
        down = np.floor(values / self.base)
        up = np.nan_to_num((values - self.base * down) / self.base)
        return [(up, (down + 1) * self.base), (1.0 - up, down * self.base)]

    def sources(self, low: Floats, high: Floats) -> Range:
        """Less than a base away from a multiple from low to high."""
        first, last = np.ceil(low / self.base), np.floor(high / self.base)
        least = np.maximum(first * self.base - (self.base - 1), 0.0)
        most = last * self.base + (self.base - 1)
        return np.where(first <= last, least, 1.0), np.where(first <= last, most, 0.0)

    def log_kernel(self, reports: Floats, counts: Counts) -> Floats:
        """log (1 - |report - count| / base)+."""
        return log(np.maximum(self.base - np.abs(reports - counts), 0.0) / self.base)

    def pieces(self, reports: Floats) -> Pieces:
        """A tent."""
        return pieces(TENT, reports.size, value=reports, scale=self.base)

    def peak(self, reports: Floats) -> Counts:
        """The report."""
        return whole_numbers(reports)

    def draw(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """Rounded up with probability (count mod base) / base."""
        down, rest = np.divmod(counts, self.base)
        return ((down + (rng.random(counts.shape) * self.base < rest)) * self.base).astype(np.float64)


class Kernel(NamedTuple):
    """log P(report | count) of one report from its least possible count on, constant after the last one here."""

    least: int
    log: Floats


class ComposedLaw(CoarseLaw):
    """Rules in order: P(report | count) = sum over z of P(report | z by the last rule) P(z | count by those before)."""

    def __init__(self, steps: Sequence[CoarseLaw]) -> None:
        self.steps, self.size = tuple(steps), 0
        self.is_random = any(not isinstance(step, RangeLaw) for step in steps)

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """The rules of the last step, and that some count has the report."""
        yield from self.steps[-1].broken(reports)
        least, most = self.support(reports)
        yield "reports must be what some count becomes", least > most

    def outcomes(self, values: Floats) -> Outcomes:
        """Those of each step of the outcomes before."""
        found: Outcomes = [(np.ones(values.shape), values)]
        for step in self.steps:
            found = [(p * q, y) for p, x in found for q, y in step.outcomes(x)]
        return found

    def sources(self, low: Floats, high: Floats) -> Range:
        """From the last step back to the first."""
        for step in reversed(self.steps):
            before = step.sources(low, high)
            empty = low > high
            low, high = np.where(empty, 1.0, before[0]), np.where(empty, 0.0, before[1])
        return low, high

    def hidden(self) -> list[tuple[float, float]]:
        """Those of every step, traced back to counts."""
        found = []
        for place, step in enumerate(self.steps):
            for ends in step.hidden():
                low, high = (np.array([end]) for end in ends)
                low, high = ComposedLaw(self.steps[:place]).sources(low, high)
                found += [(float(low[0]), float(high[0]))] if low[0] <= high[0] else []
        return found

    def _points(self) -> list[int]:
        """Counts around the ends of what is hidden: nowhere else do kernels begin or end within their bounds."""
        ends = [int(min(end, MOST - 1)) for each in self.hidden() for end in each]
        return sorted({max(end + step, 0) for end in ends for step in (-1, 0, 1)})

    def concave(self, reports: Floats) -> Flags:
        """Where a kernel is: flat ones without a gap are."""
        return np.array([each is None or is_concave(each.log) for each in self._kernels(reports)], np.bool_)

    def pieces(self, reports: Floats) -> Pieces:
        """Flat, or tables."""
        parts = []
        for each in self._kernels(reports):
            if each is None:
                parts.append(pieces(FLAT, 1))
            else:
                parts.append(pieces(TABLE, 1, table=each.log, length=each.log.size, offset=each.least))
        return joined(parts) if parts else pieces(FLAT, 0)

    def peak(self, reports: Floats) -> Counts:
        """The first count at which the kernel is greatest."""
        least, kernels = self.support(reports)[0], self._kernels(reports)
        tops = [0 if each is None else int(np.argmax(each.log)) for each in kernels]
        return least + np.array(tops, np.int64)

    def _kernels(self, reports: Floats) -> list[Kernel | None]:
        """The kernel of each report (n,), None where it is certain for all counts between its bounds."""
        least, most = self.support(reports)
        tabled = np.full(reports.shape, self.is_random)
        for point in () if self.is_random else self._points():
            tabled |= np.isneginf(self.log_kernel(reports, np.clip(point, least, most)))
        tabled &= least <= most
        last = np.minimum(most, least + self._reach())
        if (size := int((last - least + 1)[tabled].sum())) > LONGEST_TABLE:
            raise ValueError(
                f"rules are too coarse together: their tables of probabilities would need {size:,} numbers"
            )
        found: list[Kernel | None] = []
        for report, low, high, wanted in zip(reports, least, last, tabled, strict=True):
            y = np.arange(low, high + 1) if wanted else least[:0]
            found.append(Kernel(int(low), self.log_kernel(np.full(y.shape, report), y)) if wanted else None)
        return found

    def _reach(self) -> int:
        """From the least count that has a report to one from which on its kernel is constant, at least."""
        return sum(step.size for step in self.steps)


def same(values: Floats, reports: Floats) -> Flags:
    """Where both are the same number, or both absent."""
    return np.asarray((values == reports) | (np.isnan(values) & np.isnan(reports)))


def is_concave(values: Floats) -> bool:
    """Whether logs have no gap and no step that is larger than the one before."""
    return bool(np.isfinite(values).all() and (np.diff(values, 2) <= 1e-9).all())
