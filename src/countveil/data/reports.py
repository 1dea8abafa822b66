"""Reports under any mechanism, as they were published: noisy, rounded, suppressed, or several of one count."""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.data import joined_files
from countveil.data.frames import cells_of_coordinates, cells_of_frame, check_axes, with_places
from countveil.data.inputs import (
    exposure_of_release,
    mask_of_release,
    release_labels,
    totals_of_release,
)
from countveil.data.labels import axes_of, axis_names, in_order, tabled
from countveil.data.matrices import check_mask, check_matrix, unwrap
from countveil.data.numbering import NO_REPORT, coded, in_rows, number, require_mechanism
from countveil.data.observations import Observations, PrivatizedCounts
from countveil.data.provenance import (
    Made,
    Published,
    both_levels,
    joint_promise,
    levels_by_row,
    promise_to_people,
    refuse_same_noise,
)
from countveil.data.totals import Totals, check_possible, read_totals
from countveil.kernels.report_kernels import CONCAVE
from countveil.laws.noise import NOISES
from countveil.laws.noise.any_mechanism import (
    AnyMechanismNoise,
)
from countveil.laws.noise.reading import LARGEST, numbers_of, read_reports, refuse
from countveil.privacy import Release
from countveil.privacy._cells import ALL_MASKED, ByCell
from countveil.privacy.any_level import Level
from countveil.privacy.mechanisms import Interval, Mechanism, TwoSidedGeometric


class Layer(NamedTuple):
    """One report of every count, as it was given."""

    values: Any
    mechanism: Any
    mask: Any
    background: Any


