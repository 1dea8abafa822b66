"""Reports of any mechanism as data: what is stored, in every form that they come in, and what is refused."""

import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats

import countveil as cv
from countveil.data.mechanism_checks import check_mechanism
from countveil.data.numbering import with_bounds
from countveil.data.reports import observations_of, ranges
from countveil.kernels.entries import MASKED
from countveil.kernels.report_kernels import GUESS, LEAST, MOST, UNBOUNDED
from tests.data.same import assert_same

m = cv.mechanisms
NAN = np.nan
HIDDEN = np.array([[NAN, 0.0, 14.0], [0.0, 25.0, NAN]])


def least_and_most(data):
    """(D, V, 2) the least and the most count of every cell; -1 where it is masked."""
    codes = np.zeros(data.shape, dtype=np.int64)
    codes[data.row_numbers, data.columns] = data.reports
    found = data.noise.kernel.whole_cj[np.maximum(codes, 0)][..., [LEAST, MOST]]
    return np.where((codes == MASKED)[..., None], -1, found)


def test_two_sided_geometric_reports_are_read_as_ever():
    reports = np.array([[-1, 3, 0], [2, -4, 7]])
    assert_same(cv.Reports(reports, m.TwoSidedGeometric(0.4)), cv.PrivatizedCounts(reports, 0.4))
    fits = [
        cv.TopicModel(2, draws=5, tune=5, chains=1, seed=1, progress=False).fit(data)
        for data in (
            cv.Reports(reports, m.TwoSidedGeometric(0.4)),
            cv.PrivatizedCounts(reports, 0.4),
            cv.import_reports(reports, m.TwoSidedGeometric(0.4), "a table"),
        )
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.rate().to_numpy(), fits[0].rate().to_numpy())


def test_zeros_are_not_stored_and_suppressed_counts_are_ranges():
    data = cv.Reports(HIDDEN, m.Suppression(10))
    np.testing.assert_array_equal(least_and_most(data), [[[1, 9], [0, 0], [14, 14]], [[0, 0], [25, 25], [1, 9]]])
    assert data.reports.size == 4
    assert repr(data) == "Reports(2 x 3, suppression of 1 to 9)"


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x.tolist(),
        lambda x: pd.DataFrame(x),
        lambda x: pd.DataFrame(x).astype("Int64"),
        lambda x: pd.DataFrame(x).astype(object).where(~np.isnan(x), None),
        lambda x: pd.DataFrame(x).astype(object).where(~np.isnan(x), pd.NA),
        lambda x: sp.csr_array(x),
        lambda x: sp.coo_array(x),
        lambda x: np.ma.masked_array(x, np.zeros(x.shape, bool)),
    ],
    ids=["lists", "frame", "nullable", "None", "NA", "CSR", "COO", "masked array"],
)
def test_forms_of_values_are_the_same_data(form):
    assert_same(cv.Reports(form(HIDDEN), m.Suppression(10)), cv.Reports(HIDDEN, m.Suppression(10)))


def test_sparse_values_have_the_background_that_is_stated():
    values = sp.csr_array(np.array([[0, 12, 0], [15, 0, 0]]))
    dense = values.toarray().astype(float)
    dense[dense == 0] = NAN
    found = cv.Reports(values, m.Suppression(10, False), background=NAN)
    assert_same(found, cv.Reports(dense, m.Suppression(10, False)))
    with pytest.raises(ValueError, match="reports must be at least 10, or absent"):
        cv.Reports(values, m.Suppression(10, False))


