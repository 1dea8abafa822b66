"""Topics with seeds: found in place, named, saved, resumed, with covariates and new rows, and what is refused."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone

import countveil as cv
from countveil.fit.parts import n_anchored_alike
from countveil.inference.methods import METHODS
from countveil.models.priors import GammaPrior, LearnedShapePrior, RegressionPrior, SeededPrior
from tests.joint import planted

pytestmark = pytest.mark.long

QUICK = {"draws": 20, "tune": 40, "chains": 2, "seed": 1, "threads": 1, "progress": False}
SHORT = QUICK | {"draws": 3, "tune": 3}
_, TOPICS, _, REPORTS = planted(80, 40, 5, np.exp(-1.0), seed=3, tokens=80.0)
WORDS = [f"w{v}" for v in range(40)]
ROWS = [f"d{d}" for d in range(80)]


def own_words(topic, n=2):
    """Words that are nearly of this planted topic alone, the most frequent first."""
    alone = TOPICS[topic] * (TOPICS[topic] > 0.8 * TOPICS.sum(axis=0))
    return [WORDS[v] for v in np.argsort(-alone)[:n]]


SEEDS = {"war": own_words(3), "peace": own_words(0), "trade": own_words(4)}


def data(words=WORDS):
    return cv.PrivatizedCounts(pd.DataFrame(REPORTS, index=ROWS, columns=words), alpha=np.exp(-1.0))


def model(n_topics=5, **changed):
    return cv.TopicModel(n_topics, seeds=SEEDS, **QUICK | changed)


@pytest.fixture(scope="module")
def fit():
    return model().fit(data())


def prior_of(fit):
    return {factor.name: factor.prior for factor in fit.model_.factors}


def test_planted_topics_are_found_in_place_in_every_draw(fit):
    phi = fit.posterior["posterior"]["phi"].to_numpy()
    for k, topic in enumerate((3, 0, 4)):
        overlap = np.minimum(phi[:, :, k, None], TOPICS).sum(axis=-1)
        np.testing.assert_array_equal(overlap.argmax(axis=-1), topic)
    others = np.minimum(phi.mean(axis=(0, 1))[3:, None], TOPICS).sum(axis=-1)
    assert set(others.argmax(axis=1)) == {1, 2}
    sizes = fit.prevalences()["prevalence"].to_numpy()
    assert sizes[3] >= sizes[4]  # the others still go by size


def test_topics_have_the_names_and_the_order_of_their_seeds(fit):
    assert fit.names_of() == {0: "war", 1: "peace", 2: "trade"}
    table = fit.top_words(3)
    assert table.drop_duplicates("topic")["name"].tolist() == ["war", "peace", "trade", "", ""]
    for k, words in enumerate(SEEDS.values()):
        assert {fit.components_[:, WORDS.index(word)].argmax() for word in words} == {k}
    assert fit.seeds_ == SEEDS
    supported = fit.topics(1)
    assert supported[supported["topic"] < 3]["support"].tolist() == [1.0] * 3
    other = clone(fit).set_params(**SHORT).fit(data())
    assert other.relabel({0: "fight", 4: "rest"}).names_of() == {
        0: "fight",
        1: "peace",
        2: "trade",
        4: "rest",
    }


def test_other_topics_alone_are_without_seeds(fit):
    added = prior_of(fit)["phi"].added
    assert (added > 0.0).sum(axis=0).tolist() == [2, 2, 2, 0, 0]
    for k, words in enumerate(SEEDS.values()):
        assert {WORDS[v] for v in np.flatnonzero(added[:, k])} == set(words)
    assert isinstance(prior_of(fit)["phi"].usual, LearnedShapePrior)
    assert {"phi_shape", "phi_rate", "theta_shape"} <= set(fit.posterior["posterior"])
    known = model(prior_shape=0.2, **SHORT).fit(data())
    assert isinstance(prior_of(known)["phi"].usual, GammaPrior)
    assert "phi_shape" not in known.posterior["posterior"]


def test_a_fit_comes_back_from_its_file(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    found = cv.TopicModel.load(tmp_path / "fit.nc")
    assert found.seeds == SEEDS == found.seeds_
    np.testing.assert_array_equal(prior_of(found)["phi"].added, prior_of(fit)["phi"].added)
    assert list(found.seeds) == list(SEEDS)
    pd.testing.assert_frame_equal(found.topics(4), fit.topics(4))
    found.save(tmp_path / "again.nc")
    assert cv.TopicModel.load(tmp_path / "again.nc").names_of() == fit.names_of()
    shares = found.transform(data())
    np.testing.assert_array_equal(shares, fit.transform(data()))
    assert shares.shape == (80, 5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda facts: facts["seeds"].update(war=["nowhere"]), "seeds of 'war' must have a word"),
        (lambda facts: facts["seeds"].update(war=["w2"]), "seeds that its model was fitted with, got others"),
        (lambda facts: facts.update(seeds=None), "only then"),
        (lambda facts: facts.update(seeds={"war": "w1"}), "must be a list of words"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(fit, change, said, tmp_path):
    tree = fit.posterior.copy(deep=True)
    facts = json.loads(tree.attrs["parameters"])
    change(facts)
    tree.attrs["parameters"] = json.dumps(facts)
    broken = clone(fit)
    broken.posterior_ = tree
    broken.save(tmp_path / "fit.nc")
    with pytest.raises(ValueError, match=said):
        cv.TopicModel.load(tmp_path / "fit.nc")


def test_chains_go_on_from_a_checkpoint_with_the_same_seeds_alone(tmp_path):
    path = tmp_path / "chains.npz"
    model(**SHORT).fit(data(), checkpoint=path)
    again, plain = model(**SHORT).fit(data(), checkpoint=path, resume=True), model(**SHORT).fit(data())
    xr.testing.assert_identical(again.posterior["posterior"].dataset, plain.posterior["posterior"].dataset)
    other = model(**SHORT).set_params(seeds={**SEEDS, "trade": own_words(1)})
    with pytest.raises(ValueError, match="other"):
        other.fit(data(), checkpoint=path, resume=True)


def test_seeds_go_with_covariates_bursts_methods_and_starts(fit):
    frame = pd.DataFrame({"party": ["a", "b"] * 40}, index=ROWS)
    found = model(prevalence="~ party", **SHORT).fit(data(), covariates=frame)
    assert {type(prior) for prior in prior_of(found).values()} == {RegressionPrior, SeededPrior}
    assert found.effects()["name"].tolist()[:3] == ["war", "peace", "trade"]
    for changed in (
        {"method": "augmented-gibbs"},
        {"likelihood": "poisson"},
        {"moves": 0},
        {"start": fit},
        {"start": "em"},
    ):
        assert model(**SHORT | changed).fit(data()).names_of() == fit.names_of()


def test_as_many_topics_are_chosen_as_have_seeds_or_more():
    small = pd.DataFrame(REPORTS[:30, :20], columns=WORDS[:20])
    seeds = {f"topic of {word}": [word] for word in WORDS[:7]}
    chosen = cv.TopicModel("auto", seeds=seeds, **SHORT).fit(cv.PrivatizedCounts(small, alpha=np.exp(-1.0)))
    assert set(chosen.selection_.table["n_topics"]) == {7, 10}
    assert list(chosen.names_of().values()) == list(seeds)


def test_a_start_at_topics_in_any_order_is_brought_to_the_seeds():
    phi = np.maximum(TOPICS[::-1], 1e-4)
    found = model(start={"phi": phi}, **SHORT).fit(data())
    means = found.components_
    overlap = np.minimum(means[:3, None], TOPICS).sum(axis=-1)
    assert overlap.argmax(axis=1).tolist() == [3, 0, 4]


def test_a_word_may_be_of_two_topics():
    seeds = {"war": ["w1", "w2"], "peace": ["w2"]}
    found = cv.TopicModel(3, seeds=seeds, **SHORT).fit(data())
    assert prior_of(found)["phi"].added[2].astype(bool).tolist() == [True, True, False]


def test_words_that_the_data_do_not_have_are_named():
    seeds = {"war": ["w1", "gun"], "peace": ["w2", "dove"]}
    with pytest.warns(UserWarning, match="left out: 'gun', 'dove'$"):
        found = cv.TopicModel(3, seeds=seeds, **SHORT).fit(data())
    assert found.seeds_ == {"war": ["w1"], "peace": ["w2"]}
    assert found.seeds == seeds
    with pytest.raises(ValueError, match="seeds of 'far' must have a word that the data have, got 'x', 'y'"):
        cv.TopicModel(3, seeds=SEEDS | {"far": ["x", "y"]}, **SHORT).set_params(n_topics=5).fit(data())
    many = {"war": ["w1", *(f"x{i}" for i in range(13))]}
    with pytest.warns(UserWarning, match="'x9' and 3 more$"):
        cv.TopicModel(3, seeds=many, **SHORT).fit(data())


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.seeds])
def test_other_methods_refuse_seeds(method):
    wrong = f"seeds goes with method 'gibbs' or method 'augmented-gibbs', .* got method '{method}'"
    with pytest.raises(ValueError, match=wrong):
        model(method=method, likelihood="poisson").fit(data())


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        ({}, "seeds must be None or a mapping"), (["tax"], "seeds must be None or a mapping"),
        ({"war": "gun"}, "seeds of 'war' must be a list of words"), ({"war": []}, "seeds of 'war' must be a list"),
        ({"war": [3]}, "seeds of 'war' must be a list"), ({3: ["gun"]}, "names must be lines of"),
        ({" war": ["gun"]}, "names must be lines of"), ({"war": ["w1", "w1"]}, "every word once, got 'w1' twice"),
    ],
)  # fmt: skip
def test_what_seeds_may_be(seeds, said):
    with pytest.raises(ValueError, match=said):
        cv.TopicModel(3, seeds=seeds, **SHORT).fit(data())


def test_what_goes_with_seeds():
    with pytest.raises(
        ValueError, match="n_topics must be at least 3, the number of topics with seeds, got 2"
    ):
        model(2).fit(data())
    with pytest.raises(ValueError, match="seeds need data whose columns have words as labels"):
        model().fit(cv.PrivatizedCounts(REPORTS, alpha=0.3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model(3, **SHORT).fit(data())  # as many topics as seeds


def test_seeds_go_with_exact_totals():
    counts = np.random.default_rng(4).poisson(3.0, (12, 8))
    hidden = pd.DataFrame(np.where((counts > 0) & (counts < 5), np.nan, counts), columns=WORDS[:8])
    table = cv.Reports(
        hidden, cv.mechanisms.Suppression(5, shows_zero=True), totals=[(0, counts.sum(axis=0))]
    )
    found = cv.TopicModel(3, seeds={"war": ["w1"], "peace": ["w2"]}, **SHORT).fit(table)
    assert found.names_of() == {0: "war", 1: "peace"}
    for drawn in found.predict_counts(2, np.random.default_rng(1)):
        assert drawn.shape == counts.shape


def test_fits_are_stacked_by_the_numbers_of_seeds_that_they_share(fit):
    other = model(**SHORT, n_topics=4).fit(data())
    turned = cv.TopicModel(5, seeds=dict(reversed(SEEDS.items())), **SHORT).fit(data())
    bare = cv.TopicModel(5, **SHORT).fit(data())
    groups = ["k", "k"]
    assert n_anchored_alike([fit, other], groups) == 3
    for each in (turned, bare):
        assert n_anchored_alike([fit, each], groups) == 0
        assert n_anchored_alike([each, fit], groups) == 0
    assert n_anchored_alike([bare, bare], groups) == 0
    found = cv.stack([fit, other], data()).topics(1)
    assert found[found["topic"] < 3]["support"].min() == pytest.approx(1.0)
