import signal
import threading
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from threadpoolctl import threadpool_info, threadpool_limits

import countveil as cv
from countveil.engines.blocks import row_blocks
from countveil.engines.threads import ThreadEngine
from countveil.fit.starting import STARTS
from countveil.inference import bessel_cavi, cavi, dispersion, em, gibbs, moves, starts, tokens
from countveil.inference import run as module
from countveil.inference.draws import Draws, Schedule
from countveil.inference.methods import METHODS
from countveil.inference.moves import Moving
from countveil.inference.plan import Plan
from countveil.inference.run import Chain, cut, relative_change, sample
from countveil.inference.streams import Streams
from countveil.laws.counts.laws import law_of
from countveil.laws.counts.negative_binomial import NegativeBinomial
from countveil.report import render
from tests.factorizations import CASES, alpha_of, mask_of, model_of, observe, rates_of
from tests.inference.test_cavi import climb
from tests.joint import (
    SERIAL,
    arrays_of,
    assert_same_bits,
    draw_factors,
    draw_reports,
    fit_settings,
    mu_of,
    planted,
    run_chain,
    small_model,
)

K = 3


def observations(n_rows=40):
    return planted(n_rows, 30, 3, 0.5, seed=1)[2]


def run(plan, threads=1, seed=5, data=None, progress=False):
    data = data or observations()
    model = small_model(data.shape, K, learned=True)
    return sample(data, model, plan, seed=seed, threads=threads, progress=progress, algorithm=gibbs)


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("chains", [1, 3])
def test_the_same_seed_gives_the_same_bits_with_any_number_of_threads(threads, chains):
    plan, data = Schedule(4, 3, chains, 1), observations(600)
    assert len(row_blocks(600, None, data.shape[1])) > 2
    assert_same_bits(run(plan, 1, data=data).draws, run(plan, threads, data=data).draws)


def test_the_first_chain_is_the_same_alone_or_among_three():
    alone, among = run(Schedule(4, 3, 1, 1)).draws, run(Schedule(4, 3, 3, 1), threads=2).draws
    assert_same_bits(alone, among.mapped(lambda values: values[:1]))


def test_other_seeds_and_other_chains_draw_apart():
    one, other = run(Schedule(4, 3, 2, 1)).draws, run(Schedule(4, 3, 2, 1), seed=6).draws
    values = np.concatenate([one.log_likelihood.ravel(), other.log_likelihood.ravel()])
    assert np.unique(values).size == values.size


def test_every_thinned_draw_is_the_state_of_its_sweep():
    plan = Schedule(draws=3, tune=4, chains=1, thin=2)
    assert plan.sweeps == 10
    draws = run(plan).draws
    chain = run_chain(observations(), small_model((40, 30), K, learned=True), 10, seed=5)
    states = [s for s in chain if s.sweep in (6, 8, 10)]
    for s, state in enumerate(states):
        stored = (*draws.factors, *draws.hypers)
        for kept, value in zip(stored, arrays_of((state.factors, state.hypers)), strict=True):
            np.testing.assert_array_equal(kept[0, s], value.astype(kept.dtype))
    mu = np.array([mu_of(s.factors).sum() for s in states])
    np.testing.assert_allclose(draws.total_rate[0], mu, rtol=1e-10)


def test_draws_have_the_shapes_that_are_written_beside_them():
    draws = run(Schedule(4, 0, 2, 1)).draws
    shapes = [(2, 4, 40, 3), (2, 4, 30, 3), (2, 4, 1, 3), (2, 4, 1, 3), (2, 4), (2, 4)]
    assert [values.shape for values in draws.arrays] == shapes


def interrupt_at(monkeypatch, sweep, chains):
    """Ctrl-C, sent to the main thread when all chains have come to this sweep; those that come first wait there."""
    step, arrived = gibbs.step, threading.Barrier(chains)

    def interrupting(state, *rest):
        if state.sweep == sweep and arrived.wait(60.0) == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return step(state, *rest)

    monkeypatch.setattr(gibbs, "step", interrupting)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupted_run_keeps_the_draws_so_far(monkeypatch, threads):
    assert threading.current_thread() is threading.main_thread()
    plan = Schedule(draws=100_000, tune=5, chains=threads, thin=1)
    whole = run(Schedule(20, 5, threads, 1), threads).draws
    interrupt_at(monkeypatch, 30, chains=threads)
    found = run(plan, threads)
    assert found.interrupted
    kept = found.draws.log_likelihood.shape[1]
    assert 20 <= kept < 50_000
    assert_same_bits(found.draws.mapped(lambda values: values[:, :20]), whole)


