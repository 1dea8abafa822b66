"""What a table looks like before anything is decided about it, and the command that would import it."""

import math
import re
import shlex
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from math import gcd, log
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil.common.names import joined
from countveil.data.tables.axes import (
    BESIDE,
    EXPOSURES,
    MANY_ZEROS,
    MOST_COLUMNS,
    SIGMAS,
    are_codes,
    are_intervals,
    is_all_text,
    is_increasing,
    is_of_numbers,
    is_whole,
    key_columns,
    long_axes,
)
from countveil.data.tables.cells import HIDDEN, INTERVAL, MASKED, Cells, NumberFormat, Words, kind_of, number_format
from countveil.data.tables.formats import VALUE, beside_status, is_reason, without_numbers
from countveil.data.tables.published import (
    LongTable,
    ProtectedTable,
    check_filled_down,
    empty_lines,
    label_places,
    long_columns,
    named_texts,
    rate_levels,
    rate_lines,
    read_long,
    read_protected,
)
from countveil.data.tables.text import NOTHING_STATED, TABLES, TIMES, Format, amount, text_of
from countveil.data.tables.total_lines import TotalLine, split_levels, total_levels, total_lines

SURE = log(1e4)  # of the evidence that common steps are no coincidence
ROWS_TO_JUDGE = 10  # fewer counts may increase from row to row by chance
DIFFERENT = 3
SHOWS_COUNTS = ("suppression", "interval")
"""Mechanisms whose numbers are counts."""
HIDES = (*SHOWS_COUNTS, "thresholded")
"""Mechanisms that give some counts no report."""
AS_SHOWN = ["--mechanism", "interval", "--lower", "0", "--upper", "inf"]
"""Options by which numbers are the counts, and nothing is known of others."""
NO_NOISE = ["--alpha", "0"]
"""Options by which numbers are the counts, where there are no others."""


class Lattice(NamedTuple):
    """All positive values are ``offset`` above multiples of ``step``."""

    step: int
    offset: int

    def __str__(self) -> str:
        if not self.offset:
            return f"multiples of {self.step}"
        return f"{self.offset} above multiples of {self.step}"


def lattice_of(values: Any, base: int = 1) -> Lattice | None:
    """The coarsest lattice of the positive values; None where it is that of the base, or they are too few to tell.

    NaN is skipped. Multiples of the base are on a lattice of step s by chance with probability base/s for each.
    """
    positive = values[values > 0]
    different = np.unique(positive)
    if different.size < DIFFERENT or (different != np.floor(different)).any() or different[-1] >= 2.0**53:
        return None
    whole = different.astype(np.int64)
    step = reduce(gcd, np.diff(whole).tolist())
    if step <= base or positive.size * log(step / base) < SURE:
        return None
    offset = int(whole[0]) % step
    if gcd(step, offset) == 1 and 2 * offset != step:
        return None  # no rounding has such numbers
    return Lattice(step, offset)


ABSENT = frozenset(
    (
        *("suppressed", "suppress", "redacted", "[redacted]", "hidden", "confidential", "secret", "geheim"),
        *("low", "[low]", "x", "ｘ", "*", "**", "***", "c", "[c]", "(c)", "..c", "s", "(s)", "..s"),
        *("(d)", "np", "n.p.", "#", "†"),
    )
)
"""What usually stands for a count that was hidden because of what it is, in lower case."""
TRUTHS = frozenset(("true", "false", "yes", "no"))
ZERO = frozenset(("-", "–", "—", "−", "－"))
BELOW = (2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 50, 100)
"""Below which agencies hide counts."""
SOME = 3  # names in a question
CODES = (-1, -2, -3, -8, -9, -98, -99, -888, -998, -999, -9999)
"""Numbers below zero that usually stand for something else."""
_MONTH = r"(jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-z]*"
MONTH_DAYS = re.compile(
    rf"[0-9]{{1,2}}[-. ]+{_MONTH}\.?|{_MONTH}[-. ]+[0-9]{{1,2}}|[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}", re.IGNORECASE
)
"""What spreadsheets make of 5-9."""


