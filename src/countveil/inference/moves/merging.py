"""Components merged pair by pair, by how probable the counts are that are allocated to them.

With the sizes of components and the factors summed out, the counts n_dk and n_vk of a component with N_k tokens have

    L_k = log N_k! + sum_d log DM(n_dk) + sum_v log DM(n_vk)

where DM is the Dirichlet-multinomial law of the prior's shape. A merged pair gains
L_ij - L_i - L_j, less the entropy of a token's component given its cell, which is largest for components that overlap:
without it, two that share their cells would look better merged than they are.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from countveil.engines.blocks import Engine
from countveil.inference import tokens
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams

CANDIDATES = 3  # for this many components one pair, whose gain is computed
LEAST_CANDIDATES = 10  # but no fewer pairs than this: the ten best of all were among the first ten
TINY = 1e-100  # keeps divisors positive, and products of two of them


class Counts(NamedTuple):
    """Expected counts of K components, as rows."""

    rows: np.ndarray  # (K, D)
    columns: np.ndarray  # (K, V)

    def merge(self, i: int, j: int) -> "Counts":
        """Component j > i added to component i."""
        found = []
        for values in self:
            merged = np.delete(values, j, axis=0)
            merged[i] = values[i] + values[j]
            found.append(merged)
        return Counts(*found)


def merge(counts: Counts, n_components: int, shapes: tuple[float, float]) -> list[list[int]]:
    """Which components make each of ``n_components``: the pair with the largest gain is merged, again and again."""
    groups = [[k] for k in range(len(counts.rows))]
    if len(groups) <= n_components:
        return groups
    own, shared, roots = log_probability(counts, shapes), overlap(counts), roots_of(counts)
    known = np.full(shared.shape, np.nan)  # gains of pairs that were computed before
    while len(groups) > n_components:
        left, right = likeliest(counts, shared)
        new = np.isnan(known[left, right])
        known[left[new], right[new]] = gains(counts, own, shared, left[new], right[new], shapes)
        best = int(np.argmax(known[left, right]))
        i, j = int(left[best]), int(right[best])
        known[i] = known[:, i] = np.nan
        known, shared = (np.delete(np.delete(pairs, j, axis=0), j, axis=1) for pairs in (known, shared))
        counts, groups[i] = counts.merge(i, j), groups[i] + groups[j]
        del groups[j]
        own, merged = np.delete(own, j), Counts(*(values[i : i + 1] for values in counts))
        own[i] = log_probability(merged, shapes)[0]
        roots = Counts(*(np.delete(values, j, axis=0) for values in roots))
        for root, values in zip(roots, merged, strict=True):
            root[i] = np.sqrt(values[0])
        shared[i] = shared[:, i] = overlap_with(counts, roots, i)
    return groups


def put_together(theta: np.ndarray, phi: np.ndarray, groups: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """(theta (D, K), phi (V, K)) whose components have the rows' and the columns' sums of their group's rates."""
    row_size, column_size = theta.sum(axis=0), phi.sum(axis=0)
    found = np.empty((len(theta), len(groups))), np.empty((len(phi), len(groups)))
    for k, group in enumerate(groups):
        found[0][:, k] = (theta[:, group] * column_size[group]).sum(axis=1)
        found[1][:, k] = (phi[:, group] * row_size[group]).sum(axis=1)
    return found[0], found[1] / np.maximum(found[0].sum(axis=0), TINY)


def likeliest(counts: Counts, shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (i, j), i < j, among which the best are found: they overlap most for their sizes."""
    i, j = np.triu_indices(len(counts.rows), 1)
    size = np.maximum(counts.rows.sum(axis=1), TINY)
    order = np.argsort(-shared[i, j] / (size[i] * size[j]), kind="stable")
    order = order[: max(LEAST_CANDIDATES, len(size) // CANDIDATES)]
    return i[order], j[order]


def roots_of(counts: Counts) -> Counts:
    """Their square roots."""
    return Counts(*(np.sqrt(values) for values in counts))


def overlap(counts: Counts) -> np.ndarray:
    """(K, K) sums over cells of the geometric means of two components' expected counts."""
    size = np.maximum(counts.rows.sum(axis=1), TINY)
    left, right = roots_of(counts)
    return np.asarray((left @ left.T) * (right @ right.T) / np.sqrt(np.outer(size, size)))


def overlap_with(counts: Counts, roots: Counts, i: int) -> np.ndarray:
    """(K,) the same of component i and each one, given the roots of their counts."""
    size = np.maximum(counts.rows.sum(axis=1), TINY)
    return np.asarray((roots.rows @ roots.rows[i]) * (roots.columns @ roots.columns[i]) / np.sqrt(size * size[i]))


def gains(
    counts: Counts, own: np.ndarray, shared: np.ndarray, i: np.ndarray, j: np.ndarray, shapes: tuple[float, float]
) -> np.ndarray:
    """What merging each pair (i, j) adds to the log-probability; ``own`` is L_k of each, ``shared`` their overlaps.

    The entropy of a token's component is at most 2 log 2 sqrt(p (1 - p)), with equality at 0, 1/2 and 1; summed over
    the tokens of a pair this is 2 log 2 times their overlap.
    """
    both = log_probability(Counts(*(values[i] + values[j] for values in counts)), shapes)
    return np.asarray(both - own[i] - own[j] - 2.0 * np.log(2.0) * shared[i, j])


def log_probability(counts: Counts, shapes: tuple[float, float]) -> np.ndarray:
    """L_k of each component."""
    total = counts.rows.sum(axis=1)
    found = gammaln(1.0 + total)
    for values, shape in zip(counts, shapes, strict=True):
        whole = shape * values.shape[1]
        found += gammaln(whole) - gammaln(whole + total) + (gammaln(shape + values) - gammaln(shape)).sum(axis=1)
    return np.asarray(found)


DRAWS = 2  # whose mean is taken
FIRST = 1 << 40  # their number among the sweeps, far beyond all others


def drawn_counts(
    plan: Plan, law: tuple[Any, ...], theta: np.ndarray, phi: np.ndarray, streams: Streams, sweep: int, engine: Engine
) -> Counts:
    """Means of a few draws of the counts (of bursts, where counts come in bursts) given theta (D, K) and phi (V, K)."""
    assert plan.tokens is not None
    factors, likelihood, found = (theta, phi), plan.model.likelihood, []
    for number in range(FIRST + sweep * DRAWS, FIRST + (sweep + 1) * DRAWS):
        drawn = tokens.sweep_rows(plan.tokens, law, factors, likelihood, None, streams, number, engine)
        found.append(drawn[1:3])
    rows, columns = (np.mean(each, axis=0) for each in zip(*found, strict=True))
    return Counts(np.ascontiguousarray(rows.T), np.ascontiguousarray(columns.T))
