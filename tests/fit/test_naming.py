"""Names that an analyst gives to components."""

import json
from operator import attrgetter

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil import plotting
from countveil.fit import naming
from countveil.fit.effects import table_of
from countveil.fit.naming import NAMES, changed, check_names_kept, leading, relabel_from, titled, with_names
from countveil.fit.reading import FitReader
from countveil.inference.matching import Matched, keep_weights
from countveil.privacy._text import plain
from countveil.report import baselines, render
from countveil.report.browse.gathered import gathered
from countveil.report.checklist import checklist_of
from countveil.report.sections import cards
from tests.commands import run
from tests.effects import FRAME, the_fit

QUICK = {"chains": 2, "draws": 8, "tune": 8, "seed": 1, "threads": 1, "progress": False}
ASKED = {
    "topics": {},
    "top_words": {},
    "parts.prevalences": {},
    "parts.support": {},
    "parts.members": {"axis": "word"},
    "parts.supported": {"axis": "doc"},
    "documents.shares": {},
    "documents.top": {"topic": 0},
    "documents.find_word": {"word": 2},
    "documents.correlations": {},
}


@pytest.fixture(scope="module")
def fit():
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(3.0, (7, 5)), 0.3)
    return cv.TopicModel(3, likelihood="poisson", **QUICK).fit(data)


@pytest.fixture
def named(fit):
    yield fit.parts.relabel({1: "trade <b>"})
    fit.posterior.attrs.pop(NAMES)


def test_names_are_given_changed_and_taken_away():
    found = changed({0: "a", 2: "b"}, {2: "c", 1: "b", 0: None}, range(3))
    assert found == {1: "b", 2: "c"}
    assert changed(found, {1: "c", 2: "b"}, range(3)) == {1: "c", 2: "b"}
    for names, message in (
        ({3: "a"}, "names must be for numbers from 0 to 2, got 3"),
        ({True: "a"}, "got True"),
        ({0: ""}, "names must be lines of 1 to 200 characters, got ''"),
        ({0: "a\x1b[31m"}, "names must be lines"),
        ({0: "x" * 201}, "names must be lines"),
        ({0: 5}, "got 5"),
        ({0: "c"}, "names must differ from each other, got 'c' twice"),
    ):
        with pytest.raises(ValueError, match=message.replace("[", r"\[")):
            changed(found, names, range(3))


def test_names_must_be_given_by_number():
    with pytest.raises(TypeError, match="names must map numbers to names, got list"):
        changed({}, ["trade"], range(3))


def test_a_table_has_names_beside_numbers_only_if_there_are_any():
    table = pd.DataFrame({"topic": [2, 0], "share": [0.1, 0.9]})
    assert with_names(table, {}, {"topic": "name"}) is table
    found = with_names(table, {0: "a"}, {"topic": "name"})
    assert found.columns.tolist() == ["topic", "name", "share"]
    assert found["name"].tolist() == ["", "a"]
    assert titled("Topic", 3) == "Topic 3"
    assert titled("Topic", 3, "trade") == "Topic 3: trade"


@pytest.mark.parametrize("table", ASKED)
def test_every_table_of_topics_shows_them(named, table):
    found = attrgetter(table)(named)(**ASKED[table])
    numbers = found.columns[0] if table != "documents.shares" else "topic"
    assert found.columns.tolist()[found.columns.get_loc(numbers) + 1] == "name"
    wanted = {1: "trade <b>"}
    assert found["name"].tolist() == [wanted.get(k, "") for k in found[numbers]]
    if table == "documents.correlations":
        assert found["other_name"].tolist() == [wanted.get(k, "") for k in found["other"]]
    bare = named.parts.relabel({1: None})
    assert "name" not in attrgetter(table)(bare)(**ASKED[table])


def test_a_name_stands_for_its_number(named):
    pd.testing.assert_frame_equal(named.documents.top("trade <b>"), named.documents.top(1))
    assert named._reader.names_of() == {1: "trade <b>"}