class Look(NamedTuple):
    """What was found in a file."""

    path: Path
    layout: str
    long: list[str] | None  # axes of a table with a row for each cell
    value: str | None
    axes: dict[str, list[str]]  # levels by axis
    times: list[str]  # axes whose levels look like dates
    others: list[str]  # columns that are neither
    totals: list[str]
    words: Counter[str]  # every text in cells that is no number
    n_cells: int
    shown: np.ndarray  # numbers
    lattice: Lattice | None
    options: list[str]  # of the command that imports it
    questions: list[str]
    refused: bool  # whether that command needs another file, or an option that only the user knows

    @property
    def command(self) -> str | None:
        """The command, to be pasted into a shell; None if it would be refused."""
        if self.refused:
            return None
        output = self.path.with_suffix(".npz").name
        files = [f"./{name}" if name.startswith("-") else name for name in (str(self.path), output)]
        return shlex.join(["countveil", "import", files[0], "-o", files[1], *self.options])


def look_at(path: Path, stated: Format = NOTHING_STATED, status: str | None = None) -> Look:
    """Everything about a table in a .csv, .tsv, .txt, .xlsx or .parquet; ``status`` as ``read_long``.

    Raises:
        FileNotFoundError, ValueError: as ``read_protected``; a status without a row for each cell, or that is not a
            column besides those of labels and reports.
    """
    if path.suffix.lower() not in TABLES:
        remedy = "unpack it" if path.suffix.lower() in (".zip", ".gz") else "save it as .csv"
        raise ValueError(f"{path} must end in one of {', '.join(TABLES)}, got {path.suffix or 'no ending'!r}: {remedy}")
    given = long_columns(path, stated)
    options, questions, refused = stated_options(stated), [], False
    columns = named_texts(given)
    labelled = {name: column for name, column in columns.items() if name != status}
    axes, value, further = long_axes(labelled)
    if status is not None and (value is None or len(labelled) == len(columns)):
        what = f"columns {list(columns)[:20]}" if value is not None else "a row for each record"
        raise ValueError(f"--status must be a column of a table with a row for each cell, got {status!r}, and {what}")
    if further:
        questions.append(
            f"{', '.join(map(repr, further[:SOME]))} may be reports as well, and are not read: instead of --long and "
            f"--value, {shlex.join(['--row-labels', joined(axes)])} reads all columns."
        )
    others = [name for name in columns if value is not None and name not in (*axes, value)]
    check_filled_down(path, columns, axes)
    if value is not None:
        column = dict(zip(given.names or [], given.columns, strict=True))
        body = [column[value]]
        if status is None and value != VALUE:
            called = [name for name in others if name.lower() in ("status", "symbol")]
            reasons = [name for name in others if is_reason(columns[name], columns[value])]
            status = next(iter([*called, *reasons]), None)
        if status is not None:
            no_number = without_numbers(columns[status], columns[value])
            body = [beside_status(column[value], column[status], no_number)[0]]
            options += ["--status", status]
    else:
        row_labels = label_columns(columns, given.names or [], label_places(path, given, None, ()))
        if row_labels is not None:
            options += ["--row-labels", row_labels]
            questions.append(f"Does {row_labels} name the rows? Leave a column of counts out of --row-labels.")
        labels = label_places(path, given, row_labels, ())
        body = [column for place, column in enumerate(given.columns) if place not in labels]
    try:
        form = number_format(
            dict.fromkeys(text_of(cell) for column in body for cell in column if isinstance(cell, str)),
            stated.thousands, stated.decimal, given.separator,
        )  # fmt: skip
    except ValueError as error:
        questions.append(f"{error}?")
        stated = stated._replace(thousands="." if "'.'" not in str(error) and "thousands ." in str(error) else ",")
        options += ["--thousands", str(stated.thousands)]
        form = NumberFormat(stated.thousands, "," if stated.thousands == "." else ".")
    words, unread = words_of(body, form, value == VALUE)
    if unread:
        refused = True
        questions.append(
            f"What is {', '.join(f'{text!r:.40}' for text in unread[:3])}? Correct it in the file, name it by --absent "
            "or --missing, or its column by --row-labels."
        )
    for option, listed in (("--absent", words.absent), ("--missing", words.missing), ("--zero", words.zero)):
        options += [part for word in listed for part in (option, word)]
    masked = words.missing
    words = words._replace(missing=(*words.missing, *unread))
    if value is not None:
        options += ["--long", joined(axes), "--value", value]
        if len(set(zip(*(columns[axis] for axis in axes), strict=True))) < len(columns[value]):
            refused = True
            questions.append(
                f"Some rows have the same {' and '.join(axes)}. Is another column an axis? Add it to --long."
            )
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always")
            long = read_long(path, axes, value, words, status=status, stated=stated)
        cells, shown = long.cells, long.frame[value].to_numpy()
        levels = {axis: list(dict.fromkeys(long.frame[axis])) for axis in axes}
        rates = rate_levels(long, axes, value)
        totals = totals_of_long(long, axes, value)
        n_absent = totals.n_absent
    else:
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always")
            wide = read_protected(path, words=words, stated=stated, row_labels=row_labels)
        assert wide.cells is not None
        cells, shown = wide.cells, wide.cells.values.ravel()
        levels = {"rows": wide.row_labels or [], "columns": wide.column_labels or []}
        rates = rate_lines(wide)
        totals = totals_of_wide(wide)
        n_absent = 0
        above = above_indented(given.columns[labels[0]]) if labels else []
        known_totals = {line.label for line in totals.levels.get("row", ())}
        above = [name for name in above if name not in known_totals]
        if above:
            questions.append(
                f"Is {above[0]!r:.60} the total of the indented rows below it? Name such rows by --total, as in "
                f"{shlex.join(['--total', above[0]])} --totals-in-table drop."
            )
        repeated = repeated_in(wide.row_labels or [])
        if repeated:
            questions.append(
                f"Several rows are called {repeated[0]!r:.60}: add the column that tells them apart to --row-labels, "
                "or the heading above each to its label."
            )
        empty = empty_lines(wide)
        if empty:
            refused = True
            questions.append(
                f"No cells in {', '.join(empty[:SOME])}: headings or notes? Delete them, or state --absent '' or "
                "--missing ''."
            )
    questions += [*(f"{doubt.message}." for doubt in doubts), *doubtful_levels(levels)]
    refused |= bool(rates)
    tally = cells.tally()
    known = shown[~np.isnan(shown)]
    codes = codes_among(known)
    hidden = tally[HIDDEN] + Counter({str(code): int((known == code).sum()) for code in codes})
    options += [part for code in codes for part in ("--absent", str(code))]
    counts = totals.others[~np.isin(totals.others, codes)]
    lattice = lattice_of(counts)
    least = counts[counts > 0].min(initial=math.inf)
    largest_hidden = totals.largest_hidden if hidden and lattice is None else 0
    if hidden and lattice is None and (least == 1 or largest_hidden >= least):
        for option in ("--absent", "--missing"):
            options = without_option(options, option)
        options += [
            part
            for word in dict.fromkeys([*hidden, *words.missing])
            if word not in unread and value != VALUE
            for part in ("--missing", word)
        ]
        beside = "beside counts of 1" if least == 1 else f"for counts of up to {largest_hidden}, by their totals"
        questions.append(
            f"{shown_words(hidden)} {beside}: never reported (--missing), or hidden for another reason than their size?"
        )
        hidden, masked = Counter(), ()
    stated_below = cells.bounds[cells.bounds[:, 0] <= 1, 1].max(initial=0.0) + 1.0
    asked, protection = suggested(
        counts,
        hidden,
        int(stated_below) if 1 < stated_below < np.inf else None,
        bool(tally[INTERVAL]),
        lattice,
        cells.code.size,
        bool(words.zero or unread),
        largest_hidden,
    )
    if words.zero and value != VALUE:
        though = ", though 0 is there as well" * ("0" in texts_of(body))
        questions.append(f"Is {words.zero[0]!r} a zero{though}? If hidden, name it by --absent.")
    if masked and value != VALUE:
        questions.append(
            f"Was {', '.join(map(repr, masked[:SOME]))} never reported? If hidden because of the count, name it by "
            "--absent."
        )
    if (counts != np.floor(counts)).any() and stated_rule(protection).partition(" ")[0] in SHOWS_COUNTS:
        refused = True
        questions.append("Some numbers are not whole: delete rates and averages, or state the noise as a mechanism.")
    if "SIGMA" in protection:
        protection = with_sigma(protection, others, known, n_absent)
    if n_absent > 0 and "thresholded" not in protection:
        without = f"{amount(n_absent, 'cell')} without a row"
        # Where 1 is the most frequent count and none is 0, events were listed: nothing small is hidden, unless totals
        # are larger than what is shown.
        often = Counter(counts.tolist()).most_common(2)
        are_listed = protection == AS_SHOWN and often[0][0] == 1 and len({n for _, n in often}) == len(often)
        are_listed &= not (counts == 0).any() and (not totals.levels or totals.are_sums)
        if stated_rule(protection).partition(" ")[0] in HIDES and not are_listed:
            questions.append(
                f"{without}: zeros (--background 0), never reported (--background missing), or hidden, as the command "
                "reads them?"
            )
        else:
            left_out = "missing" if (counts == 0).any() else "0"
            options += ["--background", left_out]
            questions.append(
                f"{without}: zeros (--background 0) or never reported (--background missing)? The command states "
                f"{left_out}."
            )
    exposure = next((name for name in others if EXPOSURES.search(name)), None)
    if exposure is not None and n_absent > 0:
        questions.append(
            f"{exposure!r:.60} has no number for cells without a row: add these rows, for --exposure "
            f"{shlex.quote(exposure)}."
        )
    elif exposure is not None:
        options += ["--exposure", exposure]
    questions += asked
    if totals.levels:
        unread_cells = hidden or tally[HIDDEN] or tally[MASKED] or tally[INTERVAL]
        background = options[options.index("--background") + 1] if "--background" in options else None
        some_open = unread_cells or "--absent" in protection or (n_absent > 0 and background != "0")
        question, of_totals = suggested_totals(totals, protection, background, bool(some_open))
        questions.append(question)
        options += of_totals
    some_hidden = hidden or tally[HIDDEN] or (n_absent > 0 and "--background" not in options)
    if protection == AS_SHOWN and not some_hidden and options[-2:] != ["--totals-in-table", "use"]:
        protection = NO_NOISE
    layout = "typed columns" if given.layout is None else given.layout.describe()
    return Look(
        path, layout, axes if value is not None else None, value, levels,
        [axis for axis, names in levels.items() if len(names) > 1 and all(TIMES.fullmatch(name) for name in names)],
        others, totals.said, tally[INTERVAL] + tally[HIDDEN] + tally[MASKED], cells.code.size, known, lattice,
        [*options, *protection], questions, refused,
    )  # fmt: skip


