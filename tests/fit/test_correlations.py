"""Correlations of shares: of those that vary, and of those that do not."""

import numpy as np

from countveil.fit.correlations import correlations


def test_shares_that_do_not_vary_are_not_correlated():
    shares = np.array([[[0.1, 0.1, 0.1], [0.2, 0.3, 0.4], [0.7, 0.7, 0.7]]])
    for some in ([[shares]], [[shares[:, :, :1]], [shares[:, :, 1:]]]):
        np.testing.assert_allclose(correlations(some)[0][0], np.diag([0.0, 1.0, 0.0]), atol=1e-12)


def test_what_varies_by_rounding_alone_does_not_vary():
    shares = np.array([[[0.1, np.nextafter(0.1, 1.0), 0.1, 0.1], [0.9, 0.2, 0.4, 0.3]]])
    np.testing.assert_array_equal(correlations([[shares]])[0][0][0], [0.0, 0.0])


def test_parts_make_the_correlations_of_the_whole():
    shares = np.random.default_rng(1).dirichlet(np.ones(4), (3, 50)).transpose(0, 2, 1) + 100.0
    for sizes in ([50], [1, 20, 29]):
        parts = np.split(shares, np.cumsum(sizes)[:-1], axis=2)
        (found,) = correlations([part] for part in parts)
        np.testing.assert_allclose(found, [np.corrcoef(draw) for draw in shares], atol=1e-10)