def test_the_file_the_page_and_the_figures_show_them(named, tmp_path):
    mpl.use("Agg")
    named.save(tmp_path / "fit.nc")
    loaded = cv.TopicModel.load(tmp_path / "fit.nc")
    assert loaded._reader.names_of() == {1: "trade <b>"}
    page = render(loaded)
    assert "Topic 1: trade &lt;b&gt;" in page
    assert "trade <b>" not in page
    ax = plotting.prevalence(loaded, ax=plotting.style.new_figure(6, 4).subplots())
    assert "topic 1 (trade <b>)" in [each.get_text() for each in ax.get_yticklabels()]
    numbers = sorted(loaded.topics(1)["topic"])
    ax = plotting.topics(loaded, which=numbers, ax=plotting.style.new_figure(6, 4).subplots())
    assert any(each.get_text().startswith("topic 1 (trade <b>): ") for each in ax.texts)


def test_a_file_with_names_that_no_fit_keeps_is_refused(fit, tmp_path):
    for stated, message in (
        ("[1]", "must state names of the components"),
        (3, "must state names of the components"),
        ('{"z": {}}', "must state names of the components"),
        ('{"k": [1]}', "must state names by number"),
        ('{"k": {"-1": "a"}}', "must state names by number"),
        ('{"k": {"6": "a"}}', "names must be for numbers from 0 to 5, got 6"),
        ('{"k": {"0": "a\\nb"}}', "names must be lines"),
        ('{"k": {"0": null}}', "names must be lines"),
    ):
        tree = fit.posterior.copy()
        tree.attrs[NAMES] = stated
        with pytest.raises(ValueError, match=message):
            check_names_kept(tree, {"k": 6})
    fit.posterior.attrs[NAMES] = '{"k": {"6": "a"}}'
    fit.save(tmp_path / "fit.nc")
    fit.posterior.attrs.pop(NAMES)
    with pytest.raises(ValueError, match="is not a fit saved by countveil: it must keep names that"):
        cv.TopicModel.load(tmp_path / "fit.nc")


def test_a_picture_of_a_network_shows_them():
    mpl.use("Agg")
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(2.0, (6, 6)), 0.3)
    blocks = cv.BlockModel(1, likelihood="poisson", **QUICK).fit(data).parts.relabel({0: "core"})
    ax = plotting.network(blocks, layout="circle", ax=plotting.style.new_figure(6, 4).subplots())
    assert "community 0 (core)" in ax.get_legend_handles_labels()[1]
    assert blocks.communities(1)["name"].tolist() == ["core"]


def test_kinds_of_components_have_names_of_their_own():
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(2.0, (4, 3, 5)), 0.3)
    tucker = cv.PoissonFactorization("ai,bj,cj,ij->abc", {"i": 2, "j": 2}, **QUICK).fit(data)
    one, other = tucker._reader.member_axes[0], tucker._reader.member_axes[1]
    tucker.parts.relabel({0: "old"}, axis=one).parts.relabel({1: "new"}, axis=other)
    assert tucker._reader.names_of(one) == {0: "old"}
    assert tucker._reader.names_of(other) == {1: "new"}
    assert "old" in tucker.parts.prevalences(axis=one)["name"].tolist()


def stated(fit, **changes):
    """A file of names as the page saves it: of topics 0 and 2."""
    leaders = leading(fit, "word")
    return {
        "topic": {"0": {"leading": leaders[0], "name": "war"}, "2": {"leading": leaders[2], "name": None} | changes}
    }


def test_a_file_of_names_gives_them_and_takes_them_away(fit, tmp_path):
    fit.parts.relabel({1: "trade", 2: "sport"})
    path = tmp_path / "names.json"
    path.write_text(json.dumps(stated(fit)), encoding="utf-8")
    try:
        relabel_from(fit, path)
        assert fit._reader.names_of() == {0: "war", 1: "trade"}
    finally:
        fit.posterior.attrs.pop(NAMES)


