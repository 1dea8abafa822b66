"""Names that an analyst gives to components."""

import json
from operator import attrgetter

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil import plotting
from countveil.fit.naming import (
    NAMES,
    changed,
    check_names_kept,
    leading,
    relabel_from,
    titled,
    with_names,
)
from countveil.privacy._text import plain
from countveil.report import render

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
        ({3: "a"}, "names must be of numbers from 0 to 2, got 3"),
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
        ('{"k": {"6": "a"}}', "names must be of numbers from 0 to 5, got 6"),
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
        "topic": {
            "0": {"leading": leaders[0], "name": "war"},
            "2": {"leading": leaders[2], "name": None} | changes,
        }
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
            "must be of this fit, got topic '9' led by 'a', here by",
        ),
        ('{"topic": {"\\u0661": {"leading": "a", "name": "war"}}}', "must be of this fit"),
        ({"leading": "0, 1, 7"}, "must be of this fit, got topic '2' led by '0, 1, 7'"),
        ({"leading": None}, "must be of this fit"),
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
