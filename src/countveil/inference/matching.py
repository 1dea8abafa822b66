"""Which components of several chains are the same one: the support of each among the chains."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

LEAST_OVERLAP = 0.5
"""Two components are the same one if they share at least this much: sum_v min(p_v, q_v)."""


class Matched(NamedTuple):
    """Components of several chains that are the same one."""

    chains: np.ndarray  # (m,) the chains that have it, in their order
    components: np.ndarray  # (m,) its number in each of these chains
    mean: np.ndarray  # (V,) weighted mean over these chains
    support: float  # sum of the weights of these chains


def matched(means: Sequence[np.ndarray], weights: np.ndarray) -> list[Matched]:
    """Every component that any chain has, the best supported first; every component of a chain is in one of them.

    Chains come in by falling weight. The components of each are assigned to what the chains before it have, by the
    Hungarian method so that overlaps are largest together, and those that overlap by less than ``LEAST_OVERLAP`` stay
    by themselves. Within the same support, components stay in the order in which they came.

    Args:
        means: of each of C chains (K_c, V) its mean components, as shares over V entries.
        weights: (C,) of the chains, with sum one; a chain without weight supports nothing, but is matched.
    """
    found: list[list[tuple[int, int]]] = []
    centres = np.zeros((0, means[0].shape[1]))
    for chain in np.argsort(-weights, kind="stable"):
        overlaps = overlap(centres, means[chain])
        rows, columns = linear_sum_assignment(overlaps, maximize=True)
        same = overlaps[rows, columns] >= LEAST_OVERLAP
        places = dict(zip(columns[same].tolist(), rows[same].tolist(), strict=True))
        for k in range(len(means[chain])):
            if k in places:
                found[places[k]].append((int(chain), k))
            else:
                found.append([(int(chain), k)])
        centres = np.stack([centre(means, weights, members) for members in found])
    every = [in_one(means, weights, members) for members in found]
    return sorted(every, key=lambda each: -round(each.support, 9))


def overlap(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(M, K) sum_v min(p_v, q_v) of every pair of shares: one less their total variation distance."""
    return np.array([np.minimum(p, other).sum(axis=1) for p in one]).reshape(len(one), len(other))


def centre(means: Sequence[np.ndarray], weights: np.ndarray, members: list[tuple[int, int]]) -> np.ndarray:
    """(V,) weighted mean of some chains' components; the plain mean of chains without weight."""
    chains = np.array([chain for chain, _ in members])
    own = weights[chains] if weights[chains].sum() > 0.0 else np.ones(len(chains))
    each = np.stack([means[chain][k] for chain, k in members])
    return np.asarray(np.average(each, axis=0, weights=own))


def in_one(means: Sequence[np.ndarray], weights: np.ndarray, members: list[tuple[int, int]]) -> Matched:
    """Components of some chains as one."""
    ordered = sorted(members)
    chains, components = np.transpose(ordered)
    return Matched(chains, components, centre(means, weights, ordered), float(weights[chains].sum()))
