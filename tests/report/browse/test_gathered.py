from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.privacy._text import cell, plain
from countveil.report.browse.gathered import gathered
from countveil.report.sections import why_more
from tests.report.browse.conftest import FORMULA, PEOPLE
from tests.report.conftest import QUICK


def test_components_are_those_of_the_tables(fit):
    (found,) = gathered([fit], ["mine"], 4, "hidden")["fits"]
    table = fit.topics(4)
    (kind,) = found["kinds"]
    assert [each["number"] for each in kind["components"]] == table["topic"].unique().tolist()
    (words,) = kind["lists"]
    assert words["plural"] == "words"
    for k, each in enumerate(kind["components"]):
        rows = table[table["topic"] == each["number"]]
        np.testing.assert_allclose(each["support"], rows["support"].iloc[0], rtol=1e-3)
        np.testing.assert_allclose(each["share"][0], rows["prevalence"].iloc[0], rtol=1e-3)
        entries = [next(e for e in words["entries"][v] if e[0] == k)[1:] for v in words["top"][k]]
        np.testing.assert_allclose(entries, rows[["probability", "lower", "upper"]], rtol=1e-3)
    assert found["verdict"] == fit.diagnostics().verdict
    assert found["promise"][0] == "Simulated noise: nobody is protected."
    assert ["seed", "1"] in found["facts"]


def test_the_most_relevant_members_are_kept_with_what_their_lift_needs(fit):
    """Relevance as LDAvis has it, from the tables of the fit."""
    (found,) = gathered([fit], ["mine"], 2, "hidden")["fits"]
    (words,), components = found["kinds"][0]["lists"], found["kinds"][0]["components"]
    table = fit.topics(9).pivot(index="topic", columns="word", values="probability")
    shares = fit.parts.support().set_index(fit.parts.support().columns[0])
    weights = (shares["prevalence"] * shares["support"]).loc[table.index]
    everywhere = (weights / weights.sum()) @ table
    relevance = 0.6 * np.log(table) + 0.4 * np.log(table / everywhere)
    assert words["share"] == pytest.approx(
        [
            everywhere[label] if label in everywhere else everywhere.loc[_label(everywhere, label)]
            for label in words["labels"]
        ],
        rel=1e-3,
    )
    for k, each in enumerate(components):
        best = relevance.loc[each["number"]].nlargest(2).index
        assert [words["labels"][v] for v in words["relevant"][k]] == [plain(name) for name in best]
        assert all(any(entry[0] == k for entry in words["entries"][v]) for v in words["relevant"][k])


def _label(everywhere, shown):
    """The word that the page shows so."""
    return next(name for name in everywhere.index if plain(name) == shown)


def test_the_page_explains_why_more_components_are_listed_than_were_asked_for(fit, monkeypatch):
    (found,) = gathered([fit], ["mine"], 2, "hidden")["fits"]
    listed = len(found["kinds"][0]["components"])
    assert (found["kinds"][0]["whyMore"] == "") is (listed == 3)
    assert why_more(fit, fit._reader.kinds[0], 3) == ""
    assert why_more(fit, fit._reader.kinds[0], 4).startswith(
        "4 topics are listed although the model has 3: chains found"
    )


def test_two_fits_keep_what_they_are_compared_by(fit, column_fit):
    found = gathered([fit, column_fit], ["a", "b"], 1, "hidden")
    first, second = (each["kinds"][0]["lists"][0] for each in found["fits"])
    assert len(found["pairs"][0]) == 2
    for i, j, _, _ in found["pairs"][0]:
        for list_, k in ((first, i), (second, j)):
            assert all(any(entry[0] == k for entry in entries) for entries in list_["entries"])


