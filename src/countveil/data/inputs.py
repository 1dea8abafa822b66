"""Other ways to make observations: from lists of cells, long tables, networks and annotated matrices."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from countveil.data.covariates import stated_covariates
from countveil.data.frames import Cells, cells_of_coordinates, cells_of_frame
from countveil.data.matrices import annotated_parts, check_mask
from countveil.data.networks import graph_matrix
from countveil.data.provenance import Provenance, promise_to_people
from countveil.laws.noise import Noise, noise_called
from countveil.privacy import Release
from countveil.privacy._cells import ByCell


def graph_parts(graph: Any, weight: str | None, nodes: Any, show: bool) -> tuple[Any, dict[str, Any]]:
    """A graph's matrix, and its names and mask as options: an undirected one is seen above the diagonal only."""
    matrix, names = graph_matrix(graph, weight, nodes, show=show)
    mask = None if graph.is_directed() else np.tri(len(names), k=-1, dtype=bool)
    provenance = Provenance(directed=bool(graph.is_directed()))
    return matrix, {"mask": mask, "row_labels": names, "column_labels": names, "provenance": provenance}


def mask_of_release(release: Release, mask: Any) -> Any:
    """The mask given, with the release's own, and all below the diagonal where each pair is reported once, above it."""
    own = None if release.extras.mask is None else np.asarray(release.extras.mask)
    if release.directed is False:
        own = np.tri(release.shape[0], k=-1, dtype=bool)
    if own is None:
        return mask
    given = check_mask(mask, release.shape)
    return own if given is None else own | given


def totals_of_release(release: Release) -> list[tuple[Any, ...]] | None:
    """Its totals as ``Reports`` takes them, NaN where one is hidden or not known."""
    if release.extras.totals is None:
        return None
    found = []
    for each in release.extras.totals:
        numbers = np.array([np.nan if value is None else value for value in each.values], dtype=np.float64)
        where: Any = each.over
        if where is None:
            where = np.reshape(each.groups, release.shape)
        else:
            left = [length for axis, length in enumerate(release.shape) if axis not in where]
            numbers = numbers.reshape(left)
        found.append((where, numbers, "exact" if each.mechanism is None else each.mechanism))
    return found


def exposure_of_release(release: Release, exposure: Any = None) -> Any:
    """The exposure given, or that of the release; raises ValueError where there are both."""
    own = release.extras.exposure
    if own is None:
        return exposure
    if exposure is not None:
        raise ValueError(
            "exposure must be None with a release that has its own, "
            f"got {type(exposure).__name__} in addition: leave exposure out"
        )
    return np.reshape(np.asarray(own.values, dtype=np.float64), own.shape)


def provenance_of(release: Release) -> Provenance:
    """The provenance of a release's reports."""
    promise = None
    if release.extras.waves is not None:
        promise = promise_to_people(release, tuple(dict.fromkeys(release.row_labels or ())))[1]
    return Provenance(
        release.simulated, release.source, release.directed, promise, covariates=stated_covariates(release)
    )


def named_by(axes: Sequence[str]) -> Provenance:
    """The provenance of a long table's cells, whose columns name the axes."""
    return Provenance(axis_names=tuple(map(str, axes)))


def release_labels(release: Release) -> dict[str, Any]:
    """The labels of a release, as keyword arguments."""
    if len(release.shape) > 2:
        return {"labels": release.labels}
    return {"row_labels": release.row_labels, "column_labels": release.column_labels}


def noise_of(release: Release) -> tuple[Noise, Any]:
    """What the reports of a release say about their counts, and the noise level: a number, or one per row.

    Raises:
        ValueError: rows with different mechanisms, or one that is not in the table of noises.
    """
    if isinstance(release.mechanism, ByCell):
        raise ValueError(
            "release must have mechanisms by row, got mechanisms by cell: use Reports.from_release"
        )
    stated = release.mechanism if isinstance(release.mechanism, tuple) else (release.mechanism,)
    different = set(stated)
    names = sorted({each.name for each in different})
    if len(names) > 1:
        raise ValueError(f"release must have the same mechanism in all rows, got {names}")
    noise = noise_called(names[0])
    levels = {each: noise.level_of(each) for each in different}
    if isinstance(release.mechanism, tuple):
        return noise, np.array([levels[each] for each in stated])
    return noise, levels[stated[0]]


