"""Reports and noise levels to make observations of, and whether two are the same."""

import numpy as np

REPORTS = np.array([[3, 0, -2, 1], [0, 5, 0, -1], [-4, 0, 0, 0], [7, 1, 2, 40]])
ALPHA = np.array([0.5, 0.2, 0.9, 0.0])
PARTS = ("indptr", "columns", "reports", "level_e", "level_d", "exposure_d")


def assert_same(one, other):
    assert one.shape == other.shape
    for name in PARTS:
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype, name
        np.testing.assert_array_equal(a, b, err_msg=name)