def test_long_tables_and_coordinates_leave_out_what_is_absent():
    frame = pd.DataFrame({"county": ["b", "a", "a"], "age": ["y", "x", "z"], "deaths": [12, 30, 11]})
    absent = m.Suppression(10, False)
    found = cv.Reports.from_frame(frame, ["county", "age"], "deaths", absent)
    dense = np.array([[30, NAN, 11], [NAN, 12, NAN]])
    assert_same(found, cv.Reports(dense, absent, labels=[["a", "b"], ["x", "y", "z"]]))
    again = cv.Reports.from_coordinates([[0, 0, 1], [0, 2, 1]], [30, 11, 12], absent, shape=(2, 3))
    assert_same(again, cv.Reports(dense, absent))
    shown = cv.Reports.from_coordinates([[0, 0, 1], [0, 2, 1]], [30, NAN, 12], m.Suppression(10), shape=(2, 3))
    assert_same(shown, cv.Reports(np.array([[30, NAN, NAN], [NAN, 12, NAN]]), m.Suppression(10)))


def test_tensors_keep_their_axes_and_labels():
    values = np.arange(24.0).reshape(2, 3, 4)
    labels = [list("ab"), list("cde"), list("fghi")]
    data = cv.Reports(values, m.DiscreteGaussian(2), labels=labels)
    assert data.mode_shape == (2, 3, 4)
    assert data.labels == tuple(labels)
    assert data.noise.value_c[data.reports[5]] == 5.0


def test_mechanisms_by_row_and_by_cell():
    values = np.array([[3, 6], [1, 7]])
    by_row = cv.Reports(values, [[m.RandomRounding(3)], [m.TopCoding(7)]])
    np.testing.assert_array_equal(least_and_most(by_row)[:, :, 0], [[1, 4], [1, 7]])
    cells = np.array([[m.RandomRounding(3), m.TopCoding(6)], [m.TopCoding(6), m.TopCoding(7)]], dtype=object)
    by_cell = cv.Reports(values, cells)
    np.testing.assert_array_equal(least_and_most(by_cell)[:, :, 0], [[1, 6], [1, 7]])
    frame = pd.DataFrame(values, index=["p", "q"])
    series = pd.Series([m.RandomRounding(3), m.TopCoding(7)], index=["p", "q"])
    np.testing.assert_array_equal(least_and_most(cv.Reports(frame, series)), least_and_most(by_row))
    with pytest.raises(ValueError, match="mechanism must have the row labels of reports in their order"):
        cv.Reports(frame, series[::-1])
    with pytest.raises(ValueError, match="mechanism must be one, one per row"):
        cv.Reports(values, [m.TopCoding(9)] * 3)


def test_a_list_of_mechanisms_says_whether_it_goes_by_row_or_by_column():
    two, wide, square = [m.RandomRounding(3), m.TopCoding(9)], np.full((3, 2), 6), np.full((2, 2), 6)
    assert_same(cv.Reports(wide, two), cv.Reports(wide, np.array([two])))
    with pytest.raises(ValueError, match=r"\(2, 1\), one per row, or \(1, 2\), one per column, .* got a list of 2"):
        cv.Reports(square, two)
    assert cv.Reports(square, [two[0]] * 2).mode_shape == (2, 2)
    by_row = cv.Reports(square, np.array(two)[:, None])
    for same in (cv.Reports(square, pd.Series(two)), observations_of(cv.import_reports(square, two, "s"))):
        assert_same(same, by_row)
    assert not np.array_equal(cv.Reports(square, np.array([two])).reports, by_row.reports)


def test_simulated_noise_is_said_from_the_data_to_the_fit(tmp_path):
    values, rounding = np.full((4, 3), 6), m.RandomRounding(3)
    data = cv.Reports(values, rounding, simulated=True)
    assert data.provenance.simulated
    assert "simulated noise" in repr(data)
    assert not cv.Reports(values, rounding).provenance.simulated
    assert cv.Reports(values, rounding).also(values, m.TopCoding(9), simulated=True).provenance.simulated
    assert data.also(values, m.TopCoding(9)).provenance.simulated
    assert data.take(np.arange(2)).provenance.simulated
    frame = pd.DataFrame({"row": list("ab"), "column": list("xy"), "n": [3, 6]})
    assert cv.Reports.from_frame(frame, ["row", "column"], "n", rounding, simulated=True).provenance.simulated
    assert cv.Reports(values, m.TwoSidedGeometric(0.5), simulated=True).provenance.simulated
    cv.import_reports(values, rounding, "a test", simulated=True).save(tmp_path / "r.npz")
    release = cv.Release.load(tmp_path / "r.npz")
    assert release.simulated
    assert "SIMULATED research noise" in release.describe()
    fit = cv.TopicModel(1, chains=1, tune=2, draws=2, seed=1, progress=False)
    fit.fit(data).save(tmp_path / "fit.nc")
    assert cv.TopicModel.load(tmp_path / "fit.nc").posterior.attrs["simulated_noise"] == 1
    for wrong in (1, "yes", None):
        with pytest.raises(TypeError, match="simulated must be True or False"):
            cv.Reports(values, rounding, simulated=wrong)


