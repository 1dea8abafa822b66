import numpy as np
import pytest
from scipy import optimize, special

import countveil as cv
from countveil.evaluation.topics import topic_error
from countveil.inference import svi
from countveil.inference.streams import Streams
from tests.joint import SERIAL, fit_settings, matrix_model, planted, small_model

PRIOR_SHAPE = 1.5


def error_of(found, topics):
    phi = found.means[1]
    return topic_error(topics, (phi / phi.sum(axis=0)).T)


def scene(updates, learned=False):
    """(observations, model, a state that has learned from so many batches)."""
    observations = planted(60, 30, 3, 0.5, seed=1)[2]
    model = small_model(observations.shape, 3, learned=learned)
    state = svi.init(observations, model, Streams.of_chain(1, 0), SERIAL, 60)
    return observations, model, state._replace(updates=updates)


def counts_of(state, found, expectation="trimmed"):
    """Expected counts of phi's entries in a batch, as a pass over it left them."""
    shape, rate = state.shapes[1], state.rates[1]
    of = {"geometric": np.exp(special.digamma(shape)), "arithmetic": shape, "trimmed": shape - 0.5 * PRIOR_SHAPE}
    return of[expectation] / rate * found.ratio


def test_one_batch_of_all_rows_at_weight_one_is_a_cavi_update_of_phi():
    observations, model, state = scene(0)
    new, found = svi.step(state, observations, model, 60, SERIAL, "geometric")
    shape = model.factors[1].prior.shape + counts_of(state, found, "geometric")
    np.testing.assert_allclose(new.shapes[1], shape, rtol=1e-12)
    phi_b = state.hypers[1][0] / state.hypers[1][1]
    np.testing.assert_allclose(new.rates[1], phi_b + found.exposure, rtol=1e-12)


@pytest.mark.parametrize("expectation", svi.EXPECTATIONS)
def test_a_step_is_a_weighted_mean_of_natural_parameters(expectation):
    observations, model, state = scene(7)
    new, found = svi.step(state, observations.take(np.arange(20)), model, 60, SERIAL, expectation)
    weight = (svi.DELAY + 7) ** -svi.FORGETTING
    target = model.factors[1].prior.shape + 3.0 * counts_of(state, found, expectation)
    np.testing.assert_allclose(new.shapes[1], (1 - weight) * state.shapes[1] + weight * target, rtol=1e-12)


def test_a_batch_speaks_for_all_rows_in_every_global_parameter():
    observations, model, state = scene(4, learned=True)
    new, found = svi.step(state, observations.take(np.arange(20)), model, 60, SERIAL)
    weight = (svi.DELAY + 4) ** -svi.FORGETTING
    phi_b = state.hypers[1][0] / state.hypers[1][1]
    rate = (1 - weight) * state.rates[1] + weight * (phi_b + 3.0 * found.exposure)
    np.testing.assert_allclose(new.rates[1], rate, rtol=1e-12)
    prior = model.factors[0].prior
    theta_total = (found.theta_shape / found.theta_rate).sum(axis=0)
    hyper = (1 - weight) * state.hypers[0][1] + weight * (1.0 / prior.rate + 3.0 * theta_total)
    np.testing.assert_allclose(new.hypers[0][1], hyper, rtol=1e-12)
    np.testing.assert_allclose(new.hypers[0][0], 1.0 + prior.shape * 60, rtol=1e-12)


@pytest.mark.parametrize("expectation", svi.EXPECTATIONS)
def test_it_finds_planted_topics(expectation):
    mu, topics, observations, _ = planted(800, 60, 4, np.exp(-0.5), seed=2)
    model = matrix_model(mu.shape, 4, 0.1, None, float(mu.mean()))
    found = svi.SVI(passes=3, batch_rows=64, expectation=expectation).run(observations, model, fit_settings())
    assert error_of(found, topics) < 0.1


