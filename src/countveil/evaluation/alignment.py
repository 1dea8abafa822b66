"""Matching of components across draws, chains and fits: a model's components have no order of their own."""

import numpy as np
from scipy.optimize import linear_sum_assignment


def match_topics(reference: np.ndarray, topics: np.ndarray) -> np.ndarray:
    """The order (K,) in which ``topics`` (K, V) best match ``reference`` (K, V).

    topics[order[k]] goes with reference[k]. Maximises the summed overlap sum_v sqrt(p_v q_v) (Bhattacharyya)
    of distributions over words by the Hungarian method.
    """
    return match_roots(np.sqrt(reference), np.sqrt(topics))


def match_roots(reference_root: np.ndarray, topic_root: np.ndarray) -> np.ndarray:
    """``match_topics`` for square roots of the distributions, taken beforehand."""
    overlap = reference_root @ topic_root.T
    return linear_sum_assignment(overlap, maximize=True)[1]


def align_draws(topics: np.ndarray) -> np.ndarray:
    """(C, S, K) orders that bring all draws of ``topics`` (C, S, K, V) into one order of components.

    The first chain's draws are matched to its last draw, then every chain's to the first chain's mean.
    """
    roots = np.sqrt(topics)
    first = np.stack([match_roots(roots[0, -1], draw) for draw in roots[0]])
    reference = np.mean([draw[order] for draw, order in zip(topics[0], first, strict=True)], axis=0)
    reference_root = np.sqrt(reference)
    return np.stack([[match_roots(reference_root, draw) for draw in chain] for chain in roots])


def topic_error(truth: np.ndarray, topics: np.ndarray) -> float:
    """Mean total variation distance between matched topics, both (K, V) distributions over words."""
    order = match_topics(truth, topics)
    return float(0.5 * np.abs(truth - topics[order]).sum(axis=1).mean())
