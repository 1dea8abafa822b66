"""Chains on disk: what a run needs to resume, in one .npz file, written atomically."""

import hashlib
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from countveil.data.io import check_npz
from countveil.data.observations import Observations
from countveil.inference.tuning import Tuning
from countveil.models.factorization import Factorization
from countveil.privacy._archive import replacing

FORMAT = 7
LARGEST = 1e100  # of the numbers of a chain


class Snapshot(NamedTuple):
    """One chain between two sweeps: its state's fields, how many draws it has kept, and how it was tuned."""

    state: tuple[Any, ...]
    kept: int
    tuning: Tuning = Tuning()


def fingerprint(observations: Observations, settings: dict[str, Any]) -> str:
    """A SHA-256 of the data and of all settings that decide the draws."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=printed).encode())
    for name in ("indptr", "columns", "reports", "level_e", "level_d", "exposure_d", "prior_scale_d", "prior_scale_v"):
        digest.update(f"{name} {printed(getattr(observations, name))}".encode())
    if observations.exposure is not None:
        digest.update(f"exposure {printed(observations.exposure)}".encode())
    for part in observations.noise.kernel:
        if isinstance(part, np.ndarray):
            digest.update(f"kernel {printed(part)}".encode())
    if observations.totals is not None:
        for part in (*observations.totals.groups, *observations.totals.kernel):
            digest.update(f"totals {printed(part)}".encode())
    return digest.hexdigest()


def printed(value: Any) -> str:
    """A setting as text; an array by its type, shape and digest."""
    if not isinstance(value, np.ndarray):
        return str(value)
    return f"{value.dtype} {value.shape} {hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()}"


def named(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Every array of nested tuples, named by its place."""
    if isinstance(value, tuple):
        for i, part in enumerate(value):
            yield from named(f"{name}.{i}", part)
    else:
        yield name, np.asarray(value)


def unnamed(name: str, content: dict[str, Any]) -> Any:
    """The value that ``named`` took apart; an empty tuple leaves nothing, and neither do those at a tuple's end."""
    if name in content:
        value = content[name]
        return value if value.ndim else value.item()
    places = [int(known[len(name) + 1 :].split(".")[0]) for known in content if known.startswith(f"{name}.")]
    if max(places, default=0) > len(content):
        raise ValueError(f"a state must have parts below {len(content)}, got part {max(places)}")
    return tuple(unnamed(f"{name}.{i}", content) for i in range(max(places, default=-1) + 1))


def write(
    path: Path, mark: str, seed: int, snapshots: list[Snapshot | None], draws: tuple[np.ndarray, ...], seconds: float
) -> None:
    """Write the seed, all chains' snapshots, the draws kept by then, and the seconds taken, in one step."""
    content: dict[str, Any] = {
        "format": np.array(FORMAT), "fingerprint": np.array(mark), "seed": np.array(str(seed)),
        "seconds": np.array(seconds),
    }  # fmt: skip
    for chain, snapshot in enumerate(snapshots):
        if snapshot is None:
            continue
        content.update(named(f"chain{chain}_state", tuple(snapshot.state)))
        content.update(named(f"chain{chain}_tuning", tuple(snapshot.tuning)))
        for i, values in enumerate(draws):
            content[f"chain{chain}_draws{i}"] = values[chain, : snapshot.kept]
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **content)


class Saver:
    """Writes a run's checkpoints; one that cannot be written is told of once, since the run is worth more."""

    failed = False

    def write(self, path: Path, *content: Any) -> None:
        """As ``write``; what was at ``path`` stays if that fails."""
        try:
            write(path, *content)
        except OSError as error:
            if not self.failed:
                self.failed = True
                reason = os.strerror(error.errno) if error.errno else str(error)
                warnings.warn(
                    f"checkpoint {path} cannot be written ({reason}): the fit continues without it and will try again",
                    RuntimeWarning,
                    stacklevel=2,
                )


def seed_of(path: Path) -> int:
    """The seed of the chains in a file, of which nothing else is read; raises as ``read``."""
    return int(_content(path, ("seed",))["seed"])


