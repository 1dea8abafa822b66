"""Components split along the direction that raises the likelihood most.

Let S be the derivative of the log-likelihood in the rates. A component theta_k phi_k becomes
two, theta_k (1 + x) phi_k (1 + y) / 2 and theta_k (1 - x) phi_k (1 - y) / 2, which changes its rates by the factor
1 + x y. To first order the gain is x' diag(theta_k) S diag(phi_k) y, so x and y are the leading singular vectors of a
matrix. A component that stands for two true ones has a far larger singular value than others.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from countveil.data.observations import Observations
from countveil.engines.blas import one_blas_thread
from countveil.engines.blocks import Engine, row_blocks, summed
from countveil.kernels.scoring import slope_entries
from countveil.likelihoods.laws import exposed

ITERATIONS = 6  # of the power iteration; with 3, a third fewer of the missing topics were found
SIZE = 0.9  # root mean square of x and of y
LARGEST = 0.95  # of |x| and |y|, so that factors stay positive

Law = tuple[Any, ...]
Part = tuple[sp.csr_array, np.ndarray]  # S + exposure_d of a block's stored cells, and exposure_d (D,)


def split(
    observations: Observations,
    law: Law,
    theta: np.ndarray,
    phi: np.ndarray,
    n_new: int,
    rng: np.random.Generator,
    engine: Engine,
) -> tuple[np.ndarray, np.ndarray]:
    """(theta (D, K + n), phi (V, K + n)) with those n components split whose singular values are largest."""
    with one_blas_thread():
        x, y, gain = directions(parts_of(observations, law, theta, phi, engine), theta, phi, rng, engine)
    taken = np.argsort(-gain, kind="stable")[:n_new]
    new = []
    for factor, deviation, share in ((theta, x, 0.5), (phi, y, 1.0)):
        change = np.clip(SIZE * deviation[:, taken], -LARGEST, LARGEST)
        other = factor[:, taken] * (1.0 - change) * share
        factor = factor.copy()
        factor[:, taken] *= (1.0 + change) * share
        new.append(np.hstack([factor, other]))
    return new[0], new[1]


def directions(
    parts: list[Part], theta: np.ndarray, phi: np.ndarray, rng: np.random.Generator, engine: Engine
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(x (D, K), y (V, K), singular values (K,)): relative changes of weighted mean 0 and mean square 1."""
    left, right = (np.sqrt(factor / factor.sum(axis=0)) for factor in (theta, phi))
    v, values = orthogonal(rng.standard_normal(phi.shape), right)
    for _ in range(ITERATIONS):
        u, _ = orthogonal(left * times(parts, right * v, engine), left)
        v, values = orthogonal(right * times_transposed(parts, left * u, engine), right)
    return u / left, v / right, values


def orthogonal(vectors: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of length one, orthogonal to those of ``base``, which have length one; and their lengths before."""
    vectors = vectors - base * (base * vectors).sum(axis=0)
    length = np.sqrt((vectors**2).sum(axis=0))
    return vectors / np.maximum(length, 1e-300), length


def parts_of(
    observations: Observations, law: Law, theta: np.ndarray, phi: np.ndarray, engine: Engine
) -> list[Part]:
    """S of each block of rows."""
    find: Callable[[slice], Part] = partial(part_of, observations, law, theta, phi)
    return list(engine.map(find, row_blocks(observations.shape[0], None, observations.shape[1])))


def part_of(observations: Observations, law: Law, theta: np.ndarray, phi: np.ndarray, rows: slice) -> Part:
    """S of one block: the derivative of log P(max(report, 0) | rate), which is 0 in masked cells."""
    entries = exposed(observations.block(rows), law)
    values = np.empty(entries.size)
    slope_entries(law, entries, theta[rows], phi, values)
    values += np.repeat(entries.exposure_d, np.diff(entries.indptr))
    shape = entries.n_rows, observations.shape[1]
    return sp.csr_array((values, entries.columns, entries.indptr), shape=shape), entries.exposure_d


def times(parts: list[Part], x: np.ndarray, engine: Engine) -> np.ndarray:
    """S x, (D, K)."""
    total = x.sum(axis=0)
    return np.concatenate(list(engine.map(lambda part: part[0] @ x - np.outer(part[1], total), parts)))


def times_transposed(parts: list[Part], x: np.ndarray, engine: Engine) -> np.ndarray:
    """S^T x, (V, K)."""
    ends = np.cumsum([part[0].shape[0] for part in parts])
    pieces = np.split(x, ends[:-1])
    found = engine.map(lambda part, own: (part[0].T @ own - part[1] @ own,), parts, pieces)
    return summed(found, len(parts))[0]
