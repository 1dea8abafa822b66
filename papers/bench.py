"""Where a case study runs: its settings, and a folder that keeps every result as soon as it is found."""

import hashlib
import json
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil import __version__
from countveil.common.console import Watcher
from countveil.privacy._archive import replacing
from papers.claims import Verdict

CHECKPOINT = ".checkpoint.npz"

Arrays = dict[str, np.ndarray]


class Study(NamedTuple):
    """What a case study found: a table, a verdict for each claim, and its figure."""

    numbers: pd.DataFrame
    verdicts: list[Verdict]
    figure: Any


class Task(NamedTuple):
    """A computation: everything that its result depends on, and the function that makes it."""

    key: dict[str, Any]
    work: Callable[[], dict[str, Any]]


class Bench:
    """The settings and kept results of one case study.

    Args:
        name: that of the case study.
        folder: where results are kept, or None to keep none.
        data: a folder of real counts, or None.
        seed: for samplers and simulated noise.
        watcher: shows every task.
    """

    def __init__(
        self,
        name: str,
        folder: Path | None = None,
        data: Path | None = None,
        seed: int = 1,
        watcher: Watcher | None = None,
    ) -> None:
        self.name, self.folder, self.data, self.seed, self.watcher = name, folder, data, seed, watcher
        self._total = 0

    def rng(self, *key: int) -> np.random.Generator:
        """A random generator for each key, independent of the others."""
        return np.random.default_rng([self.seed, *key])

    def results(self, tasks: Iterable[Task]) -> list[Arrays]:
        """The result of every task, from the folder where an earlier run left it."""
        every, found = list(tasks), []
        self.announce(len(every))
        for task in every:
            with self.watched(f"{self.name}: " + " ".join(str(value) for value in task.key.values())):
                found.append(self._result(task))
        return found

    def announce(self, n: int) -> None:
        """This many more pieces of work are to come."""
        if self.watcher is not None and n:
            self._total += n
            self.watcher.begin(self._total)

    @contextmanager
    def watched(self, label: str) -> Iterator[None]:
        """A piece of work, shown by the watcher."""
        if self.watcher is None:
            yield
            return
        started = time.perf_counter()
        self.watcher.started(label)
        yield
        self.watcher.finished(label, time.perf_counter() - started)

    def checkpoint(self, key: dict[str, Any]) -> Path | None:
        """Where a task that takes an hour may keep its chains, to go on where they were; gone once it has a result."""
        if self.folder is None:
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{self._name(self._text(key))}{CHECKPOINT}"

    def _text(self, key: dict[str, Any]) -> str:
        whole = {"case": self.name, "seed": self.seed, "version": __version__, **key}
        return json.dumps(whole, sort_keys=True, default=str)

    def _name(self, text: str) -> str:
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"

    def _result(self, task: Task) -> Arrays:
        if self.folder is None:
            return {name: np.asarray(value) for name, value in task.work().items()}
        text = self._text(task.key)
        path = self.folder / f"{self._name(text)}.npz"
        known = _read(path, text)
        if known is not None:
            return known
        arrays = {name: np.asarray(value) for name, value in task.work().items()}
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            np.savez_compressed(temporary, allow_pickle=False, key=np.array(text), **arrays)
        path.with_suffix(CHECKPOINT).unlink(missing_ok=True)
        return arrays


def digest(counts: Any) -> str:
    """A name for an array's contents, so that results of other data are not taken for those of these."""
    parts = [counts.indptr, counts.indices, counts.data] if hasattr(counts, "indptr") else [np.asarray(counts)]
    found = hashlib.sha256(str(counts.shape).encode())
    for part in parts:
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()[:16]


def _read(path: Path, text: str) -> Arrays | None:
    """What an earlier run left, if it is whole and of this key."""
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError):
        return None
    return arrays if str(arrays.pop("key", "")) == text else None
