from itertools import permutations

import numpy as np
import pytest

from countveil.evaluation import align_draws, match_topics, topic_error

RNG = np.random.default_rng(7)
TOPICS = RNG.dirichlet(np.full(30, 0.1), 6)


def slow_best_order(reference, topics):
    """Every permutation, by the summed square roots of products."""
    overlap = np.sqrt(reference) @ np.sqrt(topics).T
    return max(
        permutations(range(len(topics))), key=lambda order: sum(overlap[k, j] for k, j in enumerate(order))
    )


def test_a_permutation_is_undone():
    order = RNG.permutation(6)
    shuffled = TOPICS[order]
    assert np.array_equal(shuffled[match_topics(TOPICS, shuffled)], TOPICS)


def test_the_match_is_the_best_of_all_permutations():
    noisy = RNG.dirichlet(np.full(30, 0.1), 6) * 0.6 + TOPICS[RNG.permutation(6)] * 0.4
    assert tuple(match_topics(TOPICS, noisy)) == slow_best_order(TOPICS, noisy)


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
    assert match_topics(TOPICS[:1], TOPICS[3:4]).tolist() == [0]
    assert align_draws(TOPICS[None, None, :1]).tolist() == [[[0]]]


def test_equal_topics_still_give_a_permutation():
    tied = np.repeat(TOPICS[:1], 4, axis=0)
    assert sorted(match_topics(tied, tied)) == [0, 1, 2, 3]
    assert sorted(match_topics(TOPICS[:4], tied)) == [0, 1, 2, 3]


def test_draws_and_chains_come_into_one_order():
    draws = np.empty((2, 5, 6, 30))
    for chain in range(2):
        for draw in range(5):
            wobble = RNG.dirichlet(np.ones(30), 6)
            draws[chain, draw] = (0.9 * TOPICS + 0.1 * wobble)[RNG.permutation(6)]
    order = align_draws(draws)
    aligned = np.take_along_axis(draws, order[..., None], axis=2)
    assert np.abs(aligned - aligned[0, 0]).sum(axis=-1).max() < 0.25
    spread = np.abs(draws - draws[0, 0]).sum(axis=-1).max()
    assert spread > 0.5  # without the alignment they do differ


def test_topic_error_is_zero_for_a_permutation_and_one_for_disjoint_topics():
    assert topic_error(TOPICS, TOPICS[::-1]) == pytest.approx(0.0)
    assert topic_error(np.eye(4)[:2], np.eye(4)[2:]) == pytest.approx(1.0)


def test_topic_error_by_hand():
    truth = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    found = np.array([[0.0, 1.0, 0.0], [0.9, 0.1, 0.0]])
    assert topic_error(truth, found) == pytest.approx((0.1 + 0.5) / 2)
