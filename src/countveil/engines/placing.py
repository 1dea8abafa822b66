"""Which worker computes which group of blocks. Nothing depends on it but time."""

import math
from collections.abc import Sequence

GROUPS_PER_THREAD = 2  # each costs a message the size of the column factors
MOST_BLOCKS_PER_GROUP = 16


def grouped(n_blocks: int, n_threads: int) -> list[range]:
    """Runs of blocks of nearly one length, as many for every thread."""
    each = max(GROUPS_PER_THREAD, -(-n_blocks // (n_threads * MOST_BLOCKS_PER_GROUP)))
    n_groups = min(n_blocks, each * n_threads)
    ends = [n_blocks * (g + 1) // n_groups for g in range(n_groups)]
    return [range(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def placed(held: Sequence[str | None], threads: dict[str, int]) -> list[str]:
    """A worker for every group: the one that holds it, unless that is gone or has more than its share.

    Among workers with equally little to do it is the one of the group before: their sums then need not travel.

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
            before = found[g - 1] if g > 0 else ""
            found[g] = min(load, key=lambda name: ((load[name] + 1) / threads[name], name != before))
            load[found[g]] += 1
    return found
