"""Little-endian integer arrays of 16, 32 or 64 bits as .npy members (version 1.0), with the standard library alone.

Each is written in the fewest bytes that hold all its values. Reading is strict: a member must begin with
exactly the header that its declared shape would be written with, in one of the three types. Real numbers, which only
some members may hold, are of 64 bits.
"""

import math
import sys
from array import array
from collections.abc import Iterable
from importlib import import_module
from math import prod
from typing import Any

WIDTHS = (2, 4, 8)
_CODES = {2: "h", 4: "i", 8: "q"}
_MAGIC = b"\x93NUMPY\x01\x00"


def optional(name: str) -> Any | None:
    """The module of that name, or None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


def width(low: int, high: int) -> int:
    """The fewest bytes, of ``WIDTHS``, for whole numbers from ``low`` to ``high``."""
    return next(n for n in WIDTHS if -(1 << 8 * n - 1) <= low and high < 1 << 8 * n - 1)


def narrowed(values: Any) -> Any:
    """Whole numbers in the narrowest type of 16, 32 or 64 bits that holds them; not copied if they are."""
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    return values.astype(f"i{width(low, high)}", copy=False)


def header(shape: tuple[int, ...], n_bytes: int = 8, kind: str = "i") -> bytes:
    """The .npy header of a C-ordered array of this shape, '<i' of n bytes, padded to a multiple of 64 bytes."""
    text = f"{{'descr': '<{kind}{n_bytes}', 'fortran_order': False, 'shape': {shape!r}, }}"
    padding = -(len(_MAGIC) + 2 + len(text) + 1) % 64
    body = (text + " " * padding + "\n").encode("ascii")
    return _MAGIC + len(body).to_bytes(2, "little") + body


def size(shape: tuple[int, ...], n_bytes: int = 8) -> int:
    """The size in bytes of a member of this shape."""
    return len(header(shape, n_bytes)) + n_bytes * prod(shape)


def encode(values: Any, shape: tuple[int, ...], n_bytes: int | None = None) -> bytes:
    """A NumPy array or a flat list of integers, as a member of this shape; by default in the narrowest type."""
    if hasattr(values, "astype"):
        held = narrowed(values)
        n_bytes = n_bytes or held.dtype.itemsize
        return header(shape, n_bytes) + held.astype(f"<i{n_bytes}", copy=False).tobytes()
    n_bytes = n_bytes or width(min(values, default=0), max(values, default=0))
    packed = array(_CODES[n_bytes], values)
    if sys.byteorder == "big":
        packed.byteswap()
    return header(shape, n_bytes) + packed.tobytes()


def encode_real(values: Any, shape: tuple[int, ...]) -> bytes:
    """A NumPy array or a flat list of real numbers as a member of this shape; every NaN has the same bits."""
    if hasattr(values, "astype"):
        held = values.astype("<f8")
        held[held != held] = math.nan
        return header(shape, kind="f") + held.tobytes()
    packed = array("d", (value if value == value else math.nan for value in values))
    if sys.byteorder == "big":
        packed.byteswap()
    return header(shape, kind="f") + packed.tobytes()


def is_real(member: bytes, shape: tuple[int, ...]) -> bool:
    """Whether a member begins as real numbers of this shape do."""
    return member.startswith(header(shape, kind="f"))


def decode_real(member: bytes, shape: tuple[int, ...]) -> Any:
    """The flat real numbers of a member that ``is_real`` and has the right size: an array, or a list without NumPy."""
    start = len(header(shape, kind="f"))
    numpy = optional("numpy")
    if numpy is not None:
        return numpy.frombuffer(member, dtype="<f8", offset=start).astype("f8")
    packed = array("d")
    packed.frombytes(member[start:])
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tolist()


def decode(member: bytes, shape: tuple[int, ...]) -> Any:
    """The flat values of a member: a NumPy array of its own type where NumPy is installed, else a list.

    Raises ValueError if the member is not written exactly as an array of this shape is.
    """
    n_bytes = next((n for n in WIDTHS if member.startswith(header(shape, n))), 0)
    if not n_bytes or len(member) != size(shape, n_bytes):
        bits = " or ".join(str(8 * n) for n in WIDTHS)
        got = f"{len(member)} bytes that begin with {member[10:128].rstrip()!r:.100}"
        raise ValueError(f"array must hold integers of {bits} bits and shape {shape}, got {got}")
    start = len(header(shape, n_bytes))
    numpy = optional("numpy")
    if numpy is not None:
        return numpy.frombuffer(member, dtype=f"<i{n_bytes}", offset=start).astype(f"i{n_bytes}")
    packed = array(_CODES[n_bytes])
    packed.frombytes(member[start:])
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tolist()


def nested(flat: Iterable[Any], shape: tuple[int, ...]) -> list[Any]:
    """Flat values as nested lists of this shape, which has at least one axis and no empty one."""
    values: list[Any] = list(flat)
    for length in reversed(shape[1:]):
        values = [values[i : i + length] for i in range(0, len(values), length)]
    return values
