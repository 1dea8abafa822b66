"""Counts in, a release out: exact noise on every cell, zeros included."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from countveil.privacy import _counts, _npy
from countveil.privacy._counts import Counts
from countveil.privacy._extras import NO_EXTRAS, Extras
from countveil.privacy._reports import first_below
from countveil.privacy.level import Level
from countveil.privacy.release import Release

Levels: TypeAlias = Level | tuple[Level, ...]
RowNoise: TypeAlias = Callable[[int, int], Any]
"""Noise for the rows from start to stop, as signed whole numbers of shape (stop - start, cells in a row)."""

_CHUNK_CELLS = 1 << 20


def privatize(
    counts: Any,
    level: Level | Sequence[Level],
    truncate: bool | None = None,
    *,
    row_labels: Iterable[Any] | None = None,
    column_labels: Iterable[Any] | None = None,
    vocabulary: Sequence[str] | None = None,
    directed: bool | None = None,
) -> Release:
    """Adds exact noise to every count, from the operating system's entropy.

        reports = counts + tau   (or max(0, counts + tau)),   P(tau) = (1 - alpha)/(1 + alpha) alpha^|tau|

    at a ``PrivacyLevel``: two-sided geometric noise. At the level of ``PrivacyLevel.zcdp(rho)`` it is discrete Gaussian
    noise, P(tau) ~ exp(-tau^2/(2 sigma^2)) with sigma^2 = 1/(2 rho), and reports keep their sign.
    ``counts``: non-negative whole numbers up to 2^62, rows first, as a NumPy array of any number of axes, a
    pandas DataFrame (its labels are kept, except a default numbering; columns whose names all read as
    numbers are refused, since the names may be a record), a scipy.sparse array of any format
    (every cell gets noise), nested lists, or one record as a mapping word -> count over ``vocabulary``, which
    gives a release with one row. A vector is one count per row; one record is a matrix with one row.
    ``level``: one level, or one of the same kind for each row; a Series must have the rows' labels in their order.
    ``truncate``: True for max(0, report), False for signed reports, None for truncated if ``counts`` is sparse
    (signed noise is dense) and signed otherwise. Discrete Gaussian noise is signed always.
    ``directed``: for a network, whose rows and columns are the same actors, and which the release then says
    it is of: True where the two directions of a pair have separate counts; False where each pair has one
    count, given above the diagonal or on both sides of it, and reported above the diagonal only.

    Labels are published as they are, and so is the name of an axis: that of a DataFrame's index or columns, or of an
    Index or a Series of labels.

    Raises TypeError for another container, and ValueError for an empty array, a count that breaks the rule
    (it names the place, never the count: that is private), levels that do not fit the rows, counts that
    are not of such a network, or truncation of discrete Gaussian noise.
    Source: Schein et al. (2019), Theorem 1; Ghosh et al. (2012); Canonne, Kamath, Steinke (2020).
    """
    table = _counts.read(counts, row_labels, column_labels, vocabulary)
    check_network(table, directed)
    levels = read_levels(level, table.shape[0], table.labels[0])
    return recorded(privatize_checked(table, levels, read_truncate(truncate, table, levels)), directed)


def privatize_checked(table: Counts, levels: Levels, truncate: bool) -> Release:
    """The release of checked counts with exact noise."""
    if isinstance(table.values, list):
        noisy = _noisy_lists(table, levels, truncate)
        return Release(noisy, levels, truncate, table.labels, extras=names_in(table))
    return release(table, levels, truncate, lambda start, stop: _exact_noise(table, levels, start, stop))


def read_levels(level: Level | Sequence[Level], rows: int, labels: Sequence[str] | None = None) -> Levels:
    """One level, or a tuple of one for each row, by position; raises TypeError or ValueError.

    A pandas Series must have the rows' labels in their order, where both have labels.
    """
    if not isinstance(level, Level | Iterable) or isinstance(level, str):
        raise TypeError(f"level must be a PrivacyLevel or a sequence of them, got {type(level).__name__}")
    levels = (level,) if isinstance(level, Level) else tuple(level)
    for place, each in enumerate(levels):
        if not isinstance(each, Level):
            raise TypeError(f"level must hold PrivacyLevels, got {type(each).__name__} at index {place}")
    for each in set(levels):
        each.check_drawn()
    if isinstance(level, Level):
        return level
    if len(levels) != rows:
        raise ValueError(f"level must be one, or one for each of {rows} rows, got {len(levels)}")
    if len({type(each) for each in levels}) > 1:
        raise ValueError("all rows must have levels of one kind, got levels of epsilon and levels of rho")
    if hasattr(level, "iloc"):
        _refuse_other_order(level, labels)
    return levels


def _refuse_other_order(level: Any, labels: Sequence[str] | None) -> None:
    """Refuses a Series whose labels are not those of the rows; a default numbering is one beside the same numbers."""
    numbers = [str(i) for i in range(len(level))]
    names = _counts.labels_of(level.index) or numbers
    wanted = numbers if labels is None else list(labels)
    if numbers in (names, wanted) and set(names) != set(wanted):
        return
    for row, (name, label) in enumerate(zip(names, wanted, strict=True)):
        if name != label:
            raise ValueError(
                "level must have the same row labels as counts, in the same order, got a different label at row "
                f"{row}: sort it in their order, or pass .tolist() to match by position"
            )


def read_truncate(truncate: bool | None, table: Counts, levels: Levels) -> bool:
    """Whether to truncate: as asked, or by default whether the counts are sparse and truncation loses nothing."""
    if truncate is not None and not isinstance(truncate, bool):
        raise TypeError(f"truncate must be True, False or None, got {truncate!r}")
    mechanism = (levels if isinstance(levels, Level) else levels[0]).mechanism
    if truncate and mechanism.signed_only:
        raise ValueError(
            f"truncate must be False or None with {mechanism.title}, got True: truncating at zero loses nothing "
            "only with two-sided geometric noise; here negative reports carry information"
        )
    return table.sparse and not mechanism.signed_only if truncate is None else truncate


def release(table: Counts, levels: Levels, truncate: bool, row_noise: RowNoise, *, simulated: bool = False) -> Release:
    """The release of checked counts with the given noise, in the container that fits."""
    import numpy as np

    rows = table.shape[0]
    reports: Any
    if table.sparse and truncate:
        reports = _noisy_csr(table, row_noise)
    else:
        dense = table.values.toarray() if table.sparse else table.values
        reports = dense + row_noise(0, rows).reshape(table.shape)
        if truncate:
            np.maximum(reports, 0, out=reports)
    return Release(reports, levels, truncate, table.labels, simulated, extras=names_in(table))


def names_in(table: Counts) -> Extras:
    """What the table calls its axes, as a part of a release."""
    return NO_EXTRAS._replace(axis_names=table.axis_names)


def _noisy_csr(table: Counts, row_noise: RowNoise) -> Any:
    """The positive reports of a sparse matrix, a run of rows at a time: it is never dense as a whole."""
    import numpy as np
    from scipy.sparse import csr_array

    rows, columns = table.values.shape
    step = max(1, _CHUNK_CELLS // columns)
    data, indices, lengths = [], [], [np.zeros(1, dtype=np.int64)]
    for start in range(0, rows, step):
        stop = min(start + step, rows)
        reports = _noisy_cells(table.values, start, stop, row_noise(start, stop))
        places = np.flatnonzero(reports > 0)
        data.append(_npy.narrowed(reports[places]))
        indices.append((places % columns).astype(np.int32 if columns < 2**31 else np.int64))
        lengths.append(np.diff(np.searchsorted(places, np.arange(stop - start + 1) * columns)))
    indptr = np.cumsum(np.concatenate(lengths))
    index = np.int32 if max(indptr[-1], columns) < 2**31 else np.int64
    values, places = _joined(data, np.result_type(*data)), _joined(indices, index)
    return csr_array((values, places, indptr.astype(index)), shape=(rows, columns))


def _joined(pieces: list[Any], dtype: Any) -> Any:
    """All pieces in one array; the list is emptied on the way, to free their memory."""
    import numpy as np

    whole = np.empty(sum(piece.size for piece in pieces), dtype=dtype)
    end = whole.size
    while pieces:
        piece = pieces.pop()
        whole[end - piece.size : end] = piece
        end -= piece.size
    return whole


def _noisy_cells(counts: Any, start: int, stop: int, drawn: Any) -> Any:
    """Counts of some rows plus noise, flat, in the noise's type, or the narrowest wider one that holds them."""
    import numpy as np

    first, last = counts.indptr[start], counts.indptr[stop]
    values, lengths = counts.data[first:last], np.diff(counts.indptr[start : stop + 1])
    places = np.repeat(np.arange(stop - start) * counts.shape[1], lengths) + counts.indices[first:last]
    largest = int(values.max(initial=0)) + max(int(drawn.max()), -int(drawn.min()))
    kind = next(t for t in (np.int8, np.int16, np.int32, np.int64) if largest <= np.iinfo(t).max)
    reports = drawn.astype(np.result_type(kind, drawn.dtype)).ravel()
    reports[places] += values.astype(reports.dtype)
    return reports


