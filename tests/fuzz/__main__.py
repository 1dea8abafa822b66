"""``python -m tests.fuzz release fit report study tables --mutations 100000 --seed 1``.

Breaks valid files and reads them. Prints every failure with its seed, which ``--replay`` tries again. Exit status 1 if
there is one. Says on the way how far it is; ``--first`` goes on from there. Needs a POSIX system with /proc.
"""

import argparse
import sys
import time

from tests.fuzz.readers import KINDS, kind_of
from tests.fuzz.run import run

AT_ONCE = 5000
"""Mutations for one child: one that lives long may grow up to its limit on memory."""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n\n")[2])
    parser.add_argument("kinds", nargs="*", help=f"kinds of files: {', '.join(KINDS)} [default: all]")
    parser.add_argument("--mutations", type=int, default=10_000, help="in all, over the kinds [default: 10000]")
    parser.add_argument("--seed", type=int, default=1, help="of the first mutation [default: 1]")
    parser.add_argument(
        "--first", type=int, default=0, help="of each kind, the number to go on from after a run that was stopped"
    )
    parser.add_argument("--replay", nargs="+", metavar="KIND:SEED:NUMBER", help="try these alone")
    options = parser.parse_args()
    if not set(options.kinds) <= set(KINDS):
        parser.error(f"kinds must be among {', '.join(KINDS)}, got {' '.join(options.kinds)}")
    wanted: dict[str, list[str]] = {}
    for seed in options.replay or ():
        wanted.setdefault(seed.partition(":")[0], []).append(seed)
    kinds = {name: kind_of(name) for name in (wanted or options.kinds or KINDS)}
    weight = sum(kind.weight for kind in kinds.values())
    failed = total = 0
    for name, kind in kinds.items():
        number = options.mutations * kind.weight // weight
        seeds = wanted.get(name) or [f"{name}:{options.seed}:{i}" for i in range(options.first, number)]
        begun, before = time.perf_counter(), failed
        for start in range(0, len(seeds), AT_ONCE):
            for failure in run(name, seeds[start : start + AT_ONCE], kind):
                failed += 1
                print(f"{failure.seed}  {failure.what}", flush=True)
            if start + AT_ONCE < len(seeds):
                print(f"{name}: went on to {seeds[start + AT_ONCE]}", file=sys.stderr, flush=True)
        total += len(seeds)
        took = time.perf_counter() - begun
        print(f"{name}: {len(seeds)} mutations, {failed - before} failures, {took:.1f} s", flush=True)
    print(f"{total} mutations, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
