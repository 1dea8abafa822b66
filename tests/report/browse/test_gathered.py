from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist, jensenshannon

import countveil as cv
from countveil.fit.component_tables import Chain
from countveil.fit.layers import percent
from countveil.fit.topics import TOPICS
from countveil.inference.matching import STABLE, Matched
from countveil.privacy._text import cell, plain
from countveil.report.browse.gathered import (
    BESIDE,
    COMPONENTS_OF_A_MEMBER,
    Along,
    Kind,
    RowShares,
    along,
    check_comparable,
    compared,
    distances,
    gathered,
    kept,
    listed,
    mapped,
    needed,
    on_a_plane,
    overall,
    pairs_of,
    row_shares,
    rows_axis,
    rows_of,
    short,
    shown_alike,
    shown_as,
)
from countveil.report.sections import why_more
from tests.report.browse.conftest import FORMULA, PEOPLE
from tests.report.conftest import QUICK, release_of


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


def along_word(mean):
    return Along("word", [f"w{v}" for v in range(mean.shape[1])], False, mean[:, :, None])


def test_distances_are_those_of_jensen_and_shannon():
    mean = np.random.default_rng(1).dirichlet(np.full(6, 0.3), 5)
    mean[0, 0], mean[1] = 0.0, np.eye(6)[2]
    other = np.random.default_rng(2).dirichlet(np.full(3, 0.3), 5)
    wanted = [
        cdist(p, p, lambda one, two: jensenshannon(one, two, base=2))
        for p in (mean / mean.sum(1, keepdims=True), other)
    ]
    np.testing.assert_allclose(distances([along_word(mean)]), wanted[0], atol=1e-7)
    np.testing.assert_allclose(distances([along_word(mean), along_word(other)]), np.mean(wanted, axis=0), atol=1e-7)


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
    found = mapped([along_word(mean)])
    assert [nearest[0] for nearest in found["nearest"]] == [2, 3, 0, 1]
    assert all(k not in nearest for k, nearest in enumerate(found["nearest"]))
    places = np.array(found["places"])
    assert places.min() == 0.0
    assert places.max() == 1.0
    assert np.linalg.norm(places[0] - places[2]) < 0.3 < np.linalg.norm(places[0] - places[1])


def test_a_component_is_not_its_own_neighbour_however_few_there_are():
    assert [sorted(nearest) for nearest in mapped([along_word(np.eye(3))])["nearest"]] == [[1, 2], [0, 2], [0, 1]]


def test_two_components_have_no_map():
    assert mapped([along_word(np.eye(2))]) is None
    assert mapped([]) is None
    same = mapped([along_word(np.full((3, 2), 0.5))])
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


def test_what_is_listed_are_means_and_quantiles_of_the_draws(column_fit):
    found = along(column_fit, "word")
    posterior = column_fit.posterior["posterior"]
    p = posterior["p"].to_numpy()[0]
    for k, number in enumerate(column_fit.parts.support()["component"]):
        draws = posterior["phi"].sel(topic=number).to_numpy()[0]
        sized = np.array([phi * -each / ((1 - each) * np.log1p(-each)) for phi, each in zip(draws, p, strict=True)])
        shares = sized / sized.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found.mean[k], shares.mean(axis=0), rtol=1e-5)
        np.testing.assert_allclose(found.values[k, :, 1:].T, np.quantile(shares, [0.05, 0.95], axis=0), rtol=1e-5)
    assert found.names[3] == "$x_1$"
    assert not found.numbered


def test_members_without_names_are_numbered(tensor_fit):
    assert along(tensor_fit, "who").names[:2] == ["a", "b"]


def test_names_that_look_the_same_are_told_apart():
    assert shown_as(["a\x07", "a\\x07", "b", "a\x07"]) == {"a\x07": "a\\x07 (2)", "a\\x07": "a\\x07", "b": "b"}
    many = ["\x07\\x08", "\\x07\x08", "\\x07\\x08", "\\x07\\x08 (2)"]
    assert len(set(shown_as(many).values())) == 4


def test_members_are_matched_by_the_names_that_they_were_given():
    release = release_of(pd.DataFrame(np.ones((4, 3), dtype=int), columns=["a\x07", "a\\x07", "b"]))
    found = along(cv.TopicModel(1, **QUICK).fit(release), "word")
    assert found.names == ["a\x07", "a\\x07", "b"]
    assert found.shown == ["a\\x07 (2)", "a\\x07", "b"]


