"""What a report says about its count: one module or package per mechanism, and a line in this table."""

from countveil.laws.noise.any_mechanism import AnyMechanismNoise
from countveil.laws.noise.protocol import Noise
from countveil.laws.noise.two_sided_geometric.noise import TwoSidedGeometricNoise

__all__ = ["NOISES", "TWO_SIDED_GEOMETRIC", "AnyMechanismNoise", "Noise", "noise_called"]

NOISES: dict[str, Noise] = {noise.mechanism: noise for noise in (TwoSidedGeometricNoise(),)}
"""By the mechanism's name."""


def noise_called(mechanism: str) -> Noise:
    """The noise of a mechanism by its name, or that of all mechanisms that a text states in JSON.

    Raises:
        ValueError: an unknown mechanism.
    """
    if mechanism.startswith("["):
        return AnyMechanismNoise.stated(mechanism)
    if mechanism not in NOISES:
        raise ValueError(f"mechanism must be one of {sorted(NOISES)}, got {mechanism!r:.60}")
    return NOISES[mechanism]


TWO_SIDED_GEOMETRIC: Noise = NOISES["two-sided geometric"]
