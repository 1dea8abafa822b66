"""Protected tables that somebody else published, as releases that say so."""

import re
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.data.frames import cells_of_frame, with_places
from countveil.data.labels import Axis, axes_of, in_order, texts_of, texts_or_none
from countveil.data.labels import axis_names as names_of_axes
from countveil.data.matrices import check_mask, check_matrix, read_exposure, unwrap
from countveil.data.mechanism_checks import hidden_as_zero
from countveil.data.numbering import by_mechanism, in_rows, refuse_repeated, with_bounds
from countveil.data.reports import Reports
from countveil.data.tables.margins import (
    Family,
    family_of_frame,
    grouping_of_column,
    grouping_of_frame,
    released_totals,
)
from countveil.data.totals import families_given
from countveil.laws.noise.reading import check_sign, numbers_of, read_reports
from countveil.privacy import Release
from countveil.privacy._cells import ByCell
from countveil.privacy._extras import Extras, ReleasedExposure
from countveil.privacy.mechanisms import Mechanism, RandomRounding, TwoSidedGeometric
from countveil.privacy.mechanisms.base import AddedNoise

MOST_CELLS = 10**8
"""Of a long table, or a sparse one of three axes or more: all its cells are in memory at once, with 8 bytes each."""
Stated = Mechanism | tuple[Mechanism, ...] | ByCell


def import_reports(
    values: Any,
    mechanism: Mechanism | Iterable[Mechanism],
    source: str,
    *,
    mask: Any = None,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    labels: Sequence[Sequence[str] | None] | None = None,
    axis_names: Sequence[str | None] = (),
    totals: Any = None,
    exposure: Any = None,
    simulated: bool = False,
) -> Release:
    """A table that somebody else protected, as a release that fits, files and pages take.

    Args:
        values: (D, V) reports, or more axes: array, DataFrame (its labels are kept), scipy.sparse array (cells that
            are not stored are reports of 0), or ``CountTable``. NaN, None and pandas' NA mean that a count has no
            report because of what it is, as under suppression; other mechanisms refuse them.
        mechanism: what was done to the counts: one of ``countveil.mechanisms``, or one for each row.
        source: one line, up to 200 characters, that says where the reports are from. Whoever imports them vouches
            for the mechanism: nothing can check it, except that impossible reports are refused.
        mask: (D, V) booleans, True where a cell was never reported, for reasons that have nothing to do with its count.
            Its value is not read.
        row_labels, column_labels: of two axes, instead of the values' own.
        labels: a list or None for each of more axes.
        axis_names: what the axes are called, also in tables of fits, None for one without a name; by default the names
            in a DataFrame.
        totals: sums of the counts that were published too, as for ``Reports``: a list of (axis or groups, values) where
            they are exact, or of (axis or groups, values, mechanism). Groups have the labels of values that are a
            Series. Fits by ``gibbs`` use all of them.
        exposure: what expected counts are proportional to, such as the population of each cell: positive numbers that
            broadcast to the shape of the values, as for ``Reports``. A masked cell may lack one.
        simulated: True where the noise came from a seeded generator: the release then says that it protects nobody.

    Warns of zeros that probably stand for hidden counts.

    Raises:
        TypeError: something that is no mechanism, or values that are no numbers.
        ValueError: reports that the mechanism cannot have made; noise that was cut at zero where that cannot be read;
            sparse values of three axes or more that are too large; labels, a mask or a source that do not fit;
            totals that counts with these reports cannot have.
    """
    axes, of_table = axes_of(values, row_labels, column_labels, labels), names_of_axes(values)
    mask = in_order("mask", mask, axes)
    values, mask, rows, columns = unwrap(dense_if_many_axes(values), mask, row_labels, column_labels)
    if values.ndim < 2:
        raise ValueError(f"values must have two axes or more, got {values.ndim}")
    if values.ndim == 2:
        check_matrix(values)
    hidden = check_mask(mask, tuple(values.shape))
    shape = tuple(values.shape)
    stated = stated_of(in_order("mechanism", mechanism, axes), shape)
    given = in_rows(stated, len(shape)) if isinstance(stated, tuple) else stated
    if (bounded := with_bounds(values, given, hidden)) is not given:
        stated = stated_of(bounded, shape)
    named = (rows, columns)[: values.ndim] if labels is None else labels
    if len(named) < values.ndim:
        named = (*named, *(None,) * (values.ndim - len(named)))
    names = tuple(None if each is None else tuple(texts_of(each)) for each in named)
    kept, cut = checked(values, stated, hidden)
    known = released_totals(totals, values.shape, axes)
    called = texts_or_none(axis_names) or of_table
    found = Release(
        kept,
        stated,
        cut,
        names,
        simulated,
        source=source,
        extras=Extras(
            totals=None if known is None else tuple(known),
            mask=hidden,
            exposure=released_exposure(exposure, axes, tuple(values.shape), hidden),
            axis_names=called if any(called) else None,
        ),
    )
    check_totals(found)
    doubt_zeros(kept, stated, hidden)
    return found