class PrivateInputs:
    """Ways to make ``PrivatizedCounts``, all of which state the noise level."""

    @classmethod
    def from_release(
        cls: Any,
        release: Release,
        *,
        mask: Any = None,
        row_offset: Any = None,
        column_offset: Any = None,
        exposure: Any = None,
    ) -> Any:
        """The reports, noise levels and labels of a ``Release``; all else as for ``PrivatizedCounts``."""
        if not isinstance(release, Release):
            raise TypeError(f"release must be a Release, got {type(release).__name__}")
        if release.extras.totals is not None:
            raise ValueError(
                "release must have no totals, got a release with totals: use Reports.from_release"
            )
        noise, level = noise_of(release)
        options = {"row_offset": row_offset, "column_offset": column_offset}
        options["exposure"] = exposure_of_release(release, exposure)
        hidden = mask_of_release(release, mask)
        options |= release_labels(release) | {"noise": noise, "provenance": provenance_of(release)}
        return cls(release.reports, level, hidden, **options)

    @classmethod
    def from_coordinates(
        cls: Any,
        coordinates: Any,
        reports: Any,
        alpha: Any,
        shape: Sequence[int] | None = None,
        labels: Sequence[Sequence[str] | None] | None = None,
        **options: Any,
    ) -> Any:
        """Reports of some cells of an array with two axes or more; all others are seen, and not positive.

        Every cell got noise, so leaving out all that are not positive loses nothing; to leave out positive ones
        would mislead. Mask what was never reported.

        Args:
            coordinates: one vector of whole numbers from 0 for each axis, or an array (axes, cells).
            reports: (cells,) whole numbers.
            alpha, and options by name: as for ``PrivatizedCounts``.
            shape: length of each axis; by default that of its labels, or what its largest coordinate requires.
            labels: a list or None for each axis.

        Raises:
            ValueError: coordinates fractional, negative, out of range or of other lengths; a cell named twice
                (each report has noise of its own, so their sum does not have that of alpha); a shape or labels for
                another number of axes; and as ``PrivatizedCounts``.
        """
        refuse_sums(options)
        return cls._of_cells(cells_of_coordinates(coordinates, reports, shape, labels), alpha, **options)

    @classmethod
    def from_frame(
        cls: Any,
        frame: pd.DataFrame,
        axes: Sequence[str],
        value: str,
        alpha: Any,
        categories: Mapping[str, Sequence[Any]] | None = None,
        **options: Any,
    ) -> Any:
        """Reports from a long table with one cell per row; cells without a row are seen, and not positive.

        Args:
            frame: DataFrame with a column for each axis and one of reports.
            axes: names of two columns or more, the first one the rows of the data.
            value: name of the column of reports.
            alpha, and options by name: as for ``PrivatizedCounts``.
            categories: {axis: values} fixes an axis beforehand. Otherwise a categorical column's categories in their
                order, or the values that occur, sorted. They become labels.

        Raises:
            TypeError: not a DataFrame.
            ValueError: a column or category that is missing or unknown, a cell that has two rows, and as
                ``PrivatizedCounts``.
        """
        refuse_sums(options)
        cells, provenance = cells_of_frame(frame, axes, value, categories), named_by(axes)
        return cls._of_cells(cells, alpha, provenance=provenance, **options)

    @classmethod
    def _of_cells(cls: Any, cells: Cells, alpha: Any, **options: Any) -> Any:
        """Checked cells as observations."""
        return cls(cells.to_sparse(), alpha, labels=cells.labels, **options)

    @classmethod
    def from_graph(
        cls: Any,
        graph: Any,
        alpha: Any,
        weight: str | None = "weight",
        nodes: Sequence[Hashable] | None = None,
        **options: Any,
    ) -> Any:
        """Reports between the actors of a networkx graph, one per edge; pairs without one are not positive.

        Arguments and errors as for ``ExactCounts.from_graph``; parallel edges are refused.
        """
        matrix, found = graph_parts(graph, weight, nodes, show=True)
        if graph.number_of_edges() > joined_pairs(graph):
            raise ValueError("graph must have one report for each pair of actors, got parallel edges")
        return cls(matrix, alpha, **found | options)

    @classmethod
    def from_anndata(cls: Any, data: Any, alpha: Any, layer: str | None = None, **options: Any) -> Any:
        """Reports from an AnnData object's X or one of its layers, labelled by obs_names and var_names."""
        values, rows, columns = annotated_parts(data, layer)
        return cls(values, alpha, **{"row_labels": rows, "column_labels": columns} | options)


