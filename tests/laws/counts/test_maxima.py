"""The greatest values of many functions at once, against functions whose peaks are known."""

import numpy as np

from countveil.laws.counts.maxima import greatest_within

PEAKS = np.array([-20.0, -19.97, -3.3, 0.0, 7.61, 20.0])


def test_peaks_are_found_inside_and_at_the_bounds():
    beyond = np.array([-25.0, -19.97, -3.3, 0.0, 7.61, 31.0])
    found = greatest_within(lambda x: -((x - beyond) ** 2), np.zeros(6), (-20.0, 20.0))
    np.testing.assert_allclose(found, PEAKS, atol=1e-6)


def test_of_two_peaks_the_higher_one_is_found_wherever_it_begins():
    def function(x):
        return np.maximum(1.0 - (x + 8.0) ** 2, 1.5 - 0.5 * (x - 11.3) ** 2)

    for now in (-8.0, 11.0, 0.0):
        np.testing.assert_allclose(greatest_within(function, np.array([now]), (-20.0, 20.0)), 11.3, atol=1e-6)


def test_no_value_is_less_than_now():
    """A peak between the points of the grid is kept if it is where one is."""

    def function(x):
        return np.where(np.abs(x - 0.123) < 1e-3, 1.0, 0.0)

    assert greatest_within(function, np.array([0.123]), (-20.0, 20.0)) == 0.123
