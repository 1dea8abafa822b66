import numpy as np
from scipy.special import logsumexp

from countveil.inference.extrapolated import log_mean_extrapolated

ONE, TWO = np.zeros(4, dtype=int), np.array([0, 0, 1, 1])


def many(scores):
    """The log mean over many draws from those of halves (2, n, cells) of one chain, in the obvious way."""
    halves = logsumexp(scores, axis=1) - np.log(scores.shape[1])
    return 2.0 * (logsumexp(halves, axis=0) - np.log(2.0)) - halves.mean(axis=0)


def test_what_is_extrapolated_stays_a_probability():
    """A chain that has not arrived: its halves differ by far more than chance."""
    drifting, later = np.log([[1e-3], [1e-2], [0.4], [0.5]]), np.array([False, False, True, True])
    np.testing.assert_allclose(log_mean_extrapolated(iter(drifting), ONE, later, 1), np.log([0.5]))
    apart = np.log([[0.5], [0.5], [0.01], [0.01]])  # two chains, of which eight would gain more than there is
    later = np.array([False, True, False, True])
    np.testing.assert_allclose(log_mean_extrapolated(iter(apart), TWO, later, 8), np.log([0.5]))
    assert log_mean_extrapolated(iter(apart), TWO, later, 4) < np.log(0.5)


def test_chains_that_have_not_arrived_pull_nothing_far_down():
    """The halves of either chain differ by far more than chance: by (15.4) alone it would be above its largest draw."""
    later = np.array([False, True, False, True])
    for draws in ([0.5, 1e-6, 1e-6, 0.5], [0.001, 0.5, 0.5, 0.5]):
        for n_chains in (4, 8):
            found = log_mean_extrapolated(iter(np.log(draws)[:, None]), TWO, later, n_chains)
            assert np.log(np.mean(draws)) - 0.7 < found < np.log(0.5) + 1e-12  # by log 2 at most


def test_a_mean_over_few_draws_is_extrapolated_to_many():
    """Where the mean over 20 is clearly too low: two chains, of draws that are alike."""
    rng = np.random.default_rng(1)
    cells, n_draws = 40_000, 10
    noise = rng.normal(size=(2, n_draws, cells))
    chains = np.empty_like(noise)
    chains[:, 0] = noise[:, 0]
    for s in range(1, n_draws):
        chains[:, s] = 0.3 * chains[:, s - 1] + np.sqrt(1 - 0.09) * noise[:, s]
    scores = 0.6 * chains.reshape(20, cells) - 2.0
    plain = (logsumexp(scores, axis=0) - np.log(20)).mean()
    numbers, later = np.repeat([0, 1], 10), np.tile(np.arange(10) >= 5, 2)
    found = log_mean_extrapolated(iter(scores), numbers, later, 2).mean()
    right = 0.18 - 2.0  # log of a lognormal mean
    assert plain - right < -0.01
    assert abs(found - right) < 0.25 * abs(plain - right)
    halves = scores.reshape(2, 2, 5, cells).transpose(1, 0, 2, 3).reshape(2, 10, cells)
    wanted = np.minimum(many(halves), scores.max(axis=0))
    np.testing.assert_allclose(log_mean_extrapolated(iter(scores), numbers, later, 2), wanted)


def test_what_cannot_be_extrapolated_is_the_plain_mean():
    scores = np.random.default_rng(1).normal(size=(4, 3))
    for late in (False, True):
        half = np.full(4, late)
        one = log_mean_extrapolated(iter(scores[:1]), ONE[:1], half[:1], 4)
        np.testing.assert_array_equal(one, scores[0])
        wanted = logsumexp(scores, axis=0) - np.log(4)
        np.testing.assert_allclose(log_mean_extrapolated(iter(scores), ONE, half, 4), wanted)
    impossible = np.array([[-np.inf, -np.inf], [-np.inf, -1.0]])  # in a half, or in all draws
    later, wanted = np.array([False, True]), [-np.inf, -1.0 - np.log(2)]
    for half in (later, ~later):
        found = log_mean_extrapolated(iter(impossible), ONE[:2], half, 1)
        np.testing.assert_allclose(found, wanted)
    for chains in ([0, 1], [1, 0]):  # in a chain
        found = log_mean_extrapolated(iter(impossible), np.array(chains), later, 4)
        np.testing.assert_allclose(found, wanted)


def test_few_chains_are_extrapolated_to_more():
    """Chains in modes of their own, which draws do not leave."""
    rng = np.random.default_rng(2)
    cells, n_chains, n_draws = 40_000, 4, 20
    modes = 0.5 * rng.normal(size=(n_chains, 1, cells))
    scores = modes + 0.2 * rng.normal(size=(n_chains, n_draws, cells)) - 2.0
    later = np.tile(np.arange(n_draws) >= n_draws // 2, n_chains)
    numbers = np.repeat(np.arange(n_chains), n_draws)

    def found(n, wanted):
        some = slice(n * n_draws)
        return log_mean_extrapolated(iter(scores[:n].reshape(-1, cells)), numbers[some], later[some], wanted)

    two, four = (found(n, n).mean() for n in (2, 4))
    assert four - two > 0.02
    assert abs(found(2, 4).mean() - four) < 0.1 * (four - two)
    largest = scores[:2].max(axis=1)
    alone = [many(own.reshape(2, 10, cells)) for own in scores[:2]]
    alone = np.minimum(alone, largest).mean(axis=0)
    both = many(scores[:2].reshape(2, 2, 10, cells).transpose(1, 0, 2, 3).reshape(2, 20, cells))
    both = np.minimum(both, largest.max(axis=0))
    np.testing.assert_allclose(found(2, 2), both)
    np.testing.assert_allclose(found(2, 1), alone)
    wanted = both + 0.5 * (both - alone)
    np.testing.assert_allclose(found(2, 4), np.minimum(wanted, largest.max(axis=0)))
    np.testing.assert_array_equal(found(1, 4), found(1, 1))  # nothing to tell from


def test_a_chain_counts_as_it_weighs():
    """Three draws of one chain, and one of another, as stacked weights have it."""
    scores, later = np.log([[0.1], [0.1], [0.1], [0.5]]), np.array([False, True, True, False])
    found = log_mean_extrapolated(iter(scores), np.array([0, 0, 0, 1]), later, 4)
    first, second = np.log([(0.1 + 0.5) / 2, 0.1])
    whole = 2.0 * np.log(0.2) - 0.5 * (first + second)
    alone = 0.75 * np.log(0.1) + 0.25 * np.log(0.5)
    np.testing.assert_allclose(found, min(whole + 0.5 * (whole - alone), np.log(0.5)))
