"""What a cell of a published table says: a number in the format of its file, or an interval."""

import re
from collections.abc import Iterable
from typing import NamedTuple

Interval = tuple[int, int | None]
"""The least and the largest count; None where nothing bounds it above."""
_PLAIN = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "’": "'", "−": "-", "–": "-", "—": "-"})
_POWER = re.compile(r"[eE][+-]?[0-9]{1,3}$", re.ASCII)
_MARKED = re.compile(r"[0-9]*([.,' ][0-9]+)+", re.ASCII)
_ONE = r"([0-9][0-9.,' ]*?)"
INTERVALS = tuple(
    (re.compile(pattern, re.IGNORECASE | re.ASCII), least, most)
    for pattern, least, most in (
        (rf"{_ONE} ?(?:-| to ) ?{_ONE}", 0, 0),
        (rf"(?:<=|≤|=<|up to|at most) ?{_ONE}", None, 0),
        (rf"(?:<|under|below|less than|fewer than) ?{_ONE}", None, -1),
        (rf"{_ONE} (?:or|and) (?:fewer|less|under)", None, 0),
        (rf"(?:>=|≥|=>|at least) ?{_ONE}", 0, None),
        (rf"(?:>|over|more than) ?{_ONE}", 1, None),
        (rf"{_ONE} ?(?:\+|(?:or|and) (?:more|over))", 0, None),
    )
)
"""Forms of intervals, and what is added to their numbers for the least and the largest count."""


class NumberFormat(NamedTuple):
    """The marks in the numbers of a file: between groups of three digits, if any, and before decimals."""

    thousands: str | None
    decimal: str


def number_format(
    texts: Iterable[str], thousands: str | None, decimal: str | None, separator: str | None
) -> NumberFormat:
    """The format of some cells' numbers, as stated, or as the texts prove.

    Raises:
        ValueError: marks that are the same, contradict each other, or that may be either, as in 12.000.
    """
    if thousands is not None or decimal is not None:
        return stated_format(thousands, decimal)
    is_thousands: dict[str, str] = {}
    is_decimal: dict[str, str] = {}
    open_: dict[str, list[str]] = {}
    for text in texts:
        for number in numbers_in(text):
            marks = re.sub("[0-9]", "", number)
            if not marks:
                continue
            last = marks[-1]
            groups = number.split(last)
            for mark in marks[:-1]:
                is_thousands.setdefault(mark, text)
            if last in " '" or marks.count(last) > 1:
                is_thousands.setdefault(last, text)
            elif len(marks) > 1 or len(groups[1]) != 3 or not 0 < len(groups[0]) < 4 or groups[0][0] == "0":
                is_decimal.setdefault(last, text)
            else:
                open_.setdefault(last, []).append(text)
    for mark, text in is_decimal.items():
        if mark in is_thousands:
            raise ValueError(
                f"numbers must have one format, got {text!r:.40} and {is_thousands[mark]!r:.40}: state --thousands or "
                "--decimal"
            )
    for mark in [mark for mark in open_ if mark not in is_thousands and mark not in is_decimal]:
        example = open_[mark][0]
        if is_decimal or (mark == "," == separator):
            is_thousands[mark] = example
        elif is_thousands:
            is_decimal[mark] = example
        else:
            raise ValueError(
                f"numbers such as {example!r:.40} may be thousands or decimals, because all {len(open_[mark]):,} with "
                f"this mark have three digits after it: state --thousands {mark} if it is {example.replace(mark, '')}, "
                f"or --decimal {mark} if it has three decimals"
            )
    if len(is_decimal) > 1:
        both = list(is_decimal.values())
        raise ValueError(
            f"numbers must have one format, got {both[0]!r:.40} and {both[1]!r:.40}: state --decimal"
        )
    point = next(iter(is_decimal), "," if "." in is_thousands else ".")
    return NumberFormat("".join(is_thousands) or None, point)


def stated_format(thousands: str | None, decimal: str | None) -> NumberFormat:
    """The format that --thousands and --decimal state; raises ValueError where they are the same, or no marks."""
    names = {"space": " ", "apostrophe": "'", "point": ".", "comma": ","}
    thousands, decimal = (None if mark is None else names.get(mark, mark) for mark in (thousands, decimal))
    if decimal is not None and decimal not in ".,":
        raise ValueError(f"--decimal must be . or , got {decimal!r:.40}")
    if thousands is not None and (len(thousands) != 1 or thousands.translate(_PLAIN) not in "., '"):
        raise ValueError(f"--thousands must be . or , or space or apostrophe, got {thousands!r:.40}")
    if thousands is not None and thousands == decimal:
        raise ValueError(f"--thousands and --decimal must differ, got {decimal} for both")
    if decimal is None:
        decimal = "," if thousands == "." else "."
    return NumberFormat((thousands or ("," if decimal == "." else ".")).translate(_PLAIN), decimal)


def numbers_in(text: str) -> list[str]:
    """The numbers with marks in a cell that is a number or an interval."""
    plain = text.translate(_PLAIN).strip()
    body = _POWER.sub("", plain).lstrip("+-")
    if _MARKED.fullmatch(body):
        return [body]
    match = next((form.fullmatch(plain) for form, _, _ in INTERVALS if form.fullmatch(plain)), None)
    return [] if match is None else [part.strip() for part in match.groups()]


def number_of(text: str, form: NumberFormat) -> float | None:
    """The number that a cell is, in this format; None where it is none."""
    plain = plain_number(text, form)
    return None if plain is None else float(plain)


def plain_number(text: str, form: NumberFormat) -> str | None:
    """The same number, digit by digit, with a decimal point and no thousands separators."""
    plain = text.translate(_PLAIN).strip()
    groups = rf"[0-9]{{1,3}}(?:[{re.escape(form.thousands)}][0-9]{{3}})+|" if form.thousands else ""
    mark = re.escape(form.decimal)
    pattern = rf"([+-]?)(?:({groups}[0-9]+)(?:{mark}([0-9]*))?|{mark}([0-9]+))([eE][+-]?[0-9]{{1,3}})?"
    match = re.fullmatch(pattern, plain, re.ASCII)
    if match is None:
        return None
    sign, whole, decimals, only, power = match.groups()
    whole = re.sub("[^0-9]", "", whole or "") or "0"
    return f"{sign}{whole}.{decimals or only or '0'}{power or ''}"


def interval_of(text: str, form: NumberFormat) -> Interval | None:
    """The interval that a cell is, such as 1-9, <5 or 10+; None where it is none.

    Raises:
        ValueError: ends that are no whole numbers, or the wrong way round.
    """
    plain = text.translate(_PLAIN).strip()
    for pattern, least, most in INTERVALS:
        match = pattern.fullmatch(plain)
        if match is None:
            continue
        ends = [number_of(part, form) for part in match.groups()]
        if any(end is None or not end.is_integer() for end in ends):
            raise ValueError(f"intervals must have whole numbers as ends, got {text!r:.40}")
        whole = [int(end) for end in ends if end is not None]
        low = 0 if least is None else whole[0] + least
        high = None if most is None else whole[-1] + most
        if high is not None and high < low:
            raise ValueError(f"intervals must begin with the smaller number, got {text!r:.40}")
        return low, high
    return None
