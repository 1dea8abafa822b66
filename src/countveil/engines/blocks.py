"""Blocks of rows, and what an engine does with them: call one function on all, and add up in a fixed order.

A block function gets a ``Block``, arguments that all blocks share, and the block's rows of other arrays. It changes
none of these and returns (new rows, sums): arrays with one row per row of the block, and arrays to be added up over
all blocks. It is defined in a module and gets all that it needs as arguments, so that it can be called in another
process, and called again if that process is lost.
"""

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from countveil.data.observations import Observations
from countveil.kernels.entries import Entries

MAX_ROWS_PER_BLOCK = 256
MIN_ROWS_PER_BLOCK = 64
BLOCKS_OF_SMALL_DATA = 4  # about, if they have at least MIN_ROWS_PER_BLOCK rows
MIN_CELLS_PER_BLOCK = 1 << 14  # for fewer, calling the kernel costs more than the work

Arrays = tuple[np.ndarray, ...]
BlockFunction = Callable[..., tuple[Arrays, Arrays]]
Map = Callable[..., Iterator[Any]]
Prepare = Callable[..., tuple[Any, ...]]  # from a Map and the shared arguments to new shared arguments


class Block(NamedTuple):
    """A run of rows: its number, which names its random stream, and its stored entries as the kernels take them."""

    number: int
    entries: Entries
    first_row: int = 0

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
        """(all rows, sums over blocks) of function(block, *shared, *own rows).

        Arrays of ``own`` have one row per row of the observations. ``blocks`` are consecutive runs of rows that cover
        all rows (default: ``row_blocks``); draws depend on them, so they are never chosen for a machine. ``prepare``
        turns the shared arguments into those that the function gets, wherever it is called; it is for what is faster to
        compute again than to send. It also gets a ``map``, to compute parts in parallel. Sums are added up by halves
        (see ``summed``), and do not depend on which worker computed which blocks.
        """
        ...

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        """Function over zipped arguments, in order, in this process."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def row_blocks(n_rows: int, size: int | None = None, n_columns: int = MIN_CELLS_PER_BLOCK) -> list[slice]:
    """Fixed runs of rows, whatever the machine: of 256 rows, or fewer so that small data too have a few blocks.

    Blocks are not made smaller than MIN_CELLS_PER_BLOCK for that.
    """
    if size is None:
        few, enough = -(-n_rows // BLOCKS_OF_SMALL_DATA), -(-MIN_CELLS_PER_BLOCK // n_columns)
        size = min(MAX_ROWS_PER_BLOCK, max(MIN_ROWS_PER_BLOCK, few, enough))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def put_together(results: Iterable[tuple[Arrays, Arrays]], blocks: list[slice]) -> tuple[Arrays, Arrays]:
    """(all rows, sums) of the blocks' results, which come in order; it adds into the arrays of their sums."""
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
    """The sum of the next n parts, which are changed: the sum of the first half plus that of the second, recursively.

    A worker that has all parts of a half can sum them up alone, and every bit of the total is the same.
    """
    if n == 1:
        return next(parts)
    total = summed(parts, n // 2)
    for x, y in zip(total, summed(parts, n - n // 2), strict=True):
        x += y
    return total
