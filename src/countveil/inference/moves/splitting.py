"""Components split along the direction that raises the likelihood most.

Let S be the derivative of the log-likelihood in the rates. A component theta_k phi_k becomes
two, theta_k (1 + x) phi_k (1 + y) / 2 and theta_k (1 - x) phi_k (1 - y) / 2, which changes its rates by the factor
1 + x y. To first order the gain is x' diag(theta_k) S diag(phi_k) y, so x and y are the leading singular vectors of a
matrix. A component that stands for two true ones gains far more than others, in units of its standard deviation.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countveil.data.observations import Observations
from countveil.engines.blocks import Engine, row_blocks, summed
from countveil.kernels.scoring import log_likelihood_rows
from countveil.kernels.tiles import is_dense
from countveil.laws.counts.laws import in_block

FIRST_ITERATIONS = 2  # of the power iteration for all components
ITERATIONS = 4  # more for candidates; with 3 in all, a third fewer of the missing topics were found
ROUNDS = 2  # the second one splits those that gain most after them
SIZE = 0.9  # root mean square of x and of y
LARGEST = 0.95  # of |x| and |y|, so that factors stay positive

Law = tuple[Any, ...]


class Part(NamedTuple):
    """S of one block: ``stored`` less the exposures that its cells would have without a report, ``left right^T``."""

    stored: sp.csr_array  # (D, V) S plus these exposures, in stored cells
    left: np.ndarray  # (D, r)
    right: np.ndarray  # (V, r)


def split(
    observations: Observations,
    law: Law,
    theta: np.ndarray,
    phi: np.ndarray,
    n_new: int,
    number: int,
    rng: np.random.Generator,
    engine: Engine,
) -> tuple[np.ndarray, np.ndarray]:
    """(theta (D, K + n), phi (V, K + n)) with n components split: those that gain most, or the next ones.

    Splits take turns by their ``number``. A component that stands for two may gain less than some true ones, which
    would be split every time.
    """
    parts = parts_of(observations, law, theta, phi, engine)
    begun = rng.standard_normal(phi.shape)
    _, y, gain = directions(parts, theta, phi, begun, FIRST_ITERATIONS, engine)
    first = np.argsort(-gain, kind="stable")[: ROUNDS * n_new]
    x, y, gain = directions(parts, theta[:, first], phi[:, first], y[:, first], ITERATIONS, engine)
    best = np.argsort(-gain, kind="stable")[(number % ROUNDS) * n_new :][:n_new]
    taken, new = first[best], []
    for factor, deviation, share in ((theta, x, 0.5), (phi, y, 1.0)):
        change = np.clip(SIZE * deviation[:, best], -LARGEST, LARGEST)
        other = factor[:, taken] * (1.0 - change) * share
        factor = factor.copy()
        factor[:, taken] *= (1.0 + change) * share
        new.append(np.hstack([factor, other]))
    return new[0], new[1]


def directions(
    parts: list[Part], theta: np.ndarray, phi: np.ndarray, y: np.ndarray, iterations: int, engine: Engine
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(x (D, K), y (V, K), gains (K,)): relative changes of weighted mean 0 and mean square 1, begun at y.

    The gain is the singular value of a component whose rates add up to 1, times the square root of their sum. Its
    square is twice the log-likelihood that the best size of change gains, if no other component has rates in its cells.
    """
    left, right = (np.sqrt(factor / factor.sum(axis=0)) for factor in (theta, phi))
    v, values = orthogonal(right * y, right)
    for _ in range(iterations):
        u, _ = orthogonal(left * times(parts, right * v, engine), left)
        v, values = orthogonal(right * times_transposed(parts, left * u, engine), right)
    return u / left, v / right, values * np.sqrt(theta.sum(axis=0) * phi.sum(axis=0))


def orthogonal(vectors: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of length one, orthogonal to those of ``base``, which have length one; and their lengths before."""
    vectors = vectors - base * (base * vectors).sum(axis=0)
    length = np.sqrt((vectors**2).sum(axis=0))
    return vectors / np.maximum(length, 1e-300), length


def parts_of(observations: Observations, law: Law, theta: np.ndarray, phi: np.ndarray, engine: Engine) -> list[Part]:
    """S of each block of rows."""
    find: Callable[[slice], Part] = partial(part_of, observations, law, theta, phi)
    return list(engine.map(find, row_blocks(observations.shape[0], None, observations.shape[1])))


def part_of(observations: Observations, law: Law, theta: np.ndarray, phi: np.ndarray, rows: slice) -> Part:
    """S of one block: the derivative of log P(max(report, 0) | rate), which is 0 in masked cells."""
    law, entries = in_block(law, observations.block(rows), rows.start)
    values, n_columns = np.empty(entries.size), observations.shape[1]
    dense = is_dense(entries, n_columns)
    log_likelihood_rows(law, entries, theta[rows], phi, phi.sum(axis=0), dense, values)
    if entries.place_d.size:  # exposures vary by column
        left, right = np.eye(len(entries.weight_lv))[entries.place_d], entries.weight_lv.T
    else:
        left, right = entries.exposure_d[:, None], np.ones((n_columns, 1))
    row = np.repeat(np.arange(entries.n_rows), np.diff(entries.indptr))
    values += (left[row] * right[entries.columns]).sum(axis=1)
    shape = entries.n_rows, n_columns
    return Part(sp.csr_array((values, entries.columns, entries.indptr), shape=shape), left, right)


def times(parts: list[Part], x: np.ndarray, engine: Engine) -> np.ndarray:
    """S x, (D, K)."""
    return np.concatenate(list(engine.map(lambda part: part.stored @ x - part.left @ (part.right.T @ x), parts)))


def times_transposed(parts: list[Part], x: np.ndarray, engine: Engine) -> np.ndarray:
    """S^T x, (V, K)."""
    pieces = np.split(x, np.cumsum([len(part.left) for part in parts])[:-1])
    found = engine.map(lambda part, own: (part.stored.T @ own - part.right @ (part.left.T @ own),), parts, pieces)
    return summed(found, len(parts))[0]
