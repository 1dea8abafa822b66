"""HDF5 files that others wrote: whether they hold their own data, as much as they say, and nothing else.

HDF5 can fetch data from other files (external storage, external links, virtual datasets), run filters that are loaded
by name, and declare arrays that were never written. Nothing of this is needed, and all of it is refused before a value
is read. h5py is all that is imported.
"""

import os
import zlib
from collections.abc import Iterator
from math import prod
from typing import BinaryIO

import h5py
import numpy as np

from countveil.privacy._sizes import too_much

MOST_OBJECTS, MOST_ATTRIBUTES, MOST_AXES, DEEPEST = 1000, 100, 32, 4
NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
STRUCTURAL = frozenset(
    {
        "CLASS",
        "NAME",
        "DIMENSION_LIST",
        "REFERENCE_LIST",
        "_Netcdf4Dimid",
        "_Netcdf4Coordinates",
        "_FillValue",
    }
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
            raise StructureError(
                f"must hold at most {MOST_OBJECTS} arrays in groups {DEEPEST} deep, got more"
            )
        self._check_attributes(group, path)
        for raw in group:
            name = f"{path}/{raw.decode('utf-8', 'backslashreplace')}".removeprefix("/")
            if group.links.get_info(raw).type != h5py.h5l.TYPE_HARD:
                raise StructureError(f"must hold all its data itself, got a link to elsewhere at {name}")
            found = h5py.h5o.open(group, raw)
            address = h5py.h5o.get_info(found).addr
            if address in self._addresses or len(self._addresses) >= MOST_OBJECTS:
                raise StructureError(
                    f"must hold up to {MOST_OBJECTS} arrays once each, got {name} again or more"
                )
            self._addresses.add(address)
            if isinstance(found, h5py.h5g.GroupID):
                self._walk(found, name, depth + 1)
            elif isinstance(found, h5py.h5d.DatasetID):
                self._check_attributes(found, name)
                self._check_dataset(found, name)
            else:
                raise StructureError(f"must hold groups and arrays alone, got a type of its own at {name}")

    def _check_attributes(self, owner: h5py.h5g.GroupID | h5py.h5d.DatasetID, path: str) -> None:
        number = h5py.h5a.get_num_attrs(owner)
        if number > MOST_ATTRIBUTES:
            raise StructureError(
                f"must have at most {MOST_ATTRIBUTES} attributes at {path or '/'}, got {number}"
            )
        of_array = isinstance(owner, h5py.h5d.DatasetID)
        for i in range(number):
            found = h5py.h5a.open(owner, index=i)
            name, kind = found.name.decode("utf-8", "backslashreplace"), found.get_type()
            if of_array and name not in STRUCTURAL:
                raise StructureError(
                    f"must have no attributes that change values, got {name!r:.40} at {path}"
                )
            wanted = {_OF_SCALES[name]} if of_array and name in _OF_SCALES else _PLAIN
            if name == "DIMENSION_LIST" and prod(found.shape) > MOST_AXES:
                raise StructureError(f"must have at most {MOST_AXES} axes, got more at {path}")
            if kind.get_class() not in wanted or found.get_storage_size() > self._size:
                raise StructureError(
                    f"must have attributes of numbers and text, got {name!r:.40} at {path or '/'}"
                )
            if kind.get_class() == h5py.h5t.STRING:
                if prod(found.shape) > 1:
                    raise StructureError(
                        f"must have one text an attribute, got {name!r:.40} at {path or '/'}"
                    )
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
            raise StructureError(f"must be compressed by deflate or not at all, got another filter at {path}")
        if kind.get_class() not in _PLAIN:
            raise StructureError(f"must hold numbers and text, got another type at {path}")
        space = found.get_space()
        if space.get_simple_extent_type() == h5py.h5s.NULL or space.get_simple_extent_dims(True) != shape:
            raise StructureError(f"must hold arrays of fixed sizes, got another at {path}")
        stored, asked = found.get_storage_size(), prod(shape) * kind.get_size()
        dataset = h5py.Dataset(found)
        if not stored and bytes(dataset.attrs.get("NAME", b"")).startswith(NO_VARIABLE):
            return  # a dimension without values
        if stored > self._size or asked > stored * (1 if not filters else 1032):
            raise StructureError(
                f"must hold what it declares, got {stored} bytes that declare {asked} at {path}"
            )
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
            if (
                not skipped >> deflate & 1
            ):  # HDF5 leaves a chunk as it is where deflate would not make it smaller
                content = zlib.decompressobj().decompress(content, size + _CHECKSUM + 1)
            if len(content) > size + _CHECKSUM:
                raise StructureError(
                    f"must hold what it declares, got a chunk that unpacks to more at {path}"
                )

    def _check_text(self, dataset: h5py.Dataset, path: str) -> None:
        """Adds up the lengths of an array of texts, which could all be one long one."""
        offset = dataset.id.get_offset()
        if offset is None or dataset.id.get_storage_size() != dataset.size * _REFERENCE_BYTES:
            raise StructureError(f"must hold text in one piece, got another layout at {path}")
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
                        raise StructureError(f"must have dimensions of its own, got another at {path}")


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
