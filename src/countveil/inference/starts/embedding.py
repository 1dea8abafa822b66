"""Communities of actors by a regularised spectral embedding of the debiased reports.

B holds the debiased reports from i to j, summed over the rest of a cell; masked cells count as zero. Both sides of
L = (D + tau)^(-1/2) B (D + tau)^(-1/2) have degrees D and their mean tau (Qin and Rohe 2013). One embedding has the
leading eigenvectors of B + B^T scaled so; where direction counts, another has the leading singular vectors of B, since
actors of two communities may be in touch with the same ones in opposite directions (Rohe, Qin and Yu 2016). Actors
are grouped by k-means on rows of length one (Ng, Jordan and Weiss 2001), and the better grouping is taken
(mathematics, section 10).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.cluster.vq import ClusterError, kmeans2
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine
from countveil.inference.facts import facts_of
from countveil.inference.starts.annealing import annealed
from countveil.inference.starts.multiplicative import floored, random_factors, update
from countveil.inference.tuning import EMBEDDINGS, note_race
from countveil.kernels import start as kernels
from countveil.models.factorization import Factorization

OTHERS = 0.05  # an actor's membership of every other community, relative to its own
LEAST_DEGREE = 0.1  # of an actor, relative to the mean: noise may leave none
ITERATIONS = 15  # for each of the other factors, given the memberships
KMEANS_STARTS, KMEANS_ITERATIONS = 10, 10
SMALLEST = 1e-12  # instead of a length of zero

Products = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]  # from (x, y) to (B x, B^T y)


def embeds(model: Factorization) -> bool:
    """Whether a free factor of actors is used on both sides, alone with the actors on the rows' side."""
    return model.shared in model.free and model.rows.single and len(model.rows.observed) == 1


def spectral_start(
    observations: Observations, model: Factorization, rng: np.random.Generator, engine: Engine
) -> Arrays:
    """Positive factors: memberships from the embedding, annealed, by degree; all others by least squares."""
    assert model.shared is not None
    factors = random_factors(observations, model, rng, engine)
    directed = not any(factor.symmetric for factor in model.factors)
    n_communities = factors[model.shared].shape[1]
    theta = grouped(observations, n_communities, directed, rng, engine)
    theta = annealed(observations, theta, directed, rng, engine)
    theta += OTHERS * theta.sum(axis=1, keepdims=True)
    factors[model.shared] = model.as_row_factor(theta / theta.mean(axis=0))
    others = [f for f in model.free if f != model.shared]
    update(observations, model, factors, others, ITERATIONS * len(others), engine)
    return floored(model, factors)


def grouped(
    observations: Observations, n_communities: int, directed: bool, rng: np.random.Generator, engine: Engine
) -> np.ndarray:
    """(I, C) hard memberships by the grouping whose blocks explain most of the squared reports."""
    n = observations.shape[0]
    times = partial(products, observations, engine)
    sent, received = times(np.ones((n, 1)), np.ones((n, 1)))
    degrees = np.maximum(sent + received, 0.0), np.maximum(sent, 0.0), np.maximum(received, 0.0)
    scales = [1.0 / np.sqrt(degree + max(float(degree.mean()), SMALLEST)) for degree in degrees]
    bases = [of_both_directions(times, scales[0], n_communities, rng)]
    if directed:
        bases.append(of_each_direction(times, scales[1], scales[2], n_communities, rng))
    size = np.maximum(degrees[0], LEAST_DEGREE * max(float(degrees[0].mean()), SMALLEST))
    found = [
        (clusters(basis, n_communities, rng)[:, None] == np.arange(n_communities)) * size for basis in bases
    ]
    explained = [explained_by(times, own, directed) for own in found]
    best = int(np.argmax(explained))
    note_race(EMBEDDINGS, explained, best)
    return found[best]


def explained_by(times: Products, own: np.ndarray, directed: bool) -> float:
    """By how much blocks between these hard memberships (I, C) lessen the squared error (mathematics, 10.4)."""
    sent, received = times(own, own)
    block = own.T @ (sent if directed else sent + received)
    square = np.maximum((own**2).sum(axis=0), SMALLEST)
    return float((block**2 / np.outer(square, square)).sum())


