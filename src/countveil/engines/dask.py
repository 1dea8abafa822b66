"""Blocks computed by the workers of a Dask cluster, with the same numbers as in one process.

Blocks of the data are sent once, in groups, and stay on their workers. Shared arguments and the rows' factors are sent
with every pass. Blocks' sums are added up on the workers, by halves as everywhere; only rows and the total come back.
If a worker is lost, its blocks are sent to another, and the pass is computed again.
"""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from functools import cache
from itertools import accumulate
from operator import itemgetter
from types import TracebackType
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

import numba
import numpy as np
from distributed import Client, Future

from countveil import __version__
from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, BlockFunction, Prepare, put_together, row_blocks
from countveil.engines.threads import ThreadEngine, libraries, set_threads

MAX_LOSSES = 10  # of workers, in a row
WAIT_SECONDS = 60.0  # for a first worker
SHIPPING_SECONDS = 10.0  # for sending a group of blocks
ALIGNMENT = 16  # bytes
# Summing here saves steps, but all groups' sums come here, and shared arguments are sent once per group.
MAX_GROUPS_SUMMED_HERE = 2
LOSS_ERRORS = (CancelledError, OSError)  # what Dask raises when a worker is lost with its data


class Shipment(NamedTuple):
    """Groups of blocks of some observations, and which workers hold them."""

    groups: list[range]  # numbers of each group's blocks
    data: list[Future | None]
    workers: list[str | None]


class EqualRows(NamedTuple):
    """An array of equal rows, as most priors are, in the form in which it is sent."""

    row: np.ndarray
    n_rows: int


class DaskEngine:
    """An ``Engine`` whose blocks of rows are computed by a client's workers; ``map`` runs here, in threads."""

    def __init__(self, client: Client, threads: int = 1) -> None:
        self.client, self._here = client, ThreadEngine(threads)
        self._shipments: WeakKeyDictionary[Observations, dict[tuple[int, ...], Shipment]] = WeakKeyDictionary()
        self._shipping = threading.Lock()
        check_workers(client)

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
        lost: BaseException | None = None
        for _ in range(MAX_LOSSES):
            threads = self._threads_of_workers()
            try:
                shipment = self._shipped(observations, blocks, threads)
                return self._compute(function, prepare, shipment, blocks, shared, own)
            except LOSS_ERRORS as error:
                if self.client.status != "running":
                    raise
                lost = error
        raise ConnectionError(f"workers must last for a pass over the data, got {MAX_LOSSES} losses in a row") from lost

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        """Function over zipped arguments, in order, in this process."""
        return self._here.map(function, *arguments)

    def _compute(
        self,
        function: BlockFunction,
        prepare: Prepare | None,
        shipment: Shipment,
        blocks: list[slice],
        shared: tuple[Any, ...],
        own: Arrays,
    ) -> tuple[Arrays, Arrays]:
        """One pass: each group computed where its data are; sums of many groups are added up on the workers."""
        submit, gather = self.client.submit, self.client.gather
        few = len(shipment.groups) <= MAX_GROUPS_SUMMED_HERE
        everywhere = packed(shared) if few else submit(settled, packed(shared), pure=False)
        parts = [slice(blocks[g[0]].start, blocks[g[-1]].stop) for g in shipment.groups]
        options: list[dict[str, Any]] = [
            {"workers": worker, "allow_other_workers": True, "pure": False, "priority": -g}
            for g, worker in enumerate(shipment.workers)
        ]
        # All of this before the first submit: after it, Dask's own thread competes for the interpreter.
        rows_of = [tuple(shortened(x[part]) for x in own) for part in parts]
        found = [
            submit(compute_group, function, prepare, data, everywhere, rows, **there)
            for data, rows, there in zip(shipment.data, rows_of, options, strict=True)
        ]
        if few:
            return put_together(((rows, settled(sums)) for rows, sums in gather(found)), parts)
        rows, sums = (
            [submit(itemgetter(n), group, **there) for group, there in zip(found, options, strict=True)] for n in (0, 1)
        )
        while len(sums) > 1:
            options = options[::2]
            pairs = zip(sums[::2], sums[1::2], options, strict=True)
            sums = [submit(added, left, right, **there) for left, right, there in pairs]
        *all_rows, total = gather([*rows, *sums])
        whole, _ = put_together(((found, ()) for found in all_rows), parts)
        return whole, settled(total)

    def _shipped(self, observations: Observations, blocks: list[slice], threads: dict[str, int]) -> Shipment:
        """The observations' shipment, with every group on a worker that is alive."""
        with self._shipping:
            found = self._shipments.setdefault(observations, {})
            cuts = tuple(block.stop for block in blocks)
            if cuts not in found:
                groups = grouped(len(blocks), sum(threads.values()))
                found[cuts] = Shipment(groups, [None] * len(groups), [None] * len(groups))
            shipment = found[cuts]
            for g, future in enumerate(shipment.data):
                if future is not None and future.status != "finished":
                    shipment.workers[g] = None
            targets = placed(shipment.workers, threads)
            for g, worker in enumerate(targets):
                if worker != shipment.workers[g]:
                    data = [Block(n, observations.block(blocks[n]), blocks[n].start) for n in shipment.groups[g]]
                    shipment.data[g] = self._sent(data, worker)
                    shipment.workers[g] = worker
            return shipment

    def _sent(self, group: list[Block], worker: str) -> Future:
        """A group of blocks, sent to a worker."""
        return self.client.scatter([group], workers=[worker], hash=False, timeout=SHIPPING_SECONDS)[0]

    def _threads_of_workers(self) -> dict[str, int]:
        """Numbers of threads by worker's address; waits a while for the first worker."""
        if not (found := self.client.nthreads()):
            try:
                self.client.wait_for_workers(1, timeout=WAIT_SECONDS)
            except TimeoutError as error:
                raise ConnectionError(f"the scheduler must have a worker, got none in {WAIT_SECONDS:g} s") from error
            found = self.client.nthreads()
        return dict(found)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shipments.clear()
        self._here.__exit__(kind, error, trace)


