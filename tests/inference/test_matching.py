"""Components of several chains, matched against planted ones and against every assignment."""

from itertools import permutations

import numpy as np
import pytest
import xarray as xr

from countveil.inference import matching
from countveil.inference.matching import LEAST_OVERLAP, alike, centre, matched, overlap

EQUAL = np.full(4, 0.25)


def planted(n=6, seed=1):
    """(n, 50) components that overlap little."""
    return np.random.default_rng(seed).dirichlet(np.full(50, 0.05), n)


def shuffled(wanted, seed=2):
    """((C, K, V) means, the order of each chain's components), a little different in each chain."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(each)) for each in wanted]
    means = [
        0.9 * each[order] + 0.1 * rng.dirichlet(np.ones(50), len(each))
        for each, order in zip(wanted, orders, strict=True)
    ]
    return np.stack(means), orders


def places(found):
    return {tuple(zip(each.chains.tolist(), each.components.tolist(), strict=True)) for each in found}


def test_what_all_chains_have_has_full_support_whatever_its_number():
    topics = planted(5)
    means, orders = shuffled([topics] * 4)
    found = matched([[each] for each in means], EQUAL)
    assert [each.support for each in found] == [1.0] * 5
    assert [each.components[0] for each in found] == [0, 1, 2, 3, 4]
    assert places(found) == {
        tuple((c, int(np.flatnonzero(order == k)[0])) for c, order in enumerate(orders)) for k in range(5)
    }
    assert [chain for chain, _ in alike(found, 5)] == [0, 1, 2, 3]
    for chain, order in alike(found, 5):
        np.testing.assert_array_equal(orders[chain][order], orders[0])


@pytest.mark.parametrize("weights", [EQUAL, [0.7, 0.1, 0.1, 0.1], [0.5, 0.0, 0.0, 0.5]])
def test_support_is_the_weight_of_the_chains_that_have_it(weights):
    topics, weights = planted(6), np.asarray(weights)
    chains = [(0, 1, 2, 5), (0, 1, 2, 5), (0, 1, 3, 5), (0, 1, 2, 4)]
    means, _ = shuffled([topics[list(each)] for each in chains])
    found = matched([[each] for each in means], weights)
    middles = [centre(means, weights, list(zip(each.chains, each.components, strict=True))) for each in found]
    by_topic = {
        int(np.argmax(overlap(middle[None], topics)[0])): each.support
        for middle, each in zip(middles, found, strict=True)
    }
    expected = {0: 1.0, 1: 1.0, 2: weights[[0, 1, 3]].sum(), 3: weights[2], 4: weights[3], 5: weights[:3].sum()}
    assert by_topic == pytest.approx(expected)
    heaviest = int(np.argmax(weights))
    for k, each in enumerate(found[:4]):
        assert (heaviest, k) in zip(each.chains, each.components, strict=True)
    same = {c for c, _ in alike(found, 4)}
    assert same == {c for c in range(4) if set(chains[c]) == set(chains[heaviest])}


def test_two_chains_are_assigned_as_well_as_any_order_would():
    rng = np.random.default_rng(5)
    for _ in range(20):
        means = rng.dirichlet(np.full(6, 0.7), (2, 4))
        shared = overlap(means[0], means[1])
        best = max(permutations(range(4)), key=lambda order: shared[np.arange(4), list(order)].sum())
        expected = {((0, k), (1, other)) for k, other in enumerate(best) if shared[k, other] >= LEAST_OVERLAP}
        assert {
            each for each in places(matched([[each] for each in means], np.full(2, 0.5))) if len(each) == 2
        } == expected


def test_every_component_of_every_chain_is_in_one_of_them():
    means = np.random.default_rng(6).dirichlet(np.full(8, 0.3), (5, 4))
    found = matched([[each] for each in means], np.array([0.4, 0.0, 0.3, 0.3, 0.0]))
    every = [pair for each in places(found) for pair in each]
    assert sorted(every) == [(c, k) for c in range(5) for k in range(4)]
    for each in found:
        assert len(set(each.chains.tolist())) == each.chains.size


def test_overlap_is_one_less_the_total_variation_distance():
    one, other = planted(3), planted(4, seed=9)
    slow = [[1.0 - 0.5 * np.abs(p - q).sum() for q in other] for p in one]
    np.testing.assert_allclose(overlap(one, other), slow, rtol=1e-12)
    assert overlap(one[:0], other).shape == (0, 4)


def test_chains_come_in_by_weight_so_that_the_heaviest_binds_the_others():
    """The last chain's component is like both others, which are not like each other."""
    means = np.array([[[0.4, 0.6, 0.0, 0.0]], [[0.0, 0.25, 0.4, 0.35]], [[0.0, 0.6, 0.4, 0.0]]])
    (found,) = matched([[each] for each in means], np.array([0.2, 0.2, 0.6]))
    assert found.support == pytest.approx(1.0)
    assert found.chains.tolist() == [0, 1, 2]
    assert len(matched([[each] for each in means], np.array([0.4, 0.4, 0.2]))) == 2


def test_components_are_the_same_only_if_they_are_along_every_axis():
    topics, years = planted(3), np.random.default_rng(3).dirichlet(np.full(5, 0.05), 3)
    words = np.stack([topics, topics[[1, 0, 2]]])
    found = matched(list(zip(words, [years, years[[1, 0, 2]]], strict=True)), np.full(2, 0.5))
    assert places(found) == {((0, 0), (1, 1)), ((0, 1), (1, 0)), ((0, 2), (1, 2))}
    found = matched(list(zip(words, [years, years], strict=True)), np.full(2, 0.5))
    assert places(found) == {((0, 0),), ((0, 1),), ((1, 0),), ((1, 1),), ((0, 2), (1, 2))}


