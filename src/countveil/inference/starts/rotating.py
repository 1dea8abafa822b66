"""Leading singular vectors of debiased reports, rotated until each stands for one component.

Alternating least squares from random factors fits noise as readily as weak components, the more so the longer it runs.
Singular vectors have no poor minima, and leave out all noise that is not in their span. They are rotated to the varimax
criterion (Kaiser 1958): where each row has few of the components, rotated vectors have many entries near zero and few
large ones, and are the components' own (Rohe and Zeng 2023).
"""

from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.engines.threads import one_blas_thread
from countveil.inference.facts import facts_of
from countveil.inference.starts.alternating import fit_reports
from countveil.kernels import start as kernels
from countveil.kernels.tiles import is_dense

MORE = 3  # one in this many more vectors than are kept are iterated, so that few iterations do
ITERATIONS = 3
MAX_ROTATIONS, TOLERANCE = 100, 1e-5  # of the varimax criterion, relative
MAX_ROWS = 4_000  # that the rotation is found from
LEAST_SQUARES = 2  # iterations after it; more of them fit noise
NO_VECTOR = 1e-12  # of the largest squared singular value: smaller ones are rounding errors


def rotated_start(
    observations: Observations, n_components: int, rng: np.random.Generator, engine: Engine
) -> tuple[np.ndarray, np.ndarray]:
    """Nonnegative (theta (D, K), phi (V, K)) by rotated singular vectors, then a little least squares."""
    rows, columns = singular_vectors(observations, n_components, rng, engine)
    taken = rows
    if len(rows) > MAX_ROWS:
        taken = rows[np.sort(rng.choice(len(rows), MAX_ROWS, replace=False))]
    with one_blas_thread():
        rotation = varimax(taken)
        theta, phi = rows @ rotation, columns @ rotation
    sign = np.where((theta**3).sum(axis=0) < 0.0, -1.0, 1.0)
    first = tuple(np.ascontiguousarray(np.maximum(factor * sign, 0.0)) for factor in (theta, phi))
    return fit_reports(observations, n_components, rng, engine, LEAST_SQUARES, (first[0], first[1]))


def singular_vectors(
    observations: Observations, n: int, rng: np.random.Generator, engine: Engine
) -> tuple[np.ndarray, np.ndarray]:
    """Leading left singular vectors (D, n) of the debiased reports, and right ones (V, n) times their singular values.

    By block power iterations with random beginnings (Halko, Martinsson and Tropp 2011). Both are zero beyond the rank.
    """
    facts, (n_rows, n_columns) = facts_of(observations, engine), observations.shape
    span = max(n, min(n + n // MORE, n_rows, n_columns))
    basis = rng.standard_normal((n_columns, span))
    with one_blas_thread():
        for last in [False] * ITERATIONS + [True]:
            basis = np.ascontiguousarray(np.linalg.qr(basis)[0])
            (product,), sums = engine.over_rows(
                multiply_block,
                observations,
                (observations.noise.kernel, basis, facts.fill_v, last),
                (facts.bias_d, facts.fill_d),
            )
            if not last:
                basis = sums[0] - sums[1]
        squares, turn = np.linalg.eigh(product.T @ product)
        squares, turn = squares[::-1][:n], turn[:, ::-1][:, :n]
        values = np.sqrt(np.where(squares > NO_VECTOR * squares[0], squares, 0.0))
        rows = product @ turn * np.divide(1.0, values, out=np.zeros(n), where=values > 0.0)
        return rows, basis @ turn * values


def multiply_block(
    block: Block,
    noise: tuple[Any, ...],
    basis: np.ndarray,
    fill_v: np.ndarray,
    last: bool,
    bias_d: np.ndarray,
    fill_d: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """The block's rows of T times the basis; unless ``last``, its part of (S^T times these, bias_d times these)."""
    product = -np.outer(bias_d, basis.sum(axis=0))
    dense = is_dense(block.entries, len(basis))
    kernels.multiply(noise, block.entries, fill_d, fill_v, basis, product, dense, True)
    if last:
        return (product,), ()
    back = np.zeros_like(basis)
    kernels.multiply(noise, block.entries, fill_d, fill_v, product, back, dense, False)
    return (product,), (back, bias_d @ product)


def varimax(vectors: np.ndarray) -> np.ndarray:
    """An orthogonal matrix (n, n) that brings the vectors (D, n) to a maximum of the variance of their squares."""
    n_rows, n = vectors.shape
    rotation, before = np.eye(n), 0.0
    for _ in range(MAX_ROTATIONS):
        turned = vectors @ rotation
        squares = turned * turned
        left, values, right = np.linalg.svd(vectors.T @ (turned * squares - turned * (squares.sum(axis=0) / n_rows)))
        rotation, found = left @ right, float(values.sum())
        if found <= before * (1.0 + TOLERANCE):
            break
        before = found
    return np.asarray(rotation)
