"""Older versions of the release file, whose description is turned into what version 3 would say.

They knew two-sided geometric noise alone, and held its levels. In version 1 every array had 64 bits.
"""

from collections.abc import Callable
from typing import Any

from countveil.privacy import _npy
from countveil.privacy.errors import ReleaseError
from countveil.privacy.mechanisms import TwoSidedGeometric

VERSIONS = (1, 2)
KEYS = {
    "format": str,
    "format_version": int,
    "mechanism": str,
    "mechanism_version": int,
    "layout": str,
    "shape": list,
    "stored": int,
    "truncated": bool,
    "simulated": bool,
    "levels": list,
    "level_per_row": bool,
    "labels": list,
    "schema_hash": str,
}
MEMBERS = {"mechanism_of_row": "level_of_row"}
"""Arrays that were called otherwise."""


def widths(version: int) -> tuple[int, ...]:
    """How many bytes the numbers of an array may have."""
    return (8,) if version == 1 else _npy.WIDTHS


def upgraded(meta: dict[str, Any], fault: Callable[[str], ReleaseError]) -> dict[str, Any]:
    """The description in the words of version 3; raises ``fault`` for another mechanism or a level in odd form."""
    if meta["mechanism"] != TwoSidedGeometric.name:
        raise fault(f"must have mechanism {TwoSidedGeometric.name!r}, got {ascii(meta['mechanism'])[:40]}")
    levels = meta["levels"]
    if not all(isinstance(level, dict) and set(level) == {"epsilon", "precision"} for level in levels):
        raise fault("must give every level as epsilon and precision, got otherwise")
    entries = [
        {"name": meta["mechanism"], "version": meta["mechanism_version"], "parameters": level}
        for level in levels
    ]
    replaced = {"mechanism", "mechanism_version", "levels", "level_per_row"}
    kept = {key: value for key, value in meta.items() if key not in replaced}
    return kept | {"mechanisms": entries, "mechanism_per_row": meta["level_per_row"]}
