"""Dates as people write them, in labels and of rows.

Labels are read for a whole axis at once, put in order, and continued. Dates of rows are put into the order of the
data's rows, and made steps of one length.
"""

import re
import warnings
from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache, partial
from itertools import pairwise
from math import gcd
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.data.covariates import in_order_of_rows
from countveil.data.labels import texts_of

SHOWN = 5  # labels in a message at most
MONTHS = (
    "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "January February March April May June July August September October November December",
    "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "januar februar marts april maj juni juli august september oktober november december",
    "januar februar mars april mai juni juli august september oktober november desember",
    "januari februari mars april maj juni juli augusti september oktober november december",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
)
"""Names in English, German, Danish, Norwegian, Swedish, Dutch, French, Spanish, Italian and Portuguese.

Those of one style are in a line.
"""
RARE = {"sept": 9, "mrz": 3, "jänner": 1}
NUMBER = {name.casefold(): m for line in MONTHS for m, name in enumerate(line.split(), 1)} | RARE
MONTHS_IN = {"year": 12, "half-year": 6, "quarter": 3, "month": 1}
TIME_WORDS = re.compile(
    "time|date|year|fy|quarter|month|week|weekday|day|period|season|wave|round|jahr|quartal|monat|woche|zeit"
)
"""In the name of an axis of time."""
CENTURY_FROM = 69  # 69 is 1969 and 68 is 2068, as in POSIX
PERIODS = "Y", "Q", "M", "W", "D"  # years to days, as pandas calls them
USUAL_STEPS = 60  # as many as a period chosen for dates may give
MOST_STEPS = 1000
_WHOLE = r"[+-]?\d{1,9}"
_DIGITS = r"[12]\d{3}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])?"  # 199803 and 19980305
EXAMPLES = "1998, 1998Q1, 1998-03 or 1998-03-05"

_Y, _YY, _M, _D = r"(?P<y>\d{4})", r"(?P<yy>\d{2})", r"(?P<m>\d{1,2})", r"(?P<d>\d{1,2})"
_NAME = rf"(?P<name>{'|'.join(sorted(NUMBER, key=len, reverse=True))})\.?"
_CLOCK = r"[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?"
DAY_FIRST = rf"{_D}(?P<sep>[/-]){_M}(?P=sep){_Y}"
MONTH_FIRST = rf"{_M}(?P<sep>[/-]){_D}(?P=sep){_Y}"
FORMS: dict[str, tuple[str, ...]] = {
    "year": (
        r"(?P<y>[12]\d{3})(?:\.0)?",
        r"(?P<y>[12]\d{3})[-/–](?P<next>\d{2}|\d{4})",
        r"FY[- ]?(?P<y>[12]\d{3})(?:[-/–](?P<next>\d{2}|\d{4}))?",
        rf"FY[- ]?'?{_YY}",
    ),
    "half-year": (rf"{_Y}[- ]?[SH](?P<h>[12])",),
    "quarter": (rf"{_Y}[- ]?[QK](?P<q>[1-4])", rf"[QK](?P<q>[1-4])[-/ ]?{_Y}"),
    "month": (
        rf"{_Y}[-/](?P<m>\d{{2}})",  # 2019-1 may be a quarter
        rf"{_Y}[- ]?M{_M}",
        rf"{_M}[-/.]{_Y}",
        rf"{_NAME}[-/ ]?{_Y}",
        rf"{_Y}[-/ ]?{_NAME}",
        rf"{_NAME}(?:-| ?')" + _YY,
        r"(?P<y>[12]\d{3})(?P<m>0[1-9]|1[0-2])",
    ),
    "week": (rf"{_Y}[- ]?(?:[WUV]|KW ?)(?P<w>\d{{1,2}})", rf"(?:W|KW|Week) ?(?P<w>\d{{1,2}})[-/ ]{_Y}"),
    "day": (
        rf"{_Y}-{_M}-{_D}(?P<clock>{_CLOCK})?",
        rf"{_Y}(?P<sep>[/.]){_M}(?P=sep){_D}",
        rf"{_D}\.{_M}\.(?:{_Y}|{_YY})",
        DAY_FIRST,
        MONTH_FIRST,
        rf"{_D}\.?[- ]?{_NAME}[- ]?{_Y}",
        rf"{_D}-{_NAME}-{_YY}",
        rf"{_NAME} {_D},? {_Y}",
        r"(?P<y>[12]\d{3})(?P<m>0[1-9]|1[0-2])(?P<d>[0-3]\d)",
        rf"{_Y}-{_M}-{_D}/(?P<sunday>\d{{4}}-\d{{2}}-\d{{2}})",  # a week, as pandas writes it
    ),
}
"""Patterns by the length of what they name. Of several that fit, the first whose dates exist counts."""
YEARS = FORMS["year"][0]
VAGUE = rf"\d{{1,2}}[/-]\d{{1,2}}[/-]\d{{2}}|{_NAME} \d{{1,2}}|\d{{1,2}}\.?[ -](?:{'|'.join(NUMBER)})\.?"
"""Dates without a year, or with two digits of which it is not clear that they are one."""


