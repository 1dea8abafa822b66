"""A release as the members of one file, and back: what is written, and every rule checked on reading."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

from countveil.privacy import _npy
from countveil.privacy._archive import Reader
from countveil.privacy.errors import ReleaseError
from countveil.privacy.level import PrivacyLevel

if TYPE_CHECKING:
    from countveil.privacy.release import Labels, Release

FORMAT = "countveil-release"
FORMAT_VERSION = 2
"""In version 1 every array had 64 bits; such files can still be read."""
MECHANISM = "two-sided geometric"
MECHANISM_VERSION = 1

WRITABLE = "Unicode text without NUL and without lone surrogates"
META = "meta.json"
_MAX_META = 1 << 28
_KEYS = {
    "format": str,
    "format_version": int,
    "mechanism": str,
    "mechanism_version": int,
    "layout": str,
    "shape": list,
    "stored": int,
    "truncated": bool,
    "simulated": bool,
    "levels": list,
    "level_per_row": bool,
    "labels": list,
    "schema_hash": str,
}
_FRACTION = re.compile(r"[1-9][0-9]{0,1299}(/[1-9][0-9]{0,1299})?", re.ASCII)
_LAYOUTS = {"dense": ("reports",), "csr": ("data", "indices", "indptr")}


def unwritable(names: tuple[str, ...]) -> int | None:
    """The place of the first label that a text file cannot hold, if there is one."""
    for place, name in enumerate(names):
        if "\0" in name or any("\ud800" <= character <= "\udfff" for character in name):
            return place
    return None


def canonical(value: Any) -> bytes:
    """JSON with sorted keys, no spaces, and ASCII alone: the same bytes for the same value, everywhere."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii")


def schema_hash(shape: tuple[int, ...], labels: "Labels") -> str:
    """SHA-256 of the canonical JSON of all axes but the rows: their sizes and their labels."""
    axes = [{"size": length, "labels": names} for length, names in zip(shape[1:], labels[1:], strict=True)]
    return hashlib.sha256(canonical({"columns": axes})).hexdigest()


def description(
    shape: tuple[int, ...],
    levels: Sequence[PrivacyLevel],
    labels: "Labels",
    *,
    stored: int | None,
    truncated: bool,
    simulated: bool,
    per_row: bool,
) -> dict[str, Any]:
    """What meta.json says; ``stored`` is the number of positive reports, or None for a dense layout."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "mechanism": MECHANISM,
        "mechanism_version": MECHANISM_VERSION,
        "layout": "dense" if stored is None else "csr",
        "shape": list(shape),
        "stored": prod(shape) if stored is None else stored,
        "truncated": truncated,
        "simulated": simulated,
        "levels": [{"epsilon": str(level.epsilon), "precision": str(level.precision)} for level in levels],
        "level_per_row": per_row,
        "labels": labels,
        "schema_hash": schema_hash(shape, labels),
    }


def members(release: "Release") -> dict[str, bytes]:
    """The members of the file, in their order."""
    sparse = hasattr(release.reports, "indptr")
    per_row = not isinstance(release.levels, PrivacyLevel)
    levels = (release.levels,) if isinstance(release.levels, PrivacyLevel) else release.levels
    known = {level: place for place, level in enumerate(dict.fromkeys(levels))}
    meta = description(
        release.shape,
        tuple(known),
        release.labels,
        stored=int(release.reports.nnz) if sparse else None,
        truncated=release.truncated,
        simulated=release.simulated,
        per_row=per_row,
    )
    content = {META: canonical(meta)}
    for name, shape in array_shapes(meta).items():
        if name == "level_of_row":
            values: Any = [known[level] for level in levels]
        else:
            values = getattr(release.reports, name) if sparse else _flat(release.reports, len(release.shape))
        content[f"{name}.npy"] = _npy.encode(values, shape)
    return content


def _flat(reports: Any, ndim: int) -> Any:
    """Nested lists as one flat list; an array as it is."""
    if isinstance(reports, list | tuple):
        for _ in range(ndim - 1):
            reports = [value for part in reports for value in part]
    return reports


def array_shapes(meta: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The arrays that belong in the file, and their shapes."""
    shape, stored = tuple(meta["shape"]), meta["stored"]
    if meta["layout"] == "dense":
        arrays: dict[str, tuple[int, ...]] = {"reports": shape}
    else:
        arrays = {"data": (stored,), "indices": (stored,), "indptr": (shape[0] + 1,)}
    if meta["level_per_row"]:
        arrays["level_of_row"] = (shape[0],)
    return arrays


