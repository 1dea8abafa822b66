import signal
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from countveil.engines.blocks import row_blocks
from countveil.inference import gibbs
from countveil.inference import run as module
from countveil.inference.draws import Draws, Schedule
from countveil.inference.run import Chain, cut, relative_change, sample
from countveil.inference.streams import Streams
from tests.joint import arrays_of, assert_same_bits, mu_of, planted, run_chain, small_model

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
