"""Many report files into one release, read one at a time; every refusal is listed."""

import csv
import os
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import accumulate, chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from countveil.privacy import _archive, _format, _npy, report
from countveil.privacy import study as study_file
from countveil.privacy._archive import replacing
from countveil.privacy._covariates import RowCovariates
from countveil.privacy._extras import Extras
from countveil.privacy._text import cell
from countveil.privacy._waves import Waves
from countveil.privacy.errors import RefusedError
from countveil.privacy.level import Level
from countveil.privacy.report import Report
from countveil.privacy.study import Study

COLUMNS = ("file", "outcome", "participant", "epsilon", "precision", "rho", "field", "rule")
ACCEPTED, REFUSED = "accepted", "refused"

_PIECE = 1 << 20
_BEGINNING = 4096


class Held(NamedTuple):
    """A report that is in no file of its own: what to call it, and its bytes."""

    name: str
    content: bytes


class Collected(NamedTuple):
    """How many report files were taken and refused, and how often for which field."""

    accepted: int
    refused: int
    fields: Counter[str]


def collect(
    study: Study,
    files: Iterable[str | os.PathLike[str] | Held],
    output: str | os.PathLike[str],
    table: str | os.PathLike[str],
) -> Collected:
    """Merges the reports of a study into the release at ``output``, one row each, ordered by token, and by wave.

    Tokens are random, so that the order of rows says nothing, whatever the files are called and whenever they came.

    A file is refused, and the rest goes on, if it is not a report of this study, schema and mechanism, was
    changed, holds an impossible value, or comes from a participant who was there before, in the same wave.
    ``table`` is a CSV file with COLUMNS that says of every file what became of it and why. Rows are labelled with the
    participants' tokens and keep their own level and covariates. Nothing in memory grows with the number of reports
    except tokens, levels, covariates and row lengths; the counts wait in temporary files beside ``output``.

    Raises ValueError if no report is accepted, after writing the table; OSError if a file cannot be written.
    """
    with ExitStack() as stack:
        rows = Rows(study, Path(output).parent, stack)
        seen: dict[tuple[bytes, str | None], str] = {}
        fields: Counter[str] = Counter()
        sheet = stack.enter_context(replacing(table))
        writer = csv.writer(
            stack.enter_context(open(sheet, "w", encoding="utf-8", errors="backslashreplace", newline=""))
        )
        writer.writerow([*COLUMNS, *(["wave"] if study.waves else [])])
        for file in files:
            name = file.name if isinstance(file, Held) else os.fspath(file)
            try:
                found = _read(file, study, name)
                _refuse_again(found, seen, name)
            except RefusedError as error:
                fields[error.field.partition("[")[0]] += 1
                told = (cell(error.field), cell(error.rule))
                writer.writerow((cell(name), REFUSED, "", "", "", "", *told))
                continue
            except OSError as error:
                fields["the file"] += 1
                writer.writerow(
                    (cell(name), REFUSED, "", "", "", "", "the file", f"must be readable, got {error.strerror}")
                )
                continue
            rows.add(found)
            numbers = found.level.numbers()
            level = [numbers.get(number, "") for number in ("epsilon", "precision", "rho")]
            wave = [] if found.wave is None else [cell(found.wave)]
            writer.writerow((cell(name), ACCEPTED, found.participant, *level, "", "", *wave))
        if rows.tokens:
            rows.write(output)
    if not rows.tokens:
        raise ValueError(f"at least one report must be accepted, got none; {table} gives the reasons")
    return Collected(len(rows.tokens), fields.total(), fields)


def _read(file: str | os.PathLike[str] | Held, study: Study, name: str) -> Report:
    if isinstance(file, Held):
        return report.decode(file.content, study, name)
    return report.load(name, study)


def _refuse_again(found: Report, seen: dict[tuple[bytes, str | None], str], name: str) -> None:
    """Refuses a second report with a token that was accepted, in the same wave; the first one stays."""
    key = bytes.fromhex(found.participant), found.wave
    if key in seen:
        raise RefusedError(name, "participant", f"must be new, got the participant of {seen[key]} again")
    seen[key] = name


def report_files(paths: Iterable[Path]) -> list[str]:
    """The files themselves; for a directory, all that is in it, by name, except hidden ones."""
    found: list[str] = []
    for path in paths:
        if path.is_dir():
            with os.scandir(path) as entries:
                found += sorted(entry.path for entry in entries if not entry.name.startswith("."))
        else:
            found.append(os.fspath(path))
    return found


def is_description(file: str) -> bool:
    """Whether a file is the description of a study, which is no report; its format is named near its beginning."""
    if not os.path.isfile(file):
        return False
    try:
        with open(file, "rb") as opened:
            return f'"{study_file.FORMAT}"'.encode() in opened.read(_BEGINNING)
    except OSError:
        return False


