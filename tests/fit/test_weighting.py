"""Chains of a fit with weights, and everything that is said of all draws together."""

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp

import countveil as cv
from countveil.evaluation import predictive_log_score
from countveil.fit import weighting
from countveil.inference.matching import keep_weights, members_of
from tests.joint import planted

QUICK = {"chains": 3, "draws": 24, "tune": 10, "seed": 1, "threads": 1, "progress": False}
REPORTS = planted(30, 20, 3, 0.5, seed=1)[3]
DATA = cv.PrivatizedCounts(REPORTS, 0.5)


STACKED = cv.Gibbs(weights="stacked")


def fitted(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cv.TopicModel(3, likelihood="poisson", **QUICK | options).fit(DATA)


@pytest.fixture(scope="module")
def stacked():
    """A fit whose third chain knows nothing of the data."""
    fit = fitted(method=STACKED)
    draws = fit.posterior["posterior"]
    draws["theta"][2] = draws["theta"].to_numpy()[2].mean(axis=1, keepdims=True)
    draws["phi"][2] = 1 / 20
    weighting.weigh(fit, fit._reader.data_matrix(fit._observed(DATA)), fit.seed_)
    return fit


def test_a_chain_that_predicts_badly_has_no_weight(stacked):
    assert stacked.weights_.sum() == pytest.approx(1.0)
    assert stacked.weights_[2] < 0.05
    assert (stacked.weights_[:2] > 0.0).all()


def test_whatever_is_said_of_all_draws_is_of_the_mixture(stacked):
    draws, numbers = stacked.posterior["posterior"], members_of(stacked.posterior)
    theta, phi = (draws[name].to_numpy().reshape(72, *draws[name].shape[2:])[numbers] for name in ("theta", "phi"))
    rates = np.einsum("sdk,skv->sdv", theta.astype(float), phi.astype(float))
    np.testing.assert_allclose(stacked.rate(), rates.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(stacked.components_.sum(axis=1), 1.0)
    np.testing.assert_allclose(stacked.count_intervals()["mean"], rates.mean(axis=0), rtol=1e-4)
    one = stacked.predict_counts(400, np.random.default_rng(1)).mean("table")
    assert abs(one.sum() / rates.mean(axis=0).sum() - 1.0) < 0.05
    counts = np.maximum(REPORTS, 0)
    mass = np.log(rates) * counts - rates - np.vectorize(lambda y: np.log(np.arange(1, y + 1)).sum())(counts)
    score = (logsumexp(mass, axis=0) - np.log(72)).sum() / counts.sum()
    assert predictive_log_score(counts, stacked) == pytest.approx(score, rel=1e-6)


def test_components_are_of_the_mixture_of_the_chains_that_have_them(stacked):
    stacked._adopt(stacked.posterior)
    draws, numbers = stacked.posterior["posterior"], members_of(stacked.posterior)
    sizes = draws["theta"].sum("doc").to_numpy()
    sizes = sizes / sizes.sum(axis=2, keepdims=True)
    table, shares = stacked.top_words(3), stacked.parts.prevalences()
    for k, found in stacked._reader.numbered("k"):
        own = dict(zip(found.chains.tolist(), found.components.tolist(), strict=True))
        places = [(s // 24, s % 24, own[s // 24]) for s in numbers if s // 24 in own]
        words = np.array([draws["phi"].to_numpy()[place] for place in places])
        best = table[table["topic"] == k].iloc[0]
        values = words[:, int(best["word"])]
        np.testing.assert_allclose(best["probability"], values.mean(), rtol=1e-5)
        ends = [best["lower"], best["upper"]]
        np.testing.assert_allclose(ends, np.quantile(values, [0.05, 0.95]), rtol=1e-5)
        np.testing.assert_allclose(stacked._reader.member_means("word")[k], words.mean(axis=0), rtol=1e-5)
        size = np.mean([sizes[place] for place in places])
        np.testing.assert_allclose(shares["prevalence"][k], size, rtol=1e-5)


def test_scores_of_reports_are_weighted_and_those_of_chains_are_not(stacked):
    every = stacked.log_likelihood(DATA)
    assert every.sizes["chain"] == 3
    by_chain = logsumexp(every, axis=1) - np.log(24)
    found = logsumexp(by_chain, axis=0, b=stacked.weights_[:, None])
    np.testing.assert_allclose(stacked.log_predictive(DATA), found, rtol=1e-9)
    assert np.ptp(every.to_numpy()[2], axis=0).max() < np.ptp(every.to_numpy()[0], axis=0).max()


def test_support_is_the_weight_of_the_chains(stacked):
    table = stacked.topics(2)
    assert set(table.groupby("topic")["support"].first().round(9)) <= {
        round(sum(stacked.weights_[list(some)]), 9) for some in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    }
    alone = fitted()
    keep_weights(alone.posterior, np.array([0.0, 1.0, 0.0]))
    own = alone.topics(3)
    assert (own["support"] == 1.0).all()
    phi = alone.posterior["posterior"]["phi"].to_numpy()[1]
    np.testing.assert_allclose(
        sorted(own.groupby("topic")["probability"].first()), sorted(phi.mean(axis=0).max(axis=1)), rtol=1e-5
    )


def test_weights_are_saved_and_come_from_the_seed(stacked, tmp_path):
    stacked.save(tmp_path / "fit.nc")
    again = cv.TopicModel.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(again.weights_, stacked.weights_)
    assert again.rate().equals(stacked.rate())
    one, other = fitted(method=STACKED), fitted(method=STACKED, threads=2)
    np.testing.assert_array_equal(one.weights_, other.weights_)
    plain = fitted()
    assert plain.weights_.tolist() == [1 / 3] * 3
    np.testing.assert_array_equal(plain.posterior["posterior"]["theta"], one.posterior["posterior"]["theta"])
    assert fitted(method=STACKED, chains=1).weights_.tolist() == [1.0]
    with pytest.raises(ValueError, match="weights must be one of"):
        fitted(method=cv.Gibbs(weights="best"))


def test_every_model_has_weights_and_mirrored_pairs_count_once():
    counts = np.random.default_rng(3).poisson(3.0, (8, 8))
    network = cv.PrivatizedCounts(np.triu(counts, 1) + np.triu(counts, 1).T, 0.4)
    quick = QUICK | {"method": STACKED, "draws": 6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fits = [cv.BlockModel(2, **quick).fit(network)]
        fits.append(cv.TensorModel(2, **quick).fit(cv.PrivatizedCounts(counts.reshape(4, 2, 8), 0.4)))
        fits.append(
            cv.TopicModel(2, **quick | {"method": cv.AugmentedGibbs(weights="stacked")}).fit(
                cv.PrivatizedCounts(counts, 0.4)
            )
        )
    for fit in fits:
        assert fit.weights_.shape == (3,)
        assert fit.weights_.sum() == pytest.approx(1.0)
        assert not np.allclose(fit.weights_, 1 / 3)


def test_methods_without_chains_have_no_weights():
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        cv.EM(weights="stacked")


def test_an_interrupt_while_cells_are_scored_leaves_equal_weights_and_the_fit(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(weighting, "scores_left_out", interrupted)
    with pytest.warns(UserWarning, match="chains have equal weights: scoring them was interrupted"):
        fit = cv.TopicModel(3, method=STACKED, **QUICK).fit(DATA)
    assert fit.weights_.tolist() == [1 / 3] * 3
    assert fit.posterior["posterior"].sizes["draw"] == 24