def above_indented(column: Sequence[Any]) -> list[str]:
    """Labels above a row whose label begins with more blanks."""
    cells = [cell for cell in column if isinstance(cell, str) and cell.strip()]
    depths = [len(cell) - len(cell.lstrip()) for cell in cells]
    return [cell.strip() for cell, depth, below in zip(cells, depths, depths[1:], strict=False) if depth < below]


def repeated_in(labels: Sequence[str]) -> list[str]:
    """Labels that occur more than once."""
    return [label for label, times in Counter(labels).items() if times > 1]


def doubtful_levels(levels: dict[str, list[str]]) -> list[str]:
    """Questions about labels whose numbers may be no counts, and labels that a spreadsheet changed."""
    questions = []
    for names in levels.values():
        if len(names) > MOST_COLUMNS:
            continue
        odd = [name for name in names if BESIDE.search(name) or EXPOSURES.search(name)]
        if odd:
            questions.append(
                f"Counts, rates or a population in {', '.join(map(repr, odd[:SOME]))}? Delete rates and averages; put "
                "a population into a file for --exposure."
            )
        dates = [name for name in names if MONTH_DAYS.fullmatch(name)]
        groups = [name for name in names if are_intervals([name])]
        if dates and groups:
            questions.append(f"Was {dates[0]!r} a group such as {groups[0]!r}, which a spreadsheet made a date?")
    return questions


