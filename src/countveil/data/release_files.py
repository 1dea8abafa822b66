"""Releases that stay on disk."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import scipy.sparse as sp

from countveil.data.matrices import check_labels, report_type
from countveil.data.observations import Observations, PrivatizedCounts
from countveil.data.provenance import SAME_NOISE, Provenance, level_of_release, log_most_probable
from countveil.data.reports import observations_of
from countveil.laws.noise import NOISES
from countveil.privacy import Release
from countveil.privacy._archive import seal_at_end


class ReleaseFiles:
    """Releases on disk that together are one: for data that do not fit in memory.

    ``svi`` reads one file at a time. All other methods work on ``unpacked`` reports, block by block, and find
    the same, bit for bit, as with the reports in memory.

    Args:
        paths: release files of the same words, each with the reports of some documents; or a folder, for all
            files in it that end in .npz, in the order of their names.
        scratch: a folder for the unpacked reports, of 6 bytes each, while they are used; None takes that of the
            first file.

    Raises:
        FileNotFoundError: a file that is not there.
        ValueError: no paths, or a file that is damaged, is another one again, does not have two axes, is imported,
            is of an undirected network or a study in waves, or has other words or another mechanism than the first.
    """

    kind: ClassVar[str] = "private"
    totals: ClassVar[None] = None

    def __init__(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        scratch: str | os.PathLike[str] | None = None,
    ) -> None:
        self.paths = listed(paths)
        if not self.paths:
            raise ValueError("paths must name at least one release, got none")
        self.scratch = self.paths[0].parent if scratch is None else Path(scratch)
        self._seals: list[bytes] = []
        self._starts, self._largest, levels, simulated = [0], 0, [], False
        labels: list[str] | None = []
        called: set[tuple[str | None, ...]] = set()
        for path in self.paths:
            seal, release = seal_at_end(path), Release.load(path)
            if release.source is not None:
                raise ValueError(
                    f"paths must not hold imported releases, got one in {path}: import the whole table as one release"
                )
            largest = int(release.reports.max())
            if seal in self._seals and not same_by_chance(release):
                earlier = self.paths[self._seals.index(seal)]
                raise ValueError(f"paths must hold every release once, got that of {earlier} again in {path}")
            self._seals.append(seal)
            if len(release.shape) != 2:
                raise ValueError(
                    f"paths must hold releases of two axes, documents and words, got {len(release.shape)} in {path}"
                )
            if release.extras.waves is not None:
                raise ValueError(
                    f"paths must hold studies without waves, got one in waves: read it by cv.by_wave({str(path)!r})"
                )
            if release.directed is False:
                raise ValueError(f"paths must hold documents and words, got an undirected network in {path}")
            check_read_by_level(release, path)
            noise, level = level_of_release(release)
            if path is self.paths[0]:
                first, self.noise = release, noise
            elif release.schema_hash != first.schema_hash:
                raise ValueError(f"paths must hold the same words, got different ones in {path} and {self.paths[0]}")
            elif noise.mechanism != self.noise.mechanism:
                raise ValueError(
                    f"paths must hold reports of one mechanism, got {noise.mechanism} in {path} "
                    f"and {self.noise.mechanism} in {self.paths[0]}"
                )
            labels = None if labels is None or release.row_labels is None else labels + list(release.row_labels)
            self._starts.append(self._starts[-1] + release.shape[0])
            self._largest = max(self._largest, largest)
            simulated |= release.simulated
            called.add(release.extras.axis_names or ())
            levels.append(np.broadcast_to(level, release.shape[0]))
        names = called.pop() if len(called) == 1 else ()
        self.shape, self.provenance = (self._starts[-1], first.shape[1]), Provenance(simulated, axis_names=names)
        self.row_labels, self.column_labels = (labels, check_labels("words", first.column_labels, self.shape[1]))
        self.level_d, self.level_e = np.concatenate(levels), np.empty(0)

    def parts(self, order: Iterable[int] | None = None) -> Iterator[tuple[int, Observations]]:
        """(first row, observations) of each file, in the given order of files.

        Raises:
            ValueError: a file that was damaged or changed since it was first read.
        """
        for i in range(len(self.paths)) if order is None else order:
            yield self._starts[i], observations_of(self._loaded(i))

    @property
    def n_parts(self) -> int:
        """How many files there are."""
        return len(self.paths)

    def unpacked(self) -> PrivatizedCounts:
        """All reports as observations whose entries lie in a nameless scratch file instead of in memory.

        Every file is checked once more as it is read. The scratch file goes away with the observations. The
        operating system keeps as much of it in memory as there is room for.

        Raises:
            OSError: the scratch folder cannot be written to, or is full.
            ValueError: as ``parts``.
        """
        nothing = sp.csr_array(self.shape, dtype=np.int16)
        found = PrivatizedCounts(
            nothing,
            self.level_d,
            noise=self.noise,
            row_labels=self.row_labels,
            column_labels=self.column_labels,
            provenance=self.provenance,
        )
        dtype = report_type(self._largest)
        with self._scratch_file() as columns, self._scratch_file() as reports:
            lengths = [np.zeros(1, dtype=np.int64)]
            for _, part in self.parts():
                lengths.append(np.diff(part.indptr))
                part.columns.tofile(columns)
                part.reports.astype(dtype, copy=False).tofile(reports)
            found.indptr = np.cumsum(np.concatenate(lengths))
            size = int(found.indptr[-1])
            found.columns, found.reports = mapped(columns, np.int32, size), mapped(reports, dtype, size)
        return found

    def _loaded(self, i: int) -> Release:
        """File i, refused if its seal is not the one that it had when it was first read."""
        release = Release.load(self.paths[i])
        if seal_at_end(self.paths[i]) != self._seals[i]:
            raise ValueError(
                f"paths must not change during a fit, got {self.paths[i]} with new content: make ReleaseFiles again"
            )
        return release

    def _scratch_file(self) -> Any:
        return tempfile.TemporaryFile(dir=self.scratch, prefix=".countveil")


def listed(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The paths, or those of the releases in a folder."""
    if not isinstance(paths, str | os.PathLike):
        return [Path(path) for path in paths]
    folder = Path(paths)
    if not folder.is_dir():
        return [folder]
    return sorted(path for path in folder.glob("*.npz") if not path.name.startswith("."))


