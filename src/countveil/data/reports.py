"""Reports under any mechanism, as they were published: noisy, rounded, suppressed, or several of one count."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.common.arrays import refuse
from countveil.data import joined_files
from countveil.data.covariates import names_in, stated_covariates
from countveil.data.frames import Cells
from countveil.data.labels import axes_of, axis_names, in_order, tabled
from countveil.data.matrices import check_mask, check_matrix, unwrap
from countveil.data.numbering import NO_REPORT, coded, in_rows, number, require_mechanism, with_bounds
from countveil.data.observations import Observations, PrivatizedCounts
from countveil.data.provenance import (
    NOT_STATED,
    Inputs,
    Layer,
    Provenance,
    Published,
    both_levels,
    joint_promise,
    levels_by_row,
    options_of_release,
    refuse_same_noise,
    totals_of_release,
)
from countveil.data.totals import Totals, check_possible, read_totals
from countveil.kernels.report_kernels import CONCAVE
from countveil.laws.noise import NOISES
from countveil.laws.noise.any_mechanism import AnyMechanismNoise
from countveil.laws.noise.reading import LARGEST, numbers_of, read_reports
from countveil.privacy import Release
from countveil.privacy._cells import ALL_MASKED, ByCell
from countveil.privacy.level import Level
from countveil.privacy.mechanisms import Interval, Mechanism, TwoSidedGeometric

OPTIONS = "row_labels", "column_labels", "labels", "row_offset", "column_offset", "exposure"
"""What all observations take."""


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

    whole: ClassVar[bool] = False

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
        provenance: Provenance = NOT_STATED,
    ) -> None:
        provenance = provenance._replace(simulated=check_simulated(simulated) or provenance.simulated)
        options = {"labels": labels, "row_offset": row_offset, "column_offset": column_offset}
        options |= {"row_labels": row_labels, "column_labels": column_labels, "exposure": exposure}
        self._read(Inputs((Layer(values, mechanism, mask, background),), options, totals), provenance)

    @classmethod
    def of_layers(cls, layers: Sequence[Layer], provenance: Provenance, **options: Any) -> "Reports":
        """Several reports of every count; options and errors as for the class and ``also``."""
        found = cls.__new__(cls)
        found._read(Inputs(tuple(layers), dict.fromkeys(OPTIONS) | options, None), provenance)
        return found

    def _read(self, inputs: Inputs, provenance: Provenance) -> None:
        layers, options, totals = inputs
        provenance = provenance._replace(inputs=inputs)
        values, mechanism, mask, background = layers[0]
        by_level = totals is None and len(layers) == 1 and background == 0.0
        if by_level and isinstance(mechanism, TwoSidedGeometric):
            super().__init__(values, float(mechanism.alpha), mask, provenance=provenance, **options)
            return
        mechanisms: dict[Mechanism, int] = {}
        numbered, found, published, nothing = [], dict(options), [], True
        for given in layers:
            layer, own = unlabelled(given, options)
            layer = layer._replace(mechanism=with_bounds(layer.values, layer.mechanism, layer.hidden))
            published.append(layer)
            shape = tuple(published[0].values.shape)
            if tuple(layer.values.shape) != shape:
                raise ValueError(f"values must have the shape of the first report {shape}, got {layer.values.shape}")
            check_same_labels(own, found)
            nothing = nothing and layer.hidden is not None and bool(np.all(layer.hidden))
            numbered.append(number(layer.values, layer.mechanism, layer.hidden, layer.background, mechanisms))
            found |= {name: names for name, names in own.items() if found[name] is None}
        if nothing:
            raise ValueError(ALL_MASKED)
        codes, noise = coded(numbered, mechanisms)
        hidden = None if sp.issparse(codes) else codes == NO_REPORT
        provenance = provenance._replace(
            published=Published.of(published, shape), axis_names=provenance.axis_names or axis_names(values)
        )
        super().__init__(codes, 1.0, hidden, noise=noise, provenance=provenance, **found)
        if len(layers) > 1 and provenance.published is not None:
            refuse_same_noise(provenance.published)
        if totals is not None:
            axes = axes_of(values, options["row_labels"], options["column_labels"], options["labels"])
            self._set_totals(read_totals(totals, self.mode_shape, axes))

    def _set_totals(self, totals: Totals) -> None:
        """Raises ValueError for totals that counts with these reports cannot have."""
        kernels: Any = self.noise.kernel
        if not kernels.whole_cj[1:, CONCAVE].all():
            raise ValueError(
                "with totals, P(report | count) must be log-concave in the count, got mechanism "
                f"{self.noise.in_words(self.level_d)}: leave the totals out"
            )
        self.totals = totals.arranged(self.mode_shape, (0,), tuple(range(1, len(self.mode_shape))))
        place, code = (self.row_numbers, self.columns), np.maximum(self.reports, 0)
        check_possible(self.totals, place, kernels, code, self.reports < 0, self._named_axes())

    def _named_axes(self) -> list[tuple[str, Sequence[Any]]]:
        """The name of every axis, and its labels or numbers."""
        words = axes_of(None, labels=self.labels)
        names = [*self.provenance.axis_names, *[None] * len(words)]
        return [
            (name or axis.word, labels or range(size))
            for name, axis, labels, size in zip(names, words, self.labels, self.mode_shape, strict=False)
        ]

    def also(
        self, values: Any, mechanism: Any, mask: Any = None, *, background: float = 0.0, simulated: bool = False
    ) -> "Reports":
        """The same counts with another report of each, independent of those before given the counts.

        Args are as for the class. A cell that is masked in one of the reports is known by the others alone. Where the
        reports before have ``levels``, so has the result: those of all reports, masked ones included, and None for rows
        of which a mechanism keeps none. What they say of their noise and source stays.

        Raises:
            ValueError: another shape or other labels; reports that no count can have together with those before, or
                with the noise of those before; data from which cells were hidden or rows taken.
        """
        inputs = self.provenance.inputs
        if inputs is None:
            raise ValueError(
                "also must be called on reports as they were read, got a part of them: call also before take and hide"
            )
        layer = Layer(values, mechanism, mask, background)
        provenance = self.provenance._replace(
            simulated=check_simulated(simulated) or self.provenance.simulated, promise=None, releases=None
        )
        if self.levels is not None:
            added = levels_by_row(unlabelled(layer, inputs.options)[0].mechanism, self.mode_shape)
            levels = tuple(map(both_levels, self.levels, added))
            provenance = provenance._replace(levels=levels, promise=joint_promise(levels))
        more = Reports.__new__(Reports)
        more._read(inputs._replace(layers=(*inputs.layers, layer)), provenance)
        return more

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write joined releases to one file, each as it is, in one step; ``countveil.join`` of its path reads it.

        Raises:
            ValueError: reports that are not those that ``join`` returned, as they were.
        """
        if self.provenance.releases is None:
            raise ValueError(
                "save must be called on an unchanged result of join, got changed or other reports: save each "
                "release with its own save"
            )
        joined_files.write(path, self.provenance.releases)

    @classmethod
    def from_release(
        cls, release: Release, *, mask: Any = None, exposure: Any = None, totals: bool = True, **options: Any
    ) -> "Reports":
        """The reports, mechanisms and labels of a ``Release``; all else as for the class.

        ``totals=False`` leaves out the totals that it has, as to hide cells of which they would tell.
        """
        if not isinstance(release, Release):
            raise TypeError(f"release must be a Release, got {type(release).__name__}")
        own = options_of_release(release, mask, exposure)
        known = totals_of_release(release) if totals else None
        mechanism = in_rows(release.mechanism, len(release.shape))
        return cls(release.reports, mechanism, totals=known, **own, **options)

    @property
    def levels(self) -> tuple[Level | None, ...] | None:
        """What all reports of each row promise together, where releases were joined; None where one keeps no level."""
        return self.provenance.levels

    @property
    def promise(self) -> str | None:
        """What several reports of a record promise together, in words."""
        return self.provenance.promise

    def __repr__(self) -> str:
        """Sizes and mechanisms only, never a report."""
        if not isinstance(self.noise, AnyMechanismNoise):
            return super().__repr__()
        masked = f", {self.n_masked} masked" if self.n_masked else ""
        several = "" if self.noise.one_report else ", several reports of a count"
        sizes = " x ".join(map(str, self.mode_shape))
        totals = "" if self.totals is None else f", {self.totals.in_words}"
        totals += "" if self.exposure is None else ", exposure by cell"
        simulated = ", simulated noise" if self.provenance.simulated else ""
        return f"Reports({sizes}, {self.noise.in_words(self.level_d)}{several}{masked}{totals}{simulated})"

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
    def _of_cells(cls, cells: Cells, protection: Any, options: dict[str, Any]) -> "Reports":
        mechanism = options.pop("mechanism", None) if protection is None else protection
        background = options.pop("background", None)
        require_mechanism(mechanism)
        if background is None:
            background = np.nan if getattr(mechanism, "absent", False) else 0.0
        numbers, options = read_reports(cells.values, mechanism), {"labels": cells.labels} | options
        row, *others = cells.coordinates
        flat = (cells.shape[0], int(np.prod(cells.shape[1:])))
        column = np.ravel_multi_index(tuple(others), cells.shape[1:])
        if background == 0.0:
            matrix = sp.csr_array((numbers, (row, column)), shape=flat)
            if len(cells.shape) > 2:
                matrix = matrix.tocoo().reshape(cells.shape)
            return cls(matrix, mechanism, **options)
        dense = np.full(flat, float(background))
        dense[row, column] = numbers
        return cls(dense.reshape(cells.shape), mechanism, **options)


