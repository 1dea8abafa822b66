"""Dates of the rows: read, put into the order of the data's rows, and made steps of one length."""

import re
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.data.covariates import in_order_of_rows
from countveil.data.date_labels import UnclearOrderError, dates_of
from countveil.data.labels import texts_of

PERIODS = "Y", "Q", "M", "W", "D"  # years to days, as pandas calls them
USUAL_STEPS = 60  # as many as a period chosen for dates may give
MOST_STEPS = 1000
_WHOLE = r"[+-]?\d{1,9}"
_DIGITS = r"[12]\d{3}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])?"  # 199803 and 19980305
EXAMPLES = "1998, 1998Q1, 1998-03 or 1998-03-05"


class Dates(NamedTuple):
    """The steps of time that some data have, and the step of every row."""

    names: tuple[int | str, ...]  # (T,) of the steps in their order: whole numbers, or text
    step: np.ndarray  # (D,) from 0; there may be steps without rows


def read_dates(time: Any, labels: list[str] | None, n_rows: int) -> Dates:
    """The dates of the data's rows as steps of one length, those without rows included.

    Whole numbers go by the largest step that meets them all. Dates go by years, quarters, months, weeks or days: the
    longest period that keeps different days apart if it makes at most ``USUAL_STEPS`` steps, else the shortest that
    makes no more. Periods of pandas, and text such as 1998-03, Mar 1998 and 1998Q1, have a length of their own. Text
    without digits is in the order of its letters, or of its categories if they have one, and every text is a step; a
    warning says so where the rows have another. Other text with digits is refused, since its letters say nothing, and
    so are months and days written as 199803 and 19980305.

    A Series with labels of its own, or a mapping, is put into the order of the rows' labels; all else goes by position.

    Raises:
        TypeError: no sequence, Series or mapping; values that are neither numbers, dates nor text.
        ValueError: a row without a date (by name), too many dates, a number that is not whole, dates that are all the
            same, or more than ``MOST_STEPS`` steps.
    """
    series = in_order(time, labels, n_rows)
    series = series.mask([isinstance(value, str) and not value.strip() for value in series])
    if series.isna().any():
        where = int(np.flatnonzero(series.isna())[0])
        row = where if labels is None else labels[where]
        raise ValueError(
            f"time must have no missing dates, got {int(series.isna().sum())}, the first in row {row}"
        )
    try:
        names, step = steps_of(series)
    except pd.errors.OutOfBoundsDatetime as error:
        raise ValueError(f"time must have dates from 1678 to 2261, got one outside: {error}") from error
    if len(set(step.tolist())) < 2:
        raise ValueError(
            f"time must have two different steps at least, none shorter than a day, got {names[step[0]]} alone"
        )
    return Dates(tuple(names), step)


def in_order(time: Any, labels: list[str] | None, n_rows: int) -> pd.Series:
    """Dates in the order of the rows, as pandas has them; raises TypeError and ValueError."""
    if isinstance(time, Mapping):
        if labels is None:
            raise ValueError("time must be a sequence for data without labels of rows, got a mapping")
        time = pd.Series(list(time.values()), index=pd.Index(list(time), dtype=object))
    elif isinstance(time, pd.DataFrame | str | bytes) or not hasattr(time, "__len__"):
        raise TypeError(f"time must be a sequence, a Series or a mapping, got {type(time).__name__}")
    elif not isinstance(time, pd.Series):
        if np.ndim(time) != 1:
            raise ValueError(f"time must have one axis, got {np.ndim(time)}")
        time = pd.Series(time if isinstance(time, pd.Index) else pd.Index(time)).reset_index(drop=True)
    return in_order_of_rows(time.to_frame(), labels, n_rows, "time").iloc[:, 0].reset_index(drop=True)


