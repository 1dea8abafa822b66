"""What the data say about themselves, computed once: sums, masked cells, and estimates of the true counts behind them.

The debiased reports T (mathematics, equation 10.1) have mean zero where the true count is zero. They are held as
T = S - bias_d 1^T, where S is as sparse as the positive reports (see ``kernels.start``). Masked cells of T are filled
with the product of their row's and column's means.
"""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.engines.threads import ThreadEngine
from countveil.kernels import start as kernels

SMALLEST_DIVISOR = 1e-12  # instead of a mean of zero
MIN_ROW_TOTAL = 1e-3  # of a row's total count, since rates must be positive


class Facts(NamedTuple):
    """Sums over the cells of some observations (D rows, V columns)."""

    bias_d: np.ndarray  # (D,) S - T of each row's cells; 0 where levels vary within rows
    fill_d: np.ndarray  # (D,) a masked cell of T is fill_d fill_v
    fill_v: np.ndarray  # (V,)
    row_totals: np.ndarray  # (D,) of T, with masked cells filled
    mean_count: float  # per cell: the mean of T, a moment estimate, kept positive
    total_count: float  # of all cells that are not masked: an unbiased estimate


_facts: WeakKeyDictionary[Observations, Facts] = WeakKeyDictionary()


def facts_of(observations: Observations, engine: Engine | None = None) -> Facts:
    """The facts of observations, computed by the engine (or one thread) when they are first asked for."""
    if observations not in _facts:
        _facts[observations] = find_facts(observations, ThreadEngine(1) if engine is None else engine)
    return _facts[observations]


def find_facts(observations: Observations, engine: Engine) -> Facts:
    """One pass over the rows, and another where cells are masked.

    ``total_count`` adds up unbiased estimates of the true counts (``kernels.law.unbiased``).
    """
    n_rows, n_columns = observations.shape
    noise, kernel = observations.noise, observations.noise.kernel
    bias_d = np.zeros(n_rows) if observations.stores_all else noise.bias(observations.level_d)
    (row_2d,), (column_2v, total) = engine.over_rows(sum_block, observations, (kernel, n_columns))
    row_sums, hidden_d = row_2d.T
    fill_d = (row_sums - n_columns * bias_d) / np.maximum(n_columns - hidden_d, 1.0)
    fill_v = (column_2v[0] - bias_d.sum()) / np.maximum(n_rows - column_2v[1], 1.0)
    fill_d, fill_v = np.maximum(fill_d, 0.0), np.maximum(fill_v, 0.0)
    fill_v /= max(float(fill_d.mean()), SMALLEST_DIVISOR)
    if hidden_d.any():
        ones = np.ones((n_columns, 1))
        (product,), _ = engine.over_rows(multiply_block, observations, (kernel, ones, fill_v), (fill_d,))
        row_sums = product[:, 0]
    mean = (row_sums.sum() - n_columns * bias_d.sum()) / (n_rows * n_columns)
    return Facts(
        bias_d,
        fill_d,
        fill_v,
        row_totals=row_sums - n_columns * bias_d,
        mean_count=max(float(mean), MIN_ROW_TOTAL / n_columns),
        total_count=float(total[0]),
    )


def sum_block(block: Block, noise: tuple[Any, ...], n_columns: int) -> tuple[Arrays, Arrays]:
    """(sums of S, masked cells) of the block's rows (D, 2); its part of the columns' (2, V), and the total."""
    row_2d, column_2v = np.zeros((2, block.n_rows)), np.zeros((2, n_columns))
    total = kernels.sum_rows(noise, block.entries, row_2d, column_2v)
    return (row_2d.T,), (column_2v, np.array([total]))


def multiply_block(
    block: Block, noise: tuple[Any, ...], phi: np.ndarray, fill_v: np.ndarray, fill_d: np.ndarray
) -> tuple[Arrays, Arrays]:
    """The block's rows of S phi."""
    product = np.zeros((block.n_rows, phi.shape[1]))
    kernels.multiply(noise, block.entries, fill_d, fill_v, phi, product, False, True)
    return (product,), ()


def mean_rate_without_offsets(observations: Observations, engine: Engine | None = None) -> float:
    """The mean count divided by the means of known offsets and exposures: the mean rate before them."""
    row_offset, column_offset = 1.0 / observations.prior_scale_d, 1.0 / observations.prior_scale_v
    exposure = 1.0 if observations.exposure is None else float(observations.exposure.mean())
    return facts_of(observations, engine).mean_count / float(row_offset.mean() * column_offset.mean()) / exposure