class Reports(Observations):
    """Reports of counts under any of ``countveil.mechanisms``, published by anybody.

    Args:
        values: (D, V) reports, or more axes for a tensor: dense array, pandas DataFrame (labels kept), scipy.sparse
            (cells that are not stored have the report ``background``), numpy.ma array (its mask is taken as ``mask``),
            AnnData object or ``CountTable``. NaN, None and pandas' NA mean that a count has no report because of what
            it is, where the mechanism has that (suppressed, below a threshold); otherwise they are refused.
        mechanism: what was done to the counts; one, or one for each row (a sequence or Series), or an array of them
            that broadcasts to the values, such as (D, 1) by row and (1, V) by column. A sequence of V is by column; it
            is refused where D is V and it could be either, unless it is a Series, which is by row. Two-sided
            geometric noise is read as ``PrivatizedCounts`` reads it.
        mask: (D, V) booleans, True where a cell is held out or missing for reasons that have nothing to do with its
            count; it leaves the likelihood altogether.
        background: the report of the cells that sparse values do not store; NaN if they have none.
        totals: a list of (axis or groups, values), exact sums of counts that were published too, or of (axis or groups,
            values, mechanism), sums that are noisy, rounded or hidden themselves. An axis, or a tuple of axes, is
            summed over, and values have the shape that is left. Groups are an array of the shape of the reports, with
            the number of each count's total, an index of the values, or -1 for a count in none. NaN is an unknown
            total, or a hidden one where the mechanism hides some. Families may overlap; those that bound their sums,
            such as exact ones, must be nested on two sides (rows and columns; counties and states). A masked cell is
            one of its total's counts, and may have any.
        simulated: True where the noise came from a seeded generator: fits and pages then say that it protects nobody.
        row_labels, column_labels, labels, row_offset, column_offset, exposure: as for ``PrivatizedCounts``.

    Raises:
        TypeError: something that is no mechanism, or values that are no numbers.
        ValueError: reports that the mechanism cannot have made; shapes, labels or offsets that do not fit; totals that
            counts with these reports cannot have, families that cross two others and bound their sums, and totals
            beside a mechanism, or with one, whose kernel is not log-concave, since what it allows may have gaps.
    """

    kind: ClassVar[str] = "private"
    levels: tuple[Level | None, ...] | None = None  # of each row, where releases were joined
    releases: tuple[Release, ...] | None = None  # those that were joined, where that is all there is
    covariates: pd.DataFrame | None = None  # of each row, where the releases carried some
    differing: Mapping[str, int] = MappingProxyType(
        {}
    )  # what is left out there, and of how many people it differs
    made: Made | None = None  # reports as they were published; None where they are read by level

    def __init__(
        self,
        values: Any,
        mechanism: Any,
        mask: Any = None,
        *,
        background: float = 0.0,
        totals: Any = None,
        row_labels: Sequence[str] | None = None,
        column_labels: Sequence[str] | None = None,
        labels: Sequence[Sequence[str] | None] | None = None,
        row_offset: Any = None,
        column_offset: Any = None,
        exposure: Any = None,
        simulated: bool = False,
    ) -> None:
        self.simulated = check_simulated(simulated)
        options = {"labels": labels, "row_offset": row_offset, "column_offset": column_offset}
        options |= {"row_labels": row_labels, "column_labels": column_labels, "exposure": exposure}
        self._read([Layer(values, mechanism, mask, background)], options, totals)

    def _read(self, layers: list[Layer], options: dict[str, Any], totals: Any = None) -> None:
        self._layers, self._options, self._totals = layers, options, totals
        if totals is None and len(layers) == 1 and isinstance(layers[0].mechanism, TwoSidedGeometric):
            values, mechanism, mask, background = layers[0]
            if background == 0.0:
                super().__init__(values, float(mechanism.alpha), mask, **options)
                return
        mechanisms: dict[Mechanism, int] = {}
        numbered, shape, found, published, nothing = [], None, dict(options), [], True
        for layer in layers:
            values, hidden, mechanism, own = unlabelled(layer, options)
            shape = tuple(values.shape) if shape is None else shape
            if tuple(values.shape) != shape:
                raise ValueError(
                    f"values must have the shape of the first report {shape}, got {values.shape}"
                )
            check_same_labels(own, found)
            nothing = nothing and hidden is not None and bool(np.all(hidden))
            published.append(Published(values, hidden, mechanism, layer.background))
            numbered.append(number(values, mechanism, hidden, layer.background, mechanisms))
            found |= {name: names for name, names in own.items() if found[name] is None}
        if nothing:
            raise ValueError(ALL_MASKED)
        codes, noise = coded(numbered, mechanisms)
        hidden = None if sp.issparse(codes) else codes == NO_REPORT
        super().__init__(codes, 1.0, hidden, noise=noise, **found)
        self.made = Made.of(published, self.mode_shape)
        self.axis_names = axis_names(layers[0].values)
        if len(layers) > 1:
            refuse_same_noise(self.made)
        if totals is not None:
            values, rows, columns = layers[0].values, options["row_labels"], options["column_labels"]
            axes = axes_of(values, rows, columns, options["labels"])
            self._set_totals(read_totals(totals, self.mode_shape, axes))

    def _set_totals(self, totals: Totals) -> None:
        """Raises ValueError for totals that counts with these reports cannot have."""
        kernels: Any = self.noise.kernel
        if not kernels.whole_cj[1:, CONCAVE].all():
            raise ValueError(
                f"mechanism must have a log-concave kernel beside totals, got {self.noise.in_words(self.level_d)}"
            )
        self.totals = totals.arranged(self.mode_shape, (0,), tuple(range(1, len(self.mode_shape))))
        place, code = (self.row_numbers, self.columns), np.maximum(self.reports, 0)
        check_possible(self.totals, place, kernels, code, self.reports < 0)

    def also(
        self,
        values: Any,
        mechanism: Any,
        mask: Any = None,
        *,
        background: float = 0.0,
        simulated: bool = False,
    ) -> "Reports":
        """The same counts with another report of each, independent of those before given the counts.

        Args are as for the class. A cell that is masked in one of the reports is known by the others alone. Where the
        reports before have ``levels``, so has the result: those of all reports, masked ones included, and None for rows
        of which a mechanism keeps none. What they say of their noise and source stays.

        Raises:
            ValueError: another shape or other labels; reports that no count can have together with those before, or
                with the noise of those before; data from which cells were hidden or rows taken.
        """
        if not hasattr(self, "_layers"):
            raise ValueError(
                "also must be called on reports as they were read, got a part of them: call also before take and hide"
            )
        more = Reports.__new__(Reports)
        layer = Layer(values, mechanism, mask, background)
        more._read([*self._layers, layer], self._options, self._totals)
        more.simulated = check_simulated(simulated) or self.simulated
        more.directed, more.source = self.directed, self.source
        more.covariates, more.differing = self.covariates, self.differing
        if self.levels is not None:
            added = levels_by_row(unlabelled(layer, self._options)[2], self.mode_shape)
            more.levels = tuple(map(both_levels, self.levels, added))
            more.promise = joint_promise(more.levels)
        return more

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write joined releases to one file, each as it is, in one step; ``countveil.join`` of its path reads it.

        Raises:
            ValueError: reports that are not those that ``join`` returned, as they were.
        """
        if self.releases is None:
            raise ValueError(
                "save must be called on an unchanged result of join, got changed or other reports: save each "
                "release with its own save"
            )
        joined_files.write(path, self.releases)

    @classmethod
    def from_release(
        cls,
        release: Release,
        *,
        mask: Any = None,
        totals: bool = True,
        row_offset: Any = None,
        column_offset: Any = None,
        exposure: Any = None,
    ) -> "Reports":
        """The reports, mechanisms and labels of a ``Release``; mask, offsets and exposure as for the class.

        ``totals=False`` leaves out the totals that it has, as to hide cells of which they would tell.
        """
        if not isinstance(release, Release):
            raise TypeError(f"release must be a Release, got {type(release).__name__}")
        options = release_labels(release) | {"row_offset": row_offset, "column_offset": column_offset}
        options["exposure"] = exposure_of_release(release, exposure)
        mechanism = in_rows(release.mechanism, len(release.shape))
        known = totals_of_release(release) if totals else None
        found = cls(release.reports, mechanism, mask_of_release(release, mask), totals=known, **options)
        found.simulated, found.directed, found.source = release.simulated, release.directed, release.source
        return found

    def __repr__(self) -> str:
        """Sizes and mechanisms only, never a report."""
        if not isinstance(self.noise, AnyMechanismNoise):
            return super().__repr__()
        masked = f", {self.n_masked} masked" if self.n_masked else ""
        several = "" if self.noise.one_report else ", several reports of a count"
        sizes = " x ".join(map(str, self.mode_shape))
        totals = "" if self.totals is None else f", {self.totals.in_words}"
        totals += "" if self.exposure is None else ", exposure by cell"
        simulated = ", simulated noise" if self.simulated else ""
        return f"Reports({sizes}, {self.noise.in_words(self.level_d)}{several}{masked}{totals}{simulated})"

    def folded(self, *args: Any, **options: Any) -> Any:
        """As that of all observations."""
        found = super().folded(*args, **options)
        found.made = None if self.made is None else self.made.folded(found.mode_shape)
        return found

    def with_steps(self, axis: int, places: np.ndarray, labels: Sequence[str]) -> Any:
        """As that of all observations."""
        found = super().with_steps(axis, places, labels)
        found.made = None if self.made is None else self.made.with_steps(axis, places)
        return found

    def matricized(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> Any:
        """As that of all observations."""
        found = super().matricized(rows, columns)
        found.made = None if self.made is None else self.made.arranged(rows, columns)
        return found

    def take(self, rows: np.ndarray) -> Any:
        """As that of all observations."""
        found = super().take(rows)
        found.made = None if self.made is None else self.made.of_rows(np.asarray(rows))
        return found

    def _copy(self) -> Any:
        other = super()._copy()
        for name in ("_layers", "_totals", "releases"):
            other.__dict__.pop(name, None)
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
    def between(cls, lower: Any, upper: Any, mask: Any = None, **options: Any) -> "Reports":
        """Counts that are known to lie in ranges: bands, top codes, or bounds from another source.

            lower <= count <= upper in every cell

        Args:
            lower, upper: (D, V) whole numbers, or more axes: arrays, or DataFrames with the same labels, which are
                kept. A single number holds for all cells. ``np.inf`` is no upper bound; equal bounds are a known count.
            mask: as for the class. Bounds of masked cells are not read, and may be NaN.
            options by name: as for the class, without ``background``.

        Raises:
            TypeError: bounds that are no numbers.
            ValueError: bounds that are not whole, negative or crossed, of different shapes or labels, or NaN where a
                cell is not masked.
        """
        return cls(*ranges(lower, upper, mask), mask, **options)

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
        check_axes(frame, axes, value)
        numbered, place = with_places(frame)
        places = cells_of_frame(numbered, axes, place, categories)
        found = cls._of_places(places, frame[value].to_numpy(), mechanism, background, options)
        found.axis_names = tuple(map(str, axes))
        return found

    @classmethod
    def _of_places(
        cls,
        places: Any,
        values: np.ndarray,
        mechanism: Any,
        background: float | None,
        options: dict[str, Any],
    ) -> "Reports":
        require_mechanism(mechanism)
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
    by_row = isinstance(layer.mechanism, pd.Series)
    rows, columns = options["row_labels"], options["column_labels"]
    values, mask, rows, columns = unwrap(layer.values, mask, rows, columns)
    if values.ndim == 2:
        check_matrix(values)
    hidden = check_mask(mask, tuple(values.shape))
    mechanism = in_rows(mechanism, values.ndim) if by_row else mechanism
    return values, hidden, mechanism, {"row_labels": rows, "column_labels": columns}


def check_simulated(simulated: Any) -> bool:
    """Raises TypeError for anything but True and False."""
    if not isinstance(simulated, bool):
        raise TypeError(f"simulated must be True or False, got {simulated!r}")
    return simulated


def check_same_labels(own: Mapping[str, Any], first: Mapping[str, Any]) -> None:
    """Refuse a further report whose labels are others than those of the first, or in another order."""
    for name, names in own.items():
        known = first.get(name)
        if names is not None and known is not None and not same_labels(names, known):
            raise ValueError(
                f"values must have the {name} of the first report, {known!r:.60}, in their order, got {names!r:.60}"
            )


def same_labels(names: Any, known: Any) -> bool:
    """Whether labels of an axis are the same; of several axes, wherever both have some."""
    if len(names) != len(known):
        return False
    return all(
        a is None or b is None or (same_labels(a, b) if isinstance(a, list | tuple) else str(a) == str(b))
        for a, b in zip(names, known, strict=True)
    )


def observations_of(data: Any) -> Observations:
    """What inference sees of a ``Release`` or of observations; anything else has no noise level and is refused."""
    if isinstance(data, Observations):
        return data
    if isinstance(data, Release):
        by_row = data.totals is None and not isinstance(data.mechanism, ByCell)
        read_by_level = by_row and all(each.name in NOISES for each in data.known_mechanisms)
        found = PrivatizedCounts.from_release(data) if read_by_level else Reports.from_release(data)
        if data.waves is not None:
            found.promise = promise_to_people(data, tuple(dict.fromkeys(data.row_labels or ())))[1]
        return found
    raise TypeError(
        "data must carry its noise level: a Release, or PrivatizedCounts(reports, alpha) for noisy reports, "
        "Reports(values, mechanism) for counts protected in another way, or ExactCounts(counts) for true counts; "
        f"got {type(data).__name__} without an alpha"
    )


def ranges(lower: Any, upper: Any, mask: Any = None) -> tuple[Any, np.ndarray]:
    """(reports, NaN where a count is not known, and their mechanisms by cell), as ``Reports`` and imports take them.

    Args:
        lower, upper: whole numbers of one shape, or one number for all cells; ``np.inf`` is no upper bound. A DataFrame
            gives its labels to the reports, and both have the same ones in the same order.
        mask: booleans of that shape, or None; bounds of masked cells are not read.

    Raises:
        TypeError: bounds that are no numbers, or sparse.
        ValueError: bounds that are not whole, negative, crossed or NaN, and other shapes or labels.
    """
    given = {"lower": tabled(lower), "upper": tabled(upper)}
    labelled = next((each for each in given.values() if isinstance(each, pd.DataFrame)), None)
    axes = axes_of(labelled)
    low, high = (bounds(name, in_order(name, each, axes)) for name, each in given.items())
    shapes = {each.shape for each in (low, high) if each.ndim}
    if len(shapes) != 1:
        raise ValueError(
            f"lower and upper must have one shape, or be one number for all cells, got {low.shape} and {high.shape}"
        )
    shape = shapes.pop()
    hidden = check_mask(in_order("mask", mask, axes), shape)
    seen = np.ones(shape, dtype=bool) if hidden is None else ~hidden
    low, high = (np.where(seen, each, 0.0) for each in (low, high))
    refuse(
        "lower must be whole and not negative", ~((low >= 0) & (low < LARGEST) & (np.floor(low) == low)), low
    )
    whole = (high == np.inf) | ((high < LARGEST) & (np.floor(high) == high))
    refuse("upper must be whole, or np.inf", ~whole, high)
    refuse("upper must be at least lower", high < low, high)
    known = low == high
    pairs, place = np.unique(np.stack([low[~known], high[~known]], axis=1), axis=0, return_inverse=True)
    different = [Interval(int(a), None if b == np.inf else int(b)) for a, b in pairs]
    # a known count has any of these mechanisms: they all say the same of it
    mechanism = np.full(shape, different[0] if different else Interval(0), dtype=object)
    each_cell = np.empty(len(different), dtype=object)
    each_cell[:] = different
    mechanism[~known] = each_cell[place.reshape(-1)]
    values = np.where(known, low, np.nan)
    if labelled is None:
        return values, mechanism
    return pd.DataFrame(values, labelled.index, labelled.columns), mechanism


def bounds(name: str, values: Any) -> np.ndarray:
    """Bounds as floats; raises TypeError for what are no numbers, ValueError for masked ones."""
    if sp.issparse(values):
        raise TypeError(f"{name} must be a dense array, got a sparse one: pass {name}.toarray()")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} must not hold masked entries: pass mask= instead")
    try:
        return numbers_of(values)
    except TypeError:
        raise TypeError(f"{name} must be numbers, got {type(values).__name__} of others") from None