def test_one_chain_has_no_support_and_an_optimiser_no_intervals(column_fit, people):
    (found,) = gathered([column_fit], ["a"], 3, "hidden")["fits"]
    assert {each["support"] for each in found["kinds"][0]["components"]} == {None}
    assert [len(row) for row in found["bursts"]["rows"]] == [5] * 9
    assert found["bursts"]["axis"] == "word"
    model = cv.TopicModel(2, method=cv.EM(max_iter=30), seed=1, progress=False)
    (found,) = gathered([model.fit(people)], ["a"], 3, "numbers")["fits"]
    assert "not calibrated" in found["noIntervals"]
    assert {len(each["share"]) for each in found["kinds"][0]["components"]} == {1}
    assert {len(entry) for entries in found["rows"]["entries"] for entry in entries} == {2}


def test_the_modes_of_a_tensor_and_the_actors_of_a_network(tensor_fit, block_fit):
    (found,) = gathered([tensor_fit], ["a"], 3, "labels")["fits"]
    assert [each["axis"] for each in found["kinds"][0]["lists"]] == ["who", "what", "year"]
    assert found["rows"] is None
    (found,) = gathered([block_fit], ["a"], 3, "labels")["fits"]
    assert found["kinds"][0]["lists"][0]["plural"] == "actors"


def test_texts_that_a_spreadsheet_would_compute_are_known(fit):
    cells = gathered([fit], ["@fit"], 4, "labels")["cells"]
    assert cells[FORMULA] == cell(FORMULA) == "'=1+1"
    assert cells[PEOPLE[1]] == "'" + PEOPLE[1]
    assert cells["@fit"] == "'@fit"
    assert PEOPLE[0] not in cells


def test_components_that_cannot_be_listed_are_refused():
    with pytest.raises(ValueError, match="whose members can be listed, got a fit without such components"):
        gathered([SimpleNamespace(_reader=SimpleNamespace(kinds=()))], ["a"], 3, "hidden")


def test_names_effects_and_shares_over_time_are_shown():
    counts = np.random.default_rng(1).poisson(2.0, (12, 6))
    data = cv.PrivatizedCounts(counts, 0.3)
    people = pd.DataFrame({"party": ["R", "D"] * 6, "year": np.arange(12.0)})
    fit = cv.TopicModel(2, prevalence="~ party + year", **QUICK).fit(data, covariates=people)
    fit.parts.relabel({1: "trade"})
    (found,) = gathered([fit], ["a"], 3, "hidden")["fits"]
    components = {each["number"]: each for each in found["kinds"][0]["components"]}
    assert [components[number]["name"] for number in (0, 1)] == ["", "trade"]
    table, contrasts = fit.effects.table(), fit.effects.contrasts()
    for number, each in components.items():
        (heading, said), (second, pairs) = each["beside"]
        rows = table[table["topic"] == number]
        assert heading == "Covariates: coefficient"
        assert said == [
            [row.term, f"{row.estimate:.2f} ({row.lower:.2f} to {row.upper:.2f})"]
            for row in rows.itertuples()
        ]
        party = contrasts[contrasts["topic"] == number].iloc[0]
        assert second == "Covariates: difference of shares, in points"
        ends = f"({100 * party.lower:+.1f} to {100 * party.upper:+.1f})"
        assert pairs[0] == ["party: R less D", f"{100 * party.estimate:+.1f} {ends}"]
        assert pairs[1][0] == "year: 8 less 3"
    dated = cv.TopicModel(2, **QUICK).fit(data, time=np.repeat([2001, 2002, 2003], 4))
    (found,) = gathered([dated], ["a"], 3, "hidden")["fits"]
    table = dated.effects.over_time()
    for each in found["kinds"][0]["components"]:
        ((heading, said),) = each["beside"]
        rows = table[table["topic"] == each["number"]]
        assert heading == "Over time: expected share"
        assert [name for name, _ in said] == ["2001", "2002", "2003"]
        assert said[0][1].startswith(f"{rows['estimate'].iloc[0]:.1%} (")


def test_components_without_covariates_or_dates_have_nothing_beside_their_members(fit):
    (found,) = gathered([fit], ["a"], 3, "hidden")["fits"]
    assert all(each["beside"] == [] for each in found["kinds"][0]["components"])
