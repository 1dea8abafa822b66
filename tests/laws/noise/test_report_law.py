"""Pieces of kernels: joined tables, and how far they reach."""

import numpy as np
import pytest

import countveil as cv
from countveil.kernels.report_kernels import BEGIN, TABLE
from countveil.laws.noise.report_law import joined, pieces, table_reach


def test_tables_are_joined_one_after_another():
    first = pieces(TABLE, 2, table=np.array([1.0, 2.0]), length=2)
    second = pieces(TABLE, 1, table=np.array([3.0]), length=1)
    both = joined([first, second, first])
    np.testing.assert_array_equal(both.whole_aj[:, BEGIN], [0, 0, 2, 3, 3])
    np.testing.assert_array_equal(both.table, [1, 2, 3, 1, 2])
    np.testing.assert_array_equal(first.whole_aj[:, BEGIN], 0)


def test_noise_that_is_too_strong_for_a_table_is_refused():
    with pytest.raises(ValueError, match="noise must have a standard deviation of at most"):
        table_reach(1e9)
    with pytest.raises(ValueError, match="noise must have a standard deviation of at most"):
        cv.Reports([[np.nan]], cv.mechanisms.Thresholded(cv.mechanisms.Gaussian(10**9), 3))