def test_a_second_report_narrows_what_is_known():
    values, mask = np.array([[3, 6], [0, 9]]), np.array([[False, True], [False, False]])
    both = cv.Reports(values, m.RandomRounding(3), mask).also(
        np.array([[4, 5], [0, 10]]), m.TopCoding(10), [[False, False], [False, True]]
    )
    np.testing.assert_array_equal(least_and_most(both), [[[4, 4], [5, 5]], [[0, 0], [7, 11]]])
    noisy = cv.Reports(values, m.DiscreteGaussian(3)).also(values + 4, m.DiscreteGaussian(1))
    code = noisy.reports[0]
    assert noisy.noise.kernel.real_cj[code, GUESS] == pytest.approx((3 / 9 + 7) / (1 / 9 + 1))
    with pytest.raises(ValueError, match="reports of one count must be possible together"):
        cv.Reports([[3]], m.RandomRounding(3)).also([[9]], m.RandomRounding(3))
    with pytest.raises(ValueError, match="also must be called on reports as they were read, got a part of them"):
        noisy.take(np.array([0])).also(values, m.DiscreteGaussian(1))
    with pytest.raises(ValueError, match=r"values must have the shape of the first report \(2, 2\)"):
        noisy.also(values[:1], m.DiscreteGaussian(1))


def test_the_order_of_reports_does_not_matter():
    values = np.array([[3, 6], [0, 9]])
    one = cv.Reports(values, m.RandomRounding(3)).also(values + 1, m.DiscreteGaussian(2))
    other = cv.Reports(values + 1, m.DiscreteGaussian(2)).also(values, m.RandomRounding(3))
    np.testing.assert_array_equal(least_and_most(one), least_and_most(other))
    np.testing.assert_allclose(one.noise.kernel.real_cj[one.reports], other.noise.kernel.real_cj[other.reports])


@pytest.mark.parametrize(
    ("values", "mechanism", "rule"),
    [
        ([[1.5]], m.DiscreteGaussian(1), r"reports must be whole numbers, got 1.5 at index \(0, 0\)"),
        ([[3, 4]], m.RandomRounding(3), r"reports must be multiples of 3, .*got 4.0 at index \(0, 1\)"),
        ([[NAN]], m.Gaussian(1), "reports must not be missing, because Gaussian gives every count a report"),
        ([[5]], m.Suppression(10), "reports must be 0, at least 10, or absent"),
        (np.empty((0, 3)), m.Gaussian(1), "reports must have at least one row and one column"),
    ],
)
def test_reports_that_no_mechanism_made_are_refused(values, mechanism, rule):
    with pytest.raises(ValueError, match=rule):
        cv.Reports(values, mechanism)


def test_what_is_no_mechanism_is_refused():
    with pytest.raises(TypeError, match=r"mechanism must be one of countveil\.mechanisms, got float"):
        cv.Reports([[1]], 0.5)


def test_masks_leave_cells_out_whatever_they_hold():
    mask = np.array([[True, False]])
    data = cv.Reports(np.array([[7.5, 3.0]]), m.RandomRounding(3), mask)
    np.testing.assert_array_equal(least_and_most(data)[..., 0], [[-1, 1]])


