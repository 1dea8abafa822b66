import copy

import numpy as np
import pytest
import xarray as xr

from countveil.common.fit_files import LEAST_RATE
from countveil.data.mechanism_checks import MechanismCheck
from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.data.reports import Reports
from countveil.inference import posterior
from countveil.inference.algorithm import Fitted
from countveil.inference.diagnostics import Share, Totals
from countveil.inference.draws import Draws, Point, Schedule
from countveil.inference.identify import identify
from countveil.inference.posterior import data_tree, label_free, mean_rate
from countveil.models.layout import Layout
from countveil.privacy.mechanisms import Suppression
from tests.joint import small_model

C, S, D, V, K = 2, 5, 6, 7, 3
MODEL = small_model((D, V), K, learned=True)
LAYOUT = Layout({"d": "doc", "v": "word", "k": "topic"}, {"theta": "dk", "phi": "kv"})


def jumbled_draws(seed=1):
    """Draws about one truth, with components in an order and on a scale of their own in every draw."""
    rng = np.random.default_rng(seed)
    theta, phi = rng.gamma(1.0, 1.0, (D, K)) * [1.0, 9.0, 3.0], rng.gamma(0.3, 1.0, (V, K)) + 0.01
    draws = Draws.empty(Schedule(S, 0, C, 1), MODEL)
    draws.log_likelihood[:] = rng.normal(size=(C, S))
    for c in range(C):
        for s in range(S):
            order, scale = rng.permutation(K), rng.gamma(2.0, 1.0, K)
            noise = rng.normal(0.0, 0.01, (V, K))
            factors = (theta * scale)[:, order], (phi * np.exp(noise) / scale)[:, order]
            rates = (1.0 / scale)[order], scale[order]  # so that rate times mean theta is order alone
            draws.of_chain(c).keep(s, Point(factors, rates), draws.log_likelihood[c, s], 0.0)
            draws.total_rate[c, s] = (draws.factors[0][c, s] @ draws.factors[1][c, s].T).sum()
    return draws, theta, phi


def rates(factors):
    return np.einsum("csdk,csvk->csdv", *factors, dtype=np.float64)


def identified():
    """(theta (C, S, D, K), phi (C, S, K, V), rates by name, draws, true theta, true phi)."""
    draws, theta, phi = jumbled_draws()
    before = copy.deepcopy(draws)
    factors, prior_rates, _ = identify(draws, MODEL)
    return factors["theta"], factors["phi"].transpose(0, 1, 3, 2), prior_rates, before, theta, phi


def test_identified_draws_have_the_same_rates_and_one_order():
    found_theta, found_phi, _, draws, theta, phi = identified()
    found = found_theta, found_phi.transpose(0, 1, 3, 2)
    np.testing.assert_allclose(rates(found), rates(draws.factors), rtol=1e-5)
    np.testing.assert_allclose(found_phi.sum(axis=3), 1.0, rtol=1e-5)
    size = phi.sum(axis=0) * theta.sum(axis=0)
    order = np.argsort(-size)
    np.testing.assert_allclose(found_phi, np.broadcast_to((phi / phi.sum(axis=0))[:, order].T, (C, S, K, V)), rtol=0.1)
    np.testing.assert_allclose(found_theta.sum(axis=2), np.broadcast_to(size[order], (C, S, K)), rtol=0.05)


def test_identifying_takes_no_memory_for_a_copy():
    draws, _, _ = jumbled_draws()
    factors, *_ = identify(draws, MODEL)
    for name, values in zip(MODEL.spec.names, draws.factors, strict=True):
        assert np.shares_memory(factors[name], values)


