"""Reports of any mechanism as inference sees them: numbered, with the kernels of all numbers in one table.

What different reports say of their counts is worked out once, and the data hold numbers of reports, called codes. A
code may stand for several reports of one count, whose kernels are multiplied. Code 0, which is not stored, says that
the count is zero.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from countveil.kernels.report_kernels import (
    CONCAVE,
    FIRST,
    GUESS,
    LAST,
    LEAST,
    MOST,
    UNBOUNDED,
    ReportKernels,
    fill_kernels,
    fill_peaks,
)
from countveil.laws.noise.additive import AdditiveLaw
from countveil.laws.noise.laws import law_of
from countveil.laws.noise.protocol import Contradiction, Tally
from countveil.laws.noise.report_law import Counts, Flags, Floats, Pieces, joined
from countveil.laws.noise.two_sided_geometric.formulas import mean_over_positive
from countveil.privacy.mechanisms import (
    AddedNoise,
    Mechanism,
    RandomRounding,
    Rounding,
    Thresholded,
    TwoSidedGeometric,
    from_json,
)

NONE = np.empty(0)
NAMED = 8  # mechanisms in a line of text, at most
UNBIASED = AddedNoise, TwoSidedGeometric, RandomRounding
"""Mechanisms of whose reports there is an estimate that has the count for its mean."""


class Said(NamedTuple):
    """What some different reports say of their counts, (n,) each."""

    pieces: Pieces  # one for each
    least: Counts
    most: Counts
    peak: Counts
    concave: Flags
    estimate: Floats  # of the count, by the report alone; NaN where it needs to know more
    variance: Floats  # of the estimate, given the count; at most

    def take(self, chosen: Counts) -> "Said":
        """Some of them."""
        return Said(self.pieces.take(chosen), *(values[chosen] for values in self[1:]))  # type: ignore[arg-type]


def said_by(mechanism: Mechanism, reports: Floats) -> Said:
    """What reports (n,) of a mechanism say, NaN where a count is without one.

    The estimate by a two-sided geometric report that is not positive is -alpha / (1 - alpha) (mathematics, equation
    12.3): releases may have cut it at zero.
    """
    law = law_of(mechanism)
    least, most = law.support(reports)
    estimate, variance = np.full(reports.shape, np.nan), np.zeros(reports.shape)
    if isinstance(mechanism, AddedNoise | TwoSidedGeometric):
        assert isinstance(law, AdditiveLaw)
        estimate, variance = reports - law.mean, np.full(reports.shape, law.spread**2)
        if isinstance(mechanism, TwoSidedGeometric):  # unbiased of reports that were cut at zero, too
            estimate = np.where(reports > 0, reports, -mean_over_positive(float(mechanism.alpha)))
    elif isinstance(mechanism, RandomRounding):
        estimate, variance = reports, np.full(reports.shape, mechanism.base**2 / 4)
    elif isinstance(mechanism, Rounding) and mechanism.to in ("down", "up"):
        estimate = 0.5 * (least + most)
    elif isinstance(mechanism, Rounding | Thresholded):
        estimate = reports
    # Estimates that are unbiased stay as they are where only one count is possible: the others would no longer be.
    known = (least == most) & (not isinstance(mechanism, UNBIASED))
    return Said(
        law.pieces(reports),
        least,
        most,
        law.peak(reports),
        law.concave(reports),
        np.where(known, least, estimate),
        np.where(known, 0.0, variance),
    )


def all_said(parts: Sequence[Said]) -> Said:
    """One part after another."""
    return Said(
        joined([part.pieces for part in parts]),
        *(np.concatenate([part[i] for part in parts]) for i in range(1, len(Said._fields))),
    )


def kernels_of(said: Said, members: Counts) -> ReportKernels:
    """Kernels of codes; ``members`` (C, layers) are the reports of code 1, 2, ..., -1 where there is none.

    Estimates of several reports are weighted by the reciprocals of their variances.

    Raises:
        ValueError: reports of one count that no count can have together.
    """
    check_possible(said, members)
    there = members >= 0
    lengths = there.sum(axis=1)
    members = np.where(there, members, 0)

    def over(values: Any, absent: Any, join: Any) -> Any:
        return join(np.where(there, values[members], absent), axis=1)

    whole_cj, real_cj = np.zeros((len(members) + 1, 6), np.int64), np.zeros((len(members) + 1, 2))
    whole_cj[1:, LAST] = np.cumsum(lengths)
    whole_cj[1:, FIRST] = whole_cj[1:, LAST] - lengths
    whole_cj[1:, LEAST] = over(said.least, 0, np.max)
    whole_cj[1:, MOST] = over(said.most, np.iinfo(np.int64).max, np.min)
    whole_cj[1:, CONCAVE] = over(said.concave, True, np.all)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.where(there & ~np.isnan(said.estimate[members]), 1.0, 0.0)
        weights /= np.maximum(said.variance[members], 1e-9)
        real_cj[1:, GUESS] = np.nansum(weights * said.estimate[members], axis=1) / weights.sum(axis=1)
    whole_aj, real_aj, table = said.pieces.take(members[there])
    found = ReportKernels(
        whole_cj, real_cj, np.ascontiguousarray(whole_aj), np.ascontiguousarray(real_aj), np.ascontiguousarray(table)
    )
    low, high = (np.concatenate([[0], over(said.peak, at, join)]) for at, join in ((2**62, np.min), (0, np.max)))
    fill_peaks(found, low, high)
    return found


def check_possible(said: Said, members: Counts) -> None:
    """Refuse reports (C, layers) of one count that no count can have together; raises ValueError."""
    least = np.where(members >= 0, said.least[members], 0).max(axis=1, initial=0)
    most = np.where(members >= 0, said.most[members], UNBOUNDED).min(axis=1, initial=UNBOUNDED)
    if (least > most).any():
        raise ValueError("reports of one count must be possible together, got reports that no count can have")


class AnyMechanismNoise:
    """What reports of any mechanisms say about their counts. Its level is 1 wherever there is a report.

    Attributes:
        mechanisms: the different ones, in the order in which data first name them.
        kernel: of every code; only code 0 where there are no data.
        value_c, mechanism_c: (C + 1,) the first report of each code and the number of its mechanism.
        variance_c: (C + 1,) of the estimate of a count by each code, at most.
        unbiased: whether every estimate has its count for mean.
        one_report: whether no count has more than one report.
    """

    level: ClassVar[str] = "protected"
    levels_below: ClassVar[float] = 1.5
    counts_positive: ClassVar[bool] = False

    def __init__(
        self,
        mechanisms: Sequence[Mechanism],
        kernel: ReportKernels,
        value_c: Floats = NONE,
        mechanism_c: Counts | None = None,
        variance_c: Floats = NONE,
        one_report: bool = True,
    ) -> None:
        self.mechanisms, self.kernel, self.one_report = tuple(mechanisms), kernel, one_report
        self.value_c, self.variance_c = value_c, variance_c
        self.mechanism_c = np.zeros(value_c.shape, np.int64) if mechanism_c is None else mechanism_c
        self.unbiased = all(isinstance(each, UNBIASED) for each in self.mechanisms)

    @classmethod
    def stated(cls, text: str) -> "AnyMechanismNoise":
        """The noise without data of mechanisms that ``mechanism`` states; ValueError for another text."""
        try:
            stated = [from_json(each) for each in json.loads(text)]
        except (TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"mechanism must be stated in JSON, got {text!r:.60}") from error
        none = (np.zeros((1, 6), np.int64), np.zeros((1, 2)), np.zeros((0, 4), np.int64), np.zeros((0, 5)), NONE)
        return cls(stated, ReportKernels(*none))

    @cached_property
    def mechanism(self) -> str:
        """All mechanisms in JSON."""
        return json.dumps([each.to_json() for each in self.mechanisms])

    def in_words(self, level: Any) -> str:
        """The mechanisms, the first ones where there are many."""
        shown, more = self.mechanisms[:NAMED], len(self.mechanisms) - NAMED
        return ", ".join(each.in_words for each in shown) + (f" and {more:,} others" if more > 0 else "")

    def level_of(self, mechanism: Mechanism) -> float:
        """1."""
        return 1.0

    def ratio(self, level: Any) -> Any:
        """0: a report that is not stored says that the count is zero."""
        return np.zeros(np.shape(level))

    def bias(self, level: Any) -> Any:
        """0."""
        return np.zeros(np.shape(level))

    def positive_by_noise(self, level: Any) -> Any:
        """0: code 0 is the only one that is not stored, and a count of zero need not have it."""
        return np.zeros(np.shape(level))

    def mean_at_zero(self, level: Any) -> Any:
        """0, likewise."""
        return np.zeros(np.shape(level))

    def standard_deviation(self, level: Any) -> Any:
        """No number: it is another for every mechanism."""
        return np.full(np.shape(level), np.nan)

    def variance(self, reports: Any, level: Any) -> np.ndarray:
        """From the table of codes."""
        return self.variance_c[np.maximum(reports, 0)]

    def log_kernel(self, report: Any, count: Any, level: Any) -> np.ndarray:
        """From the table of codes."""
        code, y = np.broadcast_arrays(report, count)
        found = np.empty(code.shape)
        fill_kernels(self.kernel, code.ravel().astype(np.int64), y.ravel().astype(np.int64), found.reshape(-1))
        return found

    def sample(self, counts: np.ndarray, level: Any, rng: np.random.Generator) -> np.ndarray:
        """Reports of these counts as floats, NaN where there is none.

        Raises:
            ValueError: several mechanisms, since it is not known which cells have which.
        """
        if len(self.mechanisms) != 1 or not self.one_report:
            raise ValueError(
                f"mechanism must be one for reports to be simulated, got {len(self.mechanisms)}: {self.in_words(level)}"
            )
        return np.asarray(law_of(self.mechanisms[0]).draw(counts.astype(np.int64), rng))

    def contradiction(self, tally: Tally) -> Contradiction | None:
        """None: nothing is known of how reports show it."""
        return None
