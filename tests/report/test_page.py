import copy
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import countveil as cv
from countveil.fit import load, results
from countveil.fit.layers import tree_of
from countveil.fit.parts import Parts
from countveil.fit.reading import FitReader
from countveil.inference.diagnostics import Diagnostics, Share, State, diagnose_optimiser
from countveil.privacy._text import plain
from countveil.report import render, write_report
from countveil.report.page import (
    LONGEST_VALUE,
    diagnostic_rows,
    headline_of,
    labels_for_readers,
    parameters,
    template_of_page,
    trust,
)
from countveil.report.sections import cards, number, percent
from tests import dates
from tests.effects import the_fit
from tests.report.conftest import LONG, NASTY, QUICK, WORDS, release_of

pytestmark = pytest.mark.long

VOID = {"meta", "link", "img", "rect", "br"}


class Page(HTMLParser):
    """What a page holds; refuses tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.text += " " if tag in ("td", "th", "li", "p", "h1", "h2", "h3", "h4") else ""
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text += data

    def named(self, name):
        return [attrs for tag, attrs in self.tags if tag == name]


def read(page):
    found = Page(page)
    found.text = " ".join(found.text.split())
    return found


@pytest.fixture(scope="session")
def pages(topic_fit, release, block_fit, network, tensor_fit, events):
    return {
        "topics": render(topic_fit, release, members=len(WORDS)),
        "blocks": render(block_fit, network),
        "tensor": render(tensor_fit, events),
    }


@pytest.mark.parametrize("kind", ["topics", "blocks", "tensor"])
def test_a_page_needs_nothing_else_and_runs_nothing(pages, kind):
    page = read(pages[kind])
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "iframe", "object", "embed", "form", "base"}
    for _, attrs in page.tags:
        assert not [name for name in attrs if name.startswith("on")]
        for name in ("src", "href"):
            if name in attrs:
                assert re.match(r"data:|#", attrs[name]), attrs[name][:60]
    assert "url(" not in pages[kind]
    assert "@import" not in pages[kind]
    policy = [a["content"] for a in page.named("meta") if "http-equiv" in a]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    assert len(pages[kind].encode()) < 3_000_000


@pytest.mark.parametrize("kind", ["topics", "blocks", "tensor"])
def test_labels_are_shown_as_they_are_and_do_nothing(pages, kind):
    assert NASTY not in pages[kind]
    assert NASTY in read(pages[kind]).text
    if kind == "topics":
        assert all(plain(" ".join(word.split())) in read(pages[kind]).text for word in WORDS)
        assert "\u202e" not in pages[kind]


@pytest.mark.parametrize("kind", ["topics", "blocks", "tensor"])
def test_pictures_have_words_and_headings_have_an_order(pages, kind):
    page = read(pages[kind])
    assert len(page.named("img")) == (4 if kind == "blocks" else 2)
    assert all(len(each["alt"]) > 40 for each in page.named("img"))
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(np.diff(levels)) <= 1
    anchors = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(anchors) == len(set(anchors))
    links = {a["href"][1:] for a in page.named("a")} | {
        a["aria-labelledby"] for _, a in page.tags if "aria-labelledby" in a
    }
    assert links <= set(anchors)
    assert page.named("html")[0]["lang"] == "en"


def test_topics_are_said_with_their_numbers(topic_fit, release, pages):
    text = read(pages["topics"]).text
    top, shares = topic_fit.top_words(len(WORDS)), topic_fit.parts.prevalences()
    for row in top.itertuples():
        assert f"{percent(row.probability)} ({percent(row.lower)} to {percent(row.upper)})" in text
    for row in shares.itertuples():
        said = f"{percent(row.prevalence)} ({percent(row.lower)} to {percent(row.upper)})"
        assert text.count(f"Topic {row.topic} {said}") == 1
    assert f"seed {topic_fit.seed_}" in text
    assert f"countveil {cv.__version__}" in text
    positive = (np.asarray(release.reports) > 0).mean()
    alpha = release.alpha
    by_noise = percent(alpha / (1 + alpha))
    assert f"positive reports {percent(positive)}; noise alone would give {by_noise}; this fit expects" in text


def test_all_cards_have_bars_to_one_scale(topic_fit):
    bars = []
    for card in cards(topic_fit, topic_fit._reader.kinds[0], 4):
        assert len(card.listings[0].bars) == 4
        for bar in (card.share, *card.listings[0].bars):
            assert 0.0 <= bar.low <= bar.middle <= bar.high <= 100.0
        bars += card.listings[0].bars
    assert max(bar.high for bar in bars) == 100.0
    table = topic_fit.parts.supported("word", 4)
    scale = 100.0 / table["upper"].max()
    np.testing.assert_allclose(
        sorted(bar.middle for bar in bars), sorted((scale * table["probability"]).round(1)), atol=0.11
    )


def test_components_are_listed_in_the_order_of_all_lists(topic_fit, pages):
    """The best supported first, then the largest, as on the terminal; one that only some chains have comes later."""
    titles = re.findall(r'<span class="name">Topic (\d+)</span>', pages["topics"])
    wanted = topic_fit.parts.support()["component"].tolist()
    assert [int(number) for number in titles] == wanted
    assert wanted != sorted(wanted), "the fit must tell the two orders apart"


PROBABILITY = "the truth lies inside with a probability of 90%"


def test_intervals_of_a_fit_that_failed_a_check_promise_nothing(topic_fit, release, monkeypatch):
    """Whether the chains, the data or the simulated releases tell against it."""
    found = topic_fit.diagnostics()
    for state, wrong, wanted in (
        (State.SAFE, [], True),
        (State.WITH_SUPPORT, [], True),
        (State.UNCHECKED, [], False),
        (State.UNSAFE, [], False),
        (State.SAFE, ["Simulated releases differ from the real one in: largest report."], False),
    ):
        monkeypatch.setattr(type(topic_fit), "diagnostics", lambda self, s=state: found._replace(state=s))
        monkeypatch.setattr("countveil.fit.predictive_checks.failed", lambda check, exact, w=wrong: w)
        text = read(render(topic_fit, release)).text
        assert (PROBABILITY in text) is wanted
        assert ("Do not report" in text) is not wanted


@pytest.mark.parametrize(
    ("state", "verdict", "meaning", "consequence"),
    [
        (
            State.SAFE,
            "Safe to report: the chains agree (R-hat up to 1.01), and the effective draws suffice (at least 500).",
            "The chains agree, and the effective draws suffice.",
            "You can report these numbers with their intervals.",
        ),
        (
            State.WITH_SUPPORT,
            "Safe to report with support: the chains differ (R-hat up to 1.38), but averages are steady (at 1.05). So.",
            "The chains differ, but averages are steady.",
            "You can report expected counts and sums over all chains, and each of the topics with its support.",
        ),
        (
            State.UNSAFE,
            "Not safe yet: the chains differ (R-hat up to 2.11). Run about 8 chains.",
            "The chains differ.",
            "Do not report these results.",
        ),
        (
            State.UNSAFE,
            "The chains agree (R-hat up to 1.04). More draws make it better. The topics cannot be found (ever). Go.",
            "The topics cannot be found.",
            "Do not report these results.",
        ),
        (
            State.UNCHECKED,
            "One chain only, so agreement cannot be checked (effective draws at least 9); run several.",
            "One chain only, so agreement cannot be checked; run several.",
            "Do not report these results before they have been checked.",
        ),
    ],
)
def test_the_headline_has_its_meaning_and_what_follows(topic_fit, state, verdict, meaning, consequence, monkeypatch):
    monkeypatch.setattr(FitReader, "unshared", lambda self: [])
    judged = topic_fit.diagnostics()._replace(state=state, verdict=verdict)
    assert headline_of(topic_fit, judged) == (state.capitalize(), meaning, consequence)


def test_topics_that_no_two_chains_share_are_not_to_be_reported(topic_fit, monkeypatch):
    monkeypatch.setattr(FitReader, "unshared", lambda self: list(self.kinds))
    judged = topic_fit.diagnostics()._replace(state=State.WITH_SUPPORT)
    assert headline_of(topic_fit, judged).consequence.endswith("but none of the topics.")


def test_a_naive_fit_is_never_to_be_reported(release, monkeypatch):
    fit = cv.TopicModel(2, **QUICK).fit(cv.NaiveCounts(release))
    agree = Diagnostics(fit.diagnostics().table, "Safe to report: the chains agree.", State.SAFE)
    monkeypatch.setattr(results, "diagnosed", lambda fit: agree)
    judged = fit.diagnostics()
    assert judged.line == "Not safe yet. This fit treats the reports as true counts. The chains agree."
    assert headline_of(fit, judged).consequence == "Do not report these results."


def test_quantities_have_names_for_readers(topic_fit, block_fit):
    found = labels_for_readers(topic_fit)
    assert found["rate of each doc"] == "expected words of each document"
    assert found["rate of each word"] == "expected count of each word"
    assert found["total rate"] == "sum of the expected words"
    assert found["shape of theta"] == "prior shape, document by topic"
    for fit in (topic_fit, block_fit):
        rows = diagnostic_rows(fit.diagnostics().table, labels_for_readers(fit))
        assert [name for name, _, _ in rows if "rate" in name or "theta" in name or "_" in name] == []


def test_topics_come_first_and_promises_after(pages):
    page, ids = pages["topics"], ("parts", "data", "promise", "check", "trust")
    places = [page.index("In short"), *(page.index(f'<section aria-labelledby="{each}"') for each in ids)]
    assert places == sorted(places)


def test_effects_of_covariates_are_listed():
    text = read(render(the_fit())).text
    row = the_fit().effects.table().iloc[0]
    assert "Effects of covariates" in text
    assert f"Topic {row.topic} {row.term} {row.estimate:.2f} ({row.lower:.2f} to {row.upper:.2f})" in text
    row = the_fit().effects.contrasts().iloc[0]
    middle, low, high = (f"{100 * value:+.1f}" for value in (row.estimate, row.lower, row.upper))
    assert f"Topic {row.topic} party: R less D {middle} ({low} to {high})" in text


def test_contrasts_are_shown_where_merged_topics_have_no_coefficients():
    fit = copy.deepcopy(the_fit())
    fit._adopt(fit.posterior.copy())
    page = read(render(fit.parts.merge([0, 1, 2]))).text
    assert "Differences of shares" in page
    assert "Topic 0 party: R less D" in page


def test_topics_over_time_are_a_picture_with_words():
    fit = dates.the_fit()
    page = read(render(fit))
    assert "Topics over time" in page.text
    (alt,) = [of["alt"] for tag, of in page.tags if tag == "img" and of["alt"].startswith("Expected share")]
    assert f"from {dates.TIME.min()} to {1989 + dates.YEARS}, one curve a topic: topic 0" in alt
    table = fit.effects.over_time()
    own = table[table["topic"] == 0]["estimate"]
    assert f"{100 * own.iloc[0]:.0f}% to {100 * own.iloc[-1]:.0f}%" in alt.split(";")[0]
    assert "over time" not in read(render(the_fit())).text


def test_topics_of_topics_are_a_nested_list():
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(2.0, (12, 6)), 0.3)
    options = {"draws": 10, "tune": 10, "chains": 1, "seed": 1, "progress": False}
    fit = cv.TopicModel([3, 2], **options).fit(data)
    page = render(fit)
    for node in tree_of(fit):
        assert f"<li>{node.said}" in page
        assert all(f"<li>{each.said}</li>" in page for each in node.below)
    assert page.count("<ul>\n<li>topic") + page.count("<ul><li>topic") >= 3
    assert 'href="#tree"' in page
    assert 'href="#tree"' not in render(the_fit())


def test_the_modes_of_a_tensor_are_listed_one_by_one(tensor_fit, pages):
    page = read(pages["tensor"])
    for mode in ("who", "what", "year"):
        assert page.text.count(f" {mode} ") >= 2
    year = tensor_fit.top_entries("year", 8)
    row = year.iloc[0]
    assert f"{row['year']} {percent(row['probability'])} ({percent(row['lower'])}" in page.text


def test_expected_counts_between_communities_are_a_table(block_fit, pages):
    text = read(pages["blocks"]).text
    for value in block_fit.blocks_.ravel():
        assert number(value) in text
    assert "from the community of the row to the community of the column" in text


def test_the_same_fit_gives_the_same_page(topic_fit, release, pages, tmp_path):
    write_report(topic_fit, tmp_path / "page.html", release, members=len(WORDS))
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == pages["topics"]
    topic_fit.save(tmp_path / "fit.nc")
    write_report(load(tmp_path / "fit.nc"), tmp_path / "again.html", release, members=len(WORDS))
    again = (tmp_path / "again.html").read_text(encoding="utf-8")
    assert read(again).text == read(pages["topics"]).text


def test_a_page_without_release_or_labels_says_what_it_cannot():
    counts = np.random.default_rng(6).poisson(1.0, (6, 5))
    text = read(render(cv.TopicModel(2, **QUICK).fit(cv.PrivatizedCounts(counts, 0.3)), title="Mine & yours"))
    assert text.text.startswith("Mine & yours Skip to content Mine & yours 6 documents × 5 words")
    assert "word 3" in text.text
    assert "Not checked: this page was made without the release." in text.text
    assert "stated here for a difference of one count" in text.text


def test_a_hundred_topics_and_long_labels_stay_small():
    names = [f"{LONG}{v}" for v in range(120)]
    counts = np.random.default_rng(7).poisson(1.0, (30, 120))
    data = cv.PrivatizedCounts(counts, 0.3, column_labels=names)
    page = render(cv.TopicModel(100, draws=2, tune=2, chains=2, seed=1, threads=1).fit(data))
    assert "100 topics" in read(page).text
    assert len(page.encode()) < 3_000_000


def test_an_optimiser_and_any_einsum_have_pages_too(release):
    text = read(render(cv.TopicModel(2, method=cv.EM(max_iter=30), seed=1).fit(release), release)).text
    assert "positive reports explained" in text
    assert "sum explained" in text
    assert "one point estimate" in text
    model = cv.PoissonFactorization("dkt,vkt->dv", {"k": 2, "t": 2}, **QUICK)
    text = read(render(model.fit(release), release)).text
    assert text.startswith("Components behind private counts")
    assert "This model's factors are not shown here" in text


UNCALIBRATED = {
    "cavi": ("method 'cavi' are not calibrated", {"method": "cavi"}),
    "em": ("method 'em' are not calibrated", {"method": cv.EM(max_iter=30)}),
    "naive": ("a naive fit do not hold the truth", {}),
}


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
@pytest.mark.parametrize(("why", "options"), UNCALIBRATED.values(), ids=UNCALIBRATED)
def test_draws_that_are_not_calibrated_are_checked_against_nothing(release, topic_fit, why, options):
    data = release if options else cv.NaiveCounts(release)
    fit = cv.TopicModel(2, **QUICK | options).fit(data)
    text, other = (read(render(each, release)).text for each in (fit, topic_fit))
    said = f"Not checked: the check compares the release with simulated ones.* of {why}"
    assert re.search(said, text)
    assert not re.search(said, other)
    for band in (
        "95% of simulations",
        "Simulated releases",
        "as the model expects",
        "% intervals",
        "The check of the sum",
    ):
        assert band not in text
        assert band in other or band == "The check of the sum"
    for number_of_fit in ("this fit expects", "expects the true counts to add up to"):
        assert number_of_fit in text
    assert ("which takes the noise into account" in text) is bool(options)
    assert len(read(render(fit, release)).named("img")) == 1


@pytest.mark.parametrize(
    ("alpha", "said"), [(1e-4, "about the sum of the true counts"), (0.8, " times the sum of the true counts")]
)
def test_what_taking_reports_for_counts_would_give_is_said(alpha, said):
    rng = np.random.default_rng(1)
    counts = rng.poisson(rng.gamma(0.5, 4.0, (30, 12)))
    noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
    data = cv.PrivatizedCounts(counts + noise[0] - noise[1], alpha)
    text = " ".join(read(render(cv.TopicModel(2, **QUICK).fit(data), data)).text.split())
    assert said in text
    assert " 1 times the sum" not in text


def test_words_for_numbers():
    assert [percent(x) for x in (0.0, 1e-9, 0.0123, 0.5, 1.0)] == ["0.0%", "<0.1%", "1.2%", "50%", "100%"]
    assert [number(x) for x in (0.0, 0.01, 0.5, 12.34, 1234.5)] == ["0", "<0.1", "0.5", "12.3", "1,234"]


def test_the_verdict_in_a_word(topic_fit, release):
    found = topic_fit.diagnostics()
    for state, r_hat, ess, word in (
        (State.SAFE, 1.0, 900, "good"),
        (State.SAFE, 1.05, 900, "fair"),
        (State.SAFE, 1.0, 90, "fair"),
        (State.WITH_SUPPORT, 1.2, 900, "fair"),
        (State.UNSAFE, 1.0, 900, "bad"),
        (State.UNCHECKED, 1.0, 900, "unknown"),
    ):
        found.table["r_hat"], found.table["ess_bulk"], found.table["ess_tail"] = r_hat, ess, ess
        assert trust(found._replace(state=state)) == word
    point = diagnose_optimiser("", True, 3, Share(1.0, 0.01))
    assert trust(point) == "good"


def test_another_release_is_refused(topic_fit, tensor_fit, release):
    other = release_of(np.ones((3, 4), dtype=int))
    with pytest.raises(ValueError, match=r"must be the one that was fitted, doc x word = \(12, 8\), got"):
        render(topic_fit, other)
    with pytest.raises(ValueError, match=r"release must be the one that was fitted, \(5, 4, 3\) in all"):
        render(tensor_fit, other)
    weaker = release_of(np.ones((12, 8), dtype=int), cv.PrivacyLevel(3, 1))
    with pytest.raises(ValueError, match=r"with alpha .* in row 0, got"):
        render(topic_fit, weaker)
    import pandas as pd

    renamed = release_of(pd.DataFrame(np.ones((12, 8), dtype=int), columns=list("abcdefgh")))
    with pytest.raises(ValueError, match=r"the one that was fitted, got 'a' for '<script.* at word 0"):
        render(topic_fit, renamed)


def test_files_that_are_no_fits_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no fit at"):
        load(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(ValueError, match="is not a fit saved by countveil"):
        load(tmp_path / "text.nc")


def test_without_jinja_the_error_says_what_to_install(topic_fit, monkeypatch):
    template_of_page.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[report\]'"):
        render(topic_fit)


def test_a_page_on_topics_that_are_all_lost_is_not_to_be_trusted(monkeypatch):
    fit = cv.TopicModel(2, **QUICK).fit(release_of(np.random.default_rng(1).poisson(2.0, (6, 5))))
    (part,) = fit._reader.kinds
    agreed = fit.diagnostics()._replace(state=State.SAFE)
    monkeypatch.setattr("countveil.fit.results.diagnose", lambda *_: agreed)
    for n, wanted in ((1, False), (2, True)):
        monkeypatch.setattr(Parts, "undetermined", lambda self, n=n: {part: (n, 2)})
        assert (fit.diagnostics().state == State.UNSAFE) is wanted
        assert ("should not be trusted" in render(fit)) is wanted


def test_of_a_long_parameter_a_page_has_the_beginning(topic_fit):
    facts = topic_fit.posterior.attrs
    plain_text = parameters(topic_fit)
    assert "seeds=None" in plain_text
    assert "..." not in plain_text
    given = json.loads(facts["parameters"]) | {"seeds": {"war": ["gun"] * 1000}}
    changed = topic_fit.posterior.copy()
    changed.attrs = facts | {"parameters": json.dumps(given)}
    other = type(topic_fit)(topic_fit.n_topics)
    other.posterior_ = changed
    found = parameters(other)
    assert f"seeds={str(given['seeds'])[:LONGEST_VALUE]}..., " in found
    assert len(found) < len(plain_text) + LONGEST_VALUE + 10