def test_releases_on_disk_give_the_same_quality_as_in_memory(tmp_path):
    mu, topics, _, _ = planted(400, 60, 4, 0.5, seed=2)
    rng, level = np.random.default_rng(3), cv.PrivacyLevel(1, 1)
    counts, paths = rng.poisson(mu), []
    words = [f"word{v}" for v in range(60)]
    for i in range(4):
        release = cv.simulate_release(
            counts[100 * i : 100 * (i + 1)], level, rng, truncate=True, column_labels=words,
            row_labels=[f"text{100 * i + d}" for d in range(100)],
        )  # fmt: skip
        paths.append(tmp_path / f"part{i}.npz")
        release.save(paths[-1])
    files = cv.ReleaseFiles(paths)
    assert files.shape == (400, 60)
    fit = cv.TopicModel(4, method=cv.SVI(passes=3, batch_rows=50), draws=5, seed=1).fit(files)
    assert topic_error(topics, fit.components_) < 0.12
    draws = fit.posterior["posterior"]
    assert list(draws["doc"].to_numpy()[[0, 399]]) == ["text0", "text399"]
    assert list(fit.feature_names_in_) == words


def test_release_files_are_checked(tmp_path):
    with pytest.raises(ValueError, match="paths must name at least one release, got none"):
        cv.ReleaseFiles([])
    with pytest.raises(FileNotFoundError):
        cv.ReleaseFiles([tmp_path / "none.npz"])
    rng, level = np.random.default_rng(3), cv.PrivacyLevel(1, 1)
    for name, words in (("a", ["x", "y"]), ("b", ["x", "z"])):
        cv.simulate_release([[1, 2]], level, rng, column_labels=words).save(tmp_path / f"{name}.npz")
    with pytest.raises(ValueError, match="paths must hold the same words"):
        cv.ReleaseFiles([tmp_path / "a.npz", tmp_path / "b.npz"])


@pytest.mark.parametrize("learned", [False, True])
def test_grown_parameters_are_what_more_rows_that_say_the_same_leave(learned):
    observations, model, state = scene(5, learned=learned)
    grown = svi.grow(state, model, observations, 60, 180)
    shape, b = model.factors[1].prior.shape, state.hypers[1][0] / state.hypers[1][1]
    np.testing.assert_allclose(grown.shapes[1], shape + 3.0 * (state.shapes[1] - shape), rtol=1e-12)
    np.testing.assert_allclose(grown.rates[1], b + 3.0 * (state.rates[1] - b), rtol=1e-12)
    assert grown.updates == 5
    np.testing.assert_array_equal(grown.hypers[1], state.hypers[1])
    if not learned:
        np.testing.assert_array_equal(grown.hypers[0], state.hypers[0])
        return
    prior = model.factors[0].prior
    np.testing.assert_allclose(grown.hypers[0][0], 1.0 + 180 * prior.shape, rtol=1e-12)
    start = np.minimum(1.0 / prior.rate, state.hypers[0][1])
    np.testing.assert_allclose(grown.hypers[0][1], start + 3.0 * (state.hypers[0][1] - start), rtol=1e-12)


def test_rows_start_at_nonnegative_least_squares_above_a_floor():
    rng = np.random.default_rng(3)
    phi = rng.gamma(1.0, 1.0, (12, 3))
    counts = rng.poisson(rng.gamma(0.5, 4.0, (8, 3)) @ phi.T)
    found = svi.project(cv.ExactCounts(counts), phi, SERIAL)
    even = np.maximum(counts.sum(axis=1), 1.0)[:, None] / (3 * phi.sum(axis=0))
    exact = np.array([optimize.nnls(phi, row)[0] for row in counts.astype(float)])
    assert (exact < 0.01 * even).any()
    error = np.abs(found - np.maximum(exact, 0.01 * even)).max(axis=1) / np.maximum(exact.max(axis=1), 1e-9)
    assert np.median(error) < 0.05
    assert found.min() > 0.0
    np.testing.assert_allclose(found[exact == 0.0].min(), (0.01 * even)[exact == 0.0].min(), rtol=1e-9)