def _exact_noise(table: Counts, levels: Levels, start: int, stop: int) -> Any:
    import numpy as np

    cells = 1
    for length in table.shape[1:]:
        cells *= length
    if isinstance(levels, Level):
        return levels.draw_narrow((stop - start) * cells).reshape(stop - start, cells)
    rows_at: dict[Level, list[int]] = {}
    for row, level in enumerate(levels[start:stop]):
        rows_at.setdefault(level, []).append(row)
    parts = {level: level.draw_narrow(len(rows) * cells) for level, rows in rows_at.items()}
    drawn = np.empty((stop - start, cells), dtype=np.result_type(*parts.values()))
    for level, rows in rows_at.items():
        drawn[rows] = parts.pop(level).reshape(len(rows), cells)
    return drawn


def _noisy_lists(table: Counts, levels: Levels, truncate: bool) -> list[Any]:
    """The same without NumPy: nested lists in, nested lists out."""
    rows = table.values if len(table.shape) > 1 else [[value] for value in table.values]
    noisy = []
    for i, row in enumerate(rows):
        flat = row
        for _ in range(len(table.shape) - 2):
            flat = [value for part in flat for value in part]
        level = levels if isinstance(levels, Level) else levels[i]
        reports = [value + tau for value, tau in zip(flat, level.draw(len(flat)), strict=True)]
        noisy += [max(report, 0) for report in reports] if truncate else reports
    return _npy.nested(noisy, table.shape)


