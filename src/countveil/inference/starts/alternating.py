"""Nonnegative least squares on debiased truncated reports (mathematics, section 10)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from countveil.data.observations import Observations
from countveil.engines.blocks import Arrays, Block, Engine, Map, row_blocks
from countveil.engines.threads import one_blas_thread
from countveil.inference.facts import facts_of
from countveil.kernels import start as kernels
from countveil.kernels.tiles import is_dense

# An iteration multiplies with the data once per factor; sweeps per product are cheap beside it, and 15 iterations of
# 5 sweeps reach a smaller error than 20 of 1. A local minimum is left late if at all: of 14 starts on 1000 x 1000
# counts 1 was at the least error after 15 iterations, 5 after 30 and 6 after 60. Large data get fewer.
MIN_ITERATIONS, MAX_ITERATIONS = 15, 60
VISITS = 1 << 26  # of stored entries, as far as these bounds allow: about 2 s of a processor
SWEEPS = 5
MANY = 2  # times the components are fitted, then merged
ITERATIONS_IF_ALL_STORED = 66  # before moves, in proportion to the stored cells
FLOOR = 0.01  # of entries, relative to typical ones, so that no factor starts at zero
TINY = 1e-300  # keeps divisors positive
START_ENTRIES = 1 << 25  # stored entries; of larger data phi is fitted to a random part of the rows
PROJECTION_SWEEPS = 10  # over theta, with phi fixed
COLUMNS_AT_ONCE = 256  # rows of phi that one thread updates

# From (theta, phi) to (a better theta, T^T theta, theta^T theta).
HalfStep = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]

Fit = Callable[[Observations, int, np.random.Generator, Engine], tuple[np.ndarray, np.ndarray]]


def least_squares_start(
    observations: Observations, n_components: int, rng: np.random.Generator, engine: Engine, fit: Fit | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Positive (theta (D, K), phi (V, K)) near the least-squares fit, each component of equal mean in both.

    ``fit`` is ``fit_and_merge`` by default. For very large data phi is fitted to a random part of the rows, and theta
    to all rows given phi.
    """
    fit = fit or fit_and_merge
    n_rows, n_entries = observations.shape[0], int(observations.indptr[-1])
    if n_entries > START_ENTRIES:
        n_taken = max(n_rows * START_ENTRIES // n_entries, 1)
        taken = observations.take(np.sort(rng.choice(n_rows, n_taken, replace=False)))
        phi = fit(taken, n_components, rng, engine)[1]
        theta = project(observations, phi, np.zeros((n_rows, n_components)), engine)
    else:
        theta, phi = fit(observations, n_components, rng, engine)
    floor = np.sqrt(FLOOR * facts_of(observations).mean_count / n_components)
    theta, phi = balanced(theta, phi)
    return np.maximum(theta, floor), np.ascontiguousarray(np.maximum(phi, floor))


def balanced(theta: np.ndarray, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(theta (D, K), phi (V, K)) with the same rates and each component of equal mean in both."""
    theta_mean, phi_mean = theta.mean(axis=0), phi.mean(axis=0)
    balance = np.sqrt(np.where(theta_mean * phi_mean > 0.0, phi_mean / np.maximum(theta_mean, TINY), 1.0))
    return theta * balance, phi / balance


def fit_and_merge(
    observations: Observations, n_components: int, rng: np.random.Generator, engine: Engine
) -> tuple[np.ndarray, np.ndarray]:
    """Nonnegative (theta (D, K), phi (V, K)) by least squares with more components, which are then merged.

    A third of the iterations, with twice the components, cost as much as two thirds.
    """
    many = min(MANY * n_components, *observations.shape)
    iterations = affordable(observations)
    if many <= n_components:
        return fit_reports(observations, n_components, rng, engine, iterations)
    third = iterations // (MANY + 1)
    found = merged(*fit_reports(observations, many, rng, engine, third), n_components)
    return fit_reports(observations, n_components, rng, engine, third, found)


def fit_before_moves(
    observations: Observations, n_components: int, rng: np.random.Generator, engine: Engine
) -> tuple[np.ndarray, np.ndarray]:
    """The same with a third more components and few iterations, of which none follows the merging.

    Sweeps and moves follow instead. An iteration costs as much for any share of the cells, and a sweep in proportion
    to it: the start is to cost no more than about ten sweeps.
    """
    many = max(n_components, min(n_components * 4 // 3, *observations.shape))
    share = observations.reports.size / float(np.prod(observations.shape))
    most = max(MIN_ITERATIONS // (MANY + 1), int(ITERATIONS_IF_ALL_STORED * share))
    iterations = min(affordable(observations) // (MANY + 1), most)
    return merged(*fit_reports(observations, many, rng, engine, iterations), n_components)


def affordable(observations: Observations) -> int:
    """As many iterations as the size of the data allows."""
    return min(max(VISITS // max(observations.reports.size, 1), MIN_ITERATIONS), MAX_ITERATIONS)


def fit_reports(
    observations: Observations,
    n_components: int,
    rng: np.random.Generator,
    engine: Engine,
    iterations: int,
    first: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Nonnegative (theta (D, K), phi (V, K)) near the minimum of |T - theta phi^T|^2, with T the debiased reports.

    Rows are independent given phi: a block updates its rows of theta, and adds up what phi's update needs. ``first`` is
    where to begin, at random by default.
    """
    facts = facts_of(observations, engine)

    def half_step(theta: np.ndarray, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shared = observations.noise.kernel, phi, phi.T @ phi, facts.fill_v, SWEEPS, True
        (theta,), (target, biased, gram) = engine.over_rows(
            descend_block, observations, shared, (theta, facts.bias_d, facts.fill_d)
        )
        target -= biased
        return theta, target, gram

    return alternate(half_step, observations.shape, n_components, rng, iterations, SWEEPS, engine.map, first)


def descend_block(
    block: Block,
    noise: tuple[Any, ...],
    phi: np.ndarray,
    gram: np.ndarray,
    fill_v: np.ndarray,
    sweeps: int,
    summed: bool,
    theta: np.ndarray,
    bias_d: np.ndarray,
    fill_d: np.ndarray,
) -> tuple[Arrays, Arrays]:
    """Better rows of theta given phi; if ``summed``, the block's part of (S^T theta, bias_d theta, theta^T theta)."""
    theta, target = theta.copy(), -np.outer(bias_d, phi.sum(axis=0))
    dense = is_dense(block.entries, len(phi))
    kernels.multiply(noise, block.entries, fill_d, fill_v, phi, target, dense, True)
    kernels.descend(theta, gram, target, sweeps)
    if not summed:
        return (theta,), ()
    product = np.zeros_like(phi)
    kernels.multiply(noise, block.entries, fill_d, fill_v, theta, product, dense, False)
    return (theta,), (product, (bias_d[:, None] * theta).sum(axis=0), theta.T @ theta)


def project(observations: Observations, phi: np.ndarray, theta: np.ndarray, engine: Engine) -> np.ndarray:
    """Nonnegative theta (D, K) nearer to the minimum of |T - theta phi^T|^2 given phi (V, K)."""
    facts, phi = facts_of(observations, engine), np.ascontiguousarray(phi)
    with one_blas_thread():
        shared = observations.noise.kernel, phi, phi.T @ phi, facts.fill_v, PROJECTION_SWEEPS, False
        own = theta, facts.bias_d, facts.fill_d
        (theta,), _ = engine.over_rows(descend_block, observations, shared, own)
    return theta


def least_squares(
    matrix: sp.csr_array | np.ndarray,
    bias_d: np.ndarray,
    n_components: int,
    rng: np.random.Generator,
    iterations: int,
    sweeps: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """(theta (D, K), phi (V, K)) >= 0 near the minimum of |matrix - bias_d 1^T - theta phi^T|^2, on one thread."""

    def half_step(theta: np.ndarray, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        kernels.descend(theta, phi.T @ phi, matrix @ phi - np.outer(bias_d, phi.sum(axis=0)), sweeps)
        return theta, matrix.T @ theta - bias_d @ theta, theta.T @ theta

    return alternate(half_step, matrix.shape, n_components, rng, iterations, sweeps)


def alternate(
    half_step: HalfStep,
    shape: tuple[int, int],
    n_components: int,
    rng: np.random.Generator,
    iterations: int,
    sweeps: int,
    many: Map = map,
    first: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Factors by hierarchical alternating least squares (HALS), from ``first`` or from uniform random ones.

    One column of one factor at a time goes to its exact minimum (mathematics, equation 10.3; Cichocki and Phan 2009),
    ``sweeps`` times per product of the data (Gillis and Glineur 2012).
    """
    n_rows, n_columns = shape
    if first is None:
        phi = rng.random((n_columns, n_components))
        theta = rng.random((n_rows, n_components))
    else:
        theta, phi = first
    parts = row_blocks(n_columns, COLUMNS_AT_ONCE)
    with one_blas_thread():
        for _ in range(iterations):
            theta, target, gram = half_step(theta, phi)
            list(many(partial(descend_part, phi, gram, target, sweeps), parts))
            size = np.sqrt((phi**2).sum(axis=0))
            dead = size == 0.0
            phi[:, dead], theta[:, dead] = rng.random((n_columns, int(dead.sum()))), 0.0
            size[dead] = 1.0
            phi /= size
            theta *= size
    return theta, phi


def descend_part(phi: np.ndarray, gram: np.ndarray, target: np.ndarray, sweeps: int, part: slice) -> None:
    """Replace some rows of phi by better ones."""
    kernels.descend(phi[part], gram, target[part], sweeps)


# Components merged pair by pair, until as many are left as are wanted.
#
# Least squares from random factors often gives one component to two true ones, and two to another; it does
# not recover. With twice as many components each true one gets one or several of its own. Then, again and
# again, the pair is merged whose sum is nearest to a product of two vectors: the square of its second
# singular value is lost. Components of tensors are products of three vectors or more, and the nearest product
# to a pair's sum is found by a power iteration.

ROUNDS = 5  # of the power iteration for a pair's leading singular vectors
TENSOR_ROUNDS = 10  # of the power iteration for the product nearest to two
BEGUN = 0.1  # weight of the smaller of two at its beginning; with equal weights it would stay between equal ones


def merged(theta: np.ndarray, phi: np.ndarray, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    """(theta (D, K), phi (V, K)) of the components that are left."""
    theta, phi = theta.copy(), phi.copy()
    left, right = theta.T @ theta, phi.T @ phi
    alive = np.arange(theta.shape[1])
    while alive.size > n_components:
        lost = losses(left[np.ix_(alive, alive)], right[np.ix_(alive, alive)])
        i, j = alive[list(np.unravel_index(int(np.argmin(lost)), lost.shape))]
        theta[:, i], phi[:, i] = leading_pair(theta[:, [i, j]], phi[:, [i, j]])
        alive = alive[alive != j]
        for factor, gram in ((theta, left), (phi, right)):
            gram[i] = gram[:, i] = factor[:, i] @ factor
    return np.ascontiguousarray(theta[:, alive]), np.ascontiguousarray(phi[:, alive])


def losses(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(K, K) squares of the second singular values of sums of two components; infinite on the diagonal.

    left is theta^T theta, right phi^T phi. The squares of both singular values of a pair's sum A add up to |A|^2, and
    their product is det(theta^T theta) det(phi^T phi).
    """
    size = np.diag(left) * np.diag(right)
    total = size[:, None] + size + 2.0 * left * right
    both = [np.outer(np.diag(gram), np.diag(gram)) - gram**2 for gram in (left, right)]
    product = np.maximum(both[0], 0.0) * np.maximum(both[1], 0.0)
    largest = (total + np.sqrt(np.maximum(total**2 - 4.0 * product, 0.0))) / 2.0
    lost = product / np.maximum(largest, TINY)
    np.fill_diagonal(lost, np.inf)
    return np.asarray(lost)


def leading_pair(theta: np.ndarray, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nonnegative (D,) and (V,) whose product is nearest to theta phi^T, of two components each."""
    v = phi.sum(axis=1)
    for _ in range(ROUNDS):
        u = theta @ (phi.T @ v)
        u /= max(float(np.sqrt(u @ u)), TINY)
        v = phi @ (theta.T @ u)
    return u, v


def merged_products(factors: Sequence[np.ndarray], n_components: int) -> list[np.ndarray]:
    """Factors (n, K) of the components that are left, each of which is a product with one vector per factor."""
    largest = [np.maximum(factor.max(axis=0), TINY) for factor in factors]
    scaled = [factor / most for factor, most in zip(factors, largest, strict=True)]  # squares of tiny entries are zero
    norms = [np.sqrt((each**2).sum(axis=0)) for each in scaled]
    units = [each / np.maximum(norm, TINY) for each, norm in zip(scaled, norms, strict=True)]
    length = np.array(largest) * norms
    size, gram = length.prod(axis=0), np.array([unit.T @ unit for unit in units])
    lost = np.full(gram.shape[1:], np.inf)
    alive, i, j = np.arange(size.size), *np.triu_indices(size.size, 1)
    while alive.size > n_components:
        lost[i, j] = lost[j, i] = nearest_products(size[[i, j]], gram[:, i, j])[0]
        pair = alive[list(np.unravel_index(int(np.argmin(lost[np.ix_(alive, alive)])), (alive.size,) * 2))]
        _, new, weights = nearest_products(size[pair, None], gram[:, pair[:1], pair[1:]])
        first, size[pair[0]] = pair[0], new[0]
        for unit, own, two in zip(units, gram, weights, strict=True):
            unit[:, first] = unit[:, pair] @ two[:, 0]
            own[first] = own[:, first] = unit[:, first] @ unit
        alive = alive[alive != pair[1]]
        j = alive[alive != first]
        i = np.full(j.size, first)
    return [np.ascontiguousarray(unit[:, alive] * size[alive] ** (1.0 / len(units))) for unit in units]


def nearest_products(size: np.ndarray, cosine: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(squared errors (P,), sizes (P,), weights (M, 2, P)) of the products nearest to the sums of P pairs of products.

    Products have (2, P) sizes, and M vectors of length one, with (M, P) products of a pair's. A vector of the nearest
    one has these weights of the pair's; it goes to its optimum given the other vectors, again and again.
    """
    unit = np.maximum(size.max(axis=0), TINY)  # squares of tiny sizes are zero
    size, larger = size / unit, size[0] >= size[1]
    begun = np.where([larger, ~larger], 1.0, BEGUN)
    weights, new = np.repeat(begun[None], len(cosine), axis=0), size[0]
    for _ in range(TENSOR_ROUNDS):
        for m in range(len(cosine)):
            along = weights + weights[:, ::-1] * cosine[:, None]
            pull = size * np.delete(along, m, axis=0).prod(axis=0)
            new = np.sqrt((pull**2).sum(axis=0) + 2.0 * pull.prod(axis=0) * cosine[m])
            weights[m] = pull / np.maximum(new, TINY)
    lost = (size**2).sum(axis=0) + 2.0 * size.prod(axis=0) * cosine.prod(axis=0) - new**2
    return lost * unit**2, new * unit, weights