class DateLabels(NamedTuple):
    """Labels of one column as dates."""

    form: str  # a name in ``FORMS``
    unit: str  # what ``number`` counts: a name in ``FORMS``, or second
    number: np.ndarray  # (n,) int64
    first_day: list[date]  # of each
    write: Callable[[int], str] | None  # a number as a label in the same style; None where that is not known


class NoSuchDateError(ValueError):
    """A label in the form of a date that does not exist."""


class UnclearOrderError(ValueError):
    """Dates in which the day or the month may come first."""


@cache
def patterns() -> list[tuple[str, re.Pattern[str]]]:
    """(name of the form, pattern) of all."""
    return [(form, re.compile(each, re.IGNORECASE)) for form, every in FORMS.items() for each in every]


def dates_of(texts: Sequence[str], day_first: bool | None = None) -> DateLabels | None:
    """Labels in one form as dates; None for labels that are not dates.

    In dates such as 1/2/2020, the day or the month comes first, as ``day_first`` or a number above 12 in any of them
    shows; in those with dots, such as 1.2.2020, the day does. Weeks are those of ISO 8601. Whole numbers from 1000 to
    2999 are years.

    Raises:
        UnclearOrderError: dates in which the day or the month may come first.
        ValueError: dates in several forms, or among labels that are not dates; dates without a clear year; dates that
            do not exist.
    """
    skipped = {None: None, True: MONTH_FIRST, False: DAY_FIRST}[day_first]
    readings: list[DateLabels] = []
    wrong = None
    for form, pattern in patterns():
        if not texts or pattern.pattern == skipped or (readings and pattern.pattern != MONTH_FIRST):
            continue
        matches = [match for text in texts if (match := pattern.fullmatch(text)) is not None]
        if len(matches) < len(texts):
            continue
        try:
            readings.append(numbered(form, matches))
        except NoSuchDateError as error:
            wrong = error
    if len(readings) > 1:
        raise UnclearOrderError(f"dates must show whether the day or the month comes first, got {texts[0]!r}")
    if wrong is not None and not readings:
        raise ValueError(str(wrong)) from wrong
    if not readings:
        check_not_dates(texts)
    return readings[0] if readings else None


def check_not_dates(texts: Sequence[str]) -> None:
    """Refuse labels of several forms if some are dates, other than numbers alone; raises ValueError."""
    if texts and all(re.fullmatch(VAGUE, text, re.IGNORECASE) for text in texts):
        raise ValueError(f"dates must have a year with four digits, got {texts[0]!r}")
    exact = [pattern for _, pattern in patterns() if pattern.pattern != YEARS]
    dated = next((text for text in texts if any(each.fullmatch(text) for each in exact)), None)
    if dated is None or all(text.isdecimal() for text in texts):
        return
    alike = [each for each in exact if each.fullmatch(dated)]
    other = next(text for text in texts if not any(each.fullmatch(text) for each in alike))
    raise ValueError(f"dates must all be in one form, such as 2019-11-01, got {dated!r} and {other!r}")