def compute_group(
    function: BlockFunction, prepare: Prepare | None, group: list[Block], shared: tuple[Any, ...], own: Arrays
) -> tuple[Arrays, Arrays]:
    """On a worker: apply a block function to a group of blocks; the group keeps its settled arrays."""
    one_thread_of_blas()
    group[:] = [block._replace(entries=settled(block.entries, alignment=1)) for block in group]
    shared, own = settled(shared), settled(tuple(map(lengthened, own)))
    if prepare is not None:
        shared = prepare(map, *shared)
    ends = list(accumulate(block.n_rows for block in group))
    rows = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def results() -> Iterator[tuple[Arrays, Arrays]]:
        for block, part in zip(group, rows, strict=True):
            yield function(block, *shared, *(x[part] for x in own))

    return put_together(results(), rows)


def added(left: Arrays, right: Arrays) -> Arrays:
    """On a worker: the sums of two runs of blocks added up; changes neither."""
    return tuple(x + y for x, y in zip(left, right, strict=True))


def shortened(rows: np.ndarray) -> np.ndarray | EqualRows:
    """The array, or one of its rows if all are equal."""
    equal = rows.flags.c_contiguous and len(rows) > 1 and (rows[-1] == rows[0]).all() and (rows == rows[0]).all()
    return EqualRows(rows[0], len(rows)) if equal else rows


def lengthened(rows: np.ndarray | EqualRows) -> np.ndarray:
    """On a worker: the array again."""
    return np.repeat(rows.row[None], rows.n_rows, axis=0) if isinstance(rows, EqualRows) else rows


def packed(value: Any) -> Any:
    """Nested tuples, with every array contiguous in the order of its axes in memory.

    An array with gaps would arrive in C order. Its layout matters: arrays made from it inherit the layout, and NumPy
    adds up in the order of the layout.
    """
    return mapped(lambda x: x if x.flags.c_contiguous or x.flags.f_contiguous else x.copy(order="K"), value)


def settled(value: Any, alignment: int = ALIGNMENT) -> Any:
    """Nested tuples, with every array aligned like NumPy's own.

    Received arrays may begin anywhere in memory. NumPy may add up such an array in another order, and Numba compiles
    again for it. Entries are views in threads, and in workers of this process, so alignment to their items is enough
    for them.
    """

    def is_settled(x: np.ndarray) -> bool:
        return x.flags.aligned and x.ctypes.data % alignment == 0 and x.flags.writeable

    return mapped(lambda x: x if is_settled(x) else x.copy(order="K"), value)


def mapped(function: Callable[[np.ndarray], np.ndarray], value: Any) -> Any:
    """A function applied to all arrays of nested (named) tuples; other values stay."""
    if isinstance(value, np.ndarray):
        return function(value)
    if not isinstance(value, tuple):
        return value
    parts = [mapped(function, part) for part in value]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


@cache
def one_thread_of_blas() -> None:
    """Limit BLAS to one thread from the first call on."""
    for library in libraries():
        set_threads(library, 1)


def check_workers(client: Client) -> None:
    """Refuse workers with other versions than here, since their numbers might differ."""
    here = versions()
    for address, found in client.run(versions, on_error="return").items():
        if found != here:
            raise ValueError(f"every worker must have {here}, got {found} from {address}")


def versions() -> str:
    """On a worker: the versions that its numbers depend on."""
    return f"countveil {__version__}, numba {numba.__version__}, numpy {np.__version__}"


MAX_BLOCKS_PER_GROUP = 16
GROUPS_PER_THREAD = 4  # where the number of threads is not a power of two


def grouped(n_blocks: int, n_threads: int) -> list[range]:
    """Runs of blocks, by repeated halving: each can be summed up alone, and their number is a power of two."""
    even = n_threads & (n_threads - 1) == 0
    wanted = n_threads if even else GROUPS_PER_THREAD * n_threads
    groups = [range(n_blocks)]
    while 2 * len(groups) <= n_blocks and (len(groups) < wanted or len(groups[-1]) > MAX_BLOCKS_PER_GROUP):
        groups = [half for group in groups for half in (group[: len(group) // 2], group[len(group) // 2 :])]
    return groups


def placed(held: Sequence[str | None], threads: dict[str, int]) -> list[str]:
    """A worker for every group: the one that holds it, unless that worker is gone or has more than its share.

    Other groups go to the worker of the group before while it has less than its share, so that sums of neighbours need
    not be sent.

    Args:
        held: the worker that holds each group, or None.
        threads: numbers of threads of the workers that are alive.
    """
    share = len(held) / sum(threads.values())
    load = dict.fromkeys(threads, 0)
    found: list[str] = []
    for worker in held:
        if worker in load and load[worker] < math.ceil(share * threads[worker]):
            found.append(worker)
            load[worker] += 1
        else:
            found.append("")
    for g, worker in enumerate(found):
        if not worker:
            before = found[g - 1] if g > 0 else None
            if before is None or load[before] >= math.ceil(share * threads[before]):
                before = min(load, key=lambda name: (load[name] + 1) / threads[name])
            found[g] = before
            load[before] += 1
    return found
