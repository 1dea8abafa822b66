"""Networks: whether the two directions of a pair of actors are counts of their own, or each pair has one."""

from typing import Any

from countveil.privacy import _npy
from countveil.privacy._counts import Counts
from countveil.privacy._reports import first_below
from countveil.privacy.release import Release


def check_counts(table: Counts, directed: bool | None) -> None:
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
    return Release(reports, release.mechanism, release.truncated, release.labels, release.simulated, directed=directed)


def above(reports: Any) -> Any:
    """Square reports with zeros below the diagonal, in the same container."""
    if isinstance(reports, list | tuple):
        return [[0] * i + list(row[i:]) for i, row in enumerate(reports)]
    numpy, sparse = _npy.optional("numpy"), _npy.optional("scipy.sparse")
    if hasattr(reports, "indptr"):
        return sparse.csr_array(sparse.triu(reports))  # type: ignore[union-attr]
    return numpy.triu(reports)  # type: ignore[union-attr]