def test_leading_members_are_the_most_probable():
    counts = np.random.default_rng(1).poisson(3.0, (7, 5))
    data = cv.PrivatizedCounts(counts, 0.3, column_labels=["a", "b\u202e", "c", "d", "e"])
    fit = cv.TopicModel(2, likelihood="poisson", **QUICK | {"chains": 1}).fit(data)
    for number, words in leading(fit, "word").items():
        table = fit.topics(3)
        assert words == plain(", ".join(table[table["topic"] == number]["word"]))


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("{", "must be JSON"),
        ("[]", "must hold one JSON object"),
        ('{"community": {}}', r"must name components of the fit \(topic\), got 'community'"),
        ('{"topic": []}', "must map the number of each topic to its name, got list"),
        ('{"topic": {"0": "war"}}', "topic '0' must have \"leading\" and \"name\", got 'war'"),
        (
            '{"topic": {"9": {"leading": "a", "name": "war"}}}',
            "must be from this fit, got topic '9' led by 'a', here by",
        ),
        ('{"topic": {"\\u0661": {"leading": "a", "name": "war"}}}', "must be from this fit"),
        ({"leading": "0, 1, 7"}, "must be from this fit, got topic '2' led by '0, 1, 7'"),
        ({"leading": None}, "must be from this fit"),
        ({"name": "war"}, "names must differ from each other, got 'war' twice"),
        ({"name": "a\nb"}, "names must be lines of 1 to 200 characters"),
        ({"name": 3}, "names must be lines of 1 to 200 characters"),
    ],
)
def test_other_files_of_names_are_refused_by_name(fit, tmp_path, content, rule):
    path = tmp_path / "names.json"
    text = content if isinstance(content, str) else json.dumps(stated(fit, **content))
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"names\.json.*{rule}") as raised:
        relabel_from(fit, path)
    assert "\n" not in str(raised.value)
    assert fit._reader.names_of() == {}


QUICK_TO_MERGE = {
    "draws": 12,
    "tune": 3,
    "chains": 3,
    "seed": 1,
    "threads": 1,
    "progress": False,
    "likelihood": "poisson",
}
NOWHERE = Matched(np.array([1]), np.zeros(1, int), 0.0)  # but in a chain without draws
SIZE, WORDS = (9, 12), [f"w{v}" for v in range(12)]


@pytest.fixture
def fit_to_merge():
    """Four planted topics; chain 2 has its own in place of the last."""
    rng = np.random.default_rng(1)
    data = cv.PrivatizedCounts(rng.poisson(2.0, SIZE), 0.3, column_labels=WORDS)
    found = cv.TopicModel(4, **QUICK_TO_MERGE).fit(data)
    draws = found.posterior["posterior"]
    for chain in range(3):
        order = rng.permutation(4)
        topics = np.full((4, 12), 0.02)
        for k in range(4):
            topics[k, 3 * k : 3 * k + 3] += 0.25
        if chain == 2:
            topics[3] = np.roll(topics[3], 5) * rng.permutation([0.1] * 6 + [3.0] * 6)
        topics /= topics.sum(axis=1, keepdims=True)
        near = 0.95 * topics[order] + 0.05 * rng.dirichlet(np.ones(12), (12, 4))
        draws["phi"][chain] = near
        draws["theta"][chain] = rng.gamma(2.0, [[9.0, 6.0, 4.0, 2.0][k] for k in order], (12, 9, 4))
    found._adopt(found.posterior)
    return found


def counts_of(fit_to_merge, numbers):
    """(S, D, V) expected counts of some topics together, and of all (S, D), in the chains that have all of them."""
    found, parts, totals = fit_to_merge._reader.unmerged("k"), [], []
    draws = fit_to_merge.posterior["posterior"]
    for c in range(3):
        own = [dict(zip(found[n].chains, found[n].components, strict=True)).get(c) for n in numbers]
        if None not in own:
            theta, phi = (draws[name].to_numpy()[c].astype(float) for name in ("theta", "phi"))
            parts.append(np.einsum("sdk,skv->sdv", theta[:, :, own], phi[:, own]))
            totals.append(np.einsum("sdk,skv->sd", theta, phi))
    return np.concatenate(parts), np.concatenate(totals)


@pytest.mark.long
def test_pages_lists_and_commands_say_what_counts_as_one(fit_to_merge, tmp_path):
    plain_page, said = render(fit_to_merge), "Topics 0, 1 and 3 count as topic 0."
    assert "count as topic" not in plain_page + str(checklist_of(fit_to_merge))
    fit_to_merge.parts.merge([3, 0]).parts.merge([0, 1]).save(tmp_path / "fit.nc")
    assert said in render(fit_to_merge)
    assert said in str(checklist_of(fit_to_merge))
    assert gathered([fit_to_merge], ["a"], 3, "hidden")["fits"][0]["merged"] == said
    assert said in run("show", tmp_path / "fit.nc").stdout
    assert json.loads(run("show", tmp_path / "fit.nc", "--json").stdout)["merged"] == [[0, 1, 3]]
    assert naming.merged_in_words(fit_to_merge.parts.unmerge()) == ""


