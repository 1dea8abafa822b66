"""The Python process of its own that reads a fit from somebody else first, with a limit on its time and its memory.

It gets the file as its standard input, already open: no other file can take its place.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

LEAST_SECONDS, BYTES_PER_SECOND = 30.0, 10e6
"""How long a file may take to read: this, and as long as a slow disk takes."""
ROOM = 1 << 30
"""Bytes of memory that reading may take besides twice the file's; arrays are read some megabytes at a time."""

_READY = b"ready\n"
_SAID = 200
_ALONE = "-I", "-S", "-X", "utf8"
"""Python without its variables and without ``site``, which would run any ``sitecustomize.py`` that it finds."""
_BEGIN = """
import json, runpy, sys
known = json.loads(sys.argv.pop(1))
sys.path[:] = known + [each for each in sys.path if each not in known]
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def ask(module: str, descriptor: int, path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a module that calls ``answer`` finds in an open file: {"estimator": its model}, or {"rule": what it breaks}.

    ``path`` is what errors call the file. Raises OSError where the process does not start.
    """
    size = os.fstat(descriptor).st_size
    seconds, room = LEAST_SECONDS + size / BYTES_PER_SECOND, ROOM + 2 * size
    command = [sys.executable, *_ALONE, "-c", _BEGIN, json.dumps(folders()), module, str(room)]
    try:
        done = subprocess.run(command, stdin=descriptor, capture_output=True, timeout=seconds, check=False)
        status, told, complaint = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        status, told, complaint = None, late.stdout or b"", f"no sign of it in {seconds:.0f} s".encode()
    except (OSError, ValueError, TypeError) as error:  # the last where Python does not know its own program
        raise _not_started(path, str(error)) from error
    if not told.startswith(_READY):
        raise _not_started(path, complaint.decode("utf-8", "replace"))
    answer = told.removeprefix(_READY)
    if status is None:
        return {"rule": f"must be readable, got no end of it in {seconds:.0f} s"}
    if status < 0:
        return {"rule": f"must be readable, got a crash of the HDF5 library (signal {-status})"}
    if not answer:
        return {"rule": f"must be readable, got {_line(complaint.decode('utf-8', 'replace'))}"}
    found: dict[str, Any] = json.loads(answer)
    return found


def folders() -> list[str]:
    """Where this process imports from, without relative folders, whose content depends on where it stands."""
    own = str(Path(__file__).resolve().parents[2])
    found = [each for each in sys.path if os.path.isabs(each)]
    return found if own in found else [*found, own]


def _not_started(path: str | os.PathLike[str], why: str) -> OSError:
    return OSError(
        f"{os.fspath(path)} was not read: a fit is checked by a Python process of its own first, which did not start: "
        f"{_line(why) or 'it said nothing'}"
    )


def _line(said: str) -> str:
    """The end of what a process said, in one line."""
    return " ".join(said.split())[-_SAID:]


def limit_memory(room: int) -> None:
    """Lets this process take at most ``room`` bytes more than it has, where the system has /proc and such limits."""
    try:
        import resource

        taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = taken + room if hard == resource.RLIM_INFINITY else min(taken + room, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def answer(inspect: Callable[[BinaryIO], str], room: int) -> None:
    """Prints that it is there, and then what ``inspect`` finds in standard input, or the rule that breaks, as JSON."""
    limit_memory(room)
    sys.stdout.buffer.write(_READY)
    sys.stdout.flush()
    try:
        with open(0, "rb", closefd=False) as source:
            found = {"estimator": inspect(source)}
    except MemoryError:
        found = {"rule": f"must be readable in {room} bytes of memory, got one that takes more"}
    except Exception as error:  # what a file from anybody makes libraries raise has no end
        found = {"rule": rule_of(error)}
    print(json.dumps(found))


def rule_of(error: Exception) -> str:
    """What a file breaks, in one line, from whatever was raised about it."""
    said = " ".join(str(error).split())[:300]
    return said if said.startswith("must ") else f"must be readable, got {said}"