def stated_options(stated: Format) -> list[str]:
    """What was stated about the file, as options."""
    given = {"--" + name.replace("_", "-"): value for name, value in stated._asdict().items() if value is not None}
    return [part for name, value in given.items() for part in (name, str(value))]


def label_columns(columns: dict[str, list[str]], names: Sequence[str], places: Sequence[int]) -> str | None:
    """--row-labels of a wide table in which further columns are labels: years, codes, or text without any number."""
    labels = [name for place, name in enumerate(names) if place in places]
    rest = {name: cells for name, cells in columns.items() if name not in labels}
    keys = key_columns(rest, bool(labels)) or ([] if labels else codes_first(rest))
    numbers = next((place for place, name in enumerate(rest) if is_of_numbers(rest[name])), 0)
    further = [
        name
        for place, (name, cells) in enumerate(rest.items())
        if name in keys
        or (
            is_all_text(cells)
            and (len(set(cells)) > 1 or (place < numbers and not TIMES.fullmatch(name)))
            and not {cell.casefold() for cell in cells} <= ABSENT | ZERO | TRUTHS
        )
    ]
    wanted = [name for name in names if name in (*labels, *further)]
    return joined(wanted) if further and len(further) < len(rest) and all(wanted) else None


def codes_first(columns: dict[str, list[str]]) -> list[str]:
    """A first column of whole numbers that increase from row to row, or differ and are long, as codes of places do."""
    for name, cells in columns.items():
        increases = len(cells) >= ROWS_TO_JUDGE and is_whole(cells) and is_increasing(cells)
        return [name] if increases or are_codes(name, cells) else []
    return []


