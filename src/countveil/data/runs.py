"""Observations in runs of rows, for what looks at every stored entry and must not copy them all."""

from collections.abc import Iterator

import numpy as np

from countveil.data.observations import Observations

ENTRIES_AT_ONCE = 2**14


def runs_of(data: Observations) -> Iterator[slice]:
    """Runs of rows with about ``ENTRIES_AT_ONCE`` stored entries, or one longer row, in order."""
    first, n_rows = 0, data.shape[0]
    while first < n_rows:
        wanted = data.indptr[first] + ENTRIES_AT_ONCE
        stop = max(first + 1, int(np.searchsorted(data.indptr, wanted, side="right")) - 1)
        yield slice(first, min(stop, n_rows))
        first = stop
