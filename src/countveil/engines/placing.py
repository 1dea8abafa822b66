"""Which worker computes which group of blocks. Nothing depends on it but time."""

import math
from collections.abc import Sequence

MOST_BLOCKS_PER_GROUP = 16
GROUPS_FOR_UNEVEN_THREADS = 4  # of each thread, where their number is no power of two


def grouped(n_blocks: int, n_threads: int) -> list[range]:
    """Runs of blocks, halved and halved again: each is summed up alone, and their number is a power of two."""
    even = n_threads & (n_threads - 1) == 0
    wanted = n_threads if even else GROUPS_FOR_UNEVEN_THREADS * n_threads
    groups = [range(n_blocks)]
    while 2 * len(groups) <= n_blocks and (len(groups) < wanted or len(groups[-1]) > MOST_BLOCKS_PER_GROUP):
        groups = [half for group in groups for half in (group[: len(group) // 2], group[len(group) // 2 :])]
    return groups


def placed(held: Sequence[str | None], threads: dict[str, int]) -> list[str]:
    """A worker for every group: the one that holds it, unless that is gone or has more than its share.

    It is the worker of the group before while that has less than its share: their sums then need not travel.

    Args:
        held: who holds each group; None for nobody.
        threads: how many threads each worker has, of those that are there.
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
