import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from countveil.data.tables.axes import codes_of_words
from countveil.data.tables.total_lines import TotalLine, refuse_totals, split_levels, total_levels, total_lines

RNG = np.random.default_rng(7)
COUNTS = RNG.poisson(RNG.gamma(2.0, 10.0, (8, 5))).astype(float)
WITH_TOTAL = np.vstack([COUNTS, COUNTS.sum(axis=0)])
LABELS = [f"place {i}" for i in range(8)]
NAMES = [
    *("Total", "All", "TOTAL", "insgesamt", "Gesamt", "Summe", "all ages", "Total, all causes", "Male | Total"),
    *(
        "Grand total",
        "Összesen",
        "서울 계",
        "합계",
        "総数",
        "女 総数",
        "總計",
        "计",
        "Σύνολο",
        "ΣΥΝΟΛΟ",
        "Ukupno",
        "Kvinder i alt",
    ),
    *("Skupaj", "Spolu", "Iš viso", "Kokku", "Kopā", "Samtals", "Общо", "Усього", "Les deux sexes", "Begge kjønn"),
    *("Totaal mannen en vrouwen", "Σύνολο Χώρας", "Всего по области", "Totale complessivo"),
]


@pytest.mark.parametrize("name", NAMES)
def test_totals_are_known_by_name(name):
    assert total_lines(WITH_TOTAL, [*LABELS, name]) == [TotalLine(8, name, True)]


def test_a_named_total_is_weighed_where_it_is_known():
    hidden = WITH_TOTAL.copy()
    hidden[8, 1:] = np.nan
    assert total_lines(hidden, [*LABELS, "Insgesamt"]) == [TotalLine(8, "Insgesamt", True)]
    hidden[8, 0] /= 3  # a word of a vocabulary
    assert total_lines(hidden, [*LABELS, "all"]) == []


def test_persons_are_a_total_beside_men_and_women():
    hidden = WITH_TOTAL[[0, 1, 8]].copy()
    hidden[0, 0] = np.nan
    for one, other, both in (("Males", "Females", "Persons"), ("Hommes", "Femmes", "Personnes")):
        assert total_lines(hidden, [one, other, both]) == [TotalLine(2, both, True)]
    assert total_lines(hidden, ["Households", "Families", "Persons"]) == []
    words = np.array([[3, 0, 5, 2, 0, 1], [1, 4, 0, 2, 3, 0], [4, 2, 3, 7, 1, 5]], float)
    for values in (words, sp.csr_array(words)):
        assert total_lines(values, ["men", "women", "people"]) == []


def test_a_range_of_years_is_a_total_beside_its_ends():
    hidden = WITH_TOTAL[[0, 1, 8]].copy()
    hidden[0, 0] = np.nan
    assert total_lines(hidden, ["2019", "2020", "2019–2020"]) == [TotalLine(2, "2019–2020", True)]
    assert total_lines(hidden, ["2019", "2020", "2015–2017"]) == []
    assert total_lines(hidden, ["2017-2018", "2018-2019", "2019-2020"]) == []
    mean = np.vstack([COUNTS[:3], COUNTS[:3].mean(axis=0)])
    assert total_lines(mean, ["2018", "2019", "2020", "2018-2020"]) == []


def test_a_table_of_nothing_but_totals_has_none():
    assert total_lines(COUNTS[:1], ["Total"]) == []


def test_names_that_are_stated_and_words_of_a_vocabulary():
    assert total_lines(WITH_TOTAL, [*LABELS, "City"], ["city"]) == [TotalLine(8, "City", True)]
    small = WITH_TOTAL.copy()
    small[8] = 1.0
    assert total_lines(small, [*LABELS, "all"]) == []  # a word among others
    assert total_lines(small, [*LABELS, "all"], ["All"]) == [TotalLine(8, "all", True)]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.coo_array])
def test_totals_are_known_by_their_sums(kind):
    place = [3, 0, 1, 2, 8, 4, 5, 6, 7]
    found = total_lines(kind(WITH_TOTAL[place]), None)
    assert [(line.place, line.named) for line in found] == [(4, False)]
    assert str(found[0]) == "'number 5' (the sum of the others)"
    assert total_lines(kind(COUNTS), None) == []


def test_totals_of_hidden_counts_are_known_by_their_sums():
    shown = WITH_TOTAL.copy()
    shown[:8][shown[:8] < 10] = np.nan
    assert np.isnan(shown).any(axis=0).all()  # no sum is complete
    assert [line.place for line in total_lines(shown, [*LABELS, "City"])] == [8]
    shown[8] += 200.0
    assert total_lines(shown, [*LABELS, "City"]) == []


def test_a_few_small_sums_are_no_totals():
    assert total_lines(np.array([[1.0, 0, 1], [0, 1, 0], [1, 1, 1]]), None) == []
    assert total_lines(np.array([[50.0, 60], [50, 60]]), None) == []


