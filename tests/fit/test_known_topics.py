"""Topics that stay as they are: of another fit or a table; amounts, names, files, covariates, and what is refused."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone

import countveil as cv
from countveil.fit.known_topics import WEIGHT
from countveil.fit.parts import n_anchored_alike
from countveil.inference.methods import METHODS
from countveil.models.priors import GammaPrior, LearnedShapePrior, RegressionPrior, SeededPrior
from tests.joint import method_with, planted, short_choices

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
    found = fit.documents.shares().pivot(index="document", columns="topic", values="share").loc[ROWS]
    amounts = MU @ np.linalg.pinv(TOPICS)
    known = amounts / amounts.sum(axis=1, keepdims=True)
    many = MU.sum(axis=1) > 20.0
    assert np.abs(found.to_numpy() - known)[many].mean() < 0.05
    assert fit._reader.names_of() == {0: "war", 1: "peace", 2: "trade"}
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
    assert found.effects.table()["name"].tolist() == ["war", "peace", "trade"]


def test_topics_of_another_fit_go_by_words_and_keep_their_names(fit):
    first = cv.TopicModel(3, **SHORT).fit(data()).parts.relabel({1: "trade"})
    words = WORDS[::-1][:25]
    some = cv.PrivatizedCounts(pd.DataFrame(REPORTS[:, ::-1][:, :25], index=ROWS, columns=words), alpha=np.exp(-1.0))
    second = model(first, **SHORT).fit(some)
    wanted = first.components_[:, ::-1][:, :25]
    np.testing.assert_allclose(second.components_, wanted / wanted.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(second.posterior["posterior"]["phi"].sum("word"), 1.0, rtol=1e-5)
    assert second._reader.names_of() == {1: "trade"}
    assert clone(second).known_topics is first
    assert clone(second).fit(some)._reader.names_of() == {1: "trade"}
    assert second.transform(some).shape == (60, 3)


@pytest.mark.long
def test_a_fit_comes_back_from_its_file(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    found = cv.TopicModel.load(tmp_path / "fit.nc")
    pd.testing.assert_frame_equal(found.topics(3), fit.topics(3))
    found.save(tmp_path / "again.nc")
    again = cv.TopicModel.load(tmp_path / "again.nc")
    assert again._reader.names_of() == fit._reader.names_of()
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
    found = model(method=method_with(method, max_iter=5), likelihood="poisson", **SHORT).fit(data())
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
        ({"dispersion": "column"}, "dispersion must be 'global', 'row' or a number with known_topics"),
        ({"known": pd.DataFrame(TOPICS)}, "known_topics must have words as the names of its columns"),
        ({"known": TABLE.rename(columns={"w1": "w2"})}, "words that differ from each other, got 'w2' twice"),
        ({"known": TABLE.rename(index={"war": "peace"})}, "names that differ from each other, got 'peace' twice"),
        ({"known": TABLE.rename(index={"war": " war"})}, "names must be lines of"),
        ({"known": -TABLE}, "known_topics must hold finite numbers, 0 or more, got -"),
        ({"known": TABLE.astype(object).map(lambda _: "x")}, "known_topics must hold numbers, got 'x'"),
        ({"known": TABLE.drop(columns=["w1", "w3"])}, "to a topic, got no topic with 'w1', 'w3': leave"),
        ({"known": TABLE.mul([0.0, 1.0, 1.0], axis=0)}, "got no such word in topic 0: leave it out"),
        ({"known": TABLE.iloc[:, :12]}, "'w21' and 8 more: leave"),
    ],
)  # fmt: skip
def test_what_goes_with_known_topics(given, said):
    with pytest.raises(ValueError, match=said):
        model(**SHORT | given).fit(data())


def test_data_need_words(fit):
    with pytest.raises(ValueError, match="known_topics need data with words as column labels"):
        model(**SHORT).fit(cv.PrivatizedCounts(REPORTS, alpha=np.exp(-1.0)))
    nameless = cv.TopicModel(3, **SHORT).fit(cv.PrivatizedCounts(REPORTS, alpha=np.exp(-1.0)))
    with pytest.raises(ValueError, match="known_topics must come from a fit to data whose columns have words"):
        model(nameless).fit(data())
    own = clone(fit).fit(data())
    with pytest.raises(ValueError, match="known_topics must be another fit, got the model itself"):
        own.set_params(known_topics=own).fit(data())


SEEDED_SWEEPS = {"draws": 20, "tune": 40, "chains": 2, "seed": 1, "threads": 1, "progress": False}
SEEDED_SHORT = SEEDED_SWEEPS | {"draws": 3, "tune": 3}
_shares, SEEDED_TOPICS, _shares, SEEDED_REPORTS = planted(80, 40, 5, np.exp(-1.0), seed=3, tokens=80.0)
SEEDED_WORDS = [f"w{v}" for v in range(40)]
SEEDED_ROWS = [f"d{d}" for d in range(80)]


def own_words(topic, n=2):
    """Words that are nearly of this planted topic alone, the most frequent first."""
    alone = SEEDED_TOPICS[topic] * (SEEDED_TOPICS[topic] > 0.8 * SEEDED_TOPICS.sum(axis=0))
    return [SEEDED_WORDS[v] for v in np.argsort(-alone)[:n]]


SEEDS = {"war": own_words(3), "peace": own_words(0), "trade": own_words(4)}


def seeded_data(words=SEEDED_WORDS):
    return cv.PrivatizedCounts(pd.DataFrame(SEEDED_REPORTS, index=SEEDED_ROWS, columns=words), alpha=np.exp(-1.0))


def seeded_model(n_topics=5, **changed):
    return cv.TopicModel(n_topics, seeds=SEEDS, **SEEDED_SWEEPS | changed)


@pytest.fixture(scope="module")
def seeded():
    return seeded_model().fit(seeded_data())


def prior_of(seeded):
    return {factor.name: factor.prior for factor in seeded.model_.factors}


@pytest.mark.long
def test_planted_topics_are_found_in_place_in_every_draw(seeded):
    phi = seeded.posterior["posterior"]["phi"].to_numpy()
    for k, topic in enumerate((3, 0, 4)):
        overlap = np.minimum(phi[:, :, k, None], SEEDED_TOPICS).sum(axis=-1)
        np.testing.assert_array_equal(overlap.argmax(axis=-1), topic)
    others = np.minimum(phi.mean(axis=(0, 1))[3:, None], SEEDED_TOPICS).sum(axis=-1)
    assert set(others.argmax(axis=1)) == {1, 2}
    sizes = seeded.parts.prevalences()["prevalence"].to_numpy()
    assert sizes[3] >= sizes[4]  # the others still go by size


@pytest.mark.long
def test_topics_have_the_names_and_the_order_of_their_seeds(seeded):
    assert seeded._reader.names_of() == {0: "war", 1: "peace", 2: "trade"}
    table = seeded.top_words(3)
    assert table.drop_duplicates("topic")["name"].tolist() == ["war", "peace", "trade", "", ""]
    for k, words in enumerate(SEEDS.values()):
        assert {seeded.components_[:, SEEDED_WORDS.index(word)].argmax() for word in words} == {k}
    assert seeded.seeds_ == SEEDS
    supported = seeded.topics(1)
    assert supported[supported["topic"] < 3]["support"].tolist() == [1.0] * 3
    other = clone(seeded).set_params(**SEEDED_SHORT).fit(seeded_data())
    assert other.parts.relabel({0: "fight", 4: "rest"})._reader.names_of() == {
        0: "fight",
        1: "peace",
        2: "trade",
        4: "rest",
    }


@pytest.mark.long
def test_other_topics_alone_are_without_seeds(seeded):
    added = prior_of(seeded)["phi"].added
    assert (added > 0.0).sum(axis=0).tolist() == [2, 2, 2, 0, 0]
    for k, words in enumerate(SEEDS.values()):
        assert {SEEDED_WORDS[v] for v in np.flatnonzero(added[:, k])} == set(words)
    assert isinstance(prior_of(seeded)["phi"].usual, LearnedShapePrior)
    assert {"phi_shape", "phi_rate", "theta_shape"} <= set(seeded.posterior["posterior"])
    known = seeded_model(prior_shape=0.2, **SEEDED_SHORT).fit(seeded_data())
    assert isinstance(prior_of(known)["phi"].usual, GammaPrior)
    assert "phi_shape" not in known.posterior["posterior"]


@pytest.mark.long
def test_a_fit_with_seeds_comes_back_from_its_file(seeded, tmp_path):
    seeded.save(tmp_path / "fit.nc")
    found = cv.TopicModel.load(tmp_path / "fit.nc")
    assert found.seeds == SEEDS == found.seeds_
    np.testing.assert_array_equal(prior_of(found)["phi"].added, prior_of(seeded)["phi"].added)
    assert list(found.seeds) == list(SEEDS)
    pd.testing.assert_frame_equal(found.topics(4), seeded.topics(4))
    found.save(tmp_path / "again.nc")
    assert cv.TopicModel.load(tmp_path / "again.nc")._reader.names_of() == seeded._reader.names_of()
    shares = found.transform(seeded_data())
    np.testing.assert_array_equal(shares, seeded.transform(seeded_data()))
    assert shares.shape == (80, 5)


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda facts: facts["seeds"].update(war=["nowhere"]), "seeds of 'war' must have a word"),
        (lambda facts: facts["seeds"].update(war=["w2"]), "seeds that its model was fitted with, got a digest "),
        (lambda facts: facts.update(seeds=None), "got seeds None and a prior"),
        (lambda facts: facts.update(seeds={"war": "w1"}), "must be a list of words"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(seeded, change, said, tmp_path):
    tree = seeded.posterior.copy(deep=True)
    facts = json.loads(tree.attrs["parameters"])
    change(facts)
    tree.attrs["parameters"] = json.dumps(facts)
    broken = clone(seeded)
    broken.posterior_ = tree
    broken.save(tmp_path / "fit.nc")
    with pytest.raises(ValueError, match=said):
        cv.TopicModel.load(tmp_path / "fit.nc")


@pytest.mark.long
def test_chains_go_on_from_a_checkpoint_with_the_same_seeds_alone(tmp_path):
    path = tmp_path / "chains.npz"
    seeded_model(**SEEDED_SHORT).fit(seeded_data(), checkpoint=path)
    again, plain = (
        seeded_model(**SEEDED_SHORT).fit(seeded_data(), checkpoint=path, resume=True),
        seeded_model(**SEEDED_SHORT).fit(seeded_data()),
    )
    xr.testing.assert_identical(again.posterior["posterior"].dataset, plain.posterior["posterior"].dataset)
    other = seeded_model(**SEEDED_SHORT).set_params(seeds={**SEEDS, "trade": own_words(1)})
    with pytest.raises(ValueError, match="data or settings that differ"):
        other.fit(seeded_data(), checkpoint=path, resume=True)


@pytest.mark.long
def test_seeds_go_with_covariates_bursts_methods_and_starts(seeded):
    frame = pd.DataFrame({"party": ["a", "b"] * 40}, index=SEEDED_ROWS)
    found = seeded_model(prevalence="~ party", **SEEDED_SHORT).fit(seeded_data(), covariates=frame)
    assert {type(prior) for prior in prior_of(found).values()} == {RegressionPrior, SeededPrior}
    assert found.effects.table()["name"].tolist()[:3] == ["war", "peace", "trade"]
    for changed in (
        {"method": "augmented-gibbs"},
        {"likelihood": "poisson"},
        {"method": cv.Gibbs(moves=0)},
        {"start": seeded},
        {"start": "em"},
    ):
        assert seeded_model(**SEEDED_SHORT | changed).fit(seeded_data())._reader.names_of() == seeded._reader.names_of()


@pytest.mark.long
def test_as_many_topics_are_chosen_as_have_seeds_or_more(monkeypatch):
    short_choices(monkeypatch, (5, 7, 10))
    small = pd.DataFrame(SEEDED_REPORTS[:30, :20], columns=SEEDED_WORDS[:20])
    seeds = {f"topic of {word}": [word] for word in SEEDED_WORDS[:7]}
    chosen = cv.TopicModel("auto", seeds=seeds, **SEEDED_SHORT).fit(cv.PrivatizedCounts(small, alpha=np.exp(-1.0)))
    assert set(chosen.selection_.table["n_topics"]) == {7, 10}
    assert list(chosen._reader.names_of().values()) == list(seeds)


@pytest.mark.long
def test_a_start_at_topics_in_any_order_is_brought_to_the_seeds():
    phi = np.maximum(SEEDED_TOPICS[::-1], 1e-4)
    found = seeded_model(start={"phi": phi}, **SEEDED_SHORT).fit(seeded_data())
    means = found.components_
    overlap = np.minimum(means[:3, None], SEEDED_TOPICS).sum(axis=-1)
    assert overlap.argmax(axis=1).tolist() == [3, 0, 4]


@pytest.mark.long
def test_a_word_may_be_of_two_topics():
    seeds = {"war": ["w1", "w2"], "peace": ["w2"]}
    found = cv.TopicModel(3, seeds=seeds, **SEEDED_SHORT).fit(seeded_data())
    assert prior_of(found)["phi"].added[2].astype(bool).tolist() == [True, True, False]


@pytest.mark.long
def test_words_that_the_data_do_not_have_are_named():
    seeds = {"war": ["w1", "gun"], "peace": ["w2", "dove"]}
    with pytest.warns(UserWarning, match="left out: 'gun', 'dove'$"):
        found = cv.TopicModel(3, seeds=seeds, **SEEDED_SHORT).fit(seeded_data())
    assert found.seeds_ == {"war": ["w1"], "peace": ["w2"]}
    assert found.seeds == seeds
    with pytest.raises(ValueError, match="seeds of 'far' must have a word that the data have, got 'x', 'y'"):
        cv.TopicModel(3, seeds=SEEDS | {"far": ["x", "y"]}, **SEEDED_SHORT).set_params(n_topics=5).fit(seeded_data())
    many = {"war": ["w1", *(f"x{i}" for i in range(13))]}
    with pytest.warns(UserWarning, match="'x9' and 3 more$"):
        cv.TopicModel(3, seeds=many, **SEEDED_SHORT).fit(seeded_data())


@pytest.mark.long
@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.seeds])
def test_other_methods_refuse_seeds(method):
    wrong = f"seeds requires method 'gibbs' or method 'augmented-gibbs', .* got method '{method}'"
    with pytest.raises(ValueError, match=wrong):
        seeded_model(method=method, likelihood="poisson").fit(seeded_data())


@pytest.mark.long
@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        ({}, "seeds must be None or a mapping"), (["tax"], "seeds must be None or a mapping"),
        ({"war": "gun"}, "seeds of 'war' must be a list of words"), ({"war": []}, "seeds of 'war' must be a list"),
        ({"war": [3]}, "seeds of 'war' must be a list"), ({3: ["gun"]}, "names must be lines of"),
        ({"war": {}}, "seeds of 'war' must be a list"), ({"war": {3: 1.0}}, "seeds of 'war' must be a list"),
        ({"war": {"w1": 0}}, "weight of 'w1' in seeds of 'war' must be a positive number, got 0"),
        ({" war": ["gun"]}, "names must be lines of"), ({"war": ["w1", "w1"]}, "every word once, got 'w1' twice"),
    ],
)  # fmt: skip
def test_what_seeds_may_be(seeds, said):
    with pytest.raises(ValueError, match=said):
        cv.TopicModel(3, seeds=seeds, **SEEDED_SHORT).fit(seeded_data())


def test_every_seeded_word_has_its_weight(tmp_path):
    war, peace = own_words(3), own_words(0)
    seeds = {"war": {war[0]: 20.0, war[1]: 1, "absent": 3.0}, "peace": peace}
    with pytest.warns(UserWarning, match="seeds that the data do not have are left out: 'absent'"):
        found = cv.TopicModel(3, seeds=seeds, **SEEDED_SHORT).fit(seeded_data())
    assert found.seeds_ == {"war": war[:2], "peace": peace}
    added = prior_of(found)["phi"].added
    places = [SEEDED_WORDS.index(word) for word in (*war[:2], *peace)]
    assert added[places, [0, 0, *[1] * len(peace)]].tolist() == [20.0, 1.0, *[WEIGHT] * len(peace)]
    assert added.sum() == 21.0 + WEIGHT * len(peace)
    found.save(tmp_path / "fit.nc")
    again = cv.TopicModel.load(tmp_path / "fit.nc")
    assert again.seeds == seeds
    np.testing.assert_array_equal(prior_of(again)["phi"].added, added)
    with pytest.raises(TypeError, match=r"^seed_weight is now in seeds: seeds=\{'economy': \{'tax'"):
        cv.TopicModel(3, seeds={"war": war}, seed_weight=2.0)


@pytest.mark.long
def test_what_goes_with_seeds():
    with pytest.raises(ValueError, match="n_topics must be at least 3, the number of topics with seeds, got 2"):
        seeded_model(2).fit(seeded_data())
    with pytest.raises(ValueError, match="seeds need data with words as column labels"):
        seeded_model().fit(cv.PrivatizedCounts(SEEDED_REPORTS, alpha=0.3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        seeded_model(3, **SEEDED_SHORT).fit(seeded_data())  # as many topics as seeds


@pytest.mark.long
def test_seeds_go_with_exact_totals():
    counts = np.random.default_rng(4).poisson(3.0, (12, 8))
    hidden = pd.DataFrame(np.where((counts > 0) & (counts < 5), np.nan, counts), columns=SEEDED_WORDS[:8])
    table = cv.Reports(hidden, cv.mechanisms.Suppression(5, shows_zero=True), totals=[(0, counts.sum(axis=0))])
    found = cv.TopicModel(3, seeds={"war": ["w1"], "peace": ["w2"]}, **SEEDED_SHORT).fit(table)
    assert found._reader.names_of() == {0: "war", 1: "peace"}
    for drawn in found.predict_counts(2, np.random.default_rng(1)):
        assert drawn.shape == counts.shape


@pytest.mark.long
def test_fits_are_stacked_by_the_numbers_of_seeds_that_they_share(seeded):
    other = seeded_model(**SEEDED_SHORT, n_topics=4).fit(seeded_data())
    turned = cv.TopicModel(5, seeds=dict(reversed(SEEDS.items())), **SEEDED_SHORT).fit(seeded_data())
    bare = cv.TopicModel(5, **SEEDED_SHORT).fit(seeded_data())
    groups = ["k", "k"]
    assert n_anchored_alike([seeded, other], groups) == 3
    for each in (turned, bare):
        assert n_anchored_alike([seeded, each], groups) == 0
        assert n_anchored_alike([each, seeded], groups) == 0
    assert n_anchored_alike([bare, bare], groups) == 0
    found = cv.stack([seeded, other], seeded_data()).topics(1)
    assert found[found["topic"] < 3]["support"].min() == pytest.approx(1.0)
