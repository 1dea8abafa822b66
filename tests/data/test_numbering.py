"""Reports by number: several mechanisms, and cells that are known to be zero."""

import numpy as np
import pytest
import scipy.sparse as sp

import countveil as cv
from countveil.data.numbering import NO_REPORT, by_mechanism, cells_by_mechanism, coded, number

m = cv.mechanisms


def test_the_same_value_of_two_mechanisms_has_two_numbers():
    mechanisms = {}
    rows = [m.RandomRounding(3), m.TopCoding(9)]
    found = number(np.array([[3.0, 6.0], [3.0, 0.0]]), np.array(rows)[:, None], None, 0.0, mechanisms)
    assert list(mechanisms) == rows
    assert len(np.unique(found.number)) == 4
    codes, noise = coded([found], mechanisms)
    assert codes[1, 1] == 0
    assert (np.delete(codes.ravel(), 3) > 0).all()
    np.testing.assert_array_equal(noise.value_c[codes], [[3, 6], [3, 0]])


def test_sparse_values_store_no_known_zero():
    found = number(sp.csr_array(np.array([[0, 12], [11, 0]])), m.Suppression(10), None, 0.0, {})
    codes, _ = coded([found], [m.Suppression(10)])
    assert sp.issparse(codes)
    np.testing.assert_array_equal(codes.toarray() > 0, [[False, True], [True, False]])


def test_cells_of_a_mechanism_are_numbered_in_row_major_order():
    rows, hidden = np.array([m.TopCoding(3), m.TopCoding(4), m.TopCoding(3)])[:, None], np.zeros((3, 2), bool)
    hidden[2, 0] = True
    found = {each: cells.tolist() for each, cells in cells_by_mechanism(rows, (3, 2), hidden)}
    assert found == {m.TopCoding(3): [0, 1, 5], m.TopCoding(4): [2, 3]}


def test_errors_name_the_place_among_all_cells():
    values, mechanisms = np.array([[3.0, 3.0], [6.0, 7.0]]), np.array([[m.TopCoding(9)], [m.Rounding(3)]])
    with pytest.raises(
        ValueError, match=r"multiples of 3, under rounding to multiples of 3, got 7.0 at index \(1, 1\)"
    ):
        number(values, mechanisms, None, 0.0, {})


def test_masked_cells_have_no_report():
    found = number(np.ones((1, 2)), m.TopCoding(4), np.array([[True, False]]), 0.0, {})
    np.testing.assert_array_equal(found.number == NO_REPORT, [[True, False]])


def test_mechanisms_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="mechanism must be one of"):
        by_mechanism([m.TopCoding(3), "Gaussian"], (2, 2))
    with pytest.raises(ValueError, match="mechanism must be one, one per row"):
        by_mechanism([m.TopCoding(3)] * 3, (2, 2))
