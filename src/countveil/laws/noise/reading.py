"""Reports of any mechanism as people hand them over, read and checked."""

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from countveil.common.arrays import refuse
from countveil.laws.noise.laws import law_of
from countveil.laws.noise.report_law import Flags, Floats
from countveil.privacy.mechanisms import AddedNoise, Mechanism

LARGEST = 2.0**53
"""Reports are below this in size, so that they are floats as well."""
MANY = 20.0
"""Negative reports that are missed: by chance, there are none with probability e^-20."""


def read_reports(reports: Any, mechanism: Mechanism, skip: Flags | None = None) -> Floats:
    """Reports as floats, NaN where absent, and where they are to be skipped (booleans of the same shape).

    Raises:
        TypeError: reports that are no numbers.
        ValueError: reports that the mechanism cannot have made: NaN where every count has a report, fractions where
            reports are whole numbers, and whatever else its law says.
    """
    if isinstance(reports, np.ma.MaskedArray) and np.ma.is_masked(reports):
        raise ValueError("reports must not hold masked entries: leave them out, or draw them from the model")
    found = numbers_of(reports.toarray() if sparse.issparse(reports) else reports)
    read = np.ones(found.shape, np.bool_) if skip is None else ~skip
    absent = np.isnan(found)
    if not getattr(mechanism, "absent", False):
        rule = f"reports must not be missing, because {mechanism.name} gives every count a report"
        refuse(f"{rule}: leave them out, or mask them", read & absent, found)
    there = read & ~absent
    with np.errstate(invalid="ignore"):
        refuse("reports must be below 2^53 in size", there & ~(np.abs(found) < LARGEST), found)
        if not getattr(mechanism, "real", False):
            refuse("reports must be whole numbers", there & (np.floor(found) != found), found)
        for rule, broken in law_of(mechanism).broken(found):
            refuse(f"{rule}, under {mechanism.in_words:.150}", there & broken, found)
    return found if skip is None else np.where(skip, np.nan, found)


def numbers_of(reports: Any) -> Floats:
    """Numbers, with None, NaN and pandas' NA as NaN; raises TypeError for anything else."""
    array = np.asarray(reports)
    if array.dtype.kind == "O":
        missing = np.asarray(pd.isna(array))
        kinds = {type(value).__name__ for value in array[~missing] if not isinstance(value, int | float | np.number)}
        if kinds:
            raise TypeError(f"reports must be numbers, got {min(kinds)}")
        return np.where(missing, np.nan, array).astype(np.float64)
    if array.dtype.kind not in "buif":
        raise TypeError(f"reports must be numbers, got {type(reports).__name__} of dtype {array.dtype}")
    return array.astype(np.float64)


def check_sign(reports: np.ndarray, zeros: int, mechanism: Mechanism) -> None:
    """Refuses noisy reports that were truncated at zero; raises ValueError. Two-sided geometric noise is exempt.

    Of a count of zero, reports of -1 and of 0 are as likely as the noise says; half of the zeros are taken to be of
    other counts.
    """
    if not isinstance(mechanism, AddedNoise) or (reports < 0).any():
        return
    below, at = (float(law_of(mechanism).log_kernel(np.array([r]), np.array([0]))[0]) for r in (-1.0, 0.0))
    if 0.5 * zeros * np.exp(below - at) > MANY:
        raise ValueError(
            f"reports must be as the mechanism made them, got {zeros} zeros and no negative one under "
            f"{mechanism.in_words}: they were truncated at zero, which only two-sided geometric noise "
            "survives. Get the reports before that"
        )
