"""Topics of topics: what they are given, found and refused, in memory and from files."""

from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import countveil as cv
from countveil.fit.layers import percent, tree_of, upper_by_member
from countveil.inference.matching import Matched
from countveil.models.priors import DirichletPrior, LayeredRowsPrior

WORDS = [f"w{v}" for v in range(24)]
OPTIONS = {"draws": 30, "tune": 80, "chains": 2, "seed": 3, "threads": 1, "progress": False}


def planted(seed=1, rows=150):
    """(counts, topics of each upper topic): two groups of two topics, six words each; a document is of one group."""
    rng = np.random.default_rng(seed)
    phi = np.kron(np.eye(4), np.full((1, 6), 1.0 / 6.0))
    group = rng.integers(2, size=rows)
    shares = np.zeros((rows, 4))
    for d, g in enumerate(group):
        shares[d, 2 * g : 2 * g + 2] = rng.dirichlet([2.0, 2.0])
    return rng.poisson(60.0 * shares @ phi), phi


@pytest.fixture(scope="module")
def data():
    """Documents under weak noise, with labels."""
    counts, _ = planted()
    return cv.simulate_release(counts, cv.PrivacyLevel(2.0, 1), np.random.default_rng(2), column_labels=WORDS)


@pytest.fixture(scope="module")
def fitted(data):
    """Four topics, and two of these."""
    return cv.TopicModel([4, 2], **OPTIONS).fit(data)


def groups_of(fit):
    """The numbers of the topics whose words are of each planted group, by the topics' most probable words."""
    means, found = fit.components_, {0: set(), 1: set()}
    for k, topic in enumerate(means):
        found[int(topic[12:].sum() > 0.5)].add(k)
    return found


@pytest.mark.long
def test_upper_topics_are_the_planted_groups(fitted):
    table = fitted.parts.upper_topics(2)
    assert list(table.columns) == [
        "layer", "topic", "support", "prevalence", "rank", "member", "leading", "probability", "lower", "upper",
    ]  # fmt: skip
    assert (table["layer"] == 2).all()
    assert (table["support"] == 1.0).all()
    members = {frozenset(rows["member"]) for _, rows in table.groupby("topic")}
    assert members == {frozenset(each) for each in groups_of(fitted).values()}
    assert table.groupby("topic")["prevalence"].first().sum() == pytest.approx(1.0)
    assert table.groupby("topic")["probability"].sum().between(0.8, 1.0).all()
    assert (table["lower"] <= table["probability"]).all()
    assert (table["probability"] <= table["upper"]).all()
    own = {int(row.member): row.leading.split(", ") for row in table.itertuples()}
    for k, leading in own.items():
        best = np.argsort(-fitted.components_[k])[:6]
        assert set(leading) <= {WORDS[v] for v in best}


@pytest.mark.long
@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial"])
def test_shares_are_of_expected_words(likelihood, data):
    fit = cv.TopicModel([4, 3, 2], likelihood=likelihood, **OPTIONS | {"chains": 1, "draws": 8}).fit(data)
    draws = fit.posterior["posterior"].isel(chain=0)
    per_part = np.array(
        [
            [(topic / (1.0 - p) / (-np.log1p(-p) / p)).sum() for topic in phi]
            if likelihood != "poisson"
            else np.ones(4)
            for phi, p in zip(
                draws["phi"].transpose("draw", "topic", "word").values,
                draws["p"].values if likelihood != "poisson" else np.zeros(8),
                strict=True,
            )
        ]
    )
    for layer in (2, 3):
        loadings = draws[f"theta_layer{layer}"].values
        wanted, whole = np.empty(loadings.shape), np.empty((8, loadings.shape[2]))
        for s, own in enumerate(loadings):
            for j in range(own.shape[1]):
                whole[s, j] = own[:, j] @ per_part[s]
                wanted[s, :, j] = own[:, j] * per_part[s] / whole[s, j]
        sizes = whole * draws[f"theta_layer{layer}_share"].values
        table = fit.parts.upper_topics(4)
        for row in table[table["layer"] == layer].itertuples():
            values = wanted[:, row.member, row.topic]
            assert row.probability == pytest.approx(values.mean(), rel=1e-4)
            assert row.upper == pytest.approx(np.quantile(values, 0.95), rel=1e-4, abs=1e-12)
            assert row.prevalence == pytest.approx(
                (sizes / sizes.sum(axis=1, keepdims=True))[:, row.topic].mean(), rel=1e-4
            )
        per_part = whole