def import_long(
    frame: pd.DataFrame,
    axes: Sequence[str],
    value: str,
    mechanism: Mechanism | Mapping[Hashable, Mechanism],
    source: str,
    categories: Mapping[str, Sequence[Any]] | None = None,
    *,
    by: str | None = None,
    mask: Any = None,
    background: float | Literal["missing"] | None = None,
    totals: Any = None,
    groups: Sequence[pd.DataFrame] = (),
    exposure: str | None = None,
    simulated: bool = False,
) -> Release:
    """The same from a long table, with a row for each cell.

    A cell without a row has no report, where the mechanism has that: there absence is a report. Elsewhere every count
    has one, and a table that lacks rows is refused unless ``background`` says what was left out.

    Args:
        frame: DataFrame with a column for each axis and one of reports; NaN as for ``import_reports``.
        axes: names of two columns or more, the first one the rows of the release.
        value: name of the column of reports.
        mechanism: one for all cells, or {value: mechanism} for every value in the column ``by``.
        source: as for ``import_reports``.
        categories: {axis: values} fixes an axis beforehand.
        by: the column, an axis or another one, that says which mechanism a cell has. Of cells without a row, only an
            axis does.
        mask: a boolean for each row, True where the cell was never reported.
        background: the report of cells without a row, such as 0 where the publisher left out reports of 0; or
            "missing" where they were never reported.
        totals: DataFrame with columns for some of the axes and ``value``, exact sums over all other axes; or a list of
            (DataFrame, "exact" or a mechanism). Columns may be groups as well: other columns of ``frame`` that go by
            one of the axes, such as the state of a county, or those of ``groups``. A total without a row is not known;
            nor is NaN, unless the mechanism hides some.
        groups: DataFrames with columns for some of the axes and one more, the group of the cells that these name.
        exposure: the column of exposures, of which every cell needs one unless it was never reported.
        simulated: as for ``import_reports``.

    Raises:
        TypeError: not a DataFrame.
        ValueError: a column or category that is missing or unknown, a cell that has two rows, cells without a row and
            without ``background`` where every count has a report, and as ``import_reports``.
    """
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a DataFrame, got {type(frame).__name__}")
    frame = with_text_names(frame)
    axes, value = [str(name) for name in axes], str(value)
    by, exposure = (None if name is None else str(name) for name in (by, exposure))
    categories = categories and {str(name): values for name, values in categories.items()}
    if list(frame.columns).count(value) != 1:
        raise ValueError(f"frame must have one column {value!r}, got columns {list(frame.columns)}")
    if isinstance(mechanism, Mapping) != (by is not None):
        raise ValueError(
            "mechanism must be {value: mechanism} together with by, and a single mechanism without it, "
            f"got {type(mechanism).__name__} with by={by!r}"
        )
    numbered, place = with_places(frame)
    try:
        cells = cells_of_frame(numbered, axes, place, categories)
    except ValueError as error:
        if "each cell once" in str(error):
            raise ValueError(
                f"axes must name each cell once, got several rows of one cell of {' x '.join(axes)}: name all axes of "
                "the table, and leave out totals and cells that are published more than once"
            ) from error
        raise
    if (size := prod(cells.shape)) > MOST_CELLS:
        raise ValueError(
            f"axes must have at most {MOST_CELLS:,} cells, since every one has a report or none, got {size:,}"
        )
    labels = cells.labels or [None] * len(axes)
    where, everywhere = tuple(cells.coordinates), True
    stated: Any = mechanism
    if isinstance(mechanism, Mapping) and by is not None:
        ordered = frame.iloc[cells.values]
        stated, everywhere = of_values(mechanism, by, ordered, list(axes), labels, cells.shape, where)
    found, gone = np.zeros(cells.shape), np.ones(cells.shape, dtype=bool)
    gone[where] = False
    found[where] = numbers_of(frame[value].to_numpy()[cells.values])
    if gone.any() and background != "missing":
        if not everywhere:
            raise ValueError(
                f"by must be an axis if cells have no row, got {by!r}, which gives no mechanism for {gone.sum():,} "
                'cells: state background="missing" (--background missing) if they were never reported'
            )
        for each, own in cells_of(stated_of(stated, cells.shape), cells.shape):
            chosen = gone if own is None else gone & own
            if chosen.any():
                found[chosen] = background_of(each, background, int(chosen.sum()))
        gone[:] = False
    if mask is not None:
        gone[where] = checked_rows(mask, len(frame))[cells.values]
    known = None if totals is None else families_of(frame, list(axes), labels, value, cells.shape, totals, groups)
    exposures = None
    if exposure is not None:
        exposures = exposure_of_column(frame, exposure, cells.values, where, cells.shape, gone)
    return import_reports(
        found,
        stated,
        source,
        mask=gone,
        labels=cells.labels,
        axis_names=axes,
        totals=known,
        exposure=exposures,
        simulated=simulated,
    )


