"""Protected tables of others as releases: the same bits as ``Reports``, and nothing that cannot have been published."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import countveil as cv
from countveil.data.accepted import observations_of
from countveil.privacy import ReleaseError

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
    assert data.source == "a table"
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
    assert_same_data(
        observations_of(sparse), cv.Reports(np.array([[0, 3, 0], [6, 0, 0]]), m.RandomRounding(3))
    )


def test_rows_that_a_long_table_lacks_are_reports_only_where_absence_is_one():
    frame = pd.DataFrame({"place": ["a", "a", "b"], "age": ["x", "y", "y"], "n": [12, np.nan, 0]})
    hidden = cv.import_long(frame, ["place", "age"], "n", m.Suppression(10), "s")
    np.testing.assert_array_equal(hidden.reports, [[12, np.nan], [np.nan, 0]])
    assert hidden.labels == (("a", "b"), ("x", "y"))
    with pytest.raises(
        ValueError, match=r"row for every cell, because rounding .*, got 1 cells .*background=0"
    ):
        cv.import_long(frame.fillna(3), ["place", "age"], "n", m.Rounding(3), "s")
    with pytest.raises(ValueError, match="row for every cell"):
        cv.import_long(frame.fillna(3), ["place", "age"], "n", m.DiscreteGaussian(3), "s")
    with pytest.raises(ValueError, match="must not be missing"):
        cv.import_long(frame.fillna(3), ["place", "age"], "n", m.Rounding(3), "s", background=np.nan)
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
        (np.zeros((9, 9)), m.DiscreteGaussian(1), "cut at zero"),
        (sp.csr_array((9, 9)), m.DiscreteGaussian(1), "cut at zero"),
        (np.zeros((9, 9)), m.Skellam(2, 2), "cut at zero"),
        (np.array(3.0), m.Rounding(3), "two axes or more, got 0"),
        (np.zeros(3), m.Rounding(3), "two axes or more, got 1"),
        (np.ma.masked_array([[1, 2]], [[True, False]]), m.Rounding(2), "must not be masked"),
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
    with pytest.raises(ValueError, match="got imported ones"):
        cv.ReleaseFiles(tmp_path)