@pytest.mark.parametrize("mechanism", [m.Gaussian(1), m.Suppression(10)])
def test_a_mask_of_all_cells_is_refused(mechanism):
    with pytest.raises(ValueError, match="mask must leave a report, got one of all cells"):
        cv.Reports([[11, 12], [13, 14]], mechanism, mask=np.ones((2, 2), bool))


def test_estimates_suppose_the_spread_of_all_counts():
    few = cv.Reports(np.array([[NAN] * 40 + [0.0] * 400]), m.Suppression(10))
    many = cv.Reports(np.array([[NAN] * 40 + [50.0] * 400]), m.Suppression(10))
    low, high = (max(d.noise.kernel.real_cj[d.reports[:40], GUESS]) for d in (few, many))
    assert 1.0 < low < 3.0 < high < 6.0


def test_observations_are_passed_on():
    data = cv.Reports(HIDDEN, m.Suppression(10))
    assert observations_of(data) is data


def test_further_reports_have_the_labels_of_the_first():
    first = cv.Reports(pd.DataFrame([[1, 2]], index=["r"], columns=["a", "b"]), cv.mechanisms.Gaussian(1))
    first.also(pd.DataFrame([[1, 2]], index=["r"], columns=["a", "b"]), cv.mechanisms.Gaussian(1))
    first.also([[1, 2]], cv.mechanisms.Gaussian(1))
    for rows, columns, name in ((["r"], ["b", "a"], "column_labels"), (["s"], ["a", "b"], "row_labels")):
        frame = pd.DataFrame([[20, 10]], index=rows, columns=columns)
        with pytest.raises(
            ValueError, match=rf"values must have the {name} of the first report, .* in their order, got \["
        ):
            first.also(frame, cv.mechanisms.Gaussian(1))


def test_sparse_values_store_each_cell_once():
    twice = sp.coo_array(([3, 4], ([0, 0], [1, 1])), shape=(2, 2))
    for read in (
        lambda: cv.Reports(twice, cv.mechanisms.DiscreteGaussian(1)),
        lambda: cv.import_reports(twice, cv.mechanisms.Suppression(10), "Others"),
    ):
        with pytest.raises(ValueError, match="values must store each cell once"):
            read()


def test_a_release_of_geometric_noise_is_privatized_counts():
    release = cv.privatize(np.array([[3, 0], [1, 5]]), cv.PrivacyLevel(1, 1))
    assert isinstance(observations_of(release), cv.PrivatizedCounts)


def test_plain_arrays_are_refused():
    with pytest.raises(TypeError, match=r"Reports\(values, mechanism\) for counts protected in another way"):
        observations_of(np.ones((2, 2)))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("sparse", [False, True])
def test_moved_steps_keep_what_was_reported_and_their_totals(axis, sparse):
    places = np.array([2, 0, -1, 3, 1])
    shape = (4, 3) if axis == 0 else (3, 4)
    values = 3.0 * np.random.default_rng(3).integers(0, 4, shape)
    rules = np.array([cv.mechanisms.RandomRounding(3), cv.mechanisms.RandomRounding(9)])
    rule = rules[(np.indices(shape).sum(axis=0) == 2).astype(int)]
    values[rule == rules[1]] = 9.0
    hidden = np.indices(shape).sum(axis=0) == 5
    groups = np.arange(12).reshape(shape) // 4
    sums = np.array([values[groups == g].sum() for g in range(3)])

    def read(values, mask, rule, groups):
        given = sp.coo_array(values) if sparse else values
        return cv.Reports(given, rule, mask=mask, totals=[(groups, sums)])

    def moved(each, missing):
        out = np.take(each, places, axis)
        out[(slice(None),) * axis + (2,)] = missing
        return out

    found = read(values, hidden, rule, groups).with_steps(axis, places, list("vwxyz"))
    wanted = read(moved(values, 0.0), moved(hidden, True), moved(rule, rules[0]), moved(groups, -1))
    one, other = found.provenance.published.report(0), wanted.provenance.published.report(0)
    np.testing.assert_array_equal(one.seen, other.seen)
    np.testing.assert_array_equal(one.values, other.values)
    kinds = [np.array(each.mechanisms, dtype=object)[each.number] for each in (one, other)]
    assert (kinds[0] == kinds[1])[one.seen].all()
    np.testing.assert_array_equal(found.totals.groups[0], wanted.totals.groups[0])
    np.testing.assert_array_equal(found.totals.bounds[0], sums)
    np.testing.assert_array_equal(least_and_most(found), least_and_most(wanted))
    later = found.take(np.array([0, 1])).with_steps(0, np.array([1, 0]), ["b", "a"])
    np.testing.assert_array_equal(later.provenance.published.report(0).values, one.values[[1, 0]])


