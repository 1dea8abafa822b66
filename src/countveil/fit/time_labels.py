"""Labels of time steps that come after those of the data."""

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

MIN_STEPS = 3  # that show a rhythm
COMPACT = {"M": ("%Y%m", r"[12]\d{3}(0[1-9]|1[0-2])"), "D": ("%Y%m%d", r"[12]\d{3}(0[1-9]|1[0-2])[0-3]\d")}
WEEK = r"\d{4}-\d{2}-\d{2}/\d{4}-\d{2}-\d{2}"


def continued(names: Sequence[Any], steps: int) -> list[Any]:
    """The labels of ``steps`` more time steps, as the labels so far go on.

    Whole numbers at equal distances go on as such, unless they are months or days written as 200112 and 20011231. These
    go on in time, and so do dates, months, quarters and weeks with a frequency that pandas infers; each as text where
    they are text. All other labels are followed by "t+1", "t+2", ..., from the first
    number that is no label yet. Raises ValueError for dates beyond those that pandas has.
    """
    found = compact_dates(names, steps)
    if found is None:
        found = whole_numbers(names, steps)
    if found is None:
        found = dates(names, steps)
    if found is not None:
        return found
    last = max((step for step, name in enumerate(after(len(names)), 1) if name in set(names)), default=0)
    return after(last + steps)[last:]


def after(steps: int) -> list[str]:
    """ "t+1", "t+2", ..."""
    return [f"t+{step}" for step in range(1, steps + 1)]


def compact_dates(names: Sequence[Any], steps: int) -> list[Any] | None:
    """Months and days without hyphens go on at equal distances; None for other labels."""
    texts = written(names)
    for period, (form, pattern) in COMPACT.items():
        if len(texts) < MIN_STEPS or not all(re.fullmatch(pattern, text) for text in texts):
            continue
        try:
            found = pd.PeriodIndex(pd.to_datetime(texts, format=form), freq=period)
        except ValueError:  # such as 20010230
            continue
        gaps = np.unique(np.diff(found.asi8))
        if len(gaps) == 1 and gaps[0] > 0:
            later = [(found[-1] + int(gaps[0]) * step).strftime(form) for step in range(1, steps + 1)]
            return later if isinstance(names[0], str) else [type(names[0])(int(each)) for each in later]
    return None


def written(names: Sequence[Any]) -> list[str]:
    """Labels as text, numbers without a fraction as whole ones."""
    return [str(int(name)) if is_whole(name) else str(name) for name in names]


def whole_numbers(names: Sequence[Any], steps: int) -> list[Any] | None:
    """Whole numbers at equal distances go on; None for other labels."""
    texts = written(names)
    if not all(text.removeprefix("-").isdecimal() and len(text) < 18 for text in texts):
        return None
    numbers = [int(text) for text in texts]
    gaps = np.unique(np.diff(numbers))
    if len(numbers) > 1 and (len(gaps) > 1 or gaps[0] == 0):
        return None
    gap = int(gaps[0]) if len(gaps) else 1
    later = [numbers[-1] + gap * step for step in range(1, steps + 1)]
    if not isinstance(names[0], str):
        return [type(names[0])(each) for each in later]
    width = len(texts[0]) if any(text.startswith("0") and text != "0" for text in texts) else 0
    return [str(each).zfill(width) for each in later]


def is_whole(name: Any) -> bool:
    """Whether a label is a number without a fraction that is not written as a whole number."""
    return isinstance(name, float | np.floating) and float(name).is_integer()


def dates(names: Sequence[Any], steps: int) -> list[Any] | None:
    """Dates at a frequency that pandas infers go on, in the same form; None for other labels."""
    texts = [str(name) for name in names]
    if len(texts) < MIN_STEPS:
        return None
    if all(re.fullmatch(WEEK, text) for text in texts):
        try:
            return weeks(texts, steps)
        except (ValueError, OverflowError):  # no dates
            return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            found = pd.DatetimeIndex(pd.to_datetime(texts, format=None))
            frequency = pd.infer_freq(found)
        except (ValueError, TypeError, OverflowError):
            return None
    if frequency is None:
        return None
    try:
        later = pd.date_range(found[-1], periods=steps + 1, freq=frequency)[1:]
    except (ValueError, OverflowError):
        last = pd.Timestamp.max.date()
        raise ValueError(
            f"steps must end by {last}, the last date there is, got {steps} after {texts[-1]}"
        ) from None
    written = writer_of(texts, found)
    return None if written is None else written(later)


def writer_of(
    texts: Sequence[str], found: pd.DatetimeIndex
) -> Callable[[pd.DatetimeIndex], list[str]] | None:
    """How all these dates are written; None if it is not known."""
    forms = (
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%d",
        "%Y-%m",
        "%Y-%m-%dT%H:%M:%S",
        "%Y/%m/%d",
        "%d.%m.%Y",
        "%b %Y",
        "%B %Y",
    )
    for form in forms:
        if list(found.strftime(form)) == list(texts):
            return lambda dates: list(dates.strftime(form))
    for each in (quarters, lambda dates: [str(date) for date in dates]):
        if each(found) == list(texts):
            return each
    return None


def quarters(dates: pd.DatetimeIndex) -> list[str]:
    """2001Q1, ..."""
    return [f"{date.year}Q{date.quarter}" for date in dates]


def weeks(texts: Sequence[str], steps: int) -> list[Any] | None:
    """Weeks as pandas writes them, 2001-01-01/2001-01-07, go on; None for other pairs of dates."""
    first, last = (pd.DatetimeIndex([text.split("/")[i] for text in texts]) for i in (0, 1))
    week = pd.Timedelta(days=7)
    if not (last - first == week - pd.Timedelta(days=1)).all() or not (first[1:] - first[:-1] == week).all():
        return None
    later = [first[-1] + week * step for step in range(1, steps + 1)]
    return [f"{day:%Y-%m-%d}/{day + week - pd.Timedelta(days=1):%Y-%m-%d}" for day in later]
