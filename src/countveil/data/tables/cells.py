"""What the cells of a published table say: counts in the format of their file, intervals, hidden or never reported."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.data.tables.text import NOTHING_STATED, Format, amount, text_of
from countveil.privacy.mechanisms import Interval, Mechanism, Suppression, TopCoding

CELLS_AT_ONCE = 100_000  # whose different texts are found together
Bounds = tuple[int, int | None]
"""The least and the largest count; None where nothing bounds it above."""
_PLAIN = str.maketrans(
    {"\u00a0": " ", "\u202f": " ", "\u2009": " ", "’": "'", "−": "-", "–": "-", "—": "-"}
    | {wide: plain for plain in "+,-.0123456789<>" for wide in [chr(ord(plain) + 0xFEE0)]}
    | {chr(zero + digit): str(digit) for zero in (0x660, 0x6F0) for digit in range(10)}
)
"""Blanks, dashes, and digits as Japanese, Arabic and Persian texts have them."""
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
    """The marks in the numbers of a file: between groups of digits, if any, and before decimals."""

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
        raise ValueError(f"numbers must have one format, got {both[0]!r:.40} and {both[1]!r:.40}: state --decimal")
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
    if "," in (form.thousands or ""):  # as in India: 12,34,567
        groups += "[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}|"
    mark = re.escape(form.decimal)
    pattern = rf"([+-]?)(?:({groups}[0-9]+)(?:{mark}([0-9]*))?|{mark}([0-9]+))([eE][+-]?[0-9]{{1,3}})?"
    match = re.fullmatch(pattern, plain, re.ASCII)
    if match is None:
        return None
    sign, whole, decimals, only, power = match.groups()
    whole = re.sub("[^0-9]", "", whole or "") or "0"
    return f"{sign}{whole}.{decimals or only or '0'}{power or ''}"


def interval_of(text: str, form: NumberFormat) -> Bounds | None:
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


BLANK = ("", "NA", "N/A", "NaN", "nan", "null", "None")
"""Cells that say nothing: masked next to words for hidden counts, and hidden counts themselves without any."""
COUNT, INTERVAL, HIDDEN, MASKED = range(4)
NAMES = ("count", "interval", "hidden", "masked")


class Words(NamedTuple):
    """What words in cells stand for: hidden counts, cells that were never reported, and zero."""

    absent: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse a word that is to stand for two things; raises ValueError."""
        given = {"--absent": self.absent, "--missing": self.missing, "--zero": self.zero}
        known: dict[str, str] = {}
        for option, words in given.items():
            for word in {word.strip() for word in words}:
                if known.setdefault(word, option) != option:
                    raise ValueError(f"{known[word]} and {option} must name different words, got {word!r} in both")


NO_WORDS = Words()


class Cells(NamedTuple):
    """Cells by the number of their text among the different ones, and what each of these is."""

    code: np.ndarray  # of any shape
    texts: list[str]
    kind: np.ndarray  # (n,) COUNT, INTERVAL, HIDDEN or MASKED
    value: np.ndarray  # (n,) NaN unless it is a count
    bounds: np.ndarray  # (n, 2) NaN unless it is an interval; its upper end may be infinite

    @property
    def values(self) -> np.ndarray:
        """Reports, NaN where there is no number."""
        return np.asarray(self.value[self.code])

    @property
    def masked(self) -> np.ndarray:
        """Where a cell was never reported."""
        return np.asarray(self.kind[self.code] == MASKED)

    @property
    def intervals(self) -> np.ndarray:
        """(.., 2) the ends of intervals, NaN elsewhere."""
        return np.asarray(self.bounds[self.code])

    @property
    def has_intervals(self) -> bool:
        """Whether any cell is one."""
        return bool((self.kind[self.code] == INTERVAL).any())

    def tally(self) -> list[Counter[str]]:
        """How often each text occurs, by kind."""
        times = np.bincount(self.code.ravel(), minlength=len(self.texts))
        times_by_kind: list[Counter[str]] = [Counter() for _ in NAMES]
        for text, kind, n in zip(self.texts, self.kind.tolist(), times.tolist(), strict=True):
            if n:
                times_by_kind[kind]["" if kind == COUNT else text] += n
        return times_by_kind

    def describe(self, totals: int = 0, flags: Counter[str] | None = None, no_row: str = "") -> str:
        """One line that accounts for every cell; ``no_row`` says it of those without a row."""
        tally = self.tally()
        parts = [amount(tally[COUNT].total(), "count")]
        parts += [f"{tally[INTERVAL].total():,} in intervals ({listed(tally[INTERVAL])})"] * bool(tally[INTERVAL])
        parts.append(f"{tally[HIDDEN].total():,} hidden{bracketed(tally[HIDDEN])}")
        parts.append(f"{tally[MASKED].total():,} masked{bracketed(tally[MASKED])}")
        parts.append(f"{totals:,} in totals")
        absent = f"; {no_row}" if no_row else ""
        dropped = f"; flags left out: {listed(flags)}" if flags else ""
        return f"{amount(self.code.size + totals, 'cell')}: {', '.join(parts)}{absent}{dropped}."


