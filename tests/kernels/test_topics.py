"""Topics in order, and counts given to them: a permutation, and multinomial."""

import numpy as np
import pytest
from scipy import stats

from countveil.kernels import entries
from countveil.kernels import topics as kernels
from countveil.kernels.random import new_source
from tests.joint import FALSE_ALARM
from tests.kernels.test_allocation import multinomial_p_values

pytestmark = pytest.mark.long


def ordered(theta, phi_total):
    order = kernels.new_order(theta.size)
    kernels.order_topics(theta[None], 0, phi_total, *order)
    return order


@pytest.mark.parametrize("n_topics", [1, 3, 4, 50])
def test_topics_come_once_each_and_large_shares_first(n_topics):
    rng = np.random.default_rng(n_topics)
    theta, phi_total = rng.gamma(0.2, 1.0, n_topics), rng.gamma(1.0, 1.0, n_topics)
    theta[rng.random(n_topics) < 0.1] = 0.0
    order_j, theta_j, _ = ordered(theta, phi_total)
    assert order_j.size % kernels.AT_ONCE == 0
    assert sorted(order_j[:n_topics]) == list(range(n_topics))
    np.testing.assert_array_equal(theta_j[:n_topics], theta[order_j[:n_topics]])
    assert (theta_j[n_topics:] == 0.0).all()
    share = (theta * phi_total)[order_j[:n_topics]]
    seen = share > share.max() * 2.0 ** (2 - kernels.HALVINGS)
    assert (share[1:][seen[1:]] <= 2.0 * share[:-1][seen[1:]]).all()
    assert not seen[np.argmin(seen) :].any() or seen.all()


def test_topics_without_any_share_come_as_they_are():
    order_j, *_ = ordered(np.zeros(5), np.ones(5))
    assert order_j[:5].tolist() == [0, 1, 2, 3, 4]


def given(counts, theta, phi, repeats, seed=1, inflated=1.0):
    """(shares (n, K), what n columns' topics got (repeats, n, K)) of a row with these counts in its columns."""
    rng, n = np.random.default_rng(seed), len(counts)
    order = ordered(theta, phi.sum(axis=0))
    batch, tokens, source = entries.new_batch(), kernels.new_tokens(), new_source(rng)
    column_i, _, rate_i, _, count_i, _ = batch
    column_i[:n], rate_i[:n], count_i[:n] = np.arange(n), inflated * (phi @ theta), counts
    found = np.empty((repeats, n, theta.size))
    for got in found:
        by_topic, row = np.zeros(phi.T.shape), np.zeros(theta.size)
        kernels.give_to_topics(n, batch, tokens, order, np.ascontiguousarray(phi.T), row, by_topic, source, rng)
        np.testing.assert_array_equal(row, by_topic.sum(axis=1))
        got[:] = by_topic.T
    return phi * theta / (phi @ theta)[:, None], found


@pytest.mark.parametrize("n_topics", [1, 2, 4, 5, 9, 20])
def test_counts_are_given_in_proportion(n_topics):
    few, several = kernels.FEW, kernels.SEVERAL
    rng, counts = np.random.default_rng(n_topics), np.array([1, few, few + 1, several, several + 1, 400, 0])
    theta, phi = rng.gamma(0.5, 1.0, n_topics) + 0.3, rng.gamma(0.5, 1.0, (7, n_topics)) + 0.3
    share, found = given(counts, theta, phi, 1500)
    np.testing.assert_array_equal(found.sum(axis=2), np.tile(counts, (1500, 1)))
    for i in range(6 if n_topics > 1 else 0):
        proportions, dispersion = multinomial_p_values(found[:, i], counts[i], share[i])
        assert proportions > FALSE_ALARM / 30
        assert counts[i] == 1 or dispersion > FALSE_ALARM / 30


def test_the_check_sees_topics_taken_for_others():
    rng, counts = np.random.default_rng(9), np.array([3, 20, 400])
    theta, phi = rng.gamma(0.5, 1.0, 9) + 0.3, rng.gamma(0.5, 1.0, (3, 9)) + 0.3
    share, found = given(counts, theta, phi, 1500)
    for i in range(3):
        assert multinomial_p_values(found[:, i], counts[i], np.roll(share[i], 1))[0] < 1e-9


@pytest.mark.parametrize("counts", [(20, 300), (300, 20), (3, 20)])
def test_nothing_goes_to_a_topic_without_weight_even_by_rounding(counts):
    theta = np.array([2.0, 1.0, 4.0, 0.5, 3.0])
    phi = np.array([[1.0, 0.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0]])
    _, found = given(np.array(counts), theta, phi, 200, inflated=1.5)
    assert (found[:, phi == 0.0] == 0.0).all()
    np.testing.assert_array_equal(found.sum(axis=2), np.tile(counts, (200, 1)))


@pytest.mark.parametrize("count", [3, 20, 400])
def test_entries_of_a_batch_are_given_apart(count):
    share, found = given(np.array([count, count]), np.array([1.0, 2.0]), np.ones((2, 2)), 1500)
    first, second = (found[:, :, 0] - count * share[:, 0]).T
    z = (first * second).mean() / (first * second).std(ddof=1) * np.sqrt(1500)
    assert abs(z) < stats.norm.isf(FALSE_ALARM / 6)
