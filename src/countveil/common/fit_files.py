"""Files of fits: their seals, and what is checked before anything in them is used.

A fit is an HDF5 file (netCDF) with a seal at its end, which HDF5 leaves unread. It may come from anybody. What is
checked here needs no more than h5py, so that a hostile file is refused before the models are imported. The HDF5
library itself can hang, crash or fill the memory on a file whose inside was broken on purpose; so a process of its own
reads everything once (``fit_process``).
"""

import json
import math
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn

import h5py
import numpy as np

from countveil.common import fit_process
from countveil.common.hdf5 import Checked, pieces
from countveil.privacy import _archive
from countveil.privacy._sizes import SMALL

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
                _refuse("must stay as it was while it is read, got other bytes")
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
            rule += "; a fit of a version without seals has to be made again from its release and seed"
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
    found = fit_process.ask("countveil.common.fit_files", descriptor, path)
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
        raise FitFileError(path, fit_process.rule_of(error)) from error


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
    for name in ("known_totals", "noisy_totals"):
        known = found.get(name, 1)
        if not isinstance(known, int | np.integer) or not 1 <= known < 2**53:
            _refuse(f"must state its {name} as a whole number from 1 on, got {known!r:.40}")
    for name in ("totals_used", "promised_together"):
        said = found.get(name, "")
        if not isinstance(said, str) or len(said) > _LONGEST_LINE or not said.isprintable():
            _refuse(
                f"must state its {name} as a line of at most {_LONGEST_LINE} characters, got {said!r:.40}"
            )
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
            _refuse(f"must state its {name} as a JSON object, got something else")
    return found


def _check_factors(found: Checked, model: dict[str, Any]) -> None:
    """Refuses missing arrays, and factors of other sizes or with values that no factor has."""
    for group in GROUPS:
        if not any(path.startswith(f"{group}/") for path in found.datasets):
            _refuse(f"must hold the group {group}, got none")
    names, axes, sizes = model["spec"]["names"], model["spec"]["factor_axes"], model["sizes"]
    if not names or not all(type(size) is int and size > 0 for size in sizes.values()):
        _refuse("must have factors over axes of one entry or more, got others")
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
    fit_process.answer(inspect_open, int(sys.argv[1]))
