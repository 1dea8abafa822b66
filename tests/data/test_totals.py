"""Totals beside reports: what is read, what happens to them as data are rearranged, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.data.totals import NONE, moved_within, read_totals
from countveil.inference.totals import open_cells
from countveil.kernels.report_kernels import LEAST, MOST

m = cv.mechanisms
NAN = np.nan
COUNTS = np.random.default_rng(1).poisson(4.0, (3, 4, 2))
REPORTS = np.where((COUNTS > 0) & (COUNTS < 6), NAN, COUNTS)


def sums(totals, counts):
    """(sums of counts in each total, the totals), which are exact."""
    group = totals.groups[0].ravel()
    found = np.bincount(group[group >= 0], counts.ravel()[group >= 0], minlength=totals.size)
    np.testing.assert_array_equal(*totals.bounds)
    return found, totals.bounds[0]


@pytest.mark.parametrize("axis", [0, 2, -1, (0, 2), (0, 1, 2)])
def test_totals_over_axes_belong_to_their_cells_in_every_matrix_form(axis):
    data = cv.Reports(REPORTS, m.Suppression(6), totals=[(axis, COUNTS.sum(axis=axis))])
    np.testing.assert_array_equal(*sums(data.totals, COUNTS))
    turned = data.matricized((0, 2), (1,))
    assert turned.totals.groups[0].shape == turned.shape == (6, 4)
    np.testing.assert_array_equal(*sums(turned.totals, COUNTS.transpose(0, 2, 1)))


def test_groups_unknown_totals_and_labels_are_read():
    group = np.array([[0, 0, NONE], [1, 1, 2]])
    found = read_totals([(group, [5, NAN, 7], "exact")], (2, 3))
    assert found.groups[0].tolist() == [[0, 0, NONE], [NONE, NONE, 2]]
    assert found.bounds[0][[0, 2]].tolist() == [5, 7]
    frame = pd.DataFrame([[NAN, 12.0], [11.0, NAN]], index=["a", "b"], columns=["x", "y"])
    by_label = pd.Series([15, 16], index=["a", "b"])
    data = cv.Reports(frame, m.Suppression(10), totals=[(1, by_label)])
    assert data.totals.bounds[0].tolist() == [15, 16]
    assert repr(data).endswith("2 totals)")
    with pytest.raises(ValueError, match="totals"):
        cv.Reports(frame, m.Suppression(10), totals=[(1, by_label[::-1])])


def test_a_total_that_loses_a_cell_is_unknown():
    reports = REPORTS[:, :, 0]
    across = cv.Reports(reports, m.Suppression(6), totals=[(0, COUNTS[:, :, 0].sum(axis=0))])
    assert (across.take(np.array([0, 2])).totals.groups[0] == NONE).all()
    within = cv.Reports(reports, m.Suppression(6), totals=[(1, COUNTS[:, :, 0].sum(axis=1))])
    assert within.take(np.array([2, 0])).totals.groups[0][:, 0].tolist() == [2, 0]
    assert across.also(reports, m.Suppression(6)).totals is not None


def test_counts_of_some_rows_need_not_meet_totals_that_lost_a_cell():
    counts, rows = COUNTS[:, :, 0], np.array([0, 2])
    given = [(0, counts.sum(axis=0)), (1, counts.sum(axis=1))]
    data = cv.Reports(REPORTS[:, :, 0], m.Suppression(6), totals=given)
    cells = open_cells(data.take(rows))
    found = moved_within(cells.overlap, cells.kernel, cells.code, np.ones(cells.entry.size, np.int64))
    known = cells.overlap.fixed_t[4:][rows]
    np.testing.assert_array_equal(np.bincount(cells.row, found) + known, counts[rows].sum(axis=1))


@pytest.mark.parametrize(
    ("totals", "message"),
    [
        ([(1, [30, 40])], "one of 30 from cells that add up to between 13 and 21, the total of row 0: correct it, or"),
        ([(1, [15, 14])], "one of 14 from cells that add up to 15 or more"),
        ([(1, [15])], r"values of totals must have the shape \(2,\)"),
        ([(1, [15, 20.5])], "whole numbers"),
        ([(1, [-1, 20])], "non-negative"),
        ([(5, [15, 20])], "axis of totals"),
        ([("a", [15, 20])], "axis of totals must be one of the 2 axes, got 'a'"),
        ([((0, 0), [15, 20])], "axis of totals must be one of the 2 axes"),
        ([(True, [15, 20])], "axis of totals must be a whole number, got True"),
        ([], "at least one family"),
        (
            [(1, [15, 20]), (0, [16, 20])],
            "have: the total of row 0 is 15, but the total of column 0 is 16, and the cells in only one of these sums",
        ),
        ([(1, [30, 20], m.RandomRounding(5))], "one between 26 and 34 from cells that add up to between 13 and 21"),
        ([(1, [15, 20], m.Rounding(10))], "reports must be"),
        ([(1, [15, 20], m.Table([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]))], "log-concave"),
        ([([[0, 1], [1, 5]], [15, 20])], "from -1 to 1, got 5"),
        ([([0, 1], [15, 20])], "groups of totals must have the shape"),
    ],
)
def test_totals_that_do_not_fit_are_refused(totals, message):
    with pytest.raises(ValueError, match=message):
        cv.Reports([[NAN, 12], [15, 0]], m.Suppression(10), [[False, False], [False, True]], totals=totals)


def test_a_total_that_is_refused_is_named():
    frame = pd.DataFrame([[4.0, 12.0], [15.0, 0.0]], pd.Index(["A", "B"], name="county"), ["x", "y"])
    groups = [[0, 1], [1, 0]]
    for totals, named in (
        ((1, [16, 14]), "county 'B'"),
        ((0, [19, 13]), "column 'y'"),
        (((0, 1), 32), "all cells"),
        ((groups, [4, 28]), "2 cells, the first of them in county 'A', column 'y'"),
    ):
        with pytest.raises(ValueError, match=f"the total of {named}: correct it, or leave it out"):
            cv.Reports(frame, m.Interval(0, None), totals=[totals])


def test_totals_that_conflict_only_together_are_named():
    """Each of these may be right by itself."""
    hidden = pd.DataFrame(NAN, pd.Index(list("abcde"), name="county"), ["x", "y"])

    def refused(*totals, reports=hidden):
        with pytest.raises(ValueError, match="totals that no counts have: the total") as refusal:
            cv.Reports(reports, m.Suppression(10), totals=list(totals))
        return str(refusal.value).partition("no counts have: ")[2]

    rows = (1, [9, 9, 9, 9, 9])
    assert refused(rows, (0, [20, 26])) == (
        "the totals of column 'x' and column 'y' add up to 46, but the totals of county 'a', county 'b', county 'c' "
        "and 2 more add up to 45, of the same cells. Correct one of them, or leave it out"
    )
    assert refused(rows, ((0, 1), 46)).startswith(
        "the total of all cells is 46, but the totals of county 'a', county 'b', county 'c' and 2 more add up to 45, of"
    )
    one = hidden.iloc[:2]
    assert refused((1, [NAN, 3]), (0, [NAN, 14]), reports=one).startswith(
        "the total of column 'y' is 14, but the total of county 'b' is 3, and the cells in only one of these sums"
    )
    states = np.repeat([[0], [0], [1], [1], [1]], 2, axis=1)
    assert refused((1, [9] * 4 + [NAN]), (states, [19, 30])).startswith(
        "the total of 4 cells, the first of them in county 'a', column 'x' is 19, but the totals of county 'a' and "
        "county 'b' add up to 18, of the same cells"
    )
    noisy = (1, [12, 3], m.RandomRounding(3))
    assert refused(noisy, (0, [15, 15]), reports=one).startswith(
        "the totals of column 'x' and column 'y' add up to 30, but the totals of county 'a' and county 'b' add up to "
        "between 11 and 19, of the same cells"
    )
    assert refused(rows, (0, [20, 26]), reports=hidden.to_numpy()).startswith("the totals of column 0 and column 1")


@pytest.mark.parametrize("seed", range(3))
def test_totals_that_are_named_have_no_table_by_themselves(seed):
    """The totals in an error conflict whatever the others are, which leaving the others out shows."""
    rng, conflicts = np.random.default_rng(seed), 0
    for _ in range(60):
        reports = np.where(rng.random((3, 3)) < 0.7, NAN, rng.integers(4, 7, (3, 3)))
        mechanism, totals = m.Suppression(4), []
        for axis in (1, 0):
            near = np.where(np.isnan(reports), 2, reports).sum(axis=axis) + rng.integers(-2, 3, 3)
            totals.append((axis, np.where(rng.random(3) < 0.2, NAN, near)))
        try:
            cv.Reports(reports, mechanism, totals=totals)
        except ValueError as error:
            if "no counts have" not in str(error) or "more" in str(error):
                continue
            conflicts += 1
            for (_, values), word in zip(totals, ("row", "column"), strict=True):
                values[[f"{word} {i}" not in str(error) for i in range(3)]] = NAN
            with pytest.raises(ValueError, match="no counts have"):
                cv.Reports(reports, mechanism, totals=totals)
    assert conflicts > 5


def test_other_things_are_refused():
    with pytest.raises(
        TypeError, match=r'mechanism of totals must be "exact" or one of countveil.mechanisms, got float'
    ):
        cv.Reports([[NAN, 12]], m.Suppression(10), totals=[(1, [15], 1.0)])
    with pytest.raises(TypeError, match="totals must be a list"):
        cv.Reports([[NAN, 12]], m.Suppression(10), totals=5)
    with pytest.raises(ValueError, match="log-concave"):
        cv.Reports([[0, 1]], m.Table([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]), totals=[(1, [1])])


def test_totals_of_no_cells_are_zero():
    group = np.array([[0, 0, 1], [1, 1, 1]])
    with pytest.raises(ValueError, match="total 2 must be 0, since no cell is in it, got 7"):
        read_totals([(group, [5, 6, 7])], (2, 3))
    assert read_totals([(group, [5, 6, 0])], (2, 3)).bounds[0].tolist() == [5, 6, 0]
    data = cv.Reports(REPORTS[:, :, 0], m.Suppression(6), totals=[(0, COUNTS[:, :, 0].sum(axis=0))])
    taken = data.take(np.array([0, 2]))
    assert (taken.totals.groups[0] == NONE).all()


def test_a_report_of_a_sum_of_no_cells_is_one_of_zero():
    for value, mechanism in ((9, m.RandomRounding(3)), (np.nan, m.Suppression(3))):
        with pytest.raises(ValueError, match="total 1 must be a report of 0, since no cell is in it"):
            cv.Reports([[1.0, 2.0]], m.TopCoding(5), totals=[([[0, 0]], [3, value], mechanism)])
    found = cv.Reports([[1.0, 2.0]], m.TopCoding(5), totals=[([[0, 0]], [3, -2], m.DiscreteGaussian(3))])
    assert found.totals.size == 2


def test_groups_with_labels_must_be_in_the_order_of_the_reports():
    frame = pd.DataFrame([[NAN, 12.0], [11.0, NAN]], index=["a", "b"], columns=["x", "y"])
    groups = pd.DataFrame([[0, 0], [1, 1]], index=["a", "b"], columns=["x", "y"])
    data = cv.Reports(frame, m.Suppression(10), totals=[(groups, pd.Series([15, 16], ["north", "south"]))])
    assert data.totals.groups[0].tolist() == [[0, 0], [1, 1]]
    with pytest.raises(ValueError, match="groups of totals must have the row labels"):
        cv.Reports(frame, m.Suppression(10), totals=[(groups[::-1], [15, 16])])
    for index in ([1, 0], [-1, 0]):
        with pytest.raises(ValueError, match=f"in the order of the groups' numbers, got {index[0]} at place 0"):
            cv.Reports(frame, m.Suppression(10), totals=[(groups, pd.Series([15, 16], index))])


def test_noisy_totals_are_read_by_family_and_belong_to_their_cells():
    by_row = [3.0, -1.0, NAN]
    data = cv.Reports(
        REPORTS,
        m.Suppression(6),
        totals=[
            ((1, 2), by_row, m.DiscreteGaussian(2)),
            (0, COUNTS.sum(axis=0)),
            ((0, 1, 2), COUNTS.sum(), m.Suppression(20)),
        ],
    )
    facts = data.totals.facts
    said = "2 totals with discrete Gaussian noise (sigma 2), sums over axis 1 and 2; 8 exact totals, sums over axis 0; "
    assert facts.pop("totals_used").startswith(said)
    assert facts == {"exact_totals": 9, "noisy_totals": 2}
    assert repr(data).endswith("11 totals, noisy ones with discrete Gaussian noise (sigma 2), suppression of 1 to 19)")
    turned = data.matricized((0, 2), (1,)).totals
    rows, state, by_cell = turned.groups
    assert [np.unique(each).tolist() for each in (rows, state)] == [[NONE, 0, 1], [2]]
    np.testing.assert_array_equal(rows, np.repeat([0, 0, 1, 1, NONE, NONE], 4).reshape(6, 4))
    y = COUNTS.transpose(0, 2, 1).reshape(6, 4)
    assert np.bincount(by_cell.ravel(), y.ravel())[3:].tolist() == data.totals.bounds[0][3:].tolist()
    kernel = data.totals.kernel
    assert kernel.whole_cj[1:, LEAST].tolist() == [0, 0, COUNTS.sum(), *COUNTS.sum(axis=0).ravel()]
    taken = data.take(np.array([0, 1])).totals
    assert [np.unique(each).tolist() for each in taken.groups] == [[0, 1], [NONE], [NONE]]


def test_a_hidden_total_says_something_and_an_unknown_one_nothing():
    reports, hides = [[NAN, NAN], [NAN, 0.0]], m.Suppression(10)
    hidden = cv.Reports(reports, hides, totals=[(1, [NAN, NAN], hides)]).totals
    assert hidden.kernel.whole_cj[1:, MOST].tolist() == [9, 9]
    unknown = cv.Reports(reports, hides, totals=[(1, [NAN, 6.0], m.RandomRounding(3))]).totals
    assert unknown.groups[0].tolist() == [[NONE, NONE], [0, 0]]
    with pytest.raises(ValueError, match="one between 1 and 9 from cells that add up to between 13 and 21"):
        cv.Reports([[NAN, 12.0]], hides, totals=[(1, [NAN], hides)])


def test_a_family_that_crosses_two_others_must_be_of_noise_without_bounds():
    reports = np.full((2, 2, 2), NAN)
    sums = [(axis, np.full((2, 2), 6.0), m.RandomRounding(3)) for axis in range(3)]
    with pytest.raises(ValueError, match="belong to two hierarchies"):
        cv.Reports(reports, m.Suppression(10), totals=sums)
    wide = [*sums[:2], (2, np.full((2, 2), 6.0), m.DiscreteGaussian(1))]
    assert cv.Reports(reports, m.Suppression(10), totals=wide).totals.facts["noisy_totals"] == 12


def test_reports_with_a_gap_have_no_totals_and_others_of_the_same_rules_have():
    rules = m.Composed(m.Suppression(3), m.Rounding(20))
    found = cv.Reports([[np.nan, 20]], rules, totals=[(1, [30])])
    assert found.totals.in_words
    with pytest.raises(ValueError, match="must be log-concave in the count, got mechanism"):
        cv.Reports([[0, 20]], rules, totals=[(1, [30])])
    with pytest.raises(ValueError, match="mechanism of totals must have a log-concave kernel"):
        cv.Reports([[6, 4]], m.Rounding(2, "up"), totals=[(1, [0], rules)])