def of_both_directions(
    times: Products, scale: np.ndarray, n_vectors: int, rng: np.random.Generator
) -> np.ndarray:
    """(I, n) leading eigenvectors of L by absolute value, so that disassortative ones count too."""

    def product(x: np.ndarray) -> np.ndarray:
        scaled = scale * x.reshape(len(scale), -1)
        return scale * sum(times(scaled, scaled))

    return leading(product, len(scale), n_vectors, "LM", rng)


def of_each_direction(
    times: Products, out_scale: np.ndarray, in_scale: np.ndarray, n_vectors: int, rng: np.random.Generator
) -> np.ndarray:
    """(I, 2 n) leading left and right singular vectors of L."""
    n = len(out_scale)

    def product(x: np.ndarray) -> np.ndarray:
        pair = x.reshape(2 * n, -1)
        sent, received = times(in_scale * pair[n:], out_scale * pair[:n])
        return np.concatenate([out_scale * sent, in_scale * received])

    vectors = leading(product, 2 * n, n_vectors, "LA", rng)
    return np.hstack([vectors[:n], vectors[n:]])


def leading(
    product: Callable[[np.ndarray], np.ndarray], n: int, n_vectors: int, which: str, rng: np.random.Generator
) -> np.ndarray:
    """(n, vectors) leading eigenvectors of a symmetric matrix that is known by its products alone."""
    if n <= 2 * n_vectors + 1:  # too small for the iteration
        values, vectors = np.linalg.eigh(product(np.eye(n)))
        order = np.argsort(-np.abs(values) if which == "LM" else -values, kind="stable")
        return np.asarray(vectors[:, order[:n_vectors]])
    operator = LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)
    try:
        _, found = eigsh(operator, n_vectors, which=which, v0=rng.standard_normal(n), tol=1e-4)
    except ArpackNoConvergence as failure:
        found = failure.eigenvectors
    return np.asarray(found)


def products(
    observations: Observations, engine: Engine, x: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(B x, B^T y) for x and y (I, n); a column of the data is an actor and a rest, flattened."""
    n = observations.shape[0]
    n_rests = observations.shape[1] // n
    bias_d = facts_of(observations, engine).bias_d
    phi = np.repeat(x, n_rests, axis=0)
    shared = observations.noise.kernel, phi
    (sent,), (received, biased) = engine.over_rows(multiply_block, observations, shared, (y, bias_d))
    sent -= bias_d[:, None] * phi.sum(axis=0)
    return sent, received.reshape(n, n_rests, -1).sum(axis=1) - n_rests * biased


def multiply_block(
    block: Block, noise: tuple[Any, ...], phi: np.ndarray, y: np.ndarray, bias_d: np.ndarray
) -> tuple[Arrays, Arrays]:
    """The block's rows of S phi; its part of (S^T y, bias_d y). A masked cell of S has bias_d: none of T."""
    sent, received = np.zeros_like(y), np.zeros_like(phi)
    fill_d, fill_v = np.zeros(len(y)), np.zeros(len(phi))
    kernels.multiply_rows(noise, block.entries, fill_d, fill_v, phi, sent, False)
    kernels.multiply_columns(noise, block.entries, fill_d, fill_v, y, received, False)
    return (sent,), (received, (bias_d[:, None] * y).sum(axis=0))


def clusters(basis: np.ndarray, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """The cluster of each row, scaled to length one: the best of several k-means."""
    rows = basis / np.maximum(np.linalg.norm(basis, axis=1, keepdims=True), SMALLEST)
    best, found = np.inf, np.zeros(len(rows), dtype=int)
    if len(rows) <= n_clusters:
        return np.arange(len(rows))
    for _ in range(KMEANS_STARTS):
        try:
            centres, group = kmeans2(
                rows, n_clusters, iter=KMEANS_ITERATIONS, minit="++", missing="raise", rng=rng
            )
        except ClusterError:  # a cluster lost all of its rows
            continue
        distance = float(((rows - centres[group]) ** 2).sum())
        if distance < best:
            best, found = distance, group
    return found