LOWER = [[1, 10, 5], [0, 90, 0]]
UPPER = [[9, 50, 5], [0, np.inf, 3]]


def bounds_of(data):
    codes = np.zeros(data.shape, dtype=np.int64)
    codes[data.row_numbers, data.columns] = data.reports
    return data.noise.kernel.whole_cj[codes][..., [LEAST, MOST]]


def test_every_count_lies_in_its_range():
    data = cv.Reports.between(LOWER, UPPER)
    found = bounds_of(data)
    np.testing.assert_array_equal(found[..., 0], LOWER)
    np.testing.assert_array_equal(found[..., 1], np.where(np.isinf(UPPER), UNBOUNDED, UPPER))
    assert set(data.noise.mechanisms) == {m.Interval(1, 9), m.Interval(10, 50), m.Interval(90), m.Interval(0, 3)}


def test_laws_of_counts_are_cut_to_their_ranges():
    values, mechanism = ranges(LOWER, UPPER)
    y = np.arange(400)
    for value, each, low, high in zip(values.flat, mechanism.flat, np.ravel(LOWER), np.ravel(UPPER), strict=True):
        weights = np.where((y >= low) & (y <= high), stats.poisson.pmf(y, 7.5), 0.0)
        assert cv.expected_true_counts(value, 7.5, mechanism=each) == pytest.approx(
            (y * weights).sum() / weights.sum(), rel=1e-9
        )
        assert cv.log_likelihood(value, 7.5, mechanism=each) == pytest.approx(np.log(weights.sum()), rel=1e-9)


def test_suppression_and_top_codes_are_ranges():
    published = np.array([[np.nan, 12, 0], [10, np.nan, 40]])
    low, high = np.nan_to_num(published, nan=1), np.nan_to_num(published, nan=9)
    assert_same(cv.Reports(published, m.Suppression(10)), cv.Reports.between(low, high))
    high[1, 2] = np.inf
    mixed = np.array([[m.Suppression(10)] * 3, [m.Suppression(10)] * 2 + [m.TopCoding(40)]])
    assert_same(cv.Reports(published, mixed), cv.Reports.between(low, high))


def test_labels_are_kept_and_compared():
    low = pd.DataFrame(LOWER, index=["a", "b"], columns=["x", "y", "z"])
    high = pd.DataFrame(UPPER, index=["a", "b"], columns=["x", "y", "z"])
    for data in (cv.Reports.between(low, high), cv.Reports.between(0, high), cv.Reports.between(low, 90)):
        assert (data.row_labels, data.column_labels) == (["a", "b"], ["x", "y", "z"])
    with pytest.raises(ValueError, match="upper must have the column labels of reports in their order"):
        cv.Reports.between(low, high[["x", "z", "y"]])


def test_masked_cells_and_tensors():
    low, high, mask = np.array(LOWER, float), np.array(UPPER, float), np.zeros((2, 3), bool)
    mask[0, 1], low[0, 1], high[0, 1] = True, np.nan, np.nan
    data = cv.Reports.between(low, high, mask)
    assert data.n_masked == 1
    wide = cv.Reports.between([LOWER, LOWER], [UPPER, UPPER], labels=[["a", "b"], None, None])
    assert wide.mode_shape == (2, 2, 3)
    assert cv.Reports.between(LOWER, UPPER, totals=[(1, [40, 95])]).totals.in_words == (
        cv.Reports.between(LOWER, UPPER, totals=[(1, np.array([40, 95]))]).totals.in_words
    )


