"""Ways to break a file: its bytes, the values of its JSON, the members of its zip, the parts of its HDF5, its cells."""

import io
import json
import os
import random
import struct
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from countveil.privacy import _archive, _format

Mutation = Callable[[bytes, random.Random], bytes]

NASTY_TEXT = (
    "", "\x00", "\x1b]0;x\x07", "\u202e", "\ud800", "=1+1", "a" * 5000, "9" * 5000, "1/0", "0", "-1", "1e999", "1/3",
    "9" * 1200, "../../etc/passwd", "[bold]", "$x^", "two-sided geometric", "truncated", "\n", "NaN",
)  # fmt: skip
NASTY: tuple[Any, ...] = (
    *NASTY_TEXT, None, True, False, 0, 1, -1, 2**31, 2**53, 2**62, 2**63, 2**64, 10**30, -(2**63), 10**400, 0.5, -0.0,
    [], {}, [[]], [{}], {"": None}, [None], [1] * 1000, {"format": 1}, list(range(40)),
)  # fmt: skip


def resealed(content: bytes) -> bytes:
    """The content with the seal that it should have at its end."""
    return content + _archive.seal(io.BytesIO(content), len(content))


def body(content: bytes) -> bytes:
    """The content without its seal."""
    return content[: -_archive.SEAL_LENGTH]


