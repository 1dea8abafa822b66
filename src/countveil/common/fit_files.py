"""Files of fits: their seals, and what is checked before anything in them is used.

A fit is an HDF5 file (netCDF) with a seal at its end, which HDF5 leaves unread. It may come from anybody. What is
checked here needs no more than h5py, so that a hostile file is refused before the models are imported. The HDF5
library itself can hang, crash or fill the memory on a file whose inside was broken on purpose; so a process of its own
reads everything once.
"""

import json
import math
import os
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import h5py
import numpy as np

from countveil.privacy import _archive
from countveil.privacy._archive import SMALL, too_much

# The Python process of its own that reads a fit from somebody else first, with a limit on its time and its
# memory.
#
# It gets the file as its standard input, already open: no other file can take its place.

LEAST_SECONDS, BYTES_PER_SECOND = 30.0, 10e6
"""How long a file may take to read: this, and as long as a slow disk takes."""
ROOM = 1 << 30
"""Bytes of memory that reading may take besides twice the file's; arrays are read some megabytes at a time."""

REMADE = "has to be made again from its release and seed"
"""What to do about files of earlier versions."""

_READY = b"ready\n"
_SAID = 200
_ALONE = "-I", "-S", "-X", "utf8"
"""Python without its variables and without ``site``, which would run any ``sitecustomize.py`` that it finds."""
_BEGIN = """
import json, runpy, sys
known = json.loads(sys.argv.pop(1))
sys.path[:] = known + [each for each in sys.path if each not in known]
runpy.run_module("countveil.common.fit_files", run_name="__main__", alter_sys=True)
"""


def ask(descriptor: int, path: str | os.PathLike[str]) -> dict[str, Any]:
    """What ``answer`` says of an open file: {"estimator": its model}, or {"rule": what it breaks}.

    ``path`` is what errors call the file. Raises OSError where the process does not start.
    """
    size = os.fstat(descriptor).st_size
    seconds, room = LEAST_SECONDS + size / BYTES_PER_SECOND, ROOM + 2 * size
    command = [sys.executable, *_ALONE, "-c", _BEGIN, json.dumps(folders()), str(room)]
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


def answer(room: int) -> None:
    """Prints that it is there, and then the model of the fit in standard input, or the rule that it breaks, as JSON."""
    limit_memory(room)
    sys.stdout.buffer.write(_READY)
    sys.stdout.flush()
    try:
        with open(0, "rb", closefd=False) as source:
            found = {"estimator": inspect_open(source)}
    except MemoryError:
        found = {"rule": f"must be readable in {room} bytes of memory, got one that takes more"}
    except Exception as error:  # what a file from anybody makes libraries raise has no end
        found = {"rule": rule_of(error)}
    print(json.dumps(found))


def rule_of(error: Exception) -> str:
    """What a file breaks, in one line, from whatever was raised about it."""
    said = " ".join(str(error).split())[:300]
    return said if said.startswith("must ") else f"must be readable, got {said}"


# HDF5 files that others wrote: whether they hold their own data, as much as they say, and nothing else.
#
# HDF5 can fetch data from other files (external storage, external links, virtual datasets), run filters that
# are loaded by name, and declare arrays that were never written. Nothing of this is needed, and all of it is
# refused before a value is read. h5py is all that is imported.

