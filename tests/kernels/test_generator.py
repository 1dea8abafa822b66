"""Subroutines of the generator draw what the generator draws."""

import numpy as np
import pytest

from countveil.kernels import generator as kernels

CASES = [
    ("binomial", (7, 0.3)),
    ("binomial", (500, 0.4)),
    ("standard_gamma", (0.4,)),
    ("standard_gamma", (3.0,)),
    ("standard_exponential", ()),
    ("standard_normal", ()),
]


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_draws_are_those_of_numpy(name, arguments):
    ours, theirs = np.random.default_rng(1), np.random.default_rng(1)
    drawn = [getattr(kernels, name)(*arguments, ours) for _ in range(200)]
    assert drawn == [getattr(theirs, name)(*arguments) for _ in range(200)]
    assert len(set(drawn)) > 3
