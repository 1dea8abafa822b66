"""Protected tables that somebody else published, as releases that say so."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.data.beside import axes_of
from countveil.data.frames import texts_of
from countveil.data.margins import known_totals, margin_of_frame
from countveil.data.matrices import check_matrix, unwrap
from countveil.data.numbering import refuse_repeated
from countveil.data.reports import Reports
from countveil.data.tables import cells_of_frame, with_places
from countveil.noise.laws import law_of
from countveil.noise.reading import read_reports
from countveil.privacy import Release
from countveil.privacy.mechanisms import (
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Mechanism,
    Skellam,
    TwoSidedGeometric,
)

SIGNED = DiscreteGaussian, Gaussian, Laplace, Skellam
"""Noise that makes negative reports of small counts, and is not read where these were cut at zero."""
MOST_CELLS = 10**8
"""Of a long table, or a sparse one of three axes or more: all its cells are in memory at once, with 8 bytes each."""
MANY = 20.0
"""Negative reports that are missed: by chance, there are none with probability e^-20."""


def import_reports(
    values: Any,
    mechanism: Mechanism | Iterable[Mechanism],
    source: str,
    *,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    labels: Sequence[Sequence[str] | None] | None = None,
    totals: Any = None,
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
        row_labels, column_labels: of two axes, instead of the values' own.
        labels: a list or None for each of more axes.
        totals: a list of one (axis or axes, values): exact sums of the counts that were published too, as for
            ``Reports``, without groups. NaN is one that is not known. Fits by ``gibbs`` meet them.
        simulated: True where the noise came from a seeded generator: the release then says that it protects nobody.

    Raises:
        TypeError: something that is no mechanism, or values that are no numbers.
        ValueError: reports that the mechanism cannot have made; noise that was cut at zero where that cannot be read;
            masked values; sparse values of three axes or more that are too large; labels or a source that do
            not fit; totals that counts with these reports cannot have.
    """
    axes = axes_of(values, row_labels, column_labels, labels)
    values, mask, rows, columns = unwrap(dense_if_many_axes(values), None, row_labels, column_labels)
    if mask is not None and mask.any():
        raise ValueError(
            f"values must not be masked, got {mask.sum()} masked: import all reports, and mask cells in Reports"
        )
    if values.ndim < 2:
        raise ValueError(f"values must have two axes or more, got {values.ndim}")
    if values.ndim == 2:
        check_matrix(values)
    stated = one_or_each(mechanism, values.shape[0])
    named = (rows, columns)[: values.ndim] if labels is None else labels
    if len(named) < values.ndim:
        named = (*named, *(None,) * (values.ndim - len(named)))
    names = tuple(None if each is None else tuple(texts_of(each)) for each in named)
    kept, cut = checked(values, stated)
    known = known_totals(totals, values.shape, axes)
    found = Release(kept, mechanism_of(stated), cut, names, simulated, source=source, totals=known)
    check_totals(found)
    return found


def import_long(
    frame: pd.DataFrame,
    axes: Sequence[str],
    value: str,
    mechanism: Mechanism,
    source: str,
    categories: Mapping[str, Sequence[Any]] | None = None,
    *,
    background: float | None = None,
    totals: pd.DataFrame | None = None,
    simulated: bool = False,
) -> Release:
    """The same from a long table, with a row for each cell.

    A cell without a row has no report, where the mechanism has that: there absence is a report. Elsewhere every count
    has one, and a table that lacks rows is refused unless ``background`` says what was left out.

    Args:
        frame: DataFrame with a column for each axis and one of reports; NaN as for ``import_reports``.
        axes: names of two columns or more, the first one the rows of the release.
        value: name of the column of reports.
        mechanism, source: as for ``import_reports``; one mechanism for all cells.
        categories: {axis: values} fixes an axis beforehand.
        background: the report of cells without a row, such as 0 where the publisher left out reports of 0.
        totals: DataFrame with columns for some of the axes and ``value``, exact sums over all other axes. A total
            without a row, or NaN, is not known.
        simulated: as for ``import_reports``.

    Raises:
        TypeError: not a DataFrame.
        ValueError: a column or category that is missing or unknown, a cell that has two rows, cells without a row and
            without ``background`` where every count has a report, and as ``import_reports``.
    """
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a DataFrame, got {type(frame).__name__}")
    if list(frame.columns).count(value) != 1:
        raise ValueError(f"frame must have one column {value!r}, got columns {list(frame.columns)}")
    (one,) = one_or_each(mechanism, 1)
    numbered, place = with_places(frame)
    try:
        cells = cells_of_frame(numbered, axes, place, categories)
    except ValueError as error:
        if "each cell once" in str(error):
            raise ValueError(
                f"axes must name each cell once, got several rows of one cell of {' x '.join(axes)}: name all axes of "
                "the table, and leave out rows of totals and what is published in several ways"
            ) from error
        raise
    if (size := prod(cells.shape)) > MOST_CELLS:
        raise ValueError(
            f"axes must have at most {MOST_CELLS:,} cells, since every one has a report or none, got {size:,}"
        )
    found = np.full(cells.shape, background_of(one, background, size - len(frame)))
    found[tuple(cells.coordinates)] = read_reports(frame[value].to_numpy()[cells.values], one)
    labels = cells.labels or [None] * len(axes)
    known = None if totals is None else [margin_of_frame(totals, list(axes), labels, value)]
    return import_reports(found, one, source, labels=cells.labels, totals=known, simulated=simulated)


