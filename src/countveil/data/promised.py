"""What several reports of the same counts promise together."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from countveil.data.numbering import by_mechanism
from countveil.privacy import PrivacyLevel
from countveil.privacy._waves import added
from countveil.privacy.any_level import Level


def both(one: Level | None, other: Level | None) -> Level | None:
    """The level of two independent reports of one record, at the N of the first; None where one of them keeps none."""
    return None if one is None or other is None else added([one, other])


def levels_by_row(mechanism: Any, shape: tuple[int, ...]) -> list[Level | None]:
    """The level that reports of each row keep, None where there is none, or more than one mechanism in the row."""
    found: list[Level | None] = [None] * shape[0]
    for each, cells in by_mechanism(mechanism, shape):
        level = PrivacyLevel.kept_by(each)
        whole = np.ones(shape[0], dtype=bool) if cells is None else cells.reshape(shape[0], -1).all(axis=1)
        for d in np.flatnonzero(whole).tolist():
            found[d] = level
    return found


def promise_of(levels: Sequence[Level | None]) -> str:
    """What the reports of one record promise together, in words, for the record with the weakest promise."""
    if any(each is None for each in levels):
        return "The reports of some records keep no level of privacy that could be added up."
    weakest = max((each for each in levels if each is not None), key=lambda each: each.kept_rho)
    return f"All reports of one record together: {weakest.describe(together=True)}"
