"""Counts that are known to lie in ranges, as reports with a mechanism for every range."""

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.data.labels import axes_of, in_order, tabled
from countveil.data.matrices import check_mask
from countveil.laws.noise.reading import LARGEST, numbers_of, refuse
from countveil.privacy.mechanisms import Interval


def ranges(lower: Any, upper: Any, mask: Any = None) -> tuple[Any, np.ndarray]:
    """(reports, NaN where a count is not known, and their mechanisms by cell), as ``Reports`` and imports take them.

    Args:
        lower, upper: whole numbers of one shape, or one number for all cells; ``np.inf`` is no upper bound. A DataFrame
            gives its labels to the reports, and both have the same ones in the same order.
        mask: booleans of that shape, or None; bounds of masked cells are not read.

    Raises:
        TypeError: bounds that are no numbers, or sparse.
        ValueError: bounds that are not whole, negative, crossed or NaN, and other shapes or labels.
    """
    given = {"lower": tabled(lower), "upper": tabled(upper)}
    labelled = next((each for each in given.values() if isinstance(each, pd.DataFrame)), None)
    axes = axes_of(labelled)
    low, high = (bounds(name, in_order(name, each, axes)) for name, each in given.items())
    shapes = {each.shape for each in (low, high) if each.ndim}
    if len(shapes) != 1:
        raise ValueError(
            f"lower and upper must have one shape, or be one number for all cells, got {low.shape} and {high.shape}"
        )
    shape = shapes.pop()
    hidden = check_mask(in_order("mask", mask, axes), shape)
    seen = np.ones(shape, dtype=bool) if hidden is None else ~hidden
    low, high = (np.where(seen, each, 0.0) for each in (low, high))
    refuse(
        "lower must be whole and not negative", ~((low >= 0) & (low < LARGEST) & (np.floor(low) == low)), low
    )
    whole = (high == np.inf) | ((high < LARGEST) & (np.floor(high) == high))
    refuse("upper must be whole, or np.inf", ~whole, high)
    refuse("upper must be at least lower", high < low, high)
    known = low == high
    pairs, place = np.unique(np.stack([low[~known], high[~known]], axis=1), axis=0, return_inverse=True)
    different = [Interval(int(a), None if b == np.inf else int(b)) for a, b in pairs]
    # a known count has any of these mechanisms: they all say the same of it
    mechanism = np.full(shape, different[0] if different else Interval(0), dtype=object)
    each_cell = np.empty(len(different), dtype=object)
    each_cell[:] = different
    mechanism[~known] = each_cell[place.reshape(-1)]
    values = np.where(known, low, np.nan)
    if labelled is None:
        return values, mechanism
    return pd.DataFrame(values, labelled.index, labelled.columns), mechanism


def bounds(name: str, values: Any) -> np.ndarray:
    """Bounds as floats; raises TypeError for what are no numbers, ValueError for masked ones."""
    if sp.issparse(values):
        raise TypeError(f"{name} must be a dense array, got a sparse one: pass {name}.toarray()")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} must not hold masked entries: pass mask= instead")
    try:
        return numbers_of(values)
    except TypeError:
        raise TypeError(f"{name} must be numbers, got {type(values).__name__} of others") from None