@pytest.mark.usefixtures("ctrl_c")
def test_interrupted_before_any_draw_it_says_so(monkeypatch):
    interrupt_at(monkeypatch, 30, chains=2)
    with pytest.raises(KeyboardInterrupt, match="before any draw was kept"):
        run(Schedule(draws=10, tune=100_000, chains=2, thin=1), threads=2)


def test_a_chain_that_fails_stops_the_others_and_tells_why(monkeypatch):
    chain_run = Chain.run
    stopped = []

    def failing(self, plan, engine, stop, report, watched):
        if self.number == 1:
            raise MemoryError("no room")
        chain_run(self, plan, engine, stop, report)
        stopped.append(stop.is_set())

    monkeypatch.setattr(Chain, "run", failing)
    with pytest.raises(MemoryError, match="no room"):
        run(Schedule(draws=100_000, tune=0, chains=2, thin=1), threads=2)
    assert stopped == [True]


def test_cut_leaves_most_draws_of_chains_of_one_length():
    draws = Draws.empty(Schedule(5, 0, 3, 1), small_model((4, 3)))
    draws.log_likelihood[:] = np.arange(15).reshape(3, 5)
    whole, numbers = cut(draws, [5, 5, 5])
    assert whole is draws
    assert numbers == [0, 1, 2]
    assert cut(draws, [3, 2, 3])[0].log_likelihood.tolist() == [[0, 1], [5, 6], [10, 11]]
    assert cut(draws, [5, 0, 3])[0].log_likelihood.tolist() == [[0, 1, 2], [10, 11, 12]]
    assert [values.shape[:2] for values in cut(draws, [5, 0, 3])[0].arrays] == [(2, 3)] * 6
    only, numbers = cut(draws, [1, 5, 5])  # a chain that had just begun costs no draws of whole ones
    assert only.log_likelihood.tolist() == [[5, 6, 7, 8, 9], [10, 11, 12, 13, 14]]
    assert numbers == [1, 2]
    with pytest.raises(KeyboardInterrupt):
        cut(draws, [0, 0, 0])


def in_rounds(monkeypatch, apart):
    """A run of up to six chains in rounds of two, with these values of how far averages are from steady."""
    values = iter(apart)
    monkeypatch.setattr(module, "unsteadiness", lambda *_: next(values))
    found = run(Schedule(4, 3, 6, 1, (2, 4, 6)), threads=2)
    assert next(values, None) is None
    return found


@pytest.mark.parametrize(("apart", "n"), [((1.05,), 2), ((1.06, 1.01), 4), ((1.3, 1.2), 6)])
def test_chains_are_added_until_averages_are_steady(monkeypatch, apart, n):
    found, fixed = in_rounds(monkeypatch, apart), run(Schedule(4, 3, n, 1))
    assert_same_bits(found.draws, fixed.draws)
    assert len(found.tuning) == n


@pytest.mark.usefixtures("ctrl_c")
def test_interrupted_in_a_later_round_the_chains_of_earlier_ones_stay_whole(monkeypatch):
    step = gibbs.step

    def interrupting(state, plan, model, streams, engine):
        if state.sweep == 5 and streams == Streams.of_chain(5, 3):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return step(state, plan, model, streams, engine)

    monkeypatch.setattr(gibbs, "step", interrupting)
    monkeypatch.setattr(module, "unsteadiness", lambda *_: 2.0)
    found = run(Schedule(20, 3, 4, 1, (2, 4)))
    assert found.interrupted
    assert_same_bits(found.draws.mapped(lambda values: values[:2]), run(Schedule(20, 3, 2, 1)).draws)


def test_interrupted_between_rounds_the_chains_so_far_are_kept(monkeypatch):
    def interrupting(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "unsteadiness", interrupting)
    found = run(Schedule(4, 3, 4, 1, (2, 4)))
    assert found.interrupted
    assert_same_bits(found.draws, run(Schedule(4, 3, 2, 1)).draws)


def test_threads_are_shared_among_the_chains_of_a_round(monkeypatch):
    asked, original = [], module.engine_or_threads

    def recording(engine, threads):
        asked.append(threads)
        return original(engine, threads)

    monkeypatch.setattr(module, "engine_or_threads", recording)
    monkeypatch.setattr(module, "unsteadiness", lambda *_: 1.0)
    run(Schedule(4, 3, 6, 1, (2, 4, 6)), threads=6)
    assert asked == [3]


