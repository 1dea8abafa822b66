"""Components merged pair by pair, until as many are left as are wanted.

Least squares from random factors often gives one component to two true ones, and two to another; it does not recover.
With twice as many components each true one gets one or several of its own. Then, again and again, the pair is merged
whose sum is nearest to a product of two vectors: the square of its second singular value is lost.
"""

import numpy as np

ROUNDS = 5  # of the power iteration for a pair's leading singular vectors
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
