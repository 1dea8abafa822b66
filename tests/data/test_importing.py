"""Protected tables of others as releases: the same bits as ``Reports``, and nothing that cannot have been published."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import countveil as cv
from countveil.data.importing import cells_of, stated_of
from countveil.data.reports import observations_of
from countveil.privacy import ReleaseError
from countveil.privacy._cells import ByCell

m = cv.mechanisms
RNG = np.random.default_rng(3)
COUNTS = RNG.poisson(RNG.gamma(0.5, 8.0, (6, 5)))
EVERY = [
    m.TwoSidedGeometric(0.5),
    m.DiscreteGaussian(2),
    m.Gaussian(2),
    m.Laplace(1),
    m.Skellam(2, 1),
    m.RandomRounding(3),
    m.Rounding(5),
    m.Suppression(10),
    m.Interval(1, 9),
    m.TopCoding(9),
    m.Thresholded(m.Gaussian(2), 4),
]


def reports_of(mechanism):
    return cv.simulate_reports(COUNTS, mechanism, np.random.default_rng(1))


def assert_same_data(found, wanted):
    assert found.noise.mechanism == wanted.noise.mechanism
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found.indptr, wanted.indptr)
    np.testing.assert_array_equal(found.columns, wanted.columns)
    np.testing.assert_array_equal(found.reports, wanted.reports)
    for one, other in zip(found.noise.kernel, wanted.noise.kernel, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
def test_a_file_holds_what_was_imported(mechanism, tmp_path):
    values = reports_of(mechanism)
    names = [f"county {i}" for i in range(6)]
    release = cv.import_reports(values, mechanism, "a table", row_labels=names)
    path, again = tmp_path / "r.npz", tmp_path / "again.npz"
    release.save(path)
    found = cv.Release.load(path)
    found.save(again)
    assert path.read_bytes() == again.read_bytes()
    np.testing.assert_array_equal(np.asarray(found.reports, dtype=float), np.asarray(values, dtype=float))
    assert (found.mechanism, found.source, found.row_labels) == (mechanism, "a table", tuple(names))
    assert "Imported from: a table. Whoever imported them vouches" in found.describe()
    data = observations_of(found)
    assert data.provenance.source == "a table"
    assert data.row_labels == names
    wanted = cv.Reports(values, mechanism)
    if isinstance(mechanism, m.TwoSidedGeometric):
        np.testing.assert_array_equal(data.reports, wanted.reports)
    else:
        assert_same_data(data, wanted)


def test_fits_of_a_file_and_of_reports_are_the_same_bits(tmp_path):
    mechanism = m.Suppression(10)
    values = reports_of(mechanism)
    cv.import_reports(values, mechanism, "a table").save(tmp_path / "r.npz")
    options = {"chains": 1, "tune": 5, "draws": 5, "seed": 1, "progress": False}
    fits = [
        cv.TopicModel(2, **options).fit(data)
        for data in (cv.Release.load(tmp_path / "r.npz"), cv.Reports(values, mechanism))
    ]
    np.testing.assert_array_equal(*(fit.components_ for fit in fits))
    fits[0].save(tmp_path / "fit.nc")
    assert cv.TopicModel.load(tmp_path / "fit.nc").posterior.attrs["source"] == "a table"


def test_rows_may_have_mechanisms_of_their_own(tmp_path):
    mechanisms = [m.Suppression(10)] * 3 + [m.RandomRounding(3)] * 3
    values = np.vstack([np.asarray(reports_of(each), dtype=float)[i] for i, each in enumerate(mechanisms)])
    cv.import_reports(values, mechanisms, "two years").save(tmp_path / "r.npz")
    assert_same_data(observations_of(cv.Release.load(tmp_path / "r.npz")), cv.Reports(values, mechanisms))


def test_frames_and_sparse_arrays_keep_what_they_have():
    frame = pd.DataFrame([[3, None], [0, 6]], index=["a", "b"], columns=["x", "y"], dtype="Int64")
    release = cv.import_reports(frame, m.Suppression(2), "s")
    assert release.labels == (("a", "b"), ("x", "y"))
    np.testing.assert_array_equal(release.reports, [[3, np.nan], [0, 6]])
    sparse = cv.import_reports(sp.csr_array([[0, 3, 0], [6, 0, 0]]), m.RandomRounding(3), "s")
    assert sp.issparse(sparse.reports)
    assert_same_data(observations_of(sparse), cv.Reports(np.array([[0, 3, 0], [6, 0, 0]]), m.RandomRounding(3)))


def test_names_of_axes_come_back_from_a_file_and_name_the_columns_of_tables(tmp_path):
    frame = pd.DataFrame({"Age group": list("aabb"), "sex": list("fmfm"), "n": [30, 9, 12, 0]})
    cv.import_long(frame, ["Age group", "sex"], "n", m.RandomRounding(3), "a table").save(tmp_path / "r.npz")
    release = cv.Release.load(tmp_path / "r.npz")
    assert release.extras.axis_names == ("Age group", "sex")
    assert "2 labels of Age group and 2 labels of sex are published" in release.describe()
    fit = cv.TopicModel(1, draws=4, tune=4, chains=2, seed=1, progress=False).fit(release)
    assert fit.counts_table(release).columns[:2].tolist() == ["Age group", "sex"]
    wide = frame.pivot(index="Age group", columns="sex", values="n")
    for values, names in ((wide, ("Age group", "sex")), (wide.rename_axis(columns=None), ("Age group", None))):
        assert cv.import_reports(values, m.RandomRounding(3), "a table").extras.axis_names == names
    assert cv.import_reports(wide.to_numpy(), m.RandomRounding(3), "a table").extras.axis_names is None


@pytest.mark.parametrize(
    ("given", "names"),
    [(("", "b"), (None, "b")), (("", ""), None), ((2020, None), ("2020", None)), ((np.str_("a"), "b"), ("a", "b"))],
)
def test_names_of_axes_are_text_and_empty_ones_are_none(given, names):
    wide = pd.DataFrame([[3, 0], [6, 9]]).rename_axis(index=given[0], columns=given[1])
    long = pd.DataFrame({given[0]: list("aabb"), "y": list("fmfm"), "n": [30, 9, 12, 0]})
    assert cv.import_reports(wide, m.RandomRounding(3), "a table").extras.axis_names == names
    assert cv.import_reports(wide.to_numpy(), m.RandomRounding(3), "s", axis_names=given).extras.axis_names == names
    if isinstance(given[0], str):
        found = cv.import_long(long, [given[0], "y"], "n", m.RandomRounding(3), "a table").extras.axis_names
        assert found == (str(given[0]) or None, "y")


def test_rows_that_a_long_table_lacks_are_reports_only_where_absence_is_one():
    frame = pd.DataFrame({"place": ["a", "a", "b"], "age": ["x", "y", "y"], "n": [12, np.nan, 0]})
    hidden = cv.import_long(frame, ["place", "age"], "n", m.Suppression(10), "s")
    np.testing.assert_array_equal(hidden.reports, [[12, np.nan], [np.nan, 0]])
    assert hidden.labels == (("a", "b"), ("x", "y"))
    with pytest.raises(ValueError, match=r"row for every cell, because rounding .*, got 1 cells .*background=0"):
        cv.import_long(frame.fillna(3), ["place", "age"], "n", m.Rounding(3), "s")
    with pytest.raises(ValueError, match="row for every cell"):
        cv.import_long(frame.fillna(3), ["place", "age"], "n", m.DiscreteGaussian(3), "s")
    with pytest.raises(ValueError, match="must not be missing"):
        cv.import_long(frame.fillna(3), ["place", "age"], "n", m.Rounding(3), "s", background=np.nan)
    with pytest.raises(ValueError, match="background must be a number or \"missing\", got 'missin'"):
        cv.import_long(frame.fillna(3), ["place", "age"], "n", m.Rounding(3), "s", background="missin")
    rounded = cv.import_long(frame.fillna(3), ["place", "age"], "n", m.Rounding(3), "s", background=0)
    np.testing.assert_array_equal(rounded.reports, [[12, 3], [0, 0]])
    many = pd.DataFrame({axis: np.arange(500) for axis in "abc"} | {"n": 12})
    with pytest.raises(ValueError, match=r"at most 100,000,000 cells, .*, got 125,000,000"):
        cv.import_long(many, ["a", "b", "c"], "n", m.Suppression(10), "s")
    with pytest.raises(ValueError, match="several rows of one cell of place x age: name all axes"):
        cv.import_long(pd.concat([frame, frame]), ["place", "age"], "n", m.Suppression(10), "s")
    with pytest.raises(ValueError, match="one column 'm'"):
        cv.import_long(frame, ["place", "age"], "m", m.Suppression(10), "s")


def test_no_column_is_overwritten_whatever_it_is_called():
    place = "place of the row"
    frame = pd.DataFrame({place: ["a", "b"], "age": ["x", "y"], place + "_": [12, 30]})
    axes, value = [place, "age"], place + "_"
    for labels in (
        cv.import_long(frame, axes, value, m.Suppression(10), "s").labels,
        cv.Reports.from_frame(frame, axes, value, m.Suppression(10)).labels,
    ):
        assert [list(names) for names in labels] == [["a", "b"], ["x", "y"]]


def test_sparse_reports_are_called_cut_only_where_they_may_be(tmp_path):
    values = sp.csr_array([[0, 3, 0], [6, 0, 0]])
    for mechanism, cut in ((m.RandomRounding(3), False), (m.TwoSidedGeometric(0.5), True)):
        cv.import_reports(values, mechanism, "s").save(tmp_path / "r.npz")
        release = cv.Release.load(tmp_path / "r.npz")
        assert sp.issparse(release.reports)
        assert release.truncated is cut
        assert ("truncated" in release.describe()) is cut
    with pytest.raises(ReleaseError, match="sparse reports must be truncated"):
        cv.Release(values, cv.PrivacyLevel(1, 1), False)


def test_sparse_tensors_are_imported_unless_they_are_too_large():
    values = np.zeros((2, 3, 4), dtype=np.int64)
    values[1, 2, 3] = 6
    release = cv.import_reports(sp.coo_array(values), m.RandomRounding(3), "s")
    np.testing.assert_array_equal(release.reports, values)
    wide = sp.coo_array((np.array([3]), ([0], [0], [0])), shape=(500, 500, 500))
    with pytest.raises(ValueError, match=r"values must have at most 100,000,000 cells .*, got 125,000,000"):
        cv.import_reports(wide, m.RandomRounding(3), "s")


@pytest.mark.parametrize(
    ("values", "mechanism", "said"),
    [
        ([[4.0]], m.Suppression(10), "reports must be 0, at least 10"),
        ([[np.nan]], m.Rounding(5), "must not be missing"),
        ([[0.5]], m.DiscreteGaussian(1), "must be whole numbers"),
        ([[4]], m.RandomRounding(3), "multiples of 3"),
        (np.zeros((9, 9)), m.DiscreteGaussian(1), "truncated at zero"),
        (sp.csr_array((9, 9)), m.DiscreteGaussian(1), "truncated at zero"),
        (np.zeros((9, 9)), m.Skellam(2, 2), "truncated at zero"),
        (np.array(3.0), m.Rounding(3), "two axes or more, got 0"),
        (np.zeros(3), m.Rounding(3), "two axes or more, got 1"),
        (np.ma.masked_array([[1, 2]], [[True, True]]), m.Rounding(2), "mask must leave a report"),
    ],
)
def test_what_cannot_have_been_published_is_refused(values, mechanism, said):
    values = values if hasattr(values, "shape") else np.array(values, dtype=float)
    with pytest.raises(ValueError, match=said):
        cv.import_reports(values, mechanism, "s")


def test_strong_noise_may_have_no_negative_report():
    assert cv.import_reports(np.zeros((9, 9)), m.DiscreteGaussian("0.1"), "s").shape == (9, 9)
    assert cv.import_reports(np.zeros((9, 9)), m.Skellam(2, "0.01"), "s").shape == (9, 9)


@pytest.mark.parametrize("source", ["", "two\nlines", "x" * 201, None, 3])
def test_a_source_is_one_line(source):
    with pytest.raises((ReleaseError, TypeError), match="source"):
        cv.Release([[2]], m.Rounding(2), False, source=source) if source is not None else cv.import_reports(
            np.zeros((1, 1)), m.Rounding(2)
        )


REGIMES = np.array([m.Suppression(10), m.RandomRounding(3), m.Laplace(1)], dtype=object)
MASK = np.array([[False, True, False, True], [True, False, False, False]])


def by_column():
    """Reports of another mechanism in each column, of which some are missing: values, and the mechanisms (1, 4)."""
    each = REGIMES[[0, 1, 2, 0]].reshape(1, 4)
    return np.where(MASK, 7.0, [[np.nan, 3.0, 0.25, 12.0], [11.0, 6.0, -1.5, np.nan]]), each


def test_masks_and_mechanisms_by_cell_come_back_from_a_file(tmp_path):
    values, each = by_column()
    for given, mask in ((values, MASK), (np.ma.masked_array(values, MASK), None)):
        cv.import_reports(given, each, "s", mask=mask).save(tmp_path / "r.npz")
        release = cv.Release.load(tmp_path / "r.npz")
        np.testing.assert_array_equal(release.extras.mask, MASK)
        assert (release.reports[MASK] == 0).all()
        wanted = cv.Reports(values, each, MASK)
        assert_same_data(observations_of(release), wanted)
        hidden = np.zeros(MASK.shape, bool)
        hidden[1, 1] = True
        more = cv.Reports.from_release(release, mask=hidden)
        assert_same_data(more, cv.Reports(values, each, MASK | hidden))
    everywhere = np.broadcast_to(each, values.shape)
    assert cv.import_reports(values, everywhere, "s", mask=MASK).mechanism.shape == (1, 4)


def test_a_mask_beside_geometric_noise_gives_the_same_data(tmp_path):
    mechanism = m.TwoSidedGeometric(0.5)
    values, mask = reports_of(mechanism), COUNTS % 3 == 0
    cv.import_reports(values, mechanism, "s", mask=mask).save(tmp_path / "r.npz")
    data, wanted = observations_of(cv.Release.load(tmp_path / "r.npz")), cv.Reports(values, mechanism, mask)
    for name in ("indptr", "columns", "reports"):
        np.testing.assert_array_equal(getattr(data, name), getattr(wanted, name))


def test_masked_cells_hide_what_their_mechanism_cannot_have_made():
    values, each = by_column()
    for mask in (None, np.zeros(MASK.shape, bool)):
        with pytest.raises(ValueError, match="at least 10, or absent, under suppression"):
            cv.import_reports(values, each, "s", mask=mask)
    zeros = np.zeros((40, 2))
    with pytest.raises(ValueError, match="truncated at zero"):
        cv.import_reports(zeros, m.DiscreteGaussian(1), "s")
    seen = np.ones((40, 2), bool)
    seen[0] = False
    assert cv.import_reports(zeros, m.DiscreteGaussian(1), "s", mask=seen).shape == (40, 2)


def test_joined_releases_keep_their_masks_and_go_by_row():
    names = {"row_labels": ["a", "b"], "column_labels": list("wxyz")}
    values, each = by_column()
    hidden = cv.import_reports(np.where(MASK, 0, 30), m.Suppression(10), "s", mask=MASK, **names)
    turned = {"row_labels": ["b", "a"], "column_labels": list("wxyz")}
    rounded = cv.import_reports(np.full((2, 4), 30), m.RandomRounding(3), "t", mask=MASK, **turned)
    found = cv.join([hidden, rounded])
    assert found.n_masked == (MASK & MASK[::-1]).sum()
    with pytest.raises(ValueError, match="by cell cannot be joined"):
        cv.join([hidden, cv.import_reports(values, each, "s", mask=MASK, **names)])


LONG = pd.DataFrame({"place": list("aabb"), "day": [1, 2, 1, 3], "n": [12.0, 3.0, 0.0, 6.0], "regime": list("hrhr")})


def test_mechanisms_of_a_long_table_go_by_an_axis_or_another_column():
    stated = {1: m.Suppression(10), 2: m.RandomRounding(3), 3: m.Thresholded(m.Gaussian(1), 2)}
    wanted = cv.import_long(LONG, ["place", "day"], "n", stated, "s", by="day", background="missing")
    np.testing.assert_array_equal(wanted.extras.mask, [[False, False, True], [False, True, False]])
    np.testing.assert_array_equal(wanted.reports, [[12, 3, 0], [0, 0, 6]])
    assert wanted.mechanism.shape == (1, 3)
    assert wanted.mechanism.mechanisms == tuple(stated.values())
    regimes = {"h": m.Suppression(10), "r": m.RandomRounding(3)}
    found = cv.import_long(LONG.iloc[::-1], ["place", "day"], "n", regimes, "s", by="regime", background="missing")
    assert_same_data(
        observations_of(found),
        cv.Reports(found.reports, np.array([[*regimes.values(), regimes["r"]]], dtype=object), found.extras.mask),
    )
    full = LONG[LONG["day"] == 1]
    one = cv.import_long(full, ["place", "regime"], "n", regimes, "s", by="regime")
    assert one.mechanism == regimes["h"]


def test_cells_without_a_row_are_explained_for_each_mechanism():
    stated = {1: m.Suppression(10), 2: m.RandomRounding(3), 3: m.Suppression(5)}
    long = LONG, ["place", "day"], "n"
    with pytest.raises(ValueError, match="got 1 cells without one"):
        cv.import_long(*long, stated, "s", by="day")
    absent = cv.import_long(*long, stated | {2: m.Suppression(2)}, "s", by="day")
    np.testing.assert_array_equal(absent.reports, [[12, 3, np.nan], [0, np.nan, 6]])
    assert absent.extras.mask is None
    rows = [False, True, False, False]
    masked = cv.import_long(*long, m.Suppression(10), "s", background=0, mask=np.array(rows) | (LONG.n == 6))
    np.testing.assert_array_equal(masked.extras.mask, [[False, True, False], [False, False, True]])
    for wrong, rule in (
        ({"by": "regime"}, "no mechanism for 2 cells"),
        ({"by": "week"}, "one column of the table"),
        ({}, "together with by, .* got dict with by=None"),
    ):
        with pytest.raises(ValueError, match=rule):
            cv.import_long(*long, {"h": m.Suppression(10), "r": m.RandomRounding(3)}, "s", **wrong)
    with pytest.raises(ValueError, match="none for '2'"):
        cv.import_long(*long, {1: m.Suppression(10)}, "s", by="day")
    with pytest.raises(TypeError, match=r"must be one of countveil\.mechanisms, got int"):
        cv.import_long(*long, {1: 3}, "s", by="day")
    with pytest.raises(ValueError, match="every value of 'day' once, as text, got '1' twice"):
        cv.import_long(*long, {1: m.Suppression(10), 2: m.Rounding(3), "1": m.Rounding(3)}, "s", by="day")
    with pytest.raises(ValueError, match="boolean for each of 4 rows"):
        cv.import_long(*long, m.Suppression(10), "s", mask=[True])


@pytest.mark.parametrize("mechanism", [3, "rounding", [m.Rounding(2), 3]])
def test_something_else_is_no_mechanism(mechanism):
    with pytest.raises(TypeError, match="mechanism must be one of"):
        cv.import_reports(np.zeros((2, 1)), mechanism, "s")


def test_only_imported_reports_may_have_mechanisms_of_others():
    for mechanism in (m.Rounding(3), m.TwoSidedGeometric(0.5), m.DiscreteGaussian(1)):
        with pytest.raises(ReleaseError, match="mechanism must"):
            cv.Release([[3]], mechanism, False)
        assert cv.Release([[3]], mechanism, False, source="s").mechanism == mechanism
    for reports in ([[0.5]], np.array([[0.5]])):
        with pytest.raises(ReleaseError, match="reports must be"):
            cv.Release(reports, cv.PrivacyLevel(1, 1), False)


def test_infinite_reports_are_refused():
    for reports in ([[float("inf")]], np.array([[np.inf]])):
        with pytest.raises(ReleaseError, match="reports must be"):
            cv.Release(reports, m.Gaussian(1), False, source="s")


def test_folders_of_releases_do_not_take_imported_ones(tmp_path):
    cv.import_reports(np.ones((2, 2)), m.TwoSidedGeometric(0.5), "s").save(tmp_path / "r.npz")
    with pytest.raises(ValueError, match="got one in"):
        cv.ReleaseFiles(tmp_path)


A, B = m.Suppression(10), m.RandomRounding(3)


def array(rows):
    found = np.empty(np.shape(rows), dtype=object)
    found[...] = rows
    return found


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (A, A),
        ([A, A], A),
        ([A, B], (A, B)),
        (array([[A], [B]]), (A, B)),
        (array([[A, A], [B, B]]), (A, B)),
        (array([[A, A]]), A),
    ],
)
def test_one_and_one_by_row_are_said_so(given, wanted):
    assert stated_of(given, (2, 2)) == wanted


def test_others_are_by_cell_along_as_few_axes_as_can_be():
    for given, shape in (
        (array([[A, B]]), (1, 2)),
        (array([[A, B], [A, B]]), (1, 2)),
        (array([[A, B], [B, A]]), (2, 2)),
    ):
        found = stated_of(given, (2, 2))
        assert isinstance(found, ByCell)
        assert found.shape == shape
        cells = np.broadcast_to(given, (2, 2))
        for each, chosen in cells_of(found, (2, 2)):
            np.testing.assert_array_equal(chosen, [[own == each for own in row] for row in cells])
    days = stated_of(array([A, B]).reshape(1, 1, 2), (3, 2, 2))
    assert days.shape == (1, 1, 2)
    assert stated_of(array([[A, B]]), (3, 2, 2)).shape == (1, 1, 2)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ([A, B, A], "one for each of 2 rows, got 3"),
        (array([[A, B, A]]), "broadcast to"),
        (array([[[A]], [[B]]]), "broadcast to"),
    ],
)
def test_what_does_not_fit_is_refused(given, rule):
    with pytest.raises(ValueError, match=rule):
        stated_of(given, (2, 2))


def test_what_is_no_mechanism_is_refused():
    for given in (3, "rounding", [A, 3], array([[A, 3]]), None):
        with pytest.raises(TypeError, match="mechanism must be one of"):
            stated_of(given, (2, 2))


@pytest.mark.long
def test_reading_a_table_imports_no_distributions_of_scipy():
    """They take a second, which commands that fit nothing have no use for."""
    code = "import sys, countveil.data.importing; print('scipy.stats' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


MONTHS = pd.date_range("2019-11-01", periods=12, freq="MS")
TIME_ORDER = {
    "iso": [f"{month:%Y-%m-%d}" for month in MONTHS],
    "ddmmyyyy": [f"01.{month:%m.%Y}" for month in MONTHS],
    "monyear": [f"{month:%b %Y}" for month in MONTHS],
    "isoweek": [f"2020-W{week}" for week in range(1, 13)],
    "gaps": ["2001", "2002", "2003", "2005", "2006", "2007", "2008", "2010", "2011", "2012", "2013", "2015"],
}


@pytest.mark.parametrize("spelling", list(TIME_ORDER))
def test_dates_of_a_long_table_come_in_order_of_time(spelling):
    dates = TIME_ORDER[spelling]
    frame = pd.DataFrame({"when": np.repeat(dates, 2), "where": ["a", "b"] * 12, "n": 3 * np.arange(24)})
    for rows in (frame, frame.sample(frac=1.0, random_state=1)):
        for axes in (["when", "where"], ["where", "when"]):
            found = cv.import_long(rows, axes, "n", m.RandomRounding(3), "s")
            assert found.labels[axes.index("when")] == tuple(dates)
            wanted = 3 * np.arange(24).reshape(12, 2)
            np.testing.assert_array_equal(found.reports, wanted if axes[0] == "when" else wanted.T)


def test_dates_that_could_begin_with_the_day_or_the_month_stay_as_text_until_they_are_time():
    dates = [f"{month.month}/1/{month.year}" for month in MONTHS]
    frame = pd.DataFrame({"when": np.repeat(dates, 2), "where": ["a", "b"] * 12, "n": 3 * np.arange(24)})
    found = cv.import_long(frame, ["when", "where"], "n", m.RandomRounding(3), "s")
    assert found.row_labels == tuple(sorted(dates))
    with pytest.raises(ValueError, match="state day_first=True or day_first=False"):
        cv.DynamicModel(1).in_time(found)
    inside, _ = cv.DynamicModel(1, day_first=False).in_time(found)
    assert inside.row_labels == dates
    np.testing.assert_array_equal(inside.provenance.published.report(0).values, 3 * np.arange(24).reshape(12, 2))


@pytest.mark.parametrize(
    ("noise", "name"), [(m.Gaussian(2), "gaussian"), (m.TwoSidedGeometric(0.5), "two-sided-geometric")]
)
def test_a_table_of_large_noisy_values_is_told_of_thresholds(noise, name):
    frame = pd.DataFrame({"place": ["a", "a", "b"], "age": ["x", "y", "x"], "n": [30, 41, 33]})
    with pytest.raises(ValueError, match=f"--mechanism thresholded --noise {name} --above NUMBER"):
        cv.import_long(frame, ["place", "age"], "n", noise, "s")
    found = cv.import_long(frame, ["place", "age"], "n", m.Thresholded(noise, 25), "s")
    assert np.isnan(found.reports).tolist() == [[False, False], [False, True]]
    with pytest.raises(ValueError, match="got 1 cells without one: background=0"):
        cv.import_long(frame, ["place", "age"], "n", m.TopCoding(50), "s")


def test_columns_may_be_named_by_numbers():
    frame = pd.DataFrame([["a", "x", 5, 2], ["a", "y", 6, 2], ["b", "x", 7, 3], ["b", "y", 8, 3]])
    totals = pd.DataFrame({0: ["a", "b"], 2: [11, 15]}), pd.DataFrame({9: ["all"], 2: [26]})
    groups = [pd.DataFrame({0: ["a", "b"], 9: ["all", "all"]})]
    named = {"categories": {0: ["b", "a"]}, "by": 0, "exposure": 3, "groups": groups}
    rules = {"a": m.Suppression(5), "b": m.Suppression(6)}
    found = cv.import_long(frame, [0, 1], 2, rules, "a table", totals=[(each,) for each in totals], **named)
    assert found.labels == (("b", "a"), ("x", "y"))
    assert found.extras.axis_names == ("0", "1")
    np.testing.assert_array_equal(found.reports, [[7, 8], [5, 6]])
    assert [each.values for each in found.extras.totals] == [(15, 11), (26,)]
    assert list(found.extras.exposure.values) == [3, 3, 2, 2]
    with pytest.raises(ValueError, match="each cell once, got several rows of one cell of 0 x 3"):
        cv.import_long(frame, [0, 3], 2, m.Suppression(5), "a table")
    with pytest.raises(ValueError, match="columns must have names that differ as text, got two called '1'"):
        cv.import_long(frame.rename(columns={3: "1"}), [0, 1], 2, m.Suppression(5), "a table")
    assert cv.Reports.from_frame(frame, [0, 1], 2, protection=m.Suppression(5)).provenance.axis_names == ("0", "1")


def test_a_code_far_below_zero_is_refused_with_what_to_do():
    values = np.array([[-99.0, 4], [3, -99]])
    with pytest.raises(ValueError, match=r"never reported: --missing -99; make hidden counts NaN: --absent -99"):
        cv.import_reports(values, m.Gaussian(2), "s")
    cv.import_reports(values, m.Gaussian(2), "s", mask=values < 0)
    hidden = np.where(values < 0, np.nan, values)
    cv.import_reports(hidden, m.Suppression(3, shows_zero=False), "s")


def test_zeros_that_hide_counts_are_warned_of():
    values = np.array([[0, 5, 9, 0, 7]] * 6)
    for container in (np.asarray, sp.csr_array):
        with pytest.warns(UserWarning, match="no count of 1 to 4 is hidden, and 12 are 0"):
            cv.import_reports(container(values), m.Suppression(5), "s")
    cv.import_reports(np.where(values == 0, np.nan, values), m.Suppression(5, shows_zero=False), "s")


def test_masked_cells_keep_an_exposure_that_is_known():
    mask = np.array([[False, True], [True, False]])
    found = cv.import_reports(
        [[5, 0], [0, 9]], m.Suppression(5), "Others", mask=mask, exposure=[[10.0, 20.0], [np.nan, 30.0]]
    )
    assert list(found.extras.exposure.values) == [10.0, 20.0, 1.0, 30.0]


@pytest.mark.parametrize("mask", [None, [[False, True], [False, False]]])
def test_exposures_keep_their_shape_with_a_mask_and_without(mask):
    for exposure in ([[10.0], [20.0]], [[10.0, 20.0]], [[10.0, 20.0], [30.0, 40.0]]):
        found = cv.import_reports([[5, 7], [8, 9]], m.Suppression(5), "Others", mask=mask, exposure=exposure)
        assert found.extras.exposure.shape == np.shape(exposure)
        assert list(found.extras.exposure.values) == np.ravel(exposure).tolist()