def numbered(form: str, matches: Sequence[re.Match[str]]) -> DateLabels:
    """Dates from the parts that were matched; raises NoSuchDateError."""
    texts, parts = [match[0] for match in matches], [match.groupdict() for match in matches]
    days = [first_day_of(form, each, text) for each, text in zip(parts, texts, strict=True)]
    if len({each.get("clock") for each in parts}) > 1:
        return moments(texts, [each["clock"] for each in parts], days)
    write = week_as_pair if "sunday" in parts[0] else writer(matches)
    if "sunday" in parts[0] and [write(day) for day in days] != texts:
        raise NoSuchDateError(f"dates must be weeks if they are ranges of two days, got {texts[0]!r}")
    unit, number, day_of = counted(form, days)
    return DateLabels(form, unit, np.array(number, dtype=np.int64), days, lambda n: write(day_of(n)))


def week_as_pair(day: date) -> str:
    """A week as pandas writes it, 2001-01-01/2001-01-07."""
    return f"{day}/{day + timedelta(days=6)}"


def first_day_of(form: str, parts: Mapping[str, str], text: str) -> date:
    """The first day of a year, .. or week, or the day itself; raises NoSuchDateError."""
    if parts.get("yy"):
        year = int(parts["yy"]) + (1900 if int(parts["yy"]) >= CENTURY_FROM else 2000)
    else:
        year = int(parts["y"])
    month = NUMBER[parts["name"].casefold()] if parts.get("name") else int(parts.get("m") or 1)
    month += 6 * (int(parts.get("h") or 1) - 1) + 3 * (int(parts.get("q") or 1) - 1)
    if parts.get("next") and (year + 1) % 10 ** len(parts["next"]) != int(parts["next"]):
        raise NoSuchDateError(f"dates must be two successive years, got {text!r}")
    try:
        if form == "week":
            return date.fromisocalendar(year, int(parts["w"]), 1)
        return date(year, month, int(parts.get("d") or 1))
    except ValueError:
        raise NoSuchDateError(f"dates must exist, got {text!r}") from None


