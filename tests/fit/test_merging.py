"""Topics that count as one: against sums by hand, in every table, and kept in the file."""

import json

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.fit import merging
from countveil.fit.effects import table_of
from countveil.fit.reading import FitReader
from countveil.inference.matching import Matched, keep_weights
from countveil.report import naive
from countveil.report.browse.gathered import gathered
from countveil.report.checklist import checklist_of
from countveil.report.page import render
from countveil.report.sections import cards
from tests.commands import run
from tests.effects import FRAME, the_fit

QUICK = {
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
def fit():
    """Four planted topics; chain 2 has its own in place of the last."""
    rng = np.random.default_rng(1)
    data = cv.PrivatizedCounts(rng.poisson(2.0, SIZE), 0.3, column_labels=WORDS)
    found = cv.TopicModel(4, **QUICK).fit(data)
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


def counts_of(fit, numbers):
    """(S, D, V) expected counts of some topics together, and of all (S, D), in the chains that have all of them."""
    found, parts, totals = fit._reader.unmerged("k"), [], []
    draws = fit.posterior["posterior"]
    for c in range(3):
        own = [dict(zip(found[n].chains, found[n].components, strict=True)).get(c) for n in numbers]
        if None not in own:
            theta, phi = (draws[name].to_numpy()[c].astype(float) for name in ("theta", "phi"))
            parts.append(np.einsum("sdk,skv->sdv", theta[:, :, own], phi[:, own]))
            totals.append(np.einsum("sdk,skv->sd", theta, phi))
    return np.concatenate(parts), np.concatenate(totals)


@pytest.mark.long
def test_pages_lists_and_commands_say_what_counts_as_one(fit, tmp_path):
    plain_page, said = render(fit), "Topics 0, 1 and 3 count as topic 0."
    assert "count as topic" not in plain_page + str(checklist_of(fit))
    fit.parts.merge([3, 0]).parts.merge([0, 1]).save(tmp_path / "fit.nc")
    assert said in render(fit)
    assert said in str(checklist_of(fit))
    assert gathered([fit], ["a"], 3, "hidden")["fits"][0]["merged"] == said
    assert said in run("show", tmp_path / "fit.nc").stdout
    assert json.loads(run("show", tmp_path / "fit.nc", "--json").stdout)["merged"] == [[0, 1, 3]]
    assert merging.merged_in_words(fit.parts.unmerge()) == ""


def test_merged_topics_are_sums_in_every_table(fit):
    before, (counts, totals) = fit.topics(12), counts_of(fit, [0, 1])
    assert fit.parts.merge([1, 0]) is fit
    assert fit.parts.merged() == [[0, 1]]
    table = fit.topics(12)
    assert set(table["topic"]) == set(before["topic"]) - {1}
    own = table[table["topic"] == 0].set_index("word")
    words = counts.sum(axis=1) / counts.sum(axis=(1, 2))[:, None]
    np.testing.assert_allclose(own.loc[WORDS, "probability"], words.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(own.loc[WORDS, "lower"], np.quantile(words, 0.05, axis=0), rtol=1e-5)
    shares = fit.documents.shares().set_index(["topic", "document"])["share"]
    assert set(shares.index.get_level_values("topic")) == set(table["topic"])
    assert shares[0, 4] == pytest.approx((counts[:, 4].sum(axis=1) / totals[:, 4]).mean(), rel=1e-5)
    assert fit.parts.prevalences()["topic"].tolist() == [0, 2, 3]
    assert fit.documents.top(0, 2)["rank"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="topic must be one of"):
        fit.documents.top(1)
    assert set(fit.documents.correlations()["other"]) | set(fit.documents.correlations()["topic"]) == set(
        table["topic"]
    )
    assert set(fit.parts.unmerge().topics(3)["topic"]) == set(before["topic"])


def test_support_is_that_of_the_chains_that_have_all_of_them(fit):
    support = fit.parts.support().set_index("component")["support"]
    (rare,) = (n for n in range(4) if support[n] < 0.7)
    common = next(n for n in range(4) if support[n] == 1.0)
    fit.parts.merge([common, rare])
    merged = fit.parts.support().set_index("component")["support"]
    assert merged[min(common, rare)] == pytest.approx(support[rare])


def test_topics_that_no_chain_has_together_are_refused(fit):
    found = fit._reader.unmerged("k")
    own = [n for n, one in enumerate(found) if one.chains.tolist() == [2]]
    other = [n for n, one in enumerate(found) if 2 not in one.chains]
    with pytest.raises(ValueError, match="topics that a chain has together, got"):
        fit.parts.merge([own[0], other[0]])
    assert fit.parts.merged() == []


def test_topics_of_a_chain_without_weight_are_not_merged(fit):
    """They would be in no table, since no draws of that chain are."""
    keep_weights(fit.posterior, np.array([0.5, 0.5, 0.0]))
    found, n_all = fit._reader.unmerged("k"), len(fit.topics(3)["topic"].unique())
    (own,) = (n for n, one in enumerate(found) if one.chains.tolist() == [2])
    common = next(n for n, one in enumerate(found) if set(one.chains.tolist()) == {0, 1, 2})
    with pytest.raises(ValueError, match="topics that a chain has together, got"):
        fit.parts.merge([common, own])
    assert len(fit.topics(3)["topic"].unique()) == n_all


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
def test_what_cannot_be_merged_is_refused(fit, numbers, said):
    with pytest.raises(ValueError, match=said):
        fit.parts.merge(numbers)
    assert fit.parts.merged() == []


def test_what_is_merged_comes_along_and_stays_in_the_file(fit, tmp_path):
    fit.parts.merge([0, 1]).parts.merge([1, 2]).parts.merge([0, 2])
    assert fit.parts.merged() == [[0, 1, 2]]
    fit.parts.relabel({0: "all else"}).save(tmp_path / "f.nc")
    again = cv.TopicModel.load(tmp_path / "f.nc")
    assert again.components_.shape == (4, 12)
    assert again.parts.merged() == [[0, 1, 2]]
    pd.testing.assert_frame_equal(again.topics(3), fit.topics(3), rtol=1e-5)
    tables = again.tables
    assert all(set(table["topic"]) <= {0, 3, 4} for table in tables.values() if "topic" in table)


@pytest.mark.parametrize(
    "stated",
    ['{"k": [[1, 0]]}', '{"k": [[0]]}', '{"k": [0]}', '{"k": 3}', '{"j": []}', "[]", '{"k": [[0, 99]]}'],
)
def test_files_that_state_other_sets_are_refused(fit, stated):
    fit.posterior.attrs[merging.MERGED] = stated
    with pytest.raises(ValueError, match="must"):
        merging.check_merged_kept(fit.posterior, {"k": 12})
    fit.posterior.attrs[merging.MERGED] = json.dumps({"k": [[0, 1]]})
    merging.check_merged_kept(fit.posterior, {"k": 12})


def test_contrasts_of_merged_topics_are_sums_and_coefficients_are_left_out():
    fit = the_fit()
    try:
        before = fit.effects.contrast({"party": "R"}, {"party": "D"}).set_index("topic")["estimate"]
        shares = fit.effects.prevalence(FRAME.iloc[:2]).groupby(["topic", "row"])["estimate"].sum()
        fit.parts.merge([0, 2])
        after = fit.effects.contrast({"party": "R"}, {"party": "D"}).set_index("topic")["estimate"]
        assert after.index.tolist() == [0, 1]
        assert after[0] == pytest.approx(before[0] + before[2])
        assert after[1] == pytest.approx(before[1])
        found = fit.effects.prevalence(FRAME.iloc[:2]).groupby(["topic", "row"])["estimate"].sum()
        np.testing.assert_allclose(found[0], shares[0] + shares[2])
        assert set(fit.effects.table()["topic"]) == {1}
    finally:
        fit.parts.unmerge()


def test_contrasts_leave_out_topics_of_chains_without_a_draw(monkeypatch):
    fit = the_fit()
    with_draws = [np.ones((3, 1, 3)), np.ones((0, 1, 3))]
    found = [(0, Matched(np.array([0, 1]), np.zeros(2, int), 1.0)), (1, NOWHERE)]
    monkeypatch.setattr(FitReader, "numbered", lambda *_: found)
    table = table_of(fit, with_draws, [""], "contrast", 0.9)
    assert table["topic"].tolist() == [0]


def test_pages_and_figures_show_merged_topics(fit):
    fit.parts.merge([0, 1])
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(2.0, SIZE), 0.3, column_labels=WORDS)
    assert len(set(fit.topics(3)["topic"])) == len(
        {card.number for card in cards(fit, fit._reader.kinds[0], 3)}
    )
    other = cv.TopicModel(4, **QUICK).fit(data)
    (found,) = naive.compare(fit, other, data, 3).parts
    assert len(found.pairs) == 2  # those that do not count as one
    assert cv.plotting.topics(fit) is not None


def test_only_topics_are_merged():
    square = cv.PrivatizedCounts(np.random.default_rng(1).poisson(2.0, (6, 6)), 0.3)
    blocks = cv.BlockModel(3, **QUICK).fit(square)
    with pytest.raises(ValueError, match="merge goes with topics of TopicModel, got a fit of BlockModel"):
        blocks.parts.merge([0, 1])
    assert blocks.parts.merged() == []
    assert blocks.parts.unmerge() is blocks
