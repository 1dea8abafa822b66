from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist, jensenshannon

import countveil as cv
from countveil.fit.layers import percent
from countveil.fit.topics import TOPICS
from countveil.inference.matching import STABLE
from countveil.privacy._text import cell, plain
from countveil.report.browse.gathered import (
    BESIDE,
    check_comparable,
    compared,
    distances,
    gathered,
    mapped,
    needed,
    on_a_plane,
    pairs_of,
)
from countveil.report.browse.listings import Along, Kind
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
            [row.term, f"{row.estimate:.2f} ({row.lower:.2f} to {row.upper:.2f})"] for row in rows.itertuples()
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


def test_shares_of_upper_topics_are_shown():
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(2.0, (12, 6)), 0.3)
    fit = cv.TopicModel([3, 2], **QUICK).fit(data)
    (found,) = gathered([fit], ["a"], 3, "hidden")["fits"]
    table = fit.parts.upper_topics()
    for each in found["kinds"][0]["components"]:
        rows = table[table["member"] == each["number"]]
        said = [
            [f"topic {row.topic} of layer 2", percent(row, "probability")]
            for row in rows[~(rows["support"] <= STABLE)].itertuples()
        ]
        assert each["beside"] == ([["Share of upper topics", said]] if said else [])


def test_components_without_covariates_or_dates_have_nothing_beside_their_members(fit):
    (found,) = gathered([fit], ["a"], 3, "hidden")["fits"]
    assert all(each["beside"] == [] for each in found["kinds"][0]["components"])


def along(mean):
    return Along("word", [f"w{v}" for v in range(mean.shape[1])], False, mean[:, :, None])


def test_distances_are_those_of_jensen_and_shannon():
    mean = np.random.default_rng(1).dirichlet(np.full(6, 0.3), 5)
    mean[0, 0], mean[1] = 0.0, np.eye(6)[2]
    other = np.random.default_rng(2).dirichlet(np.full(3, 0.3), 5)
    wanted = [
        cdist(p, p, lambda one, two: jensenshannon(one, two, base=2))
        for p in (mean / mean.sum(1, keepdims=True), other)
    ]
    np.testing.assert_allclose(distances([along(mean)]), wanted[0], atol=1e-7)
    np.testing.assert_allclose(distances([along(mean), along(other)]), np.mean(wanted, axis=0), atol=1e-7)


def test_places_on_a_plane_keep_distances_that_a_plane_can_keep():
    points = np.random.default_rng(3).normal(size=(6, 2)) * [3.0, 1.0]
    found, share = on_a_plane(cdist(points, points))
    np.testing.assert_allclose(cdist(found, found), cdist(points, points), atol=1e-9)
    assert share == pytest.approx(1.0)
    solid = np.random.default_rng(4).normal(size=(30, 3)) * [3.0, 2.0, 1.0]
    spread = np.linalg.eigvalsh(np.cov(solid.T))
    assert on_a_plane(cdist(solid, solid))[1] == pytest.approx(spread[1:].sum() / spread.sum())


def test_components_that_share_members_are_nearest():
    mean = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.6, 0.4], [0.4, 0.6, 0, 0], [0, 0, 0.5, 0.5]])
    found = mapped([along(mean)])
    assert [nearest[0] for nearest in found["nearest"]] == [2, 3, 0, 1]
    assert all(k not in nearest for k, nearest in enumerate(found["nearest"]))
    places = np.array(found["places"])
    assert places.min() == 0.0
    assert places.max() == 1.0
    assert np.linalg.norm(places[0] - places[2]) < 0.3 < np.linalg.norm(places[0] - places[1])


def test_a_component_is_not_its_own_neighbour_however_few_there_are():
    assert [sorted(nearest) for nearest in mapped([along(np.eye(3))])["nearest"]] == [[1, 2], [0, 2], [0, 1]]


def test_two_components_have_no_map():
    assert mapped([along(np.eye(2))]) is None
    assert mapped([]) is None
    same = mapped([along(np.full((3, 2), 0.5))])
    assert same["places"] == [[0.0, 0.0]] * 3


def kind(mean, names, part=TOPICS):
    axes = part.axes
    return Kind(part, pd.DataFrame(), [Along(axis, list(names), False, mean[:, :, None]) for axis in axes])


def test_pairs_are_those_whose_overlaps_are_largest_together():
    rng = np.random.default_rng(4)
    one, other = rng.dirichlet(np.full(6, 0.4), 4), rng.dirichlet(np.full(5, 0.4), 3)
    first, second = "abcdef", "fxbda"
    shares = np.zeros((4, 3))
    for i in range(4):
        for j in range(3):
            mine, its = dict(zip(first, one[i], strict=True)), dict(zip(second, other[j], strict=True))
            shares[i, j] = sum(min(mine.get(w, 0.0), its.get(w, 0.0)) for w in {*first, *second})
    best = max(permutations(range(4), 3), key=lambda rows: sum(shares[i, j] for j, i in enumerate(rows)))
    found = pairs_of(kind(one, first), kind(other, second))
    assert {(i, j) for i, j, _ in found} == {(i, j) for j, i in enumerate(best)}
    for i, j, share in found:
        assert share == pytest.approx(shares[i, j])


def test_the_same_fit_in_another_order_is_found_again():
    rng = np.random.default_rng(6)
    mean, order, words = rng.dirichlet(np.full(30, 0.2), 5), rng.permutation(5), rng.permutation(30)
    one = kind(mean, range(30))
    other = kind(mean[order][:, words], words.tolist())
    (pairs,), ours, _ = compared([one], [other])
    assert [(i, order[j], share, alike) for i, j, share, alike in pairs] == [(k, k, 1.0, True) for k in range(5)]
    assert ours[0][0].sum(axis=1).tolist() == [BESIDE] * 5


def test_what_a_counterpart_lists_is_needed_of_both():
    mean = np.random.default_rng(7).dirichlet(np.ones(20), 2)
    one, other = kind(mean, range(20)), kind(mean[::-1], range(5, 25))
    (keep,) = needed(one, other, [(0, 1)])
    assert not keep[1].any()
    first = [5 + v for v in np.argsort(-mean[0])[:BESIDE]]
    assert np.flatnonzero(keep[0]).tolist() == sorted(v for v in first if v < 20)


def test_fits_that_have_nothing_in_common_are_refused():
    mean = np.full((2, 2), 0.5)
    with pytest.raises(ValueError, match="some of the same labels along word, got none"):
        check_comparable([kind(mean, "ab")], [kind(mean, "cd")])
    with pytest.raises(ValueError, match=r"components of the same kinds .*, got story and topic"):
        check_comparable([kind(mean, "ab")], [kind(mean, "ab", TOPICS._replace(one="story"))])
    with pytest.raises(ValueError, match="got none and none"):
        check_comparable([], [])
