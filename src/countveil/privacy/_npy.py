"""Little-endian 64-bit integer arrays as .npy members (version 1.0), with the standard library alone.

Reading is strict: a member must begin with exactly the header that its declared shape would be written with.
"""

import sys
from array import array
from collections.abc import Iterable
from importlib import import_module
from math import prod
from typing import Any

_MAGIC = b"\x93NUMPY\x01\x00"


def optional(name: str) -> Any | None:
    """The module of that name, or None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


def header(shape: tuple[int, ...]) -> bytes:
    """The .npy header of a C-ordered '<i8' array of this shape, padded to a multiple of 64 bytes."""
    text = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape!r}, }}"
    padding = -(len(_MAGIC) + 2 + len(text) + 1) % 64
    body = (text + " " * padding + "\n").encode("ascii")
    return _MAGIC + len(body).to_bytes(2, "little") + body


def size(shape: tuple[int, ...]) -> int:
    """The size in bytes of a member of this shape."""
    return len(header(shape)) + 8 * prod(shape)


def encode(values: Any, shape: tuple[int, ...]) -> bytes:
    """A NumPy array or a flat list of integers, as a member of this shape."""
    if hasattr(values, "astype"):
        return header(shape) + values.astype("<i8").tobytes()
    packed = array("q", values)
    if sys.byteorder == "big":
        packed.byteswap()
    return header(shape) + packed.tobytes()


def decode(member: bytes, shape: tuple[int, ...]) -> Any:
    """The flat values of a member: a NumPy array where NumPy is installed, else a list.

    Raises ValueError if the member is not exactly what an array of this shape is written as.
    """
    start = header(shape)
    if not member.startswith(start) or len(member) != size(shape):
        raise ValueError(f"array must hold 64-bit integers of shape {shape}, got another header or size")
    numpy = optional("numpy")
    if numpy is not None:
        return numpy.frombuffer(member, dtype="<i8", offset=len(start)).astype(numpy.int64)
    packed = array("q")
    packed.frombytes(member[len(start) :])
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tolist()


def nested(flat: Iterable[int], shape: tuple[int, ...]) -> list[Any]:
    """Flat values as nested lists of this shape, which has at least one axis and no empty one."""
    values: list[Any] = list(flat)
    for length in reversed(shape[1:]):
        values = [values[i : i + length] for i in range(0, len(values), length)]
    return values