@pytest.mark.parametrize(
    ("lower", "upper", "rule"),
    [
        ([[1, 5]], [[3, 4]], r"upper must be at least lower, got 4.0 at index \(0, 1\)"),
        ([[-1, 5]], [[3, 6]], "lower must be whole and not negative, got -1.0"),
        ([[np.inf, 5]], [[np.inf, 6]], "lower must be whole and not negative, got inf"),
        ([[0.5, 5]], [[3, 6]], "lower must be whole and not negative, got 0.5"),
        ([[1, 5]], [[3, 6.5]], "upper must be whole, or np.inf, got 6.5"),
        ([[1, 5]], [[np.nan, 6]], "upper must be whole, or np.inf, got nan"),
        ([[1, 5]], [[3], [6]], r"lower and upper must have the same shape, .*, got \(1, 2\) and \(2, 1\)"),
        (1, 5, r"lower and upper must have the same shape, .*, got \(\) and \(\)"),
        (np.ma.array([[1, 5]], mask=[[True, False]]), [[3, 6]], "lower must not hold masked entries"),
    ],
)
def test_bounds_that_are_none_are_refused(lower, upper, rule):
    with pytest.raises(ValueError, match=rule):
        cv.Reports.between(lower, upper)


def test_bounds_must_be_numbers():
    with pytest.raises(TypeError, match="upper must be numbers"):
        cv.Reports.between([[1]], [["9"]])


def test_releases_of_ranges_come_back_from_files(tmp_path):
    release = cv.import_reports(*ranges(LOWER, UPPER), source="Others, 2020")
    release.save(tmp_path / "r.npz")
    again = cv.Release.load(tmp_path / "r.npz")
    assert_same(observations_of(again), cv.Reports.between(LOWER, UPPER))
    words = again.describe()
    assert "4 different ranges, from 0 to 3 up to 90 or more" in words
    assert "not differential privacy" in words


@pytest.mark.long
def test_thousands_of_different_ranges_are_read_in_seconds():
    rng = np.random.default_rng(1)
    y = rng.poisson(rng.gamma(0.5, 200.0, (60, 50)))
    low, high = np.maximum(y - rng.integers(0, 60, y.shape), 0), y + rng.integers(0, 60, y.shape)
    cv.Reports.between(LOWER, UPPER)  # compiles
    begin = time.process_time()
    data = cv.Reports.between(low, high)
    check_mechanism(data)
    assert len(data.noise.mechanisms) > 1500
    assert time.process_time() - begin < 20.0  # a quadratic reading takes minutes
    assert len(repr(data)) < 500


UNSTATED = np.array([[NAN, 12, 0], [6, NAN, 31.0], *[[7, 8, 9.0]] * 6])


def test_a_bound_that_is_not_stated_is_the_least_positive_count_that_is_shown():
    found = cv.Reports(UNSTATED, m.Suppression(None))
    assert_same(found, cv.Reports(UNSTATED, m.Suppression(6)))
    assert "suppression of 1 to 5" in repr(found)
    release = cv.import_reports(UNSTATED[1:], m.Suppression(None, shows_zero=False), "a table")
    assert release.mechanism == m.Suppression(6, shows_zero=False)
    objects = UNSTATED.astype(object)
    objects[0, 0] = None
    assert_same(cv.Reports(objects, m.Suppression(None)), found)
    sparse = cv.Reports(sp.csr_array(UNSTATED), m.Suppression(None))
    assert_same(sparse, cv.Reports(sp.csr_array(UNSTATED), m.Suppression(6)))


