from types import SimpleNamespace

import numpy as np
import pytest

import countveil as cv
from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.evaluation.topics import topic_error
from countveil.inference import em, methods, scoring
from countveil.inference.em import Folds
from countveil.inference.facts import facts_of
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from tests.inference.test_cavi import largest_fall, problem
from tests.joint import (
    SERIAL,
    assert_same_bits,
    count_moments,
    dense_exposures,
    draw_factors,
    fit_settings,
    method_with,
    mu_of,
    planted,
    small_model,
    truncated_logpmf,
)

STREAMS = Streams.of_chain(1, 0)


def climb(observations, model, steps, streams=STREAMS):
    plan = Plan(observations, model)
    state, objectives = em.init(plan, model, streams, SERIAL), []
    for _ in range(steps):
        state, info = em.step(state, plan, model, streams, SERIAL)
        objectives.append(info.objective)
    return state, np.array(objectives)


@pytest.mark.parametrize("seed", range(10))
def test_the_likelihood_never_decreases(seed):
    assert largest_fall(climb(*problem(seed), 80)[1]) < 1e-9


def test_its_objective_is_the_log_likelihood():
    observations, model = problem(5)
    state, objectives = climb(observations, model, 3)
    expected = scoring.log_likelihood(state.factors, observations, model, SERIAL)
    after = em.step(state, Plan(observations, model), model, STREAMS, SERIAL)[1].objective
    np.testing.assert_allclose(after, expected, rtol=1e-12)
    assert objectives[-1] < after


