"""Chains on disk: what a run needs to go on after it died, in one .npz file, written atomically."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from countveil.files import replacing
from countveil.observations import Observations

FORMAT = 1


class Snapshot(NamedTuple):
    """One chain between two sweeps: its state's fields, and how many draws it has kept."""

    state: tuple[Any, ...]
    kept: int


def fingerprint(observations: Observations, settings: dict[str, Any]) -> str:
    """A SHA-256 of the data and of all settings that decide the draws."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for name in (
        "indptr",
        "columns",
        "reports",
        "alpha_e",
        "alpha_d",
        "exposure_d",
        "prior_scale_d",
        "prior_scale_v",
    ):
        values = np.ascontiguousarray(getattr(observations, name))
        digest.update(f"{name} {values.dtype} {values.shape}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def write(path: Path, mark: str, snapshots: list[Snapshot | None], draws: tuple[np.ndarray, ...]) -> None:
    """Write all chains' snapshots and the draws that they had kept then; replaces the file in one step."""
    content: dict[str, Any] = {"format": np.array(FORMAT), "fingerprint": np.array(mark)}
    for chain, snapshot in enumerate(snapshots):
        if snapshot is None:
            continue
        for i, value in enumerate(snapshot.state):
            content[f"chain{chain}_state{i}"] = np.asarray(value)
        for i, values in enumerate(draws):
            content[f"chain{chain}_draws{i}"] = values[chain, : snapshot.kept]
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **content)


def read(path: Path, mark: str, draws: tuple[np.ndarray, ...]) -> list[Snapshot | None]:
    """The snapshots of a file, their draws copied into ``draws``; None for a chain that had not begun.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a checkpoint, a damaged one, or one of other data or settings.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            content = {name: stored[name] for name in stored.files}
        version, found = int(content["format"]), str(content["fingerprint"])
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"checkpoint {path} must be a file that a fit wrote, got: {error}") from error
    if version != FORMAT:
        raise ValueError(f"checkpoint {path} must have format {FORMAT}, got {version}")
    if found != mark:
        raise ValueError(f"checkpoint {path} must be of the same data and settings, got one of others")
    snapshots: list[Snapshot | None] = []
    for chain in range(draws[0].shape[0]):
        state: list[Any] = []
        while f"chain{chain}_state{len(state)}" in content:
            value = content[f"chain{chain}_state{len(state)}"]
            state.append(value if value.ndim else value.item())
        if not state:
            snapshots.append(None)
            continue
        kept = len(content[f"chain{chain}_draws0"])
        for i, values in enumerate(draws):
            values[chain, :kept] = content[f"chain{chain}_draws{i}"]
        snapshots.append(Snapshot(tuple(state), kept))
    return snapshots