FRAME = pd.DataFrame(
    [(f"p{i}", f"k{j}", COUNTS[i, j]) for i in range(8) for j in range(5)], columns=["place", "kind", "n"]
)
WHOLE = pd.concat(
    [
        FRAME,
        FRAME.groupby("place", as_index=False)["n"].sum().assign(kind="All"),
        FRAME.groupby("kind", as_index=False)["n"].sum().assign(place="City"),
        pd.DataFrame([("City", "All", FRAME["n"].sum())], columns=["place", "kind", "n"]),
    ],
    ignore_index=True,
)


def test_levels_of_a_long_table():
    found = total_levels(WHOLE, ["place", "kind"], WHOLE["n"].to_numpy())
    assert {axis: [line.label for line in lines] for axis, lines in found.items()} == {
        "place": ["City"],
        "kind": ["All"],
    }
    kept, tables = split_levels(WHOLE, ["place", "kind"], "n", found)
    pd.testing.assert_frame_equal(WHOLE[kept], FRAME)
    assert [list(table.columns) for table in tables] == [["kind", "n"], ["place", "n"], ["n"]]
    assert tables[2]["n"].tolist() == [FRAME["n"].sum()]
    assert total_levels(FRAME, ["place", "kind"], FRAME["n"].to_numpy()) == {}


def test_an_empty_level_is_one_of_totals():
    empty = WHOLE.replace({"All": "", "City": "p9"})
    empty = empty[empty["place"] != "p9"]
    found = total_levels(empty, ["place", "kind"], empty["n"].to_numpy())
    assert [str(line) for line in found["kind"]] == ["(empty)"]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_an_owner_is_refused_by_label_and_without_a_count(kind):
    with pytest.raises(ValueError, match="row 'All': one event would change several counts") as error:
        refuse_totals("t.csv", kind(WITH_TOTAL), [*LABELS, "All"], None)
    assert str(int(COUNTS.sum())) not in str(error.value)
    with pytest.raises(ValueError, match=r"column 'number 9' \(the sum of the others\)"):
        refuse_totals("t.npy", kind(WITH_TOTAL.T), None, None)
    refuse_totals("t.npy", kind(COUNTS), None, None)


SUBTOTALS = [[10, 13], [12, 27], [22, 40], [5, 6], [30, 8], [35, 14], [57, 54]]


@pytest.mark.parametrize("last", ["All", "z"])
def test_totals_of_neighbours_are_totals(last):
    lines = total_lines(np.array(SUBTOTALS, dtype=float), ["a", "b", "N", "c", "d", "S", last])
    assert [(line.label, line.named, line.is_partial) for line in lines[:2]] == [("N", False, True), ("S", False, True)]
    assert str(lines[0]) == "'N' (the sum of 2 others)"
    assert (lines[2].label, lines[2].is_partial) == (last, False)
    values = np.array(SUBTOTALS[:-1], dtype=float)
    values[[2, 5], [0, 1]] += 1
    assert total_lines(values, list("abNcdS")) == []


def test_totals_of_parts_by_their_labels_are_totals():
    values = np.array([[10, 12], [5, 9], [4, 7], [6, 5]], dtype=float)
    lines = total_lines(values, ["North", "South", "North A", "North B"])
    assert [str(line) for line in lines] == ["'North' (the sum of 2 others)"]
    assert total_lines(values, ["w", "x", "y", "z"]) == []


def test_small_counts_are_no_sums_of_neighbours():
    counts = np.random.default_rng(1).poisson(2.0, size=(200, 5)).astype(float)
    assert total_lines(counts, None) == []


@pytest.mark.parametrize(
    "name", ["North total", "Wales: Total", "Bezirk A zusammen", "Leeds | North subtotal", "Sub-total"]
)
def test_subtotals_are_known_by_the_end_of_their_name(name):
    table = np.array([[12, np.nan], [14, 15], [26, 18], [300, 200], [250, 190]])
    found = total_lines(table, ["a", "b", name, "c", "d"])
    assert [(line.place, line.named, line.is_partial) for line in found] == [(2, True, True)]
    assert total_lines(WITH_TOTAL, [*LABELS, name]) == [TotalLine(8, name, True)]
    assert total_lines(COUNTS[:3], ["a", "teetotal", "totality"]) == []


HIDDEN = np.array(
    [[120, np.nan, 151], [140, 15, 155], [260, 46, 306], [np.nan, 170, 182], [180, 190, 370], [192, 360, 552]]
)


def test_all_others_are_no_total():
    assert total_lines(np.array([[12, 13], [7, 9], [6, 8]]), ["All other causes", "a", "b"]) == []


def test_counts_that_are_hidden_for_others_may_be_larger_than_those_shown():
    whole = np.vstack([HIDDEN[[0, 1, 3, 4]], [452, 406, 858]])
    assert [line.place for line in total_lines(whole, None)] == [4]  # 31 is hidden, and 15 is shown
    whole[4, 2] += 1.0  # of a column in which none is hidden
    assert total_lines(whole, None) == []