def read(reader: Reader) -> dict[str, Any]:
    """The arguments of Release, from a file whose seal holds; raises ReleaseError naming file and rule."""
    meta = _read_meta(reader)
    arrays = array_shapes(meta)
    widths = _npy.WIDTHS if meta["format_version"] > 1 else (8,)
    wanted = {META, *(f"{name}.npy" for name in arrays)}
    if reader.names != wanted:
        raise reader.fault(f"must hold {sorted(wanted)}, got {sorted(reader.names)[:8]}")
    values = {}
    for name, shape in arrays.items():
        if reader.size(f"{name}.npy") not in {_npy.size(shape, n_bytes) for n_bytes in widths}:
            raise reader.fault(f"must hold {name} of shape {shape}, got another size")
        content = reader.read(f"{name}.npy")
        try:
            values[name] = _npy.decode(content, shape, widths)
        except ValueError as error:
            raise reader.fault(f"must hold arrays as described: {error}") from error
    levels = [_level(reader, entry) for entry in meta["levels"]]
    return {
        "reports": _reports(reader, meta, values),
        "levels": _levels_of_rows(reader, levels, values["level_of_row"])
        if meta["level_per_row"]
        else levels[0],
        "truncated": meta["truncated"],
        "labels": _labels(reader, meta),
        "simulated": meta["simulated"],
    }


def _read_meta(reader: Reader) -> dict[str, Any]:
    """meta.json, with every key present, of its type, and within the rules that need no other member."""
    if META not in reader.names or reader.size(META) > _MAX_META:
        raise reader.fault(f"must hold a {META} of at most {_MAX_META} bytes, got none or a larger one")
    content = reader.read(META)
    try:
        meta = json.loads(content.decode("ascii"))
        unchanged = canonical(meta) == content
    except (ValueError, RecursionError) as error:
        raise reader.fault(f"must hold valid JSON in {META}, got {error}") from error
    if not isinstance(meta, dict) or set(meta) != set(_KEYS):
        raise reader.fault(f"must describe itself with the keys {sorted(_KEYS)}, got others")
    for key, kind in _KEYS.items():
        if type(meta[key]) is not kind:
            raise reader.fault(f"must have {key} of type {kind.__name__}, got {type(meta[key]).__name__}")
    stated = (meta["format"], meta["format_version"], meta["mechanism"], meta["mechanism_version"])
    for name, want, got in zip(
        ("format", "format_version", "mechanism", "mechanism_version"),
        (FORMAT, 1 if meta["format_version"] == 1 else FORMAT_VERSION, MECHANISM, MECHANISM_VERSION),
        stated,
        strict=True,
    ):
        if want != got:
            raise reader.fault(f"must have {name} {want!r}, got {str(got)[:40]!r}")
    _check_meta(meta, unchanged, reader.fault)
    return meta