def words_of(columns: Sequence[Any], form: NumberFormat, official: bool) -> tuple[Words, list[str]]:
    """(what the words in cells may stand for, by what agencies usually mean; texts that may be numbers)."""
    absent: list[str] = []
    missing: list[str] = []
    zero: list[str] = []
    unread: list[str] = []
    if official:
        return Words(), []
    for column in columns:
        cells = Counter(text_of(cell) for cell in column if isinstance(cell, str) and cell.strip())
        words = [text for text in cells if not is_known(text, form)]
        unusual = [word for word in words if word not in ZERO and word.casefold() not in ABSENT]
        spelt = [word for word in words if any(map(str.isalpha, word))]
        labels = len(spelt) > 1 and unusual and 2 * sum(cells[word] for word in spelt) > cells.total()
        for text in words:
            odd = (labels and text in spelt) or (
                text in unusual and (any(map(str.isdigit, text)) or not text.isprintable())
            )
            known = zero if text in ZERO else absent if text not in unusual else missing
            kind = unread if odd else known
            kind += [] if text in kind else [text]
    unread = [text for text in unread if text not in absent]  # a word of other columns as well
    return Words(tuple(absent), tuple(word for word in missing if word not in unread), tuple(zero)), unread


def is_known(text: str, form: NumberFormat) -> bool:
    """Whether a text is a number, an interval, or nothing."""
    try:
        return kind_of(text, Words(), form) is not None
    except ValueError:
        return False


def texts_of(columns: Sequence[Any]) -> set[str]:
    """The different texts of some columns."""
    return {text_of(cell) for column in columns for cell in column}


def without_option(options: Sequence[str], option: str) -> list[str]:
    """Options without all of one that has a value."""
    return [
        part for place, part in enumerate(options)
        if part != option and (place == 0 or options[place - 1] != option)
    ]  # fmt: skip


SUMS = ("sum", "least", "most", "hidden", "rows")
"""Of some cells: numbers, what numbers and intervals are at least and at most, and how many are hidden or there."""
Bounds = tuple[float, float]


