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
from countveil.inference.starts.multiplicative import floored, random_factors, update
from countveil.inference.tuning import EMBEDDINGS, GROUPINGS, note_race
from countveil.kernels import grouping
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
    found = [(clusters(basis, n_communities, rng)[:, None] == np.arange(n_communities)) * size for basis in bases]
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


def of_both_directions(times: Products, scale: np.ndarray, n_vectors: int, rng: np.random.Generator) -> np.ndarray:
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


def products(observations: Observations, engine: Engine, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
    kernels.multiply(noise, block.entries, fill_d, fill_v, phi, sent, False, True)
    kernels.multiply(noise, block.entries, fill_d, fill_v, y, received, False, False)
    return (sent,), (received, (bias_d[:, None] * y).sum(axis=0))


def clusters(basis: np.ndarray, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """The cluster of each row, scaled to length one: the best of several k-means."""
    rows = basis / np.maximum(np.linalg.norm(basis, axis=1, keepdims=True), SMALLEST)
    best, found = np.inf, np.zeros(len(rows), dtype=int)
    if len(rows) <= n_clusters:
        return np.arange(len(rows))
    for _ in range(KMEANS_STARTS):
        try:
            centres, group = kmeans2(rows, n_clusters, iter=KMEANS_ITERATIONS, minit="++", missing="raise", rng=rng)
        except ClusterError:  # a cluster lost all of its rows
            continue
        distance = float(((rows - centres[group]) ** 2).sum())
        if distance < best:
            best, found = distance, group
    return found


# Communities of actors by annealing: groups whose blocks explain most of the debiased reports.
#
# An embedding loses communities whose eigenvalues are within those of noise, such as the parts of an
# undirected core's periphery. What blocks explain of the same matrix L (see ``embedding`` and mathematics,
# equation 10.5) still tells them apart: actors change their groups at random, first freely, then less and
# less. The best of several runs is taken; one of them begins at the embedding's grouping.

RUNS = 4  # from random groups; of 16, 8 to 16 reached the best ones on planted networks at level 3, 0 to 11 at level 1
SWEEPS, LAST_SWEEPS = 80, 4  # over all actors, and then without chance
HOT, COLD = (
    2.0,
    0.3,
)  # in units of the log-likelihood; from 4, or to 0.1, fewer runs reached the best groups at level 3
STILL = 1e-3  # a temperature at which actors go to the best group
VISITS, FEWEST_SWEEPS = 1 << 28, 10  # of cells, in all runs: about a second; more actors are not annealed


def annealed(
    observations: Observations, theta: np.ndarray, directed: bool, rng: np.random.Generator, engine: Engine
) -> np.ndarray:
    """Hard memberships (I, C) times the actors' sizes, better than theta, which has the same form.

    They are theta itself if it has one community, or more actors than can be annealed.
    """
    n, n_groups = theta.shape
    sweeps = min(SWEEPS, VISITS // ((RUNS + 1) * n * n))
    if n_groups == 1 or n <= n_groups or sweeps < FEWEST_SWEEPS:
        return theta
    size, group = theta.sum(axis=1), theta.argmax(axis=1)
    cells, square = scaled(debiased(observations, directed, engine), size, directed)
    hot = np.geomspace(HOT, COLD, sweeps)
    begun = [(group, hot[-1:])] + [(rng.integers(0, n_groups, n), hot) for _ in range(RUNS)]
    runs = [
        (first.copy(), np.append(warm, np.full(LAST_SWEEPS, STILL)), rng.random((len(warm) + LAST_SWEEPS, n)))
        for first, warm in begun
    ]
    anneal = partial(run, cells, np.ascontiguousarray(cells.T), square, n_groups)
    explained = list(engine.map(anneal, *zip(*runs, strict=True)))
    best = int(np.argmax(explained))
    note_race(GROUPINGS, explained, best)
    return np.asarray((runs[best][0][:, None] == np.arange(n_groups)) * size[:, None])


def run(
    sent: np.ndarray,
    received: np.ndarray,
    square: np.ndarray,
    n_groups: int,
    group: np.ndarray,
    temperatures: np.ndarray,
    uniforms: np.ndarray,
) -> float:
    """What the blocks of the new groups explain; the groups are changed in place."""
    return float(grouping.anneal(sent, received, square, group, n_groups, temperatures, uniforms))


def debiased(observations: Observations, directed: bool, engine: Engine) -> np.ndarray:
    """(I, I) debiased reports between actors, summed over the rest of a cell, and over directions if these are one."""
    (found,), _ = engine.over_rows(debias_block, observations, (observations.noise.kernel, observations.shape))
    return found if directed else found + found.T


def debias_block(block: Block, noise: tuple[Any, ...], shape: tuple[int, int]) -> tuple[Arrays, Arrays]:
    """The block's rows."""
    cells = np.empty((block.n_rows, shape[1]))
    kernels.debias(noise, block.entries, cells)
    return (cells.reshape(block.n_rows, shape[0], -1).sum(axis=2),), ()


def scaled(cells: np.ndarray, size: np.ndarray, directed: bool) -> tuple[np.ndarray, np.ndarray]:
    """(cells of L times both actors' weights, squares of the weights), scaled so that what blocks explain has a unit.

    L_ij = T_ij / sqrt(s_i s_j), where s is an actor's size plus the mean size, and has the mean w_i w_j rate_cd with
    the weights w_i = size_i / sqrt(s_i). The unit is that of a log-likelihood: L is divided by its standard deviation,
    and counts once where direction does not. Squares have the mean 1, which changes nothing else.
    """
    increased = np.maximum(size + size.mean(), SMALLEST)
    root, between = np.sqrt(increased), ~np.eye(len(size), dtype=bool)
    variance = max(float((cells / np.outer(root, root))[between].var()), SMALLEST)
    weight, square = size / increased, size**2 / increased
    unit = max(float(square.mean()), SMALLEST) * np.sqrt(variance * (1.0 if directed else 2.0))
    return cells * np.outer(weight, weight) / unit, square / square.mean()
