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

TINY = 1e-12
LEAST_MEAN = 1e-3  # of a row's total count: a rate has to be positive


class Facts(NamedTuple):
    """Sums over the cells of some observations (D rows, V columns)."""

    bias_d: np.ndarray  # (D,) what S has beyond T; 0 where levels vary within rows
    fill_d: np.ndarray  # (D,) a masked cell of T is fill_d fill_v
    fill_v: np.ndarray  # (V,)
    row_totals: np.ndarray  # (D,) of T, masked cells as filled
    mean_count: float  # per cell, by T: a moment estimate, kept positive
    total_count: float  # of all cells that are not masked: an unbiased estimate


_facts: WeakKeyDictionary[Observations, Facts] = WeakKeyDictionary()


def facts_of(observations: Observations, engine: Engine | None = None) -> Facts:
    """The facts of observations, found by the engine (else by one thread) when they are first asked for."""
    if observations not in _facts:
        _facts[observations] = find_facts(observations, ThreadEngine(1) if engine is None else engine)
    return _facts[observations]


def find_facts(observations: Observations, engine: Engine) -> Facts:
    """One pass over the rows, and another where cells are masked.

    ``total_count`` adds up numbers that each have the true count for their mean (``kernels.law.unbiased``).
    """
    n_rows, n_columns = observations.shape
    noise, kernel = observations.noise, observations.noise.kernel
    bias_d = np.zeros(n_rows) if observations.stores_all else noise.bias(observations.level_d)
    (row_2d,), (column_2v, total) = engine.over_rows(sum_block, observations, (kernel, n_columns))
    row_sums, hidden_d = row_2d.T
    fill_d = (row_sums - n_columns * bias_d) / np.maximum(n_columns - hidden_d, 1.0)
    fill_v = (column_2v[0] - bias_d.sum()) / np.maximum(n_rows - column_2v[1], 1.0)
    fill_d, fill_v = np.maximum(fill_d, 0.0), np.maximum(fill_v, 0.0)
    fill_v /= max(float(fill_d.mean()), TINY)
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
        mean_count=max(float(mean), LEAST_MEAN / n_columns),
        total_count=float(total[0]),
    )


def sum_block(block: Block, noise: tuple[Any, ...], n_columns: int) -> tuple[Arrays, Arrays]:
    """(sums of S, how many are masked) of the block's rows (D, 2); its part of columns' (2, V), and of the total."""
    row_2d, column_2v = np.zeros((2, block.n_rows)), np.zeros((2, n_columns))
    total = kernels.sum_rows(noise, block.entries, row_2d, column_2v)
    return (row_2d.T,), (column_2v, np.array([total]))


def multiply_block(
    block: Block, noise: tuple[Any, ...], phi: np.ndarray, fill_v: np.ndarray, fill_d: np.ndarray
) -> tuple[Arrays, Arrays]:
    """The block's rows of S phi."""
    product = np.zeros((block.n_rows, phi.shape[1]))
    kernels.multiply_rows(noise, block.entries, fill_d, fill_v, phi, product, False)
    return (product,), ()


def mean_rate_without_offsets(observations: Observations, engine: Engine | None = None) -> float:
    """The mean count over the mean of the known offsets: the size of sum_k theta_dk phi_vk before them."""
    row_offset, column_offset = 1.0 / observations.prior_scale_d, 1.0 / observations.prior_scale_v
    return facts_of(observations, engine).mean_count / float(row_offset.mean() * column_offset.mean())
