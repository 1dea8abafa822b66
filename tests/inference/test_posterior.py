import numpy as np
import pytest

from countveil.inference.methods import Fitted
from countveil.inference.posterior import data_tree, identify, label_free, mean_rate, top_words
from countveil.inference.run import Draws
from countveil.observations import PrivatizedCounts

C, S, D, V, K = 2, 5, 6, 7, 3


def jumbled_draws(seed=1):
    """Draws about one truth, with components in an order and on a scale of their own in every draw."""
    rng = np.random.default_rng(seed)
    theta, phi = rng.gamma(1.0, 1.0, (D, K)) * [1.0, 9.0, 3.0], rng.gamma(0.3, 1.0, (V, K)) + 0.01
    draws = Draws(
        np.empty((C, S, D, K), np.float32), np.empty((C, S, V, K), np.float32), np.empty((C, S, K)),
        np.empty((C, S, K)), rng.normal(size=(C, S)), np.empty((C, S)),
    )  # fmt: skip
    for c in range(C):
        for s in range(S):
            order, scale = rng.permutation(K), rng.gamma(2.0, 1.0, K)
            noise = rng.normal(0.0, 0.01, (V, K))
            draws.theta[c, s] = (theta * scale)[:, order]
            draws.phi[c, s] = (phi * np.exp(noise) / scale)[:, order]
            draws.theta_rate[c, s] = (1.0 / scale)[order]  # so that rate times mean theta is order alone
            draws.phi_rate[c, s] = scale[order]
            draws.total_rate[c, s] = (draws.theta[c, s] @ draws.phi[c, s].T).sum()
    return draws, theta, phi


def rates(theta, phi_kv):
    return np.einsum("csdk,cskv->csdv", theta, phi_kv, dtype=np.float64)


def test_identified_draws_have_the_same_rates_and_one_order():
    draws, theta, phi = jumbled_draws()
    before = [np.copy(values) for values in draws]
    found = identify(draws)
    for old, now in zip(before, draws, strict=True):
        np.testing.assert_array_equal(old, now)
    np.testing.assert_allclose(
        rates(found["theta"], found["phi"]), rates(draws.theta, draws.phi.transpose(0, 1, 3, 2)), rtol=1e-5
    )
    np.testing.assert_allclose(found["phi"].sum(axis=3), 1.0, rtol=1e-5)
    size = phi.sum(axis=0) * theta.sum(axis=0)
    order = np.argsort(-size)
    np.testing.assert_allclose(
        found["phi"], np.broadcast_to((phi / phi.sum(axis=0))[:, order].T, (C, S, K, V)), rtol=0.1
    )
    np.testing.assert_allclose(found["theta"].sum(axis=2), np.broadcast_to(size[order], (C, S, K)), rtol=0.05)


def test_prior_rates_move_with_the_scale_of_their_factor():
    draws, theta, phi = jumbled_draws()
    found = identify(draws)
    order = np.argsort(-(phi.sum(axis=0) * theta.sum(axis=0)))
    total = phi.sum(axis=0)[order]
    np.testing.assert_allclose(found["theta_rate"], np.broadcast_to(1.0 / total, (C, S, K)), rtol=0.05)
    np.testing.assert_allclose(found["phi_rate"], np.broadcast_to(total, (C, S, K)), rtol=0.05)


@pytest.mark.parametrize("what", ["phi", "theta"])
def test_factors_that_vanish_in_single_precision_stay_usable(what):
    draws, _, _ = jumbled_draws()
    getattr(draws, what)[0, 1] = 1e-150
    found = identify(draws)
    assert all(np.isfinite(values).all() for values in found.values())
    np.testing.assert_allclose(found["phi"].sum(axis=3), 1.0, rtol=1e-5)
    assert min(values.min() for values in found.values()) > 0.0