def test_without_noise_it_is_multiplicative_kl_nmf():
    counts = np.random.default_rng(1).poisson(2.0, (8, 6))
    observations, model = ExactCounts(counts), small_model(counts.shape)
    plan = Plan(observations, model)
    state = em.init(plan, model, STREAMS, SERIAL)
    theta, phi = state.factors
    ratio = counts / (theta @ phi.T)
    new_theta = theta * (ratio @ phi) / phi.sum(axis=0)
    new_phi = phi * (ratio.T @ theta) / new_theta.sum(axis=0)
    new = em.step(state, plan, model, STREAMS, SERIAL)[0]
    np.testing.assert_allclose(new.factors[0], new_theta, rtol=1e-10)
    np.testing.assert_allclose(new.factors[1], new_phi, rtol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_at_a_fixed_penalty_the_penalised_likelihood_never_decreases(seed):
    observations, model = problem(seed)
    plan = Plan(observations, model)
    state, objectives = em.init(plan, model, STREAMS, SERIAL)._replace(penalty=0.3), []
    for _ in range(60):
        new, info = em.step(state, plan, model, STREAMS, SERIAL)
        objectives.append(info.objective - 0.3 * mu_of(state.factors).sum())
        state = new
    assert largest_fall(np.array(objectives)) < 1e-9


def test_a_step_with_a_penalty_adds_it_to_every_exposure():
    rng = np.random.default_rng(4)
    reports, alpha = rng.integers(-3, 8, (9, 7)), rng.choice([0.3, 0.6], 9)[:, None]
    theta, phi = rng.random((9, 2)), rng.random((7, 2))
    rate, penalised = theta @ phi.T, dense_exposures(reports, alpha) + 0.4
    ratio = np.where(reports > 0, count_moments(reports, rate, alpha)[0] / rate, 0.0)
    new_theta = theta * (ratio @ phi) / (penalised @ phi)
    new_phi = phi * (ratio.T @ theta) / (penalised.T @ new_theta)
    state, model = em.State((theta, phi), 0, 0.4), small_model((9, 7))
    new = em.step(state, Plan(PrivatizedCounts(reports, alpha), model), model, STREAMS, SERIAL)[0]
    np.testing.assert_allclose(new.factors[0], new_theta, rtol=1e-9)
    np.testing.assert_allclose(new.factors[1], new_phi, rtol=1e-9)


def test_the_rates_add_up_to_the_estimate_of_the_total_count():
    reports = planted(150, 120, 5, np.exp(-0.5), seed=6, tokens=12.0)[3]
    mask = np.random.default_rng(1).random(reports.shape) < 0.3
    observations = PrivatizedCounts(reports, np.exp(-0.5), mask)
    model = small_model(observations.shape, 6)
    algorithm = em.HeldTotal(observations, model)
    plan = Plan(observations, model)
    state = algorithm.init(plan, model, STREAMS, SERIAL)
    plain = em.step(state, plan, model, STREAMS, SERIAL)[0]
    for _ in range(80):
        state, _ = algorithm.step(state, plan, model, STREAMS, SERIAL)
    total = facts_of(observations).total_count
    assert mu_of(state.factors)[~mask].sum() == pytest.approx(total, rel=1e-3)
    assert mu_of(plain.factors)[~mask].sum() > 1.2 * total
    assert state.penalty > 0.0


def test_known_offsets_do_not_change_the_penalty():
    reports = planted(60, 40, 3, 0.6, seed=3, tokens=60.0)[3]
    start = np.random.default_rng(2).random((60, 3)), np.random.default_rng(3).random((40, 3))
    state, model = em.State(start, 0, 0.2), small_model((60, 40), 3)
    found = [
        em.step(state, Plan(PrivatizedCounts(reports, 0.6, **offset), model), model, STREAMS, SERIAL)[0]
        for offset in ({}, {"row_offset": np.linspace(0.1, 9.0, 60)})
    ]
    assert_same_bits(*found)


def test_without_noise_nothing_is_held():
    counts = np.random.default_rng(1).poisson(0.4, (30, 20))
    observations, model = ExactCounts(counts), small_model(counts.shape, 4)
    found = em.EM(max_iter=200).run(observations, model, fit_settings())
    plain, _ = climb(observations, model, len(found.objective), Streams.of_chain(3, 0))
    assert_same_bits(found.means, plain.factors)


def test_it_stops_before_it_overfits_strong_noise():
    mu, _, observations, _ = planted(150, 120, 5, np.exp(-0.5), seed=6, tokens=12.0)
    model = small_model(mu.shape, 12)
    found = em.EM(max_iter=400).run(observations, model, fit_settings())
    stopped, full = (
        np.abs(mu_of(factors) - mu).mean() for factors in (found.means, climb(observations, model, 400)[0].factors)
    )
    assert found.converged
    assert len(found.objective) < 100
    assert stopped < full


def test_under_strong_noise_the_size_of_its_rates_is_right():
    """Where the unconstrained fit has them add up to far too much."""
    mu, topics, observations, _ = planted(300, 150, 4, np.exp(-0.25), seed=3, tokens=200.0)
    model = small_model(mu.shape, 4)
    found = em.EM(max_iter=200).run(observations, model, fit_settings())
    plain = climb(observations, model, len(found.objective))[0]
    size = [mu_of(factors).sum() / mu.sum() for factors in (found.means, plain.factors)]
    error = [topic_error(topics, (phi / phi.sum(axis=0)).T) for _, phi in (found.means, plain.factors)]
    assert 0.9 < size[0] < 1.1 < 1.2 < size[1]
    assert error[0] < error[1]


@pytest.mark.filterwarnings("ignore:Not safe yet:countveil.inference.diagnostics.FitWarning")
@pytest.mark.parametrize("method", methods.METHODS)
def test_data_with_nothing_to_learn_from_are_fitted_all_the_same(method):
    options = {"draws": 5, "tune": 5, "chains": 1, "seed": 1}
    method = method_with(method, passes=2)
    one = cv.TopicModel(1, method=method, **options).fit(PrivatizedCounts([[3]], 0.5))
    assert np.isfinite(one.rate().to_numpy()).all()
    hidden = PrivatizedCounts([[3, 1], [2, 4]], 0.5, np.ones((2, 2), dtype=bool))
    assert np.isfinite(cv.TopicModel(2, method=method, **options).fit(hidden).rate().to_numpy()).all()
    nothing = cv.TopicModel(2, method=method, **options).fit(PrivatizedCounts(np.zeros((4, 3), dtype=int), 0.5))
    assert "nan" not in nothing.diagnostics().verdict


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        cv.BlockModel(2, method="em", seed=1),
        cv.BlockModel(2, directed=False, method="em", seed=1),
        cv.PoissonFactorization("ia,jb,ab->ij", {"a": 2, "b": 2}, method="em", seed=1),
        cv.PoissonFactorization("ia,jb,ac,bd,cd->ij", dict.fromkeys("abcd", 2), method="em", seed=1),
        cv.TopicModel(2, method="em", seed=1),
    ],
    ids=["directed network", "undirected network", "three factors", "five factors", "two factors"],
)
@pytest.mark.filterwarnings("ignore:The reports contradict")  # they are all zero
def test_rates_are_positive_where_no_report_is(model):
    fit = model.fit(PrivatizedCounts(np.zeros((5, 5), dtype=int), 0.5))
    assert (fit.rate().to_numpy() > 0.0).all()
    assert float(fit.rate().max()) < 1e-50