def unlabelled(layer: Layer, options: dict[str, Any]) -> tuple[Layer, dict[str, Any]]:
    """A layer whose values, mask and mechanisms are arrays in the order of its labels, and the labels."""
    axes = axes_of(layer.values, options["row_labels"], options["column_labels"], options["labels"])
    mask, mechanism = in_order("mask", layer.hidden, axes), in_order("mechanism", layer.mechanism, axes)
    by_row = isinstance(layer.mechanism, pd.Series)
    rows, columns = options["row_labels"], options["column_labels"]
    values, mask, rows, columns = unwrap(layer.values, mask, rows, columns)
    if values.ndim == 2:
        check_matrix(values)
    hidden = check_mask(mask, tuple(values.shape))
    mechanism = in_rows(mechanism, values.ndim) if by_row else mechanism
    return Layer(values, mechanism, hidden, layer.background), {"row_labels": rows, "column_labels": columns}


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
        by_row = data.extras.totals is None and not isinstance(data.mechanism, ByCell)
        read_by_level = by_row and all(each.name in NOISES for each in data.known_mechanisms)
        return PrivatizedCounts.from_release(data) if read_by_level else Reports.from_release(data)
    raise TypeError(
        "data must carry its noise level: a Release, or PrivatizedCounts(reports, alpha) for noisy reports, "
        "Reports(values, mechanism) for counts protected in another way, or ExactCounts(counts) for true counts; "
        f"got {type(data).__name__} without an alpha"
    )


