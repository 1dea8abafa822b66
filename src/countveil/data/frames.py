"""DataFrames with a row for each row of the data: their values, labels and masks, and a forgotten index."""

import warnings
from collections import Counter
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.privacy._index import REMEDY, check_columns

SEPARATOR = " | "


def frame_values(frame: pd.DataFrame) -> Any:
    """The numbers of a frame, missing ones as NaN: a sparse array where all columns are sparse and mostly zero.

    Raises:
        ValueError: a column of text or dates, or an index among the columns; names the remedy.
    """
    values = numbers_of(frame)
    if 0 not in frame.shape:
        check_columns("reports", list(frame.columns), values, is_default(frame.index))
    return values


def numbers_of(frame: pd.DataFrame) -> Any:
    """The numbers of a frame, whatever its columns are; errors as ``frame_values``."""
    kinds = {dtype.kind if isinstance(dtype, np.dtype) else "" for dtype in frame.dtypes}
    if kinds <= set("iufc") or kinds == {"b"}:
        return frame.to_numpy()
    if all(isinstance(dtype, pd.SparseDtype) and dtype.fill_value == 0 for dtype in frame.dtypes):
        return sp.csr_array(frame.sparse.to_coo())
    return np.column_stack([column_values(frame, place) for place in range(frame.shape[1])])


def column_values(frame: pd.DataFrame, place: int) -> np.ndarray:
    """The numbers of one column, of any type that pandas has for numbers."""
    column = frame.iloc[:, place]
    if isinstance(column.dtype, pd.CategoricalDtype) or column.dtype == object:
        column = pd.Series(np.asarray(column)).infer_objects()
    missing = column.isna().to_numpy()
    known = column[~missing]
    if column.dtype == object and all(isinstance(value, bool | np.bool_ | Real | Decimal) for value in known):
        column = column.mask(column.isna(), np.nan).astype(np.float64)  # pandas' NA is no number
    elif not (is_number(column.dtype) or known.empty):
        what = "text" if isinstance(known.iloc[0], str) else f"values of type {type(known.iloc[0]).__name__}"
        raise ValueError(
            f"reports must be whole numbers, got {what} in column {place}: if it names the rows, {REMEDY}; a table "
            "with a row for each cell or event goes to from_frame"
        )
    if missing.any():
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return column.to_numpy(dtype=np.int64 if pd.api.types.is_integer_dtype(column.dtype) else np.float64)


def is_number(dtype: Any) -> bool:
    """Whether a type is of numbers or booleans, also among those of PyArrow."""
    return pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)


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
                f"{axis} labels {first!r} and {text!r} differ in white space alone, and are taken for different ones",
                stacklevel=2,
            )
            return
