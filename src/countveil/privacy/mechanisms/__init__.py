"""Mechanisms: what was done to every count before anybody but its owner saw it.

A mechanism is a frozen value with a name, a version and exact parameters. It says in plain words what it
protects, and files state it in JSON: {"name": ..., "version": ..., "parameters": {...}}, numbers as reduced
fractions in text. It needs the standard library alone.

To add a mechanism, write one file with a class and add one line to the table below. Releases, their files and their
descriptions then take it as they take the others.
"""

from countveil.privacy.mechanisms.base import MECHANISMS, AddedNoise, Elsewhere, Mechanism, from_json
from countveil.privacy.mechanisms.composed import Composed
from countveil.privacy.mechanisms.gaussian import DiscreteGaussian, Gaussian
from countveil.privacy.mechanisms.hiding import Interval, Suppression, TopCoding
from countveil.privacy.mechanisms.laplace import Laplace
from countveil.privacy.mechanisms.presets import PRESETS, Preset, preset
from countveil.privacy.mechanisms.response import RandomisedResponse
from countveil.privacy.mechanisms.rounding import RandomRounding, Rounding
from countveil.privacy.mechanisms.skellam import Skellam
from countveil.privacy.mechanisms.table import Table
from countveil.privacy.mechanisms.thresholded import Thresholded
from countveil.privacy.mechanisms.two_sided_geometric import TwoSidedGeometric

__all__ = [
    "MECHANISMS",
    "PRESETS",
    "AddedNoise",
    "Composed",
    "DiscreteGaussian",
    "Elsewhere",
    "Gaussian",
    "Interval",
    "Laplace",
    "Mechanism",
    "Preset",
    "RandomRounding",
    "RandomisedResponse",
    "Rounding",
    "Skellam",
    "Suppression",
    "Table",
    "Thresholded",
    "TopCoding",
    "TwoSidedGeometric",
    "from_json",
    "preset",
]

_KINDS: tuple[type[Mechanism], ...] = (
    TwoSidedGeometric,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Skellam,
    RandomRounding,
    Rounding,
    Suppression,
    Interval,
    TopCoding,
    Composed,
    RandomisedResponse,
    Thresholded,
    Table,
)
MECHANISMS.update((kind.name, kind) for kind in _KINDS)
