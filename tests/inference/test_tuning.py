"""What is told of how chains were started and tuned, beside what they did."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.engines.threads import ThreadEngine
from countveil.inference import gibbs, run, scoring, tuning
from countveil.inference.algorithm import Checkpoint
from countveil.inference.draws import Schedule
from countveil.inference.moves import SWEEPS, Moving
from countveil.inference.plan import Plan
from countveil.inference.starts import begin, tensors
from countveil.inference.streams import START, Streams
from countveil.inference.tuning import Candidate, Tuning, recorded
from tests.factorizations import CASES, alpha_of, model_of, observe, rates_of
from tests.joint import SERIAL, draw_reports, planted, small_model

QUICK = {"draws": 3, "tune": 40, "chains": 2, "seed": 1, "threads": 1, "progress": False}
COUNTS = np.random.default_rng(1).poisson(1.0, (9, 9))


def test_a_chain_s_log_likelihoods_and_moves_are_those_of_its_states():
    """Three moves, each scored where it ended, of a chain swept by hand."""
    observations, model = planted(40, 30, 12, 0.5, seed=1)[2], small_model((40, 30), 12, learned=True)
    plan, moving, streams = Schedule(1, 3 * SWEEPS + 2, 1, 1), Moving(gibbs, 3), Streams.of_chain(4, 0)
    (told,) = run.sample(observations, model, plan, seed=4, threads=1, progress=False, algorithm=moving).tuning

    def score(state):
        theta, phi = state.factors
        wide = small_model((40, 30), theta.shape[1], learned=True)
        return scoring.log_likelihood((theta, phi), observations, wide, SERIAL)

    state = moving.init(Plan(observations, model), model, streams, SERIAL)
    assert (told.candidates, told.components, told.started) == ((), 18, score(state))
    expected = []
    while state.sweep < plan.tune:
        before = state.factors[1].shape[1]
        state, _ = moving.step(state, Plan(observations, model), model, streams, SERIAL)
        if state.sweep in (10, 20, 30):
            expected.append((state.sweep, before, state.factors[1].shape[1], score(state)))
    assert [tuple(move) for move in told.moves] == expected
    assert [move[1:3] for move in told.moves] == [(18, 14), (14, 12), (14, 12)]
    assert told.tuned == score(state)


def test_a_chain_that_is_not_tuned_has_the_log_likelihood_of_its_start():
    observations, model = planted(40, 30, 3, 0.5, seed=1)[2], small_model((40, 30), 3, learned=True)
    plan = Schedule(2, 0, 1, 1)
    (told,) = run.sample(observations, model, plan, seed=4, threads=1, progress=False, algorithm=gibbs).tuning
    assert told.started == told.tuned
    assert (told.moves, told.components) == ((), 0)


def scene(name):
    """(model, observations) of a case."""
    case, rng = CASES[name], np.random.default_rng(3)
    model = model_of(case)
    factors = [rng.gamma(0.5, 3.0, f.shape) if f.fixed is None else f.fixed for f in model.factors]
    return model, observe(model, case, draw_reports(rates_of(model, factors), alpha_of(case), rng), None)


def test_beginnings_of_tensors_have_the_squared_errors_where_they_were_dropped(monkeypatch):
    model, observations = scene("Tucker")
    found, real = [], tensors.improve

    def improve(*arguments):
        found.append(real(*arguments))
        return found[-1]

    monkeypatch.setattr(tensors, "improve", improve)
    with recorded(Tuning()) as record:
        tensors.race(observations, model, ((4, 2), (2, 1), (1, 1)), np.random.default_rng(1), SERIAL)
    first, second, last = found[:4], found[4:6], found[6]
    told = record.tuning.candidates
    order = np.argsort(first)
    assert [each.number for each in told] == [1, 2, 3, 4]
    winner = order[int(np.argmin(second))]
    assert [each.taken for each in told] == [int(i == winner) for i in range(4)]
    assert [told[i].rounds for i in order] == [3 if i == winner else 2 for i in order[:2]] + [1, 1]
    assert told[winner].score == last
    assert [told[i].score for i in order[2:]] == [first[i] for i in order[2:]]
    assert told[order[int(np.argmax(second))]].score == max(second)


def test_starts_of_communities_tell_of_embeddings_and_groupings_whatever_the_threads():
    model, observations = scene("directed")
    told = []
    plan = Plan(observations, model)
    for threads in (1, 3):
        with ThreadEngine(threads) as engine, recorded(Tuning()) as record:
            gibbs.init(plan, model, Streams.of_chain(2, 1), engine)
        told.append(record.tuning.candidates)
    assert told[0] == told[1]
    races = [each.race for each in told[0]]
    assert races == ["embeddings"] * 2 + ["groupings"] * 5
    for race in set(races):
        own = [each for each in told[0] if each.race == race]
        assert [each.taken for each in own] == [
            int(i == np.argmax([each.score for each in own])) for i in range(len(own))
        ]


def test_nothing_is_noted_where_no_chain_is_recorded():
    model, observations = scene("directed")
    with recorded(Tuning()) as record:
        pass
    begin(tensors.random_factors, observations, model, Streams.of_chain(1, 0).generator(0, START), SERIAL)
    gibbs.init(Plan(observations, model), model, Streams.of_chain(2, 1), SERIAL)
    assert record.tuning == Tuning()
    assert tuning.record() is None


def told_of(fit):
    return fit.diagnostics().of_chains()


def assert_same_tables(one, other):
    assert list(one) == list(other)
    for name, table in one.items():
        pd.testing.assert_frame_equal(table, other[name], check_exact=True)


MODELS = {
    "topics": (cv.TopicModel(4, **QUICK), COUNTS, ["chains", "moves"]),
    "tensor": (cv.TensorModel(2, **QUICK), COUNTS.reshape(9, 3, 3), ["chains", "starts"]),
    "published": (cv.TopicModel(3, **QUICK | {"method": "augmented-gibbs"}), COUNTS, ["chains"]),
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", MODELS)
def test_a_resumed_fit_and_one_from_a_file_tell_the_same(kind, tmp_path, monkeypatch):
    model, counts, expected = MODELS[kind]
    data, path = cv.PrivatizedCounts(counts, 0.4), tmp_path / "run.npz"
    whole = told_of(model.fit(data))
    assert list(whole) == expected
    keep = cv.inference.draws.Draws.keep

    def broken(self, s, *rest):
        if s == 1:
            raise RuntimeError("stopped here")
        keep(self, s, *rest)

    monkeypatch.setattr("countveil.inference.draws.Draws.keep", broken)
    with pytest.raises(RuntimeError, match="stopped here"):
        model.fit(data, checkpoint=path)
    monkeypatch.undo()
    resumed = model.fit(data, checkpoint=path, resume=True)
    assert_same_tables(told_of(resumed), whole)
    resumed.save(tmp_path / "fit.nc")
    assert_same_tables(told_of(type(model).load(tmp_path / "fit.nc")), whole)
    more_threads = type(model)(**model.get_params() | {"threads": 4})
    assert_same_tables(told_of(more_threads.fit(data)), whole)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tables_of_chains_have_their_numbers():
    model = cv.TopicModel(4, **QUICK | {"method": cv.Gibbs(weights="stacked")})
    fit = model.fit(cv.PrivatizedCounts(COUNTS, 0.4))
    told, scores = fit.diagnostics(), fit.posterior["sample_stats"]["log_likelihood"].to_numpy()
    np.testing.assert_array_equal(told.chains["log_likelihood_mean"], scores.mean(axis=1))
    np.testing.assert_array_equal(told.chains["log_likelihood_last"], scores[:, -1])
    np.testing.assert_array_equal(told.chains["weight"], fit.weights_)
    assert told.starts is None
    assert told.moves["chain"].tolist() == [0, 0, 1, 1]
    assert told.moves["move"].tolist() == [1, 2] * 2
    assert told.moves["sweep"].tolist() == [10, 20] * 2
    assert told.moves["kind"].tolist() == ["merge", "merge"] * 2
    for chain, own in told.moves.groupby("chain"):
        begun = told.chains["log_likelihood_start"][chain]
        np.testing.assert_allclose(begun + own["gain"].cumsum(), own["log_likelihood"])
    again = cv.TopicModel(4, **QUICK, start=fit).fit(cv.PrivatizedCounts(COUNTS, 0.4)).diagnostics()
    assert set(again.moves["kind"]) == {"split and merge"}
    assert again.chains["starts"].tolist() == [2, 2]
    assert again.starts["race"].tolist() == ["given"] * 4
    taken = again.starts[again.starts["taken"]]
    assert taken["start"].tolist() == again.chains["start"].tolist()
    assert again.starts["score"].isna().all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_fits_without_a_record_open_and_tell_what_there_is(tmp_path):
    fit = cv.TopicModel(4, **QUICK).fit(cv.PrivatizedCounts(COUNTS, 0.4))
    del fit.posterior_[tuning.GROUP]
    fit.save(tmp_path / "older.nc")
    told = told_of(cv.TopicModel.load(tmp_path / "older.nc"))
    assert list(told) == ["chains"]
    assert told["chains"].columns.tolist() == ["chain", "log_likelihood_mean", "log_likelihood_last", "weight"]
    point = cv.TopicModel(2, method=cv.EM(max_iter=3), seed=1, threads=1, progress=False)
    point.fit(cv.PrivatizedCounts(COUNTS, 0.4))
    assert told_of(point) == {}
    assert tuning.GROUP not in point.posterior.children


def test_a_checkpoint_keeps_every_bit(tmp_path):
    observations, model = planted(40, 30, 3, 0.5, seed=1)[2], small_model((40, 30), 3, learned=True)
    plan, path = Schedule(1, SWEEPS, 1, 1), tmp_path / "chain.npz"
    found = [
        run.sample(
            observations, model, plan, seed=4, threads=1, progress=False, algorithm=Moving(gibbs, 1),
            saving=Checkpoint(path, 60.0, resume),
        ).tuning
        for resume in (False, True)
    ]  # fmt: skip
    assert found[0] == found[1]
    assert isinstance(found[1][0].moves[0], tuning.Move)
    assert Tuning.of_parts((("given", 1, 1, 0.5, 1),), ()).candidates[0] == Candidate("given", 1, 1, 0.5, 1)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_moves_that_nobody_asked_for_only_merge():
    """However long a chain is tuned: splits cost more than they find (notes/algorithms.md)."""
    model = cv.TopicModel(4, **QUICK | {"tune": 100})
    told = model.fit(cv.PrivatizedCounts(COUNTS, 0.4)).diagnostics()
    assert told.moves["kind"].tolist() == ["merge", "merge"] * 2