def tree(labelled=True, alpha=0.5):
    draws, _, _ = jumbled_draws()
    labels = {"row_labels": [f"d{d}" for d in range(D)], "column_labels": [f"w{v}" for v in range(V)]}
    observations = PrivatizedCounts(np.ones((D, V), dtype=int), alpha, **(labels if labelled else {}))
    return data_tree(Fitted(draws, False, 1.0), observations, {"seed": 3}), draws


def test_the_tree_has_named_dims_labels_and_facts():
    found, draws = tree()
    posterior = found["posterior"]
    assert posterior["theta"].dims == ("chain", "draw", "doc", "topic")
    assert posterior["phi"].dims == ("chain", "draw", "topic", "word")
    assert posterior["theta_rate"].dims == posterior["phi_rate"].dims == ("chain", "draw", "topic")
    assert dict(posterior.dataset.sizes) == {"chain": C, "draw": S, "doc": D, "topic": K, "word": V}
    assert posterior["word"].values.tolist() == [f"w{v}" for v in range(V)]
    assert posterior["doc"].values.tolist() == [f"d{d}" for d in range(D)]
    np.testing.assert_array_equal(found["sample_stats"]["log_likelihood"], draws.log_likelihood)
    np.testing.assert_array_equal(found["sample_stats"]["total_rate"], draws.total_rate)
    assert found.attrs == {"seed": 3, "observations": "private", "simulated_noise": 0}
    assert tree(labelled=False)[0]["posterior"]["word"].values.tolist() == list(range(V))


def test_the_tree_keeps_the_noise_levels():
    by_row = np.linspace(0.1, 0.6, D)
    by_cell = np.linspace(0.1, 0.9, D * V).reshape(D, V)
    for alpha, expected in ((0.5, np.full(D, 0.5)), (by_row, by_row), (by_cell, by_cell)):
        np.testing.assert_array_equal(tree(alpha=alpha)[0]["constant_data"]["alpha"], expected)


def test_mean_rate_is_the_mean_over_draws_of_theta_phi():
    found, draws = tree()
    rate = mean_rate(found)
    expected = rates(draws.theta, draws.phi.transpose(0, 1, 3, 2)).mean(axis=(0, 1))
    np.testing.assert_allclose(rate, expected, rtol=1e-5)
    assert rate.dims == ("doc", "word")
    assert rate["word"].values.tolist() == [f"w{v}" for v in range(V)]


def test_top_words_against_a_slow_version():
    found, _ = tree()
    table = top_words(found, 4, 0.8)
    assert table.columns.tolist() == ["topic", "prevalence", "rank", "word", "probability", "lower", "upper"]
    assert table["rank"].tolist() == [1, 2, 3, 4] * K
    phi = found["posterior"]["phi"].values.reshape(-1, K, V)
    for k in range(K):
        part = table[table["topic"] == k]
        mean = phi[:, k].mean(axis=0)
        best = sorted(range(V), key=lambda v: -mean[v])[:4]
        assert part["word"].tolist() == [f"w{v}" for v in best]
        np.testing.assert_allclose(part["probability"], mean[best], rtol=1e-6)
        np.testing.assert_allclose(part["lower"], np.quantile(phi[:, k, best], 0.1, axis=0), rtol=1e-5)
        np.testing.assert_allclose(part["upper"], np.quantile(phi[:, k, best], 0.9, axis=0), rtol=1e-5)
    prevalence = table.groupby("topic")["prevalence"].first()
    assert prevalence.is_monotonic_decreasing
    assert prevalence.sum() == pytest.approx(1.0)
    assert len(top_words(found, 100, 0.8)) == K * V


def test_label_free_quantities_do_not_depend_on_the_order_of_topics():
    found, draws = tree()
    quantities = label_free(found)
    mu = rates(draws.theta, draws.phi.transpose(0, 1, 3, 2))
    np.testing.assert_allclose(quantities["rate of each document"], mu.sum(axis=3), rtol=1e-5)
    np.testing.assert_allclose(quantities["rate of each word"], mu.sum(axis=2), rtol=1e-5)
    np.testing.assert_allclose(quantities["total rate"], mu.sum(axis=(2, 3)), rtol=1e-5)
