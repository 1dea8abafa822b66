"""The published variational updates against their formulas in NumPy, cell by cell, and what they find."""

import math

import numpy as np
import pytest
from scipy import special

from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.distributions import Bessel
from countveil.engines.threads import ThreadEngine
from countveil.fit import TensorModel
from countveil.inference import bessel_cavi, cavi
from countveil.inference.facts import facts_of
from countveil.inference.plan import Plan
from countveil.inference.starts.alternating import least_squares_start
from countveil.inference.streams import START, Streams
from countveil.kernels import bessel_cavi as kernels
from tests.joint import (
    SERIAL,
    arrays_of,
    assert_same_bits,
    draw_reports,
    matrix_model,
    mu_of,
    planted,
    small_model,
    truncated_logpmf,
)

SIZE = (7, 5)
ALPHA = np.array([0.0, 0.2, 0.5, 0.5, 0.7, 0.9, 0.3])
MASK = np.zeros(SIZE, dtype=bool)
MASK[[0, 1, 3, 5], [2, 0, 4, 1]] = True


@pytest.mark.parametrize("shape", [1.0, 1.3, 5.0, 9.99, 10.0, 300.0, 1e7])
def test_geometric_mean(shape):
    assert kernels.geometric_mean(shape) == pytest.approx(math.exp(special.digamma(shape)), rel=1e-13)


def moments(shape, rate):
    """(geometric mean, mean, variance) of every entry of a gamma factor."""
    return np.exp(special.digamma(shape)) / rate, shape / rate, shape / rate**2


def test_moments_of_a_rate():
    rng = np.random.default_rng(1)
    parameters = [rng.gamma(2.0, 1.0, (1, 3)) for _ in range(4)]
    theta, phi = moments(*parameters[:2]), moments(*parameters[2:])
    geometric, mean, variance = kernels.rate_moments(*theta, 0, *phi, 0)
    draws = rng.gamma(parameters[0][0], 1.0 / parameters[1][0], (2, 200_000, 3))[0]
    draws = (draws * rng.gamma(parameters[2][0], 1.0 / parameters[3][0], (200_000, 3))).sum(axis=1)
    assert abs(draws.mean() - mean) < 4 * draws.std() / math.sqrt(draws.size)
    squares = (draws - mean) ** 2
    assert abs(squares.mean() - variance) < 4 * squares.std() / math.sqrt(draws.size)
    logs = [special.digamma(shape) - np.log(rate) for shape, rate in (parameters[:2], parameters[2:])]
    assert geometric == pytest.approx(np.exp(logs[0] + logs[1]).sum(), rel=1e-13)


def split_in_numpy(r, geometric, mean, variance, shapes, alpha, center):
    """(E[y], E[g_1], E[g_2]) as the papers have it."""
    g_1, g_2 = alpha * np.exp(special.digamma(shapes))
    both = alpha * shapes[0] + mean
    log_both = np.log(both) - (alpha**2 * shapes[0] + variance) / (2.0 * both**2)
    law = Bessel(abs(r), 2.0 * math.sqrt(g_2 * math.exp(log_both)))
    upper = getattr(law, center)() + max(r, 0)
    count = upper * geometric / (geometric + g_1)
    return count, upper - count, upper - r


@pytest.mark.parametrize("center", ["mode", "mean"])
@pytest.mark.parametrize("r", [0, 1, 12, 400])
def test_split_of_one_cell(r, center):
    rng = np.random.default_rng(r)
    for scale in (1e-3, 1.0, 300.0):
        shapes, (geometric, extra, variance) = 1.0 + rng.gamma(1.0, 3.0, 2), rng.gamma(1.0, scale, 3)
        found = kernels.expected_split(r, geometric, geometric + extra, variance, *shapes, 0.6, center == "mean")
        exact = split_in_numpy(r, geometric, geometric + extra, variance, shapes, 0.6, center)
        assert found == pytest.approx(exact, rel=1e-11, abs=1e-14)


def update_in_numpy(state, reports, alpha, mask, model, center):
    """Shapes and rates after one iteration, all sums written out."""
    theta, phi = (moments(shape, rate) for shape, rate in zip(state.shapes, state.rates, strict=True))
    count_dvk, noise = np.zeros((*SIZE, model.n_components)), state.noise_shape.copy()
    for d, v in np.argwhere(~mask):
        r, g_k = max(reports[d, v], 0), theta[0][d] * phi[0][v]
        count = float(r)
        if alpha[d, v] > 0.0:
            second = (theta[2][d] + theta[1][d] ** 2) * (phi[2][v] + phi[1][v] ** 2)
            mean, variance = theta[1][d] @ phi[1][v], (second - (theta[1][d] * phi[1][v]) ** 2).sum()
            count, *counts = split_in_numpy(r, g_k.sum(), mean, variance, noise[d, v], alpha[d, v], center)
            noise[d, v] = 1.0 + np.array(counts)
        count_dvk[d, v] = count * g_k / g_k.sum()
    seen = (~mask).astype(float)
    theta_b, phi_b = (h[0] / h[1] for h in state.hypers)
    theta_shape, theta_rate = model.factors[0].prior.shape + count_dvk.sum(axis=1), theta_b + seen @ phi[1]
    phi_shape = model.factors[1].prior.shape + count_dvk.sum(axis=0)
    phi_rate = phi_b + seen.T @ (theta_shape / theta_rate)
    return (theta_shape, phi_shape), (theta_rate, phi_rate), noise


