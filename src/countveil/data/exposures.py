"""Known exposures of cells, such as their population: expected counts are exposures times rates (mathematics, 3.4)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.data.labels import Axis, in_order, tabled

MOST_CELLS = 1 << 24
"""All cells of data with an exposure by cell are stored, in about 25 bytes each."""


class Exposure(NamedTuple):
    """Exposures as factors of the rates of rows (D,) and of columns (V,), and of cells (D, V) where these do not do."""

    of_rows: np.ndarray | float
    of_columns: np.ndarray | float
    by_cell: np.ndarray | None


def read_exposure(exposure: Any, axes: Sequence[Axis], shape: tuple[int, ...]) -> Exposure:
    """Exposures that broadcast to this shape, of the data's axes; a Series has one for each row.

    Raises:
        ValueError: exposures that are no positive finite numbers, do not broadcast to the shape, or have other labels
            than the data.
    """
    if exposure is None:
        return Exposure(1.0, 1.0, None)
    by_row = isinstance(tabled(exposure), pd.Series)
    values = numbers_of(in_order("exposure", exposure, axes))
    if by_row and values.shape == shape[:1]:
        values = values.reshape(-1, *(1 for _ in shape[1:]))
    if values.ndim == 1 and shape[0] in (shape[-1], values.size) and values.size > 1:
        raise ValueError(
            f"exposure must say whether it is of rows or of columns, got shape {values.shape} for data {shape}: "
            "reshape it to (-1, 1) for rows, or to (1, -1) for columns"
        )
    try:
        whole = np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(
            f"exposure must broadcast to the shape of the reports {shape}, got shape {values.shape}"
        ) from None
    bad = ~((values > 0.0) & (values < np.inf))
    if bad.any():
        raise ValueError(
            f"exposure must be positive and finite, got {values[bad][0]} at index "
            f"{tuple(int(i) for i in np.argwhere(bad)[0])}: mask a cell that can have no count, with exposure 1"
        )
    sizes = (1,) * (len(shape) - values.ndim) + values.shape
    if all(size == 1 for size in sizes[1:]):
        return Exposure(np.broadcast_to(values.ravel(), shape[:1]), 1.0, None)
    if len(shape) == 2 and sizes[0] == 1:
        return Exposure(1.0, values.ravel(), None)
    return Exposure(1.0, 1.0, whole.reshape(shape[0], -1))


def numbers_of(exposure: Any) -> np.ndarray:
    """Exposures as floats; raises ValueError for what is not numbers."""
    if np.ma.is_masked(exposure):
        raise ValueError(
            "exposure must have no masked entries: give these cells exposure 1, and mask them in the reports"
        )
    values = exposure.toarray() if sp.issparse(exposure) else exposure
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"exposure must be numbers, got {type(exposure).__name__} {exposure!r:.60}"
        ) from None
