"""The law of a report given its count, for any mechanism, and the pieces of it that compiled loops read."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countveil.kernels.report_kernels import BEGIN, CONSTANT, KIND, LEFT, LENGTH, OFFSET, RIGHT, SCALE, UNBOUNDED, VALUE

LONGEST_TABLE = 2**24


class Pieces(NamedTuple):
    """Pieces of kernels, (A,) each, and the tables that some of them share."""

    whole_aj: NDArray[np.int64]
    real_aj: NDArray[np.float64]
    table: NDArray[np.float64]

    def take(self, chosen: NDArray[np.int64]) -> "Pieces":
        """Some of them, with all tables."""
        return Pieces(self.whole_aj[chosen], self.real_aj[chosen], self.table)


def pieces(
    kind: int,
    n: int,
    *,
    value: Any = 0.0,
    scale: float = 0.0,
    constant: float = 0.0,
    table: NDArray[np.float64] | None = None,
    begin: Any = 0,
    length: Any = 0,
    offset: Any = 0,
    slopes: tuple[float, float] = (0.0, 0.0),
) -> Pieces:
    """n pieces of one kind; what differs among them is an array (n,)."""
    whole_aj, real_aj = np.zeros((n, 4), np.int64), np.zeros((n, 5))
    for column, whole in ((KIND, kind), (BEGIN, begin), (LENGTH, length), (OFFSET, offset)):
        whole_aj[:, column] = whole
    for column, real in ((VALUE, value), (SCALE, scale), (CONSTANT, constant), (LEFT, slopes[0]), (RIGHT, slopes[1])):
        real_aj[:, column] = real
    return Pieces(whole_aj, real_aj, np.empty(0) if table is None else table)


def joined(parts: list[Pieces]) -> Pieces:
    """All pieces, one part after another."""
    begins = np.cumsum([0, *(part.table.size for part in parts)])
    whole = [part.whole_aj.copy() for part in parts]
    for each, begin in zip(whole, begins, strict=False):
        each[:, BEGIN] += begin
    return Pieces(
        np.concatenate(whole),
        np.concatenate([part.real_aj for part in parts]),
        np.concatenate([part.table for part in parts]),
    )


def table_reach(standard_deviation: float) -> int:
    """How far a table of a kernel reaches on either side: 40 standard deviations, and 4,096 counts.

    Beyond, its log is below -800, and is continued as a line.

    Raises:
        ValueError: too far to be kept.
    """
    reach = math.ceil(40.0 * standard_deviation) + 4096
    if reach > LONGEST_TABLE:
        raise ValueError(
            f"noise must have a standard deviation of at most {LONGEST_TABLE // 40:,}, got {standard_deviation:.3g}"
        )
    return reach


Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST = UNBOUNDED
"""The largest count that is considered where a report does not bound it."""


class ReportLaw(ABC):
    """P(report | count) of one mechanism, and which counts a report allows.

    Reports are floats, NaN where a count has none; counts are whole numbers of the same shape. All methods are
    vectorised. ``log_concave`` states that P(report | count) is log-concave in the count for every report.
    """

    log_concave: ClassVar[bool] = True

    @abstractmethod
    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Rules of reports that are there, in words, with where they are broken."""

    @abstractmethod
    def log_kernel(self, reports: Floats, counts: Counts) -> Floats:
        """log P(report | count), or the log density where reports are real numbers; minus infinity where it is 0."""

    @abstractmethod
    def less(self, reports: Floats, counts: Counts) -> Floats:
        """P(a report is smaller | count), where a count without a report comes before all numbers."""

    @abstractmethod
    def support(self, reports: Floats) -> tuple[Counts, Counts]:
        """The least and the most count that is possible given each report."""

    @abstractmethod
    def peak(self, reports: Floats) -> Counts:
        """A count at which P(report | count) is greatest, for kernels that are log-concave."""

    def concave(self, reports: Floats) -> Flags:
        """Where P(report | count) is log-concave in the count; for all reports alike, unless a law knows better."""
        return np.full(reports.shape, self.log_concave)

    @abstractmethod
    def pieces(self, reports: Floats) -> Pieces:
        """The kernels of reports (m,) in the form that compiled loops take."""

    @abstractmethod
    def draw(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """Reports of these counts. They are seeded and protect nobody."""


def whole_numbers(values: Floats) -> Counts:
    """Floats as 64-bit integers between 0 and ``MOST``; NaN becomes 0."""
    return np.clip(np.nan_to_num(values), 0.0, float(MOST)).astype(np.int64)


def log(values: Floats) -> Floats:
    """The logarithm, minus infinity at 0 without a warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))