def with_text_names(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose columns are named by text, as in files; raises ValueError for two that then have one name."""
    names = [str(name) for name in frame.columns]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None and len(set(frame.columns)) == len(names):
        raise ValueError(f"columns must have names that differ as text, got two called {twice!r:.60}: rename one")
    return frame if list(frame.columns) == names else frame.set_axis(pd.Index(names), axis=1)


def exposure_of_column(
    frame: pd.DataFrame,
    name: str,
    order: np.ndarray,
    where: tuple[np.ndarray, ...],
    shape: tuple[int, ...],
    gone: np.ndarray,
) -> np.ndarray:
    """The exposure of every cell by a column of a long table, whose rows are in this order of cells.

    Raises:
        ValueError: no such column, something else than numbers in it, or a cell without a row.
    """
    if list(frame.columns).count(name) != 1:
        raise ValueError(f"exposure must be one column of the table, got {name!r:.60}")
    column = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)[order]
    found = np.full(shape, np.nan)
    found[where] = column
    without = ~gone
    without[where] = False
    if without.any():
        raise ValueError(
            f"frame must have a row for every cell, since each has an exposure, got {int(without.sum()):,} cells "
            f"without one: add rows with their {name!r:.60} for counts that are hidden or zero"
        )
    bad = np.isnan(column) & ~gone[where]
    if bad.any():
        text = frame[name].iloc[order[int(np.argmax(bad))]]
        raise ValueError(f"exposure must be numbers in column {name!r:.60}, got {text!r:.60}")
    return found


def released_exposure(
    exposure: Any, axes: Sequence[Axis], shape: tuple[int, ...], mask: np.ndarray | None
) -> ReleasedExposure | None:
    """Exposures as a release holds them, 1 in masked cells that have none; raises ValueError."""
    if exposure is None:
        return None
    exposure = in_order("exposure", exposure, axes) if not isinstance(exposure, pd.Series) else exposure
    if mask is not None and np.shape(exposure) == shape:
        values = np.asarray(exposure, dtype=np.float64)
        usable = (values > 0.0) & (values < np.inf)
        exposure = np.where(mask & ~usable, 1.0, values)
    found = read_exposure(exposure, axes, shape)
    if found.by_cell is not None:
        return ReleasedExposure(found.by_cell.ravel(), shape)
    if np.ndim(found.of_columns):
        return ReleasedExposure(np.ravel(found.of_columns), (1, *shape[1:]))
    of_rows = np.ravel(found.of_rows)
    return ReleasedExposure(of_rows, (shape[0], *(1 for _ in shape[1:])))


def families_of(
    frame: pd.DataFrame,
    axes: list[str],
    labels: Sequence[Sequence[str] | None],
    value: str,
    shape: tuple[int, ...],
    totals: Any,
    groups: Sequence[pd.DataFrame],
) -> list[Family]:
    """Tables of totals beside a long one as ``import_reports`` takes them; raises as ``family_of_frame``."""
    listed = [(totals,)] if isinstance(totals, pd.DataFrame) else totals
    if not isinstance(listed, list | tuple) or not all(isinstance(each, list | tuple) for each in listed):
        raise TypeError(f"totals must be a DataFrame, or a list of (DataFrame, mechanism), got {type(totals).__name__}")
    named = [grouping_of_frame(with_text_names(each), axes, labels) for each in groups]
    groupings, found = dict(named), []
    given = families_given([(None, *each) for each in listed])
    check_named([name for name, _ in named], [table for _, table, _ in given], value)
    for _, table, mechanism in given:
        if not isinstance(table, pd.DataFrame):
            raise TypeError(f"totals of a long table must be DataFrames, got {type(table).__name__}")
        table = with_text_names(table)
        for name in table.columns:
            if name not in (*axes, value) and name not in groupings:
                groupings[name] = grouping_of_column(frame, name, axes, labels)
        found.append(family_of_frame(table, axes, labels, value, shape, mechanism, groupings))
    return found


def check_named(names: Sequence[str], tables: Sequence[Any], value: str) -> None:
    """Refuse groups of a table that no totals are of, or of two tables; raises ValueError that names them."""
    used = {str(column) for table in tables for column in getattr(table, "columns", ())} - {value}
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ValueError(f"groups must have different names in different tables, got {name!r:.60} in two")
        if name not in used:
            raise ValueError(f"groups must have the name of a column in a table of totals, got {name!r:.60}")


def checked_rows(mask: Any, n_rows: int) -> np.ndarray:
    """Booleans, one for each row of a long table; raises ValueError for anything else."""
    found = np.asarray(mask)
    if found.shape != (n_rows,) or found.dtype.kind != "b":
        raise ValueError(f"mask must be a boolean for each of {n_rows} rows, got {found.dtype} {found.shape}")
    return found


def background_of(mechanism: Mechanism, background: float | None, n_missing: int) -> float:
    """The report of the cells without a row; raises ValueError where there are some and nothing says what it is."""
    if background is not None:
        if isinstance(background, bool) or not isinstance(background, int | float | np.number):
            raise ValueError(f'background must be a number or "missing", got {background!r:.40}')
        return float(background)
    if n_missing and not getattr(mechanism, "absent", False):
        raise ValueError(
            f"frame must have a row for every cell, because {mechanism.name} gives every count a report, got "
            f"{n_missing:,} cells without one: {if_thresholded(mechanism)}background=0 (--background 0) if reports of "
            '0 were left out, background="missing" (--background missing) if these cells were never reported, whatever '
            "their counts"
        )
    return float("nan")


def if_thresholded(mechanism: Mechanism) -> str:
    """How to state that only noisy values above a threshold were published; empty of what adds no noise."""
    if not isinstance(mechanism, AddedNoise | TwoSidedGeometric):
        return ""
    name = re.sub("(?<=[a-z])(?=[A-Z])", "-", type(mechanism).__name__)
    return (
        f"Thresholded({type(mechanism).__name__}(..), above) (--mechanism thresholded --noise {name.lower()} --above "
        "NUMBER) if only values above a number were published; "
    )


def dense_if_many_axes(values: Any) -> Any:
    """A sparse array of three axes or more as a dense one; anything else as it is. Raises ValueError if too large."""
    if not sp.issparse(values) or values.ndim < 3:
        return values
    if (size := prod(values.shape)) > MOST_CELLS:
        raise ValueError(
            f"values must have at most {MOST_CELLS:,} cells if they are sparse with three axes or more, got {size:,}"
        )
    stored = sp.coo_array(values)
    refuse_repeated(stored)
    return stored.toarray()


def check_again(release: Release) -> None:
    """Refuses reports that their mechanism cannot have made, and totals; raises ValueError.

    One's own noise makes any report, and one's own rounding does not.
    """
    rounded = any(isinstance(each, RandomRounding) for each in release.known_mechanisms)
    if release.source is not None or rounded:
        pairs_once = release.directed is False  # and nothing is below the diagonal
        checked(
            release.reports,
            release.mechanism,
            np.tri(release.shape[0], k=-1, dtype=bool) if pairs_once else release.extras.mask,
        )
        check_totals(release)


def check_totals(release: Release) -> None:
    """Refuses totals that counts with these reports cannot have; raises ValueError."""
    if release.extras.totals is not None:
        Reports.from_release(release)


def checked(values: Any, stated: Stated, mask: np.ndarray | None) -> tuple[Any, bool]:
    """(the reports as a release holds them, whether they may have been cut at zero without a loss)."""
    if isinstance(stated, Mechanism) and sp.issparse(values) and mask is None:
        refuse_repeated(sp.coo_array(values))
        stored = sp.csr_array(values, copy=True)  # theirs may be read-only, and stays as it is
        stored.data = read_reports(stored.data, stated)
        read_reports(np.zeros(1), stated)  # of the cells that are not stored
        stored.eliminate_zeros()
        if (stored.data > 0).all() and (np.floor(stored.data) == stored.data).all():
            check_sign(stored.data, int(np.prod(stored.shape)) - stored.nnz, stated)
            return stored.astype(np.int64), isinstance(stated, TwoSidedGeometric)
        values = stored
    dense = values.toarray() if sp.issparse(values) else np.asarray(values)
    found, geometric, real = np.zeros(dense.shape), True, False
    for each, cells in cells_of(stated, dense.shape):
        seen = cells if mask is None else ~mask if cells is None else cells & ~mask
        chosen = ... if seen is None else seen
        found[chosen] = read_reports(dense, each, None if seen is None else ~seen)[chosen]
        check_sign(found[chosen], int((found[chosen] == 0).sum()), each)
        geometric &= isinstance(each, TwoSidedGeometric)
        real |= bool(getattr(each, "real", False))
    whole = not real and not np.isnan(found).any()
    return found.astype(np.int64) if whole else found, bool(geometric and (found >= 0).all())


def doubt_zeros(reports: Any, stated: Stated, mask: np.ndarray | None) -> None:
    """Warns where zeros probably stand for hidden counts."""
    if sp.issparse(reports):
        doubts = [hidden_as_zero(stated, reports.data, prod(reports.shape) - reports.nnz)]  # type: ignore[arg-type]
    else:
        seen = np.ones(reports.shape, dtype=bool) if mask is None else ~mask
        parts = cells_of(stated, reports.shape)
        doubts = [hidden_as_zero(each, reports[seen if own is None else seen & own]) for each, own in parts]
    for doubt in doubts:
        if doubt is not None:
            warnings.warn(doubt, UserWarning, stacklevel=3)


def stated_of(mechanism: Any, shape: tuple[int, ...]) -> Stated:
    """One mechanism, one for each row (a sequence), or an array of them that broadcasts to the reports' shape.

    Raises:
        TypeError: something that is no mechanism.
        ValueError: another number of them, or an array that does not broadcast.
    """
    if isinstance(mechanism, Mechanism):
        return mechanism
    if isinstance(mechanism, pd.Series):
        mechanism = list(mechanism)
    if isinstance(mechanism, np.ndarray | pd.DataFrame):
        mechanism = np.asarray(mechanism, dtype=object)
    listed = isinstance(mechanism, Iterable) and not isinstance(mechanism, str)
    found = mechanism if isinstance(mechanism, np.ndarray) else list(mechanism) if listed else []
    flat = found.ravel() if isinstance(found, np.ndarray) else found
    if not listed or not all(isinstance(each, Mechanism) for each in flat):
        raise TypeError(
            "mechanism must be one of countveil.mechanisms, one for each row, or an array of them by cell, got "
            f"{type(mechanism).__name__}"
        )
    if np.ndim(found) < 2 and len(flat) != shape[0]:
        raise ValueError(f"mechanism must be one, or one for each of {shape[0]} rows, got {len(flat)}")
    if np.ndim(found) < 2:
        return mechanism_of(tuple(flat))
    return of_array(found, shape)


def mechanism_of(stated: tuple[Mechanism, ...]) -> Mechanism | tuple[Mechanism, ...]:
    """One where all rows have the same."""
    return stated[0] if len(set(stated)) == 1 else stated


def of_array(given: Any, shape: tuple[int, ...]) -> Stated:
    """An array of mechanisms by cell, in the simplest form that says the same."""
    own = np.shape(given)
    if len(own) > len(shape) or any(n not in (1, m) for n, m in zip(own[::-1], shape[::-1], strict=False)):
        raise ValueError(
            "mechanism must be a single one, a list with one per row, or an array that can be broadcast to "
            f"{shape}, got shape {own}"
        )
    numbers: dict[Mechanism, int] = {}
    places = np.array([numbers.setdefault(each, len(numbers)) for each in given.ravel()])
    places = places.reshape((1,) * (len(shape) - len(own)) + own)
    known = tuple(numbers)
    for axis in range(len(shape)):  # as short as they can be
        first = places.take([0], axis=axis)
        if (places == first).all():
            places = first
    if len(known) == 1:
        return known[0]
    if places.size == shape[0] == places.shape[0]:
        return tuple(known[place] for place in places.ravel())
    return ByCell(known, places.ravel(), places.shape)


def cells_of(stated: Stated, shape: tuple[int, ...]) -> list[tuple[Mechanism, np.ndarray | None]]:
    """Every different mechanism with the cells that have it, booleans of this shape; None for all."""
    if isinstance(stated, tuple):
        given = np.empty(len(stated), dtype=object)
        given[:] = stated
        return by_mechanism(given.reshape(-1, *[1] * (len(shape) - 1)), shape)
    return by_mechanism(stated, shape)


def of_values(
    mechanism: Mapping[Hashable, Mechanism],
    by: str,
    frame: pd.DataFrame,
    axes: Sequence[str],
    labels: Sequence[Sequence[str] | None],
    shape: tuple[int, ...],
    coordinates: tuple[np.ndarray, ...],
) -> tuple[np.ndarray, bool]:
    """(mechanisms (1, .., n, .., 1) by the value of an axis, or of cells by that of another column, whether of all).

    Cells without a row have no value in another column than an axis; they get the mechanism of the first row.

    Raises:
        ValueError: no such column, or a value for which no mechanism is stated.
    """
    known = {str(value): each for value, each in mechanism.items()}
    if len(known) < len(mechanism):
        texts = [str(value) for value in mechanism]
        twice = next(text for place, text in enumerate(texts) if text in texts[:place])
        raise ValueError(f"mechanism must have every value of {by!r} once, as text, got {twice!r:.60} twice")
    for each in known.values():
        if not isinstance(each, Mechanism):
            raise TypeError(f"mechanism must be one of countveil.mechanisms, got {type(each).__name__}")
    if list(frame.columns).count(by) != 1:
        raise ValueError(f"by must be one column of the table, got {by!r}")
    names: Sequence[str] = (labels[axes.index(by)] or ()) if by in axes else list(frame[by].astype(str))
    odd = next((name for name in names if name not in known), None)
    if odd is not None:
        raise ValueError(f"mechanism must be stated for every value of {by!r}, got none for {odd!r:.60}")
    own = np.empty(len(names), dtype=object)
    own[:] = [known[name] for name in names]
    if by in axes:
        place = axes.index(by)
        return own.reshape([len(own) if axis == place else 1 for axis in range(len(axes))]), True
    found = np.empty(shape, dtype=object)
    found.fill(own[0])
    found[coordinates] = own
    return found, len(frame) == found.size