def test_two_fits_call_the_same_name_the_same():
    def kinds(names):
        mean = np.full((1, len(names), 1), 1.0 / len(names))
        return [Kind(TOPICS, pd.DataFrame(), [Along("word", names, False, mean, list(shown_as(names).values()))])]

    one, other = kinds(["a\x07", "c"]), kinds(["c", "a\\x07"])
    assert one[0].along[0].shown[0] == other[0].along[0].shown[1] == "a\\x07"
    ((one,), (other,)) = shown_alike([one, other])
    assert one.along[0].shown == ["a\\x07 (2)", "c"]
    assert other.along[0].shown == ["c", "a\\x07"]
    assert listed(one.along[0], sizes([1.0]), 2)["labels"] == ["a\\x07 (2)", "c"]


def sizes(prevalence):
    """Components of these sizes that all chains have."""
    return pd.DataFrame({"prevalence": prevalence, "support": 1.0})


def test_a_member_s_share_of_all_counts_is_weighted_by_size_and_support():
    table = pd.DataFrame({"prevalence": [0.6, 0.4, 0.5], "support": [1.0, 0.5, 0.5]})
    mean = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_allclose(overall(table, mean), np.array([0.6 + 0.1, 0.1 + 0.25]) / 1.05)
    one_chain = pd.DataFrame({"prevalence": [0.6, 0.4], "support": [np.nan, np.nan]})
    np.testing.assert_allclose(overall(one_chain, mean[:2]), [0.8, 0.2])


def test_the_first_of_each_component_and_the_best_of_each_member_are_kept():
    rng = np.random.default_rng(3)
    mean, prevalence = rng.dirichlet(np.full(30, 0.3), 9), rng.dirichlet(np.ones(9))
    also = np.zeros(mean.shape, dtype=bool)
    also[4, np.argmin(mean[4])] = True
    found = kept(mean, prevalence, 4, also)
    for k, v in np.ndindex(*mean.shape):
        first = (mean[k] > mean[k, v]).sum() < 4
        best = (mean[:, v] > mean[k, v]).sum() < COMPONENTS_OF_A_MEMBER
        assert found[k, v] == (first or best or also[k, v])


def test_of_very_many_members_the_small_ones_are_left_out(monkeypatch):
    monkeypatch.setattr("countveil.report.browse.gathered.MOST_MEMBERS", 2)
    mean = np.array([[0.5, 0.1, 0.4, 0.0], [0.1, 0.7, 0.15, 0.05]])
    each = Along("word", list("abcd"), False, mean[:, :, None])
    found = listed(each, sizes([0.5, 0.5]), 2)
    assert found["labels"] == ["b", "a", "c"]  # by their shares of all counts; c is second of both components
    assert found["left"] == 1
    assert found["top"] == [[1, 2], [0, 2]]
    assert found["entries"] == [[[0, 0.1], [1, 0.7]], [[0, 0.5], [1, 0.1]], [[0, 0.4], [1, 0.15]]]


def test_numbers_have_four_digits():
    assert short([1 / 3, 0.0, 1234567.0, 2e-9]) == [0.3333, 0.0, 1235000.0, 2e-9]


MANY = {"doc": "documents"}


