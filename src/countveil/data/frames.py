"""DataFrames with a row for each row of the data: their values, labels and masks, and a forgotten index."""

import re
import warnings
from collections import Counter
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

SEPARATOR = " | "
ROWS_TO_JUDGE = 10  # fewer counts may increase from row to row by chance
SAVED_INDEX = re.compile(r"Unnamed: 0(_level_0)?")


def frame_values(frame: pd.DataFrame) -> Any:
    """The numbers of a frame, missing ones as NaN: a sparse array where all columns are sparse and mostly zero.

    Raises:
        ValueError: a column of text or dates, or an index that was saved as a column; names the remedy.
    """
    check_first_column(frame)
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
        column = column.astype(np.float64)
    elif not (is_number(column.dtype) or known.empty):
        what = "text" if isinstance(known.iloc[0], str) else f"values of type {type(known.iloc[0]).__name__}"
        raise ValueError(
            f"reports must be whole numbers, got {what} in column {place}: if it names the rows, read the file with "
            "index_col=0 or use .set_index; a table with a row for each cell or event goes to from_frame"
        )
    if missing.any():
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return column.to_numpy(dtype=np.int64 if pd.api.types.is_integer_dtype(column.dtype) else np.float64)


def is_number(dtype: Any) -> bool:
    """Whether a type is of numbers or booleans, also among those of PyArrow."""
    return pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)


def check_first_column(frame: pd.DataFrame) -> None:
    """Refuse an index that was saved as the first column, and warn of a column that looks like one."""
    if 0 in frame.shape:
        return
    name = frame.columns[0]
    name = name[0] if isinstance(name, tuple) else name
    if isinstance(name, str) and SAVED_INDEX.fullmatch(name):
        raise ValueError(
            f"reports must not have their index among them, got a first column called {name!r}: read the file with "
            "index_col=0 or use .set_index"
        )
    first = frame.iloc[:, 0]
    numbered = is_default(frame.index) and len(frame) >= ROWS_TO_JUDGE
    if (
        numbered
        and pd.api.types.is_integer_dtype(first.dtype)
        and first.is_monotonic_increasing
        and first.is_unique
    ):
        warnings.warn(
            "the first column of the reports increases from row to row, as an index does: if it names the rows, read "
            "the file with index_col=0 or use .set_index",
            stacklevel=2,
        )


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