class Totals(NamedTuple):
    """Lines of a table that may be totals, and what they add to the other cells."""

    levels: dict[str, list[TotalLine]]  # by axis
    sums: pd.DataFrame  # a row for each total that is known: its number, and those of its cells by ``SUMS``
    others: np.ndarray  # numbers of all other cells
    n_absent: int  # cells without a row, besides totals
    usable: bool  # as `import --totals-in-table use` takes them

    @property
    def said(self) -> list[str]:
        """Every line, by its axis and label."""
        return [f"{axis} {line}" for axis, lines in self.levels.items() for line in lines]

    @property
    def are_sums(self) -> bool:
        """Whether they are the sums of the numbers shown."""
        return bool((self.sums["total"] == self.sums["sum"]).all())

    def are_possible(self, away: float, hidden: Bounds, absent: Bounds) -> bool:
        """Whether they may be totals of these cells.

        Each number is at most ``away`` from its count; ``hidden`` and ``absent`` are the bounds of a count that is
        hidden, and of one without a row.
        """
        total, slack = self.sums["total"], away * (self.sums["cells"] + 1)
        least, most = (
            self.sums[end] + times(self.sums["hidden"], of_hidden) + times(self.sums["absent"], of_absent)
            for end, of_hidden, of_absent in zip(("least", "most"), hidden, absent, strict=True)
        )
        return bool(((total >= least - slack) & (total <= most + slack)).all())

    @property
    def largest_hidden(self) -> int:
        """The size that some hidden count must have for its total, 0 if nothing is known of it."""
        unbounded = (0.0, math.inf)
        if not self.usable or not self.are_possible(0.0, unbounded, unbounded):
            return 0
        left, n = self.sums["total"] - self.sums["most"], self.sums["hidden"] + self.sums["absent"]
        return math.ceil(max([0.0, *(left / n)[n > 0]]))


def times(number: pd.Series, bound: float) -> pd.Series:
    """A number of counts times the bound of each, which may be infinite."""
    return (number * bound).where(number > 0, 0.0)


def cells_to_sum(cells: Cells) -> pd.DataFrame:
    """A row for each cell, in order, by ``SUMS``."""
    values, kind = cells.values.ravel(), cells.kind[cells.code].ravel()
    least, most = (np.where(np.isnan(ends), values, ends) for ends in cells.intervals.reshape(-1, 2).T)
    hidden = kind == HIDDEN
    most = np.where(np.isnan(most), np.where(hidden, 0.0, np.inf), most)
    found = (np.nan_to_num(values), np.nan_to_num(least), most, hidden.astype(float), np.ones(hidden.size))
    return pd.DataFrame(dict(zip(SUMS, found, strict=True)))


def totals_of(
    frame: pd.DataFrame,
    axes: Sequence[str],
    value: str,
    levels: dict[str, list[TotalLine]],
    usable: bool,
    numbers: pd.DataFrame,
) -> Totals:
    """What lines of totals add to the other cells of a long table, whose ``numbers`` are ``cells_to_sum``."""
    kept, tables = split_levels(frame, axes, value, levels)
    cells, numbers = frame[kept], numbers[kept]
    sizes = {axis: cells[axis].nunique() for axis in axes}
    sums = [pd.DataFrame(columns=["total", *SUMS, "cells"], dtype=float)]
    for table in tables:
        left = [axis for axis in axes if axis in table]
        usable = usable and not table.duplicated(left or None).any()
        n_cells = math.prod(size for axis, size in sizes.items() if axis not in left)
        if left:
            found = (
                numbers.groupby([cells[axis] for axis in left], sort=False)
                .sum()
                .reindex(pd.Index(table[left[0]]) if len(left) == 1 else pd.MultiIndex.from_frame(table[left]))
            )
        else:
            found = numbers.sum().to_frame().T
        found = found.fillna(0.0).assign(total=table[value].to_numpy(), cells=float(n_cells))
        sums.append(found[found["total"].notna()])
    usable = usable and not any(line.is_partial for lines in levels.values() for line in lines)
    others = cells[value].dropna().to_numpy()
    every = pd.concat([each for each in sums if len(each)] or sums)
    every = every.assign(absent=every["cells"] - every["rows"])
    return Totals(levels, every, others, math.prod(sizes.values()) - len(cells), usable)


