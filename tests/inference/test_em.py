import numpy as np
import pytest

import countveil as cv
from countveil.inference import em, gibbs, methods, run
from countveil.inference.run import Schedule
from countveil.inference.streams import Streams
from countveil.observations import ExactCounts, PrivatizedCounts
from tests.inference.test_cavi import largest_fall, problem
from tests.joint import SERIAL, planted, small_model

STREAMS = Streams.of_chain(1, 0)


def climb(observations, model, steps):
    state, objectives = em.init(observations, model, STREAMS), []
    for _ in range(steps):
        state, info = em.step(state, observations, model, STREAMS, SERIAL)
        objectives.append(info.objective)
    return state, np.array(objectives)


def settings(**changes):
    plain = methods.Settings(
        Schedule(1, 0, 1, 1), "least-squares", 200, 1e-5, None, "mode", 1, 64, 3, 1, False, None
    )
    return plain._replace(**changes)


@pytest.mark.parametrize("seed", range(10))
def test_the_likelihood_never_decreases(seed):
    assert largest_fall(climb(*problem(seed), 80)[1]) < 1e-9


def test_its_objective_is_the_log_likelihood():
    observations, model = problem(5)
    state, objectives = climb(observations, model, 3)
    ones = np.ones(model.n_components)
    expected = gibbs.log_likelihood(gibbs.State(state.theta, state.phi, ones, ones, 3), observations, SERIAL)
    after = em.step(state, observations, model, STREAMS, SERIAL)[1].objective
    np.testing.assert_allclose(after, expected, rtol=1e-12)
    assert objectives[-1] < after


def test_without_noise_it_is_multiplicative_kl_nmf():
    counts = np.random.default_rng(1).poisson(2.0, (8, 6))
    state = em.init(ExactCounts(counts), small_model(2), STREAMS)
    ratio = counts / (state.theta @ state.phi.T)
    theta = state.theta * (ratio @ state.phi) / state.phi.sum(axis=0)
    phi = state.phi * (ratio.T @ state.theta) / theta.sum(axis=0)
    new = em.step(state, ExactCounts(counts), small_model(2), STREAMS, SERIAL)[0]
    np.testing.assert_allclose(new.theta, theta, rtol=1e-10)
    np.testing.assert_allclose(new.phi, phi, rtol=1e-10)


def test_held_out_cells_leave_the_training_data_and_keep_their_reports():
    observations = planted(40, 30, 3, 0.5, seed=1)[2]
    training, (rows, columns) = methods.hold_out(observations, np.random.default_rng(2))
    assert rows.size > 30
    assert (observations.cells(rows, columns)[0] >= 0).all()
    assert (training.cells(rows, columns)[0] == -1).all()
    assert training.n_masked == rows.size


def test_it_stops_before_it_overfits_strong_noise():
    mu, _, observations, _ = planted(150, 120, 5, np.exp(-0.5), seed=6, tokens=12.0)
    model = small_model(12)
    found = methods.fit_em(observations, model, settings(max_iter=400))
    stopped, full = (
        np.abs(theta @ phi.T - mu).mean()
        for theta, phi in (found.means, climb(observations, model, 400)[0][:2])
    )
    assert len(found.objective) < 100
    assert stopped < full


def test_masked_values_change_nothing():
    reports = planted(30, 20, 3, 0.5, seed=4)[3]
    mask = np.random.default_rng(5).random(reports.shape) < 0.1
    one, other = (
        methods.fit_em(PrivatizedCounts(values, 0.5, mask), small_model(3), settings(max_iter=20)).means
        for values in (reports, np.where(mask, 999, reports))
    )
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


@pytest.mark.filterwarnings("ignore:Not to be trusted:countveil.inference.diagnostics.FitWarning")
@pytest.mark.parametrize("method", methods.METHODS)
def test_data_with_nothing_to_learn_from_are_fitted_all_the_same(method):
    options = {"draws": 5, "tune": 5, "chains": 1, "passes": 2, "seed": 1}
    one = cv.TopicModel(1, method=method, **options).fit(PrivatizedCounts([[3]], 0.5))
    assert np.isfinite(one.rate().to_numpy()).all()
    hidden = PrivatizedCounts([[3, 1], [2, 4]], 0.5, np.ones((2, 2), dtype=bool))
    assert np.isfinite(cv.TopicModel(2, method=method, **options).fit(hidden).rate().to_numpy()).all()
    nothing = cv.TopicModel(2, method=method, **options).fit(
        PrivatizedCounts(np.zeros((4, 3), dtype=int), 0.5)
    )
    assert "nan" not in nothing.diagnostics().verdict


def test_chains_can_begin_where_em_leaves_off(monkeypatch):
    observations = planted(40, 30, 3, 0.5, seed=1)[2]
    seen, step = [], gibbs.step

    def watched(state, *arguments):
        seen.append(state)
        return step(state, *arguments)

    monkeypatch.setattr(gibbs, "step", watched)
    options = {"draws": 1, "tune": 0, "chains": 1, "seed": 4, "threads": 1}
    fit = cv.TopicModel(3, start="em", **options).fit(observations)
    start = gibbs.init(observations, fit.model_, Streams.of_chain(4, 0))
    point = em.from_point(start.theta, start.phi, observations, fit.model_, SERIAL, run.EM_ITERATIONS)
    np.testing.assert_array_equal(seen[0].theta, point.theta)
    np.testing.assert_array_equal(seen[0].phi, point.phi)
