"""Labels of time steps that come after those of the data."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from countveil.data.dates import dates_of

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
    too_late = ValueError(
        f"steps must end by {LAST_DAY}, the last date there is, got {steps} after {texts[-1]}"
    )
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
