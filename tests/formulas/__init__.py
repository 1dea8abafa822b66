"""A check for every numbered formula of docs/mathematics.md; ``CHECKS`` has them all by number."""

from tests.formulas import (
    arrays,
    ascent,
    bursts,
    contractions,
    covariates,
    dispersions,
    doubts,
    dynamics,
    estimates,
    layers,
    mechanisms,
    one_report,
    published,
    shapes,
    stacking,
)
from tests.formulas.brute import CHECKS

__all__ = [
    "CHECKS",
    "arrays",
    "ascent",
    "bursts",
    "contractions",
    "covariates",
    "dispersions",
    "doubts",
    "dynamics",
    "estimates",
    "layers",
    "mechanisms",
    "one_report",
    "published",
    "shapes",
    "stacking",
]