class PlainInputs:
    """Ways to make ``ExactCounts`` and ``NaiveCounts``, which have no noise level or ignore it."""

    @classmethod
    def from_coordinates(
        cls,
        coordinates: Any,
        counts: Any,
        shape: Sequence[int] | None = None,
        labels: Sequence[Sequence[str] | None] | None = None,
        *,
        sum_duplicates: bool = False,
        **options: Any,
    ) -> Self:
        """Counts of some cells of an array with two axes or more; all others are zero.

        Args:
            coordinates: one vector of whole numbers from 0 for each axis, or an array (axes, cells).
            counts: (cells,) whole numbers.
            shape: length of each axis; by default that of its labels, or what its largest coordinate requires.
            labels: a list or None for each axis.
            sum_duplicates: add up the counts of a cell that is named twice (true counts only).
            options by name: as for this class.

        Raises:
            ValueError: coordinates fractional, negative, out of range or of other lengths; a cell named twice; a
                shape or labels for another number of axes; and as this class.
        """
        show = cls._allow_sums(sum_duplicates)
        cells = cells_of_coordinates(
            coordinates, counts, shape, labels, sum_duplicates=sum_duplicates, show=show
        )
        return cls._of_cells(cells, options)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        axes: Sequence[str],
        value: str | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        *,
        sum_duplicates: bool = False,
        **options: Any,
    ) -> Self:
        """Counts from a long table: how often each cell has a row, or the value of its row.

        Args:
            frame: DataFrame with a column for each axis.
            axes: names of two columns or more, the first one the rows of the data.
            value: name of the column of counts; None takes each row for one event.
            categories: {axis: values} fixes an axis beforehand. Otherwise a categorical column's categories in their
                order, or the values that occur, sorted. They become labels.
            sum_duplicates: add up the counts of a cell that has two rows (true counts only).
            options by name: as for this class.

        Raises:
            TypeError: not a DataFrame.
            ValueError: a column or category that is missing or unknown, a cell that has two rows, reports without a
                column of values, and as this class.
        """
        show = cls._allow_sums(sum_duplicates)
        if show and value is None:
            raise ValueError("value must name the column of reports, got None: only true counts are counted")
        cells = cells_of_frame(frame, axes, value, categories, sum_duplicates=sum_duplicates, show=show)
        return cls._of_cells(cells, options | {"provenance": named_by(axes)})

    @classmethod
    def from_graph(
        cls: Any,
        graph: Any,
        weight: str | None = "weight",
        nodes: Sequence[Hashable] | None = None,
        **options: Any,
    ) -> Any:
        """Counts between the actors of a networkx graph, labelled by its nodes.

        An edge counts by its attribute ``weight``, or once where it has none (or weight is None); parallel edges add
        up. An undirected graph is seen above the diagonal only, each pair once: everything below is masked.

        Args:
            graph: Graph, DiGraph, MultiGraph or MultiDiGraph.
            weight: name of the edges' attribute.
            nodes: order of the actors; the graph's own by default.
            options by name: as for this class.

        Raises:
            TypeError: not a graph.
            ValueError: nodes that are not all of the graph's, names that are the same as text, weights that are
                not whole; and as this class.
        """
        matrix, found = graph_parts(graph, weight, nodes, show=cls._allow_sums(False))
        return cls(matrix, **found | options)

    @classmethod
    def from_anndata(cls: Any, data: Any, layer: str | None = None, **options: Any) -> Any:
        """Counts from an AnnData object's X or one of its layers, labelled by obs_names and var_names.

        Raises:
            TypeError: not an AnnData object.
            ValueError: no such layer, and as this class (such as for values that were normalised).
        """
        values, rows, columns = annotated_parts(data, layer)
        return cls(values, **{"row_labels": rows, "column_labels": columns} | options)

    @classmethod
    def _allow_sums(cls: Any, wanted: bool) -> bool:
        """Refuses to add up reports; returns whether values are reports, which errors may show."""
        if cls.kind != "exact":
            refuse_sums({"sum_duplicates": wanted})
        return cls.kind != "exact"

    @classmethod
    def _of_cells(cls: Any, cells: Cells, options: dict[str, Any]) -> Any:
        return cls(cells.to_sparse(), labels=cells.labels, **options)


def refuse_sums(options: dict[str, Any]) -> None:
    """Refuses to add up noisy reports."""
    if options.pop("sum_duplicates", False):
        raise ValueError(
            "sum_duplicates must be False for reports, got True: a sum of reports carries the noise of each of "
            "them, which is not two-sided geometric; have the sums privatized instead"
        )


def joined_pairs(graph: Any) -> int:
    """How many pairs of actors have an edge."""
    directed = graph.is_directed()
    return len({(a, b) if directed else frozenset((a, b)) for a, b in graph.edges(data=False)})