def test_of_too_few_draws_nothing_is_known_to_be_steady():
    assert len(run(Schedule(2, 3, 4, 1, (2, 4))).tuning) == 4


def test_how_far_averages_are_from_steady_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(module, "unsteadiness", lambda *_: 1.234)
    run(Schedule(4, 2, 4, 1, (2, 4)), progress=True)
    assert "nested R-hat 1.23, above 1.05" in capsys.readouterr().err


def test_progress_is_shown_on_stderr_when_asked_for(capsys):
    run(Schedule(4, 2, 2, 1), threads=2, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "chain 1" in shown.err
    assert "chain 2" in shown.err
    assert "6/6 sweeps" in shown.err


@pytest.mark.parametrize("progress", [False, None])
def test_progress_is_silent_where_nobody_watches(capsys, progress):
    run(Schedule(2, 2, 1, 1), progress=progress)
    shown = capsys.readouterr()
    assert (shown.out, shown.err.strip()) == ("", "")


def test_blas_keeps_to_one_thread_in_a_run_and_has_its_own_back_afterwards(monkeypatch):
    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    def recording_init(*arguments):
        seen.append(threads())
        return init(*arguments)

    init, seen = gibbs.init, []
    monkeypatch.setattr(gibbs, "init", recording_init)
    with threadpool_limits(2, user_api="blas"):
        run(Schedule(1, 0, 4, 1), threads=4)
        assert seen == [{1}] * 4  # before any chain limits it: chains that did so side by side would race
        assert threads() == {2}


def stops_at(objectives, tolerance):
    """How many objectives the rule has to see before it says so; None for never."""
    rule = relative_change(tolerance)
    return next((n for n in range(1, len(objectives) + 1) if rule(None, objectives[:n])), None)


@pytest.mark.parametrize("constant", [0.0, -1e7, 150.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_ascent_ends_where_the_objective_hardly_changes_beside_its_range(constant, sign):
    objectives = [constant + sign * x for x in (-200.0, -100.0, -50.0, -49.0, -48.85, -48.8)]
    assert [stops_at(objectives, tolerance) for tolerance in (0.4, 0.01, 0.001, 1e-4)] == [3, 4, 5, None]


def test_an_ascent_that_turns_is_judged_by_all_of_its_range():
    assert stops_at([0.0, 100.0, 99.0, 0.0, -1.0], 0.02) == 3
    assert stops_at([0.0, 100.0, 90.0, 0.5, -1.0], 0.02) == 5


def test_an_ascent_from_the_optimum_ends_with_changes_that_rounding_makes():
    assert stops_at([-5e5], 1e-3) is None
    assert stops_at([-5e5, -5e5], 1e-3) == 2
    assert stops_at([-5e5, -5e5 - 1e-8], 1e-3) == 2
    assert stops_at([-5e5, -5e5 - 1e-4], 1e-3) is None


def test_starts_go_by_the_names_that_users_write():
    assert {
        "auto": starts.automatic, "least-squares": starts.least_squares, "spectral": starts.spectral, "em": em.refined,
    } == STARTS  # fmt: skip


@pytest.mark.parametrize("algorithm", ["gibbs", "augmented-gibbs"])
@pytest.mark.parametrize("start", [starts.least_squares, em.refined])
def test_a_fit_is_a_run_of_its_algorithm(algorithm, start):
    observations, model = planted(40, 30, 3, 0.5, seed=1)[2], small_model((40, 30), 3, learned=True)
    plan = Schedule(3, 2, 2, 1)
    settings = fit_settings()._replace(schedule=plan, seed=4, start=start)
    found = METHODS[algorithm]().run(observations, model, settings)
    own = module.sample(
        observations, model, plan, seed=4, threads=1, progress=False, algorithm=METHODS[algorithm].algorithm,
        start=start,
    )  # fmt: skip
    assert_same_bits(tuple(found.draws), tuple(own.draws))
    assert not found.interrupted
    assert (found.objective, found.converged, found.means, found.state) == (None, None, None, None)


@pytest.mark.parametrize(("tune", "asked", "made"), [(19, 5, 0), (20, 5, 1), (70, 5, 3), (70, 2, 2), (70, 0, 0)])
def test_moves_take_at_most_half_of_the_tuning(tune, asked, made):
    observations, model = planted(40, 30, 3, 0.5, seed=1)[2], small_model((40, 30), 3, learned=True)
    plan = Schedule(2, tune, 1, 1)
    settings = fit_settings()._replace(schedule=plan, seed=4)
    found = gibbs.Gibbs(moves=asked).run(observations, model, settings)
    own = module.sample(
        observations, model, plan, seed=4, threads=1, progress=False, algorithm=Moving(gibbs, made)
    )  # fmt: skip
    assert_same_bits(tuple(found.draws), tuple(own.draws))


@pytest.fixture
def by_tokens(monkeypatch):
    """Sweeps that go by tokens whatever the data."""
    monkeypatch.setattr(tokens, "MIN_REPORTS", 0)
    monkeypatch.setattr(tokens, "MAX_PROPOSALS_PER_REPORT", 1e9)


@pytest.fixture
def very_many(monkeypatch):
    """Reports that count as very many."""
    monkeypatch.setattr(moves, "MOST_VISITED", 99)


@pytest.mark.long
@pytest.mark.parametrize(
    ("likelihood", "n", "merged"),
    [
        ("poisson", 6, [(9, 7), (7, 6)]),
        ("negative-binomial", 6, [(9, 7), (7, 6)]),
        ("poisson", 3, [(4, 3)]),
        ("poisson", 2, [(3, 2)]),
    ],
)
def test_moves_in_very_many_reports_by_tokens_merge_what_the_start_has_too_much(
    by_tokens, very_many, monkeypatch, likelihood, n, merged
):
    monkeypatch.setattr(moves, "split", None)
    options = {"draws": 2, "tune": 100, "chains": 1, "seed": 4, "threads": 1, "progress": False}
    fit = cv.TopicModel(n, likelihood=likelihood, **options).fit(planted(60, 50, 6, 0.5, seed=1)[2])
    made = fit.diagnostics().moves
    assert set(made["kind"]) == {"merge"}
    assert [*zip(made["before"], made["after"], strict=True)] == merged


@pytest.mark.parametrize("case", ["published", "one component", "very many by tokens from another start"])
def test_other_chains_have_no_moves(monkeypatch, case, request):
    monkeypatch.setattr(Moving, "step", None)
    observations = planted(40, 30, 3, 0.5, seed=1)[2]
    method = cv.AugmentedGibbs() if case == "published" else cv.Gibbs(moves=5)
    settings = fit_settings()._replace(schedule=Schedule(1, 40, 1, 1))
    if case.startswith("very many"):
        request.getfixturevalue("by_tokens"), request.getfixturevalue("very_many")
        settings = settings._replace(start=starts.least_squares)
    method.run(observations, small_model((40, 30), 1 if case == "one component" else 3), settings)


@pytest.mark.parametrize("visited", [False, True])
def test_chains_by_tokens_have_moves_and_so_have_those_of_very_many_reports_that_are_visited(
    monkeypatch, visited, request
):
    made, step = [], Moving.step
    monkeypatch.setattr(Moving, "step", lambda *given: made.append(given[0].moves) or step(*given))
    request.getfixturevalue("very_many" if visited else "by_tokens")
    observations, model = planted(40, 30, 3, 0.5, seed=1)[2], small_model((40, 30), 3, learned=True)
    law = law_of(observations.noise, model.likelihood, model.initial_parameters())
    assert tokens.pays(observations, law) is not visited
    assert observations.reports.size > 99
    settings = fit_settings()._replace(schedule=Schedule(1, 40, 1, 1))
    gibbs.Gibbs(moves=5).run(observations, model, settings)
    assert made == [2] * 41


def test_chains_can_begin_where_em_leaves_off(monkeypatch):
    observations = planted(40, 30, 3, 0.5, seed=1)[2]
    seen, step = [], gibbs.step

    def watched(state, *arguments):
        seen.append(state)
        return step(state, *arguments)

    monkeypatch.setattr(gibbs, "step", watched)
    options = {"draws": 1, "tune": 0, "chains": 1, "seed": 4, "threads": 1}
    fit = cv.TopicModel(3, start="em", **options).fit(observations)
    start = gibbs.init(Plan(observations, fit.model_), fit.model_, Streams.of_chain(4, 0), SERIAL, em.refined)
    assert_same_bits(seen[0].factors, start.factors)
    assert_same_bits(seen[0].hypers, start.hypers)


def test_the_start_of_em_is_a_few_iterations_on_from_the_automatic_one_in_expected_counts():
    observations, model = planted(40, 30, 3, 0.5, seed=1)[2], small_model((40, 30), 3)
    begun = starts.automatic(observations, model, np.random.default_rng(4), SERIAL)
    point = em.from_point(begun, Plan(observations, model), model, SERIAL, em.REFINING_ITERATIONS)
    refined = em.refined(observations, model, np.random.default_rng(4), SERIAL)
    assert_same_bits(refined, point.factors)
    bursts = model._replace(likelihood=NegativeBinomial())
    point = em.from_point(begun, Plan(observations, bursts), bursts, SERIAL, em.REFINING_ITERATIONS)
    refined = em.refined(observations, bursts, np.random.default_rng(4), SERIAL)
    mean = np.exp(dispersion.log_mean(logit(point.parameters[0])))  # counts of a burst
    np.testing.assert_allclose(
        np.prod([f.sum(axis=0) for f in refined], axis=0),
        np.prod([f.sum(axis=0) for f in point.factors], axis=0) * mean,
        rtol=1e-10,
    )


@pytest.mark.long
def test_moves_without_a_log_likelihood_go_into_files_pages_and_resumed_chains(by_tokens, very_many, tmp_path):
    options = {"draws": 2, "tune": 40, "chains": 2, "seed": 4, "progress": False}
    data, saved = planted(60, 50, 6, 0.5, seed=1)[2], tmp_path / "chains.npz"
    fit = cv.TopicModel(6, threads=1, **options).fit(data, checkpoint=saved)
    again = cv.TopicModel(6, threads=2, **options).fit(data, checkpoint=saved, resume=True)
    whole = cv.TopicModel(6, threads=2, **options).fit(data)
    fit.save(tmp_path / "fit.nc")
    loaded = cv.TopicModel.load(tmp_path / "fit.nc")
    for other in (again, whole, loaded):
        assert_same_bits((fit.rate().to_numpy(),), (other.rate().to_numpy(),))
        pd.testing.assert_frame_equal(other.diagnostics().moves, fit.diagnostics().moves)
    assert fit.diagnostics().moves["log_likelihood"].isna().all()
    assert "split and merge" not in render(loaded)


def scene(seed=7):
    return planted(10, 8, 2, 0.5, seed=seed)[2], small_model((10, 8))


def test_draws_from_q_have_its_moments():
    observations, model = scene()
    q = climb(observations, model, 20)[0]
    draws = module.draws_from_gammas(q, model, fit_settings(draws=4000), SERIAL)
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
    draws = module.draws_from_gammas(q, model, fit_settings(draws=5), SERIAL)
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
    drawn = np.array([module.draw_factor(q, model, 0, rng) for _ in range(200)])
    assert drawn.min() == module.SMALLEST_DRAW
    assert np.float32(drawn.min()) > 0.0


def test_every_draw_has_its_total_rate_and_no_score():
    observations, model = scene()
    q = climb(observations, model, 5)[0]
    draws = module.draws_from_gammas(q, model, fit_settings(draws=3), SERIAL)
    for s in range(3):
        factors = [values[0, s].astype(float) for values in draws.factors]
        assert draws.total_rate[0, s] == pytest.approx(mu_of(factors).sum(), rel=1e-6)
    assert np.isnan(draws.log_likelihood).all()


def test_draws_do_not_depend_on_the_number_of_threads():
    observations, model = scene()
    q = climb(observations, model, 5)[0]
    alone = module.draws_from_gammas(q, model, fit_settings(draws=20), SERIAL)
    with ThreadEngine(3) as engine:
        together = module.draws_from_gammas(q, model, fit_settings(draws=20), engine)
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
        state = algorithm.init(plan, model, module.Streams.of_chain(3, 0), SERIAL)
        for _ in range(4):
            state, info = algorithm.step(state, plan, model, None, SERIAL)
            objectives.append(info.objective)
    assert found.objective.tolist() == ways[expectation]
    assert ways["geometric"] != ways["arithmetic"]


def test_the_option_of_a_start_is_there_from_the_start():
    observations, model = scene()
    streams = module.Streams.of_chain(1, 0)
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
    found = module.ascend(observations, model, cavi, fit_settings(), lambda *_: False, 5)
    assert len(found.objective) == 5


def test_a_fit_holds_the_means_that_were_found():
    observations, model = scene()
    found = cavi.CAVI(max_iter=5, tolerance=1e-5).run(observations, model, fit_settings(draws=2))
    state = module.ascend(observations, model, cavi, fit_settings(), lambda *_: False, 5).state
    assert_same_bits(found.means, state.means)
    assert found.draws.log_likelihood.shape == (1, 2)
