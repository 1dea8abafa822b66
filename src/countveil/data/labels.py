"""Labels as text. Levels, offsets and masks that have labels must have those of the data, in their order.

A Series, DataFrame or DataArray with its entries in another order would put every level on another count, and nothing
would show it.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

SEPARATOR = " | "


def is_default(index: pd.Index) -> bool:
    """Whether this is pandas' default numbering."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def texts_of(index: Any) -> list[str]:
    """Labels of an index or a sequence as text, those of several levels joined by ``SEPARATOR``."""
    levels = isinstance(index, pd.MultiIndex)
    return [SEPARATOR.join(map(str, label)) if levels else str(label) for label in index]


def axis_labels(index: pd.Index, axis: str) -> list[str] | None:
    """Labels as text, those of several levels joined by ``SEPARATOR``; None for pandas' default numbering.

    Labels of rows may repeat, as in a release.

    Raises:
        ValueError: two columns have the same label; two labels that differ are the same text, as 1 and "1" are.
    """
    if is_default(index):
        return None
    texts = texts_of(index)
    distinct = len(set(texts))
    if distinct < index.nunique(dropna=False):
        alike = (index[np.array(texts) == text].unique() for text in Counter(texts))
        first, other = next(found[:2] for found in alike if len(found) > 1)
        raise ValueError(f"{axis} labels must differ as text, got {first!r} and {other!r}")
    if axis == "column" and distinct < len(texts):
        raise ValueError(f"column labels must differ, got {Counter(texts).most_common(1)[0][0]!r} twice")
    warn_of_white_space(texts, axis)
    return texts


def warn_of_white_space(texts: list[str], axis: str) -> None:
    """Warn of labels that differ in white space alone."""
    seen: dict[str, str] = {}
    for text in texts:
        first = seen.setdefault(" ".join(text.split()), text)
        if first != text:
            warnings.warn(
                f"{axis} labels {first!r} and {text!r} differ only in white space and are treated as different labels",
                stacklevel=2,
            )
            return


class Axis(NamedTuple):
    """What an axis of the data is called, and every way in which its entries are named: by the data, or beside them."""

    word: str
    ways: list[Any]


def axes_of(data: Any, rows: Any = None, columns: Any = None, labels: Any = None) -> list[Axis]:
    """The axes of data with the labels that were given beside them."""
    own: tuple[Any, ...] = ()
    if isinstance(data, pd.DataFrame | pd.Series):
        own = tuple(data.axes)
    elif is_annotated(data):
        by_name = hasattr(data, "obs_names")
        own = (data.obs_names, data.var_names) if by_name else (data.row_labels, data.column_labels)
    given = (rows, columns) if labels is None else tuple(labels)
    words = ["row", "column"] if len(given) <= 2 else ["row", *(f"axis {a}" for a in range(1, len(given)))]
    both = zip_longest(own, given)
    return [Axis(word, [names for names in ways if names is not None]) for word, ways in zip(words, both, strict=False)]


def axis_names(data: Any) -> tuple[str | None, ...]:
    """What a table calls its axes, None for one without a name; empty for anything that names none."""
    if not isinstance(data, pd.DataFrame):
        return tuple(getattr(data, "axis_names", ()))
    return texts_or_none([axis.name for axis in data.axes])


def texts_or_none(names: Iterable[Any]) -> tuple[str | None, ...]:
    """Names as text, None for an empty one."""
    return tuple(None if name is None else str(name) or None for name in names)


def in_order(name: str, value: Any, axes: Sequence[Axis]) -> Any:
    """A Series, DataFrame or DataArray of one or two axes as an array, anything else as it is.

    A Series goes along the first of these axes, a DataFrame along the last two, and a DataArray likewise; one entry for
    all of a table's rows or columns has no label to compare. A default numbering is no label either, except beside the
    same numbers in another order.

    Raises:
        ValueError: labels that are not those of the data, in their order; names the first that differs.
    """
    value = tabled(value)
    if isinstance(value, pd.Series):
        check_order(name, value.index, axes[0])
        return value.to_numpy()
    if not isinstance(value, pd.DataFrame):
        return value
    for axis, index in zip(axes[-2:], value.axes, strict=False):
        if len(index) > 1:
            check_order(name, index, axis)
    booleans = all(pd.api.types.is_bool_dtype(dtype) for dtype in value.dtypes)
    whole = booleans and not value.isna().to_numpy().any()
    return value.to_numpy(dtype=bool) if whole else value.to_numpy()


def in_order_of(name: str, value: Any, data: Any) -> Any:
    """What is broadcast against data by NumPy's rules: ``in_order``, where a Series goes along the last axis."""
    value = tabled(value)
    if not isinstance(value, pd.DataFrame | pd.Series):
        return value
    axes = axes_of(data)[: getattr(data, "ndim", 2)]
    return in_order(name, value, axes if isinstance(value, pd.DataFrame) else axes[-1:])


def tabled(value: Any) -> Any:
    """A DataArray of one or two axes as a Series or DataFrame, anything else as it is.

    Coordinates that number the entries of an axis from 0 are no labels, as in a fit of data without labels.
    """
    if not isinstance(value, xr.DataArray) or value.ndim not in (1, 2):
        return value
    found = value.to_pandas()
    for a, index in enumerate(found.axes):
        if pd.api.types.is_integer_dtype(index.dtype) and np.array_equal(index, np.arange(len(index))):
            found = found.set_axis(pd.RangeIndex(len(index)), axis=a)
    return found


def check_order(name: str, index: pd.Index, axis: Axis) -> None:
    """Refuse an index that names the entries of an axis in none of its ways; raises ValueError."""
    found = texts_of(index)
    ways = [names for names in axis.ways if len(names) == len(found)]
    known = [texts_of(names) for names in ways]
    if not known or found in known:
        return
    numbered = is_default(index) or is_default(ways[0])
    if numbered and set(found) != set(known[0]):
        return
    first = next(i for i, pair in enumerate(zip(found, known[0], strict=True)) if pair[0] != pair[1])
    raise ValueError(
        f"{name} must have the {axis.word} labels of reports in their order, got {found[first]!r} for "
        f"{known[0][first]!r} at {axis.word} {first}: sort it in their order, or pass .to_numpy() to match by "
        "position"
    )


def is_annotated(data: Any) -> bool:
    """Whether this is an AnnData object, or a ``CountTable`` read from a file: both name their rows and columns."""
    return all(hasattr(data, name) for name in ("X", "obs_names", "var_names", "layers")) or all(
        hasattr(data, name) for name in ("values", "row_labels", "column_labels")
    )
