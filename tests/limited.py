"""Runs something in a process of its own, and says how it ended, how long it took and how much memory it touched."""

import json
import os
import resource
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOM = 200_000_000
"""Bytes that broken input may take beyond what the process has: of addresses, which is enforced, and of memory."""
SECONDS = 1.0
"""Processor time that it may take, on which other programs of the machine have no part."""
LONGEST = 30
"""Seconds after which the process is ended."""


class Ended(NamedTuple):
    """How it ended."""

    how: str  # "done", "refused: " and the text of a ValueError, or another exception's name and text
    seconds: float  # of processor time
    memory: int  # bytes at the peak, beyond those at the beginning


def limited(work: Callable[[], Any], room: int = ROOM) -> Ended:
    """The end of ``work()`` in a child of this process, for which all imports and compiled functions are there."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads: those that there are wait for work
        process = os.fork()
    if not process:
        try:
            os.close(ours)
            os.write(theirs, json.dumps(_measured(work, room)).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as file:
        said = file.read()
    _, status = os.waitpid(process, 0)
    if not said:
        return Ended(f"died: {status}", float(LONGEST), 0)
    return Ended(*json.loads(said))


def _measured(work: Callable[[], Any], room: int) -> Ended:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(LONGEST)
    warnings.simplefilter("ignore")
    before, begun, how = _peak(), time.process_time(), "done"
    try:
        work()
    except BaseException as error:
        name = "refused" if isinstance(error, ValueError) else type(error).__name__
        how = f"{name}: {error}"[:2000]
    return Ended(how, time.process_time() - begun, _peak() - before)


def _peak() -> int:
    """The most memory that this process had so far; a child begins with what its parent has."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
