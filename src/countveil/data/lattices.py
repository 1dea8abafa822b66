"""Multiples of a base among published values, which show that these were rounded."""

from functools import reduce
from math import gcd, log
from typing import Any, NamedTuple

import numpy as np

SURE = log(1e4)  # of the evidence that common steps are no coincidence
DIFFERENT = 3


class Lattice(NamedTuple):
    """All positive values are ``offset`` above multiples of ``step``."""

    step: int
    offset: int

    def __str__(self) -> str:
        if not self.offset:
            return f"multiples of {self.step}"
        return f"{self.offset} above multiples of {self.step}"


def lattice_of(values: Any, base: int = 1) -> Lattice | None:
    """The coarsest lattice of the positive values; None where it is that of the base, or they are too few to tell.

    NaN is skipped. Multiples of the base are on a lattice of step s by chance with probability base/s for each.
    """
    positive = values[values > 0]
    different = np.unique(positive)
    if different.size < DIFFERENT or (different != np.floor(different)).any() or different[-1] >= 2.0**53:
        return None
    whole = different.astype(np.int64)
    step = reduce(gcd, np.diff(whole).tolist())
    if step <= base or positive.size * log(step / base) < SURE:
        return None
    return Lattice(step, int(whole[0]) % step)