def test_merged_topics_are_sums_in_every_table(fit_to_merge):
    before, (counts, totals) = fit_to_merge.topics(12), counts_of(fit_to_merge, [0, 1])
    assert fit_to_merge.parts.merge([1, 0]) is fit_to_merge
    assert fit_to_merge.parts.merged() == [[0, 1]]
    table = fit_to_merge.topics(12)
    assert set(table["topic"]) == set(before["topic"]) - {1}
    own = table[table["topic"] == 0].set_index("word")
    words = counts.sum(axis=1) / counts.sum(axis=(1, 2))[:, None]
    np.testing.assert_allclose(own.loc[WORDS, "probability"], words.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(own.loc[WORDS, "lower"], np.quantile(words, 0.05, axis=0), rtol=1e-5)
    shares = fit_to_merge.documents.shares().set_index(["topic", "document"])["share"]
    assert set(shares.index.get_level_values("topic")) == set(table["topic"])
    assert shares[0, 4] == pytest.approx((counts[:, 4].sum(axis=1) / totals[:, 4]).mean(), rel=1e-5)
    assert fit_to_merge.parts.prevalences()["topic"].tolist() == [0, 2, 3]
    assert fit_to_merge.documents.top(0, 2)["rank"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="topic must be one of"):
        fit_to_merge.documents.top(1)
    assert set(fit_to_merge.documents.correlations()["other"]) | set(
        fit_to_merge.documents.correlations()["topic"]
    ) == set(table["topic"])
    assert set(fit_to_merge.parts.unmerge().topics(3)["topic"]) == set(before["topic"])


def test_support_is_that_of_the_chains_that_have_all_of_them(fit_to_merge):
    support = fit_to_merge.parts.support().set_index("component")["support"]
    (rare,) = (n for n in range(4) if support[n] < 0.7)
    common = next(n for n in range(4) if support[n] == 1.0)
    fit_to_merge.parts.merge([common, rare])
    merged = fit_to_merge.parts.support().set_index("component")["support"]
    assert merged[min(common, rare)] == pytest.approx(support[rare])


def test_topics_that_no_chain_has_together_are_refused(fit_to_merge):
    found = fit_to_merge._reader.unmerged("k")
    own = [n for n, one in enumerate(found) if one.chains.tolist() == [2]]
    other = [n for n, one in enumerate(found) if 2 not in one.chains]
    with pytest.raises(ValueError, match="topics that a chain has together, got"):
        fit_to_merge.parts.merge([own[0], other[0]])
    assert fit_to_merge.parts.merged() == []


def test_topics_of_a_chain_without_weight_are_not_merged(fit_to_merge):
    """They would be in no table, since no draws of that chain are."""
    keep_weights(fit_to_merge.posterior, np.array([0.5, 0.5, 0.0]))
    found, n_all = fit_to_merge._reader.unmerged("k"), len(fit_to_merge.topics(3)["topic"].unique())
    (own,) = (n for n, one in enumerate(found) if one.chains.tolist() == [2])
    common = next(n for n, one in enumerate(found) if set(one.chains.tolist()) == {0, 1, 2})
    with pytest.raises(ValueError, match="topics that a chain has together, got"):
        fit_to_merge.parts.merge([common, own])
    assert len(fit_to_merge.topics(3)["topic"].unique()) == n_all


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([0], "two different"),
        ([0, 0], "two different"),
        ([0, 99], "got 99"),
        ([0, True], "got True"),
        ([0, "a"], "'a'"),
    ],
)
def test_what_cannot_be_merged_is_refused(fit_to_merge, numbers, said):
    with pytest.raises(ValueError, match=said):
        fit_to_merge.parts.merge(numbers)
    assert fit_to_merge.parts.merged() == []


