import math
from itertools import combinations, permutations

import numpy as np
import pytest
import scipy.sparse as sp

from countveil.evaluation import (
    align_draws,
    match_topics,
    npmi,
    npmi_by_topic,
    relevant_words,
    topic_error,
    umass,
    umass_by_topic,
)

COUNTS = np.array([[3, 1, 0, 1], [1, 2, 0, 1], [0, 1, 0, 1], [0, 0, 5, 1]])


def slow_npmi(top_words, counts):
    n_documents = len(counts)
    topics = []
    for words in top_words:
        pairs = []
        for v, w in combinations(words, 2):
            p_v = sum(1 for row in counts if row[v] > 0) / n_documents
            p_w = sum(1 for row in counts if row[w] > 0) / n_documents
            both = sum(1 for row in counts if row[v] > 0 and row[w] > 0) / n_documents
            if both == 0:
                pairs.append(-1.0)
            elif both == 1:
                pairs.append(1.0)
            else:
                pairs.append(math.log(both / (p_v * p_w)) / -math.log(both))
        topics.append(sum(pairs) / len(pairs))
    return topics


def test_npmi_of_one_pair_by_hand():
    """Word 0 in 2 of 4 documents, word 1 in 3, both in 2: log(.5 / (.5 * .75)) / log 2."""
    assert npmi([[0, 1]], COUNTS) == pytest.approx(math.log(4 / 3) / math.log(2))


def test_pairs_at_the_ends():
    never = npmi_by_topic([[0, 2]], COUNTS)
    everywhere = npmi([[0, 1]], np.ones((3, 2)))
    one_document = npmi([[0, 1]], np.diag([1, 1, 0]) + np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    assert never == [-1.0]
    assert everywhere == 1.0
    assert one_document == pytest.approx(1.0)


def test_a_word_without_documents_scores_as_never_together():
    assert npmi([[0, 1]], np.array([[1, 0], [1, 0]])) == -1.0


def test_how_often_a_word_occurs_in_a_document_does_not_matter():
    assert npmi([[0, 1, 3]], COUNTS) == npmi([[0, 1, 3]], np.minimum(COUNTS, 1))


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array, sp.coo_array, sp.csc_matrix])
def test_against_the_slow_version(wrap):
    rng = np.random.default_rng(5)
    counts = rng.poisson(rng.gamma(0.2, 2.0, (40, 30)))
    top_words = np.stack([rng.permutation(30)[:6] for _ in range(7)])
    expected = slow_npmi(top_words, counts)
    assert npmi_by_topic(top_words, wrap(counts)) == pytest.approx(expected)
    assert npmi(top_words, wrap(counts)) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(
    ("top_words", "counts", "message"),
    [
        ([0, 1], COUNTS, "at least two words"),
        ([[0], [1]], COUNTS, "at least two words"),
        (np.empty((0, 3), dtype=int), COUNTS, "at least two words"),
        ([[0.0, 1.0]], COUNTS, "column indices"),
        ([[0, 4]], COUNTS, "4 columns of counts, got 4"),
        ([[-1, 2]], COUNTS, "4 columns of counts, got -1"),
        ([[0, 1], [2, 2]], COUNTS, "each word once, got a duplicate in topic 1"),
        ([[0, 1]], COUNTS[0], "counts must be a matrix"),
        ([[0, 1]], np.empty((0, 4)), "counts must be a matrix with rows and columns"),
    ],
)
def test_npmi_refuses(top_words, counts, message):
    with pytest.raises(ValueError, match=message):
        npmi_by_topic(top_words, counts)


TOPICS = np.array([[0.5, 0.3, 0.2, 0.0], [0.5, 0.0, 0.1, 0.4]])
TOTALS = np.array([100.0, 30.0, 10.0, 50.0])


def slow_relevance(phi, p, weight):
    return weight * math.log(phi) + (1 - weight) * math.log(phi / p)


def test_relevance_weights_probability_against_lift():
    assert relevant_words(TOPICS, TOTALS, 3, weight=1.0).tolist() == [[0, 1, 2], [0, 3, 2]]
    assert relevant_words(TOPICS, TOTALS, 3, weight=0.0).tolist() == [[2, 1, 0], [2, 3, 0]]


def test_relevance_against_the_slow_version():
    rng = np.random.default_rng(6)
    topics, totals = rng.dirichlet(np.full(20, 0.5), 4), rng.gamma(1.0, 50.0, 20)
    found = relevant_words(topics, totals, 5)
    for k, phi in enumerate(topics):
        scores = [slow_relevance(phi[v], totals[v] / totals.sum(), 0.6) for v in range(20)]
        assert found[k].tolist() == sorted(range(20), key=lambda v: -scores[v])[:5]