def read(path: Path, mark: str, seed: int, draws: tuple[np.ndarray, ...]) -> tuple[list[Snapshot | None], float]:
    """(each chain's snapshot, None if it had not begun; seconds taken); copies the file's draws into ``draws``.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the file is not a checkpoint, is damaged, or belongs to another seed, other data or settings.
    """
    content = _content(path)
    if content["seed"] != seed:
        raise ValueError(
            f"checkpoint {path} must have seed {seed}, got seed {content['seed']}: fit with that seed, "
            "or remove the file"
        )
    if content["fingerprint"] != mark:
        raise ValueError(
            f"checkpoint {path} must come from the same data and settings, got data or settings that differ: repeat "
            "those of the interrupted fit, or remove the file"
        )
    try:
        snapshots = [_snapshot(content, chain, draws) for chain in range(draws[0].shape[0])]
        return snapshots, float(content["seconds"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"checkpoint {path} must hold whole chains, got: {error!s:.300}; remove the file to start over"
        ) from error


def _content(path: Path, names: tuple[str, ...] | None = None) -> dict[str, Any]:
    """What a file holds under these names, or under all, with its seed and fingerprint."""
    if not path.exists():
        raise FileNotFoundError(
            f"checkpoint {path} must exist to resume, got no file: leave out resume (--resume) to start over"
        )
    try:
        check_npz(path)
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            version = int(stored["format"])
            if version == FORMAT:
                found = {name: stored[name] for name in names or stored.files}
                return found | {"seed": int(stored["seed"]), "fingerprint": str(stored["fingerprint"])}
    except Exception as error:
        raise ValueError(f"checkpoint {path} must be a file that a fit wrote, got: {error!s:.300}") from error
    raise ValueError(f"checkpoint {path} must have format {FORMAT}, got {version}")


def _snapshot(content: dict[str, Any], chain: int, draws: tuple[np.ndarray, ...]) -> Snapshot | None:
    """A chain's snapshot; its draws are copied if they are as many, of the shapes and the types of ``draws``."""
    state = unnamed(f"chain{chain}_state", content)
    if state == ():
        return None
    for name, part in named(f"chain{chain}_state", state):
        check_numbers(name, part)
    kept = len(content[f"chain{chain}_draws0"])
    for i, values in enumerate(draws):
        given = content[f"chain{chain}_draws{i}"]
        if kept > values.shape[1] or given.shape != (kept, *values.shape[2:]) or given.dtype != values.dtype:
            raise ValueError(
                f"chain {chain} must have at most {values.shape[1]} draws of shape {values.shape[2:]} and type "
                f"{values.dtype}, got {kept} of shape {given.shape[1:]} and type {given.dtype}"
            )
        check_numbers(f"chain{chain}_draws{i}", given)
        values[chain, :kept] = given
    return Snapshot(state, kept, Tuning.of_parts(*unnamed(f"chain{chain}_tuning", content)))


def check_numbers(name: str, values: np.ndarray) -> None:
    """Refuse what no chain holds: anything but finite numbers up to ``LARGEST``; raises ValueError."""
    if values.dtype.kind not in "iuf" or not (np.abs(values, dtype=np.float64) <= LARGEST).all():
        raise ValueError(f"{name} must hold finite numbers up to {LARGEST:g}, got {values!s:.80}")


def as_wide(model: Factorization, state: Any) -> Factorization:
    """The model with as many components as a state in the middle of a move has: at most twice its own."""
    if not model.product_of_two or len(model.spec.latent) != 1 or np.ndim(state.factors[0]) != 2:
        return model
    n = np.shape(state.factors[0])[model.factors[0].axes.index(model.spec.latent)]
    return model.with_components(n) if model.n_components < n <= 2 * model.n_components else model


def check_state(path: Path, state: Any, model: Factorization) -> None:
    """Refuse a chain's state whose arrays are not those of the model, or out of their ranges; raises ValueError."""
    model = as_wide(model, state)
    names = [factor.name for factor in model.factors]
    wanted = {
        "factors": [np.empty(factor.shape) for factor in model.factors],
        "hypers": list(model.initial_hypers()),
        "parameters": list(model.initial_parameters()),
    }
    ranges = {
        "factors": [(0.0, LARGEST)] * len(names),
        "parameters": [model.likelihood.range_of(name) for name in model.likelihood.parameter_axes],
    }
    rule = f"checkpoint {path} must hold chains of this model"
    for field, arrays in wanted.items():
        found = [np.asarray(each) for each in getattr(state, field)]
        if [each.shape for each in found] != [np.shape(each) for each in arrays]:
            raise ValueError(
                f"{rule}, with {field} of shapes {[np.shape(each) for each in arrays]}, "
                f"got {[each.shape for each in found]}"
            )
        for values, (least, most) in zip(found, ranges.get(field, ()), strict=False):
            right = (least <= values) & (values <= most)
            if not right.all():
                raise ValueError(f"{rule}, with {field} from {least:g} to {most:g}, got {values[~right].flat[0]:g}")
    if type(state.sweep) is not int or not 0 <= state.sweep < 2**31:
        raise ValueError(f"{rule}, with a whole number of sweeps below 2**31, got {state.sweep!r:.40}")
