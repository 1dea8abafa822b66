"""What a report says about its count: one mechanism, one module or package, and a line in this table."""

from countveil.noise.protocol import Noise
from countveil.noise.two_sided_geometric.noise import TwoSidedGeometricNoise

NOISES: dict[str, Noise] = {noise.mechanism: noise for noise in (TwoSidedGeometricNoise(),)}
"""By the mechanism's name."""

TWO_SIDED_GEOMETRIC: Noise = NOISES["two-sided geometric"]