def covariates_of(release: Release | Observations) -> pd.DataFrame | None:
    """The covariates that participants of a study stated in the clear, a row for each of the release's.

    Args:
        release: a ``Release``, such as ``countveil collect`` makes of a study with covariates, or what ``by_wave`` or
            ``join`` made of such releases.

    Returns:
        DataFrame labelled as the rows, a column for each covariate: float64, or categories in the order of the study;
        None where the release has none. From ``by_wave``, a row for each person, without the covariates in which waves
        of one person differ; from ``join``, a row for each joined one, missing where no release states a covariate.

    Raises:
        TypeError: something else than a release.
    """
    if isinstance(release, Observations):
        found = release.provenance.covariates
        return None if found is None else found.copy()
    if not isinstance(release, Release):
        raise TypeError(f"release must be a Release, got {type(release).__name__}")
    return stated_covariates(release)


def in_rows_of(data: Any, formula: str = "") -> pd.DataFrame | None:
    """As ``covariates_of``, to go by position where two rows have the same label; None for other data.

    Raises ValueError where the formula names a covariate that is left out because it differs between waves.
    """
    found = covariates_of(data) if isinstance(data, Release | Observations) else None
    differing = data.provenance.differing if isinstance(data, Observations) else {}
    for name in names_in(formula) if differing else ():
        if name in differing:
            raise ValueError(
                f"covariate {name!r} must be the same in all waves of a person to be read from the release, got values "
                f"that differ between waves for {differing[name]} of the people: give covariates= with a row for each "
                "person"
            )
    return found if found is None or found.index.is_unique else found.reset_index(drop=True)


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
            f"lower and upper must have the same shape, unless one of them is a single number, got {low.shape} and "
            f"{high.shape}"
        )
    shape = shapes.pop()
    hidden = check_mask(in_order("mask", mask, axes), shape)
    seen = np.ones(shape, dtype=bool) if hidden is None else ~hidden
    low, high = (np.where(seen, each, 0.0) for each in (low, high))
    refuse("lower must be whole and not negative", ~((low >= 0) & (low < LARGEST) & (np.floor(low) == low)), low)
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
