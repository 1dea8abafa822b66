"""Files of arrays from elsewhere: whether they hold as much as they declare, before any memory is asked for."""

import os
import re
import zipfile
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np

from countveil.privacy._sizes import packed_otherwise, too_much

_BANNER = re.compile(rb"%%MatrixMarket\s+matrix\s+(coordinate|array)\s", re.IGNORECASE)
_NUMBERS = re.compile(rb"[-+0-9.eE \t\r\n]*")
_LEAST_LINE = {b"coordinate": 4, b"array": 2}
"""The fewest bytes that an entry of a MatrixMarket file takes: "1 1" or "1", and the end of the line."""


def check_npy(path: str | os.PathLike[str]) -> None:
    """Refuse a .npy file that does not hold exactly the array that its header declares; raises ValueError."""
    with open(path, "rb") as file:
        _check_member(file, os.fstat(file.fileno()).st_size)


def check_npz(path: str | os.PathLike[str]) -> None:
    """Refuse a .npz file with a member that is not the array that it declares, or that unpacks to far too much.

    Raises:
        ValueError, OSError, zipfile.BadZipFile: what is wrong with it.
    """
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        found = packed_otherwise(infos) or too_much(
            sum(info.file_size for info in infos), os.path.getsize(path)
        )
        if found is not None:
            raise ValueError(found)
        if len({info.filename for info in infos}) != len(infos):
            raise ValueError("must hold every array once, got a duplicate")
        for info in infos:
            with archive.open(info) as member:
                _check_member(member, info.file_size)  # type: ignore[arg-type]


def check_matrix_market(path: str | os.PathLike[str]) -> None:
    """Refuse a MatrixMarket file that declares more entries than its bytes can hold; raises ValueError."""
    with open(path, "rb") as file:
        banner = _BANNER.match(file.readline(1024))
        if banner is None:
            raise ValueError("must begin with its kind of matrix, got something else")
        line = b"%"
        while line.startswith(b"%") or (line and not line.strip()):
            line = file.readline(1 << 16)
        sizes = [int(part) for part in line.split()]
    kind = banner[1].lower()
    if len(sizes) != (3 if kind == b"coordinate" else 2) or not all(0 <= size < 2**62 for size in sizes):
        raise ValueError("must state its sizes in one line, got something else")
    if 0 in sizes[:2]:  # by which SciPy's reader divides
        raise ValueError(f"must have at least one row and one column, got {sizes[0]} x {sizes[1]}")
    entries = sizes[2] if kind == b"coordinate" else prod(sizes) // 2  # a symmetric one holds half
    if entries * _LEAST_LINE[kind] > os.path.getsize(path):
        raise ValueError(f"must hold the {entries} entries that it declares, got fewer bytes")
    if not _NUMBERS.fullmatch(
        Path(path).read_bytes().partition(line)[2]
    ):  # on other text SciPy's reader crashes
        raise ValueError("must hold numbers alone after its sizes, got something else")
    check_length(path, max(sizes[:2]))


def check_length(path: str | os.PathLike[str], length: int) -> None:
    """Refuse an axis that is too long for a file of this size; raises ValueError."""
    found = too_much(8 * length, Path(path).stat().st_size)
    if found is not None:
        raise ValueError(found)


def _check_member(file: BinaryIO, size: int) -> None:
    """Compare the header of an array with the bytes that there are."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"must hold arrays of version 1 or 2, got {version[0]}.{version[1]}")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject:
        raise ValueError("must hold numbers and text, got objects")
    if file.tell() + prod(shape) * dtype.itemsize != size:
        raise ValueError(f"must hold what it declares, got {size} bytes for shape {shape} of {dtype}")
