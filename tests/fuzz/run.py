"""Runs mutations in a process of their own, with limits on memory and time, so that a reader may even crash."""

import os
import random
import resource
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.fuzz import mutations
from tests.fuzz.readers import Kind, kind_of, quietly

MEMORY = 1 << 30
"""Bytes that reading a small file may take beyond what the process has."""
SECONDS = 20
IN_MEMORY = Path("/dev/shm")
"""A folder whose files are in memory: on disk, opening a file takes longer than reading it."""
END = "end"
"""What a child says behind its last mutation."""
LONGEST = 700
"""Characters of a refusal, the path of the file not counted."""


class Failure(NamedTuple):
    """A mutation that a reader neither read nor refused in one short line, and what it did instead."""

    seed: str
    what: str


def mutated(kind: Kind, seed: str) -> tuple[str, bytes]:
    """The name and the bytes of the file that a seed, such as "fit:1:4711", stands for."""
    rng = random.Random(seed)
    name = rng.choice(sorted(kind.files))
    change = rng.choice(kind.changes)
    try:
        return name, change(kind.files[name], rng)
    except Exception:  # a change may itself be more than a writer takes
        return name, mutations.flipped(kind.files[name], rng)


def attempt(kind: Kind, seed: str, folder: Path) -> str | None:
    """What is wrong with how a mutation is read; None if it was read or refused as it should be."""
    name, content = mutated(kind, seed)
    path = folder / name
    mutations.write(content, path)
    try:
        quietly(kind.read, path)
    except (ValueError, OSError) as error:
        said = str(error).replace(str(path), "")
        if len(said) > LONGEST:
            return f"a refusal of {len(said)} characters: {said[:80]!r}"
        if "\n" in said.strip() or said == str(error):
            return f"a refusal of several lines, or one that does not name the file: {said[:200]!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]!r}"
    return None


def run(name: str, seeds: list[str], kind: Kind | None = None) -> Iterator[Failure]:
    """The failures among these seeds; a child that dies is replaced by another, which goes on behind it."""
    found, start = kind or kind_of(name), 0
    while start < len(seeds):
        failures, start = _batch(lambda at, begun=start: _child(found, seeds[begun:], at), seeds, start)
        yield from failures


def _batch(child: Callable[[int], None], seeds: list[str], start: int) -> tuple[list[Failure], int]:
    """(failures, the place to go on from) of one child."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads: those that there are wait for work
        process = os.fork()
    if not process:
        os.close(ours)
        try:
            child(theirs)
        finally:
            os._exit(0)
    os.close(theirs)
    failures, last, ended = [], start - 1, False
    with os.fdopen(ours, encoding="utf-8", errors="replace") as file:
        for line in file:
            place, _, what = line.rstrip("\n").partition(" ")
            if place == END:
                ended = True
                continue
            last = start + int(place)
            if what:
                failures.append(Failure(seeds[last], what))
    _, status = os.waitpid(process, 0)
    if last < start:
        raise RuntimeError(f"a child must begin with {seeds[start]}, got one that ended before it")
    if os.WIFSIGNALED(status):
        how = signal.Signals(os.WTERMSIG(status)).name
        failures.append(Failure(seeds[last], f"died of {how}" + (f" after {SECONDS} s" * (how == "SIGALRM"))))
    elif not ended:
        failures.append(Failure(seeds[last], "ended the process"))
    return failures, last + 1


def _child(kind: Kind, seeds: list[str], out: int) -> None:
    """Tries every seed; says which one it begins, and what is wrong with it."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None) as folder:
        for place, seed in enumerate(seeds):
            os.write(out, f"{place}\n".encode())
            signal.alarm(SECONDS)
            what = attempt(kind, seed, Path(folder))
            signal.alarm(0)
            if what is not None:
                shown = " ".join(what.encode("ascii", "backslashreplace").decode().split())
                os.write(out, f"{place} {shown}\n".encode())
    os.write(out, f"{END}\n".encode())
