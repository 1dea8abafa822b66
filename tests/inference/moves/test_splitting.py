import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.engines import blocks
from countveil.inference.moves.splitting import directions, parts_of, split, times, times_transposed
from countveil.inference.scoring import report_scores
from countveil.laws.counts import NegativeBinomial
from countveil.laws.counts.laws import law_of
from tests.joint import LAW, LAWS, SERIAL, truncated_logpmf, two_sided_geometric


def scene(levels):
    """(observations, theta, phi, dense derivative of the log-likelihood in the rates)."""
    rng = np.random.default_rng(1)
    theta, phi = rng.gamma(0.5, 1.0, (30, 3)), rng.gamma(0.5, 1.0, (20, 3))
    mu = theta @ phi.T
    sizes = {"one": (1, 1), "rows": (30, 1), "cells": mu.shape}
    alpha = np.broadcast_to(rng.uniform(0.1, 0.8, sizes[levels]), mu.shape)
    reports = rng.poisson(mu) + two_sided_geometric(alpha, rng)
    mask = rng.random(mu.shape) < 0.1
    step = 1e-5
    up, down = (truncated_logpmf(np.maximum(reports, 0), mu * (1 + h), alpha) for h in (step, -step))
    slope = np.where(mask, 0.0, (up - down) / (2.0 * step * mu))
    return PrivatizedCounts(reports, alpha, mask), theta, phi, slope