def totals_of_long(table: LongTable, axes: Sequence[str], value: str) -> Totals:
    """The levels of a long table that may be totals."""
    values = np.where(table.masked, np.nan, table.frame[value].to_numpy())
    levels = total_levels(table.frame, axes, values)
    return totals_of(table.frame, axes, value, levels, True, cells_to_sum(table.cells))


def totals_of_wide(table: ProtectedTable) -> Totals:
    """The rows and columns of a wide table that may be totals."""
    values = np.ma.filled(np.ma.asarray(table.values, dtype=np.float64), np.nan)
    rows, columns = table.row_labels, table.column_labels
    lines = {"row": total_lines(values, rows), "column": total_lines(values.T, columns)}
    levels = {axis: found for axis, found in lines.items() if found}
    labels = pd.MultiIndex.from_product(
        [names or map(str, range(n)) for names, n in zip((rows, columns), values.shape, strict=True)],
        names=["row", "column"],
    )
    frame = labels.to_frame(index=False).assign(report=values.ravel())
    usable = rows is not None and columns is not None and all(len(found) == 1 for found in levels.values())
    assert table.cells is not None
    return totals_of(frame, ("row", "column"), "report", levels, usable, cells_to_sum(table.cells))


def stated_rule(protection: Sequence[str]) -> str:
    """The mechanism that options state; that of intervals if there is none."""
    return protection[protection.index("--mechanism") + 1] if protection else "interval"


def bounds_of(protection: Sequence[str], background: str | None) -> tuple[Bounds, Bounds]:
    """The bounds of a count that is hidden, and of one without a row, as options state them."""
    hidden = 0.0, math.inf
    if stated_rule(protection) == "suppression":
        hidden = (float("--hides-zero" not in protection), float(protection[protection.index("--below") + 1]) - 1.0)
    return hidden, {None: hidden, "0": (0.0, 0.0)}.get(background, (0.0, math.inf))


def suggested_totals(
    totals: Totals, protection: list[str], background: str | None, some_open: bool
) -> tuple[str, list[str]]:
    """(a question, options) about totals: to use them if they tell something about counts that are not shown.

    ``background``: what a cell without a row is. ``some_open``: whether some counts are hidden, masked or in an
    interval.
    """
    rule = stated_rule(protection)
    shows_counts = rule in SHOWS_COUNTS
    away = 0.0 if shows_counts else float(protection[-1]) - 1.0 if "--base" in protection else math.inf
    why = ""
    if shows_counts and not some_open:
        why = "since all counts are shown"
    elif not shows_counts and totals.are_sums:
        why = "since they add up the numbers shown, and tell no more"
    elif " then " in rule:
        why = "since counts that were hidden and then rounded cannot have totals"
    elif "--noise" in protection:
        why = "since their noise is not stated"
    elif not totals.usable:
        why = "since they are not one row and one column of sums of all others: give them by --totals, in files"
    elif not totals.are_possible(away, *bounds_of(protection, background)):
        why = "since they are not the sums of the other cells"
    if why:
        return (
            f"Are these totals? The command leaves them out (--totals-in-table drop), {why}; none reads them as counts."
        ), ["--totals-in-table", "drop"]
    said = (
        "Are these totals? The command keeps them as known totals (--totals-in-table use), for narrower intervals with "
        "method gibbs; drop leaves them out; none reads them as counts."
    )
    if shows_counts:
        return said, ["--totals-in-table", "use"]
    own = " ".join(protection[protection.index(rule) :])
    exact = "--base" in protection and (totals.sums["total"] % int(protection[-1]) != 0).any()
    said += " Were they treated as the counts were? If they are exact, state --totals-mechanism exact." * (not exact)
    return said, ["--totals-in-table", "use", "--totals-mechanism", "exact" if exact else own]


def codes_among(shown: np.ndarray) -> list[int]:
    """A number that probably stands for hidden or missing counts: the only one below zero, a usual one, repeated."""
    below = shown[shown < 0]
    whole = bool((shown == np.floor(shown)).all())
    alone = whole and below.size > 1 and np.unique(below).size == 1 and below[0] in CODES
    return [int(below[0])] if alone else []


