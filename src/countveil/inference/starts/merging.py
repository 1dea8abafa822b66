"""Components merged pair by pair, until as many are left as are wanted.

Least squares from random factors often gives one component to two true ones, and two to another; it does not recover.
With twice as many components each true one gets one or several of its own. Then, again and again, the pair is merged
whose sum is nearest to a product of two vectors: the square of its second singular value is lost. Components of tensors
are products of three vectors or more, and the nearest product to a pair's sum is found by a power iteration.
"""

from collections.abc import Sequence

import numpy as np

ROUNDS = 5  # of the power iteration for a pair's leading singular vectors
TENSOR_ROUNDS = 10  # of the power iteration for the product nearest to two
BEGUN = (
    0.1  # weight of the smaller of two at its beginning; with equal weights it would stay between equal ones
)
TINY = 1e-300  # keeps divisors positive


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
    scaled = [
        factor / most for factor, most in zip(factors, largest, strict=True)
    ]  # squares of tiny entries are zero
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