def test_draws_that_are_matched_are_only_ordered_by_size():
    rng = np.random.default_rng(2)
    draws = Draws.empty(Schedule(4, 0, 1, 1), MODEL)
    for s in range(4):  # so noisy that matching would reorder some
        factors = rng.gamma(1.0, 1.0, (D, K)) * [1.0, 3.0, 2.0], rng.gamma(0.1, 1.0, (V, K)) + 0.01
        draws.of_chain(0).keep(s, Point(factors, MODEL.initial_hypers()), np.nan, np.nan)
    phi = draws.factors[1] / draws.factors[1].sum(axis=2, keepdims=True)
    order = np.argsort(-(draws.factors[0].sum(axis=2) * draws.factors[1].sum(axis=2)).mean(axis=(0, 1)))
    found, *_ = identify(copy.deepcopy(draws), MODEL, matched=True)
    np.testing.assert_allclose(found["phi"], phi[..., order], rtol=1e-5)
    assert not np.allclose(identify(draws, MODEL)[0]["phi"], phi[..., order], rtol=1e-5)


def test_prior_rates_move_with_the_scale_of_their_factor():
    _, _, found, _, theta, phi = identified()
    order = np.argsort(-(phi.sum(axis=0) * theta.sum(axis=0)))
    total = phi.sum(axis=0)[order]
    np.testing.assert_allclose(found["theta"], np.broadcast_to(1.0 / total, (C, S, K)), rtol=0.05)
    np.testing.assert_allclose(found["phi"], np.broadcast_to(total, (C, S, K)), rtol=0.05)


@pytest.mark.parametrize("what", ["phi", "theta"])
def test_factors_that_vanish_in_single_precision_stay_usable(what):
    draws, _, _ = jumbled_draws()
    draws.factors[MODEL.spec.names.index(what)][0, 1] = 1e-150
    factors, prior_rates, _ = identify(draws, MODEL)
    found = [*factors.values(), *prior_rates.values()]
    assert all(np.isfinite(values).all() for values in found)
    np.testing.assert_allclose(factors["phi"].sum(axis=2), 1.0, rtol=1e-5)
    assert min(values.min() for values in factors.values()) > 0.0
    assert min(values.min() for values in prior_rates.values()) >= LEAST_RATE  # else files could not be read


def tree(labelled=True, alpha=0.5):
    draws, _, _ = jumbled_draws()
    labels = ([f"d{d}" for d in range(D)], [f"w{v}" for v in range(V)]) if labelled else (None, None)
    observations = PrivatizedCounts(np.ones((D, V), dtype=int), alpha)
    fitted = Fitted(draws, False, 1.0)
    return data_tree(fitted, observations, MODEL, LAYOUT, labels, {"seed": 3}), draws


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
    facts = {"seed": 3, "observations": "private", "simulated_noise": 0, "mechanism": "two-sided geometric"}
    assert found.attrs == facts
    assert tree(labelled=False)[0]["posterior"]["word"].values.tolist() == list(range(V))


def test_the_tree_keeps_the_noise_levels():
    by_row = np.linspace(0.1, 0.6, D)
    by_cell = np.linspace(0.1, 0.9, D * V).reshape(D, V)
    for alpha, expected in ((0.5, np.full(D, 0.5)), (by_row, by_row), (by_cell, by_cell)):
        np.testing.assert_array_equal(tree(alpha=alpha)[0]["constant_data"]["alpha"], expected)


def test_mean_rate_is_the_mean_over_draws_of_theta_phi():
    found, draws = tree()
    rate = mean_rate(found, MODEL, LAYOUT)
    expected = rates(draws.factors).mean(axis=(0, 1))
    np.testing.assert_allclose(rate, expected, rtol=1e-5)
    assert rate.dims == ("doc", "word")
    assert rate["word"].values.tolist() == [f"w{v}" for v in range(V)]


def test_label_free_quantities_do_not_depend_on_the_order_of_topics():
    found, draws = tree()
    quantities = label_free(found, MODEL, LAYOUT)
    mu = rates(draws.factors)
    np.testing.assert_allclose(quantities["rate of each doc"], mu.sum(axis=3), rtol=1e-5)
    np.testing.assert_allclose(quantities["rate of each word"], mu.sum(axis=2), rtol=1e-5)
    np.testing.assert_allclose(quantities["total rate"], mu.sum(axis=(2, 3)), rtol=1e-5)


