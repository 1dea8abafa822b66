"""How much memory a process may still ask for, by the system and by the limits of its container."""

import os
from collections.abc import Iterator
from pathlib import Path

SYSTEM = Path("/")  # where the files of the system are


def available_memory() -> int | None:
    """Bytes that this process may still take, by the system and by the limits of its container; None if unknown."""
    found = [*free_in_system(), *free_in_groups()]
    if found:
        return max(min(found), 0)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def free_in_system() -> Iterator[int]:
    """Linux's estimate of what can be taken without swapping, and the free swap."""
    try:
        lines = (SYSTEM / "proc/meminfo").read_text().splitlines()
    except OSError:
        return
    kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    if "MemAvailable" in kilobytes:
        yield 1024 * (kilobytes["MemAvailable"] + kilobytes.get("SwapFree", 0))


def free_in_groups() -> Iterator[int]:
    """What the control groups of a container or a batch job leave, in version 2 and 1; caches of files do not count."""
    try:
        groups = [line.split(":", 2) for line in (SYSTEM / "proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return
    root = SYSTEM / "sys/fs/cgroup"
    for number, kinds, path in groups:
        if number == "0":
            names, top = ("memory.max", "memory.current", "inactive_file"), root
        elif kinds == "memory":
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            top = root / "memory"
        else:
            continue
        for folder in {top, top / path.lstrip("/")}:
            yield from free_in_group(folder, *names)


def free_in_group(folder: Path, limit: str, usage: str, cache: str) -> Iterator[int]:
    """What one group leaves, if it has a limit."""
    try:
        allowed = int((folder / limit).read_text())
        used = int((folder / usage).read_text())
        lines = [line.split() for line in (folder / "memory.stat").read_text().splitlines()]
    except (OSError, ValueError):  # no such group, or no limit: "max"
        return
    yield allowed - used + sum(int(value) for name, value in lines if name == cache)


def in_words(n_bytes: int) -> str:
    """A size with three digits or more, such as 98.8 GB."""
    for size, unit in ((10**9, "GB"), (10**6, "MB")):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes:,} bytes"
