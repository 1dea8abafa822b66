"""Formats of statistical offices that say of every cell why it has no number: Eurostat's .tsv, SDMX-CSV."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from countveil.data.text_tables import text_of

VALUE, STATUSES = "OBS_VALUE", ("CONF_STATUS", "OBS_FLAG", "OBS_STATUS")
"""The columns of SDMX-CSV for values and for why there is none; Eurostat's .tsv is given the same names."""
PRIMARY = frozenset("CNA")
"""Confidential because of the count itself, as CONF_STATUS has it; D and S protect other cells and say nothing."""
NOT_AVAILABLE = ":"
_CELL = re.compile(r"([^ ]*) *([a-z]*)")


class Statuses(NamedTuple):
    """Cells with words in place of numbers that are not there, and the flags of numbers that are."""

    cells: list[Any]
    hidden: tuple[str, ...]
    masked: tuple[str, ...]
    flags: Counter[str]


def is_eurostat(names: Sequence[str] | None) -> bool:
    r"""Whether columns are those of a Eurostat .tsv, the first called such as ``freq,age,geo\TIME_PERIOD``."""
    return names is not None and len(names) > 1 and "\\" in names[0]


def axes_of_eurostat(names: Sequence[str]) -> list[str]:
    """The names of the axes of a Eurostat .tsv."""
    rows, _, columns = names[0].partition("\\")
    return [*(name.strip() for name in rows.split(",")), columns.strip()]


def long_of_eurostat(
    names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> tuple[list[str], list[list[Any]]]:
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


def statuses_of(values: Sequence[Any], columns: dict[str, Sequence[Any]]) -> Statuses:
    """Values with their status in place of numbers that are not there.

    ``columns`` are those of SDMX-CSV by name: a confidential cell is hidden, unless it was hidden for others; any other
    without a number is not available.
    """
    cells, hidden, masked, flags = [], set(), {NOT_AVAILABLE}, Counter[str]()
    texts = {name: [text_of(cell) for cell in column] for name, column in columns.items()}
    for row, value in enumerate(values):
        status = {name: column[row] for name, column in texts.items() if column[row]}
        if text_of(value) not in ("", NOT_AVAILABLE, "NaN"):
            cells.append(value)
            for name, word in status.items():
                plain = word in ("F", "A") if name != STATUSES[1] else False  # free, and normal
                flags.update([] if plain else word if name == STATUSES[1] and word.islower() else [word])
            continue
        code = status.get(STATUSES[0], "")
        if code in PRIMARY or "c" in status.get(STATUSES[1], ""):
            word = code if code in PRIMARY else "c"
            hidden.add(word)
        else:
            word = code if code not in ("", "F") else NOT_AVAILABLE
            masked.add(word)
        cells.append(word)
    return Statuses(cells, tuple(sorted(hidden)), tuple(sorted(masked)), flags)


def beside_status(values: Sequence[Any], status: Sequence[Any]) -> tuple[list[Any], Counter[str]]:
    """(values, with the status where one is empty; how many of the others have each status)."""
    words = [text_of(word) for word in status]
    empty = np.array([not text_of(value) for value in values])
    cells = [word if gone else value for value, word, gone in zip(values, words, empty, strict=True)]
    return cells, Counter(word for word, gone in zip(words, empty, strict=True) if word and not gone)
