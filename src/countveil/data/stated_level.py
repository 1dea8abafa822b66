"""Whether the reports contradict the noise level that came with them."""

import numpy as np
import scipy.sparse as sp

from countveil.data.observations import Observations
from countveil.kernels.entries import MASKED
from countveil.noise.protocol import Contradiction, Tally


def contradiction_of(data: Observations) -> Contradiction | None:
    """The stated and the found noise level of the cells that are seen, where they differ beyond chance; else None."""
    return data.noise.contradiction(tallied(data))


def tallied(data: Observations) -> Tally:
    """Cells by row, or each by itself where levels vary within rows."""
    reports = data.reports
    if data.stores_all:
        below = data.below_zero
        if below is not None:
            dense = below.toarray() if sp.issparse(below) else below
            below = np.where(reports == MASKED, 0, dense.ravel())
        seen = (reports != MASKED).astype(np.int64)
        return Tally(data.level_e, seen, (reports == 0) * seen, reports == 1, reports == 2, below)

    def by_row(chosen: np.ndarray) -> np.ndarray:
        return np.bincount(data.row_numbers[chosen], minlength=data.shape[0])

    cells = data.shape[1] - by_row(reports == MASKED)
    at_most_zero = cells - by_row(reports > 0)
    return Tally(
        data.level_d, cells, at_most_zero, by_row(reports == 1), by_row(reports == 2), below_zero(data)
    )


def below_zero(data: Observations) -> np.ndarray | None:
    """(D,) the sum of -r over each row's negative reports r that are seen; None where all are truncated."""
    if data.below_zero is None:
        return None
    hidden = data.reports == MASKED
    total = np.asarray(data.below_zero.sum(axis=1, dtype=np.int64), dtype=np.int64)
    if hidden.any():
        rows, columns = data.row_numbers[hidden], data.columns[hidden]
        masked = np.asarray(data.below_zero[rows, columns]).astype(np.int64)
        total = total - np.bincount(rows, weights=masked, minlength=data.shape[0]).astype(np.int64)
    return total
