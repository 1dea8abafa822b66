"""What fits accept as data: releases go to the class that reads their mechanism."""

import numpy as np
import pytest

import countveil as cv
from countveil.data.accepted import observations_of


def test_a_release_of_geometric_noise_is_privatized_counts():
    release = cv.privatize(np.array([[3, 0], [1, 5]]), cv.PrivacyLevel(1, 1))
    assert isinstance(observations_of(release), cv.PrivatizedCounts)


def test_plain_arrays_are_refused():
    with pytest.raises(TypeError, match=r"Reports\(values, mechanism\) for counts protected in another way"):
        observations_of(np.ones((2, 2)))
