"""Components on the page: of models that the page does not know, and of several kinds."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.fit import load
from countveil.fit.totals import totals_of
from countveil.inference.matching import keep_weights
from countveil.report import render, sections
from countveil.report.loading import observed
from countveil.report.sections import (
    MOST_ROWS,
    TuningTable,
    block_table,
    bursts_of,
    cell,
    kinds,
    percent,
    tuning_tables,
)
from tests.chronicle import Chronicle
from tests.report.conftest import NASTY, QUICK, WORDS, release_of
from tests.report.test_page import read


@pytest.fixture(scope="module")
def tucker():
    """(fit, release) of a network over time: communities, topics of actions and regimes."""
    counts = np.random.default_rng(5).poisson(2.0, (4, 12))
    columns = [f"{b} | {t}" for b in "abcd" for t in ("2001", "2002", "2003")]
    release = release_of(pd.DataFrame(counts, index=list("abcd"), columns=columns))
    model = cv.PoissonFactorization(
        "ic,jd,tr,cdr->ijt",
        {"c": 2, "d": 2, "r": 3},
        shared={"jd": "ic"},
        dims={"i": "sender", "j": "receiver", "t": "year", "c": "community", "r": "regime"},
        **QUICK | {"chains": 1},
    )
    return model.fit(cv.PrivatizedCounts.from_release(release).folded()), release


def test_a_model_that_the_page_does_not_know_is_shown_by_its_own_words(chronicle, tmp_path):
    page = read(render(chronicle))
    assert page.text.startswith("Stories behind private counts")
    assert "6 documents × 4 words × 3 year, seen through noise. 2 stories." in page.text
    assert "Each story's share of everything told." in page.text
    assert "Open a story for its strongest entries: share of the story, with 90% intervals." in page.text
    for axis in ("word", "year"):
        for row in chronicle.parts.members(axis, 8).itertuples():
            said = f"{row.member} {percent(row.probability)} ({percent(row.lower)} to {percent(row.upper)})"
            assert said in page.text
    for row in chronicle.parts.prevalences().itertuples():
        said = f"{percent(row.prevalence)} ({percent(row.lower)} to {percent(row.upper)})"
        assert f"Story {row.story} {said}" in page.text
    chronicle.save(tmp_path / "fit.nc")
    found = load(tmp_path / "fit.nc")
    assert type(found) is Chronicle
    assert read(render(found)).text == page.text


def test_it_is_compared_with_the_naive_fit_too():
    release = release_of(np.random.default_rng(8).poisson(3.0, (6, 12)))
    fit = Chronicle(2, **QUICK).fit(cv.PrivatizedCounts.from_release(release).folded((6, 4, 3)))
    text = read(render(fit, release, naive=True)).text
    assert "Each story next to its nearest naive story: the strongest entries of word; year" in text
    assert re.search(r"Stories that are nearly the same in both .*: \d of 2\.", text)


def test_several_kinds_of_components_have_a_section_each(tucker):
    fit, release = tucker
    page = read(render(fit, release, naive=True))
    assert page.text.startswith("Communities and regimes behind private counts")
    assert "4 senders × 4 receivers × 3 year, seen through noise. 2 communities, 3 regimes." in page.text
    assert "Each community's share of all expected counts" in page.text
    assert "Each regime's share of all expected counts" in page.text
    assert "Each regime next to its nearest naive regime" in page.text
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"][1:] for attrs in page.named("a")]
    assert set(links) <= set(ids)
    assert {"parts", "parts-1", "part-1", "part-1-2"} <= set(ids)
    assert [len(kind.cards) for kind in kinds(fit, 2)] == [2, 3]
    assert "Who contacts whom" not in page.text


def test_a_network_of_any_model_has_its_pictures_in_its_own_words(network):
    dims = {"c": "club", "i": "person"}
    model = cv.PoissonFactorization("ic,jd,cd->ij", {"c": 2, "d": 2}, shared={"jd": "ic"}, dims=dims, **QUICK).fit(
        network
    )
    page = read(render(model, network))
    assert "8 actors and their directed contacts" in page.text
    assert "from the club of the row to the club of the column" in page.text
    assert "ordered by club" in page.text
    assert any("clubs whose members" in attrs["alt"] for attrs in page.named("img"))
    assert "communit" not in page.text
    table = block_table(model._reader.network, intervals=True)
    assert (len(table), len(table[0])) == (2, 2)
    many = model._reader.network._replace(blocks=np.ones((13, 13)))
    assert block_table(many, intervals=True) == []


@pytest.mark.long
def test_topics_that_only_some_chains_found_are_shown_as_such(topic_fit):
    """Of three chains two have the third topic of the first: the last one's own is listed without intervals."""
    fit = cv.TopicModel(3, **QUICK | {"chains": 3}).fit(
        cv.PrivatizedCounts(np.random.default_rng(1).poisson(2.0, (6, 8)), 0.3)
    )
    draws, own = fit.posterior["posterior"], np.eye(4).repeat(2, axis=1) / 2.0
    for chain in range(3):
        topics = [0, 1, 3 if chain == 2 else 2]
        draws["phi"][chain] = 0.9 * own[topics] + 0.1 * np.random.default_rng(chain).dirichlet(np.ones(8), (10, 3))
    fit._adopt(fit.posterior)
    (kind,) = kinds(fit, 2)
    assert [card.support for card in kind.cards] == ["", "", "support 67%"]
    assert [(card.number, card.support) for card in kind.others] == [(3, "support 33%")]
    text = read(render(fit)).text
    assert "3 topics that most chains found, 1 that only some found" in text
    assert "4 topics are listed although the model has 3: chains found different topics" in text
    assert "Topics that only some chains found" in text
    assert re.search(r"Topic 3 support 33%\s+word [67], word [67]", text)
    assert "weighted by" not in text
    keep_weights(fit.posterior, np.array([0.2, 0.2, 0.6]))
    weighted = read(render(fit)).text
    assert "the share of the chains that found it, weighted by 0.20, 0.20, 0.60" in weighted
    assert "Chains with at most half of the weight found each of these" in weighted
    several = read(render(topic_fit)).text
    assert ("that only some found" in several) is any(kind.others for kind in kinds(topic_fit, 2))


