"""Topics that stay as they are: of another fit or a table; amounts, names, files, covariates, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import countveil as cv
from countveil.models.priors import GammaPrior, LearnedShapePrior, RegressionPrior
from tests.joint import planted

QUICK = {"draws": 30, "tune": 30, "chains": 2, "seed": 1, "threads": 1, "progress": False}
SHORT = QUICK | {"draws": 3, "tune": 3}
MU, TOPICS, _, REPORTS = planted(60, 30, 3, np.exp(-1.0), seed=5, tokens=60.0)
WORDS, ROWS = [f"w{v}" for v in range(30)], [f"d{d}" for d in range(60)]
TABLE = pd.DataFrame(TOPICS, columns=WORDS, index=["war", "peace", "trade"])


def data(words=WORDS):
    return cv.PrivatizedCounts(pd.DataFrame(REPORTS, index=ROWS, columns=words), alpha=np.exp(-1.0))


def model(known=TABLE, n_topics=3, **changed):
    return cv.TopicModel(n_topics, known_topics=known, **QUICK | changed)


@pytest.fixture(scope="module")
def fit():
    return model().fit(data())


def priors_of(fit):
    return {factor.name: factor.prior for factor in fit.model_.factors}


def test_topics_stay_and_their_amounts_are_found(fit):
    phi = fit.posterior["posterior"]["phi"].to_numpy()
    np.testing.assert_allclose(phi, np.broadcast_to(TOPICS, phi.shape), rtol=1e-5, atol=1e-30)
    np.testing.assert_allclose(fit.components_, TOPICS, atol=1e-6)
    found = fit.topic_shares().pivot(index="document", columns="topic", values="share").loc[ROWS]
    amounts = MU @ np.linalg.pinv(TOPICS)
    known = amounts / amounts.sum(axis=1, keepdims=True)
    many = MU.sum(axis=1) > 20.0
    assert np.abs(found.to_numpy() - known)[many].mean() < 0.05
    assert fit.names_of() == {0: "war", 1: "peace", 2: "trade"}
    assert set(fit.topics(1)["support"]) == {1.0}


def test_draws_are_those_of_the_einsum_with_a_fixed_factor():
    given = SHORT | {"prior_shape": 0.3, "prior_rate": 0.05}
    found = model(**given).fit(data())
    einsum = cv.PoissonFactorization(
        "dk,vk->dv", {"k": 3}, names=["theta", "phi"], fixed={"phi": TOPICS.T}, likelihood="negative-binomial",
        **given,
    ).fit(data())  # fmt: skip
    theta = einsum.posterior["posterior"]["theta"].to_numpy()
    np.testing.assert_allclose(found.posterior["posterior"]["theta"].to_numpy(), theta, rtol=1e-5)


def test_amounts_are_expected_to_be_counts_of_words(fit):
    mean = REPORTS.sum() / 60 / 3  # of a document's words from one topic
    assert 0.7 < priors_of(fit)["theta"].mean / mean < 1.4
    known = priors_of(model(prior_shape=0.2, **SHORT).fit(data()))["theta"]
    assert isinstance(known, GammaPrior)
    assert 0.7 < 0.2 / known.rate / mean < 1.4
    stated = priors_of(model(prior_rate=0.5, **SHORT).fit(data()))["theta"]
    assert stated == LearnedShapePrior(None, 0.5)
    people = pd.DataFrame({"party": ["a", "b"] * 30}, index=ROWS)
    found = model(prevalence="~ party", **SHORT).fit(data(), covariates=people)
    prior = priors_of(found)["theta"]
    assert isinstance(prior, RegressionPrior)
    assert 0.7 < prior.mean / mean < 1.4
    assert found.effects()["name"].tolist() == ["war", "peace", "trade"]


def test_topics_of_another_fit_go_by_words_and_keep_their_names(fit):
    first = cv.TopicModel(3, **SHORT).fit(data()).relabel({1: "trade"})
    words = WORDS[::-1][:25]
    some = cv.PrivatizedCounts(
        pd.DataFrame(REPORTS[:, ::-1][:, :25], index=ROWS, columns=words), alpha=np.exp(-1.0)
    )
    second = model(first, **SHORT).fit(some)
    wanted = first.components_[:, ::-1][:, :25]
    np.testing.assert_allclose(
        second.components_, wanted / wanted.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-9
    )
    np.testing.assert_allclose(second.posterior["posterior"]["phi"].sum("word"), 1.0, rtol=1e-5)
    assert second.names_of() == {1: "trade"}
    assert clone(second).known_topics is first
    assert clone(second).fit(some).names_of() == {1: "trade"}
    assert second.transform(some).shape == (60, 3)


@pytest.mark.long
def test_a_fit_comes_back_from_its_file(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    found = cv.TopicModel.load(tmp_path / "fit.nc")
    pd.testing.assert_frame_equal(found.topics(3), fit.topics(3))
    found.save(tmp_path / "again.nc")
    again = cv.TopicModel.load(tmp_path / "again.nc")
    assert again.names_of() == fit.names_of()
    np.testing.assert_array_equal(again.transform(data()), fit.transform(data()))
    for known in (None, {"names": [""] * 3, "words": WORDS, "shares": TOPICS[::-1].tolist()}):
        broken = clone(fit)
        tree = broken.posterior_ = fit.posterior.copy(deep=True)
        facts = json.loads(tree.attrs["parameters"]) | {"known_topics": known}
        tree.attrs["parameters"] = json.dumps(facts)
        broken.save(tmp_path / "broken.nc")
        with pytest.raises(ValueError, match="must fix phi as its parameters do"):
            cv.TopicModel.load(tmp_path / "broken.nc")


@pytest.mark.parametrize("method", ["augmented-gibbs", "cavi", "bessel-cavi", "em"])
def test_other_methods_keep_them_too(method):
    found = model(method=method, likelihood="poisson", max_iter=5, **SHORT).fit(data())
    np.testing.assert_allclose(found.components_, TOPICS, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"known": [[1.0]]}, "known_topics must be None, a fitted TopicModel, or a DataFrame"),
        ({"known": cv.TopicModel(3)}, "known_topics must be None, a fitted TopicModel"),
        ({"n_topics": 4}, "n_topics must be 3, as many as known_topics has, got 4"),
        ({"n_topics": "auto"}, "n_topics must be 3, as many as known_topics has, got 'auto'"),
        ({"seeds": {"war": ["w1"]}}, "seeds must be None with known_topics"),
        ({"method": "svi", "likelihood": "poisson"}, "known_topics must be None for method 'svi'"),
        ({"dispersion": "column"}, "dispersion must be other than 'column' with known_topics"),
        ({"known": pd.DataFrame(TOPICS)}, "known_topics must have words as the names of its columns"),
        ({"known": TABLE.rename(columns={"w1": "w2"})}, "words that differ from each other, got 'w2' twice"),
        ({"known": TABLE.rename(index={"war": "peace"})}, "names that differ from each other, got 'peace' twice"),
        ({"known": TABLE.rename(index={"war": " war"})}, "names must be lines of"),
        ({"known": -TABLE}, "known_topics must hold finite numbers from 0 on"),
        ({"known": TABLE.astype(object).map(lambda _: "x")}, "known_topics must hold numbers, got 'x'"),
        ({"known": TABLE.drop(columns=["w1", "w3"])}, "every word of the data, got none with 'w1', 'w3'$"),
        ({"known": TABLE.mul([0.0, 1.0, 1.0], axis=0)}, "a word of the data, got none in topic 0"),
        ({"known": TABLE.iloc[:, :12]}, "'w21' and 8 more$"),
    ],
)  # fmt: skip
def test_what_goes_with_known_topics(given, said):
    with pytest.raises(ValueError, match=said):
        model(**SHORT | given).fit(data())


def test_data_need_words(fit):
    with pytest.raises(ValueError, match="known_topics need data whose columns have words as labels"):
        model(**SHORT).fit(cv.PrivatizedCounts(REPORTS, alpha=np.exp(-1.0)))
    nameless = cv.TopicModel(3, **SHORT).fit(cv.PrivatizedCounts(REPORTS, alpha=np.exp(-1.0)))
    with pytest.raises(ValueError, match="known_topics must be of a fit to data whose columns have words"):
        model(nameless).fit(data())
    own = clone(fit).fit(data())
    with pytest.raises(ValueError, match="known_topics must be another fit, got the model itself"):
        own.set_params(known_topics=own).fit(data())
