"""What counts say about shapes: against SciPy's negative binomial, and its derivatives by differences."""

import numpy as np
from scipy import special, stats

from countveil.kernels.shapes import look_at_shapes

COUNTS = np.array([[0.0, 1.0, 3.0, 16.0], [17.0, 60.0, 5000.0, 0.0], [2.0, 0.0, 40.0, 900.0]])
SHAPES = np.array([[0.1, 1e-3, 2.0, 0.4], [0.05, 3.0, 700.0, 9000.0], [1e-4, 2e-4, 0.9, 30.0]])
MEANS = np.array([[0.5, 4.0, 1.0, 30.0], [1e-6, 80.0, 1e4, 3.0], [0.2, 1e-9, 0.0, 50.0]])  # times exposures


def looked_at(log_shapes):
    slope, bend = np.empty_like(log_shapes), np.empty_like(log_shapes)
    return look_at_shapes(log_shapes, COUNTS, MEANS, slope, bend), slope, bend


def plain(log_shapes):
    """(3, 4) log-densities, without what does not depend on shapes."""
    a = np.exp(log_shapes)
    law = special.gammaln(a + COUNTS) - special.gammaln(a) - special.gammaln(COUNTS + 1.0)
    return law - COUNTS * log_shapes - (a + COUNTS) * np.log1p(MEANS / a)


def test_densities_are_negative_binomial():
    mass, _, _ = looked_at(np.log(SHAPES))
    np.testing.assert_allclose(mass, plain(np.log(SHAPES)).sum(axis=0), rtol=1e-9)
    seen = MEANS > 0.0
    law = stats.nbinom.logpmf(COUNTS, SHAPES, SHAPES / (SHAPES + MEANS))[seen]
    np.testing.assert_allclose(
        law, (plain(np.log(SHAPES)) + COUNTS * np.log(np.maximum(MEANS, 1e-300)))[seen], rtol=1e-8
    )


def test_slopes_and_bends_are_derivatives():
    u, h = np.log(SHAPES), 1e-3
    _, slope, bend = looked_at(u)
    far, near, size = (
        plain(u + h) - plain(u - h),
        plain(u + h / 2) - plain(u - h / 2),
        np.maximum(COUNTS, 1.0),
    )
    np.testing.assert_allclose(slope, (8.0 * near - far) / (6.0 * h), rtol=1e-6, atol=1e-8 * size.max())
    (_, up, _), (_, down, _) = looked_at(u + h), looked_at(u - h)
    np.testing.assert_allclose(-bend, (up - down) / (2.0 * h), rtol=1e-4, atol=1e-6)
