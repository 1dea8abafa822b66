"""Reports by number: several mechanisms, and cells that are known to be zero."""

import numpy as np
import pytest
import scipy.sparse as sp

import countveil as cv
from countveil.data.numbering import NO_REPORT, by_mechanism, coded, number

m = cv.mechanisms


def test_the_same_value_of_two_mechanisms_has_two_numbers():
    mechanisms = []
    rows = [m.RandomRounding(3), m.TopCoding(9)]
    found = number(np.array([[3.0, 6.0], [3.0, 0.0]]), np.array(rows)[:, None], None, 0.0, mechanisms)
    assert mechanisms == rows
    assert len(np.unique(found.number)) == 4
    codes, noise = coded([found], mechanisms)
    assert codes[1, 1] == 0
    assert (np.delete(codes.ravel(), 3) > 0).all()
    np.testing.assert_array_equal(noise.value_c[codes], [[3, 6], [3, 0]])


def test_sparse_values_store_no_known_zero():
    found = number(sp.csr_array(np.array([[0, 12], [11, 0]])), m.Suppression(10), None, 0.0, [])
    codes, _ = coded([found], [m.Suppression(10)])
    assert sp.issparse(codes)
    np.testing.assert_array_equal(codes.toarray() > 0, [[False, True], [True, False]])


def test_masked_cells_have_no_report():
    found = number(np.ones((1, 2)), m.TopCoding(4), np.array([[True, False]]), 0.0, [])
    np.testing.assert_array_equal(found.number == NO_REPORT, [[True, False]])


def test_mechanisms_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="mechanism must be one of"):
        by_mechanism([m.TopCoding(3), "Gaussian"], (2, 2))
    with pytest.raises(ValueError, match="mechanism must be one, one per row"):
        by_mechanism([m.TopCoding(3)] * 3, (2, 2))
