"""A release as the members of one file, and back: what is written, and every rule checked on reading."""

import hashlib
import json
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from countveil.privacy import _npy, _totals, mechanisms
from countveil.privacy._archive import Reader
from countveil.privacy._cells import ByCell
from countveil.privacy._extras import NO_EXTRAS, Extras, exposure_fits
from countveil.privacy._reports import Labels, misplaced
from countveil.privacy._text import difference, first_wrong, shown
from countveil.privacy.errors import ReleaseError
from countveil.privacy.mechanisms import Mechanism

if TYPE_CHECKING:
    from countveil.privacy.release import Release


FORMAT = "countveil-release"
FORMAT_VERSION = 7
"""Of every file. Earlier ones were made before countveil was published, and are refused."""

META = "meta.json"
_MAX_META = 1 << 28
_KEYS = {
    "format": str,
    "format_version": int,
    "mechanisms": list,
    "mechanism_per_row": bool,
    "layout": str,
    "shape": list,
    "stored": int,
    "truncated": bool,
    "simulated": bool,
    "labels": list,
    "schema_hash": str,
}
_OPTIONAL = {
    "directed": bool,
    "source": str,
    "waves": list,
    "totals": list,
    "covariates": list,
    "mechanism_shape": list,
    "masked": int,
    "exposure_shape": list,
    "axis_names": list,
}
_LAYOUTS = {"dense": ("reports",), "csr": ("data", "indices", "indptr")}