def _check_meta(meta: dict[str, Any], unchanged: bool, fault: Callable[[str], ReleaseError]) -> None:
    shape, layout = meta["shape"], meta["layout"]
    if not unchanged:
        raise fault("must hold its description as canonical JSON, got another spelling")
    if not 1 <= len(shape) <= 32 or not all(type(n) is int and 1 <= n < 2**62 for n in shape):
        raise fault("must have a shape of 1 to 32 positive lengths, got another")
    if layout not in _LAYOUTS:
        raise fault(f"must have a layout among {sorted(_LAYOUTS)}, got {layout[:40]!r}")
    if layout == "csr" and (len(shape) != 2 or not meta["truncated"]):
        raise fault("must have two axes and truncated reports to be sparse, got otherwise")
    if not 0 <= meta["stored"] <= prod(shape) or (layout == "dense" and meta["stored"] != prod(shape)):
        raise fault(f"must store as many reports as its shape allows, got {str(meta['stored'])[:40]}")
    if not meta["levels"] or (not meta["level_per_row"] and len(meta["levels"]) != 1):
        raise fault(f"must have one level, or one for each row, got {len(meta['levels'])}")
    if len(meta["labels"]) != len(shape):
        raise fault(f"must have labels or null for each of {len(shape)} axes, got {len(meta['labels'])}")


def _level(reader: Reader, entry: Any) -> PrivacyLevel:
    if not isinstance(entry, dict) or set(entry) != {"epsilon", "precision"}:
        raise reader.fault("must give every level as epsilon and precision, got otherwise")
    exact = {}
    for name, text in entry.items():
        if not isinstance(text, str) or not _FRACTION.fullmatch(text) or str(Fraction(text)) != text:
            raise reader.fault(f"must give {name} as a positive reduced fraction, got {str(text)[:40]!r}")
        exact[name] = Fraction(text)
    try:
        return PrivacyLevel(**exact)
    except ValueError as error:
        raise reader.fault(f"must hold valid levels: {error}") from error


def _levels_of_rows(reader: Reader, levels: list[PrivacyLevel], which: Any) -> tuple[PrivacyLevel, ...]:
    order = [int(i) for i in which]
    first_seen = list(dict.fromkeys(order))
    if first_seen != list(range(len(levels))) or len(set(levels)) != len(levels):
        raise reader.fault("must give each row one of its levels, in order of first use, got otherwise")
    return tuple(levels[i] for i in order)


def _labels(reader: Reader, meta: dict[str, Any]) -> "Labels":
    for axis, names in enumerate(meta["labels"]):
        if names is None:
            continue
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise reader.fault(f"must have labels of axis {axis} as strings, got otherwise")
    labels = tuple(None if names is None else tuple(names) for names in meta["labels"])
    if schema_hash(tuple(meta["shape"]), labels) != meta["schema_hash"]:
        raise reader.fault("must match its schema hash, got another schema")
    return labels


def _reports(reader: Reader, meta: dict[str, Any], values: dict[str, Any]) -> Any:
    """The reports in their container: an array, a csr_array, or nested lists without NumPy."""
    shape = tuple(meta["shape"])
    if meta["layout"] == "dense":
        flat = values["reports"]
        return flat.reshape(shape) if hasattr(flat, "reshape") else _npy.nested(flat, shape)
    numpy, sparse = _npy.optional("numpy"), _npy.optional("scipy.sparse")
    if numpy is None or sparse is None:
        raise ModuleNotFoundError(f"release file {reader.path} is sparse: reading it needs NumPy and SciPy")
    data, indices, indptr = values["data"], values["indices"], values["indptr"]
    if indptr[0] != 0 or indptr[-1] != meta["stored"] or (indptr[1:] < indptr[:-1]).any():
        raise reader.fault("must have row offsets that rise from 0 to the number stored, got others")
    if indices.size:
        rising = numpy.empty(indices.size, dtype=bool)
        rising[0] = True
        numpy.greater(indices[1:], indices[:-1], out=rising[1:])
        rising[indptr[:-1][indptr[1:] > indptr[:-1]]] = True
        if indices.min() < 0 or indices.max() >= shape[1] or not rising.all():
            raise reader.fault(f"must have sorted columns within {shape[1]}, once in each row, got others")
        if data.min() <= 0:
            raise reader.fault("must store positive reports only, got one that is not")
    return sparse.csr_array((data, indices, indptr), shape=shape)
