"""Whole numbers that a user passes in, checked."""

from typing import Any

import numpy as np

LARGEST = 2**63 - 1  # what compiled functions take


def check_integer(name: str, value: Any, least: int, most: int = LARGEST) -> None:
    """Refuse what is not a whole number from ``least`` to ``most``."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if whole and value > most:  # it may have more digits than Python prints
        raise ValueError(f"{name} must be a whole number of at most {most}, got a larger one")
    if not whole or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
