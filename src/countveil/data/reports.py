"""Reports under any mechanism, as they were published: noisy, rounded, suppressed, or several of one count."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.data.beside import axes_of, in_order
from countveil.data.inputs import mask_of_release, release_labels
from countveil.data.matrices import check_mask, check_matrix, unwrap
from countveil.data.observations import Observations
from countveil.data.tables import cells_of_coordinates, cells_of_frame
from countveil.kernels.compiled import kernel
from countveil.kernels.report_kernels import GUESS, LEAST, MOST, ReportKernels
from countveil.kernels.windows import WindowLaw, moments
from countveil.likelihoods.negative_binomial import NegativeBinomialCell
from countveil.noise.any_mechanism import (
    AnyMechanismNoise,
    Said,
    all_said,
    check_possible,
    kernels_of,
    said_by,
)
from countveil.noise.reading import read_reports
from countveil.privacy import Release
from countveil.privacy.mechanisms import Mechanism, TwoSidedGeometric

NO_REPORT = -1
SHAPE = 0.5  # of the counts that estimates suppose where a report alone gives none; real counts are about so spread
ROUNDS = 30  # for the mean of these counts


class Layer(NamedTuple):
    """One report of every count, as it was given."""

    values: Any
    mechanism: Any
    mask: Any
    background: Any


class Numbered(NamedTuple):
    """Reports of a layer by number: ``number`` holds each cell's, NO_REPORT where there is none."""

    said: Said
    number: Any  # (D, V), or sparse without the cells that are known to be zero
    value: np.ndarray  # (n,) of every different report
    mechanism: np.ndarray  # (n,) the place of its mechanism among all of them


