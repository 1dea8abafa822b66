"""Rates of stored entries against the whole matrix of rates."""

import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.kernels.rates import stored_rates
from countveil.kernels.tiles import is_dense


@pytest.mark.parametrize(("share", "dense"), [(0.5, True), (0.02, False)])
def test_rates_are_those_of_the_entries(share, dense):
    rng, size = np.random.default_rng(1), (90, 40)
    theta, phi = rng.gamma(1.0, 1.0, (90, 7)), rng.gamma(1.0, 1.0, (40, 7))
    data = PrivatizedCounts(rng.binomial(1, share, size) * rng.integers(1, 3, size), 0.4)
    block, found = data.block(slice(4, 81)), np.full(data.indptr[81] - data.indptr[4], np.nan)
    assert is_dense(block, 40) == dense
    stored_rates(block, theta[4:81], phi, found)
    rows = np.repeat(np.arange(4, 81), np.diff(block.indptr))
    np.testing.assert_allclose(found, (theta @ phi.T)[rows, block.columns], rtol=1e-13)