@pytest.mark.long
def test_names_and_merged_topics_are_those_of_all_tables(fitted):
    fit = deepcopy(fitted)
    one, other = sorted(groups_of(fit)[0])
    fit.parts.relabel({one: "economy"})
    table = fit.parts.upper_topics(4)
    assert (table.loc[table["member"] == one, "leading"] == "economy").all()
    whole = table[table["member"].isin([one, other])].groupby("topic")["probability"].sum()
    fit.parts.merge([one, other])
    merged = fit.parts.upper_topics(4)
    assert other not in set(merged["member"])
    merged = merged[merged["member"] == one].set_index("topic")["probability"]
    np.testing.assert_allclose(merged.sort_index(), whole.sort_index(), rtol=1e-6)


@pytest.mark.long
def test_the_tree_goes_from_the_top_to_topics_of_words(fitted, data):
    nodes = tree_of(fitted, 2)
    assert [len(node.below) for node in nodes] == [2, 2]
    assert [len(node.below) for node in tree_of(fitted, 4)] == [2, 2]  # without shares next to zero
    assert all("of layer 2: " in node.said and "support 100%" in node.said for node in nodes)
    assert not nodes[0].below[0].below
    deep = cv.TopicModel([4, 3, 2], **OPTIONS | {"chains": 1, "tune": 20, "draws": 10}).fit(data)
    table = deep.parts.upper_topics()
    assert table["support"].isna().all()
    assert table["layer"].drop_duplicates().tolist() == [3, 2]
    assert {len(rows) for _, rows in table[table["layer"] == 3].groupby("topic")} == {3}
    nodes = tree_of(deep)
    assert len(nodes) == 2
    assert "of layer 3: " in nodes[0].said
    assert "support" not in nodes[0].said
    assert nodes[0].below[0].said.startswith("topic ")
    assert "of layer 2 (w" in nodes[0].below[0].said
    assert nodes[0].below[0].below[0].said.startswith("topic ")


@pytest.mark.long
def test_a_fit_comes_back_from_its_file(fitted, tmp_path):
    path = tmp_path / "deep.nc"
    fitted.save(path)
    found = cv.load(path)
    assert found.n_topics == [4, 2]
    assert found.n_topics_ == 4
    pd.testing.assert_frame_equal(found.parts.upper_topics(3), fitted.parts.upper_topics(3), rtol=1e-12)
    pd.testing.assert_frame_equal(found.tables["upper_topics"], found.parts.upper_topics())


@pytest.mark.long
def test_the_same_seed_gives_the_same_draws_and_others_are_as_they_were(fitted, data):
    again = clone(fitted).fit(data)
    for name, values in fitted.posterior["posterior"].data_vars.items():
        np.testing.assert_array_equal(values, again.posterior["posterior"][name])
    assert "layers of theta" in fitted.diagnostics().table.index
    assert isinstance(fitted.model_.factors[0].prior, LayeredRowsPrior)
    assert isinstance(fitted.model_.factors[1].prior, DirichletPrior)
    assert fitted.model_.factors[0].prior.n_upper == (2,)


@pytest.mark.long
def test_what_each_topic_is_of_upper_ones(fitted):
    found, table = upper_by_member(fitted), fitted.parts.upper_topics()
    assert list(found.columns) == ["topic", "above", "share"]
    assert found["topic"].tolist() == table["member"].tolist()
    assert found["share"].tolist() == [percent(row, "probability") for row in table.itertuples()]


def test_wide_intervals_are_called_undetermined():
    def row(**values):
        return SimpleNamespace(**values)

    assert percent(row(p=0.82), "p") == "82%"
    assert percent(row(p=0.82, lower=0.6, upper=1.0), "p") == "82% (60 to 100)"
    assert percent(row(p=0.82, lower=0.01, upper=1.0), "p") == "82%, undetermined"


def test_trees_leave_out_topics_of_every_layer_that_few_chains_have():
    kept, few = Matched(np.arange(4), np.zeros(4, int), 1.0), Matched(np.arange(1), np.zeros(1, int), 0.25)
    reader = SimpleNamespace(kinds_by_group=lambda: {"k": None}, matches=lambda group: [kept, few])
    columns = ["layer", "topic", "support", "member", "leading", "probability", "prevalence"]
    rows = [
        (3, 0, 1.0, 0, "a", 0.6, 0.9), (3, 0, 1.0, 1, "b", 0.4, 0.9), (3, 1, 0.25, 0, "a", 1.0, 0.1),
        (2, 0, 0.75, 0, "c", 0.8, 0.5), (2, 0, 0.75, 1, "d", 0.2, 0.5), (2, 1, 0.5, 0, "c", 1.0, 0.5),
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=columns)
    fit = SimpleNamespace(
        weights_=np.full(4, 0.25),
        _reader=reader,
        _n_upper=(2, 2),
        parts=SimpleNamespace(upper_topics=lambda n=5: table),
    )
    (top,) = tree_of(fit)
    assert top.said == "topic 0 of layer 3: 90.0% of all expected words, support 100%"
    assert [each.said for each in top.below] == ["topic 0 of layer 2 (a): 60%"]
    assert [each.said for each in top.below[0].below] == ["topic 0 (c): 80%"]
    assert upper_by_member(fit)["above"].tolist() == ["topic 0 of layer 2"] * 2
    fit.weights_ = np.ones(1)
    assert [len(each.below) for each in tree_of(fit)] == [2, 1]


