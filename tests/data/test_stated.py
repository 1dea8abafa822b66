"""Mechanisms as they are stated for a table, in the simplest form that says the same."""

import numpy as np
import pytest

import countveil as cv
from countveil.data.stated import cells_of, stated_of
from countveil.privacy._cells import ByCell

m = cv.mechanisms
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
