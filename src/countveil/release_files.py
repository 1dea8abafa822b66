"""Releases that stay on disk."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from countveil.matrices import check_labels
from countveil.observations import Observations, observations_of
from countveil.privacy import Release


class ReleaseFiles:
    """Releases on disk, read one at a time: for data that do not fit in memory (``method="svi"``).

    Args:
        paths: release files of the same words, each with the reports of some documents.

    Raises:
        FileNotFoundError: a file that is not there.
        ValueError: no paths, or a file that is damaged or whose words are not those of the first.
    """

    kind: ClassVar[str] = "private"

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        self.paths = [Path(path) for path in paths]
        if not self.paths:
            raise ValueError("paths must name at least one release, got none")
        self._starts, alphas, self.simulated = [0], [], False
        labels: list[str] | None = []
        for path in self.paths:
            release = Release.load(path)
            if path is self.paths[0]:
                first = release
            elif release.schema_hash != first.schema_hash:
                raise ValueError(
                    f"paths must hold the same words, got {path} with others than {self.paths[0]}"
                )
            labels = (
                None if labels is None or release.row_labels is None else labels + list(release.row_labels)
            )
            self._starts.append(self._starts[-1] + release.shape[0])
            self.simulated |= release.simulated
            alphas.append(np.broadcast_to(release.alpha, release.shape[0]))
        self.shape = (self._starts[-1], first.shape[1])
        self.row_labels, self.column_labels = (
            labels,
            check_labels("words", first.column_labels, self.shape[1]),
        )
        self.alpha_d, self.alpha_e = np.concatenate(alphas), np.empty(0)

    def parts(self, order: Iterable[int] | None = None) -> Iterator[tuple[int, Observations]]:
        """(first row, observations) of each file, in the given order of files."""
        for i in range(len(self.paths)) if order is None else order:
            yield self._starts[i], observations_of(Release.load(self.paths[i]))

    @property
    def n_parts(self) -> int:
        """How many files there are."""
        return len(self.paths)
