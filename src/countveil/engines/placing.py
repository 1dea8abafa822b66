"""Which worker computes which group of blocks. Only the time depends on it."""

import math
from collections.abc import Sequence

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