def test_held_out_cells_leave_the_training_data_and_keep_their_reports():
    observations = planted(40, 30, 3, 0.5, seed=1)[2]
    folds = em.hold_out(observations, np.random.default_rng(2))
    assert len(folds) == 5
    for training, rows, columns in folds:
        assert 30 < rows.size <= 60
        assert (observations.cells(rows, columns)[0] >= 0).all()
        assert (training.cells(rows, columns)[0] == -1).all()
        assert training.n_masked == rows.size
    cells = np.concatenate([fold.rows * 30 + fold.columns for fold in folds])
    assert np.unique(cells).size == cells.size


def test_large_data_have_fewer_held_out_cells(monkeypatch):
    monkeypatch.setattr(em, "MAX_HELD_OUT", 100)
    observations = planted(40, 30, 3, 0.5, seed=1)[2]
    assert [fold.rows.size > 45 for fold in em.hold_out(observations, np.random.default_rng(2))] == [True]
    monkeypatch.setattr(em, "MAX_HELD_OUT", 30)
    folds = em.hold_out(observations, np.random.default_rng(2))
    assert [25 < fold.rows.size <= 30 for fold in folds] == [True]


class Still:
    """An algorithm whose states are what the fold's number says, and never change but for their sweep."""

    made = 0

    def __init__(self, observations, model):
        self.number, Still.made = Still.made, Still.made + 1
        self.factors = draw_factors(model, np.random.default_rng(self.number))[0]
        self.training = observations

    def init(self, plan, model, streams, engine, start):
        assert plan.data is self.training
        return SimpleNamespace(factors=self.factors, parameters=(), sweep=0)

    def step(self, state, plan, model, streams, engine):
        assert plan.data is self.training
        return SimpleNamespace(factors=self.factors, parameters=(), sweep=state.sweep + 1), None


def test_the_objective_is_the_score_of_all_held_out_cells(monkeypatch):
    monkeypatch.setattr(Still, "made", 0)
    _, _, observations, reports = planted(40, 30, 2, 0.5, seed=1)
    model = small_model((40, 30))
    folds = Folds(observations, model, np.random.default_rng(2), Still)
    plan = Plan(observations, model)
    states = folds.init(plan, model, Streams.of_chain(1, 0), SERIAL)
    states, info = folds.step(states, plan, model, Streams.of_chain(1, 0), SERIAL)
    assert [state.sweep for state in states] == [1] * 5
    expected = 0.0
    for number, fold in enumerate(folds.folds):
        mu = mu_of(draw_factors(model, np.random.default_rng(number))[0])
        expected += truncated_logpmf(reports, mu, np.array(0.5))[fold.rows, fold.columns].sum()
    assert info.objective == pytest.approx(expected, rel=1e-10)


def test_it_stops_some_iterations_after_the_best(monkeypatch):
    monkeypatch.setattr(Still, "made", 0)
    observations, model = planted(40, 30, 2, 0.5, seed=1)[2], small_model((40, 30))
    folds = Folds(observations, model, np.random.default_rng(2), Still)
    scores = [-100.0, -90.0, -80.0, *[-80.0 * (1 - 0.5 * em.IMPROVEMENT)] * 20]
    stopped = next(n for n in range(1, 20) if folds.rule((SimpleNamespace(sweep=n),), scores[:n]))
    assert folds.best_iteration == 3
    assert stopped == 3 + em.PATIENCE
