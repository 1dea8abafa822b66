"""Pieces of the kernels of reports: a mechanism's kernels in the forms that compiled loops read."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countveil.kernels.report_kernels import BEGIN, CONSTANT, KIND, LEFT, LENGTH, OFFSET, RIGHT, SCALE, VALUE

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
    for column, real in (
        (VALUE, value),
        (SCALE, scale),
        (CONSTANT, constant),
        (LEFT, slopes[0]),
        (RIGHT, slopes[1]),
    ):
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
