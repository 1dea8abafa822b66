"""Time steps: labels of steps after the data, and the length and the names of seasons."""

from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.common.parameters import check_integer
from countveil.data.dates import DateLabels, dates_of, months_of

MIN_STEPS = 3  # that show a rhythm
LAST_DAY = pd.Timestamp.max.date()


def continued(names: Sequence[Any], steps: int, day_first: bool | None = None) -> list[Any]:
    """The labels of ``steps`` more time steps, as the labels so far go on.

    Dates at equal distances go on in time, months and days written as 200112 and 20011231 included, and whole numbers
    as such; each as text where they are text. All other labels are followed by "t+1", "t+2", ..., from the first number
    that is no label yet. Raises ValueError for dates beyond those that pandas has.
    """
    found = later_dates(names, steps, day_first)
    if found is None:
        found = whole_numbers(names, steps)
    if found is not None:
        return found
    last = max((step for step, name in enumerate(after(len(names)), 1) if name in set(names)), default=0)
    return after(last + steps)[last:]


def after(steps: int) -> list[str]:
    """ "t+1", "t+2", ..."""
    return [f"t+{step}" for step in range(1, steps + 1)]


def later_dates(names: Sequence[Any], steps: int, day_first: bool | None) -> list[Any] | None:
    """Dates at equal distances go on in the same style; None for other labels, and years."""
    texts = written(names)
    try:
        found = dates_of(texts, day_first)
    except ValueError:  # labels of a fit, which need not be dates
        return None
    if found is None or found.write is None or (found.unit == "year" and texts[0].isdecimal()):
        return None
    gaps = np.unique(np.diff(found.number))
    if len(texts) < MIN_STEPS or len(gaps) > 1 or gaps[0] <= 0:
        return None
    last, gap = int(found.number[-1]), int(gaps[0])
    too_late = ValueError(f"steps must end by {LAST_DAY}, the last date there is, got {steps} after {texts[-1]}")
    try:
        later = [found.write(last + gap * step) for step in range(1, steps + 1)]
    except (ValueError, OverflowError):
        raise too_late from None
    end = dates_of([later[-1]], day_first)
    if end is not None and end.first_day[0] > LAST_DAY:
        raise too_late
    return later if isinstance(names[0], str) else [type(names[0])(int(each)) for each in later]


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


AUTO = "auto"
SHORTEST = 2
WEEKS = 52
IN_A_YEAR = {"half-year": 2, "quarter": 4, "month": 12, "week": WEEKS}
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NONE = "season=None (leave out --season)"


class Season(NamedTuple):
    """A number of steps from 2 on, "auto", or None."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if isinstance(value, str):
            if value != AUTO:
                raise ValueError(f"{name} must be a whole number, {AUTO!r} or None, got {value!r}")
        elif value is not None:
            check_integer(name, value, SHORTEST)


def season_of(season: int | str | None, labels: Sequence[str] | None, day_first: bool | None) -> int | None:
    """The steps of a season of a series with these labels, in order and without gaps.

    Raises:
        ValueError: dates at irregular distances; "auto" for labels that show no season.
    """
    if season is None:
        return None
    labels = labels or ()
    dates = dates_in(labels, day_first) if labels else None
    distances = set() if dates is None else {int(b - a) for a, b in pairwise(dates.number)}
    if len(distances) > 1:
        raise ValueError(
            f"season must be None for time steps at irregular distances, got {season!r} and steps from "
            f"{labels[0]} to {labels[-1]}: {NONE}, or add up counts by week, month or quarter"
        )
    found = usual_season(dates, distances) if season == AUTO else int(season)
    if found is None:
        raise ValueError(
            f"season must be a number for steps that are no days, weeks, months or quarters, got {AUTO!r}: "
            f"season=12 (--season 12) if step 13 is like step 1, or {NONE}"
        )
    return found


def usual_season(dates: DateLabels | None, distances: set[int]) -> int | None:
    """How many steps of these dates a week has, if they are days, or else a year; None if that is not known."""
    if dates is None or len(distances) != 1:
        return None
    gap = max(distances)
    if dates.unit == "day":
        return {1: 7, 7: WEEKS}.get(gap)
    steps, rest = divmod(IN_A_YEAR.get(dates.unit, 0), gap)
    return steps if steps >= SHORTEST and not rest else None


def dates_in(labels: Sequence[Any], day_first: bool | None) -> DateLabels | None:
    """Labels as dates, or as names of months; None for others."""
    texts = [text.strip() for text in written(labels)]
    try:
        found = dates_of(texts, day_first)
    except ValueError:  # labels of a fit, which need not be dates
        return None
    return months_of(texts) if found is None else found


def named_seasons(labels: Sequence[Any], n_seasons: int, day_first: bool | None) -> tuple[list[str], list[int]]:
    """(names of the steps of a season in the order of the calendar, the first time step of each)."""
    dates = dates_in(labels, day_first)
    usual = None
    if dates is not None:
        usual = usual_season(dates, {int(b - a) for a, b in pairwise(dates.number)})
    if dates is None or usual != n_seasons or n_seasons == WEEKS:
        return [str(step + 1) for step in range(n_seasons)], list(range(n_seasons))
    first = dates.first_day[:n_seasons]
    order = sorted(range(n_seasons), key=lambda step: place_in_year(first[step], n_seasons))
    return [name_of(first[step], n_seasons) for step in order], order


def place_in_year(day: date, n_seasons: int) -> int:
    """What seasons are ordered by."""
    return day.weekday() if n_seasons == len(DAYS) else day.month


def name_of(day: date, n_seasons: int) -> str:
    """The name of a day of the week, a quarter, or the month that a step begins with."""
    if n_seasons == len(DAYS):
        return DAYS[day.weekday()]
    return f"Q{(day.month + 2) // 3}" if n_seasons == IN_A_YEAR["quarter"] else MONTHS[day.month - 1]
