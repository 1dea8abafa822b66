"""Two fits beside each other, as their tables have them."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil import plotting
from tests.plotting.conftest import QUICK
from tests.plotting.test_factors import drawn


@pytest.fixture(scope="module")
def pair():
    """Two fits of topics that are told apart at once; the second lacks two words, and has one of its own."""
    rng = np.random.default_rng(7)
    phi = np.array([[0.4, 0.3, 0.2, 0.1, 0, 0, 0, 0], [0, 0, 0, 0, 0.1, 0.2, 0.3, 0.4]])
    counts = pd.DataFrame(rng.poisson(np.repeat(np.eye(2), 15, axis=0) @ phi * 60), columns=list("abcdefgh"))
    other = counts.drop(columns=["b", "g"]).assign(z=rng.poisson(1.0, 30))
    return [cv.TopicModel(2, **QUICK).fit(cv.ExactCounts(each)) for each in (counts, other)]


def test_dots_are_those_of_the_tables_and_counterparts_share_most(pair):
    ax = plotting.compare(*pair, n=4, interval=0.8, names=("all words", "fewer"))
    tables = [fit.parts.members("word", 100, 0.8).set_index(["component", "member"]) for fit in pair]
    titles = [text.get_text() for text in ax.texts]
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    rows = iter(drawn(ax))
    for place, title in enumerate(titles):
        k, match = (int(word.rstrip(",")) for word in title.split() if word.rstrip(",").isdigit())
        p, q = tables[0].loc[k, "probability"], tables[1].loc[match, "probability"]
        total = p.add(q, fill_value=0.0)
        members = labels[4 * place : 4 * place + 4]
        assert members == total.sort_values(ascending=False).index[:4].tolist()
        share = np.minimum(*p.align(q, fill_value=0.0)).sum()
        assert f"{share:.0%} in common" in title
        for table, number in zip(tables, (k, match), strict=True):
            own = table.loc[number].reindex(members).dropna()
            middle, low, high = next(rows)
            np.testing.assert_allclose(middle, own["probability"])
            np.testing.assert_allclose(low, np.minimum(own["lower"], own["probability"]), rtol=1e-6)
            np.testing.assert_allclose(high, np.maximum(own["upper"], own["probability"]), rtol=1e-6)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["all words", "fewer"]
    assert ax.get_title() == ""
    assert plotting.compare(*pair, which=[1]).get_title() == "1 of 2 are shown: 1"


def test_a_topic_without_a_counterpart_is_drawn_alone(pair):
    alone = cv.TopicModel(1, **QUICK).fit(cv.ExactCounts(pd.DataFrame({"a": [9] * 9, "y": [90] * 9})))
    ax = plotting.compare(alone, pair[0])
    assert [text.get_text() for text in ax.texts] == ["topic 0, without a counterpart"]
    assert len(drawn(ax)) == 1


def test_a_topic_that_the_heaviest_chain_lacks_has_its_words_too(pair):
    counts = pd.DataFrame(np.random.default_rng(7).poisson(5.0, (12, 8)), columns=list("abcdefgh"))
    fit = cv.TopicModel(2, **QUICK).fit(cv.ExactCounts(counts))
    topics = np.array([[0.4, 0.3, 0.2, 0.1, 0, 0, 0, 0], [0, 0, 0, 0, 0.1, 0.2, 0.3, 0.4], [0] * 7 + [1]])
    for chain, own in enumerate(([0, 1], [0, 2])):
        fit.posterior["posterior"]["phi"][chain] = 0.99 * topics[own] + 0.01 / 8
    fit._adopt(fit.posterior)
    ax = plotting.compare(fit, pair[0], n=3)
    titles = [text.get_text() for text in ax.texts]
    assert len(titles) == len({title.split()[1] for title in titles}) == 3
    assert len(ax.get_yticks()) == 9
    assert sum(title.endswith("without a counterpart") for title in titles) == 1


def test_what_cannot_be_compared_is_refused(pair):
    strange = cv.TopicModel(1, **QUICK).fit(cv.ExactCounts(pd.DataFrame({"x": [3] * 5, "y": [2] * 5})))
    with pytest.raises(
        ValueError,
        match=r"share at least one label with fit along word, .* the first are '.*' in fit and '.*' in other",
    ):
        plotting.compare(pair[0], strange)
    with pytest.raises(ValueError, match="which must be numbers from 0 to 1, got"):
        plotting.compare(*pair, which=[2])
    with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
        plotting.compare(*pair, n=0)
    with pytest.raises(TypeError, match="fit must be a model"):
        plotting.compare("fit", pair[1])
    with pytest.raises(TypeError, match="fit must be a model"):
        plotting.compare(pair[0], "fit")


TABLE = pd.DataFrame(
    {"model": ["K=5", "K=$20$"], "difference": [-1.5, 0.0], "standard_error": [0.5, 0.0], "score": [1.0, 2.0]}
)


def test_differences_are_drawn_with_two_standard_errors():
    ax = plotting.differences(TABLE)
    middle, _, (bars,) = ax.containers[0].lines
    np.testing.assert_allclose(middle.get_xdata(), [-1.5, 0.0])
    np.testing.assert_allclose([s[:, 0] for s in bars.get_segments()], [[-2.5, -0.5], [0.0, 0.0]])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["K=5", r"K=\$20\$"]
    assert "2 standard errors" in ax.get_xlabel()


def test_a_table_of_something_else_is_refused():
    with pytest.raises(ValueError, match="got no standard_error"):
        plotting.differences(TABLE.drop(columns="standard_error"))