def flipped(content: bytes, rng: random.Random) -> bytes:
    """Some bytes changed: a bit, a byte, or a run of them."""
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        if not found:
            break
        place = rng.randrange(len(found))
        kind = rng.randrange(5)
        if kind == 0:
            found[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            found[place] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        elif kind == 2:
            length = rng.choice((2, 4, 8))
            number = rng.choice((0, 1, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1))
            found[place : place + length] = struct.pack("<Q", number)[:length]
        elif kind == 3:
            found[place : place + rng.randrange(9)] = rng.randbytes(rng.randrange(9))
        else:
            other = rng.randrange(len(found))
            length = rng.randrange(1, 65)
            found[place : place + length] = found[other : other + length]
    return bytes(found)


def cut(content: bytes, rng: random.Random) -> bytes:
    """A part of it, or more than it."""
    start, end = sorted((rng.randrange(len(content) + 1), rng.randrange(len(content) + 1)))
    return rng.choice((content[:start], content[start:], content[:start] + content[end:], content + content[:start]))


def mutated_value(value: Any, rng: random.Random) -> Any:
    """JSON with one value replaced, removed, added or doubled, somewhere in it."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(sorted(value))
        kind = rng.randrange(8)
        if kind == 0:
            return {name: each for name, each in value.items() if name != key}
        if kind == 1:
            return value | {rng.choice(NASTY_TEXT): rng.choice(NASTY)}
        return value | {key: mutated_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        kind = rng.randrange(6)
        if kind == 0:
            return value[:place] + value[place + 1 :]
        if kind == 1:
            return [*value, value[place]]
        return [*value[:place], mutated_value(value[place], rng), *value[place + 1 :]]
    return rng.choice(NASTY)


def mutated_json(content: bytes, rng: random.Random) -> bytes:
    """The JSON of a file with something in it changed, in another spelling now and then."""
    value = json.loads(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        value = mutated_value(value, rng)
    if rng.random() < 0.05:
        return rng.choice((b"[" * 100_000, b'{"a":' * 50_000, b"1" * 5000, b"NaN", b"\xff\xfe{}", b'{"a":1,"a":1}'))
    text = json.dumps(value, indent=rng.choice((None, 1)), ensure_ascii=True)
    return text.encode("ascii") if rng.random() < 0.1 else canonical(value)


def canonical(value: Any) -> bytes:
    """JSON in the one spelling that releases have; in another where there is none."""
    try:
        return _format.canonical(value)
    except ValueError:
        return json.dumps(value).encode("ascii")


def mutated_zip(content: bytes, rng: random.Random) -> bytes:
    """A zip with a member changed, left out, added, doubled, renamed, or packed in another way."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    place = rng.randrange(len(members))
    name, inner = members[place]
    kind = rng.randrange(8)
    if kind <= 3:
        change: Mutation = mutated_json if name.endswith(".json") and rng.random() < 0.8 else flipped
        members[place] = (name, change(inner, rng))
    elif kind == 4:
        members[place] = (name, cut(inner, rng))
    elif kind == 5:
        del members[place]
    elif kind == 6:
        members.append((rng.choice((name, "../out.npy", "/etc/out", "a" * 300, "")), inner))
    else:
        members[place] = (name, inner + bytes(rng.choice((1, 1000, 2_000_000))))
    made = io.BytesIO()
    method = rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(made, "w", method) as archive:
        for each, inside in members:
            archive.writestr(zipfile.ZipInfo(each), inside, method)
        if content.startswith(b"PK") and rng.random() < 0.8:
            archive.comment = b" " * _archive.SEAL_LENGTH
    return made.getvalue()


def mutated_release(content: bytes, rng: random.Random) -> bytes:
    """A release whose zip was changed, with a seal that holds."""
    found = mutated_zip(content, rng) if rng.random() < 0.8 else flipped(content, rng)
    return resealed(body(found))


def mutated_fit_bytes(content: bytes, rng: random.Random) -> bytes:
    """A fit with changed bytes, and a seal that holds."""
    return resealed(flipped(body(content), rng))


def mutated_fit(content: bytes, rng: random.Random) -> bytes:
    """A fit with an attribute or an array changed by HDF5's own means, and a seal that holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.nc"
        path.write_bytes(body(content))
        with h5py.File(path, "a") as file:
            for _ in range(rng.choice((1, 1, 1, 2))):
                _change_hdf5(file, rng)
        return resealed(path.read_bytes())


def _change_hdf5(file: h5py.File, rng: random.Random) -> None:
    arrays: list[str] = []
    file.visititems(lambda name, found: arrays.append(name) if isinstance(found, h5py.Dataset) else None)
    groups = [name for name, found in file.items() if isinstance(found, h5py.Group)]
    if not arrays or not groups:
        return
    path, group, kind = rng.choice(arrays), rng.choice(groups), rng.randrange(10)
    if kind == 0:
        del file[rng.choice((path, group))]
    elif kind == 1:
        _overwrite(file, path, rng)
    elif kind <= 4:
        _change_fact(file, rng)
    elif kind == 5:
        name = rng.choice(("scale_factor", "units", "_FillValue", "dtype", "coordinates", "NAME", "CLASS", "other"))
        file[path].attrs[name] = rng.choice((1, 0.0, "x", "days since 2000-01-01", "a b c", "bool", b"\xff"))
    elif kind == 6:
        shape, data = (file[path].shape, rng.choice((np.float32, np.int8, "S4", h5py.string_dtype(), np.complex64)))
        del file[path]
        file.create_dataset(path, rng.choice((shape, (), (1,), (0,), shape[::-1], (10**9,))), data)
    elif kind == 7:
        links = (h5py.SoftLink("/posterior"), h5py.ExternalLink("/etc/passwd", "/"), h5py.SoftLink("nowhere"))
        file[f"{group}/more"] = rng.choice(links)
    elif kind == 8:
        file.create_dataset(f"{group}/more", (4,), "S8", external=[("/etc/passwd", 0, 32)])
    else:
        file.move(path, f"{rng.choice(groups)}/{rng.choice(('more', 'theta', 'phi', 'x' * 300))}{rng.randrange(9)}")


def _overwrite(file: h5py.File, path: str, rng: random.Random) -> None:
    found = file[path]
    if found.dtype.kind == "f" and found.size:
        place = tuple(rng.randrange(length) for length in found.shape)
        found[place] = rng.choice((np.nan, np.inf, -1.0, 0.0, 1e300, 1e-300))
        if rng.random() < 0.2:
            found[...] = rng.choice((0.0, 1e30))
    elif found.dtype.kind == "O" and found.size:
        found[(0,) * found.ndim] = rng.choice(NASTY_TEXT[2:]).encode("utf-8", "surrogatepass").rstrip(b"\0")
    elif found.dtype.kind in "iu" and found.size:
        found[(0,) * found.ndim] = rng.choice((0, -1, 2**62))


def _change_fact(file: h5py.File, rng: random.Random) -> None:
    name = rng.choice(sorted(file.attrs))
    value = file.attrs[name]
    if isinstance(value, str) and value.startswith("{") and rng.random() < 0.9:
        changed = canonical(mutated_value(json.loads(value), rng)).decode("ascii")
    else:
        changed = rng.choice((*NASTY_TEXT[4:], 0, -1, 1.5, 2**62, np.array([1, 2, 3])))
    del file.attrs[name]
    if rng.random() < 0.9:
        try:
            file.attrs[name] = changed
        except (OSError, ValueError, UnicodeEncodeError):  # more than HDF5 takes
            file.attrs[name] = "x"


def mutated_table(content: bytes, rng: random.Random) -> bytes:
    """Text of lines and cells with a cell or a line changed."""
    lines = content.split(b"\n")
    place = rng.randrange(len(lines))
    kind = rng.randrange(6)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines.insert(place, rng.choice((b"", b",", b"x,y", b"1 1 1", b'"', b"%", b"\xff", b"1" * 5000)))
    elif kind == 2:
        lines[place] = lines[place].replace(rng.choice((b",", b" ")), rng.choice((b";", b"\t", b",,", b"")))
    else:
        separator = b"," if b"," in lines[place] else b" "
        cells = lines[place].split(separator)
        nasty = rng.choice((*NASTY_TEXT, "99999999999999999999", "1.5", "nan", "inf", "١", "0x10", "1_000"))
        cells[rng.randrange(len(cells))] = nasty.encode("utf-8", "surrogatepass")
        lines[place] = separator.join(cells)
    return b"\n".join(lines)


def unpacked(change: Mutation) -> Mutation:
    """A change of what a gzip file holds."""
    import gzip

    return lambda content, rng: gzip.compress(change(gzip.decompress(content), rng), 1)


def write(content: bytes, path: str | os.PathLike[str]) -> None:
    """Put the bytes into a file, in place."""
    with open(path, "wb") as file:
        file.write(content)