def steps_of(series: pd.Series) -> tuple[list[Any], np.ndarray]:
    """(names of the steps, the number of every row's); raises TypeError and ValueError."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        if series.cat.ordered:
            check_number_of_steps(len(series.cat.categories))
            return texts_of(series.cat.categories), series.cat.codes.to_numpy(dtype=np.int64)
        series = series.astype(series.cat.categories.dtype)
    series = series.infer_objects()
    if isinstance(series.dtype, pd.PeriodDtype):
        return steps_of_periods(pd.PeriodIndex(series))
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return steps_of_dates(pd.DatetimeIndex(series))
    if pd.api.types.is_bool_dtype(series.dtype):
        raise TypeError("time must be numbers, dates or text, got booleans")
    if pd.api.types.is_numeric_dtype(series.dtype):
        return steps_of_numbers(series.to_numpy(dtype=np.float64))
    kinds = {type(value) for value in series}
    if kinds <= {str, np.str_}:
        return steps_of_texts([str(value).strip() for value in series])
    if all(hasattr(kind, "isoformat") and hasattr(kind, "year") for kind in kinds):
        return steps_of_dates(pd.DatetimeIndex(pd.to_datetime(series)))
    names = sorted(kind.__name__ for kind in kinds)
    raise TypeError(f"time must be numbers, dates or text, got values of type {', '.join(names)}")


def steps_of_texts(texts: list[str]) -> tuple[list[Any], np.ndarray]:
    """Steps of numbers, dates, months or quarters that are written as text, or of any other text; raises ValueError."""
    if all(re.fullmatch(_WHOLE, text) for text in texts):
        return steps_of_numbers(np.array([int(text) for text in texts], dtype=np.float64))
    try:
        dates = dates_of(texts)
    except UnclearOrderError as error:
        raise ValueError(
            f"time: {error}: pd.to_datetime(time, dayfirst=True) or dayfirst=False reads them (--day-first or "
            "--month-first)"
        ) from error
    except ValueError as error:
        raise ValueError(f"time: {error}") from error
    if dates is not None and dates.form == "day":
        return steps_of_dates(pd.DatetimeIndex([pd.Timestamp(day) for day in dates.first_day]))
    if dates is not None and dates.write is not None:
        begin, end = int(dates.number.min()), int(dates.number.max())
        check_number_of_steps(end - begin + 1)
        return [dates.write(number) for number in range(begin, end + 1)], dates.number - begin
    odd = next((text for text in texts if re.search(r"\d", text)), None)
    if odd is not None:
        raise ValueError(
            f"time must be dates in one form, {EXAMPLES}, or text without digits, got {odd!r}: for other steps, pass "
            "an ordered pandas Categorical"
        )
    names, step = np.unique(np.array(texts, dtype=object), return_inverse=True)
    check_number_of_steps(names.size)
    if names.tolist() != list(dict.fromkeys(texts)):
        first = ", ".join(names[:5]) + (", .." if names.size > 5 else "")
        warnings.warn(
            f"time is text, whose steps are in alphabetical order ({first}): for another order take numbers, or an "
            "an ordered pandas Categorical",
            stacklevel=2,
        )
    return names.tolist(), step.astype(np.int64)


def steps_of_numbers(values: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Steps from the smallest to the largest of some whole numbers; raises ValueError."""
    odd = values[~(np.isfinite(values) & (values == np.round(values)) & (np.abs(values) < 1e15))]
    if odd.size:
        raise ValueError(f"time must be whole numbers, dates or text, got {odd[0]:g}")
    whole = values.astype(np.int64)
    if all(re.fullmatch(_DIGITS, str(number)) for number in whole):
        raise ValueError(f"time must be in the form 1998-03 or 1998-03-05 for months or days, got {whole[0]}")
    gap = max(int(np.gcd.reduce(np.abs(whole - whole.min()))), 1)
    step = (whole - whole.min()) // gap
    check_number_of_steps(int(step.max()) + 1)
    return [int(whole.min()) + gap * t for t in range(int(step.max()) + 1)], step


def steps_of_dates(dates: pd.DatetimeIndex) -> tuple[list[Any], np.ndarray]:
    """Steps of a period that is chosen as ``read_dates`` says; raises ValueError."""
    days = dates.tz_localize(None).normalize()
    tried = [days.to_period(period) for period in PERIODS]
    n_days = days.nunique()
    apart = next(each for each in tried if each.nunique() == n_days)
    if length_of(apart) <= USUAL_STEPS:
        return steps_of_periods(apart)
    short = (each for each in reversed(tried) if length_of(each) <= USUAL_STEPS)
    return steps_of_periods(next(short, tried[0]))


def length_of(periods: pd.PeriodIndex) -> int:
    """How many steps there are from the first to the last."""
    return int((periods.max() - periods.min()).n) // int(periods.freq.n) + 1


def steps_of_periods(periods: pd.PeriodIndex) -> tuple[list[Any], np.ndarray]:
    """Every period from the first to the last; raises ValueError."""
    check_number_of_steps(length_of(periods))
    every = pd.period_range(periods.min(), periods.max(), freq=periods.freq)
    return [str(each) for each in every], every.get_indexer(periods).astype(np.int64)


def check_number_of_steps(n_steps: int) -> None:
    """Refuse more steps than ``MOST_STEPS``; raises ValueError, which says what to do."""
    if n_steps > MOST_STEPS:
        raise ValueError(
            f"time must have at most {MOST_STEPS} steps, got {n_steps}: give longer periods, such as months"
        )