def canonical(value: Any) -> bytes:
    """JSON with sorted keys, no spaces, and ASCII alone: the same bytes for the same value, everywhere."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii")


def schema_hash(shape: tuple[int, ...], labels: Labels) -> str:
    """SHA-256 of the canonical JSON of all axes except the rows: their sizes and their labels."""
    axes = [{"size": length, "labels": names} for length, names in zip(shape[1:], labels[1:], strict=True)]
    return hashlib.sha256(canonical({"columns": axes})).hexdigest()


def description(
    shape: tuple[int, ...],
    known: Sequence[Mechanism],
    labels: Labels,
    *,
    stored: int | None,
    truncated: bool,
    simulated: bool,
    per_row: bool,
    directed: bool | None = None,
    source: str | None = None,
    by_cell: tuple[int, ...] | None = None,
    extras: Extras = NO_EXTRAS,
) -> dict[str, Any]:
    """The content of meta.json; ``known`` holds the different mechanisms in order of first use.

    ``stored`` is the number of positive reports, or None for a dense layout. ``directed``, ``source`` and ``by_cell``,
    the shape of mechanisms by cell, are left out where they are None, and so are the extras.
    """
    stated = extras.described(len(shape))
    optional = {"directed": directed, "source": source, "mechanism_shape": by_cell and list(by_cell)}
    stated |= {name: value for name, value in optional.items() if value is not None}
    return stated | {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "mechanisms": [each.to_json() for each in known],
        "mechanism_per_row": per_row,
        "layout": "dense" if stored is None else "csr",
        "shape": list(shape),
        "stored": prod(shape) if stored is None else stored,
        "truncated": truncated,
        "simulated": simulated,
        "labels": labels,
        "schema_hash": schema_hash(shape, labels),
    }


def members(release: "Release") -> dict[str, bytes]:
    """The members of the file, in their order."""
    sparse = hasattr(release.reports, "indptr")
    stated = release.mechanism
    cells = stated if isinstance(stated, ByCell) else None
    rows: tuple[Mechanism, ...] = stated if isinstance(stated, tuple) else release.known_mechanisms
    known = {each: place for place, each in enumerate(dict.fromkeys(rows))}
    meta = description(
        release.shape,
        tuple(known),
        release.labels,
        stored=int(release.reports.nnz) if sparse else None,
        truncated=release.truncated,
        simulated=release.simulated,
        per_row=isinstance(stated, tuple),
        directed=release.directed,
        source=release.source,
        by_cell=cells.shape if cells else None,
        extras=release.extras,
    )
    content, extras = {META: canonical(meta)}, release.extras.arrays(len(release.shape))
    for name, shape in array_shapes(meta).items():
        if name == "mechanism_of_row":
            values: Any = [known[each] for each in rows]
        elif name == "mechanism_of_cell":
            values = cells.of_cell if cells else ()
        elif name in extras:
            values = extras[name]
        else:
            values = getattr(release.reports, name) if sparse else _flat(release.reports, len(release.shape))
        real = _may_be_real(name) and _holds_real(values)
        content[f"{name}.npy"] = _npy.encode_real(values, shape) if real else _npy.encode(values, shape)
    return content


def _may_be_real(name: str) -> bool:
    """Whether an array may hold real numbers: reports of counts or of totals, or exposures."""
    return name in ("reports", "exposure") or name.startswith("totals_")


def _holds_real(values: Any) -> bool:
    """Whether an array or a flat list holds real numbers."""
    if hasattr(values, "dtype"):
        return bool(values.dtype.kind == "f")
    return any(type(value) is float for value in values)


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
    if meta["mechanism_per_row"]:
        arrays["mechanism_of_row"] = (shape[0],)
    if "mechanism_shape" in meta:
        arrays["mechanism_of_cell"] = (prod(meta["mechanism_shape"]),)
    if "masked" in meta:
        arrays["masked_cells"] = (meta["masked"],)
    if "waves" in meta:
        arrays["wave_of_row"] = (shape[0],)
    if "exposure_shape" in meta:
        arrays["exposure"] = (prod(meta["exposure_shape"]),)
    return arrays | _totals.array_shapes(meta, shape)


def read(reader: Reader) -> dict[str, Any]:
    """The arguments of Release, from a file whose seal holds; raises ReleaseError naming file and rule."""
    meta = _read_meta(reader)
    values = _read_arrays(reader, meta)
    try:
        extras = Extras.decoded(meta, values)
    except ReleaseError as error:
        raise reader.fault(str(error)) from error
    return {
        "reports": _reports(reader, meta, values),
        "mechanism": _stated(reader, meta, values),
        "truncated": meta["truncated"],
        "labels": _labels(reader, meta),
        "simulated": meta["simulated"],
        "directed": meta.get("directed"),
        "source": meta.get("source"),
        "extras": extras,
    }


def _stated(reader: Reader, meta: dict[str, Any], values: dict[str, Any]) -> Any:
    """The mechanism, one per row, or those of cells."""
    known = [_mechanism(reader, entry) for entry in meta["mechanisms"]]
    if "mechanism_shape" in meta:
        places, shape = values["mechanism_of_cell"], tuple(meta["mechanism_shape"])
        return ByCell(tuple(known), places if hasattr(places, "dtype") else tuple(places), shape)
    return _of_rows(reader, known, values["mechanism_of_row"]) if meta["mechanism_per_row"] else known[0]


def _read_arrays(reader: Reader, meta: dict[str, Any]) -> dict[str, Any]:
    """The flat values of every array that belongs in the file, which holds nothing else."""
    shapes = array_shapes(meta)
    wanted = {META, *(f"{name}.npy" for name in shapes)}
    if reader.names != wanted:
        raise reader.fault(f"must hold {sorted(wanted)}, got {sorted(reader.names)[:8]}")
    values = {}
    for name, shape in shapes.items():
        sizes, size = [_npy.size(shape, n_bytes) for n_bytes in _npy.WIDTHS], reader.size(f"{name}.npy")
        if size not in sizes:
            takes = " or ".join(map(str, sizes))
            raise reader.fault(f"must hold {name} of shape {shape} in {takes} bytes, got {size} bytes")
        content = reader.read(f"{name}.npy")
        if _may_be_real(name) and "source" in meta and _npy.is_real(content, shape):
            values[name] = _npy.decode_real(content, shape)
            continue
        try:
            values[name] = _npy.decode(content, shape)
        except ValueError as error:
            raise reader.fault(f"must hold arrays as described: {error}") from error
    return values


def _read_meta(reader: Reader) -> dict[str, Any]:
    """meta.json, every key of its type, checked as far as no other member is needed."""
    size = reader.size(META) if META in reader.names else None
    if size is None or size > _MAX_META:
        got = "none" if size is None else f"{size} bytes"
        raise reader.fault(f"must hold a {META} of at most {_MAX_META} bytes, got {got}")
    content = reader.read(META)
    try:
        meta = json.loads(content.decode("ascii"))
        unchanged = canonical(meta) == content
    except (ValueError, RecursionError) as error:
        raise reader.fault(f"must hold valid JSON in {META}, got {error}") from error
    if not isinstance(meta, dict):
        raise reader.fault(f"must describe itself with the keys format and format_version, got {shown(meta)}")
    if missing := [key for key in ("format", "format_version") if key not in meta]:
        raise reader.fault(f"must describe itself with the keys format and format_version, got no {missing[0]!r}")
    if meta["format"] != FORMAT:
        raise reader.fault(f"must have format {FORMAT!r}, got {ascii(meta['format'])[:40]}")
    version = meta["format_version"]
    if type(version) is not int or version != FORMAT_VERSION:
        newer = type(version) is int and version > FORMAT_VERSION
        remedy = "update countveil" if newer else "make the release again with this version of countveil"
        raise reader.fault(f"must have format_version {FORMAT_VERSION}, got {ascii(version)[:40]}: {remedy}")
    keys = _KEYS | {name: kind for name, kind in _OPTIONAL.items() if name in meta}
    if other := difference(meta, keys):
        raise reader.fault(f"must describe itself with the keys {sorted(keys)}, got {other}")
    for key, kind in keys.items():
        if type(meta[key]) is not kind:
            raise reader.fault(f"must have {key} of type {kind.__name__}, got {type(meta[key]).__name__}")
    if not unchanged:
        pairs = enumerate(zip(content, canonical(meta), strict=False))
        place = next((place for place, (one, other) in pairs if one != other), len(canonical(meta)))
        got = f"{shown(content[place : place + 16])} at byte {place}"
        raise reader.fault(f"must hold its description as canonical JSON (sorted keys, no blanks, ASCII), got {got}")
    _check_meta(meta, reader.fault)
    return meta


def _check_meta(meta: dict[str, Any], fault: Callable[[str], ReleaseError]) -> None:
    shape, layout, known = meta["shape"], meta["layout"], meta["mechanisms"]
    if not 1 <= len(shape) <= 32 or not all(type(n) is int and 1 <= n < 2**62 for n in shape):
        raise fault(f"must have a shape of 1 to 32 positive lengths, got {shown(shape)}")
    if layout not in _LAYOUTS:
        raise fault(f"must have a layout among {sorted(_LAYOUTS)}, got {layout[:40]!r}")
    if layout == "csr" and len(shape) != 2:
        raise fault(f"must have two axes to be sparse, got {len(shape)}")
    if layout == "csr" and not (meta["truncated"] or "source" in meta):
        raise fault("must have truncated or imported reports to be sparse, got signed reports without a source")
    if not 0 <= meta["stored"] <= prod(shape) or (layout == "dense" and meta["stored"] != prod(shape)):
        raise fault(f"must store as many reports as its shape allows, got {str(meta['stored'])[:40]}")
    several = meta["mechanism_per_row"] or "mechanism_shape" in meta
    if not known or (not several and len(known) != 1):
        raise fault(f"must have one mechanism, or one for each row, got {len(known)}")
    _check_by_cell(meta, fault)
    if "exposure_shape" in meta and not exposure_fits(meta["exposure_shape"], tuple(shape)):
        got = shown(meta["exposure_shape"])
        raise fault(f"must have an exposure whose shape broadcasts to {shape}, that of its reports, got {got}")
    if "totals" in meta:
        try:
            _totals.check_described(meta["totals"], tuple(shape))
        except ReleaseError as error:
            raise fault(str(error)) from error
    if len(meta["labels"]) != len(shape):
        raise fault(f"must have labels or null for each of {len(shape)} axes, got {len(meta['labels'])}")


def _check_by_cell(meta: dict[str, Any], fault: Callable[[str], ReleaseError]) -> None:
    """What a file says cell by cell, as far as no array is needed."""
    over, masked, shape = meta.get("mechanism_shape"), meta.get("masked"), meta["shape"]
    if over is not None:
        if meta["mechanism_per_row"]:
            raise fault("must have mechanisms by cell or by row, got both")
        fits = len(over) == len(shape) and all(type(n) is int for n in over)
        if not fits or any(n not in (1, m) for n, m in zip(over, shape, strict=False)):
            raise fault(f"must have mechanisms by cell that broadcast to its shape, {shape}, got {shown(over)}")
    if masked is not None and meta["layout"] != "dense":
        raise fault(f"must be dense to have masked cells, got layout {meta['layout']!r}")
    if masked is not None and not 0 < masked < prod(shape):
        raise fault(f"must have masked cells, some but not all of {prod(shape)}, got {masked}")


def _mechanism(reader: Reader, entry: Any) -> Mechanism:
    try:
        return mechanisms.from_json(entry)
    except ValueError as error:
        raise reader.fault(f"must state known mechanisms: {error}") from error


def _of_rows(reader: Reader, known: list[Mechanism], which: Any) -> tuple[Mechanism, ...]:
    order = [int(i) for i in which]
    used, twice = list(dict.fromkeys(order)), [each for each in known if known.count(each) > 1]
    if twice or used != list(range(len(known))):
        got = f"{shown(twice[0])} twice" if twice else f"mechanisms {shown(used)} of {len(known)}"
        raise reader.fault(f"must give each row one of its mechanisms, different ones in order of first use, got {got}")
    return tuple(known[i] for i in order)


def _labels(reader: Reader, meta: dict[str, Any]) -> Labels:
    for axis, names in enumerate(meta["labels"]):
        if names is None:
            continue
        listed = isinstance(names, list)
        wrong = first_wrong(names, lambda name: isinstance(name, str)) if listed else shown(names)
        if wrong:
            raise reader.fault(f"must have labels of axis {axis} as strings, got {wrong}")
    labels = tuple(None if names is None else tuple(names) for names in meta["labels"])
    known = schema_hash(tuple(meta["shape"]), labels)
    if known != meta["schema_hash"]:
        raise reader.fault(
            f"must have the schema hash of its axes and labels, {known}, got {shown(meta['schema_hash'])}"
        )
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
    rule, falls = f"must have row offsets that rise from 0 to {meta['stored']}", indptr[1:] < indptr[:-1]
    if indptr[0] != 0 or indptr[-1] != meta["stored"]:
        raise reader.fault(f"{rule}, got {indptr[0]} to {indptr[-1]}")
    if falls.any():
        row = int(falls.argmax())
        raise reader.fault(f"{rule}, got {indptr[row]} and then {indptr[row + 1]} in row {row}")
    if indices.size:
        if place := misplaced(indices, indptr, shape[1]):
            got = f"column {place[1]} in row {place[0]}"
            raise reader.fault(f"must have sorted columns within {shape[1]}, once in each row, got {got}")
        if data.min() <= 0:
            raise reader.fault(f"must store positive reports only, got {data.min()}")
    return sparse.csr_array((data, indices, indptr), shape=shape)
