"""Formats of statistical offices that say of every cell why it has no number: Eurostat's .tsv, SDMX-CSV."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from countveil.data.tables.text import text_of

VALUE, STATUSES = "OBS_VALUE", ("CONF_STATUS", "OBS_FLAG", "OBS_STATUS")
"""The columns of SDMX-CSV for values and for why there is none; Eurostat's .tsv is given the same names."""
UNITS = "UNIT_MULT"
"""The column of SDMX-CSV for the power of ten by which its values are to be multiplied."""
PRIMARY = frozenset("CNA")
"""Confidential because of the count itself, as CONF_STATUS has it; D and S protect other cells and say nothing."""
SUPPRESSED, MISSING = "Q", frozenset("HKLMO")
"""Codes of OBS_STATUS for a missing value: suppressed, and missing for reasons unrelated to the count."""
NOT_AVAILABLE = ":"
_CELL = re.compile(r"([^ ]*) *([a-z]*)")


class Statuses(NamedTuple):
    """Cells with words in place of numbers that are not there, and the flags of numbers that are."""

    cells: list[Any]
    hidden: tuple[str, ...]
    masked: tuple[str, ...]
    flags: Counter[str]
    n_dropped: int  # numbers beside a status that says there is none


def is_eurostat(names: Sequence[str] | None) -> bool:
    r"""Whether columns are those of a Eurostat .tsv, the first called such as ``freq,age,geo\TIME_PERIOD``."""
    return names is not None and len(names) > 1 and "\\" in names[0]


def axes_of_eurostat(names: Sequence[str]) -> list[str]:
    """The names of the axes of a Eurostat .tsv."""
    rows, _, columns = names[0].partition("\\")
    return [*(name.strip() for name in rows.split(",")), columns.strip()]


def long_of_eurostat(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[list[str], list[list[Any]]]:
    """(names, rows) of a Eurostat .tsv as a table with a row for each cell, its value and its flags.

    Raises:
        ValueError: a row whose label has other axes than the header.
    """
    axes = axes_of_eurostat(names)
    cells: list[list[Any]] = []
    for number, row in enumerate(rows, start=1):
        labels = [label.strip() for label in text_of(row[0]).split(",")]
        if len(labels) != len(axes) - 1:
            raise ValueError(
                f"row {number} must have {len(axes) - 1} labels in its first cell, got {text_of(row[0])!r:.60}"
            )
        for time, cell in zip(names[1:], row[1:], strict=True):
            parts = _CELL.fullmatch(text_of(cell))
            value, flags = parts.groups() if parts else (text_of(cell), "")
            cells.append([*labels, time.strip(), value, flags])
    return [*axes, VALUE, STATUSES[1]], cells


def check_units(path: Path, powers: Sequence[Any]) -> None:
    """Refuse values in thousands or the like, by their column of powers of ten; raises ValueError."""
    stated = {text_of(power).partition(":")[0].strip() for power in powers}
    power = next((each for each in sorted(stated) if each.rstrip("0") not in ("", "0.", ".")), None)
    if power is None:
        return
    known = re.fullmatch(r"([+-]?)([0-9]{1,2})(\.0*)?", power)
    times = 10 ** int(known[2]) if known else 0
    if known is None:
        remedy = f"it must be a whole number, the power of ten: correct it, or set it to 0 if {VALUE} has counts"
    elif known[1] == "-":
        remedy = f"divide {VALUE} by {times} in these rows, and set {UNITS} to 0"
    else:
        rule = f"--mechanism rounding --base {times}"
        remedy = f"multiply {VALUE} by {times} in these rows, set {UNITS} to 0, and state {rule}"
    raise ValueError(f"{path} must have counts in {VALUE}, got {UNITS} {power!r:.20}: {remedy}")


def statuses_of(values: Sequence[Any], columns: dict[str, Sequence[Any]]) -> Statuses:
    """Values with their status in place of numbers that are not there.

    ``columns`` are those of SDMX-CSV by name: a confidential or suppressed cell is hidden, whatever number is there,
    unless it was hidden for others; any other without a number is not available.
    """
    cells: list[Any] = []
    hidden, masked, flags, n_dropped = set[str](), {NOT_AVAILABLE}, Counter[str](), 0
    texts = {name: [text_of(cell) for cell in column] for name, column in columns.items()}
    for row, value in enumerate(values):
        status = {name: column[row] for name, column in texts.items() if column[row]}
        confidential = status.get(STATUSES[0], "")
        flag, observation = status.get(STATUSES[1], ""), status.get(STATUSES[2], "")
        is_hidden, word = True, next((code for code in (flag, observation) if code == SUPPRESSED), None)
        if confidential in PRIMARY:
            word = confidential
        elif "c" in flag:
            word = "c"
        elif word is None:
            is_hidden = False
            word = confidential if confidential not in ("", "F") else None
            word = word or next((code for code in (flag, observation) if code in MISSING), None)
        has_number = text_of(value) not in ("", NOT_AVAILABLE, "NaN")
        if has_number and word is None:
            cells.append(value)
            for name, word in status.items():
                plain = word in ("F", "A") if name != STATUSES[1] else False  # free, and normal
                flags.update([] if plain else word if name == STATUSES[1] and word.islower() else [word])
            continue
        word = word or NOT_AVAILABLE
        n_dropped += has_number
        (hidden if is_hidden else masked).add(word)
        cells.append(word)
    return Statuses(cells, tuple(sorted(hidden)), tuple(sorted(masked)), flags, n_dropped)


def beside_status(
    values: Sequence[Any], status: Sequence[Any], no_number: Collection[str] = ()
) -> tuple[list[Any], Counter[str], int]:
    """(values, with the status where one is empty or the status is of ``no_number``; flags; numbers left out so).

    Flags are how many of the other cells have each status.
    """
    words = [text_of(word) for word in status]
    without = {word.strip() for word in no_number} - {""}
    empty = np.array([not text_of(value) for value in values])
    gone = empty | np.array([word in without for word in words])
    cells = [word if no else value for value, word, no in zip(values, words, gone, strict=True)]
    flags = Counter(word for word, no in zip(words, gone, strict=True) if word and not no)
    numbers = [text_of(value) != word for value, word in zip(values, words, strict=True)]
    return cells, flags, int((gone & ~empty & np.array(numbers)).sum())


def without_numbers(words: Sequence[str], values: Sequence[str]) -> set[str]:
    """Words of a column that stand beside zeros and empty cells only, and beside two zeros or more."""
    beside: dict[str, list[str]] = {}
    for word, value in zip(words, values, strict=True):
        if word and not word.isdecimal():
            beside.setdefault(word, []).append(value)
    return {word for word, cells in beside.items() if cells.count("0") > 1 and set(cells) <= {"0", ""}}


def is_reason(words: Sequence[str], values: Sequence[str]) -> bool:
    """Whether a column says why there is no number: by words that stand beside zeros only, and nothing elsewhere."""
    without = without_numbers(words, values)
    return bool(without) and set(words) == {*without, ""}
