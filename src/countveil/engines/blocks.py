"""Blocks of rows, and what an engine does with them: one function over all of them, in an order that is fixed.

A block function gets a ``Block``, arrays that all blocks share, and its own rows of others. It changes none of
them and returns (new rows, sums): arrays with a row for each of its own, and arrays to be added up over all
blocks. It is a function of a module and all that it needs is among its arguments, so that it can be called in another
process, and called again when that process is lost.
"""

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from countveil.data.observations import Observations
from countveil.kernels.entries import Entries

MOST_ROWS_PER_BLOCK = 256
LEAST_ROWS_PER_BLOCK = 64
BLOCKS_OF_FEW_ROWS = 4
LEAST_CELLS_PER_BLOCK = 1 << 14  # fewer cost less than it does to call the kernel

Arrays = tuple[np.ndarray, ...]
BlockFunction = Callable[..., tuple[Arrays, Arrays]]
Map = Callable[..., Iterator[Any]]
Prepare = Callable[..., tuple[Any, ...]]  # of a Map, and of what all blocks share


class Block(NamedTuple):
    """A run of rows: its number, which names its random stream, and its stored entries as the kernels take them."""

    number: int
    entries: Entries

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return self.entries.n_rows


class Engine(Protocol):
    """Who computes the blocks."""

    def over_rows(
        self,
        function: BlockFunction,
        observations: Observations,
        shared: tuple[Any, ...] = (),
        own: Arrays = (),
        blocks: list[slice] | None = None,
        prepare: Prepare | None = None,
    ) -> tuple[Arrays, Arrays]:
        """(all rows, sums over blocks) of function(block, *shared, *own rows); own arrays have a row for each row.

        ``blocks`` are runs of rows, one after another and all rows in all, else those of ``row_blocks``; draws depend
        on them, so that they are never chosen for a machine. ``prepare`` makes of the shared arguments what the
        function gets, wherever it is called: what is sooner made again than sent. It comes with a ``map`` for parts
        of it. Sums are added up by halves (see ``summed``), and do not depend on who computed which blocks.
        """
        ...

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        """Function over zipped arguments, in order, in this process."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def row_blocks(n_rows: int, size: int | None = None, n_columns: int = LEAST_CELLS_PER_BLOCK) -> list[slice]:
    """Fixed runs of rows, whatever the machine: of 256, or fewer so that a few blocks come of few rows.

    Rows of few columns are not cut into blocks of less than LEAST_CELLS_PER_BLOCK for that.
    """
    if size is None:
        few, enough = -(-n_rows // BLOCKS_OF_FEW_ROWS), -(-LEAST_CELLS_PER_BLOCK // n_columns)
        size = min(MOST_ROWS_PER_BLOCK, max(LEAST_ROWS_PER_BLOCK, few, enough))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def put_together(results: Iterable[tuple[Arrays, Arrays]], blocks: list[slice]) -> tuple[Arrays, Arrays]:
    """(all rows, sums) of the blocks' results, which come in order; takes their sums for its own."""
    whole: Arrays = ()

    def sums_alone() -> Iterator[Arrays]:
        nonlocal whole
        for number, (found, sums) in enumerate(results):
            if number == 0:
                n_rows = blocks[-1].stop
                whole = tuple(np.empty((n_rows, *x.shape[1:]), dtype=x.dtype) for x in found)
            for rows, part in zip(whole, found, strict=True):
                rows[blocks[number]] = part
            yield sums

    sums = summed(sums_alone(), len(blocks))
    return whole, sums


def summed(parts: Iterator[Arrays], n: int) -> Arrays:
    """The sum of the next n parts, which are changed: that of the first half plus that of the second, and so on down.

    Whoever has all parts of a half can sum them up alone, and no bit of the whole tells who did.
    """
    if n == 1:
        return next(parts)
    total = summed(parts, n // 2)
    for x, y in zip(total, summed(parts, n - n // 2), strict=True):
        x += y
    return total