def test_masked_cells_and_those_of_other_mechanisms_bound_nothing():
    masked = cv.Reports(UNSTATED, m.Suppression(None), mask=UNSTATED == 6)
    assert masked.noise.mechanisms == (m.Suppression(7),)
    release = cv.import_reports(UNSTATED, m.Suppression(None), "a table", mask=UNSTATED == 6)
    assert release.mechanism == m.Suppression(7)
    by_row = [m.Suppression(None), m.Suppression(5), *[m.Suppression(None)] * 6]
    stated = [m.Suppression(7), m.Suppression(5), *[m.Suppression(7)] * 6]
    assert_same(cv.Reports(UNSTATED, by_row), cv.Reports(UNSTATED, stated))
    assert cv.import_reports(UNSTATED, by_row, "a table").mechanism == tuple(stated)


def test_a_bound_that_few_shown_counts_give_is_doubted():
    with pytest.warns(
        UserWarning, match="the number of shown counts from 12 to 23 is only 1: the bound .* may be below 12"
    ) as warned:
        found = cv.Reports(UNSTATED[:1], m.Suppression(None))
    assert warned[0].filename == __file__
    assert found.noise.mechanisms == (m.Suppression(12),)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nothing_hidden = cv.Reports(np.where(np.isnan(UNSTATED[:1]), 0.0, UNSTATED[:1]), m.Suppression(None))
    assert nothing_hidden.noise.mechanisms == (m.Suppression(12),)


def test_the_bound_of_a_large_sparse_table_is_found_among_stored_cells_alone():
    stored = [NAN, *range(6, 12), *range(6, 12), *range(6, 14)]
    values = sp.coo_array((stored, (range(21), range(21))), shape=(100_000, 100_000))  # 80 GB if it were dense
    assert with_bounds(values, m.Suppression(None), None) == m.Suppression(6)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([[NAN, 0.0]], "got no positive one"),
        ([[NAN, 1.0]], "got 1, below which no count can be hidden"),
        ([[NAN, np.inf]], "got inf, below which no count can be hidden"),
    ],
)
def test_a_bound_that_no_shown_count_gives_has_to_be_stated(values, found):
    for read in (cv.Reports, lambda *given: cv.import_reports(*given, "a table")):
        with pytest.raises(ValueError, match=rf"below=None .* {found}: state below \(--below\)"):
            read(np.array(values), m.Suppression(None))
    with pytest.raises(ValueError, match="mechanism must have a bound here"):
        cv.simulate_reports([3, 20], m.Suppression(None), np.random.default_rng(1))


def simulated_bounds(narrower=0):
    """(share of the tables whose bound is found, coverage of randomised 90% intervals at known rates), by doubt."""
    rng, found = np.random.default_rng(6), {False: [], True: []}
    for _ in range(150):
        below = int(rng.integers(3, 11))
        rate = rng.lognormal(np.log(rng.choice([8.0, 60.0])), 1.0, (10, 12))
        counts = rng.poisson(rate)
        reports = cv.simulate_reports(counts, m.Suppression(below), rng)
        hidden = np.isnan(reports)
        if not hidden.any():
            continue
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always")
            (given,) = cv.Reports(reports, m.Suppression(None)).noise.mechanisms
        y = np.arange(1, given.below - narrower)
        law = stats.poisson.pmf(y, rate[hidden][:, None])
        law /= law.sum(axis=1, keepdims=True)
        true = counts[hidden][:, None]
        before, at = (law * (y < true)).sum(axis=1), (law * (y == true)).sum(axis=1)
        place = before + rng.random(before.size) * at
        found[bool(doubts)].append((given.below == below, ((place > 0.05) & (place < 0.95)).sum(), place.size))
    right, inside, n = (np.array([own[i] for own in found[False]]) for i in range(3))
    doubted = np.array([own[0] for own in found[True]])
    return right.mean(), inside.sum() / n.sum(), n.sum(), doubted.mean()


def test_intervals_cover_hidden_counts_whose_bound_was_not_stated():
    right, inside, n, doubted = simulated_bounds()
    assert right > 0.85
    assert doubted < 0.75
    assert inside == pytest.approx(0.9, abs=4 * 0.3 / n**0.5)
    assert simulated_bounds(narrower=1)[1] < 0.85