class Reports(Observations):
    """Reports of counts under any of ``countveil.mechanisms``, published by anybody.

    Args:
        values: (D, V) reports, or more axes for a tensor: dense array, pandas DataFrame (labels kept), scipy.sparse
            (cells that are not stored have the report ``background``), numpy.ma array (its mask is taken as ``mask``),
            AnnData object or ``CountTable``. NaN, None and pandas' NA mean that a count has no report because of what
            it is, where the mechanism has that (suppressed, below a threshold); otherwise they are refused.
        mechanism: what was done to the counts; one, or one for each row (a sequence or Series), or an array of them
            that broadcasts to the values. Two-sided geometric noise is read as ``PrivatizedCounts`` reads it.
        mask: (D, V) booleans, True where a cell is held out or missing for reasons that have nothing to do with its
            count; it leaves the likelihood altogether.
        background: the report of the cells that sparse values do not store; NaN if they have none.
        row_labels, column_labels, labels, row_offset, column_offset: as for ``PrivatizedCounts``.

    Raises:
        TypeError: something that is no mechanism, or values that are no numbers.
        ValueError: reports that the mechanism cannot have made; shapes, labels or offsets that do not fit.
    """

    kind: ClassVar[str] = "private"

    def __init__(
        self,
        values: Any,
        mechanism: Any,
        mask: Any = None,
        *,
        background: float = 0.0,
        row_labels: Sequence[str] | None = None,
        column_labels: Sequence[str] | None = None,
        labels: Sequence[Sequence[str] | None] | None = None,
        row_offset: Any = None,
        column_offset: Any = None,
    ) -> None:
        options = {"labels": labels, "row_offset": row_offset, "column_offset": column_offset}
        options |= {"row_labels": row_labels, "column_labels": column_labels}
        self._read([Layer(values, mechanism, mask, background)], options)

    def _read(self, layers: list[Layer], options: dict[str, Any]) -> None:
        self._layers, self._options = layers, options
        if len(layers) == 1 and isinstance(layers[0].mechanism, TwoSidedGeometric):
            values, mechanism, mask, background = layers[0]
            if background == 0.0:
                super().__init__(values, float(mechanism.alpha), mask, **options)
                return
        mechanisms: list[Mechanism] = []
        numbered, shape, found = [], None, dict(options)
        for layer in layers:
            values, hidden, mechanism, own = unlabelled(layer, options)
            shape = tuple(values.shape) if shape is None else shape
            if tuple(values.shape) != shape:
                raise ValueError(
                    f"values must have the shape of the first report {shape}, got {values.shape}"
                )
            numbered.append(number(values, mechanism, hidden, layer.background, mechanisms))
            found |= {name: names for name, names in own.items() if found[name] is None}
        codes, noise = coded(numbered, mechanisms)
        hidden = None if sp.issparse(codes) else codes == NO_REPORT
        super().__init__(codes, 1.0, hidden, noise=noise, **found)

    def also(self, values: Any, mechanism: Any, mask: Any = None, *, background: float = 0.0) -> "Reports":
        """The same counts with another report of each, independent of those before given the counts.

        Args are as for the class. A cell that is masked in one of the reports is known by the others alone.

        Raises:
            ValueError: another shape or other labels; reports that no count can have together with those before; data
                from which cells were hidden or rows taken.
        """
        if not hasattr(self, "_layers"):
            raise ValueError(
                "also must be called on reports as they were read, got some of their cells or rows"
            )
        more = Reports.__new__(Reports)
        more._read([*self._layers, Layer(values, mechanism, mask, background)], self._options)
        return more

    @classmethod
    def from_release(
        cls, release: Release, *, mask: Any = None, row_offset: Any = None, column_offset: Any = None
    ) -> "Reports":
        """The reports, mechanisms and labels of a ``Release``; mask and offsets as for the class."""
        if not isinstance(release, Release):
            raise TypeError(f"release must be a Release, got {type(release).__name__}")
        options = release_labels(release) | {"row_offset": row_offset, "column_offset": column_offset}
        found = cls(release.reports, release.mechanism, mask_of_release(release, mask), **options)
        found.simulated, found.directed = release.simulated, release.directed
        return found

    def __repr__(self) -> str:
        """Sizes and mechanisms only, never a report."""
        if not isinstance(self.noise, AnyMechanismNoise):
            return super().__repr__()
        masked = f", {self.n_masked} masked" if self.n_masked else ""
        several = "" if self.noise.one_report else ", several reports of a count"
        sizes = " x ".join(map(str, self.mode_shape))
        return f"Reports({sizes}, {self.noise.in_words(self.level_d)}{several}{masked})"

    def _copy(self) -> Any:
        other = super()._copy()
        other.__dict__.pop("_layers", None)
        return other

    @classmethod
    def from_coordinates(
        cls,
        coordinates: Any,
        values: Any,
        mechanism: Mechanism,
        shape: Sequence[int] | None = None,
        labels: Sequence[Sequence[str] | None] | None = None,
        *,
        background: float | None = None,
        **options: Any,
    ) -> "Reports":
        """Reports of some cells of an array with two axes or more; all others have the report ``background``.

        Args:
            coordinates: one vector of whole numbers from 0 for each axis, or an array (axes, cells).
            values: (cells,) reports; NaN as for the class.
            mechanism: one for all cells.
            shape: length of each axis; by default that of its labels, or what its largest coordinate requires.
            labels: a list or None for each axis.
            background: by default no report, where the mechanism has that, and 0 elsewhere.
            options by name: as for the class.

        Raises:
            ValueError: coordinates fractional, negative, out of range or of other lengths; a cell named twice; a shape
                or labels for another number of axes; and as the class.
        """
        values = np.asarray(values)
        places = cells_of_coordinates(coordinates, np.arange(len(values)), shape, labels)
        return cls._of_places(places, values, mechanism, background, options)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        axes: Sequence[str],
        value: str,
        mechanism: Mechanism,
        categories: Mapping[str, Sequence[Any]] | None = None,
        *,
        background: float | None = None,
        **options: Any,
    ) -> "Reports":
        """Reports from a long table with a row for each cell; cells without a row have the report ``background``.

        Args:
            frame: DataFrame with a column for each axis and one of reports; NaN as for the class.
            axes: names of two columns or more, the first one the rows of the data.
            value: name of the column of reports.
            mechanism: one for all cells.
            categories: {axis: values} fixes an axis beforehand, as for ``PrivatizedCounts.from_frame``.
            background: by default no report, where the mechanism has that, and 0 elsewhere.
            options by name: as for the class.

        Raises:
            TypeError: not a DataFrame.
            ValueError: a column or category that is missing or unknown, a cell that has two rows, and as the class.
        """
        place = "place of the row"
        numbers = frame.assign(**{place: np.arange(len(frame))}) if isinstance(frame, pd.DataFrame) else frame
        if isinstance(frame, pd.DataFrame) and list(frame.columns).count(value) != 1:
            raise ValueError(f"frame must have one column {value!r}, got columns {list(frame.columns)}")
        places = cells_of_frame(numbers, axes, place, categories)
        return cls._of_places(places, frame[value].to_numpy(), mechanism, background, options)

    @classmethod
    def _of_places(
        cls,
        places: Any,
        values: np.ndarray,
        mechanism: Any,
        background: float | None,
        options: dict[str, Any],
    ) -> "Reports":
        check_one(mechanism)
        if background is None:
            background = np.nan if getattr(mechanism, "absent", False) else 0.0
        numbers = read_reports(values[places.values], mechanism)
        flat = (places.shape[0], int(np.prod(places.shape[1:])))
        column = np.ravel_multi_index(tuple(places.coordinates[1:]), places.shape[1:])
        if background == 0.0:
            matrix = sp.csr_array((numbers, (places.coordinates[0], column)), shape=flat)
            if len(places.shape) > 2:
                matrix = matrix.tocoo().reshape(places.shape)
            return cls(matrix, mechanism, labels=places.labels, **options)
        cells = np.full(flat, float(background))
        cells[places.coordinates[0], column] = numbers
        return cls(cells.reshape(places.shape), mechanism, labels=places.labels, **options)


