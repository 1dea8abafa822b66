"""Counts that are known to lie in ranges: what is read, what is refused, and what is known of each count."""

import time

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import countveil as cv
from countveil.data.mechanism_checks import check_mechanism
from countveil.data.ranges import ranges
from countveil.data.reports import observations_of
from countveil.kernels.report_kernels import LEAST, MOST, UNBOUNDED
from tests.data.same import assert_same

m = cv.mechanisms
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
    assert set(data.noise.mechanisms) == {
        m.Interval(1, 9),
        m.Interval(10, 50),
        m.Interval(90),
        m.Interval(0, 3),
    }


def test_laws_of_counts_are_cut_to_their_ranges():
    values, mechanism = ranges(LOWER, UPPER)
    y = np.arange(400)
    for value, each, low, high in zip(
        values.flat, mechanism.flat, np.ravel(LOWER), np.ravel(UPPER), strict=True
    ):
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
        ([[1, 5]], [[3], [6]], r"lower and upper must have one shape, .*, got \(1, 2\) and \(2, 1\)"),
        (1, 5, r"lower and upper must have one shape, .*, got \(\) and \(\)"),
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