def test_words_of_probability_zero_come_last_in_order():
    assert relevant_words([[0.0, 0.0, 1.0]], [1.0, 0.0, 1.0], 3).tolist() == [[2, 0, 1]]


@pytest.mark.parametrize(
    ("topics", "totals", "options", "message"),
    [
        (TOPICS, TOTALS[:3], {}, "one entry for each column"),
        (TOPICS[0], TOTALS, {}, "one entry for each column"),
        (-TOPICS, TOTALS, {}, "topics must be non-negative"),
        (TOPICS, TOTALS * np.nan, {}, "word_totals must be non-negative"),
        (TOPICS, TOTALS, {"n": 5}, "n must be from 1 to the 4 columns of topics, got 5"),
        (TOPICS, TOTALS, {"n": 0}, "got 0"),
        (TOPICS, TOTALS, {"n": 2, "weight": 1.5}, r"weight must be in \[0, 1\], got 1.5"),
    ],
)
def test_relevance_refuses(topics, totals, options, message):
    with pytest.raises(ValueError, match=message):
        relevant_words(topics, totals, **options)


def slow_umass(top_words, counts):
    topics = []
    for words in top_words:
        pairs = []
        for v, w in combinations(words, 2):
            held = sum(1 for row in counts if row[v] > 0)
            both = sum(1 for row in counts if row[v] > 0 and row[w] > 0)
            pairs.append(math.log((both + 1) / held))
        topics.append(sum(pairs) / len(pairs))
    return topics


def test_umass_of_one_pair_by_hand():
    """Word 0 in 2 documents, both of them with word 1: log(3 / 2). Word 1 in 3: log(3 / 3)."""
    assert umass([[0, 1]], COUNTS) == pytest.approx(math.log(1.5))
    assert umass([[1, 0]], COUNTS) == 0.0


def test_umass_against_a_slow_twin():
    rng = np.random.default_rng(4)
    counts = rng.poisson(0.4, (60, 12))
    tops = np.array([rng.permutation(12)[:6] for _ in range(5)])
    np.testing.assert_allclose(umass_by_topic(tops, counts), slow_umass(tops.tolist(), counts), rtol=1e-12)
    np.testing.assert_allclose(umass_by_topic(tops, sp.csr_array(counts)), umass_by_topic(tops, counts))
    assert umass(tops, counts) == pytest.approx(np.mean(slow_umass(tops.tolist(), counts)))


def test_coherence_against_gensim():
    """gensim pairs a word with those before it: (both + epsilon) / D for P(later and earlier), over P(earlier)."""
    from gensim import models as gensim_models
    from gensim.corpora import Dictionary

    rng = np.random.default_rng(5)
    counts = rng.poisson(0.4, (80, 10))
    texts = [[str(v) for v in range(10) for _ in range(row[v])] for row in counts]
    dictionary = Dictionary(texts)
    tops = np.array([rng.permutation(10)[:5] for _ in range(4)])
    words = [[str(v) for v in top] for top in tops]
    bags = [dictionary.doc2bow(text) for text in texts]
    model = gensim_models.CoherenceModel(topics=words, corpus=bags, dictionary=dictionary, coherence="u_mass")
    # gensim's smoothing is 1e-12 of the documents, not one document: undo ours to compare
    held, ours = counts > 0, []
    for top in tops:
        pairs = [(v, w) for i, w in enumerate(top) for v in top[:i]]
        plain = np.mean([np.log(((held[:, v] & held[:, w]).sum()) / held[:, v].sum()) for v, w in pairs])
        smooth = np.mean(
            [np.log(((held[:, v] & held[:, w]).sum() + 1) / (held[:, v] & held[:, w]).sum()) for v, w in pairs]
        )
        ours.append((plain, smooth))
    plain, smooth = np.array(ours).T
    np.testing.assert_allclose(model.get_coherence_per_topic(), plain, atol=1e-9)
    np.testing.assert_allclose(umass_by_topic(tops, counts) - smooth, model.get_coherence_per_topic(), atol=1e-9)


