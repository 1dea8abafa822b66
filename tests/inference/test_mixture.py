"""The draws of chains together: as many of each as its weight says, and all of them where weights are equal."""

import numpy as np
import pytest
import xarray as xr

from countveil.inference import mixture

C, S = 3, 8


@pytest.fixture
def tree():
    values = np.random.default_rng(1).normal(size=(C, S, 2)).astype(np.float32)
    coordinates = {"chain": np.arange(C), "draw": np.arange(S)}
    draws = xr.Dataset({"x": (("chain", "draw", "k"), values)}, coords=coordinates)
    return xr.DataTree.from_dict({"posterior": draws, "sample_stats": xr.Dataset()})


def test_without_weights_the_mixture_is_all_draws_as_they_are(tree):
    values = tree["posterior"]["x"].to_numpy()
    assert mixture.members_of(tree) is None
    np.testing.assert_array_equal(mixture.weights_of(tree), np.full(C, 1 / 3))
    assert np.shares_memory(mixture.pooled(tree, values), values)
    assert mixture.unweighted(tree) is tree
    found = mixture.mean_over_draws(tree, tree["posterior"]["x"])
    np.testing.assert_array_equal(found, values.mean(axis=(0, 1), dtype=np.float64))


@pytest.mark.parametrize("chains", [1, 2, 3, 4, 7])
def test_equal_weights_take_every_draw_once(chains):
    np.testing.assert_array_equal(mixture.members(np.full(chains, 1 / chains), S), np.arange(chains * S))


def test_chains_have_as_many_draws_as_their_weights_say():
    for weights in np.random.default_rng(2).dirichlet(np.ones(C), 40):
        counts = mixture.apportioned(weights, C * S)
        assert counts.sum() == C * S
        assert (np.abs(counts - weights * C * S) < 1.0).all()
        numbers = mixture.members(weights, S)
        np.testing.assert_array_equal(np.bincount(numbers // S, minlength=C), counts)
        for chain, n in enumerate(counts):
            times = np.bincount(numbers[numbers // S == chain] % S, minlength=S)
            assert times.max() - times.min() <= 1  # evenly: none twice before all once
            if 0 < n < S:
                assert np.diff(np.flatnonzero(times)).max(initial=0) <= -(-S // n)
    own = mixture.places(np.array([0.25, 0.75]), [2, 6])  # of chains of different lengths
    assert [each.tolist() for each in own] == [[0, 1], [0, 1, 2, 3, 4, 5]]
    assert mixture.members(np.array([1.0, 0.0]), 2).tolist() == [0, 0, 1, 1]


def test_what_is_pooled_has_the_weighted_mean(tree):
    weights = np.array([0.5, 0.125, 0.375])
    mixture.keep_weights(tree, weights)
    draws = tree["posterior"]["x"]
    pooled = mixture.pooled(tree, draws.to_numpy())
    assert pooled.shape == (C * S, 2)
    found = mixture.mean_over_draws(tree, draws.transpose("k", "draw", "chain"))
    assert found.dims == ("k",)
    np.testing.assert_allclose(found, pooled.mean(axis=0, dtype=np.float64))
    # Chain 0 has 12 of 24 draws, of 8: every second one twice.
    own = mixture.places(weights, [S, S, S])
    assert [len(each) for each in own] == [12, 3, 9]
    np.testing.assert_array_equal(pooled[:12], draws.to_numpy()[0][own[0]])
    assert mixture.GROUP not in mixture.unweighted(tree).children
    assert "posterior" in mixture.unweighted(tree).children


def test_weights_follow_chains_that_are_taken_out(tree):
    mixture.keep_weights(tree, np.array([0.5, 0.5, 0.0]))
    np.testing.assert_allclose(mixture.weights_of(tree.isel(chain=[0, 2])), [1.0, 0.0])
    np.testing.assert_allclose(mixture.weights_of(tree.isel(chain=[2])), [1.0])


def test_draws_of_a_mixture_know_their_chain_and_its_half(tree):
    chains, later = mixture.halves(tree)
    np.testing.assert_array_equal(chains, np.repeat(np.arange(C), S))
    np.testing.assert_array_equal(later, np.tile(np.arange(S) >= S // 2, C))
    mixture.keep_weights(tree, np.array([0.5, 0.5, 0.0]))
    chains, later = mixture.halves(tree)
    np.testing.assert_array_equal(chains, mixture.members_of(tree) // S)
    assert set(chains) == {0, 1}
    np.testing.assert_array_equal(later, mixture.members_of(tree) % S >= S // 2)
    assert later.sum() == C * S // 2
