"""Rates of stored entries against the whole matrix of rates."""

import numpy as np

from countveil.data.observations import PrivatizedCounts
from countveil.kernels.rates import stored_rates


def test_rates_are_those_of_the_entries():
    rng = np.random.default_rng(1)
    theta, phi = rng.gamma(1.0, 1.0, (30, 7)), rng.gamma(1.0, 1.0, (11, 7))
    data = PrivatizedCounts(rng.integers(-2, 3, (30, 11)), 0.4)
    block, found = data.block(slice(4, 21)), np.full(data.indptr[21] - data.indptr[4], np.nan)
    stored_rates(block, theta[4:21], phi, found)
    rows = np.repeat(np.arange(4, 21), np.diff(block.indptr))
    np.testing.assert_allclose(found, (theta @ phi.T)[rows, block.columns], rtol=1e-13)