def mapped(file: BinaryIO, dtype: Any, size: int) -> np.ndarray:
    """``size`` values of a file as an array, read when they are used; changes would not reach the file."""
    file.flush()
    if size == 0:
        return np.empty(0, dtype=dtype)
    return np.asarray(np.memmap(file, dtype=dtype, mode="c", shape=(size,)))


def same_by_chance(release: Release) -> bool:
    """Whether other records and fresh noise may have given the same file: too few reports are positive to tell.

    A positive report comes again with the probability of the most probable noise at most, and of little noise hardly
    more often than a half, since counts differ. Records with the same labels are the same ones.
    """
    n_positive = int((release.reports > 0).sum())
    if not n_positive or release.row_labels is not None:
        return not n_positive
    log_again = max(map(log_most_probable, release.known_mechanisms))
    return n_positive * min(log_again, -np.log(2.0)) > np.log(SAME_NOISE)


def check_read_by_level(release: Release, path: str | os.PathLike[str]) -> None:
    """Refuse reports of which every one is stored, such as those with discrete Gaussian noise.

    Raises:
        ValueError: a mechanism that is not in the table of noises.
    """
    for each in release.known_mechanisms:
        if each.name not in NOISES:
            raise ValueError(
                f"paths must hold reports with {' or '.join(NOISES)} noise, got {each.name!r} in {path}: fit such a "
                "release by itself"
            )