TOTALS = Totals(5.0, 1.0, 4.0, 3.0, 6.0)
WITHOUT = Totals(5.0, 1.0, 4.0, None, None)
FOUND = MechanismCheck(("No.",), ("Not that.",), ("Nor that.",))


@pytest.mark.parametrize("totals", [TOTALS, WITHOUT])
def test_what_is_kept_comes_back(totals):
    tree = xr.DataTree()
    assert (posterior.share_kept(tree), posterior.totals_kept(tree), posterior.mechanism_kept(tree)) == (
        None,
        None,
        None,
    )
    share = Share(0.9, 0.1)
    tree.attrs = posterior.kept_share(share) | posterior.kept_totals(totals) | posterior.kept_mechanism(FOUND)
    posterior.check_kept(tree)
    assert (posterior.share_kept(tree), posterior.totals_kept(tree), posterior.mechanism_kept(tree)) == (
        share,
        totals,
        FOUND,
    )


def test_the_number_of_masked_cells_and_a_digest_of_the_reports_come_back():
    tree = xr.DataTree()
    assert (posterior.masked_kept(tree), posterior.reports_kept(tree)) == (None, None)
    reports = np.array([[2, 0, 1], [0, -1, 3]])
    data = PrivatizedCounts(reports, 0.5)
    tree.attrs = posterior.kept_data(data)
    posterior.check_kept(tree)
    assert (posterior.masked_kept(tree), posterior.reports_kept(tree)) == (0, posterior.digest_of(data))
    assert posterior.digest_of(PrivatizedCounts(np.maximum(reports, 0), 0.5)) == posterior.digest_of(data)
    rows = [np.array([[2, 0, 1], [0, 0, 0]]), np.array([[2, 0, 0], [0, 0, 1]])]
    assert len({posterior.digest_of(PrivatizedCounts(each, 0.5)) for each in rows}) == 2
    for other in (reports[:, ::-1], reports[::-1], reports * [[1, 1, 2], [1, 1, 1]]):
        assert posterior.digest_of(PrivatizedCounts(other, 0.5)) != posterior.digest_of(data)


def test_a_digest_is_the_same_however_much_is_read_at_once(monkeypatch):
    data = PrivatizedCounts(np.random.default_rng(1).poisson(1.0, (20, 9)), 0.5)
    whole = posterior.digest_of(data)
    for entries in (1, 7):
        monkeypatch.setattr(posterior, "ENTRIES_AT_ONCE", entries)
        assert posterior.digest_of(data) == whole


def test_true_counts_leave_no_digest():
    assert posterior.kept_data(ExactCounts(np.ones((2, 2), dtype=int))) == {"masked_cells": 0}


@pytest.mark.parametrize(
    "attributes",
    [
        {"signal_share": "0.9"},
        {"total_reported": 1.0, "total_error": 2.0},
        {name: value for name, value in posterior.kept_totals(TOTALS).items() if name != "total_error"},
        {"signal_share": 0.9},
        {"masked_cells": "5"},
        {"reports": 5},
        {"reports": "0" * 63 + "g"},
        posterior.kept_totals(TOTALS) | {"total_lower": np.array([1.0, 2.0])},
    ],
)
def test_what_is_no_number_or_not_whole_is_refused(attributes):
    tree = xr.DataTree()
    tree.attrs = attributes
    with pytest.raises(ValueError, match="must state"):
        posterior.check_kept(tree)


def test_a_digest_is_of_reports_and_not_of_their_codes():
    reports = np.array([[10, 15, np.nan], [25, np.nan, 40]])
    other = np.where(reports == 40, 35, reports)
    by = [Reports(each, Suppression(10)) for each in (reports, other, reports.copy())]
    assert (by[0].reports == by[1].reports).all()
    first, second, third = map(posterior.digest_of, by)
    assert first == third != second
