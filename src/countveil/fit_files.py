"""Files of fits: sealed when they are written, and checked before anything in them is used.

A fit is an HDF5 file (netCDF) with a seal at its end, which HDF5 leaves unread. It may come from anybody. What is
checked here needs no more than h5py, so that a hostile file is refused before the models are imported. The HDF5
library itself can hang or crash on a file whose inside was broken on purpose; so a process of its own reads everything
once, with a limit on its time.
"""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import h5py
import numpy as np

from countveil.hdf5 import Checked, pieces
from countveil.privacy import _seal
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

LEAST_SECONDS, BYTES_PER_SECOND = 30.0, 10e6
"""How long a file may take to read: this, and as long as a slow disk takes."""
_COPIES = 2
"""How often a fit's draws are held by its readers: as they are, and as summaries of them are made."""
_LONGEST_SEED = 40


class FitFileError(ValueError):
    """A file is not a fit that countveil saved, or was changed since; names the file, the rule and what was found."""

    def __init__(self, path: str | os.PathLike[str], rule: str) -> None:
        super().__init__(f"{os.fspath(path)} is not a fit saved by countveil: it {rule}")
        self.rule = rule


def seal(path: str | os.PathLike[str]) -> None:
    """Seals a file that was just written."""
    with open(path, "rb+") as file:
        file.write(_seal.seal(file, file.seek(0, os.SEEK_END)))


def check(path: str | os.PathLike[str]) -> str:
    """Refuses a file that is not a whole fit; returns the name of the model that it is of.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a broken seal, data outside the file, arrays larger than what is stored or than memory, missing
            arrays, or factors that are not numbers of at least zero.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"no fit at {path}")
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise FitFileError(path, "must be a regular file, got a directory, a pipe or a device")
    with faults(path), open(path, "rb") as sealed:
        rule = _seal.broken(sealed, "fit")
        if rule is not None and "got none" in rule:
            rule += "; a fit of a version without seals has to be made again from its release and seed"
        if rule is not None:
            _refuse(rule)
    return _inspected(path)


def _inspected(path: str | os.PathLike[str]) -> str:
    """What ``inspect`` finds in a process of its own."""
    seconds = LEAST_SECONDS + os.path.getsize(path) / BYTES_PER_SECOND
    command = [sys.executable, "-P", "-m", "countveil.fit_files", os.fspath(path)]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each), "PYTHONUTF8": "1"}
    with faults(path):
        try:
            done = subprocess.run(command, env=here, capture_output=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            _refuse(f"must be readable, got no end of it in {seconds:.0f} s")
        if done.returncode < 0:
            _refuse("must be readable, got a crash of the HDF5 library")
        if not done.stdout:
            _refuse(f"must be readable, got {done.stderr.decode('utf-8', 'replace').strip()[-200:]}")
        found = json.loads(done.stdout)
        if "rule" in found:
            _refuse(found["rule"])
    return str(found["estimator"])


def inspect(path: str | os.PathLike[str]) -> str:
    """Reads everything in a file whose seal holds; returns the name of the model. Raises ValueError as ``check``."""
    with faults(path), h5py.File(path, "r") as file:
        found = Checked(file, _COPIES)
        facts = _facts(found.facts())
        _check_factors(found, json.loads(facts["model"]))
        for dataset in found.datasets.values():
            for _ in pieces(dataset):
                pass
    return str(facts["estimator"])


@contextmanager
def faults(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever goes wrong with the content of a file as a FitFileError in one line."""
    try:
        yield
    except FitFileError:
        raise
    except Exception as error:  # what a file from anybody makes libraries raise has no end
        said = " ".join(str(error).split())[:300]
        raise FitFileError(
            path, said if said.startswith("must ") else f"must be readable, got {said}"
        ) from error


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
        values = found.datasets.get(f"posterior/{name}")
        if values is None:
            _refuse(f"must hold the factor {name}, got none")
        shape, wanted = values.shape, sorted(sizes[letter] for letter in letters)
        if len(shape) < 2 or 0 in shape or sorted(shape[2:]) != wanted:
            _refuse(f"must hold draws of {name} over axes of sizes {wanted}, got an array of shape {shape}")
    states = [f"posterior/{name}{end}" for name in names for end in ("", "_rate")]
    states += [f"optimisation/{name}_mean" for name in names] + ["sample_stats/total_rate"]
    states += [path for path in found.datasets if path.startswith("stream/")]
    for path in states:
        _check_values(found, path)
    for path, values in found.datasets.items():
        if path.startswith("constant_data/") and values.dtype.kind == "f":
            _check_values(found, path)


def _check_values(found: Checked, path: str) -> None:
    """Refuses an array that holds anything except finite numbers of at least zero."""
    values = found.datasets.get(path)
    if values is None:
        return
    if values.dtype.kind != "f":
        _refuse(f"must hold floating-point numbers at {path}, got {values.dtype}")
    for piece in pieces(values):
        if not np.isfinite(piece).all() or piece.min() < 0:
            bad = piece[~(np.isfinite(piece) & (piece >= 0))].flat[0]
            _refuse(f"must hold finite numbers of at least 0 at {path}, got {bad}")


def _main(path: str) -> None:
    """Prints the model of a file, or the rule that it breaks, as JSON."""
    try:
        print(json.dumps({"estimator": inspect(path)}))
    except FitFileError as error:
        print(json.dumps({"rule": error.rule}))


if __name__ == "__main__":
    _main(sys.argv[1])