def test_shares_of_a_row_are_those_of_its_expected_counts(column_fit):
    """n_dk is what a rate with topic k alone expects of row d, draw by draw."""
    found = row_shares(column_fit, "doc")
    posterior = column_fit.posterior["posterior"]
    theta, phi, p = (posterior[name].to_numpy()[0] for name in ("theta", "phi", "p"))
    order = column_fit.parts.support()["component"].to_numpy()
    draws = []
    for s in range(len(theta)):
        size = -p[s] / ((1 - p[s]) * np.log1p(-p[s]))
        counts = np.array([[(theta[s, d, k] * phi[s, k] * size).sum() for k in order] for d in range(len(PEOPLE))])
        draws.append(counts)
    shares = np.array([each / each.sum(axis=1, keepdims=True) for each in draws])
    np.testing.assert_allclose(found.values[:, :, 0], shares.mean(axis=0), rtol=1e-5)
    ends = np.quantile(shares, [0.05, 0.95], axis=0)
    np.testing.assert_allclose(np.moveaxis(found.values[:, :, 1:], 2, 0), ends, rtol=1e-4)
    np.testing.assert_allclose(found.size, np.sum(draws, axis=2).mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(found.size, column_fit.rate().sum("word"), rtol=1e-4)


def test_chains_are_averaged_only_where_they_have_the_component(monkeypatch):
    """Chain 1 numbers its components the other way round; component 1 of chain 0 is its own."""
    rng = np.random.default_rng(5)
    shares, sizes = rng.dirichlet(np.ones(4), (2, 6, 2)), rng.dirichlet(np.ones(2), (2, 6))
    found = [Matched(np.array([0, 1]), np.array([0, 1]), 1.0), Matched(np.array([0]), np.array([1]), 0.5)]
    reader = SimpleNamespace(
        axes={"doc": np.arange(4)}, why_no_intervals="",
        listed_along=lambda axis: SimpleNamespace(group="k"), matches=lambda group: found,
        chains_along=lambda axis: [Chain(s, z, 0.5) for s, z in zip(shares, sizes, strict=True)],
    )  # fmt: skip
    fit = SimpleNamespace(_reader=reader)
    monkeypatch.setattr("countveil.report.browse.gathered.mean_of_rows", lambda fit: np.ones(4))
    monkeypatch.setattr("countveil.report.browse.gathered.AT_ONCE", 3)
    values = row_shares(fit, "doc").values[:, :, 0]
    made = shares * sizes[..., None]
    made /= made.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(values[:, 0], np.concatenate([made[0, :, 0], made[1, :, 1]]).mean(axis=0))
    np.testing.assert_allclose(values[:, 1], made[0, :, 1].mean(axis=0))


def test_rows_are_hidden_numbered_or_named(fit):
    assert rows_of(fit, "hidden", MANY) is None
    assert rows_of(fit, "numbers", MANY)["labels"][:2] == ["doc 0", "doc 1"]
    named = rows_of(fit, "labels", MANY)
    assert named["labels"] == PEOPLE
    assert named["plural"] == "documents"
    mean = row_shares(fit, "doc").values[:, :, 0]
    for k, members in enumerate(named["top"]):
        assert members == np.argsort(-mean[:, k], kind="stable").tolist()
        for d in members:
            assert k in [entry[0] for entry in named["entries"][d]]


def test_of_very_many_rows_those_stay_that_a_component_is_largest_in(fit, monkeypatch):
    monkeypatch.setattr("countveil.report.browse.gathered.MOST_ROWS", 5)
    monkeypatch.setattr("countveil.report.browse.gathered.TOP_ROWS", 1)
    monkeypatch.setattr("countveil.report.browse.gathered.SHARES_OF_A_ROW", 1)
    found, mean = rows_of(fit, "labels", MANY), row_shares(fit, "doc").values[:, :, 0]
    assert set(found["labels"]) == {PEOPLE[d] for d in mean.argmax(axis=0)}
    assert found["left"] == len(PEOPLE) - len(found["labels"])
    assert all(k in [entry[0] for entry in found["entries"][d]] for k, (d,) in enumerate(found["top"]))


def test_a_component_whose_largest_row_has_larger_ones_is_listed_there_once(fit, monkeypatch):
    monkeypatch.setattr("countveil.report.browse.gathered.TOP_ROWS", 1)
    monkeypatch.setattr("countveil.report.browse.gathered.SHARES_OF_A_ROW", 1)
    shares = np.tile([0.6, 0.3, 0.1], (len(PEOPLE), 1))
    shares[4], shares[7] = [0.5, 0.4, 0.1], [0.2, 0.1, 0.7]
    made = RowShares(shares[:, :, None], np.ones(len(PEOPLE)))
    monkeypatch.setattr("countveil.report.browse.gathered.row_shares", lambda fit, axis: made)
    found = rows_of(fit, "labels", MANY)
    assert found["top"] == [[0], [4], [7]]
    listed = [[entry[0] for entry in entries] for entries in found["entries"]]
    assert listed == [[2] if d == 7 else [0, 1] if d == 4 else [0] for d in range(len(PEOPLE))]


@pytest.mark.parametrize(("name", "axis"), [("topic_fit", "doc"), ("block_fit", None), ("tensor_fit", None)])
def test_rows_that_components_list_themselves_have_no_view(request, name, axis):
    assert rows_axis(request.getfixturevalue(name)) == axis
