"""The law of a report given its count, for any mechanism: what draws, expectations and models ask of it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from countveil.kernels.report_kernels import UNBOUNDED
from countveil.laws.noise.pieces import Pieces

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