m = cv.mechanisms
COUNTS = np.random.default_rng(2).poisson(np.outer(np.arange(1, 8), [1, 1, 2, 3, 6]))
PUBLISHED = pd.DataFrame(np.where((COUNTS > 0) & (COUNTS < 10), np.nan, COUNTS), columns=["a", NASTY, "c", "d", "e"])


@pytest.fixture(scope="module")
def fitted():
    data = cv.Reports(PUBLISHED, m.Suppression(10))
    return cv.PoissonFactorization("dk,vk->dv", {"k": 1}, **QUICK).fit(data), data


def section_of(page):
    """The section on hidden counts, without its image; empty where there is none."""
    found = re.search(r'<section aria-labelledby="hidden">.*?</section>', page, re.DOTALL)
    return "" if found is None else re.sub(r'src="data:[^"]*"', "", found[0])


@pytest.mark.long
def test_the_largest_hidden_counts_are_shown_with_intervals(fitted, monkeypatch):
    fit, data = fitted
    n = int(PUBLISHED.isna().to_numpy().sum())
    drawn = []
    original = sections.hidden_picture
    monkeypatch.setattr(sections, "hidden_picture", lambda table: drawn.append(table) or original(table))
    page = render(fit, data)
    section = section_of(page)
    assert f"The release hides {n} counts. The picture shows the 20 with the largest expected values" in section
    assert "with 90% intervals" in section
    assert '<a href="#hidden">' in page
    table = fit.counts_table(data)
    (shown,) = drawn
    assert len(shown) == 20
    assert shown["mean"].is_monotonic_decreasing
    assert shown["mean"].min() >= table["mean"].drop(shown.index).max()
    assert NASTY not in page
    assert section_of(render(fit)) == ""


@pytest.mark.long
def test_too_many_counts_are_only_counted(fitted, monkeypatch):
    fit, data = fitted
    monkeypatch.setattr(sections, "MOST_CELLS", 3)
    n = int(PUBLISHED.isna().to_numpy().sum())
    assert sections.hidden_counts(fit, data) == sections.HiddenCounts(n, 0, None)
    section = section_of(render(fit, data))
    assert f"The release hides {n} counts, too many for this page." in section
    assert "<img" not in section