# Networks: whether the two directions of a pair of actors are counts of their own, or each pair has one.


def check_network(table: Counts, directed: bool | None) -> None:
    """Refuse counts that are not those of such a network; None says that they are of none, or that it is not known.

    Raises:
        TypeError: directed is not True, False or None.
        ValueError: counts that are not square; other names of rows than of columns; counts of undirected pairs that
            differ on the two sides of the diagonal.
    """
    if directed is not None and not isinstance(directed, bool):
        raise TypeError(f"directed must be True, False or None, got {directed!r}")
    if directed is None:
        return
    if len(table.shape) != 2 or table.shape[0] != table.shape[1]:
        size = " x ".join(map(str, table.shape))
        raise ValueError(f"counts of a network must be square, one row and one column per actor, got {size}")
    rows, columns = table.labels[:2]
    if rows is not None and columns is not None and rows != columns:
        place = next(i for i, row in enumerate(rows) if row != columns[i])
        raise ValueError(
            "counts of a network must have the same actors as rows and columns, in the same order, got "
            f"{rows[place]!r} and {columns[place]!r} at {place}"
        )
    if not directed and first_below(table.values) and (pair := _asymmetric(table)):
        raise ValueError(
            "counts of an undirected network must have each pair once, above the diagonal, or the same count on both "
            f"sides of it, got different counts at index {pair} and {pair[::-1]} (not shown: they are private). If "
            "the two directions of a pair have separate counts, give directed=True"
        )


def _asymmetric(table: Counts) -> tuple[int, int] | None:
    """Where the first count is that differs from the one on the other side of the diagonal."""
    values = table.values
    if isinstance(values, list):
        every = ((i, j) for i, row in enumerate(values) for j in range(len(row)))
        return next(((i, j) for i, j in every if values[i][j] != values[j][i]), None)
    rows, columns = (values != values.T).nonzero()
    return min(zip(rows.tolist(), columns.tolist(), strict=True), default=None)


def recorded(release: Release, directed: bool | None) -> Release:
    """The release, which now says of what network it is; reports of undirected pairs are cut below the diagonal.

    Raises:
        ReleaseError: a release that is not square.
    """
    if directed is None:
        return release
    reports = release.reports if directed else above(release.reports)
    return Release(
        reports,
        release.mechanism,
        release.truncated,
        release.labels,
        release.simulated,
        directed=directed,
        extras=NO_EXTRAS._replace(axis_names=release.extras.axis_names),
    )


def above(reports: Any) -> Any:
    """Square reports with zeros below the diagonal, in the same container."""
    if isinstance(reports, list | tuple):
        return [[0] * i + list(row[i:]) for i, row in enumerate(reports)]
    numpy, sparse = _npy.optional("numpy"), _npy.optional("scipy.sparse")
    if hasattr(reports, "indptr"):
        return sparse.csr_array(sparse.triu(reports))  # type: ignore[union-attr]
    return numpy.triu(reports)  # type: ignore[union-attr]