@pytest.mark.parametrize("levels", ["one", "rows", "cells"])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_products_are_those_of_the_derivative(levels, law):
    observations, theta, phi, slope = scene(levels)
    parts = parts_of(observations, law, theta, phi, SERIAL)
    x, y = np.random.default_rng(2).standard_normal((2, 30, 4))
    np.testing.assert_allclose(times(parts, x[:20], SERIAL), slope @ x[:20], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(times_transposed(parts, y, SERIAL), slope.T @ y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("levels", ["one", "rows", "cells"])
@pytest.mark.parametrize("dispersion", ["global", "column", "row"])
def test_products_are_those_of_the_derivative_where_dispersion_varies(dispersion, levels, monkeypatch):
    monkeypatch.setattr(blocks, "MIN_CELLS_PER_BLOCK", 1)
    monkeypatch.setattr(blocks, "MIN_ROWS_PER_BLOCK", 8)
    observations, theta, phi, _ = scene(levels)
    likelihood = NegativeBinomial(dispersion)
    n_p = {"global": 1, "column": 20, "row": 30}[dispersion]
    parameters = np.random.default_rng(7).uniform(0.1, 0.9, n_p), *likelihood.start((30, 20))[1:]
    law = law_of(observations.noise, likelihood, parameters)
    rows, columns = (places.ravel() for places in np.indices((30, 20)))
    reports, level = observations.cells(rows, columns)
    mu, step = (theta @ phi.T).ravel(), 1e-5
    up, down = (report_scores(law, rows, columns, reports, level, mu * (1.0 + h)) for h in (step, -step))
    slope = ((up - down) / (2.0 * step * mu)).reshape(30, 20)
    slope[reports.reshape(30, 20) < 0] = 0.0
    parts = parts_of(observations, law, theta, phi, SERIAL)
    assert len(parts) > 1
    x, y = np.random.default_rng(2).standard_normal((2, 30, 4))
    np.testing.assert_allclose(times(parts, x[:20], SERIAL), slope @ x[:20], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(times_transposed(parts, y, SERIAL), slope.T @ y, rtol=1e-5, atol=1e-6)


def test_directions_are_leading_singular_vectors():
    observations, theta, phi, slope = scene("one")
    parts = parts_of(observations, LAW, theta, phi, SERIAL)
    begun = np.random.default_rng(3).standard_normal(phi.shape)
    x, y, values = directions(parts, theta, phi, begun, 300, SERIAL)
    for k in range(3):
        a, b = np.sqrt(theta[:, k] / theta[:, k].sum()), np.sqrt(phi[:, k] / phi[:, k].sum())
        matrix = a[:, None] * slope * b
        matrix = (np.eye(30) - np.outer(a, a)) @ matrix @ (np.eye(20) - np.outer(b, b))
        left, found, right = np.linalg.svd(matrix)
        size = theta[:, k].sum() * phi[:, k].sum()
        assert values[k] == pytest.approx(found[0] * np.sqrt(size), rel=1e-4)
        np.testing.assert_allclose(np.outer(a * x[:, k], b * y[:, k]), np.outer(left[:, 0], right[0]), atol=1e-3)


def test_halves_add_up_to_the_component_they_were():
    observations, theta, phi, _ = scene("one")
    new_theta, new_phi = split(observations, LAW, theta, phi, 2, 0, np.random.default_rng(4), SERIAL)
    assert new_theta.shape == (30, 5)
    assert new_phi.shape == (20, 5)
    assert min(new_theta.min(), new_phi.min()) > 0.0
    left = [k for k in range(3) if (new_theta[:, k] == theta[:, k]).all()]
    assert len(left) == 1
    np.testing.assert_allclose(new_theta.sum(axis=1), theta.sum(axis=1))
    np.testing.assert_array_equal(new_phi[:, left], phi[:, left])
    for k in {0, 1, 2} - set(left):
        sums = [new_theta[:, k] + new_theta[:, other] for other in (3, 4)]
        assert any(np.allclose(both, theta[:, k]) for both in sums)


def blob():
    """Three planted topics, of which one component holds two: (observations, theta, phi, the true topics)."""
    rng = np.random.default_rng(5)
    true_theta, true_phi = rng.dirichlet(np.full(3, 0.1), 80) * 40.0, rng.dirichlet(np.full(40, 0.1), 3).T
    reports = rng.poisson(true_theta @ true_phi.T) + two_sided_geometric(np.full((80, 40), 0.2), rng)
    theta = np.maximum(np.stack([true_theta[:, 0], true_theta[:, 1] + true_theta[:, 2]], axis=1), 1e-3)
    phi = np.maximum(np.stack([true_phi[:, 0], true_phi[:, 1:].mean(axis=1)], axis=1), 1e-6)
    return PrivatizedCounts(reports, 0.2), theta, phi, true_phi


def test_a_component_that_stands_for_two_is_split_into_them():
    observations, theta, phi, true_phi = blob()
    new_theta, new_phi = split(observations, LAW, theta, phi, 1, 0, np.random.default_rng(6), SERIAL)
    np.testing.assert_array_equal(new_theta[:, 0], theta[:, 0])
    halves = new_phi[:, 1:] / new_phi[:, 1:].sum(axis=0)
    apart = 0.5 * np.abs(true_phi[:, 1:, None] - halves[:, None]).sum(axis=0)
    before = 0.5 * np.abs(true_phi[:, 1] - phi[:, 1] / phi[:, 1].sum()).sum()
    assert min(np.trace(apart), np.trace(apart[::-1])) / 2.0 < 0.6 * before


def test_splits_take_turns():
    observations, theta, phi, _ = scene("one")
    halved = []
    for number in range(4):
        new, _ = split(observations, LAW, theta, phi, 1, number, np.random.default_rng(4), SERIAL)
        halved.append(int(np.flatnonzero((new[:, :3] != theta).any(axis=0))[0]))
    assert halved[0] != halved[1]
    assert halved[:2] == halved[2:]
    parts = parts_of(observations, LAW, theta, phi, SERIAL)
    begun = np.random.default_rng(5).standard_normal(phi.shape)
    gain = directions(parts, theta, phi, begun, 300, SERIAL)[2]
    assert halved[:2] == np.argsort(-gain)[:2].tolist()


def test_what_is_given_stays():
    observations, theta, phi, _ = scene("one")
    before = theta.copy(), phi.copy()
    split(observations, LAW, theta, phi, 2, 0, np.random.default_rng(4), SERIAL)
    np.testing.assert_array_equal(theta, before[0])
    np.testing.assert_array_equal(phi, before[1])
