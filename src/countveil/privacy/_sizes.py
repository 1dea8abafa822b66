"""How much a file may ask for: no more than its bytes can hold, and no more than the machine has."""

import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

EXPANSION = 300
"""Deflate at level 1, which releases are written with, packs zeros 229 to 1; at its best level 1,029 to 1."""
SMALL = 1 << 26
"""Bytes that any file may ask for."""


def too_much(asked: int, stored: int, copies: int = 1) -> str | None:
    """Why a file of ``stored`` bytes may not ask for ``asked`` bytes, held ``copies`` times; None if it may."""
    if asked > max(SMALL, EXPANSION * stored):
        return f"must hold what it declares, got {stored} bytes that declare {asked}"
    free = available_memory()
    if asked > SMALL and free is not None and asked * copies > free:
        return (
            f"must fit into the {free} bytes of memory that are free, got {asked} bytes, held {copies} times"
        )
    return None


def available_memory() -> int | None:
    """Bytes of memory that are free: on Linux as the kernel estimates it, elsewhere all there are; None if unknown."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def packed_otherwise(infos: Iterable[zipfile.ZipInfo]) -> str | None:
    """The rule that members of an archive break; None if each is stored as it is or by deflate.

    Only those are unpacked no further than to the size that is declared: bzip2 and LZMA unpack all that they read.
    """
    for info in infos:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            return f"must be packed by deflate or not at all, got method {info.compress_type}"
    return None