MOST_OBJECTS, MOST_ATTRIBUTES, MOST_AXES, DEEPEST = 1000, 100, 32, 4
NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
STRUCTURAL = frozenset(
    {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_FillValue"}
    | {"coordinates", "dtype"}
)
"""Attributes of datasets that netCDF and xarray write; others, such as scale_factor, would change the values."""

_PLAIN = {h5py.h5t.INTEGER, h5py.h5t.FLOAT, h5py.h5t.STRING}
_OF_SCALES = {"DIMENSION_LIST": h5py.h5t.VLEN, "REFERENCE_LIST": h5py.h5t.COMPOUND}
_FILTERS = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
_REFERENCE_BYTES = 16  # of a text of any length: its length (4 bytes), and where it is
_PIECE = 1 << 22
_CHECKSUM = 4  # bytes that a chunk may have besides its values


class StructureError(ValueError):
    """A file that reaches outside itself, or is not built as arrays and attributes alone; its text is the rule."""


class Checked:
    """A file whose structure was checked: ``datasets`` by path, as "posterior/theta", and the root's attributes.

    ``source`` is the open file that ``file`` reads, and ``copies`` says how often the values are held in memory as they
    are read. Raises StructureError.
    """

    def __init__(self, file: h5py.File, source: BinaryIO, copies: int = 1) -> None:
        self._file, self._source = file, source
        self._size = os.fstat(source.fileno()).st_size
        self._addresses: set[int] = set()
        self._asked = self._text = 0
        self.datasets: dict[str, h5py.Dataset] = {}
        self._walk(file.id, "", 0)
        self._check_scales()
        found = too_much(self._asked + self._text, self._size, copies)
        if found:
            raise StructureError(found)

    def facts(self) -> dict[str, object]:
        """The attributes of the root: text and numbers."""
        return {name: _plain(self._file.attrs[name]) for name in self._file.attrs}

    def _walk(self, group: h5py.h5g.GroupID, path: str, depth: int) -> None:
        if depth > DEEPEST or group.get_num_objs() > MOST_OBJECTS:
            got = f"{group.get_num_objs()} at depth {depth} in {path or '/'!r:.60}"
            raise StructureError(f"must hold at most {MOST_OBJECTS} arrays in groups at most {DEEPEST} deep, got {got}")
        self._check_attributes(group, path)
        for raw in group:
            name = f"{path}/{raw.decode('utf-8', 'backslashreplace')}".removeprefix("/")
            if group.links.get_info(raw).type != h5py.h5l.TYPE_HARD:
                raise StructureError(f"must hold all its data itself, got a link to elsewhere at {name}")
            found = h5py.h5o.open(group, raw)
            address = h5py.h5o.get_info(found).addr
            if address in self._addresses or len(self._addresses) >= MOST_OBJECTS:
                raise StructureError(f"must hold up to {MOST_OBJECTS} arrays once each, got {name} again or more")
            self._addresses.add(address)
            if isinstance(found, h5py.h5g.GroupID):
                self._walk(found, name, depth + 1)
            elif isinstance(found, h5py.h5d.DatasetID):
                self._check_attributes(found, name)
                self._check_dataset(found, name)
            else:
                raise StructureError(f"must hold only groups and arrays, got a named type at {name}")

    def _check_attributes(self, owner: h5py.h5g.GroupID | h5py.h5d.DatasetID, path: str) -> None:
        number = h5py.h5a.get_num_attrs(owner)
        if number > MOST_ATTRIBUTES:
            raise StructureError(f"must have at most {MOST_ATTRIBUTES} attributes at {path or '/'}, got {number}")
        of_array = isinstance(owner, h5py.h5d.DatasetID)
        for i in range(number):
            found = h5py.h5a.open(owner, index=i)
            name, kind = found.name.decode("utf-8", "backslashreplace"), found.get_type()
            if of_array and name not in STRUCTURAL:
                raise StructureError(f"must have no attributes that change values, got {name!r:.40} at {path}")
            wanted = {_OF_SCALES[name]} if of_array and name in _OF_SCALES else _PLAIN
            if name == "DIMENSION_LIST" and prod(found.shape) > MOST_AXES:
                raise StructureError(f"must have at most {MOST_AXES} axes, got more at {path}")
            if kind.get_class() not in wanted or found.get_storage_size() > self._size:
                raise StructureError(f"must have attributes of numbers and text, got {name!r:.40} at {path or '/'}")
            if kind.get_class() == h5py.h5t.STRING:
                if prod(found.shape) > 1:
                    raise StructureError(f"must have one text an attribute, got {name!r:.40} at {path or '/'}")
                value = h5py.AttributeManager(_owner(owner))[name] if kind.is_variable_str() else b""
                self._add_text(len(value) if isinstance(value, str | bytes) else 0)

    def _check_dataset(self, found: h5py.h5d.DatasetID, path: str) -> None:
        plan, kind, shape = found.get_create_plist(), found.get_type(), found.shape
        if plan.get_external_count():
            raise StructureError(f"must hold all its data itself, got external storage at {path}")
        if plan.get_layout() not in (h5py.h5d.CONTIGUOUS, h5py.h5d.COMPACT, h5py.h5d.CHUNKED):
            raise StructureError(f"must hold all its data itself, got a virtual array at {path}")
        filters = [plan.get_filter(i)[0] for i in range(plan.get_nfilters())]
        if not set(filters) <= _FILTERS or len(set(filters)) < len(filters):
            raise StructureError(f"must be compressed by deflate or not at all, got HDF5 filters {filters} at {path}")
        if kind.get_class() not in _PLAIN:
            raise StructureError(f"must hold numbers and text, got HDF5 type class {kind.get_class()} at {path}")
        space = found.get_space()
        if space.get_simple_extent_type() == h5py.h5s.NULL or space.get_simple_extent_dims(True) != shape:
            empty = space.get_simple_extent_type() == h5py.h5s.NULL
            got = "no array" if empty else f"{shape} that may grow to {space.get_simple_extent_dims(True)}"
            raise StructureError(f"must hold arrays of fixed sizes, got {got} at {path}")
        stored, asked = found.get_storage_size(), prod(shape) * kind.get_size()
        dataset = h5py.Dataset(found)
        if not stored and bytes(dataset.attrs.get("NAME", b"")).startswith(NO_VARIABLE):
            return  # a dimension without values
        if stored > self._size or asked > stored * (1 if not filters else 1032):
            raise StructureError(f"must hold what it declares, got {stored} bytes that declare {asked} at {path}")
        if h5py.h5z.FILTER_DEFLATE in filters:
            self._check_chunks(found, filters.index(h5py.h5z.FILTER_DEFLATE), path)
        self._asked += asked
        if kind.get_class() == h5py.h5t.STRING and kind.is_variable_str() and asked:
            self._check_text(dataset, path)
        self.datasets[path] = dataset

    def _check_chunks(self, found: h5py.h5d.DatasetID, deflate: int, path: str) -> None:
        """Refuses a chunk that unpacks to more than a chunk: HDF5 would unpack all of it."""
        size = prod(found.get_create_plist().get_chunk()) * found.get_type().get_size()
        for i in range(found.get_num_chunks()):
            skipped, content = found.read_direct_chunk(found.get_chunk_info(i).chunk_offset)
            if not skipped >> deflate & 1:  # HDF5 leaves a chunk as it is where deflate would not make it smaller
                content = zlib.decompressobj().decompress(content, size + _CHECKSUM + 1)
            if len(content) > size + _CHECKSUM:
                raise StructureError(f"must hold what it declares, got a chunk that unpacks to more at {path}")

    def _check_text(self, dataset: h5py.Dataset, path: str) -> None:
        """Adds up the lengths of an array of texts, which could all be one long one."""
        offset = dataset.id.get_offset()
        if offset is None or dataset.id.get_storage_size() != dataset.size * _REFERENCE_BYTES:
            stored = "text in chunks" if offset is None else f"{dataset.id.get_storage_size()} bytes"
            raise StructureError(f"must hold text in one piece, got {stored} at {path}")
        self._source.seek(offset)
        left = dataset.size
        while left:
            content = self._source.read(min(left, _PIECE) * _REFERENCE_BYTES)
            lengths = np.frombuffer(content, dtype="<u4")[:: _REFERENCE_BYTES // 4]
            if not lengths.size:
                raise StructureError(f"must hold what it declares, got less at {path}")
            self._add_text(int(lengths.sum(dtype=np.int64)))
            left -= lengths.size

    def _add_text(self, length: int) -> None:
        self._text += length
        if self._text > self._size:
            raise StructureError("must hold every text once, got more text than the file has bytes")

    def _check_scales(self) -> None:
        """Refuses dimensions that are not arrays of this file's own tree."""
        for path, dataset in self.datasets.items():
            for references in dataset.attrs.get("DIMENSION_LIST", ()):
                for reference in references:
                    found = h5py.h5r.dereference(reference, self._file.id)
                    if h5py.h5o.get_info(found).addr not in self._addresses:
                        raise StructureError(
                            f"must have its own arrays as dimensions, got one from elsewhere at {path}"
                        )


def pieces(dataset: h5py.Dataset) -> Iterator[np.ndarray]:
    """The values of an array, some megabytes at a time."""
    shape, size = dataset.shape, dataset.dtype.itemsize
    if not prod(shape):
        return
    axis = 0
    while axis < len(shape) and prod(shape[axis + 1 :]) * size > _PIECE:
        axis += 1
    if axis >= len(shape):
        yield np.asarray(dataset[()])
        return
    step = max(1, _PIECE // (prod(shape[axis + 1 :]) * size))
    for place in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], step):
            yield np.asarray(dataset[(*place, slice(start, start + step))])


def _owner(found: h5py.h5g.GroupID | h5py.h5d.DatasetID) -> h5py.HLObject:
    return h5py.Dataset(found) if isinstance(found, h5py.h5d.DatasetID) else h5py.Group(found)


def _plain(value: object) -> object:
    """An attribute as Python has it; an array of one number as that number."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value.item() if isinstance(value, np.generic) else value


FACTS: Mapping[str, type | tuple[type, ...]] = {
    "library": str,
    "estimator": str,
    "parameters": str,
    "method": str,
    "seed": (int, str),
    "interrupted": int,
    "seconds": float,
    "model": str,
    "observations": str,
    "simulated_noise": int,
}
"""What the root states of every fit, and its type; a seed above 2^63 is text."""
GROUPS = ("posterior", "sample_stats", "constant_data")

KINDS = ("private", "exact", "naive")
LEAST_RATE = 1e-30  # and shape, of a prior: new rows begin at shape / rate, which must be finite
"""What a fit may say of the observations that it is of."""

_COPIES = 2
"""How often a fit's draws are held by its readers: as they are, and as summaries of them are made."""
_LONGEST_SEED, _LONGEST_FACT, _LONGEST_LINE = 40, 200, 2000


class FitFileError(ValueError):
    """A file is not a fit that countveil saved, or was changed since; names the file, the rule and what was found."""

    def __init__(self, path: str | os.PathLike[str], rule: str) -> None:
        super().__init__(f"{os.fspath(path)} is not a fit saved by countveil: it {rule}")
        self.rule = rule


def seal(path: str | os.PathLike[str]) -> None:
    """Seals a file that was just written."""
    with open(path, "rb+") as file:
        file.write(_archive.seal(file, file.seek(0, os.SEEK_END)))


def check(path: str | os.PathLike[str]) -> str:
    """Refuses a file that is not a whole fit; returns the name of the model that it is of. Raises as ``opened``."""
    with opened(path) as (kind, _):
        return kind


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[tuple[str, BinaryIO]]:
    """A fit that was checked: the name of the model that it is of, and its file, to be read within the context.

    The file is opened once. Another one that takes its name is not read, and after the context its bytes must be those
    that were checked.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a broken seal, data outside the file, arrays larger than what is stored or than memory, missing
            arrays, factors that are not numbers of at least zero, or bytes that changed meanwhile.
        OSError: the process that checks it does not start.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise FileNotFoundError(f"no fit at {path}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FitFileError(path, "must be a regular file, got a directory, a pipe or a device")
        seal_checked = _sealed(descriptor, path)
        kind = _inspected(descriptor, path)
        with _reading(descriptor) as file:
            yield kind, file
        with faults(path):
            if _sealed(descriptor, path) != seal_checked:
                _refuse("must stay as it was while it is read, got a change: load it again")
    finally:
        os.close(descriptor)


def _reading(descriptor: int) -> BinaryIO:
    """An open file from its beginning; the child that reads the same one moves the place in it."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    return open(descriptor, "rb", closefd=False)


def _sealed(descriptor: int, path: str | os.PathLike[str]) -> bytes:
    """The seal of an open file; refuses one that does not hold."""
    with faults(path), _reading(descriptor) as file:
        rule = _archive.broken(file, "fit")
        if rule is not None and "got none" in rule:
            rule += f"; a fit of a version without seals {REMADE}"
        if rule is not None:
            _refuse(rule)
        file.seek(0)
        if file.read(2) == b"PK":
            _refuse("must be a fit, got a release or another archive: countveil fit makes a fit of a release")
        file.seek(-_archive.SEAL_LENGTH, os.SEEK_END)
        return file.read()


def _inspected(descriptor: int, path: str | os.PathLike[str]) -> str:
    """What ``inspect`` finds in a process of its own."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    found = ask(descriptor, path)
    if "rule" in found:
        raise FitFileError(path, found["rule"])
    return str(found["estimator"])


def inspect(path: str | os.PathLike[str]) -> str:
    """Reads everything in a file whose seal holds; returns the name of the model. Raises ValueError as ``opened``."""
    with open(path, "rb") as source, faults(path):
        return inspect_open(source)


def inspect_open(source: BinaryIO) -> str:
    """``inspect`` for a file that is open; what libraries raise about it is passed on."""
    with h5py.File(source, "r") as file:
        found = Checked(file, source, _COPIES)
        facts = _facts(found.facts())
        _check_factors(found, json.loads(facts["model"]))
        for dataset in found.datasets.values():
            for _ in pieces(dataset):
                pass
    return str(facts["estimator"])


@contextmanager
def faults(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever goes wrong with the content of a file as a FitFileError in one line; no memory is no fault of it."""
    try:
        yield
    except (FitFileError, MemoryError):
        raise
    except Exception as error:  # what a file from anybody makes libraries raise has no end
        raise FitFileError(path, rule_of(error)) from error


def _refuse(rule: str) -> NoReturn:
    raise ValueError(rule)


def _facts(found: dict[str, Any]) -> dict[str, Any]:
    """What the root states, each of its type."""
    for name, kind in FACTS.items():
        if name not in found:
            _refuse(f"must state its {name}, got nothing")
        if not isinstance(found[name], kind):
            _refuse(f"must state its {name} as {kind}, got {type(found[name]).__name__}")
    if len(str(found["seed"])) > _LONGEST_SEED:
        _refuse(f"must have a seed of at most {_LONGEST_SEED} digits, got {len(str(found['seed']))}")
    if not (str(found["seed"]).isascii() and str(found["seed"]).isdecimal()):
        _refuse(f"must have a whole number of at least 0 as its seed, got {found['seed']!r}")
    if not (0.0 <= found["seconds"] < math.inf):
        _refuse(f"must have taken a finite number of seconds, got {found['seconds']}")
    for name in ("interrupted", "simulated_noise", "rounded"):
        if found.get(name, 0) not in (0, 1):
            _refuse(f"must state its {name} as 0 or 1, got {found[name]!r:.40}")
    for name in ("exact_totals", "noisy_totals"):
        known = found.get(name, 1)
        if not isinstance(known, int | np.integer) or not 1 <= known < 2**53:
            _refuse(f"must state its {name} as a whole number from 1 on, got {known!r:.40}")
    for name in ("totals_used", "promised_together"):
        said = found.get(name, "")
        if not isinstance(said, str) or len(said) > _LONGEST_LINE or not said.isprintable():
            _refuse(f"must state its {name} as a line of at most {_LONGEST_LINE} characters, got {said!r:.40}")
    source = found.get("source", "")
    if not isinstance(source, str) or len(source) > _LONGEST_FACT or not source.isprintable():
        _refuse(f"must state its source as a line of at most {_LONGEST_FACT} characters, got {source!r:.40}")
    if found["observations"] not in KINDS:
        _refuse(f"must be of observations among {list(KINDS)}, got {found['observations']!r:.40}")
    for name in ("library", "estimator", "method"):
        if len(found[name]) > _LONGEST_FACT:
            _refuse(f"must state its {name} in at most {_LONGEST_FACT} characters, got {len(found[name])}")
    for name in ("parameters", "model"):
        if len(found[name]) > SMALL or not isinstance(json.loads(found[name]), dict):
            got = f"{len(found[name])} characters" if len(found[name]) > SMALL else f"{found[name]!r:.40}"
            _refuse(f"must state its {name} as a JSON object of at most {SMALL} characters, got {got}")
    return found


def _check_factors(found: Checked, model: dict[str, Any]) -> None:
    """Refuses missing arrays, and factors of other sizes or with values that no factor has."""
    for group in GROUPS:
        if not any(path.startswith(f"{group}/") for path in found.datasets):
            _refuse(f"must hold the group {group}, got none")
    names, axes, sizes = model["spec"]["names"], model["spec"]["factor_axes"], model["sizes"]
    if not names or not all(type(size) is int and size > 0 for size in sizes.values()):
        _refuse(f"must have factors over axes of one entry or more, got factors {names!r:.60} over {sizes!r:.60}")
    for name, letters in zip(names, axes, strict=True):
        if f"optimisation/{name}_shape" in found.datasets:
            continue  # a summary instead of draws, whose sizes are checked with the model
        values = found.datasets.get(f"posterior/{name}")
        if values is None:
            _refuse(f"must hold the factor {name}, got none")
        shape, wanted = values.shape, sorted(sizes[letter] for letter in letters)
        if len(shape) < 2 or 0 in shape or wanted not in (sorted(shape[2:]), sorted(shape[1:-1])):
            _refuse(f"must hold draws of {name} over axes of sizes {wanted}, got an array of shape {shape}")
    states = [f"posterior/{name}{end}" for name in names for end in ("", "_rate", "_shape")]
    states += [f"optimisation/{name}_{part}" for name in names for part in ("mean", "shape", "rate", "size")]
    states += [f"posterior/{name}_total" for name in names]
    states += ["sample_stats/total_rate", "chains/weight"]
    states += [path for path in found.datasets if path.startswith("stream/")]
    for path in states:
        hyper = path.startswith(("posterior/", "optimisation/")) and path.endswith(("_rate", "_shape"))
        _check_values(found, path, LEAST_RATE if hyper else 0.0)
    for path, values in found.datasets.items():
        if path.startswith("constant_data/") and values.dtype.kind == "f":
            _check_values(found, path)


def _check_values(found: Checked, path: str, least: float = 0.0) -> None:
    """Refuses an array that holds anything except finite numbers of at least ``least``."""
    values = found.datasets.get(path)
    if values is None:
        return
    if values.dtype.kind != "f":
        _refuse(f"must hold floating-point numbers at {path}, got {values.dtype}")
    for piece in pieces(values):
        if not np.isfinite(piece).all() or piece.min() < least:
            bad = piece[~(np.isfinite(piece) & (piece >= least))].flat[0]
            _refuse(f"must hold finite numbers of at least {least:g} at {path}, got {bad}")


if __name__ == "__main__":
    answer(int(sys.argv[1]))