def test_what_is_merged_comes_along_and_stays_in_the_file(fit_to_merge, tmp_path):
    fit_to_merge.parts.merge([0, 1]).parts.merge([1, 2]).parts.merge([0, 2])
    assert fit_to_merge.parts.merged() == [[0, 1, 2]]
    fit_to_merge.parts.relabel({0: "all else"}).save(tmp_path / "f.nc")
    again = cv.TopicModel.load(tmp_path / "f.nc")
    assert again.components_.shape == (4, 12)
    assert again.parts.merged() == [[0, 1, 2]]
    pd.testing.assert_frame_equal(again.topics(3), fit_to_merge.topics(3), rtol=1e-5)
    tables = again.tables
    assert all(set(table["topic"]) <= {0, 3, 4} for table in tables.values() if "topic" in table)


@pytest.mark.parametrize(
    "stated", ['{"k": [[1, 0]]}', '{"k": [[0]]}', '{"k": [0]}', '{"k": 3}', '{"j": []}', "[]", '{"k": [[0, 99]]}']
)
def test_files_that_state_other_sets_are_refused(fit_to_merge, stated):
    fit_to_merge.posterior.attrs[naming.MERGED] = stated
    with pytest.raises(ValueError, match="must"):
        naming.check_merged_kept(fit_to_merge.posterior, {"k": 12})
    fit_to_merge.posterior.attrs[naming.MERGED] = json.dumps({"k": [[0, 1]]})
    naming.check_merged_kept(fit_to_merge.posterior, {"k": 12})


def test_contrasts_of_merged_topics_are_sums_and_coefficients_are_left_out():
    fit_to_merge = the_fit()
    try:
        before = fit_to_merge.effects.contrast({"party": "R"}, {"party": "D"}).set_index("topic")["estimate"]
        shares = fit_to_merge.effects.prevalence(FRAME.iloc[:2]).groupby(["topic", "row"])["estimate"].sum()
        fit_to_merge.parts.merge([0, 2])
        after = fit_to_merge.effects.contrast({"party": "R"}, {"party": "D"}).set_index("topic")["estimate"]
        assert after.index.tolist() == [0, 1]
        assert after[0] == pytest.approx(before[0] + before[2])
        assert after[1] == pytest.approx(before[1])
        found = fit_to_merge.effects.prevalence(FRAME.iloc[:2]).groupby(["topic", "row"])["estimate"].sum()
        np.testing.assert_allclose(found[0], shares[0] + shares[2])
        assert set(fit_to_merge.effects.table()["topic"]) == {1}
    finally:
        fit_to_merge.parts.unmerge()


def test_contrasts_leave_out_topics_of_chains_without_a_draw(monkeypatch):
    fit_to_merge = the_fit()
    with_draws = [np.ones((3, 1, 3)), np.ones((0, 1, 3))]
    found = [(0, Matched(np.array([0, 1]), np.zeros(2, int), 1.0)), (1, NOWHERE)]
    monkeypatch.setattr(FitReader, "numbered", lambda *_: found)
    table = table_of(fit_to_merge, with_draws, [""], "contrast", 0.9)
    assert table["topic"].tolist() == [0]


def test_pages_and_figures_show_merged_topics(fit_to_merge):
    fit_to_merge.parts.merge([0, 1])
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(2.0, SIZE), 0.3, column_labels=WORDS)
    assert len(set(fit_to_merge.topics(3)["topic"])) == len(
        {card.number for card in cards(fit_to_merge, fit_to_merge._reader.kinds[0], 3)}
    )
    other = cv.TopicModel(4, **QUICK_TO_MERGE).fit(data)
    (found,) = baselines.compare(fit_to_merge, other, data, 3).parts
    assert len(found.pairs) == 2  # those that do not count as one
    assert cv.plotting.topics(fit_to_merge) is not None


def test_only_topics_are_merged():
    square = cv.PrivatizedCounts(np.random.default_rng(1).poisson(2.0, (6, 6)), 0.3)
    blocks = cv.BlockModel(3, **QUICK_TO_MERGE).fit(square)
    with pytest.raises(ValueError, match="merge requires topics of a TopicModel, got a fit of BlockModel"):
        blocks.parts.merge([0, 1])
    assert blocks.parts.merged() == []
    assert blocks.parts.unmerge() is blocks