def unlabelled(layer: Layer, options: dict[str, Any]) -> tuple[Any, Any, Any, dict[str, Any]]:
    """A layer's values, mask and mechanisms as arrays, in the order of its labels; and the labels."""
    axes = axes_of(layer.values, options["row_labels"], options["column_labels"], options["labels"])
    mask, mechanism = in_order("mask", layer.mask, axes), in_order("mechanism", layer.mechanism, axes)
    rows, columns = options["row_labels"], options["column_labels"]
    values, mask, rows, columns = unwrap(layer.values, mask, rows, columns)
    if values.ndim == 2:
        check_matrix(values)
    hidden = check_mask(mask, tuple(values.shape))
    return values, hidden, mechanism, {"row_labels": rows, "column_labels": columns}


def check_one(mechanism: Any) -> None:
    """Raises TypeError for anything but a mechanism."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism must be one of countveil.mechanisms, got {type(mechanism).__name__}")


def number(
    values: Any, mechanism: Any, hidden: np.ndarray | None, background: float, mechanisms: list[Mechanism]
) -> Numbered:
    """The different reports of a layer, and which one each cell has; new mechanisms are added to the list."""
    if sp.issparse(values):
        if isinstance(mechanism, Mechanism) and hidden is None and says_zero(mechanism, background):
            return number_sparse(values, mechanism, mechanisms)
        values = filled(values, background)
    numbers, n = np.full(values.shape, NO_REPORT, dtype=np.int64), 0
    parts, values_of, owners = [], [], []
    for each, cells in by_mechanism(mechanism, values.shape):
        skip = hidden if cells is None else ~cells if hidden is None else hidden | ~cells
        reports = read_reports(values, each, skip)
        different, place = np.unique(reports if skip is None else reports[~skip], return_inverse=True)
        numbers[... if skip is None else ~skip] = n + (place.reshape(values.shape) if skip is None else place)
        parts.append(said_by(each, different))
        values_of.append(different)
        owners.append(np.full(different.size, place_among(each, mechanisms)))
        n += different.size
    return Numbered(all_said(parts), numbers, np.concatenate(values_of), np.concatenate(owners))


def number_sparse(values: Any, mechanism: Mechanism, mechanisms: list[Mechanism]) -> Numbered:
    """The same where cells that are not stored are known to be zero."""
    stored = sp.coo_array(values, copy=True)
    if values.ndim == 2:
        stored.sum_duplicates()
    different, place = np.unique(read_reports(stored.data, mechanism), return_inverse=True)
    stored.data = place.reshape(-1).astype(np.int64)
    owner = np.full(different.size, place_among(mechanism, mechanisms))
    return Numbered(said_by(mechanism, different), stored, different, owner)


def says_zero(mechanism: Mechanism, report: float) -> bool:
    """Whether a report says that its count is zero."""
    check_one(mechanism)
    said = said_by(mechanism, read_reports(np.array([report]), mechanism))
    return bool(said.most[0] == 0)


def filled(values: Any, background: float) -> np.ndarray:
    """Sparse values as a dense array, with the background where nothing is stored."""
    stored, dense = sp.coo_array(values), np.full(values.shape, float(background))
    dense[stored.coords] = stored.data
    return dense


def place_among(mechanism: Mechanism, mechanisms: list[Mechanism]) -> int:
    """The place of a mechanism in the list, to which it is added where it is new."""
    if mechanism not in mechanisms:
        mechanisms.append(mechanism)
    return mechanisms.index(mechanism)


def by_mechanism(mechanism: Any, shape: tuple[int, ...]) -> list[tuple[Mechanism, np.ndarray | None]]:
    """Every different mechanism with the cells that have it, booleans of this shape; None for all."""
    if isinstance(mechanism, Mechanism):
        return [(mechanism, None)]
    given = np.empty(np.shape(np.asarray(mechanism, dtype=object)), dtype=object)
    given[...] = np.asarray(mechanism, dtype=object)
    for each in given.flat:
        check_one(each)
    if given.ndim == 1 and given.size == shape[0]:
        given = given.reshape(-1, *[1] * (len(shape) - 1))
    different = list(dict.fromkeys(given.flat))
    numbers = np.vectorize(different.index, otypes=[np.int64])(given)
    try:
        numbers = np.broadcast_to(numbers, shape)
    except ValueError:
        raise ValueError(
            f"mechanism must be one, one per row ({shape[0]},) or broadcast to {shape}, got shape {given.shape}"
        ) from None
    return [(each, numbers == i) for i, each in enumerate(different)]


def coded(layers: list[Numbered], mechanisms: list[Mechanism]) -> tuple[Any, AnyMechanismNoise]:
    """The code of every cell, and what codes say; 0 for cells that are known to be zero, NO_REPORT without a report."""
    said, first = all_said([layer.said for layer in layers]), layers[0]
    if len(layers) == 1:
        members = np.arange(first.said.least.size)[:, None]
        place = first.number.data if sp.issparse(first.number) else first.number.reshape(-1)
    else:
        begins = np.cumsum([0, *(layer.said.least.size for layer in layers)])
        each = [dense(layer).reshape(-1) for layer in layers]
        both = [
            np.where(n == NO_REPORT, NO_REPORT, n + begin) for n, begin in zip(each, begins, strict=False)
        ]
        members, place = np.unique(np.stack(both, axis=1), axis=0, return_inverse=True)
        place = place.reshape(-1)
    none = (members == NO_REPORT).all(axis=1)
    zero = ((said.most[members] == 0) & (members != NO_REPORT)).any(axis=1)
    kept = ~none & ~zero
    check_possible(said, members[zero])
    code = np.where(kept, np.cumsum(kept), np.where(none, NO_REPORT, 0))
    codes = np.where(place == NO_REPORT, NO_REPORT, code[place])
    members = members[kept]
    kernels = kernels_of(said, members)
    guess(kernels, codes)
    owner = members.max(axis=1, initial=NO_REPORT)  # any report of the count
    head = np.zeros(1)
    value = np.concatenate([head, np.concatenate([layer.value for layer in layers])[owner]])
    of = np.concatenate([head, np.concatenate([layer.mechanism for layer in layers])[owner]]).astype(np.int64)
    variance = np.concatenate([head, variances(said, members)])
    noise = AnyMechanismNoise(mechanisms, kernels, value, of, variance, len(layers) == 1)
    if sp.issparse(first.number) and len(layers) == 1:
        matrix = first.number.copy()
        matrix.data = codes
        return matrix, noise
    return codes.reshape(first.number.shape), noise


def dense(layer: Numbered) -> np.ndarray:
    """The numbers of a layer in every cell; cells that it does not store have that of a zero."""
    if not sp.issparse(layer.number):
        return np.asarray(layer.number)
    zeros = np.flatnonzero(layer.said.most == 0)
    found = np.full(layer.number.shape, zeros[0] if zeros.size else NO_REPORT)
    found[layer.number.coords] = layer.number.data
    return found


def variances(said: Said, members: np.ndarray) -> np.ndarray:
    """(C,) of the estimate of a count by each code."""
    with np.errstate(divide="ignore"):
        weights = np.where(members >= 0, 1.0 / said.variance[np.maximum(members, 0)], 0.0)
        return np.asarray(1.0 / weights.sum(axis=1))


def guess(kernels: ReportKernels, codes: np.ndarray) -> None:
    """Fill in estimates where reports alone give none, in place: means of counts that are spread as in all cells."""
    unknown = np.flatnonzero(np.isnan(kernels.real_cj[:, GUESS]))
    if not unknown.size:
        return
    cells = np.bincount(codes[codes >= 0], minlength=len(kernels.real_cj)).astype(np.float64)
    known = np.setdiff1d(np.arange(cells.size), unknown)
    least, most = kernels.whole_cj[unknown][:, [LEAST, MOST]].T
    kernels.real_cj[unknown, GUESS] = np.minimum(0.5 * (least + most), least + 1.0)
    for _ in range(ROUNDS):
        mean = max(float(cells @ kernels.real_cj[:, GUESS]) / max(cells.sum(), 1.0), 1e-6)
        fill_means(kernels, unknown, mean / (mean + SHAPE))
    assert not np.isnan(kernels.real_cj[known, GUESS]).any()


@kernel
def fill_means(kernels: Any, codes: Any, p: Any) -> None:
    """The estimate of each of these codes is the mean of a negative binomial count given the reports; in place."""
    q = -np.log1p(-p)
    law = WindowLaw(kernels, NegativeBinomialCell(p, q))
    for c in codes:
        kernels.real_cj[c, GUESS] = moments(law, c, SHAPE * q)[1]
