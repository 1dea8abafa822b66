"""What a report says about its count: one mechanism, one module or package, and a line in this table."""

from countveil.noise.protocol import Noise
from countveil.noise.two_sided_geometric.noise import TwoSidedGeometricNoise

NOISES: dict[str, Noise] = {noise.mechanism: noise for noise in (TwoSidedGeometricNoise(),)}
"""By the mechanism's name."""


def noise_called(mechanism: str) -> Noise:
    """The noise of a mechanism, by its name.

    Raises:
        ValueError: a mechanism that no noise is known of.
    """
    if mechanism not in NOISES:
        raise ValueError(f"mechanism must be one of {sorted(NOISES)}, got {mechanism!r:.60}")
    return NOISES[mechanism]


TWO_SIDED_GEOMETRIC: Noise = NOISES["two-sided geometric"]
