"""Reports as people hand them over: what is skipped is not read."""

import numpy as np
import pytest

import countveil as cv
from countveil.laws.noise.reading import read_reports

m = cv.mechanisms


def test_skipped_reports_may_be_anything():
    reports = np.array([[7.5, 3.0], [np.nan, 6.0]])
    found = read_reports(reports, m.RandomRounding(3), np.array([[True, False], [True, False]]))
    np.testing.assert_array_equal(found, [[np.nan, 3.0], [np.nan, 6.0]])
    with pytest.raises(ValueError, match=r"got 7.5 at index \(0, 0\)"):
        read_reports(reports, m.RandomRounding(3), np.array([[False, False], [True, False]]))


def test_text_is_refused():
    with pytest.raises(TypeError, match="reports must be numbers, got str"):
        read_reports(np.array([["a", 1]], dtype=object), m.Gaussian(1))
