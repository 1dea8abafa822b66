"""Labels that are dates, as people write them: read for a whole column at once, put in order, and continued."""

import re
from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache, partial
from itertools import pairwise
from math import gcd
from typing import NamedTuple

import numpy as np

SHOWN = 5  # labels in a message at most
MONTHS = (
    "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "January February March April May June July August September October November December",
    "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
)
"""English and German names, those of one style in a line."""
RARE = {"sept": 9, "mrz": 3, "jänner": 1}
NUMBER = {name.casefold(): m for line in MONTHS for m, name in enumerate(line.split(), 1)} | RARE
MONTHS_IN = {"year": 12, "half-year": 6, "quarter": 3, "month": 1}
TIME_WORDS = re.compile(
    "time|date|year|fy|quarter|month|week|weekday|day|period|season|wave|round|jahr|quartal|monat|woche|zeit"
)
"""In the name of an axis of time."""
CENTURY_FROM = 69  # 69 is 1969 and 68 is 2068, as in POSIX

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
    "quarter": (rf"{_Y}[- ]?Q(?P<q>[1-4])", rf"Q(?P<q>[1-4])[-/ ]?{_Y}"),
    "month": (
        rf"{_Y}[-/](?P<m>\d{{2}})",  # 2019-1 may be a quarter
        rf"{_Y}[- ]?M{_M}",
        rf"{_M}[-/.]{_Y}",
        rf"{_NAME}[-/ ]?{_Y}",
        rf"{_Y}[-/ ]?{_NAME}",
        rf"{_NAME}(?:-| ?')" + _YY,
        r"(?P<y>[12]\d{3})(?P<m>0[1-9]|1[0-2])",
    ),
    "week": (rf"{_Y}[- ]?(?:W|KW ?)(?P<w>\d{{1,2}})", rf"(?:W|KW|Week) ?(?P<w>\d{{1,2}})[-/ ]{_Y}"),
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
        raise NoSuchDateError(f"dates must be weeks where they are two days, got {texts[0]!r}")
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
        found = [
            datetime.fromisoformat(f"{day}{clock or ' 00:00'}")
            for day, clock in zip(days, clocks, strict=True)
        ]
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
        raise ValueError(
            f"{error}: state day_first=True or day_first=False (--day-first or --month-first)"
        ) from error
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
        names = [
            write(int(number[0]) + gap * t) if place < 0 else labels[place] for t, place in enumerate(places)
        ]
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
