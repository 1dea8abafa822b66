"""Coordinate ascent on every factorization: the bound is the one the mathematics gives, and never decreases."""

import numpy as np
import pytest
from scipy import special

from countveil.inference import ascent, cavi, em, factors
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.kernels.random import SMALLEST
from tests.factorizations import CASES, alpha_of, mask_of, model_of, observe, rates_of
from tests.inference.test_cavi import largest_fall
from tests.joint import SERIAL, draw_factors, draw_reports, truncated_logpmf

STREAMS = Streams.of_chain(1, 0)
FITTED = {n: case for n, case in CASES.items() if not (case.loops and case.options.get("shared"))}
STEPS = 60


def scene(case, seed):
    """(model, observations, a point to begin from, reports, mask)."""
    rng, model = np.random.default_rng(seed), model_of(case)
    mask = mask_of(case, 0.1 * (seed % 3))
    reports = draw_reports(rates_of(model, draw_factors(model, rng)[0]), alpha_of(case), rng)
    return model, observe(model, case, reports, mask), draw_factors(model, rng)[0], reports, mask


def climb(case, seed, expectation="geometric", steps=STEPS):
    model, observations, point, _, _ = scene(case, seed)
    plan = Plan(observations, model)
    state, objectives = cavi.from_point(point, plan, model, SERIAL), []
    for _ in range(steps):
        state, info = cavi.step(state, plan, model, STREAMS, SERIAL, expectation)
        objectives.append(info.objective)
    return np.array(objectives)


@pytest.mark.long
@pytest.mark.parametrize("expectation", cavi.EXPECTATIONS)
@pytest.mark.parametrize("case", FITTED.values(), ids=FITTED)
def test_the_objective_never_decreases(case, expectation):
    for seed in range(3):
        objectives = climb(case, seed, expectation)
        assert largest_fall(objectives) < 1e-9
        assert objectives[-1] > objectives[0]


@pytest.mark.parametrize("case", FITTED.values(), ids=FITTED)
def test_the_likelihood_of_em_never_decreases(case):
    model, observations, point, _, _ = scene(case, 1)
    state, objectives = em.State(point, 0), []
    plan = Plan(observations, model)
    for _ in range(STEPS):
        state, info = em.step(state, plan, model, None, SERIAL)
        objectives.append(info.objective)
    assert largest_fall(np.array(objectives)) < 1e-9


def bound_by_adding_up(model, state, case, reports, mask):
    """E log p - E log q of everything, cell by cell and entry by entry."""
    geometric, means = list(state.means), state.means
    for f in model.free:
        geometric[f] = np.exp(special.digamma(state.shapes[f])) / state.rates[f]
    mu_tilde, mu, alpha = rates_of(model, geometric), rates_of(model, means), alpha_of(case)
    exposure = np.where(reports > 0, 1.0, 1.0 - alpha)
    data = truncated_logpmf(reports, mu_tilde, alpha) + exposure * (mu_tilde - mu)
    total = data[~mask].sum()
    for f in model.free:
        factor, (a, b) = model.factors[f], (state.shapes[f], state.rates[f])
        shape, hyper = np.broadcast_to(factor.prior.shape, factor.shape), state.hypers[f]
        rate = np.broadcast_to(hyper[0] / hyper[1], factor.shape)
        log_rate = np.log(rate)
        if factor.prior.learned:
            log_rate = np.broadcast_to(special.digamma(hyper[0]) - np.log(hyper[1]), factor.shape)
            scale = factor.prior.rate
            each = hyper[0] - np.log(hyper[1]) + special.gammaln(hyper[0]) + (1 - hyper[0]) * special.digamma(hyper[0])
            total += (each - np.log(scale) - hyper[0] / hyper[1] / scale).sum()
        mean_log = special.digamma(a) - np.log(b)
        prior = shape * log_rate - special.gammaln(shape) + (shape - 1) * mean_log - rate * a / b
        entropy = a - np.log(b) + special.gammaln(a) + (1 - a) * special.digamma(a)
        each = prior + entropy
        total += np.triu(each).sum() if factor.symmetric else each.sum()
    return total


@pytest.mark.parametrize("case", FITTED.values(), ids=FITTED)
def test_the_objective_is_the_bound(case):
    model, observations, point, reports, mask = scene(case, 2)
    plan = Plan(observations, model)
    state = cavi.from_point(point, plan, model, SERIAL)
    for _ in range(3):
        new, info = cavi.step(state, plan, model, STREAMS, SERIAL)
        expected = bound_by_adding_up(model, state, case, reports, mask)
        assert info.objective == pytest.approx(expected, rel=1e-9)
        state = new


def received_exposures_left_out(monkeypatch):
    right = factors.make_links
    nobody = np.zeros(7, dtype=np.int64), *[np.zeros(0, dtype=np.int64)] * 2, np.zeros(0)
    monkeypatch.setattr(factors, "make_links", lambda *given: right(*given)._replace(into=nobody))


def one_half_of_a_symmetric_factor(monkeypatch):
    monkeypatch.setattr(factors, "own_entries", lambda factor, sums: sums)


@pytest.mark.parametrize(
    ("name", "break_it"),
    [
        ("directed", received_exposures_left_out),
        ("undirected", received_exposures_left_out),
        ("undirected", one_half_of_a_symmetric_factor),
    ],
)
def test_a_wrong_update_makes_the_bound_fall(name, break_it, monkeypatch):
    break_it(monkeypatch)
    assert max(largest_fall(climb(CASES[name], seed)) for seed in range(3)) > 1e-6


def test_the_least_entry_of_a_matrix_factorization_is_that_of_the_kernels():
    assert ascent.least_entry(model_of(CASES["topics"])) == SMALLEST