def with_sigma(options: list[str], others: Sequence[str], shown: np.ndarray, n_absent: int) -> list[str]:
    """Options of Gaussian noise with the column of its sigma, and a threshold if small values were left out."""
    sigma = next((name for name in others if SIGMAS.search(name)), "SIGMA")
    if n_absent > 0 and shown.min(initial=np.inf) >= 1:
        least = str(int(shown.min()))
        return ["--mechanism", "thresholded", "--noise", "gaussian", "--sigma", sigma, "--above", least]
    return [sigma if part == "SIGMA" else part for part in options]


def shown_words(words: Counter[str]) -> str:
    """Some words of cells, for a question."""
    return ", ".join(repr(word) if word else "Empty cells" for word in list(words)[:SOME])


def suggested(
    shown: np.ndarray,
    hidden: Counter[str],
    stated_below: int | None,
    intervals: bool,
    lattice: Lattice | None,
    n_cells: int,
    has_zero_words: bool,
    largest_hidden: int,
) -> tuple[list[str], list[str]]:
    """(questions, options that state a mechanism) by the gaps and steps of shown numbers, and by intervals."""
    questions: list[str] = []
    positive = shown[(shown > 0) & (shown == np.floor(shown))]
    least = int(positive.min()) if positive.size else 1
    rounding: list[str] = []
    if lattice is not None:
        how = "midpoint" if 2 * lattice.offset == lattice.step else ""
        kind = f"rounding-{how}" if how else "rounding" if hidden else "random-rounding"
        rounding = [kind, "--base", str(lattice.step)]
        ways = "to the middles of groups?" if how else "at random (random-rounding) or to the nearest (rounding)?"
        questions.append(f"All positive numbers are {lattice}: rounded {ways}")
        if lattice.offset and not how:
            rounding[-1] = str(math.gcd(lattice.step, lattice.offset))
    if hidden:
        words = shown_words(hidden)
        first = "1" if (shown == 0).any() else "0"
        below = least if least == 11 else max(each for each in BELOW if each <= max(least, 2))
        below = below if stated_below is None else min(stated_below, max(least, 2))
        below = max(below, largest_hidden + 1)
        if lattice is not None:  # the smallest count that is rounded to the smallest number
            below = max(least - lattice.step // 2, 2)
        share = f"{100 * hidden.total() / n_cells:.0f}% of the cells"
        questions.append(
            f"{words} in {share}, and no number from {first} to {least - 1}: counts of {first} to {below - 1} hidden?"
        )
        rule = ["suppression", "--below", str(below), *(["--hides-zero"] * (first == "0"))]
        if rounding:
            return questions, ["--mechanism", " ".join([*rule, "then", *rounding])]
        return questions, ["--mechanism", *rule]
    if rounding and not intervals:
        return questions, ["--mechanism", *rounding]
    if intervals:
        return questions, []
    zeros = float((shown == 0).mean()) if shown.size else 0.0
    if least > 1 and zeros > MANY_ZEROS and not has_zero_words:
        questions.append(f"No number from 1 to {least - 1}, and {zeros:.0%} zeros: small counts written as 0?")
        if (shown == np.floor(shown)).all():
            rule = ["--mechanism", "suppression", "--below", str(least), "--hides-zero"]
            return questions, ["--absent", "0", *rule]
    whole = (shown == np.floor(shown)).all()
    if not whole or (shown < 0).any():
        questions.append(
            "Some numbers are negative or not whole: noise? State its mechanism, which only the publisher knows: "
            "two-sided-geometric (discrete Laplace; --alpha, or --epsilon and --precision), discrete-gaussian or "
            f"gaussian (--sigma). Put its number in place of {'ALPHA' if whole else 'SIGMA'}."
        )
        noise = ["two-sided-geometric", "--alpha", "ALPHA"] if whole else ["gaussian", "--sigma", "SIGMA"]
        return questions, ["--mechanism", *noise]
    questions.append(
        "No sign of rounding or hiding: are these the counts themselves? If they are confidential, countveil privatize "
        "protects them."
    )
    return questions, AS_SHOWN
