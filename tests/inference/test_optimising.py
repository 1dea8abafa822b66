"""Fits by optimisers: when they stop, which way their steps go, and the draws that are made of what they find."""

from types import SimpleNamespace

import numpy as np
import pytest

from countveil.engines.threads import ThreadEngine
from countveil.inference import bessel_cavi, cavi, optimising, run
from countveil.inference.plan import Plan
from tests.factorizations import CASES, alpha_of, mask_of, model_of, observe, rates_of
from tests.inference.test_cavi import climb
from tests.joint import SERIAL, assert_same_bits, draw_factors, draw_reports, fit_settings, mu_of, planted, small_model


def scene(seed=7):
    return planted(10, 8, 2, 0.5, seed=seed)[2], small_model((10, 8))


def test_draws_from_q_have_its_moments():
    observations, model = scene()
    q = climb(observations, model, 20)[0]
    draws = optimising.draws_from_gammas(q, model, fit_settings(draws=4000), SERIAL)
    for values, shape, rate in zip(draws.factors, q.shapes, q.rates, strict=True):
        error = np.sqrt(shape) / rate / np.sqrt(4000)
        assert np.abs((values[0].mean(axis=0) - shape / rate) / error).max() < 5.0
    for values, hyper in zip(draws.hypers, q.hypers, strict=True):
        assert (values == hyper[0] / hyper[1]).all()


@pytest.mark.parametrize("name", ["undirected", "shapes and known"])
def test_known_and_symmetric_factors_stay_so_in_every_draw(name):
    case, rng = CASES[name], np.random.default_rng(3)
    model = model_of(case)
    reports = draw_reports(rates_of(model, draw_factors(model, rng)[0]), alpha_of(case), rng)
    observations = observe(model, case, reports, mask_of(case))
    q = climb(observations, model, 3)[0]
    draws = optimising.draws_from_gammas(q, model, fit_settings(draws=5), SERIAL)
    for factor, values in zip(model.factors, draws.factors, strict=True):
        assert np.unique(values[0, :, 0, 0]).size == (5 if factor.fixed is None else 1)
        if factor.fixed is not None:
            np.testing.assert_array_equal(values[0, 2], factor.fixed.astype(np.float32))
        if factor.symmetric:
            np.testing.assert_array_equal(values[0], values[0].transpose(0, 2, 1))


def test_draws_never_vanish_in_single_precision():
    model = small_model((2, 2), 1)
    q = SimpleNamespace(shapes=[np.full((2, 1), 1e-3)] * 2, rates=[np.ones((2, 1))] * 2)
    rng = np.random.default_rng(1)
    drawn = np.array([optimising.draw_factor(q, model, 0, rng) for _ in range(200)])
    assert drawn.min() == optimising.SMALLEST_DRAW
    assert np.float32(drawn.min()) > 0.0


def test_every_draw_has_its_total_rate_and_no_score():
    observations, model = scene()
    q = climb(observations, model, 5)[0]
    draws = optimising.draws_from_gammas(q, model, fit_settings(draws=3), SERIAL)
    for s in range(3):
        factors = [values[0, s].astype(float) for values in draws.factors]
        assert draws.total_rate[0, s] == pytest.approx(mu_of(factors).sum(), rel=1e-6)
    assert np.isnan(draws.log_likelihood).all()


def test_draws_do_not_depend_on_the_number_of_threads():
    observations, model = scene()
    q = climb(observations, model, 5)[0]
    alone = optimising.draws_from_gammas(q, model, fit_settings(draws=20), SERIAL)
    with ThreadEngine(3) as engine:
        together = optimising.draws_from_gammas(q, model, fit_settings(draws=20), engine)
    assert_same_bits(tuple(alone), tuple(together))
    assert np.unique(alone.factors[0][0, :, 0, 0]).size == 20


@pytest.mark.parametrize("expectation", ["geometric", "arithmetic"])
def test_steps_go_the_way_that_the_options_say(expectation):
    observations, model = scene()
    found = cavi.CAVI(expectation=expectation, max_iter=4).run(observations, model, fit_settings())
    ways = {way: [] for way in cavi.EXPECTATIONS}
    plan = Plan(observations, model)
    for way, objectives in ways.items():
        algorithm = cavi.CAVI(expectation=way).bound()
        state = algorithm.init(plan, model, optimising.Streams.of_chain(3, 0), SERIAL)
        for _ in range(4):
            state, info = algorithm.step(state, plan, model, None, SERIAL)
            objectives.append(info.objective)
    assert found.objective.tolist() == ways[expectation]
    assert ways["geometric"] != ways["arithmetic"]


def test_the_option_of_a_start_is_there_from_the_start():
    observations, model = scene()
    streams = optimising.Streams.of_chain(1, 0)
    plan = Plan(observations, model)
    for center in bessel_cavi.CENTERS:
        algorithm = bessel_cavi.BesselCAVI(center=center).bound()
        state = bessel_cavi.init(plan, model, streams, SERIAL, center=center)
        assert_same_bits(algorithm.init(plan, model, streams, SERIAL), state)
        expected = bessel_cavi.step(state, plan, model, streams, SERIAL, center=center)
        assert_same_bits(algorithm.step(state, plan, model, streams, SERIAL), expected)


def test_it_stops_at_its_tolerance_or_after_its_iterations():
    observations, model = scene()
    long = cavi.CAVI(max_iter=400, tolerance=1e-3).run(observations, model, fit_settings())
    assert long.converged
    ranges = np.maximum.accumulate(long.objective) - np.minimum.accumulate(long.objective)
    changes = np.abs(np.diff(long.objective)) / ranges[1:]
    assert changes[-1] <= 1e-3 < changes[:-1].min()
    short = cavi.CAVI(max_iter=3, tolerance=1e-30).run(observations, model, fit_settings())
    assert not short.converged
    assert len(short.objective) == 3
    assert_same_bits(short.objective, long.objective[:3])


def test_without_a_reason_to_stop_it_stops_after_its_iterations():
    observations, model = scene()
    found = run.ascend(observations, model, cavi, fit_settings(), lambda *_: False, 5)
    assert len(found.objective) == 5


def test_a_fit_holds_the_means_that_were_found():
    observations, model = scene()
    found = cavi.CAVI(max_iter=5, tolerance=1e-5).run(observations, model, fit_settings(draws=2))
    state = run.ascend(observations, model, cavi, fit_settings(), lambda *_: False, 5).state
    assert_same_bits(found.means, state.means)
    assert found.draws.log_likelihood.shape == (1, 2)