@pytest.mark.long
def test_data_that_hide_no_count_have_no_section(fitted, monkeypatch):
    fit, _ = fitted
    rounded = cv.Reports(COUNTS // 5 * 5, m.RandomRounding(5))
    assert sections.hidden_counts(fit, rounded) is None
    monkeypatch.setattr(sections, "MOST_CELLS", 3)
    assert sections.hidden_counts(fit, rounded) is None
    assert sections.hidden_counts(fit, cv.PrivatizedCounts(COUNTS, 0.3)) is None


@pytest.mark.long
def test_a_fit_without_intervals_shows_medians():
    data = cv.Reports(PUBLISHED, m.Suppression(10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = cv.PoissonFactorization("dk,vk->dv", {"k": 1}, method="em", seed=1, progress=False).fit(data)
    section = section_of(render(fit, data))
    assert "interval" not in section
    assert "medians, given" in section
    assert "Medians of the 20 largest hidden counts" in section


LONGER = QUICK | {"draws": 40, "tune": 80}


@pytest.fixture(scope="module")
def bursty():
    """A release of counts in large bursts, under much noise."""
    rng = np.random.default_rng(1)
    counts = rng.negative_binomial(0.05, 0.02, (150, len(WORDS)))
    return release_of(pd.DataFrame(counts, columns=WORDS), cv.PrivacyLevel("0.3", 1))


def fit_of_bursts(release, options=LONGER, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cv.TopicModel(2, **options, **more).fit(release)


@pytest.mark.long
def test_the_page_of_a_poisson_fit_says_that_it_leaves_counts_out(bursty):
    fit = fit_of_bursts(bursty, likelihood="poisson")
    page, found = read(render(fit, bursty)), totals_of(fit, observed(fit, bursty))
    assert found.falls_short
    said = f"without a model {found.reported:,.0f} (90% interval {found.lower:,.0f} to {found.upper:,.0f})"
    assert said in page.text
    assert f"by this fit {found.fitted:,.0f}" in page.text
    assert page.text.count('Try likelihood="negative-binomial".') == 1
    assert "Dispersion of the counts" not in page.text


@pytest.mark.long
def test_the_page_of_a_bursty_fit_shows_its_dispersion(bursty):
    fit = fit_of_bursts(bursty, dispersion="global")
    text = read(render(fit, bursty)).text
    row = fit.dispersions().iloc[0]
    said = f"The dispersion p is {row['p']:.2f} ({row['lower']:.2f} to {row['upper']:.2f}): the variance of a count is"
    assert said in text
    assert "Try likelihood" not in text
    known = fit_of_bursts(bursty, QUICK, likelihood="negative-binomial", dispersion=0.9)
    assert "The dispersion p is 0.90, which was given: the variance of a count is 10 times" in read(render(known)).text


def test_the_burstiest_columns_are_listed_by_name(bursty):
    fit = fit_of_bursts(bursty, QUICK, likelihood="negative-binomial", dispersion="column")
    found = bursts_of(fit)
    table = fit.dispersions().sort_values("p", ascending=False, kind="stable")
    assert [name for name, _, _ in found.rows] == list(table["word"])[:8]
    assert found.said.startswith(f"Each word has its own dispersion p, from {table['p'].min():.2f} to")
    page = render(fit, bursty)
    assert NASTY not in page
    assert NASTY in read(page).text
    assert f"{table['p'].iloc[0]:.2f} ({table['lower'].iloc[0]:.2f} to" in read(page).text


def test_a_poisson_fit_has_no_dispersion(bursty):
    assert bursts_of(fit_of_bursts(bursty, QUICK, likelihood="poisson")) is None


def test_a_point_estimate_is_not_said_to_be_given(bursty):
    said = bursts_of(
        fit_of_bursts(bursty, {"seed": 1, "threads": 1}, method=cv.EM(max_iter=5), dispersion="global")
    ).said
    assert "given" not in said


def test_chains_and_moves_are_listed_as_the_diagnostics_have_them(topic_fit):
    found = topic_fit.diagnostics()
    chains = tuning_tables(found)[0]
    assert chains.caption == "Chains"
    assert [row[0] for row in chains.rows] == [str(c) for c in found.chains["chain"]]
    place = chains.heads.index("mean of the draws")
    means = [float(row[place]) for row in chains.rows]
    np.testing.assert_allclose(means, found.chains["log_likelihood_mean"], atol=0.5)


def test_the_page_has_the_tables_folded_away(block_fit, network):
    page = render(block_fit, network)
    assert "<summary>How each chain was started and tuned</summary>" in page
    for listing in tuning_tables(block_fit.diagnostics()):
        assert f"<caption>{listing.caption}</caption>" in page


def test_tables_of_many_rows_are_left_out(topic_fit):
    found = topic_fit.diagnostics()
    many = pd.concat([found.chains] * MOST_ROWS)
    assert tuning_tables(found._replace(chains=many, moves=None)) == []


def test_an_optimiser_has_none(release):
    fit = cv.TopicModel(2, method="em", **{k: v for k, v in QUICK.items() if k in ("seed", "progress", "threads")})
    assert tuning_tables(fit.fit(release).diagnostics()) == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("chain", 0, "0"), ("log_likelihood_mean", -1234.56, "-1235"), ("gain", 0.4, "0"), ("weight", 0.25, "0.25"),
        ("score", np.nan, "–"), ("taken", np.True_, "yes"), ("race", "embeddings", "embeddings"), ("sweep", 10, "10"),
    ],
)  # fmt: skip
def test_cells_have_the_digits_they_need(name, value, said):
    assert cell(name, value) == said


def test_a_listing_has_a_head_for_every_cell(block_fit):
    for found in tuning_tables(block_fit.diagnostics()):
        assert isinstance(found, TuningTable)
        assert {len(row) for row in found.rows} == {len(found.heads)}
