"""What leaves the owner's hands: noisy counts, and everything that was done to them."""

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from countveil.privacy import _archive, _format, _npy
from countveil.privacy._html import card
from countveil.privacy.errors import ReleaseError
from countveil.privacy.level import PrivacyLevel, short
from countveil.privacy.noise import MIN_RATE

Labels = tuple[tuple[str, ...] | None, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """Noisy counts with the promise that was kept in making them.

        reports = counts + tau   (or max(0, counts + tau)),   P(tau) = (1 - alpha)/(1 + alpha) alpha^|tau|

    ``reports`` is a read-only int64 array (rows first), a read-only scipy.sparse.csr_array of the positive
    reports in the narrowest of int16, int32 and int64 that holds them (``astype("int64")`` before you multiply
    them with each other), or nested lists where NumPy is not installed; ``levels`` is one PrivacyLevel, or one
    a row; ``labels`` holds a tuple of strings or None for each axis. Rows are records, and labels of the other
    axes are the schema.

    Raises ReleaseError (a ValueError) if the parts do not fit each other.
    Truncation loses nothing for a Poisson model, whose likelihood depends on a non-positive report only
    through its being non-positive. Source: Schein et al. (2019), Theorem 1.
    """

    reports: Any
    levels: PrivacyLevel | tuple[PrivacyLevel, ...]
    truncated: bool
    labels: Labels = ()
    simulated: bool = False

    mechanism: ClassVar[str] = _format.MECHANISM
    mechanism_version: ClassVar[int] = _format.MECHANISM_VERSION

    def __post_init__(self) -> None:
        for name in ("truncated", "simulated"):
            if type(getattr(self, name)) is not bool:
                raise ReleaseError(f"{name} must be True or False, got {getattr(self, name)!r}")
        reports, shape = _frozen(self.reports, self.truncated)
        object.__setattr__(self, "reports", reports)
        object.__setattr__(self, "labels", self.labels or (None,) * len(shape))
        object.__setattr__(self, "_shape", shape)
        if not isinstance(self.levels, PrivacyLevel):
            levels = tuple(self.levels) if isinstance(self.levels, Iterable) else ()
            object.__setattr__(self, "levels", levels)
            if len(levels) != shape[0] or not all(isinstance(level, PrivacyLevel) for level in levels):
                raise ReleaseError(f"levels must be one, or one for each of {shape[0]} rows, got others")
        weakest = min(level.rate for level in self._known_levels)
        if weakest < MIN_RATE:
            raise ReleaseError(f"levels must have a rate of at least 2**-40, got {float(weakest):.6g}")
        _check_labels(self.labels, shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``reports``."""
        return self._shape  # type: ignore[attr-defined]

    @property
    def alpha(self) -> Any:
        """exp(-epsilon/N): a float, or one for each row (a float64 array; a tuple without NumPy)."""
        if isinstance(self.levels, PrivacyLevel):
            return self.levels.alpha
        known = {level: level.alpha for level in set(self.levels)}
        values = tuple(known[level] for level in self.levels)
        numpy = _npy.optional("numpy")
        return values if numpy is None else numpy.array(values, dtype=numpy.float64)

    @property
    def epsilon(self) -> Fraction | tuple[Fraction, ...]:
        """epsilon, exactly: one, or one for each row."""
        if isinstance(self.levels, PrivacyLevel):
            return self.levels.epsilon
        return tuple(level.epsilon for level in self.levels)

    @property
    def precision(self) -> Fraction | tuple[Fraction, ...]:
        """N, exactly: one, or one for each row."""
        if isinstance(self.levels, PrivacyLevel):
            return self.levels.precision
        return tuple(level.precision for level in self.levels)

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
        """SHA-256 of the schema (sizes and labels of all axes but the rows), fixed before data is seen."""
        return _format.schema_hash(self.shape, self.labels)

    def describe(self) -> str:
        """In plain words: what this is, what was done to it, what that protects and what it does not."""
        size = " x ".join(str(length) for length in self.shape)
        kind = (
            "truncated at zero, which loses nothing for the models here"
            if self.truncated
            else "signed, so that sums of them are unbiased"
        )
        warning = "SIMULATED research noise from a seeded generator: this release protects nobody. "
        return (
            (warning if self.simulated else "")
            + f"{size} counts with {self.mechanism} noise (version {self.mechanism_version}), {kind}. "
            + self._describe_levels()
            + (f" {published}" if (published := describe_labels(self.labels)) else "")
            + (" None of this holds for simulated noise." if self.simulated else "")
        )

    @property
    def _known_levels(self) -> set[PrivacyLevel]:
        return {self.levels} if isinstance(self.levels, PrivacyLevel) else set(self.levels)

    def _describe_levels(self) -> str:
        if isinstance(self.levels, PrivacyLevel):
            weakest, opening = self.levels, ""
        else:
            weakest = max(self._known_levels, key=lambda level: level.rate)
            lowest = short(min(level.rate for level in self._known_levels))
            opening = (
                f"Every row has its own level, epsilon/N from {lowest} to {short(weakest.rate)}; "
                "what follows is said of the least protected. "
            )
        deviation = math.sqrt(2 * weakest.alpha) / -math.expm1(-min(float(weakest.rate), 1000.0))
        return (
            f"{opening}epsilon is {short(weakest.epsilon)} at N = {short(weakest.precision)}, so alpha is "
            f"{weakest.alpha:.4g} and the noise has standard deviation {deviation:.3g}. {weakest.describe()} "
            f"A true zero is reported as positive with probability {weakest.false_positive_rate:.2%}."
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the release to one file, atomically: a failure leaves what was there.

        The file is a zip of .npy arrays and a meta.json, readable by ``np.load(path, allow_pickle=False)``,
        written with the standard library alone. The same release gives the same bytes; they do not tell when
        they were written. Its last bytes are the SHA-256 of all bytes before, which detects damage and casual
        tampering; it is no signature.
        """
        _archive.write(path, _format.members(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Release":
        """Reads a release, checking every byte against the seal and every part against the others.

        Raises ReleaseError, which names the file and the rule, if anything is amiss; FileNotFoundError if
        there is no file.
        """
        reader = _archive.Reader(path)
        parts = _format.read(reader)
        try:
            return cls(**parts)
        except ReleaseError as error:
            raise reader.fault(f"must hold a valid release: {error}") from error

    def __repr__(self) -> str:
        size = " x ".join(str(length) for length in self.shape)
        kind = ("truncated" if self.truncated else "signed") + (", simulated" if self.simulated else "")
        if isinstance(self.levels, PrivacyLevel):
            level = f"epsilon={short(self.levels.epsilon)}, precision={short(self.levels.precision)}"
        else:
            level = "one level per row"
        return f"<Release: {size} reports, {kind}, {level}>"

    def _repr_html_(self) -> str:
        """Sizes and noise only, never a report or a label."""
        alphas = sorted({level.alpha for level in self._known_levels})
        noise = f"{alphas[0]:.4g}" if len(alphas) == 1 else f"{alphas[0]:.4g} to {alphas[-1]:.4g}, by row"
        rows = [
            ("reports", " × ".join(f"{length:,}" for length in self.shape)),
            ("kind", "truncated at zero" if self.truncated else "signed"),
            ("noise", f"{self.mechanism}, alpha {noise}{', SIMULATED' if self.simulated else ''}"),
            ("labels", ", ".join("no" if names is None else f"{len(names):,}" for names in self.labels)),
        ]
        return card("Release", rows, self.describe())


def describe_labels(labels: Labels) -> str:
    """One sentence that counts the labels, which no noise protects; empty where there are none."""
    kinds = ["row label", "column label", *(f"label of axis {axis}" for axis in range(2, len(labels)))]
    counted = [
        f"{len(names)} {kind if len(names) == 1 else kind.replace('label', 'labels', 1)}"
        for names, kind in zip(labels, kinds, strict=False)
        if names is not None
    ]
    if not counted:
        return ""
    said = " and ".join(counted) if len(counted) < 3 else f"{', '.join(counted[:-1])} and {counted[-1]}"
    verb = (
        "is published as it is"
        if said.startswith("1 ") and len(counted) == 1
        else "are published as they are"
    )
    return f"{said} {verb}, without noise."


def _frozen(reports: Any, truncated: bool) -> tuple[Any, tuple[int, ...]]:
    """The reports, read-only where their container allows it, and their shape; raises ReleaseError."""
    if isinstance(reports, list | tuple):
        return _frozen_lists(reports, truncated)
    numpy = _npy.optional("numpy")
    if numpy is not None and isinstance(reports, numpy.ndarray):
        if reports.dtype.kind not in "iu" or reports.ndim < 1 or reports.size == 0:
            raise ReleaseError(
                f"reports must be integers with at least one row and column, got {reports.dtype} "
                f"of shape {reports.shape}"
            )
        frozen = reports.astype(numpy.int64, order="C", copy=False).view()
        _check_sign(int(frozen.min()), truncated)
        frozen.flags.writeable = False
        return frozen, frozen.shape
    if hasattr(reports, "indptr"):
        return _frozen_csr(reports, truncated)
    raise ReleaseError(f"reports must be an array, a csr_array or nested lists, got {type(reports).__name__}")


def _frozen_lists(reports: Any, truncated: bool) -> tuple[Any, tuple[int, ...]]:
    shape: tuple[int, ...] = ()
    flat: Any = [reports]
    while flat and all(isinstance(part, list | tuple) for part in flat):
        if not flat[0] or any(len(part) != len(flat[0]) for part in flat):
            raise ReleaseError("reports must be rectangular and not empty, got rows of other lengths")
        shape += (len(flat[0]),)
        flat = [value for part in flat for value in part]
    if not all(type(value) is int and -(2**63) <= value < 2**63 for value in flat):
        raise ReleaseError("reports must be 64-bit whole numbers, got something else")
    _check_sign(min(flat), truncated)
    return reports, shape


def _frozen_csr(reports: Any, truncated: bool) -> tuple[Any, tuple[int, ...]]:
    if reports.format != "csr" or reports.ndim != 2 or reports.dtype.kind not in "iu":
        raise ReleaseError(f"sparse reports must be an integer csr_array, got {type(reports).__name__}")
    if not truncated:
        raise ReleaseError("sparse reports must be truncated, got signed ones")
    if 0 in reports.shape:
        raise ReleaseError(f"reports must have at least one row and one column, got shape {reports.shape}")
    if not reports.has_canonical_format:
        raise ReleaseError("sparse reports must have sorted columns without duplicates, got others")
    if reports.nnz and reports.data.min() <= 0:
        raise ReleaseError("sparse reports must store positive reports only, got one that is not")
    frozen = type(reports)(reports, copy=False)
    index = "int32" if max(reports.nnz, *reports.shape) < 2**31 else "int64"
    for part in ("data", "indices", "indptr"):
        values = getattr(frozen, part)
        kept = _npy.narrowed(values) if part == "data" else values.astype(index, copy=False)
        view = kept.view()
        view.flags.writeable = False
        setattr(frozen, part, view)
    return frozen, tuple(int(length) for length in frozen.shape)


def _check_sign(smallest: int, truncated: bool) -> None:
    if truncated and smallest < 0:
        raise ReleaseError("truncated reports must not be negative, got one that is")


def _check_labels(labels: Labels, shape: tuple[int, ...]) -> None:
    if len(labels) != len(shape):
        raise ReleaseError(f"labels must have one entry for each of {len(shape)} axes, got {len(labels)}")
    for axis, names in enumerate(labels):
        if names is None:
            continue
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            raise ReleaseError(f"labels of axis {axis} must be a tuple of strings, got otherwise")
        if len(names) != shape[axis]:
            raise ReleaseError(f"labels of axis {axis} must number {shape[axis]}, got {len(names)}")
        if axis > 0 and len(set(names)) != len(names):
            raise ReleaseError(f"labels of axis {axis} must differ from each other, got one twice")
        place = _format.unwritable(names)
        if place is not None:
            raise ReleaseError(
                f"labels of axis {axis} must be {_format.WRITABLE}, got otherwise in entry {place}"
            )
