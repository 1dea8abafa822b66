"""Blocks computed by a pool of threads, whose kernels release the interpreter's lock, and BLAS kept to one thread."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import TracebackType
from typing import Any, Self

from threadpoolctl import ThreadpoolController

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, BlockFunction, Prepare, put_together, row_blocks

FEW_REPORTS = 8_192  # stored reports; below this, one thread is faster


def available_threads() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_worth(data: Any) -> int:
    """How many threads fits of these data should take: one where there are few reports in memory, else all.

    Work between calls of kernels is then most of it, and two threads would wait for the interpreter's lock in turns.
    """
    few = isinstance(data, Observations) and data.reports.size < FEW_REPORTS
    return 1 if few else available_threads()


class ThreadEngine:
    """An ``Engine`` with a fixed number of threads."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def over_rows(
        self,
        function: BlockFunction,
        observations: Observations,
        shared: tuple[Any, ...] = (),
        own: Arrays = (),
        blocks: list[slice] | None = None,
        prepare: Prepare | None = None,
    ) -> tuple[Arrays, Arrays]:
        """(all rows, sums over blocks) of function(block, *shared, *own rows)."""
        if blocks is None:
            blocks = row_blocks(observations.shape[0], None, observations.shape[1])
        if prepare is not None:
            shared = prepare(self.map, *shared)

        def compute(number: int, rows: slice) -> tuple[Arrays, Arrays]:
            block = Block(number, observations.block(rows), rows.start)
            return function(block, *shared, *(x[rows] for x in own))

        return put_together(self.map(compute, range(len(blocks)), blocks), blocks)

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        """Function over zipped arguments, in order."""
        if self._pool is None:
            return map(function, *arguments)
        return self._pool.map(function, *arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


_lock = threading.Lock()
_before: dict[str, tuple[Any, int]] = {}  # of each library by its file: what controls it, and its threads
_users = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in this process; the last context to end, in any thread, sets the numbers back.

    The number is one for the whole process. Contexts that each set back what they found would leave one thread behind
    where two overlap and the one that began first ends first.
    """
    global _users
    with _lock:
        for library in libraries():
            _before.setdefault(library.filepath, (library, library.num_threads))
            set_threads(library, 1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                for library, threads in _before.values():
                    set_threads(library, threads)
                _before.clear()


@cache
def libraries() -> list[Any]:
    """What controls each BLAS library: those of NumPy and SciPy, and the one that Numba would otherwise load later.

    They are looked for once. That takes a millisecond, or six where many libraries are loaded, and a fit asks often.
    """
    import_module("scipy.linalg.cython_blas")
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def set_threads(library: Any, threads: int) -> None:
    """Set a library's number, from whichever thread: threadpoolctl from 3.8 on listens to one thread alone."""
    let_go = getattr(library, "clear_controlling_thread", None)
    if let_go is not None:
        let_go(force=True)
    library.set_num_threads(threads)
    if let_go is not None:
        let_go(force=True)
