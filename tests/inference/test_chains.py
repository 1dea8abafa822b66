"""Fits by chains: the samplers' own runs, from the start that the settings name."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

import countveil as cv
from countveil.inference import chains, dispersion, em, gibbs, moves, run, starts, tokens
from countveil.inference.draws import Schedule
from countveil.inference.methods import METHODS
from countveil.inference.moves import Moving
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.laws.counts.laws import law_of
from countveil.laws.counts.negative_binomial import NegativeBinomial
from countveil.report import render
from tests.joint import SERIAL, assert_same_bits, fit_settings, planted, small_model


def test_starts_go_by_the_names_that_users_write():
    assert {
        "auto": starts.automatic, "least-squares": starts.least_squares, "spectral": starts.spectral, "em": em.refined,
    } == chains.STARTS  # fmt: skip


@pytest.mark.parametrize("algorithm", ["gibbs", "augmented-gibbs"])
@pytest.mark.parametrize("start", [starts.least_squares, em.refined])
def test_a_fit_is_a_run_of_its_algorithm(algorithm, start):
    observations, model = planted(40, 30, 3, 0.5, seed=1)[2], small_model((40, 30), 3, learned=True)
    plan = Schedule(3, 2, 2, 1)
    settings = fit_settings()._replace(schedule=plan, seed=4, start=start)
    found = METHODS[algorithm]().run(observations, model, settings)
    own = run.sample(
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
    own = run.sample(
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
