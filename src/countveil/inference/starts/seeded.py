"""Topics of a start brought to their seeds: each seeded topic is the one that explains its words best."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from countveil.engines.blocks import Arrays
from countveil.models.factorization import Factorization
from countveil.models.priors import SeededPrior

SHARE = 0.5  # of a seeded word's expected count that its topic begins with, at least
TINY = 1e-300  # keeps divisors positive


def seeded_factor(model: Factorization) -> int | None:
    """The factor whose prior has seeds, or None."""
    return next((f for f in model.free if isinstance(model.factors[f].prior, SeededPrior)), None)


def without_seeds(model: Factorization) -> Factorization:
    """The model with the prior that its seeded factor would have without seeds."""
    f = seeded_factor(model)
    if f is None:
        return model
    factors = list(model.factors)
    factors[f] = factors[f]._replace(prior=factors[f].prior.usual)  # type: ignore[attr-defined]
    return model._replace(factors=tuple(factors))


def brought_to_seeds(model: Factorization, factors: Arrays) -> Arrays:
    """The factors of a product of two with their topics in another order, and seeded words high in theirs."""
    f = seeded_factor(model)
    if f is None:
        return factors
    added = model.factors[f].prior.added  # type: ignore[attr-defined]
    theta, phi = model.matrices(factors)
    order = order_by_seeds(added, theta, phi)
    return model.of_matrices(*raised(added, theta[:, order], phi[:, order]))


def order_by_seeds(added: np.ndarray, theta: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """(K,) numbers of topics, those for the seeds (V, K) first, all others as they were.

    A topic goes to the seeds of which it has the largest shares of expected counts, by the Hungarian method.
    """
    n_seeded = int(added.any(axis=0).sum())
    shares = phi * theta.sum(axis=0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), TINY)
    weight = added[:, :n_seeded] / added[:, :n_seeded].sum(axis=0)
    first = linear_sum_assignment(weight.T @ shares, maximize=True)[1]
    return np.concatenate([first, np.setdiff1d(np.arange(phi.shape[1]), first)])


def raised(added: np.ndarray, theta: np.ndarray, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(theta (D, K), phi (V, K)) with SHARE or more of every seeded word's expected count in its topic.

    Of a word in several topics, each has as much as all that the word had before.
    """
    size = theta.sum(axis=0)
    least = SHARE / (1.0 - SHARE) * (phi @ size)[:, None] / np.maximum(size, TINY)
    return theta, np.where(added > 0.0, np.maximum(phi, least), phi)
