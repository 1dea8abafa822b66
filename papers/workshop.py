"""The synthetic data of the workshop paper: gamma factors, Poisson counts."""

from typing import NamedTuple

import numpy as np

SHAPE, SCALE = 0.25, 4.0  # Gamma(0.25, 4), the 4 read as a scale: as a rate almost all counts would be zero


class Factors(NamedTuple):
    """True factors and counts."""

    theta: np.ndarray  # (D, K)
    phi: np.ndarray  # (V, K)
    counts: np.ndarray  # (D, V)

    @property
    def rate(self) -> np.ndarray:
        """(D, V) true rates."""
        return self.theta @ self.phi.T


def workshop_data(rng: np.random.Generator, rows: int, columns: int, components: int) -> Factors:
    """Factors from their prior, counts from them; the paper does not say how many there are of either."""
    theta = rng.gamma(SHAPE, SCALE, (rows, components))
    phi = rng.gamma(SHAPE, SCALE, (columns, components))
    return Factors(theta, phi, rng.poisson(theta @ phi.T))
