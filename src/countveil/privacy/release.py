"""What leaves the owner's hands: noisy counts, and everything that was done to them."""

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from countveil.privacy import _archive, _cells, _format, _npy
from countveil.privacy._cells import ByCell
from countveil.privacy._extras import NO_EXTRAS, Extras
from countveil.privacy._reports import Labels, check_directed, check_labels, describe_labels, frozen
from countveil.privacy._text import card, first_wrong, shown
from countveil.privacy.errors import ReleaseError
from countveil.privacy.exact import short
from countveil.privacy.level import Level, PrivacyLevel
from countveil.privacy.mechanisms import Interval, Mechanism, TwoSidedGeometric
from countveil.privacy.mechanisms.hiding import describe_ranges

_NETWORKS = {
    None: "",
    True: "Rows and columns are actors, and the two directions of a pair are counts of their own. ",
    False: "Rows and columns are actors, and each pair is reported once, above the diagonal. ",
}

Given: TypeAlias = Mechanism | Level
"""A mechanism, or the level that it keeps."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Release:
    """Noisy counts with the mechanism that made them, and the promise that it keeps.

        reports = counts + tau   (or max(0, counts + tau)),   P(tau) = (1 - alpha)/(1 + alpha) alpha^|tau|

    or with discrete Gaussian tau, P(tau) ~ exp(-tau^2/(2 sigma^2)), and never cut at zero.
    ``reports`` is a read-only int64 array (rows first), a read-only scipy.sparse.csr_array of the positive
    reports in the narrowest of int16, int32 and int64 that holds them (``astype("int64")`` before you multiply
    them with each other), or nested lists where NumPy is not installed; ``mechanism`` is one Mechanism, or one
    per row, and may be given as PrivacyLevels, for the noise that keeps them; ``labels`` holds a tuple of strings
    or None for each axis. Rows are records, and labels of the other axes are the schema. ``directed`` is None except
    for networks, whose rows and columns are the same actors: True where the two directions of a pair are counts of
    their own, False where each pair is reported once, above the diagonal. ``extras`` are what few releases have:
    covariates, waves, totals, a mask, exposures and names of axes.

    ``source`` is None where the owner's side drew the noise. Reports that somebody else published are *imported*
    (``countveil.import_reports``): ``source`` is one line on where they are from, the mechanism may be any of
    ``countveil.mechanisms``, and whoever imported them vouches for it. Where they are real numbers, or some counts have
    no report (NaN), ``reports`` is float64. Mechanisms may differ by cell, as a ``ByCell``.

    Raises ReleaseError (a ValueError) if the parts do not fit each other.
    Truncation loses nothing for a Poisson model, whose likelihood depends on a non-positive report only
    through the fact that it is not positive. Source: Schein et al. (2019), Theorem 1.
    """

    reports: Any
    mechanism: Mechanism | tuple[Mechanism, ...] | ByCell
    truncated: bool
    labels: Labels
    simulated: bool
    directed: bool | None
    source: str | None
    extras: Extras

    def __init__(
        self,
        reports: Any,
        mechanism: Given | Iterable[Given] | ByCell,
        truncated: bool,
        labels: Labels = (),
        simulated: bool = False,
        *,
        directed: bool | None = None,
        source: str | None = None,
        extras: Extras = NO_EXTRAS,
    ) -> None:
        for name, value in (("truncated", truncated), ("simulated", simulated)):
            if type(value) is not bool:
                raise ReleaseError(f"{name} must be True or False, got {value!r}")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "source", checked_source(source))
        kept, shape = frozen(reports, truncated, real=source is not None)
        object.__setattr__(self, "reports", kept)
        object.__setattr__(self, "labels", labels or (None,) * len(shape))
        object.__setattr__(self, "_shape", shape)
        object.__setattr__(self, "mechanism", _mechanisms(mechanism, shape, source))
        if source is not None:
            check_kinds(kept, self.mechanism, shape)
        if truncated and source is None and (cut := [each for each in self.known_mechanisms if each.signed_only]):
            raise ReleaseError(f"truncated must be False with {cut[0].title}, got True")
        check_labels(self.labels, shape)
        check_directed(directed, kept, shape)
        object.__setattr__(self, "directed", directed)
        if not isinstance(extras, Extras):
            raise ReleaseError(
                f"extras must be the extras of a release, such as other.extras, got a {type(extras).__name__}"
            )
        if any(part is not None for part in extras):
            extras = extras.checked(kept, shape, self.row_labels, directed, source)
        object.__setattr__(self, "extras", extras)
        if isinstance(self.mechanism, ByCell) and (directed is not None or extras.waves is not None):
            raise ReleaseError("releases of networks and of studies in waves cannot have mechanisms by cell")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``reports``."""
        return self._shape  # type: ignore[attr-defined]

    @cached_property
    def levels(self) -> Level | tuple[Level, ...]:
        """The level that the mechanism keeps: one, or one per row; ReleaseError if it keeps none.

        A ``PrivacyLevel``, or that of ``PrivacyLevel.zcdp(rho)`` for discrete Gaussian noise.
        """
        known = self._known_levels
        if known is None:
            by_cell = isinstance(self.mechanism, ByCell)
            kept = "of mechanisms by cell" if by_cell else f"{self._title}, which keeps none"
            raise ReleaseError(f"levels must be kept by the mechanism, got {kept}")
        if isinstance(self.mechanism, Mechanism):
            return known[self.mechanism]
        assert isinstance(self.mechanism, tuple)  # no level is known of mechanisms by cell
        return tuple(known[each] for each in self.mechanism)

    @property
    def alpha(self) -> Any:
        """exp(-epsilon/N): a float, or one per row (a float64 array; a tuple without NumPy).

        Raises ReleaseError if the mechanism is not two-sided geometric noise.
        """
        levels = self._epsilon_levels("alpha")
        if isinstance(levels, PrivacyLevel):
            return levels.alpha
        known = {level: level.alpha for level in set(levels)}
        values = tuple(known[level] for level in levels)
        numpy = _npy.optional("numpy")
        return values if numpy is None else numpy.array(values, dtype=numpy.float64)

    @property
    def epsilon(self) -> Fraction | tuple[Fraction, ...]:
        """epsilon, exactly: one, or one per row; ReleaseError if the mechanism keeps none."""
        levels = self._epsilon_levels("epsilon")
        return levels.epsilon if isinstance(levels, PrivacyLevel) else tuple(level.epsilon for level in levels)

    @property
    def precision(self) -> Fraction | tuple[Fraction, ...]:
        """N, exactly: one, or one per row; ReleaseError if the mechanism keeps no epsilon at an N."""
        levels = self._epsilon_levels("precision")
        return levels.precision if isinstance(levels, PrivacyLevel) else tuple(level.precision for level in levels)

    def _epsilon_levels(self, wanted: str) -> PrivacyLevel | tuple[PrivacyLevel, ...]:
        """``levels`` where they promise epsilon; ReleaseError, which names what was wanted, where they promise rho."""
        levels = self.levels
        if isinstance(levels, PrivacyLevel):
            return levels
        every = (levels,) if isinstance(levels, Level) else levels
        kept = tuple(level for level in every if isinstance(level, PrivacyLevel))
        if len(kept) < len(every):
            raise ReleaseError(f"{wanted} must be stated by the mechanism, got {self._title}, which states rho")
        return kept

    @property
    def row_labels(self) -> tuple[str, ...] | None:
        """The names of the rows, if they have any."""
        return self.labels[0]

    @property
    def column_labels(self) -> tuple[str, ...] | None:
        """The names along the second axis, if there is one and it has any."""
        return self.labels[1] if len(self.labels) > 1 else None

    @property
    def schema_hash(self) -> str:
        """SHA-256 of the schema (sizes and labels of all axes except the rows), fixed before data is seen."""
        return _format.schema_hash(self.shape, self.labels)

    def describe(self) -> str:
        """In plain words: what this is, what was done to it, what that protects and what it does not."""
        size = " x ".join(str(length) for length in self.shape)
        warning = "SIMULATED research noise from a seeded generator: this release protects nobody. "
        return (
            (warning if self.simulated else "")
            + f"{size} counts with {self._title}{self._describe_kind()}. "
            + in_words(self.source)
            + self.extras.cells_in_words(len(self.shape))
            + _NETWORKS[self.directed]
            + self._describe_mechanisms()
            + self.extras.rows_in_words(self.row_labels, self.levels if self._known_levels else None)
            + (f" {published}" if (published := describe_labels(self.labels, self.extras.axis_names)) else "")
            + (" None of this holds for simulated noise." if self.simulated else "")
        )

    def with_axis_names(self, names: Sequence[str | None]) -> "Release":
        """The same release of a table that calls its axes so, None for an axis without a name."""
        extras = self.extras._replace(axis_names=tuple(names) if any(names) else None)
        return Release(
            self.reports,
            self.mechanism,
            self.truncated,
            self.labels,
            self.simulated,
            directed=self.directed,
            source=self.source,
            extras=extras,
        )

    @cached_property
    def known_mechanisms(self) -> tuple[Mechanism, ...]:
        """The different mechanisms, in order of first use."""
        if isinstance(self.mechanism, Mechanism):
            return (self.mechanism,)
        if isinstance(self.mechanism, ByCell):
            return self.mechanism.mechanisms
        return tuple(dict.fromkeys(self.mechanism))

    @cached_property
    def _known_levels(self) -> dict[Mechanism, Level] | None:
        """The level of each different mechanism; None if one of them keeps none, or they differ from cell to cell."""
        if isinstance(self.mechanism, ByCell):
            return None
        found = {each: level for each in self.known_mechanisms if (level := PrivacyLevel.kept_by(each)) is not None}
        return found if len(found) == len(self.known_mechanisms) else None

    @cached_property
    def _weakest(self) -> Level | None:
        """The level that protects least, where all are of one kind."""
        levels = list((self._known_levels or {}).values())
        return max(levels, key=lambda level: level.loss) if len(set(map(type, levels))) == 1 else None

    @property
    def _title(self) -> str:
        """What was done, as in "counts with two-sided geometric noise (version 1)"."""
        return " or ".join(dict.fromkeys(f"{each.title} (version {each.version})" for each in self.known_mechanisms))

    def _describe_kind(self) -> str:
        """Whether reports are cut at zero, and what that means where it is known; empty where nothing is known."""
        if self.source is not None and not all(isinstance(each, TwoSidedGeometric) for each in self.known_mechanisms):
            return ""
        return f", {self._describe_cut()}"

    def _describe_cut(self) -> str:
        if self.truncated:
            lossless = all(each.lossless_at_zero for each in self.known_mechanisms)
            return "truncated at zero" + (", which loses nothing for the models here" if lossless else "")
        unbiased = all(each.unbiased for each in self.known_mechanisms)
        return "signed" + (", so that sums of them are unbiased" if unbiased else "")

    def _describe_mechanisms(self) -> str:
        """What one mechanism does and protects; where rows differ, that of the least protected level."""
        if isinstance(self.mechanism, Mechanism):
            return self.mechanism.describe()
        intervals = [each for each in self.known_mechanisms if isinstance(each, Interval)]
        if len(intervals) == len(self.known_mechanisms):
            return describe_ranges(intervals)
        if self._known_levels is None or self._weakest is None:
            kept = {each: PrivacyLevel.kept_by(each) for each in self.known_mechanisms}
            lost = {each: math.inf if level is None else level.kept_rho for each, level in kept.items()}
            least = max(self.known_mechanisms, key=lambda each: lost[each])
            by_cell = isinstance(self.mechanism, ByCell)
            which = "Cells have different mechanisms" if by_cell else "Every row has its own mechanism"
            return f"{which}; what follows is said of the least protected. {least.describe()}"
        lowest, highest = (short(min(level.loss for level in self._known_levels.values())), short(self._weakest.loss))
        loss = "epsilon/N" if isinstance(self._weakest, PrivacyLevel) else "rho"
        return (
            f"Every row has its own level, {loss} from {lowest} to {highest}; "
            f"what follows is said of the least protected. {self._weakest.mechanism.describe()}"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the release to one file, atomically: a failure leaves what was there.

        The file is a zip of .npy arrays and a meta.json, readable by ``np.load(path, allow_pickle=False)``,
        written with the standard library alone. The same release gives the same bytes; they do not tell when
        they were written. Its last bytes are the SHA-256 of all bytes before, which detects damage and casual
        tampering; it is not a signature.
        """
        _archive.write(path, _format.members(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Release":
        """Reads a release, checking every byte against the seal and every part against the others.

        Raises ReleaseError, which names the file and the rule, if anything is amiss; FileNotFoundError if
        there is no file.
        """
        return cls._read(_archive.Reader(path))

    @classmethod
    def _read(cls, reader: _archive.Reader) -> "Release":
        """The release in a file whose seal holds; raises ReleaseError."""
        parts = _format.read(reader)
        try:
            return cls(**parts)
        except ReleaseError as error:
            raise reader.fault(f"must hold a valid release: {error}") from error

    def __repr__(self) -> str:
        size = " x ".join(str(length) for length in self.shape)
        cut = ("truncated" if self.truncated else "signed") if self._describe_kind() else ""
        kinds = (cut, "simulated" if self.simulated else "", "" if self.source is None else "imported")
        kind = ", ".join(filter(None, kinds))
        if self._known_levels is None:
            noise = self._said
        elif isinstance(self.levels, Level):
            noise = ", ".join(f"{name}={short(value)}" for name, value in self.levels.numbers().items())
        else:
            noise = "one level per row"
        return f"<Release: {size} reports, {kind}, {noise}>"

    @property
    def _said(self) -> str:
        """The mechanism as ``repr`` shows it."""
        if isinstance(self.mechanism, ByCell):
            return "mechanisms by cell"
        return repr(self.mechanism) if isinstance(self.mechanism, Mechanism) else "one mechanism per row"

    def _repr_html_(self) -> str:
        """Sizes and noise only, never a report or a label."""
        rows = [
            ("reports", " × ".join(f"{length:,}" for length in self.shape)),
            *([("kind", "truncated at zero" if self.truncated else "signed")] if self._describe_kind() else []),
            ("noise", self._strength() + (", SIMULATED" if self.simulated else "")),
            *([] if self.source is None else [("imported from", self.source)]),
            ("labels", ", ".join("no" if names is None else f"{len(names):,}" for names in self.labels)),
        ]
        return card("Release", rows, self.describe())

    def _strength(self) -> str:
        """The mechanism by name, and alpha or sigma, or their range, where there is one."""
        names = " or ".join(dict.fromkeys(each.name for each in self.known_mechanisms))
        if self._weakest is None:
            return names
        kind = "alpha" if isinstance(self._weakest, PrivacyLevel) else "sigma"
        strengths = sorted({float(getattr(each, kind)) for each in self.known_mechanisms})
        if len(strengths) == 1:
            return f"{names}, {kind} {strengths[0]:.4g}"
        return f"{names}, {kind} {strengths[0]:.4g} to {strengths[-1]:.4g}, by row"


def _mechanisms(given: Any, shape: tuple[int, ...], source: str | None) -> Mechanism | tuple[Mechanism, ...] | ByCell:
    """The mechanism, one per row, or those of cells, that a release may state; raises ReleaseError for others."""
    if isinstance(given, ByCell):
        return _cells.checked(given, shape, source)
    rows, one, imported = shape[0], isinstance(given, Given), source is not None
    rule = f"mechanism must be one, or one for each of {rows} rows"
    if not one and not isinstance(given, Iterable):
        raise ReleaseError(f"{rule}, got {shown(given)}")
    listed = (given,) if one else tuple(given)
    if wrong := first_wrong(listed, lambda each: isinstance(each, Given)):
        raise ReleaseError(f"{rule}, got {wrong}")
    if not one and len(listed) != rows:
        raise ReleaseError(f"{rule}, got {len(listed)}")
    known = {each: each.mechanism if isinstance(each, Level) else each for each in set(listed)}
    for each in known.values() if not imported else ():
        try:
            each.check_released()
        except ValueError as error:
            raise ReleaseError(str(error)) from None
    return known[given] if one else tuple(known[each] for each in listed)


# What releases of reports that somebody else published have in addition: a source, and reports of any
# mechanism.
#
# Only what needs no law of a mechanism is checked here, with the standard library alone: which reports are
# real numbers, and which counts may have none. Whether a mechanism can have made a report is checked where
# its law is known, when the reports are imported and again whenever they are read for a fit.

LONGEST_SOURCE = 200
"""Characters of the line that says where imported reports are from."""


def checked_source(source: Any) -> str | None:
    """One line of text, or None; raises ReleaseError for anything else."""
    if source is None:
        return None
    if not isinstance(source, str) or not source.strip() or len(source) > LONGEST_SOURCE:
        raise ReleaseError(f"source must be a line of 1 to {LONGEST_SOURCE} characters, got {ascii(source)[:60]}")
    if not source.isprintable():
        raise ReleaseError(f"source must be one line of printable text, got {ascii(source)[:60]}")
    return source


def in_words(source: str | None) -> str:
    """Who vouches for imported reports, and that nobody else does; empty for others."""
    if source is None:
        return ""
    return (
        f"Imported from: {source}. Whoever imported them vouches for the mechanism; countveil "
        "neither drew the noise nor can check how the reports were made. "
    )


def check_kinds(reports: Any, mechanism: Mechanism | tuple[Mechanism, ...] | ByCell, shape: tuple[int, ...]) -> None:
    """Raises ReleaseError for NaN where every count has a report, and for fractions where reports are whole.

    ``reports`` is an array or nested lists, or sparse, whose reports are whole.
    """
    if hasattr(reports, "indptr") or getattr(getattr(reports, "dtype", None), "kind", "f") == "i":
        return
    for each, part in _parts(reports, mechanism, shape):
        absent, fraction = _absent_and_fraction(part)
        if absent and not getattr(each, "absent", False):
            raise ReleaseError(f"reports must not be missing, because {each.name} gives every count a report, got NaN")
        if fraction is not None and not getattr(each, "real", False):
            raise ReleaseError(f"reports must be whole numbers with {each.name}, got {fraction}")


def _parts(
    reports: Any, mechanism: Mechanism | tuple[Mechanism, ...] | ByCell, shape: tuple[int, ...]
) -> Iterator[tuple[Mechanism, Any]]:
    """Every different mechanism with its reports, as an array or nested lists."""
    if isinstance(mechanism, Mechanism):
        yield mechanism, reports
    elif isinstance(mechanism, ByCell):
        places, values = _cells.places_of(mechanism, shape), reports
        if not hasattr(values, "dtype"):
            values = _cells.flat(reports, len(shape))
            places = places.ravel().tolist() if hasattr(places, "ravel") else places
        for number, each in enumerate(mechanism.mechanisms):
            if hasattr(values, "dtype"):
                yield each, values[places == number]
            else:
                yield each, [value for value, own in zip(values, places, strict=True) if own == number]
    else:
        for each in dict.fromkeys(mechanism):
            chosen = [row for row, own in enumerate(mechanism) if own == each]
            yield each, reports[chosen] if hasattr(reports, "dtype") else [reports[row] for row in chosen]


def _absent_and_fraction(reports: Any) -> tuple[bool, float | None]:
    """Whether any report is NaN, and the first that is a fraction."""
    numpy = _npy.optional("numpy")
    if numpy is not None and isinstance(reports, numpy.ndarray):
        absent = numpy.isnan(reports)
        fractions = reports[~absent & (numpy.floor(reports) != reports)]
        return bool(absent.any()), float(fractions[0]) if fractions.size else None
    flat: list[Any] = list(reports)
    while isinstance(flat[0], list | tuple):
        flat = [value for part in flat for value in part]
    there = [value for value in flat if value == value]
    return len(there) < len(flat), next((value for value in there if math.floor(value) != value), None)