def test_chains_may_have_different_numbers_of_components():
    topics = planted(5)
    found = matched([[topics[:2]], [topics[[3, 1, 0, 4]]]], np.array([0.4, 0.6]))
    assert places(found) == {((0, 1), (1, 1)), ((0, 0), (1, 2)), ((1, 0),), ((1, 3),)}
    assert [each.components[-1] for each in found] == [0, 1, 2, 3]
    assert [chain for chain, _ in alike(found, 4)] == [1]


def test_components_with_numbers_of_their_own_are_matched_by_these_alone():
    topics = planted(5)
    swapped = topics[[1, 0, 4, 3, 2]]  # the first two are about each other's words, all others in another order
    found = matched([[topics], [swapped], [swapped]], np.array([0.4, 0.3, 0.3]), n_anchored=2)
    assert [each.support for each in found] == pytest.approx([0.4, 0.4, 1.0, 1.0, 1.0, 0.6, 0.6])
    for number, each in enumerate(found[:2]):
        assert each.components.tolist() == [number]
    for number, each in zip((0, 1), found[5:], strict=True):
        assert (each.chains.tolist(), each.components.tolist()) == ([1, 2], [number, number])
    assert found[2].components.tolist() == [2, 4, 4]
    free = matched([[topics], [swapped], [swapped]], np.array([0.4, 0.3, 0.3]))
    assert [each.support for each in free] == pytest.approx([1.0] * 5)


C, S = 3, 8


@pytest.fixture
def tree():
    values = np.random.default_rng(1).normal(size=(C, S, 2)).astype(np.float32)
    coordinates = {"chain": np.arange(C), "draw": np.arange(S)}
    draws = xr.Dataset({"x": (("chain", "draw", "k"), values)}, coords=coordinates)
    return xr.DataTree.from_dict({"posterior": draws, "sample_stats": xr.Dataset()})


def test_without_weights_the_mixture_is_all_draws_as_they_are(tree):
    values = tree["posterior"]["x"].to_numpy()
    assert matching.members_of(tree) is None
    np.testing.assert_array_equal(matching.weights_of(tree), np.full(C, 1 / 3))
    assert np.shares_memory(matching.pooled(tree, values), values)
    assert matching.unweighted(tree) is tree


@pytest.mark.parametrize("chains", [1, 2, 3, 4, 7])
def test_equal_weights_take_every_draw_once(chains):
    np.testing.assert_array_equal(matching.members(np.full(chains, 1 / chains), S), np.arange(chains * S))


def test_chains_have_as_many_draws_as_their_weights_say():
    for weights in np.random.default_rng(2).dirichlet(np.ones(C), 40):
        counts = matching.apportioned(weights, C * S)
        assert counts.sum() == C * S
        assert (np.abs(counts - weights * C * S) < 1.0).all()
        numbers = matching.members(weights, S)
        np.testing.assert_array_equal(np.bincount(numbers // S, minlength=C), counts)
        for chain, n in enumerate(counts):
            times = np.bincount(numbers[numbers // S == chain] % S, minlength=S)
            assert times.max() - times.min() <= 1  # evenly: none twice before all once
            if 0 < n < S:
                assert np.diff(np.flatnonzero(times)).max(initial=0) <= -(-S // n)
    own = matching.places(np.array([0.25, 0.75]), [2, 6])  # of chains of different lengths
    assert [each.tolist() for each in own] == [[0, 1], [0, 1, 2, 3, 4, 5]]
    assert matching.members(np.array([1.0, 0.0]), 2).tolist() == [0, 0, 1, 1]


def test_what_is_pooled_has_the_weighted_mean(tree):
    weights = np.array([0.5, 0.125, 0.375])
    matching.keep_weights(tree, weights)
    draws = tree["posterior"]["x"]
    pooled = matching.pooled(tree, draws.to_numpy())
    assert pooled.shape == (C * S, 2)
    # Chain 0 has 12 of 24 draws, of 8: every second one twice.
    own = matching.places(weights, [S, S, S])
    assert [len(each) for each in own] == [12, 3, 9]
    np.testing.assert_array_equal(pooled[:12], draws.to_numpy()[0][own[0]])
    assert matching.GROUP not in matching.unweighted(tree).children
    assert "posterior" in matching.unweighted(tree).children


def test_weights_follow_chains_that_are_taken_out(tree):
    matching.keep_weights(tree, np.array([0.5, 0.5, 0.0]))
    np.testing.assert_allclose(matching.weights_of(tree.isel(chain=[0, 2])), [1.0, 0.0])
    np.testing.assert_allclose(matching.weights_of(tree.isel(chain=[2])), [1.0])


def test_draws_of_a_mixture_know_their_chain_and_its_half(tree):
    chains, later = matching.halves(tree)
    np.testing.assert_array_equal(chains, np.repeat(np.arange(C), S))
    np.testing.assert_array_equal(later, np.tile(np.arange(S) >= S // 2, C))
    matching.keep_weights(tree, np.array([0.5, 0.5, 0.0]))
    chains, later = matching.halves(tree)
    np.testing.assert_array_equal(chains, matching.members_of(tree) // S)
    assert set(chains) == {0, 1}
    np.testing.assert_array_equal(later, matching.members_of(tree) % S >= S // 2)
    assert later.sum() == C * S // 2