@pytest.mark.parametrize("center", ["mode", "mean"])
@pytest.mark.parametrize("kind", ["row", "cell"])
def test_an_iteration_equals_its_formulas(kind, center):
    rng, model = np.random.default_rng(3), small_model(SIZE, 3, shape=0.7, learned=True)
    cells = rng.uniform(0.0, 0.9, SIZE)
    cells[0, 0] = 0.0
    given = ALPHA if kind == "row" else cells
    alpha = np.broadcast_to(given if kind == "cell" else given[:, None], SIZE)
    mu = rng.gamma(1.0, 1.0, (SIZE[0], 3)) @ rng.gamma(1.0, 1.0, (SIZE[1], 3)).T
    reports = draw_reports(mu, alpha, rng)
    observations, streams = PrivatizedCounts(reports, given, MASK), Streams.of_chain(1, 0)
    plan = Plan(observations, model)
    state = bessel_cavi.init(plan, model, streams, SERIAL, center=center)
    for _ in range(3):
        exact = update_in_numpy(state, reports, alpha, MASK, model, center)
        state, _ = bessel_cavi.step(state, plan, model, streams, SERIAL, center=center)
        found = arrays_of((state.shapes, state.rates, state.noise_shape))
        for part, value in zip(found, arrays_of(exact), strict=True):
            np.testing.assert_allclose(part, value, rtol=1e-10)
    for hyper, size, mean in zip(state.hypers, SIZE, state.means, strict=True):
        np.testing.assert_allclose(hyper[0], 1.0 + 0.7 * size, rtol=1e-12)
        np.testing.assert_allclose(hyper[1], 1.0 + mean.sum(axis=0, keepdims=True), rtol=1e-12)


def test_without_noise_it_is_exact_coordinate_ascent():
    observations = ExactCounts(np.random.default_rng(4).poisson(2.0, (30, 12)), np.zeros((30, 12), dtype=bool))
    model, streams = small_model((30, 12), 3, learned=True), Streams.of_chain(2, 0)
    plan = Plan(observations, model)
    one, other = (algorithm.init(plan, model, streams, SERIAL) for algorithm in (bessel_cavi, cavi))
    for _ in range(5):
        one, _ = bessel_cavi.step(one, plan, model, streams, SERIAL)
        other, _ = cavi.step(other, plan, model, streams, SERIAL)
    for a, b in zip(arrays_of(one[:3]), arrays_of(other[:3]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize("center", ["mode", "mean"])
@pytest.mark.parametrize("alpha", [0.13, 0.7])
def test_it_recovers_planted_structure(alpha, center):
    mu, _, observations, _ = planted(200, 100, 4, alpha, seed=3)
    model, streams = (matrix_model(mu.shape, 4, 0.1, None, facts_of(observations).mean_count), Streams.of_chain(1, 0))
    theta, phi = least_squares_start(observations, 4, streams.generator(0, START), SERIAL)
    plan = Plan(observations, model)
    state, scores = bessel_cavi.init(plan, model, streams, SERIAL, center=center), []
    for _ in range(30):
        state, info = bessel_cavi.step(state, plan, model, streams, SERIAL, center=center)
        scores.append(info.objective)
    found = mu_of(state.means)
    assert np.abs(found - mu).mean() < 0.4 * np.abs(theta @ phi.T - mu).mean()
    assert np.corrcoef(found.ravel(), mu.ravel())[0, 1] > 0.99
    assert scores[-1] > scores[0]


def test_the_objective_is_the_likelihood_of_the_means_that_the_step_began_with():
    _, _, observations, reports = planted(30, 20, 2, 0.5, seed=3, tokens=100.0)
    model, streams = small_model((30, 20), learned=True), Streams.of_chain(1, 0)
    plan = Plan(observations, model)
    state = bessel_cavi.init(plan, model, streams, SERIAL)
    before = tuple(arrays_of(state))
    after, info = bessel_cavi.step(state, plan, model, streams, SERIAL)
    assert_same_bits(before, state)
    mean = mu_of(state.means)
    assert info.objective == pytest.approx(truncated_logpmf(reports, mean, np.array(0.5)).sum(), rel=1e-10)
    assert (state.sweep, after.sweep) == (0, 1)


@pytest.mark.parametrize("threads", [2, 5])
def test_the_engine_does_not_change_a_bit(threads):
    _, _, observations, _ = planted(600, 50, 3, 0.5, seed=4)
    streams, model = Streams.of_chain(5, 0), small_model((600, 50), 3, learned=True)
    plan = Plan(observations, model)
    start, finals = bessel_cavi.init(plan, model, streams, SERIAL), []
    with ThreadEngine(threads) as pool:
        for engine in (SERIAL, pool):
            state = start
            for _ in range(3):
                state, info = bessel_cavi.step(state, plan, model, streams, engine)
            finals.append((*state, info.objective))
    assert_same_bits(*finals)


def test_the_centre_has_two_names():
    observations = PrivatizedCounts(np.ones((3, 2), dtype=int), 0.5)
    with pytest.raises(ValueError, match=r"center must be 'mode' or 'mean', got 'median'$"):
        bessel_cavi.init(
            Plan(observations, small_model((3, 2))),
            small_model((3, 2)),
            Streams.of_chain(1, 0),
            SERIAL,
            center="median",
        )


def test_reports_without_a_positive_one_leave_nothing_to_divide_by():
    for tensor in (np.zeros((3, 4, 2), dtype=int), np.zeros((4, 4), dtype=int)):
        model = TensorModel(2, method="bessel-cavi", draws=2, seed=1, progress=False)
        rate = model.fit(PrivatizedCounts(tensor, 0.3)).rate()
        assert (rate >= 0.0).all()
        assert rate.max() < 0.1
