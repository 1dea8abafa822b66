"""What a fit says of a network, from whichever model it is."""

import numpy as np
import pytest

import countveil as cv

QUICK = {"draws": 8, "tune": 4, "chains": 2, "seed": 1, "threads": 1, "progress": False}
COUNTS = np.random.default_rng(4).poisson(2.0, (6, 6))
NAMES = list("abcdef")
DATA = cv.PrivatizedCounts(COUNTS, 0.3, row_labels=NAMES, column_labels=NAMES)


@pytest.mark.parametrize("directed", [True, False])
def test_a_network_is_what_the_posterior_holds(directed):
    data = DATA if directed else cv.PrivatizedCounts(np.triu(COUNTS, 1), 0.3)
    fit = cv.BlockModel(2, directed=directed, self_loops=directed, **QUICK).fit(data)
    found = fit._reader.network
    np.testing.assert_array_equal(found.memberships, fit.memberships_)
    np.testing.assert_array_equal(found.blocks, fit.blocks_)
    np.testing.assert_allclose(found.block_draws.mean(axis=0), fit.blocks_, rtol=1e-5)
    assert found.block_draws.shape == (16, 2, 2)
    assert (found.directed, found.self_loops) == (directed, directed)
    assert found.actors.tolist() == (NAMES if directed else list(range(6)))
    assert found.part.one == "community"


@pytest.mark.parametrize("dispersion", ["global", 0.6])
def test_blocks_are_expected_counts_between_communities_also_of_bursts(dispersion):
    """Memberships sum to one, so that the blocks add up to the rates of all pairs, self-loops included."""
    fit = cv.BlockModel(2, self_loops=True, dispersion=dispersion, **QUICK).fit(DATA)
    total = float(fit.rate().sum())
    assert fit.blocks_.sum() == pytest.approx(total, rel=1e-5)
    assert fit._reader.network.blocks.sum() == pytest.approx(total, rel=1e-5)
    totals = [theta.sum(axis=0) @ phi.sum(axis=0) for (theta, phi), _ in fit._reader.draws()]
    draws = fit.posterior["posterior"].dataset
    p = draws["p"].to_numpy().ravel() if dispersion == "global" else dispersion
    expected = np.array(totals) * p / ((1.0 - p) * -np.log1p(-p))  # the mean size of a burst
    np.testing.assert_allclose(fit._reader.network.block_draws.sum(axis=(1, 2)), expected, rtol=1e-5)


def test_an_einsum_of_the_same_form_is_a_network_whatever_the_order_of_its_core():
    options = {"shared": {"jd": "ic"}, "dims": {"i": "person", "c": "club"}}
    ranks = {"c": 2, "d": 2}
    fit = cv.PoissonFactorization("ic,jd,dc->ij", ranks, **options, **QUICK).fit(DATA)
    found, draws = fit._reader.network, fit.posterior["posterior"]
    core = draws["dc"].transpose("chain", "draw", "club", "d").to_numpy().reshape(-1, 2, 2)
    np.testing.assert_array_equal(found.block_draws, core)
    np.testing.assert_allclose(found.memberships.sum(axis=0), 1.0, rtol=1e-5)
    rate = np.einsum("ic,jd,cd->ij", found.memberships, found.memberships, found.blocks)
    np.testing.assert_allclose(rate.sum(), core.sum(axis=(1, 2)).mean(), rtol=1e-5)
    assert found.actors.tolist() == NAMES
    assert found.part.many == "clubs"
    assert fit._reader.data_in_words() == "6 actors and their directed contacts"


@pytest.mark.parametrize(
    ("spec", "ranks", "shared"),
    [
        ("ic,jd,cd->ij", {"c": 2, "d": 2}, None),
        ("ic,jc->ij", {"c": 2}, {"jc": "ic"}),
        ("ic,jc,c->ij", {"c": 2}, {"jc": "ic"}),
        ("dk,vk->dv", {"k": 2}, None),
    ],
)
def test_other_einsums_are_no_networks(spec, ranks, shared):
    names = [f"factor_{term}" for term in spec.split("->")[0].split(",")]
    same = None if shared is None else {f"factor_{a}": f"factor_{b}" for a, b in shared.items()}
    fit = cv.PoissonFactorization(spec, ranks, names=names, shared=same, **QUICK).fit(DATA)
    assert fit._reader.network is None


def test_memberships_that_are_no_shares_are_no_network():
    """Where what is between communities is known, the sizes stay with the actors."""
    options = {"shared": {"jd": "ic"}, "fixed": {"cd": np.ones((2, 2)) + np.eye(2)}}
    fit = cv.PoissonFactorization("ic,jd,cd->ij", {"c": 2, "d": 2}, **options, **QUICK).fit(DATA)
    assert fit._reader.network is None
    assert fit._reader.data_in_words() == "6 i × 6 j"