def test_one_column_without_hidden_counts_that_does_not_add_up_is_enough():
    shown = np.random.default_rng(1).integers(100, 900, (4, 6)).astype(float)
    whole = np.vstack([shown, shown.sum(axis=0)])
    whole[0, 0] = np.nan
    assert [line.place for line in total_lines(whole, None)] == [4]
    whole[4, 3] += 1.0
    assert total_lines(whole, None, nearly=False) == []
    assert [line.nearly for line in total_lines(whole, None)] == [True]


def test_subtotals_of_hidden_counts_and_their_sum():
    whole = np.vstack([HIDDEN, [452, 406, 858]])
    found = total_lines(whole, ["a", "b", "North", "c", "d", "South", "UK"])
    assert [str(line) for line in found] == [
        "'North' (the sum of 2 others)",
        "'South' (the sum of 2 others)",
        "'UK' (the sum of the others)",
    ]
    whole[2, 0] -= 1.0
    labels = {line.label for line in total_lines(whole, ["a", "b", "North", "c", "d", "South", "UK"])}
    assert "North" not in labels


TOTALS = np.vstack([10.0 * COUNTS + 31.0, (10.0 * COUNTS + 31.0).sum(axis=0)])


@pytest.mark.parametrize("base", [2, 3, 5])
def test_totals_that_were_rounded_are_known_by_their_sums(base):
    rng = np.random.default_rng(base)
    rounded = base * np.floor(TOTALS / base + rng.random(TOTALS.shape))
    assert not (rounded[:8].sum(axis=0) == rounded[8]).all()
    assert [str(line) for line in total_lines(rounded, [*LABELS, "City"])] == ["'City' (nearly the sum of the others)"]
    assert total_lines(rounded.T, None) == []
    assert total_lines(rounded, [*LABELS, "City"], nearly=False) == []
    refuse_totals("t.csv", rounded, [*LABELS, "City"], None)
    rounded[8] *= 1.5
    assert total_lines(rounded, None) == []


def test_totals_with_noise_are_known_by_their_sums():
    noise = np.random.default_rng(1).normal(0.0, 2.0, TOTALS.shape)
    for noisy in (TOTALS + noise, TOTALS + np.round(noise)):
        assert [(line.place, line.nearly) for line in total_lines(noisy, None)] == [(8, True)]


@pytest.mark.parametrize("base", [1, 3, 10])
def test_counts_that_are_half_of_all_are_no_totals(base):
    """The hardest case: one row is expected to be the sum of all others."""
    rng = np.random.default_rng(base)
    for number in range(200):
        rest = rng.dirichlet(np.ones(2 + number % 6)) / 2.0
        rates = np.append(rest, 0.5)[:, None] * rng.uniform(50.0, 5000.0, 2 + number % 9)
        counts = base * np.floor(rng.poisson(rates) / base + rng.random(rates.shape))
        assert total_lines(counts, None) == []


@pytest.mark.parametrize(("n", "mean", "m"), [(100, 5.0, 30), (200, 10.0, 100)])
def test_half_of_many_small_counts_is_no_total(n, mean, m):
    rng = np.random.default_rng(n)
    rates = np.append(np.full(n - 1, 0.5 / (n - 1)), 0.5)[:, None] * np.full(m, mean)
    for _ in range(20):
        assert total_lines(rng.poisson(rates).astype(float), None) == []


def test_small_numbers_with_decimals_that_add_up_are_no_totals():
    assert total_lines(np.array([[0.5, 0.25], [0.5, 0.25], [1.0, 0.5]]), None) == []


def test_a_code_of_totals_beside_hidden_counts():
    shown = np.array([[np.nan, np.nan], [31.0, 44.0], [58.0, 82.0]])
    for name in ("_T", "T"):
        assert [line.label for line in total_lines(shown, ["M", "F", name])] == [name]
    letters = [chr(ord("a") + place) for place in range(26)]
    assert total_lines(RNG.poisson(5.0, (26, 8)), letters) == []
    arms = np.array([[12.0, 14.0, 5.0], [30.0, 25.0, 4.0]])  # of a trial: controls and treated
    for counts in (arms, sp.csr_array(arms)):
        assert total_lines(counts, ["C", "T"]) == []
        assert [line.label for line in total_lines(counts[:, :2], ["F", "T"])] == ["T"]


def test_numbers_that_tell_every_row_apart_are_no_codes():
    words = ["north", "north", "south", "south"]
    assert codes_of_words({"area": words, "code": ["1", "1", "2", "2"]}, ["code"], ["area"]) == ["code"]
    assert codes_of_words({"area": list("abcd"), "deaths": list("1234")}, ["deaths"], ["area"]) == []