def counted(form: str, days: Sequence[date]) -> tuple[str, list[int], Callable[[int], date]]:
    """(the unit of time, the number of every day, the day of a number) for periods that begin on these days.

    Days that are the same of every month, or the last, are counted in months. A number beyond the year 9999 raises
    OverflowError or ValueError.
    """
    if form == "week":
        return "week", [(day.toordinal() - 1) // 7 for day in days], lambda n: date.fromordinal(7 * n + 1)
    of_month = max(day.day for day in days)
    if all(day.day == last_of_month(day) for day in days):
        of_month = 31
    if any(day.day != min(of_month, last_of_month(day)) for day in days):
        return "day", [day.toordinal() for day in days], date.fromordinal
    length = MONTHS_IN.get(form, 1)

    def day_of(number: int) -> date:
        year, month = divmod(number * length, 12)
        first = date(year, month + 1, 1)
        return first.replace(day=min(of_month, last_of_month(first)))

    unit = form if form in MONTHS_IN else "month"
    return unit, [(12 * day.year + day.month - 1) // length for day in days], day_of


def last_of_month(day: date) -> int:
    """How many days the month has."""
    return monthrange(day.year, day.month)[1]


def writer(matches: Sequence[re.Match[str]]) -> Callable[[date], str]:
    """Writes days in the style of these labels, with leading zeros unless one of them has a single digit."""
    first = matches[0]
    names = [name for name, text in first.groupdict().items() if text and name not in ("sep", "clock")]
    names.sort(key=first.start, reverse=True)
    width = {name: min(len(match[name]) for match in matches if match[name]) for name in names}

    def write(day: date) -> str:
        year, week, _ = day.isocalendar() if "w" in names else (day.year, 0, 0)
        numbers = {"y": year, "yy": year % 100, "m": day.month, "d": day.day, "w": week}
        numbers |= {"h": (day.month + 5) // 6, "q": (day.month + 2) // 3}
        text = first[0]
        for name in names:
            if name == "name":
                new = month_name(day.month, [match["name"] for match in matches])
            elif name == "next":
                new = f"{year + 1:04d}"[-width[name] :]
            else:
                new = f"{numbers[name]:0{width[name]}d}"
            text = text[: first.start(name)] + new + text[first.end(name) :]
        return text

    return write


def month_name(month: int, others: Sequence[str]) -> str:
    """The name of a month in the style of others."""
    used = {name.casefold() for name in others}
    styles = [line.split() for line in MONTHS]
    style = next((each for each in styles if used <= {name.casefold() for name in each}), styles[0])
    found = style[month - 1]
    if others[0].isupper():
        return found.upper()
    return found.lower() if others[0].islower() else found


def moments(texts: Sequence[str], clocks: Sequence[str | None], days: list[date]) -> DateLabels:
    """Times of day, counted in seconds or microseconds; raises NoSuchDateError."""
    try:
        found = [datetime.fromisoformat(f"{day}{clock or ' 00:00'}") for day, clock in zip(days, clocks, strict=True)]
    except ValueError:
        raise NoSuchDateError(f"dates must have times that exist, got {texts[0]!r}") from None
    zones = {each.utcoffset() for each in found}
    if None in zones and len(zones) > 1:
        raise NoSuchDateError(f"dates must all have a time zone, or none, got {texts[0]!r}")
    begin = datetime(1970, 1, 1, tzinfo=found[0].tzinfo)
    second = timedelta(seconds=1)
    whole = not any((each - begin) % second for each in found)
    step = second if whole else timedelta(microseconds=1)
    number = np.array([(each - begin) // step for each in found], dtype=np.int64)
    write = None
    if whole and len(zones) == 1:
        zone = re.sub(r".*:\d\d(?=Z|[+-]|$)", "", texts[0], count=1)
        for style in (f"%Y-%m-%d{sep}{clock}{zone}" for sep in " T" for clock in ("%H:%M:%S", "%H:%M")):
            if [each.strftime(style) for each in found] == list(texts):
                write = partial(in_style, begin, style)
    return DateLabels("day", "second", number, days, write)


def in_style(begin: datetime, style: str, seconds: int) -> str:
    """A moment so many seconds after another as text."""
    return (begin + timedelta(seconds=seconds)).strftime(style)


def months_of(texts: Sequence[str]) -> DateLabels | None:
    """Names of months without a year, of one year unless each follows the one before; None for other labels."""
    months = [NUMBER.get(text.removesuffix(".").casefold(), 0) for text in texts]
    if len(months) < 2 or 0 in months:
        return None
    days = [date(2000, month, 1) for month in months]
    if all(after == before % 12 + 1 for before, after in pairwise(months)):  # such as a fiscal year
        months = [months[0] + place for place in range(len(months))]
    number = np.array(months, dtype=np.int64)
    return DateLabels("month", "month", number, days, lambda n: month_name((n - 1) % 12 + 1, texts))


class TimeSteps(NamedTuple):
    """The steps of an axis of time, put in order, with those between that have no data."""

    places: np.ndarray  # (T,) of each step among the labels as they were, -1 where there is none
    labels: list[str]  # (T,)
    note: str  # what was changed, in words; empty for labels in order without gaps


def steps_in_time(labels: Sequence[str], day_first: bool | None = None) -> TimeSteps | None:
    """The steps of labels that are dates, the earliest first; None for labels that are not dates.

    Names of months without a year are of one year, unless each follows the one before.

    Steps of one length that have no data are added if at most half of all steps are. Labels keep their spelling.

    Raises:
        ValueError: a date that has two labels, and as ``dates_of``; in which order day and month are is to be stated
            as ``day_first``.
    """
    try:
        found = dates_of([text.strip() for text in labels], day_first)
    except UnclearOrderError as error:
        raise ValueError(f"{error}: state day_first=True or day_first=False (--day-first or --month-first)") from error
    found = months_of([text.strip() for text in labels]) if found is None else found
    if found is None:
        return None
    order = np.argsort(found.number, kind="stable")
    number = found.number[order]
    twice = np.flatnonzero(np.diff(number) == 0)
    if twice.size:
        one, other = (labels[order[twice[0] + i]] for i in (0, 1))
        raise ValueError(f"dates must have one label each, got {one!r} and {other!r}: leave one of them out")
    notes = []
    if (np.diff(order) < 0).any():
        notes.append(f"Time steps are put in order, from {labels[order[0]]} to {labels[order[-1]]}.")
    gap = gcd(*np.diff(number).tolist()) if number.size > 1 else 1
    every = (number[-1] - number[0]) // max(gap, 1) + 1
    places, names = order, [labels[i] for i in order]
    if every > 2 * number.size or (every > number.size and found.write is None):
        notes.append("Time steps are at irregular distances, and treated as consecutive.")
    elif every > number.size:
        places = np.full(every, -1)
        places[(number - number[0]) // gap] = order
        write = found.write
        assert write is not None
        names = [write(int(number[0]) + gap * t) if place < 0 else labels[place] for t, place in enumerate(places)]
        missing = [names[t] for t in np.flatnonzero(places < 0)]
        shown = ", ".join(missing[:SHOWN]) + (", ..." if len(missing) > SHOWN else "")
        have, are = ("has", "is") if len(missing) == 1 else ("have", "are")
        notes.append(
            f"{len(missing)} of {every} {in_words(found.unit, gap)} {have} no data: {shown} {are} treated as missing."
        )
    return TimeSteps(places, names, " ".join(notes))


def in_words(unit: str, gap: int) -> str:
    """What steps of so many units are called."""
    whole = {("month", 12): "years", ("month", 3): "quarters", ("quarter", 4): "years", ("day", 7): "weeks"}
    return f"{unit}s" if gap == 1 else whole.get((unit, gap), "time steps")


def in_usual_order(texts: Sequence[str], axis: str = "") -> list[str]:
    """Distinct labels sorted: dates by time, labels that differ in one whole number by that number, others as text.

    Others of an axis whose name is of time stay as they are.
    """
    listed = sorted(texts)
    months = months_of([text.strip() for text in texts])
    if months is not None:
        return [texts[i] for i in np.argsort(months.number, kind="stable")]
    try:
        found = dates_of([text.strip() for text in listed])
    except ValueError:  # which is for whoever takes them as time
        found = None
    if found is not None:
        return [listed[i] for i in np.argsort(found.number, kind="stable")]
    numbers = numbers_of(listed)
    if numbers is not None:
        return [listed[i] for i in np.argsort(numbers, kind="stable")]
    words = re.findall("[a-z]+", axis.casefold())
    return list(texts) if any(map(TIME_WORDS.fullmatch, words)) else listed


def numbers_of(texts: Sequence[str]) -> list[int] | None:
    """The whole numbers in labels that differ in nothing else; None for other labels."""
    around = {re.sub(r"\d+", "0", text) for text in texts}
    numbers = [re.findall(r"\d+", text) for text in texts]
    if len(around) > 1 or any(len(each) != 1 for each in numbers):
        return None
    return [int(each[0]) for each in numbers]


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
        raise ValueError(f"time must have no missing dates, got {int(series.isna().sum())}, the first in row {row}")
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
            f"time is text, whose steps are in alphabetical order ({first}): for another order use numbers or an "
            "ordered pandas Categorical",
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
            f"time must have at most {MOST_STEPS} steps, got {n_steps}: use longer periods, such as months"
        )
