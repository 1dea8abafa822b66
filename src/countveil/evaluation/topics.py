"""Words that characterise a topic, quality of topics, and components matched with others."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment


def relevant_words(topics: Any, word_totals: Any, n: int = 10, weight: float = 0.6) -> np.ndarray:
    """(K, n) columns of each topic's most relevant words, the most relevant first.

        relevance(v, k) = weight log phi_kv + (1 - weight) log(phi_kv / p_v),   p_v = word_totals_v / their sum

    weight 1 ranks by probability, 0 by lift. The default 0.6 is what readers understood best in the source's
    user study. Words of probability zero come last; ties keep the columns' order. topics: (K, V) non-negative,
    word_totals: (V,) expected counts of the words over all documents. Source: Sievert and Shirley (2014).

    Raises:
        ValueError: shapes that do not fit, negative or non-finite values, n beyond V, weight outside [0, 1].
    """
    phi = np.asarray(topics, dtype=np.float64)
    totals = np.asarray(word_totals, dtype=np.float64)
    if phi.ndim != 2 or totals.shape != phi.shape[1:]:
        raise ValueError(f"word_totals must have one entry for each column of topics {phi.shape}, got {totals.shape}")
    for name, values in (("topics", phi), ("word_totals", totals)):
        if not ((values >= 0.0) & (values < np.inf)).all():
            raise ValueError(f"{name} must be non-negative and finite, got a value that is not")
    if not 1 <= n <= phi.shape[1]:
        raise ValueError(f"n must be from 1 to the {phi.shape[1]} columns of topics, got {n}")
    if not 0.0 <= weight <= 1.0:
        raise ValueError(f"weight must be in [0, 1], got {weight}")
    seen = (phi > 0.0) & (totals > 0.0)
    log_phi = np.log(phi, where=seen, out=np.zeros_like(phi))
    log_totals = np.log(totals, where=totals > 0.0, out=np.zeros_like(totals))
    relevance = np.where(seen, log_phi - (1.0 - weight) * log_totals, -np.inf)
    return np.argsort(-relevance, axis=1, kind="stable")[:, :n]


def npmi_by_topic(top_words: Any, counts: Any) -> np.ndarray:
    """(K,) normalised pointwise mutual information of each topic's top words, averaged over pairs of words.

        NPMI(v, w) = log(P(v, w) / (P(v) P(w))) / -log P(v, w)

    P is the share of documents that hold the word, or both. A pair that never occurs together scores -1, the
    limit as P(v, w) falls to 0; a pair that is in every document scores 1, the limit of words that always
    occur together. On the corpus that the topics were fitted to it favours rare words that share a few
    documents.

    top_words: (K, n) column indices, n >= 2, each at most once per topic. counts: (D, V) true counts, dense or
    sparse. Source: Bouma (2009); Lau, Newman and Baldwin (2014).

    Raises:
        ValueError: another number of dimensions, fewer than two words, a repeated word, an index outside the
            columns of counts.
    """
    words, present = _checked(top_words, counts)
    return _npmi_of_pairs(*(held / present.shape[0] for held in _held(words, present))).mean(axis=1)


def npmi(top_words: Any, counts: Any) -> float:
    """Mean over topics of ``npmi_by_topic``; the same arguments and errors."""
    return float(npmi_by_topic(top_words, counts).mean())


def umass_by_topic(top_words: Any, counts: Any) -> np.ndarray:
    """(K,) UMass coherence of each topic's top words, averaged over pairs of words; higher (nearer to 0) is better.

        C(k) = mean over pairs i < j of log((D(v_i, v_j) + 1) / D(v_i))

    D counts documents that hold the word, or both; v_1, v_2, ... are the topic's words, the most probable first.
    Mimno et al. sum over the pairs; the mean does not depend on how many words are taken. 0/0 never arises: a
    word that no document holds is refused.

    top_words and counts as in ``npmi_by_topic``; the order of the words matters here. Source: Mimno, Wallach, Talley,
    Leenders and McCallum (2011).

    Raises:
        ValueError: as ``npmi_by_topic``, and a word, other than the last of its topic, that is in no document.
    """
    words, present = _checked(top_words, counts)
    both, single, _ = _held(words, present)
    if (single == 0.0).any():
        first = words[:, np.triu_indices(words.shape[1], k=1)[0]]
        raise ValueError(f"top_words must occur in counts, got column {first[single == 0.0][0]}, which does not occur")
    return np.log((both + 1.0) / single).mean(axis=1)


def umass(top_words: Any, counts: Any) -> float:
    """Mean over topics of ``umass_by_topic``; the same arguments and errors."""
    return float(umass_by_topic(top_words, counts).mean())


def _held(words: np.ndarray, present: sp.csc_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of documents with both words of each pair of a topic, with the first and with the second, (K, pairs)."""
    columns, inverse = np.unique(words, return_inverse=True)
    held = present[:, columns]
    both_vw = (held.T @ held).toarray()
    v, w = inverse.reshape(words.shape)[:, np.triu_indices(words.shape[1], k=1)].transpose(1, 0, 2)
    return both_vw[v, w], both_vw.diagonal()[v], both_vw.diagonal()[w]


def _npmi_of_pairs(joint: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    values = np.full(joint.shape, -1.0)
    values[joint == 1.0] = 1.0
    inside = (joint > 0.0) & (joint < 1.0)
    log_joint = np.log(joint[inside])
    values[inside] = (log_joint - np.log(first[inside]) - np.log(second[inside])) / -log_joint
    return values


def _checked(top_words: Any, counts: Any) -> tuple[np.ndarray, sp.csc_array]:
    """Indices (K, n) and the (D, V) pattern of positive counts."""
    words = np.asarray(top_words)
    if words.ndim != 2 or words.shape[0] < 1 or words.shape[1] < 2:
        raise ValueError(f"top_words must be (topics, words) with at least two words, got {words.shape}")
    if words.dtype.kind not in "iu":
        raise ValueError(f"top_words must be column indices (whole numbers), got dtype {words.dtype}")
    values: Any = counts if sp.issparse(counts) else np.asarray(counts)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"counts must be a matrix with rows and columns, got shape {values.shape}")
    if words.min() < 0 or words.max() >= values.shape[1]:
        raise ValueError(
            f"top_words must be indices of the {values.shape[1]} columns of counts, "
            f"got {words.min() if words.min() < 0 else words.max()}"
        )
    for topic, row in enumerate(words):
        if len(set(row.tolist())) < len(row):
            raise ValueError(f"top_words must name each word once, got a duplicate in topic {topic}")
    own = sp.csc_array(values, copy=True)  # comparing sorts its cells
    return words, sp.csc_array((own > 0).astype(np.float64))


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