def listed(words: Counter[str]) -> str:
    """Words with their numbers of cells, the most frequent ones."""
    parts = [f"{n:,} {repr(word) if word else 'empty'}" for word, n in words.most_common(8)]
    return ", ".join(parts) + (", .." if len(words) > 8 else "")


def bracketed(words: Counter[str]) -> str:
    """The same in brackets; nothing where there are none."""
    return f" ({listed(words)})" if words else ""


def read_cells(
    path: Path,
    columns: Sequence[Any],
    names: Sequence[str],
    words: Words,
    stated: Format = NOTHING_STATED,
    separator: str | None = None,
    blank: int | None = None,
    form: NumberFormat | None = None,
) -> Cells:
    """The cells (rows, columns) of some columns of texts or numbers.

    ``blank`` is what empty cells are; None is as the words say, or else masked if others are hidden or intervals.
    ``form`` is the format of numbers; None is as stated, or as these cells prove.

    Raises:
        ValueError: a cell that is neither a number, an interval nor a word; numbers in several formats, or in one that
            is ambiguous.
    """
    words.check()
    different: dict[Any, int] = {}
    n_rows = len(columns[0])
    codes = np.empty((n_rows, len(columns)), dtype=np.int32)
    at_once = max(1, CELLS_AT_ONCE // max(n_rows, 1))
    for first in range(0, len(columns), at_once):
        own = [objects(column) for column in columns[first : first + at_once]]
        places, cells = pd.factorize(
            np.fromiter(chain.from_iterable(own), dtype=object, count=n_rows * len(own)), use_na_sentinel=False
        )
        keys = [cell if is_number(cell) else text_of(cell) for cell in cells]
        numbers = np.array([different.setdefault(key, len(different)) for key in keys], dtype=np.int32)
        codes[:, first : first + len(own)] = numbers[places].reshape(len(own), n_rows).T
    form = format_of(path, list(different), words, stated, separator) if form is None else form
    try:
        kinds = [kind_of(cell, words, form) for cell in different]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    unknown = next((i for i, each in enumerate(kinds) if each is None), None)
    if unknown is not None:
        row, column = np.argwhere(codes == unknown)[0]
        raise ValueError(refused(path, list(different)[unknown], row, names[column]))
    read: list[Any] = kinds
    if blank is None:
        hidden = {i for i, each in enumerate(read) if each[0] in (HIDDEN, INTERVAL)}
        blank = MASKED if words.absent or hidden else HIDDEN
    return Cells(
        codes,
        [text_of(cell) for cell in different],
        np.array([blank if each[0] is None else each[0] for each in read], dtype=np.int64),
        np.array([each[1] for each in read], dtype=np.float64),
        np.array([each[2] for each in read], dtype=np.float64).reshape(-1, 2),
    )


def objects(column: Any) -> Any:
    """A column whose cells are Python's own; None where a Series lacks one."""
    return column.astype(object).where(column.notna(), None) if isinstance(column, pd.Series) else column


def format_of(path: Path, cells: Sequence[Any], words: Words, stated: Format, separator: str | None) -> NumberFormat:
    """The format of numbers in these cells, as stated, or as they prove; raises ValueError as ``read_cells``."""
    known = {word.strip() for word in (*words.absent, *words.missing, *words.zero)}
    texts = dict.fromkeys(text_of(cell) for cell in cells if not is_number(cell))
    try:
        return number_format([text for text in texts if text not in known], stated.thousands, stated.decimal, separator)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def is_number(cell: Any) -> bool:
    """Whether a cell has a type of numbers, and is one."""
    return isinstance(cell, int | float | np.number | np.bool_) and bool(cell == cell)


def kind_of(cell: Any, words: Words, form: NumberFormat) -> tuple[int | None, float, tuple[float, float]] | None:
    """(kind, None where it is blank; value; bounds) of a cell; None where it is nothing that is known."""
    none, nowhere = float("nan"), (float("nan"), float("nan"))
    if not isinstance(cell, str):
        return COUNT, float(cell), nowhere
    for kind, given in ((HIDDEN, words.absent), (MASKED, words.missing), (COUNT, words.zero)):
        if cell in {word.strip() for word in given}:
            return kind, 0.0 if kind == COUNT else none, nowhere
    if cell in BLANK:
        return None, none, nowhere
    number = number_of(cell, form)
    if number is not None:
        return COUNT, number, nowhere
    interval = interval_of(cell, form)
    if interval is None:
        return None
    return INTERVAL, none, (interval[0], float("inf") if interval[1] is None else interval[1])


def refused(path: Path, cell: str, row: int, column: str) -> str:
    """What to say of a cell that is neither a number nor a word."""
    return (
        f"{path} must hold numbers, intervals, or words that --absent (hidden because of the count), --missing (never "
        f"reported) or --zero names, got {cell[:40]!r} in row {row + 1}, column {column!r}; a file with a row for each "
        f"cell is read with --long and --value, and `countveil look {path.name}` suggests a command"
    )


def interval_mechanism(low: float, high: float) -> Mechanism:
    """That of a cell which is an interval: its count is in it."""
    return Interval(int(low), None if np.isinf(high) else int(high))


def shows_counts(stated: Iterable[Mechanism]) -> bool:
    """Whether all numbers under these mechanisms are counts, so that totals next to them are exact."""
    return all(isinstance(each, Suppression | TopCoding | Interval) for each in stated)


def mechanism_of_intervals(cells: Cells) -> Mechanism | None:
    """The mechanism of a table for which none is stated, if it has intervals: then its numbers are counts.

    Raises:
        ValueError: other cells without a number, of which nothing says what their counts may be.
    """
    if not cells.has_intervals:
        return None
    hidden = cells.tally()[HIDDEN]
    if hidden:
        raise ValueError(
            f"--mechanism must state what was done to hidden counts, got {hidden.total():,} cells{bracketed(hidden)}"
        )
    ends = cells.intervals.reshape(-1, 2)
    low, high = ends[~np.isnan(ends[:, 0])][0]
    return interval_mechanism(low, high)


def by_cell(stated: Any, bounds: np.ndarray) -> Any:
    """The mechanism of every cell, given the ends of intervals (D, V, 2), NaN elsewhere; ``stated`` without any."""
    inside = ~np.isnan(bounds[..., 0])
    if not inside.any():
        return stated
    mechanism = np.empty(bounds.shape[:-1], dtype=object)
    if isinstance(stated, Mechanism):
        mechanism.fill(stated)
    else:
        mechanism[...] = stated
    for low, high in np.unique(bounds[inside], axis=0):
        inside = (bounds[..., 0] == low) & (bounds[..., 1] == high)
        for other in set(mechanism[inside]):
            mechanism[inside & (mechanism == other)] = in_interval(other, low, high)
    return mechanism


def in_interval(mechanism: Mechanism, low: float, high: float) -> Mechanism:
    """That of a cell which is an interval, under a mechanism of the table.

    "<10" under suppression below 10, or with no bound stated, says what the mechanism says: zeros are shown, or hidden.
    """
    finite = low <= 1 and high < np.inf
    if finite and isinstance(mechanism, Suppression) and mechanism.below in (None, high + 1):
        return Suppression(int(high) + 1, mechanism.shows_zero)
    return interval_mechanism(low, high)


def by_row(
    frame: pd.DataFrame, stated: Any, by: str | None, bounds: np.ndarray
) -> tuple[pd.DataFrame, Mechanism | Mapping[Hashable, Mechanism], str | None]:
    """(the table, mechanisms by the values of a column, that column) of a table with a row for each cell.

    Without intervals all are as given; with some, ``bounds`` (rows, 2), a column is added.
    """
    if np.isnan(bounds[:, 0]).all():
        return frame, stated, by
    by_cells = np.empty(len(frame), dtype=object)
    if by is None:
        by_cells.fill(stated)
    else:
        by_cells[:] = [stated[value] for value in frame[by].astype(str)]
    by_cells = by_cell(by_cells, bounds)
    numbers: dict[Mechanism, int] = {}
    codes = [numbers.setdefault(each, len(numbers)) for each in by_cells]
    name = "mechanism of the cell"
    while name in frame.columns:
        name += "_"
    return frame.assign(**{name: codes}), {code: each for each, code in numbers.items()}, name