def background_of(mechanism: Mechanism, background: float | None, n_missing: int) -> float:
    """The report of the cells without a row; raises ValueError where there are some and nothing says what it is."""
    if background is not None:
        return float(background)
    if n_missing and not getattr(mechanism, "absent", False):
        raise ValueError(
            f"frame must have a row for every cell, because {mechanism.name} gives every count a report, got "
            f"{n_missing:,} cells without one: background=0 (--background 0) if reports of 0 were left out, or "
            "Reports with a mask if they were never reported"
        )
    return float("nan")


def dense_if_many_axes(values: Any) -> Any:
    """A sparse array of three axes or more as a dense one; anything else as it is. Raises ValueError if too large."""
    if not sp.issparse(values) or values.ndim < 3:
        return values
    if (size := prod(values.shape)) > MOST_CELLS:
        raise ValueError(
            f"values must have at most {MOST_CELLS:,} cells where they are sparse with three axes or more, got {size:,}"
        )
    stored = sp.coo_array(values)
    refuse_repeated(stored)
    return stored.toarray()


def check_again(release: Release) -> None:
    """Refuses reports of an imported release that its mechanism cannot have made, and totals; raises ValueError."""
    if release.source is not None:
        stated = release.mechanism
        checked(release.reports, (stated,) if isinstance(stated, Mechanism) else stated)
        check_totals(release)


def check_totals(release: Release) -> None:
    """Refuses totals that counts with these reports cannot have; raises ValueError."""
    if release.totals is not None:
        Reports.from_release(release)


def one_or_each(mechanism: Any, rows: int) -> tuple[Mechanism, ...]:
    """The mechanism, or those of all rows; raises TypeError or ValueError for anything else."""
    if isinstance(mechanism, Mechanism):
        return (mechanism,)
    found = tuple(mechanism) if isinstance(mechanism, Iterable) and not isinstance(mechanism, str) else None
    if found is None or not all(isinstance(each, Mechanism) for each in found):
        raise TypeError(
            f"mechanism must be one of countveil.mechanisms, or one for each row, got {type(mechanism).__name__}"
        )
    if len(found) != rows:
        raise ValueError(f"mechanism must be one, or one for each of {rows} rows, got {len(found)}")
    return found


def mechanism_of(stated: tuple[Mechanism, ...]) -> Mechanism | tuple[Mechanism, ...]:
    """One where all rows have the same."""
    return stated[0] if len(set(stated)) == 1 else stated


def checked(values: Any, stated: tuple[Mechanism, ...]) -> tuple[Any, bool]:
    """(the reports as a release holds them, whether they may have been cut at zero without a loss)."""
    if len(stated) == 1 and sp.issparse(values):
        refuse_repeated(sp.coo_array(values))
        stored = sp.csr_array(values)
        stored.data = read_reports(stored.data, stated[0])
        read_reports(np.zeros(1), stated[0])  # of the cells that are not stored
        stored.eliminate_zeros()
        if (stored.data > 0).all() and (np.floor(stored.data) == stored.data).all():
            check_sign(stored.data, int(np.prod(stored.shape)) - stored.nnz, stated[0])
            return stored.astype(np.int64), isinstance(stated[0], TwoSidedGeometric)
        values = stored
    dense = values.toarray() if sp.issparse(values) else np.asarray(values)
    groups: Mapping[Mechanism, Any] = {stated[0]: slice(None)}
    if len(stated) > 1:
        groups = {
            each: np.array([own == each for own in stated]) for each in dict.fromkeys(stated)
        }  # rows of each
    found = np.empty(dense.shape)
    for each, rows in groups.items():
        found[rows] = read_reports(dense[rows], each)
        check_sign(found[rows], int((found[rows] == 0).sum()), each)
    geometric = all(isinstance(each, TwoSidedGeometric) for each in stated)
    real = any(getattr(each, "real", False) for each in stated)
    whole = not real and not np.isnan(found).any()
    return found.astype(np.int64) if whole else found, bool(geometric and (found >= 0).all())


def check_sign(reports: np.ndarray, zeros: int, mechanism: Mechanism) -> None:
    """Refuses reports of noise that were cut at zero; raises ValueError.

    Of a count of zero, reports of -1 and of 0 are as likely as the noise says; half of the zeros are taken to be of
    other counts.
    """
    if not isinstance(mechanism, SIGNED) or (reports < 0).any():
        return
    below, at = (float(law_of(mechanism).log_kernel(np.array([r]), np.array([0]))[0]) for r in (-1.0, 0.0))
    if 0.5 * zeros * np.exp(below - at) > MANY:
        raise ValueError(
            f"reports must be as the mechanism made them, got {zeros} zeros and no negative one under {mechanism!r}: "
            "they were cut at zero, which only two-sided geometric noise survives. Get the reports before that"
        )