class Rows:
    """The accepted reports on their way into a release file, ordered by token: counts on disk, the rest in memory.

    Reports cut at zero with one axis become a sparse matrix of the positive ones; others stay dense.
    """

    def __init__(self, study: Study, folder: Path, stack: ExitStack) -> None:
        self._study = study
        self._sparse = study.truncated and len(study.shape) == 1
        names = ("data", "indices") if self._sparse else ("reports",)
        self._spools: dict[str, BinaryIO] = {
            name: stack.enter_context(tempfile.TemporaryFile(dir=folder, prefix=".collect"))  # noqa: SIM115
            for name in names
        }
        self._extremes = dict.fromkeys(names, (0, 0))
        self._ends = array("q", [0])
        self._levels: dict[Level, int] = {}
        self._level_of_row = array("q")
        self._waves = array("q")
        self._covariates: list[tuple[str, ...]] = []
        self.tokens: list[str] = []

    def add(self, found: Report) -> None:
        """Appends one report as a row."""
        values = np.array(found.values, dtype="<i8")
        if self._sparse:
            places = np.flatnonzero(values)
            self._spool("data", values[places])
            self._spool("indices", places)
            self._ends.append(self._ends[-1] + places.size)
        else:
            self._spool("reports", values)
        self._level_of_row.append(self._levels.setdefault(found.level, len(self._levels)))
        self._covariates.append(found.covariates)
        self.tokens.append(found.participant)
        if found.wave is not None:
            self._waves.append(self._study.waves.index(found.wave))

    def _spool(self, name: str, values: np.ndarray) -> None:
        low, high = self._extremes[name]
        if values.size:
            self._extremes[name] = (min(low, int(values.min())), max(high, int(values.max())))
        self._spools[name].write(values.astype("<i8").tobytes())

    def write(self, output: str | os.PathLike[str]) -> None:
        """Writes the release file, the same bytes as Release.save would write."""
        order = sorted(range(len(self.tokens)), key=self._place)
        used = dict.fromkeys(self._level_of_row[row] for row in order)
        place, levels = {level: i for i, level in enumerate(used)}, list(self._levels)
        names = self._study.waves
        waves = Waves(names, tuple(self._waves[row] for row in order)) if names else None
        extras = Extras(self._beside(order), waves)
        meta = _format.description(
            (len(self.tokens), *self._study.shape),
            tuple(levels[level].mechanism for level in used),
            (tuple(self.tokens[row] for row in order), *self._study.labels),
            stored=self._ends[-1] if self._sparse else None,
            truncated=self._study.truncated,
            simulated=False,
            per_row=len(self._levels) > 1,
            extras=extras,
        )
        held = {
            "indptr": array("q", accumulate((self._length(row) for row in order), initial=0)),
            "mechanism_of_row": array("q", (place[self._level_of_row[row]] for row in order)),
        } | extras.arrays(1 + len(self._study.shape))
        members: dict[str, bytes | _archive.Streamed] = {_format.META: _format.canonical(meta)}
        for name, lengths in _format.array_shapes(meta).items():
            if name in held:
                members[f"{name}.npy"] = _npy.encode(held[name], lengths)
            else:
                n_bytes = _npy.width(*self._extremes[name])
                pieces = chain([_npy.header(lengths, n_bytes)], self._rows(name, order, n_bytes))
                members[f"{name}.npy"] = _archive.Streamed(_npy.size(lengths, n_bytes), pieces)
        _archive.write(output, members)

    def _beside(self, order: list[int]) -> RowCovariates | None:
        """The covariates of the rows in this order, if the study has any."""
        asked = self._study.covariates
        return RowCovariates(asked, tuple(self._covariates[row] for row in order)) if asked else None

    def _place(self, row: int) -> tuple[str, int]:
        """By what rows are ordered: the token, then the wave."""
        return self.tokens[row], self._waves[row] if self._waves else 0

    def _length(self, row: int) -> int:
        """How many values are kept of a row."""
        return self._ends[row + 1] - self._ends[row] if self._sparse else self._study.cells

    def _rows(self, name: str, order: list[int], n_bytes: int) -> Iterator[bytes]:
        """The values of every row in this order, about as many at a time as a piece holds."""
        spool, pieces, held = self._spools[name], [], 0
        for row in order:
            spool.seek(8 * (self._ends[row] if self._sparse else row * self._study.cells))
            piece = np.frombuffer(spool.read(8 * self._length(row)), dtype="<i8")
            pieces.append(piece.astype(f"<i{n_bytes}").tobytes())
            held += len(pieces[-1])
            if held >= _PIECE:
                yield b"".join(pieces)
                pieces, held = [], 0
        yield b"".join(pieces)
