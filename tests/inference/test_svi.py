import numpy as np
import pytest

import countveil as cv
from countveil.evaluation.alignment import topic_error
from countveil.inference import cavi, methods, svi
from countveil.inference.streams import Streams
from countveil.models.matrix import matrix_model
from tests.inference.test_em import settings
from tests.joint import SERIAL, planted, small_model


def error_of(found, topics):
    phi = found.means[1]
    return topic_error(topics, (phi / phi.sum(axis=0)).T)


def test_one_batch_of_all_rows_at_weight_one_is_a_cavi_update_of_phi():
    observations, model = planted(60, 30, 3, 0.5, seed=1)[2], small_model(3)
    state = svi.init(observations, model, Streams.of_chain(1, 0), 60)._replace(updates=0)
    new, found = svi.step(state, observations, model, 60, SERIAL, "geometric")
    np.testing.assert_allclose(new.phi_shape, model.column_prior.shape + found.phi_count, rtol=1e-12)
    phi_b = state.phi_hyper[0] / state.phi_hyper[1]
    np.testing.assert_allclose(new.phi_rate, phi_b + found.phi_exposure, rtol=1e-12)


def test_a_step_is_a_weighted_mean_of_natural_parameters():
    observations, model = planted(60, 30, 3, 0.5, seed=1)[2], small_model(3)
    state = svi.init(observations, model, Streams.of_chain(1, 0), 60)._replace(updates=7)
    batch = observations.take(np.arange(20))
    new, found = svi.step(state, batch, model, 60, SERIAL)
    weight = (svi.DELAY + 7) ** -svi.FORGETTING
    target = model.column_prior.shape + 3.0 * found.phi_count
    np.testing.assert_allclose(new.phi_shape, (1 - weight) * state.phi_shape + weight * target, rtol=1e-12)


def test_a_batch_speaks_for_all_rows_in_every_global_parameter():
    observations, model = planted(60, 30, 3, 0.5, seed=1)[2], small_model(3, learned=True)
    state = svi.init(observations, model, Streams.of_chain(1, 0), 60)._replace(updates=4)
    new, found = svi.step(state, observations.take(np.arange(20)), model, 60, SERIAL)
    weight = (svi.DELAY + 4) ** -svi.FORGETTING
    phi_b = state.phi_hyper[0] / state.phi_hyper[1]
    rate = (1 - weight) * state.phi_rate + weight * (phi_b + 3.0 * found.phi_exposure)
    np.testing.assert_allclose(new.phi_rate, rate, rtol=1e-12)
    total = 1.0 / model.row_prior.rate + 3.0 * found.theta_total
    hyper = (1 - weight) * state.theta_hyper[1] + weight * total
    np.testing.assert_allclose(new.theta_hyper[1], hyper, rtol=1e-12)
    np.testing.assert_allclose(new.theta_hyper[0], 1.0 + model.row_prior.shape * 60, rtol=1e-12)


@pytest.mark.parametrize("expectation", cavi.EXPECTATIONS)
def test_it_finds_planted_topics(expectation):
    mu, topics, observations, _ = planted(800, 60, 4, np.exp(-0.5), seed=2)
    model = matrix_model(4, 0.1, None, float(mu.mean()))
    found = methods.fit_svi(observations, model, settings(passes=3, expectation=expectation))
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
    fit = cv.TopicModel(4, method="svi", passes=3, batch_rows=50, draws=5, seed=1).fit(files)
    assert topic_error(topics, fit.components_) < 0.12
    draws = fit.posterior["posterior"]
    assert list(draws["doc"].to_numpy()[[0, 399]]) == ["text0", "text399"]
    assert list(fit.feature_names_in_) == words
    with pytest.raises(ValueError, match="goes with method 'svi', got method 'gibbs'"):
        cv.TopicModel(4).fit(files)


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
