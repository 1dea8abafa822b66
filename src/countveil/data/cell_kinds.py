"""What every cell of a published table is: a count, an interval, hidden because of its count, or never reported."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.data.cell_texts import NumberFormat, interval_of, number_format, number_of
from countveil.data.text_tables import NOTHING_STATED, Format, amount, text_of

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
                    raise ValueError(
                        f"{known[word]} and {option} must name different words, got {word!r} in both"
                    )


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
        parts += [f"{tally[INTERVAL].total():,} in intervals ({listed(tally[INTERVAL])})"] * bool(
            tally[INTERVAL]
        )
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
    codes = np.empty((len(columns[0]), len(columns)), dtype=np.int32)
    for place, column in enumerate(columns):
        if isinstance(column, pd.Series):
            column = column.astype(object).where(column.notna(), None)
        places, cells = pd.factorize(
            np.fromiter(column, dtype=object, count=len(column)), use_na_sentinel=False
        )
        keys = [cell if is_number(cell) else text_of(cell) for cell in cells]
        codes[:, place] = np.array([different.setdefault(key, len(different)) for key in keys])[places]
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


def format_of(
    path: Path, cells: Sequence[Any], words: Words, stated: Format, separator: str | None
) -> NumberFormat:
    """The format of numbers in these cells, as stated, or as they prove; raises ValueError as ``read_cells``."""
    known = {word.strip() for word in (*words.absent, *words.missing, *words.zero)}
    texts = dict.fromkeys(text_of(cell) for cell in cells if not is_number(cell))
    try:
        return number_format(
            [text for text in texts if text not in known], stated.thousands, stated.decimal, separator
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def is_number(cell: Any) -> bool:
    """Whether a cell has a type of numbers, and is one."""
    return isinstance(cell, int | float | np.number | np.bool_) and bool(cell == cell)


def kind_of(
    cell: Any, words: Words, form: NumberFormat
) -> tuple[int | None, float, tuple[float, float]] | None:
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