@pytest.mark.parametrize(
    "value",
    [
        [50], [], [5, 10], (20, 20, 30), [2] * 11, [2] * 10**6,
        np.array([4, 2]), pd.Series([4, 2]), range(4, 1, -2), {4, 2}, "4,2", "4, 2", None,
    ],
)  # fmt: skip
def test_layers_are_a_short_list_of_numbers_that_fall(value):
    with pytest.raises(ValueError, match="from the bottom up, none larger than the one before, such as") as found:
        cv.TopicModel(value).fit(np.ones((3, 3)))
    assert str(found.value).startswith("n_topics must be one number, 'auto', or a list of 2 to 10 numbers, ")
    assert len(str(found.value)) < 230
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("value", [[50, "auto"], [20, 0], [20, 2.5], [True, True]])
def test_numbers_of_layers_are_whole(value):
    with pytest.raises(ValueError, match="n_topics of each layer must be a whole number of at least 1, got"):
        cv.TopicModel(value).fit(np.ones((3, 3)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "cavi"}, "n_topics of several layers requires method 'gibbs', which treats topics of topics, got"),
        ({"prior_rate": 1.0}, "prior_rate must be None with several layers of topics, got 1.0"),
        ({"prevalence": "~ a"}, r"prevalence must be None with several layers of topics, got '~ a': use n_topics=4"),
        ({"seeds": {"a": ["w0"]}}, "seeds must be None with several layers of topics, got 1"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_layers_is_refused(options, said, data):
    with pytest.raises(ValueError, match=said):
        cv.TopicModel([4, 2], **options).fit(data)


def test_dates_are_refused(data):
    with pytest.raises(ValueError, match=r"n_topics must be one number with time, got \[4, 2\]: use n_topics=4"):
        cv.TopicModel([4, 2]).fit(data, time=list(range(150)))


@pytest.mark.long
def test_new_documents_are_fitted_with_known_topics(fitted):
    counts, _ = planted(seed=5, rows=20)
    new = cv.simulate_release(counts, cv.PrivacyLevel(2.0, 1), np.random.default_rng(6), column_labels=WORDS)
    with pytest.raises(
        ValueError, match=r"for 'theta': fit all rows together, or the new ones by TopicModel\(4, known_topics=fit\)$"
    ):
        fitted.transform(new)
    own = cv.TopicModel(4, known_topics=fitted, **OPTIONS).fit(new)
    np.testing.assert_allclose(own.components_, fitted.components_, rtol=1e-4)
    with pytest.raises(ValueError, match=r"n_topics must be 4, as many as known_topics has, got \[4, 2\]"):
        cv.TopicModel([4, 2], known_topics=fitted).fit(new)


@pytest.mark.long
def test_a_fit_may_begin_at_a_flat_one_and_be_compared_with_it(data):
    short = OPTIONS | {"tune": 5, "draws": 5}
    flat = cv.TopicModel(4, **short).fit(data)
    deep = cv.TopicModel([4, 2], start=flat, **short)
    assert len(deep.fit(data).parts.upper_topics()) == 8
    models = {"flat": cv.TopicModel(4, **short), "layers": cv.TopicModel([4, 2], **short)}
    found = cv.compare(data, models, folds=2, seed=1, draws=5, tune=5, progress=False)
    assert set(found.table["model"]) == {"flat", "layers"}


@pytest.mark.long
def test_a_flat_fit_has_no_upper_topics(data):
    flat = cv.TopicModel(4, **OPTIONS | {"tune": 1, "draws": 2}).fit(data)
    assert "upper_topics" not in flat.tables
    with pytest.raises(
        ValueError, match=r"needs a fit with several layers of topics, such as TopicModel\(\[50, 20\]\), got"
    ):
        flat.parts.upper_topics()
    with pytest.raises(ValueError, match="needs a fit with several layers of topics"):
        flat.set_params(n_topics=[4, 2]).parts.upper_topics()  # not fitted again