def test_npmi_against_gensim():
    """gensim counts windows, here whole documents, and adds 1e-12 to what it takes logs of."""
    from gensim import models as gensim_models
    from gensim.corpora import Dictionary

    rng = np.random.default_rng(5)
    counts = rng.poisson(0.4, (80, 10))
    counts[:, 0] += 1  # one word in every document: none is empty, as gensim wants it
    texts = [[str(v) for v in range(10) for _ in range(row[v])] for row in counts]
    tops = np.array([rng.permutation(np.arange(1, 10))[:5] for _ in range(4)])
    model = gensim_models.CoherenceModel(
        topics=[[str(v) for v in top] for top in tops], texts=texts, dictionary=Dictionary(texts),
        coherence="c_npmi", window_size=int(counts.sum(axis=1).max()) + 1, processes=1,
    )  # fmt: skip
    np.testing.assert_allclose(npmi_by_topic(tops, counts), model.get_coherence_per_topic(), atol=1e-9)


def test_umass_refuses_a_word_in_no_document():
    with pytest.raises(ValueError, match="top_words must occur in counts, got column 0"):
        umass([[0, 1]], np.array([[0, 1], [0, 1]]))


RNG = np.random.default_rng(7)
MATCHED = RNG.dirichlet(np.full(30, 0.1), 6)


def slow_best_order(reference, topics):
    """Every permutation, by the summed square roots of products."""
    overlap = np.sqrt(reference) @ np.sqrt(topics).T
    return max(permutations(range(len(topics))), key=lambda order: sum(overlap[k, j] for k, j in enumerate(order)))


def test_a_permutation_is_undone():
    order = RNG.permutation(6)
    shuffled = MATCHED[order]
    assert np.array_equal(shuffled[match_topics(MATCHED, shuffled)], MATCHED)


def test_the_match_is_the_best_of_all_permutations():
    noisy = RNG.dirichlet(np.full(30, 0.1), 6) * 0.6 + MATCHED[RNG.permutation(6)] * 0.4
    assert tuple(match_topics(MATCHED, noisy)) == slow_best_order(MATCHED, noisy)


def test_the_best_order_is_that_of_square_roots():
    """On vague topics the order by sums of products is another in many cases."""
    rng, others = np.random.default_rng(1), 0
    for _ in range(50):
        reference, topics = rng.dirichlet(np.full(5, 0.5), 4), rng.dirichlet(np.full(5, 0.5), 4)
        assert tuple(match_topics(reference, topics)) == slow_best_order(reference, topics)
        others += slow_best_order(reference**2, topics**2) != slow_best_order(reference, topics)
    assert others > 5


def test_draws_of_the_first_chain_are_matched_before_they_are_averaged():
    """Half of them the other way round: their plain mean would have two equal topics."""
    one = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1]])
    other = one[::-1]
    order = align_draws(np.array([[one, other, one, other], [other, other, one, one]]))
    assert order[:, :, 0].tolist() in ([[0, 1, 0, 1], [1, 1, 0, 0]], [[1, 0, 1, 0], [0, 0, 1, 1]])


def test_one_topic_matches_itself():
    assert match_topics(MATCHED[:1], MATCHED[3:4]).tolist() == [0]
    assert align_draws(MATCHED[None, None, :1]).tolist() == [[[0]]]


def test_equal_topics_still_give_a_permutation():
    tied = np.repeat(MATCHED[:1], 4, axis=0)
    assert sorted(match_topics(tied, tied)) == [0, 1, 2, 3]
    assert sorted(match_topics(MATCHED[:4], tied)) == [0, 1, 2, 3]


def test_draws_and_chains_come_into_one_order():
    draws = np.empty((2, 5, 6, 30))
    for chain in range(2):
        for draw in range(5):
            wobble = RNG.dirichlet(np.ones(30), 6)
            draws[chain, draw] = (0.9 * MATCHED + 0.1 * wobble)[RNG.permutation(6)]
    order = align_draws(draws)
    aligned = np.take_along_axis(draws, order[..., None], axis=2)
    assert np.abs(aligned - aligned[0, 0]).sum(axis=-1).max() < 0.25
    spread = np.abs(draws - draws[0, 0]).sum(axis=-1).max()
    assert spread > 0.5  # without the alignment they do differ


def test_topic_error_is_zero_for_a_permutation_and_one_for_disjoint_topics():
    assert topic_error(MATCHED, MATCHED[::-1]) == pytest.approx(0.0)
    assert topic_error(np.eye(4)[:2], np.eye(4)[2:]) == pytest.approx(1.0)


def test_topic_error_by_hand():
    truth = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    found = np.array([[0.0, 1.0, 0.0], [0.9, 0.1, 0.0]])
    assert topic_error(truth, found) == pytest.approx((0.1 + 0.5) / 2)
