"""What inference sees: stored entries and exposures, of private, exact or naively treated counts.

By equation 3.1 of the mathematics, everything a factorization needs of its data is a latent count on each positive
report and an exposure on every cell: 1 where the report is positive, what the noise and the likelihood make of it where
it is not, 0 where it is masked. A row's commonest exposure is its baseline; only the cells that differ are stored.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.data.frames import Cells, cells_of_coordinates, cells_of_frame, split_labels
from countveil.data.labels import axes_of, axis_names, in_order
from countveil.data.matrices import (
    MOST_CELLS,
    annotated_parts,
    as_matrices,
    check_exact_cells,
    check_labels,
    check_level,
    check_mask,
    check_matrix,
    check_mode_labels,
    check_offset,
    kept,
    last_there,
    moved_along,
    negative_part,
    positive_part,
    read_exposure,
    report_type,
    stored_cells,
    unwrap,
    whole_numbers,
)
from countveil.data.networks import graph_parts
from countveil.data.provenance import NOT_STATED, Provenance, level_of_release, options_of_release
from countveil.data.totals import Totals
from countveil.kernels.entries import MASKED, Entries
from countveil.kernels.exposed_law import UNWANTED
from countveil.laws.counts import POISSON
from countveil.laws.counts.laws import law_of
from countveil.laws.counts.protocol import Likelihood, Parameters
from countveil.laws.noise import TWO_SIDED_GEOMETRIC, Noise
from countveil.privacy import Release

ENTRIES_AT_ONCE = 2**14


class Observations:
    """A matrix of reports with the noise that is on them, held by rows.

    Attributes (D rows, V columns, E stored entries):
        shape: (D, V).
        indptr, columns, reports: compressed rows of the stored entries, int64, int32 and the narrowest of int16,
            int32 and int64 that holds all; a report of -1 marks a masked cell. Those of a release are shared.
        noise: what a report says about its count.
        level_d: (D,) noise level of every cell that is not stored, such as alpha.
        exposure_d: (D,) exposure of every cell that is not stored, for Poisson counts; for other
            likelihoods see ``laws.counts.laws.exposed``.
        level_e: (E,) noise level of each stored entry where levels vary within a row; empty otherwise.
        prior_scale_d, prior_scale_v: (D,) and (V,) reciprocals of the known offsets. With rates
            offset_d offset_v sum_k theta_dk phi_vk, inference works with offset theta and offset phi, whose
            gamma priors have their rates scaled by these.
        exposure: (D, V) known positive factors of the rates, cell by cell; None where there are none, or offsets say
            the same. Factors are then of rates for one unit of exposure, and every cell is stored.
        row_labels, column_labels: lists of str, or None.
        totals: sums of counts that are known or reported besides, over cells (D, V); None without any.
        drawn: (D, V) where a pass writes the parts of each count that it draws (``at_levels``); empty if none asks.
        below_zero: (D, V) sizes of negative reports (``negative_part``); None without any, or in other matrix forms.
        provenance: where the reports are from, and what they were; never changed afterwards.
    """

    kind: ClassVar[str] = "private"
    whole: ClassVar[bool] = True  # whether a list of cells holds whole numbers
    totals: Totals | None = None
    exposure: np.ndarray | None = None
    drawn: np.ndarray = UNWANTED

    def __init__(
        self,
        reports: Any,
        alpha: Any,
        mask: Any = None,
        *,
        noise: Noise = TWO_SIDED_GEOMETRIC,
        row_labels: Sequence[str] | None = None,
        column_labels: Sequence[str] | None = None,
        labels: Sequence[Sequence[str] | None] | None = None,
        row_offset: Any = None,
        column_offset: Any = None,
        exposure: Any = None,
        provenance: Provenance = NOT_STATED,
    ) -> None:
        axes = axes_of(reports, row_labels, column_labels, labels)
        named = provenance.axis_names or axis_names(reports)
        self.provenance = provenance._replace(axis_names=named)
        mask, alpha = in_order("mask", mask, axes), in_order(noise.level, alpha, axes)
        row_offset = in_order("row_offset", row_offset, axes[:1])
        column_offset = in_order("column_offset", column_offset, axes[1:])
        reports, mask, row_labels, column_labels = unwrap(reports, mask, row_labels, column_labels)
        reports, mask, level, self.mode_shape = as_matrices(reports, mask, alpha)
        if column_offset is not None and len(self.mode_shape) > 2:
            raise ValueError(
                f"column_offset must be for reports with two axes, got {len(self.mode_shape)} axes: leave it out"
            )
        self.noise = noise
        self.shape: tuple[int, int] = check_matrix(reports)
        self.mode_labels = check_mode_labels(labels, self.mode_shape)
        if len(self.mode_labels) == 2:
            (row_labels, column_labels), self.mode_labels = self.mode_labels, []
        elif self.mode_labels:
            row_labels = self.mode_labels[0]
        of_rows, of_columns, by_cell = read_exposure(exposure, axes, self.mode_shape)
        self.prior_scale_d = 1.0 / (check_offset("row_offset", row_offset, self.shape[0]) * of_rows)
        self.prior_scale_v = 1.0 / (check_offset("column_offset", column_offset, self.shape[1]) * of_columns)
        self.row_labels = check_labels("row_labels", row_labels, self.shape[0])
        self.column_labels = check_labels("column_labels", column_labels, self.shape[1])
        hidden = check_mask(mask, self.shape)
        level = check_level(level, self.shape, noise.level, noise.levels_below)
        values = self._values(reports, hidden)
        check_exact_cells(values, level)
        self._store(values, level, hidden)
        if by_cell is not None:
            self._expose(by_cell)

    @classmethod
    def from_coordinates(
        cls,
        coordinates: Any,
        values: Any,
        protection: Any = None,
        *,
        shape: Sequence[int] | None = None,
        labels: Sequence[Sequence[str] | None] | None = None,
        sum_duplicates: bool = False,
        **options: Any,
    ) -> Self:
        """Some cells of an array with two axes or more; all others are zero, or have reports that are not positive.

        Every cell got noise, so leaving out all reports that are not positive loses nothing; to leave out positive ones
        would mislead. Mask what was never reported. For ``Reports``, ``background`` is the report of all other cells:
        by default none, where the mechanism has that, and 0 elsewhere.

        Args:
            coordinates: one vector of whole numbers from 0 for each axis, or an array (axes, cells).
            values: (cells,) counts or reports.
            protection: what was done to the counts: ``alpha`` of ``PrivatizedCounts``, ``mechanism`` of ``Reports``,
                one for all cells; None for true counts and for naive ones.
            shape: length of each axis; by default that of its labels, or what its largest coordinate requires.
            labels: a list or None for each axis.
            sum_duplicates: add up the counts of a cell that is named twice (true counts only).
            options by name: as for the class.

        Raises:
            ValueError: coordinates fractional, negative, out of range or of other lengths; a cell named twice (each
                report has noise of its own, so their sum does not have that of alpha); a shape or labels for another
                number of axes; and as the class.
        """
        checked = {"sum_duplicates": sum_duplicates, "show": cls._shows(sum_duplicates), "whole": cls.whole}
        cells = cells_of_coordinates(coordinates, values, shape, labels, **checked)
        return cls._of_cells(cells, protection, options)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        axes: Sequence[str],
        value: str | None = None,
        protection: Any = None,
        *,
        categories: Mapping[str, Sequence[Any]] | None = None,
        sum_duplicates: bool = False,
        **options: Any,
    ) -> Self:
        """Cells from a long table, as for ``from_coordinates``: the value of each cell's row, or how many rows it has.

        Args:
            frame: DataFrame with a column for each axis and one of counts or reports.
            axes: names of two columns or more, the first one the rows of the data.
            value: name of the column of counts or reports; None counts the rows, each of which is one event (true
                counts only).
            protection: as for ``from_coordinates``.
            categories: {axis: values} fixes an axis beforehand. Otherwise a categorical column's categories in their
                order, or the values that occur, sorted. They become labels.
            sum_duplicates: add up the counts of a cell that has two rows (true counts only).
            options by name: as for the class.

        Raises:
            TypeError: not a DataFrame.
            ValueError: a column or category that is missing or unknown, a cell that has two rows, reports without a
                column of values, and as the class.
        """
        show = cls._shows(sum_duplicates)
        if show and value is None:
            raise ValueError("value must name the column of reports, got None: only true counts are counted")
        checked = {"sum_duplicates": sum_duplicates, "show": show, "whole": cls.whole}
        cells = cells_of_frame(frame, axes, value, categories, **checked)
        options["provenance"] = Provenance(axis_names=tuple(map(str, axes)))
        return cls._of_cells(cells, protection, options)

    @classmethod
    def from_graph(
        cls,
        graph: Any,
        protection: Any = None,
        *,
        weight: str | None = "weight",
        nodes: Sequence[Hashable] | None = None,
        **options: Any,
    ) -> Self:
        """Counts or reports between the actors of a networkx graph, labelled by its nodes.

        An edge counts by its attribute ``weight``, or once where it has none (or weight is None). Parallel edges of
        true counts add up. An undirected graph is seen above the diagonal only, each pair once: everything below is
        masked.

        Args:
            graph: Graph, DiGraph, MultiGraph or MultiDiGraph.
            protection: as for ``from_coordinates``.
            weight: name of the edges' attribute.
            nodes: order of the actors; the graph's own by default.
            options by name: as for the class.

        Raises:
            TypeError: not a graph.
            ValueError: nodes that are not all of the graph's, names that are the same as text, weights that are
                not whole, parallel edges with reports; and as the class.
        """
        matrix, found = graph_parts(graph, weight, nodes, show=cls._shows(False))
        return cls._protected(matrix, protection, found | options)

    @classmethod
    def from_anndata(cls, data: Any, protection: Any = None, *, layer: str | None = None, **options: Any) -> Self:
        """Counts or reports from an AnnData object's X or one of its layers, labelled by obs_names and var_names.

        Raises:
            TypeError: not an AnnData object.
            ValueError: no such layer, and as the class (such as for values that were normalised).
        """
        values, rows, columns = annotated_parts(data, layer)
        return cls._protected(values, protection, {"row_labels": rows, "column_labels": columns} | options)

    @classmethod
    def _shows(cls, sum_duplicates: bool) -> bool:
        """Whether values are reports, which errors may show, and of which sums are refused."""
        if cls.kind != "exact" and sum_duplicates:
            raise ValueError(
                "sum_duplicates must be False for reports, got True: a sum of reports carries the noise of each of "
                "them, which is not two-sided geometric; have the sums privatized instead"
            )
        return cls.kind != "exact"

    @classmethod
    def _of_cells(cls, cells: Cells, protection: Any, options: dict[str, Any]) -> Self:
        """Checked cells as observations."""
        return cls._protected(cells.to_sparse(), protection, {"labels": cells.labels} | options)

    @classmethod
    def _protected(cls: Any, values: Any, protection: Any, options: dict[str, Any]) -> Any:
        if protection is None:
            return cls(values, **options)
        if cls.kind != "private":
            # which may be true counts in the wrong place: their type is all that is shown
            raise ValueError(
                f"protection must be None for {cls.__name__}, got {type(protection).__name__}: pass further "
                "arguments by name"
            )
        return cls(values, protection, **options)

    def _values(self, reports: Any, hidden: np.ndarray | None) -> Any:
        """The reports as whole numbers, zero where masked."""
        return whole_numbers(reports, hidden, show=self.kind != "exact")

    def _store(self, values: Any, level: np.ndarray, hidden: np.ndarray | None) -> None:
        n_rows, n_columns = self.shape
        self.level_e = np.empty(0)
        if level.ndim == 2:
            dense = values.toarray() if sp.issparse(values) else values
            entries = np.maximum(dense, 0).ravel()
            indptr = n_columns * np.arange(n_rows + 1)
            columns = np.tile(np.arange(n_columns, dtype=np.int32), n_rows)
            self.level_d, self.exposure_d = np.zeros(n_rows), np.zeros(n_rows)
            self.level_e = level.ravel().copy()
            if hidden is not None:
                entries[hidden.ravel()] = MASKED
        else:
            self.level_d = level.copy()
            self.exposure_d = POISSON.exposure(self.noise.ratio(level))
            indptr, columns, entries = stored_cells(values, hidden)
        self.below_zero = negative_part(values)
        largest = int(entries.max(initial=0))
        self.indptr = indptr.astype(np.int64)
        self.columns = kept(columns, np.int32)
        self.reports = kept(entries, report_type(largest))

    def _expose(self, exposure: np.ndarray) -> None:
        """Take exposures by cell (D, V): every cell is stored, since each has an exposure of its own."""
        n_rows, n_columns = self.shape
        if exposure.size > MOST_CELLS:
            raise ValueError(
                f"exposure by cell must have at most {MOST_CELLS:,} cells, all of which are stored, got "
                f"{exposure.size:,}: give one of rows (D, 1) or of columns (1, V), or take fewer rows"
            )
        self.exposure = np.ascontiguousarray(exposure)
        if self.stores_all:
            return
        where = self.row_numbers, self.columns
        levels = np.repeat(self.level_d[:, None], n_columns, axis=1)
        reports = np.zeros(self.shape, dtype=self.reports.dtype)
        reports[where] = self.reports
        self.indptr = n_columns * np.arange(n_rows + 1, dtype=np.int64)
        self.columns = np.tile(np.arange(n_columns, dtype=np.int32), n_rows)
        self.reports, self.level_e = reports.ravel(), levels.ravel()
        self.level_d, self.exposure_d = np.zeros(n_rows), np.zeros(n_rows)

    def exposed_as(self, exposure: np.ndarray | None) -> Self:
        """The same cells with these exposures by cell, (D, V) or as these observations have them."""
        if exposure is None:
            return self
        found = self._copy()
        found._expose(exposure)
        return found

    def at_levels(self, levels: np.ndarray) -> Self:
        """The same cells with these factors of their rates (D, V) too; passes leave parts of counts in ``drawn``."""
        found = self.exposed_as(levels if self.exposure is None else self.exposure * levels)
        found.drawn = np.zeros(self.shape)
        return found

    def law(self, likelihood: Likelihood, parameters: Parameters = ()) -> tuple[Any, ...]:
        """The law of a report given its rate without the exposure by cell, as passes over the cells take it."""
        return law_of(self.noise, likelihood, parameters, self.exposure, self.drawn)

    def exposure_of(self, rows: Any, columns: Any) -> Any:
        """The exposures of cells by numbers of their rows and columns; 1.0 where there are none by cell."""
        return 1.0 if self.exposure is None else self.exposure[rows, columns]

    @property
    def labels(self) -> tuple[list[str] | None, ...]:
        """Labels of every axis."""
        if self.mode_labels:
            return tuple(self.mode_labels)
        return (self.row_labels, self.column_labels, *[None] * (len(self.mode_shape) - 2))

    def folded(self, shape: Sequence[int] | None = None, labels: Sequence[Sequence[str] | None] | None = None) -> Self:
        """The same cells as a tensor: each row's columns are its cells along all other axes, in C order.

        Args:
            shape: length of every axis, rows first; by default found from the columns' names, which must be those that
                ``count_table`` gives: one part for each axis, joined by " | ".
            labels: a list or None for every axis, rows first; rows keep theirs where it is None.

        Raises:
            ValueError: a tensor already, a shape of another number of cells, labels that do not fit, or no shape
                and columns whose names do not give it.
        """
        if len(self.mode_shape) > 2:
            raise ValueError(f"only a matrix can be folded, got {len(self.mode_shape)} axes")
        if shape is None:
            found = split_labels(self.column_labels)
            shape = (self.shape[0], *map(len, found))
            labels = [self.row_labels, *found] if labels is None else labels
        sizes = tuple(int(size) for size in shape)
        if len(sizes) < 2 or sizes[0] != self.shape[0] or math.prod(sizes[1:]) != self.shape[1]:
            raise ValueError(
                f"shape must start with the {self.shape[0]} rows and have lengths whose product is the "
                f"{self.shape[1]} columns, got {sizes}"
            )
        names = check_mode_labels([None] * len(sizes) if labels is None else labels, sizes)
        tensor = self._copy()
        tensor.row_labels = self.row_labels if names[0] is None else names[0]
        tensor.mode_shape, tensor.mode_labels = sizes, [tensor.row_labels, *names[1:]]
        tensor.provenance = self.provenance.folded(sizes)
        return tensor

    def with_steps(self, axis: int, places: np.ndarray, labels: Sequence[str]) -> Self:
        """The same cells with the entries of one axis at other places, and masked ones among them.

        Args:
            axis: by its number.
            places: (n,) of each new entry among those of the axis, each once; -1 for one that is masked. It has the
                noise level of the entry before.
            labels: n of the new entries.
        """
        near, missing = last_there(places), places < 0
        sizes = (*self.mode_shape[:axis], places.size, *self.mode_shape[axis + 1 :])
        found = self._copy()
        found.provenance = self.provenance.with_steps(axis, places)
        found.mode_shape, found.shape = sizes, (sizes[0], math.prod(sizes[1:]))
        hidden = np.broadcast_to(missing.reshape([-1 if a == axis else 1 for a in range(len(sizes))]), sizes)
        if self.stores_all:
            reports = self.reports.reshape(self.mode_shape).take(near, axis)
            found.reports = np.where(hidden, MASKED, reports).ravel().astype(self.reports.dtype)
            found.level_e = self.level_e.reshape(self.mode_shape).take(near, axis).ravel()
            found.columns = np.tile(np.arange(found.shape[1], dtype=self.columns.dtype), sizes[0])
            found.indptr = found.shape[1] * np.arange(sizes[0] + 1)
        else:
            where = [self.row_numbers, *np.unravel_index(self.columns, self.mode_shape[1:])]
            moved = np.empty(self.mode_shape[axis], dtype=np.int64)
            moved[places[~missing]] = np.flatnonzero(~missing)
            where[axis] = moved[where[axis]]
            cells = [np.ravel_multi_index(where, sizes), np.flatnonzero(hidden)]
            reports = np.concatenate([self.reports, np.full(cells[1].size, MASKED, self.reports.dtype)])
            cell = np.concatenate(cells)
            order = np.argsort(cell)
            found.reports, cell = reports[order], cell[order]
            found.columns = (cell % found.shape[1]).astype(self.columns.dtype)
            counts = np.bincount(cell // found.shape[1], minlength=sizes[0])
            found.indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        if self.exposure is not None:
            found.exposure = self.exposure.reshape(self.mode_shape).take(near, axis).reshape(found.shape)
        if axis == 0:
            found.level_d, found.exposure_d = self.level_d[near], self.exposure_d[near]
            found.prior_scale_d = self.prior_scale_d[near]
        else:
            scales = self.prior_scale_v.reshape(self.mode_shape[1:])
            found.prior_scale_v = scales.take(near, axis - 1).ravel()
        if sp.issparse(self.below_zero):
            below = sp.coo_array(self.below_zero).reshape(self.mode_shape)
            found.below_zero = sp.csr_array(moved_along(below, axis, places).reshape(found.shape))
        elif self.below_zero is not None:
            below = self.below_zero.reshape(self.mode_shape).take(near, axis)
            found.below_zero = np.where(hidden, 0, below).reshape(found.shape).astype(below.dtype)
        if self.totals is not None:
            found.totals = self.totals.with_steps(self.mode_shape, axis, near, hidden)
        names = list(self.labels)
        names[axis] = list(labels)
        found.row_labels = names[0]
        if len(sizes) == 2:
            found.column_labels = names[1]
        else:
            found.mode_labels = names
        return found

    def matricized(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> Self:
        """The same cells with these axes for rows and those for columns; axis 0 is among the rows.

        Offsets stay with the axes that they were given for.
        """
        if rows == (0,) and columns == tuple(range(1, len(self.mode_shape))):
            return self
        where = (self.row_numbers, *np.unravel_index(self.columns, self.mode_shape[1:]))
        sizes = [[self.mode_shape[a] for a in axes] for axes in (rows, columns)]
        row, column = (
            np.ravel_multi_index([where[a] for a in axes], size)
            if axes
            else np.zeros(self.columns.size, dtype=np.int64)
            for axes, size in zip((rows, columns), sizes, strict=True)
        )
        order, found = np.lexsort((column, row)), self._copy()
        found.provenance = self.provenance.arranged(rows, columns)
        if self.totals is not None:
            found.totals = self.totals.arranged(self.mode_shape, rows, columns)
        found.shape, found.below_zero = (math.prod(sizes[0]), math.prod(sizes[1])), None
        counts = np.bincount(row, minlength=found.shape[0])
        found.indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        found.columns, found.reports = column[order].astype(np.int32), self.reports[order]
        found.level_e = self.level_e[order] if self.stores_all else self.level_e
        if self.exposure is not None:
            found.exposure = self.exposure.ravel()[order].reshape(found.shape)
        owner = np.unravel_index(np.arange(found.shape[0]), sizes[0])[rows.index(0)]
        found.level_d, found.exposure_d = self.level_d[owner], self.exposure_d[owner]
        return found

    @property
    def n_masked(self) -> int:
        """How many cells are masked."""
        return int(np.count_nonzero(self.reports == MASKED))

    @property
    def masked_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """(rows, columns) of the masked cells."""
        starts = [self.indptr[run.start] for run in runs_of(self)]
        found = [np.flatnonzero(self.block(run).reports == MASKED) for run in runs_of(self)]
        entries = np.concatenate([first + each for first, each in zip(starts, found, strict=True)])
        return np.searchsorted(self.indptr, entries, side="right") - 1, self.columns[entries]

    def block(self, rows: slice) -> Entries:
        """The stored entries of a run of rows, as the kernels take them."""
        start, stop = self.indptr[rows.start], self.indptr[rows.stop]
        return Entries(
            self.indptr[rows.start : rows.stop + 1] - start,
            self.columns[start:stop],
            self.reports[start:stop],
            self.level_e[start:stop] if self.stores_all else self.level_e,
            self.level_d[rows],
            self.exposure_d[rows],
        )

    @property
    def row_numbers(self) -> np.ndarray:
        """(E,) the row of each stored entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    @property
    def stores_all(self) -> bool:
        """Whether every cell is stored, because levels vary within rows."""
        return bool(self.level_e.size)

    @property
    def is_noisy(self) -> bool:
        """Whether any level is above zero."""
        return bool(self.level_d.any() or self.level_e.any())

    @property
    def cell_level(self) -> np.ndarray:
        """The noise level of every cell, as an array that broadcasts against (D, V)."""
        return self.level_e.reshape(self.shape) if self.stores_all else self.level_d[:, None]

    def fully_exposed(self) -> Self:
        """The same cells as a chain with auxiliary noise sees them: exposure 1 except where they are masked."""
        exposed = self._copy()
        exposed.level_e = np.empty(0)
        exposed.level_d, exposed.exposure_d = np.zeros(self.shape[0]), np.ones(self.shape[0])
        return exposed

    def parts(self, order: Iterable[int] | None = None) -> Iterator[tuple[int, "Observations"]]:
        """(first row, observations) of each part that is held in memory at once: here the whole."""
        yield 0, self

    @property
    def n_parts(self) -> int:
        """How many ``parts`` there are."""
        return 1

    def hide(self, rows: np.ndarray, columns: np.ndarray) -> Self:
        """These observations with the given cells masked as well: they leave the likelihood altogether."""
        if self.totals is not None:
            raise ValueError("totals must be None if cells are hidden, because totals would reveal them")
        keys, wanted = self._keys(), np.unique(self._key(rows, columns))
        place = np.searchsorted(keys, wanted)
        known = (place < keys.size) & (keys[np.minimum(place, max(keys.size - 1, 0))] == wanted if keys.size else False)
        reports = self.reports.copy()
        reports[place[known]] = MASKED
        fresh = wanted[~known]
        order = np.argsort(np.concatenate([keys, fresh]), kind="stable")
        keys = np.concatenate([keys, fresh])[order]
        hidden = self._copy()
        hidden.reports = np.concatenate([reports, np.full(fresh.size, MASKED, dtype=reports.dtype)])[order]
        hidden.columns = (keys % self.shape[1]).astype(np.int32)
        counts = np.bincount(keys // self.shape[1], minlength=self.shape[0])
        hidden.indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return hidden

    def take(self, rows: np.ndarray) -> Self:
        """The given rows, in that order, as observations of their own."""
        lengths = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        entries = np.repeat(self.indptr[rows] - indptr[:-1], lengths) + np.arange(indptr[-1])
        taken = self._copy()
        taken.provenance = self.provenance.of_rows(np.asarray(rows))
        taken.totals = None if self.totals is None else self.totals.of_rows(np.asarray(rows))
        taken.shape = (len(rows), self.shape[1])
        taken.mode_shape = (len(rows), *self.mode_shape[1:])
        taken.indptr, taken.columns, taken.reports = indptr, self.columns[entries], self.reports[entries]
        taken.level_e = self.level_e[entries] if self.stores_all else self.level_e
        taken.level_d, taken.exposure_d = self.level_d[rows], self.exposure_d[rows]
        taken.below_zero = None if self.below_zero is None else self.below_zero[rows]
        taken.prior_scale_d = self.prior_scale_d[rows]
        taken.exposure = None if self.exposure is None else self.exposure[rows]
        taken.row_labels = None if self.row_labels is None else [self.row_labels[d] for d in rows]
        if self.mode_labels:
            taken.mode_labels = [taken.row_labels, *self.mode_labels[1:]]
        return taken

    def cells(self, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(max(report, 0), noise level) of the given cells; a report of -1 where the cell is masked."""
        keys, wanted = self._keys(), self._key(rows, columns)
        if keys.size == 0:
            return np.zeros(wanted.size, dtype=np.int64), self.level_d[rows]
        place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        known = keys[place] == wanted
        reports = np.where(known, self.reports[place], 0).astype(np.int64)
        return reports, self.level_e[place] if self.stores_all else self.level_d[rows]

    def relabelled(self, rows: list[str] | None, columns: list[str] | None) -> Self:
        """The same matrix with other labels."""
        found = self._copy()
        found.row_labels, found.column_labels = rows, columns
        return found

    def _copy(self) -> Self:
        """A shallow copy, to be changed."""
        found = copy(self)
        found.provenance = self.provenance.of_part()
        return found

    def _key(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(rows, dtype=np.int64) * self.shape[1] + np.asarray(columns, dtype=np.int64)

    def _keys(self) -> np.ndarray:
        return self._key(self.row_numbers, self.columns)

    def __repr__(self) -> str:
        """Sizes and noise only, never a report."""
        levels, name = self.level_e if self.stores_all else self.level_d, self.noise.level
        low, high = float(levels.min()), float(levels.max())
        noise = f"{name}={low:.4g}" if low == high else f"{name} from {low:.4g} to {high:.4g}"
        masked = f", {self.n_masked} masked" if self.n_masked else ""
        simulated = ", simulated noise" if self.provenance.simulated else ""
        exposed = "" if self.exposure is None else ", exposure by cell"
        return f"{type(self).__name__}({' x '.join(map(str, self.mode_shape))}, {noise}{masked}{exposed}{simulated})"


class PrivatizedCounts(Observations):
    """Reports of counts under two-sided geometric noise, for an analyst who was handed arrays.

    The true counts are latent. Signed reports and reports truncated at zero give the same inference: a
    non-positive report says only that it is not positive (mathematics, equation 2.5).

    Args:
        reports: (D, V) whole numbers, or more axes for a tensor; dense array, scipy.sparse (its zeros are
            non-positive reports), pandas DataFrame (labels kept), numpy.ma array (its mask is taken as ``mask``),
            AnnData object (its X and names), or ``CountTable``. For lists of cells, long tables, graphs and releases
            see ``from_coordinates``, ``from_frame``, ``from_graph``, ``from_anndata``, ``from_release``.
        alpha: noise level in [0, 1); a number, one per row (D,) or (D, 1), one per column (1, V), or one per
            cell; rows are the first axis.
        mask: (D, V) booleans, True where a cell is held out or missing; it leaves the likelihood altogether.
        row_labels, column_labels: names that travel to the posterior.
        labels: the same for any number of axes: a list or None for each.
        row_offset, column_offset: (D,) and (V,) known positive factors of the rates, such as a document's
            length or a population; the rates and theta and phi of the posterior include them. Columns have one
            only where there are two axes.
        exposure: known positive factors of the expected counts, such as the population of each cell; they broadcast
            to the shape of the reports. A number, one for each row (D, 1) and one for each column (1, V) are the same
            as offsets. Others are by cell, of all axes that there are: theta and phi of the posterior are then of
            rates for one unit of exposure, and ``rate()`` of a fit still gives expected counts. A cell that can have
            no count is masked.
        provenance: where the reports are from; releases, graphs and tables state it themselves.

    A Series or DataFrame for alpha, mask, exposure or an offset must have the labels of the reports, in their order;
    without labels on either side, it goes by position.

    Raises:
        ValueError: a shape, label count or alpha that does not fit, or labels in another order; reports that are
            fractional or NaN outside the mask; a negative report where alpha = 0; no rows or no columns.
    """

    @classmethod
    def from_release(
        cls, release: Release, *, mask: Any = None, exposure: Any = None, **options: Any
    ) -> "PrivatizedCounts":
        """The reports, noise levels and labels of a ``Release``; all else as for the class."""
        if not isinstance(release, Release):
            raise TypeError(f"release must be a Release, got {type(release).__name__}")
        if release.extras.totals is not None:
            raise ValueError("release must have no totals, got a release with totals: use Reports.from_release")
        noise, level = level_of_release(release)
        own = options_of_release(release, mask, exposure)
        return cls(release.reports, level, noise=noise, **own, **options)


class ExactCounts(Observations):
    """True counts, seen without noise: the reference that a private analysis is measured against.

    Args:
        counts: (D, V) non-negative whole numbers, in any form that ``PrivatizedCounts`` takes.
        mask, and all options by name: as for ``PrivatizedCounts``.

    Raises:
        ValueError: as ``PrivatizedCounts``, and for a negative count.
    """

    kind: ClassVar[str] = "exact"

    def __init__(self, counts: Any, mask: Any = None, **options: Any) -> None:
        super().__init__(counts, 0.0, mask, **options)


class NaiveCounts(Observations):
    """Noisy reports truncated at zero and then treated as if they were true: what not to do, for comparison.

    Args:
        reports: (D, V) whole numbers or a ``Release``; its noise level is ignored.
        mask, and all options by name: as for ``PrivatizedCounts``.
    """

    kind: ClassVar[str] = "naive"

    def __init__(self, reports: Any, mask: Any = None, **options: Any) -> None:
        if isinstance(reports, Release):
            released = options_of_release(reports, mask, options.pop("exposure", None))
            released["provenance"] = Provenance(directed=reports.directed)
            mask, reports = released.pop("mask"), reports.reports
            options = released | options
        super().__init__(reports, 0.0, mask, **options)

    def _values(self, reports: Any, hidden: np.ndarray | None) -> Any:
        return positive_part(super()._values(reports, hidden))


def runs_of(data: Observations) -> Iterator[slice]:
    """Runs of rows with about ``ENTRIES_AT_ONCE`` stored entries, or one longer row, in order."""
    first, n_rows = 0, data.shape[0]
    while first < n_rows:
        wanted = data.indptr[first] + ENTRIES_AT_ONCE
        stop = max(first + 1, int(np.searchsorted(data.indptr, wanted, side="right")) - 1)
        yield slice(first, min(stop, n_rows))
        first = stop
