"""Tables as people download them: encoding, separator, lines above and below the table, and header rows."""

import contextlib
import csv
import io
import re
import shlex
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from countveil.common.extras import install
from countveil.data.labels import SEPARATOR

TEXT = (".csv", ".tsv", ".txt")
TABLES = (*TEXT, ".xlsx", ".parquet")
SPACES = " "
SEPARATORS = {"tab": "\t", "bar": "|", "semicolon": ";", "comma": ",", "space": SPACES}
"""In the order in which they are preferred: the first ones rarely occur inside of cells, spaces nearly always."""
SAMPLE = 2**18  # characters by which the separator is chosen
HEADER_ROWS = 4  # at most
LONG_LABEL = 60  # characters; text below a table is longer
RULE = re.compile(r"[-_=*]{3,}")
NOTE = re.compile(
    r"([*†‡©]|\(c\)|((data )?source|(foot)?notes?|info|quelle|hinweis|anmerkung|copyright|dataset|suggested citation)"
    r"\b)",
    re.IGNORECASE,
)
NUMERIC = re.compile(r"[+-]?[0-9][0-9.,' \u00a0\u202f]*")
TIMES = re.compile(
    r"(1[89]|20)[0-9]{2}([-/. ]?[QKTHSWUVM][0-9]{1,2}|[-/.][0-9]{1,4}([-/.][0-9]{1,2})?)?"
    r"|(1[89]|20)[0-9]{2}年([0-9]{1,2}月)?"
    r"|[0-9]{1,2}[./-]([0-9]{1,2}[./-])?(1[89]|20)[0-9]{2}|[A-Za-z]{3,9}\.?[ -](1[89]|20)[0-9]{2}",
    re.IGNORECASE,
)
"""Labels of times that begin with digits, or a month with its year.

Quarters, terms, half-years, weeks and months have the letters of English, Nordic and Romance offices.
"""

UNITS = re.compile(
    r"\b(thousands|millions|tausend|tsd|mio|milliers|ths)\b|\bths_|\b(in|en|em) (million|mil(es|lones)\b"
    r"|1[., ]?000\b)|\((1[., ]?000|['’]?000['’]?s?)\)|(?<![0-9])['’]000|\b000s",
    re.IGNORECASE,
)
RATES = re.compile(r"\b(per|je|pro|pour|por) (1[0 .,\u00a0\u202f]*0\b|thousand|million)", re.IGNORECASE)


class Format(NamedTuple):
    """What is stated about a file; None is to be found."""

    separator: str | None = None
    encoding: str | None = None
    thousands: str | None = None
    decimal: str | None = None
    skip: int | None = None
    header_rows: int | None = None
    sheet: str | None = None


NOTHING_STATED = Format()


class Layout(NamedTuple):
    """How a file holds its table."""

    separator: str | None  # None of files that are not text
    encoding: str | None
    preamble: tuple[str, ...]
    header_rows: int
    footer: tuple[str, ...]
    sheets: tuple[str, ...] = ()  # of a workbook; the first one is read
    guessed: bool = False  # the encoding

    def describe(self) -> str:
        """One line, such as "semicolons between cells, cp1252, 2 lines above the table, 2 header rows"."""
        names = {separator: name for name, separator in SEPARATORS.items()}
        parts = [] if self.separator is None else [f"{names.get(self.separator, repr(self.separator))}-separated"]
        parts += [] if self.encoding is None else [self.encoding + " (a guess)" * self.guessed]
        parts += [f"sheet {self.sheets[0]!r}"] if self.sheets else []
        parts += [f"{len(self.sheets) - 1} more not read"] if len(self.sheets) > 1 else []
        parts.append(amount(self.header_rows, "header row"))
        for lines, where in ((self.preamble, "above"), (self.footer, "below")):
            parts += [f"{amount(len(lines), 'line')} {where} the table left out"] if lines else []
        return ", ".join(parts)


def units_said(names: Sequence[str], layout: Layout | None, constant: Iterable[str] = ()) -> list[str]:
    """What says that numbers are thousands, or rates: titles, notes, names of columns, ``constant`` cells."""
    titles, notes = ((), ()) if layout is None else (layout.preamble, layout.footer)
    several = [name for name in names if not name.isalpha()]  # "thousands" may be a word of a vocabulary
    found = [text for text in titles if UNITS.search(text) or RATES.search(text)]
    return found + [text for text in (*notes, *several, *constant) if UNITS.search(text)]


class TextTable(NamedTuple):
    """The cells of a table: text, or numbers where the file has types."""

    names: list[str] | None
    rows: list[list[Any]]
    layout: Layout


def amount(n: int, thing: str) -> str:
    """A number and its noun."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def read_text_table(path: Path, stated: Format = NOTHING_STATED, header: bool = True) -> TextTable:
    """The table in a .csv, .tsv, .txt or .xlsx.

    ``header`` False is a file whose first row is a record, as is ``header_rows`` of 0. Two header rows or more become
    names joined by " | ", in which a cell that was merged is repeated.

    Raises:
        ValueError: text that no encoding explains, rows of different lengths, no table, or a row that may be a header
            as well as a record.
        csv.Error: quotes that are not closed, or a giant cell.
    """
    sheets: tuple[str, ...] = ()
    if path.suffix.lower() == ".xlsx":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of openpyxl, about styles
            rows, sheets = rows_of_workbook(path, stated.sheet)
        separator = encoding = None
    else:
        text, encoding = decoded(path, stated.encoding)
        separator = stated.separator or find_separator(text, path.suffix.lower())
        rows = parsed(text, separator)
    if stated.header_rows == 0:
        header = False
    above, table, below = without_surroundings(path, rows, stated.skip, header)
    table = rectangular(path, table)
    n_headers = (stated.header_rows or header_rows_of(table)) if header else 0
    if len(table) <= n_headers:
        wanted = "a header row and at least one row of reports" if header else "at least one row of reports"
        raise ValueError(f"{path} must have {wanted}, got {len(table)} rows")
    guessed = encoding is not None and stated.encoding is None and not encoding.startswith("utf")
    layout = Layout(separator, encoding, above, n_headers, below, sheets, guessed)
    if not n_headers:
        return TextTable(None, table, layout)
    check_headers(path, rows, table[:n_headers], stated.header_rows is not None)
    empty = {place for place in range(1, len(table[0])) if not any(filled(row[place]) for row in table)}
    if empty:  # separators at the end of every line, and columns left empty for looks
        table = [[cell for place, cell in enumerate(row) if place not in empty] for row in table]
    names = joined_names(table[:n_headers])
    body = [row for row in table[n_headers:] if len(names) == 1 or any(map(filled, row))]
    if not body:
        raise ValueError(f"{path} must have a header row and at least one row of reports, got empty rows")
    return TextTable(names, body, layout)


def text_of(cell: Any) -> str:
    """A cell as text without blanks around it; whole numbers without a decimal point."""
    if isinstance(cell, str):
        return cell.strip()
    if cell is None or cell != cell:
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def filled(cell: Any) -> bool:
    """Whether there is anything in a cell."""
    return bool(text_of(cell))


def decoded(path: Path, stated: str | None) -> tuple[str, str]:
    """(the text of a file, its encoding): that of a byte order mark, UTF-8, or the likeliest by charset-normalizer."""
    content = path.read_bytes()
    marks = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    marked = next((name for mark, name in marks.items() if content.startswith(mark)), None)
    tried = [stated] if stated is not None else [marked] if marked else ["utf-8"]
    if stated is None and not marked and b"\0" in content[:4]:
        tried = ["utf-16-le" if content[1:2] == content[3:4] == b"\0" else "utf-16-be"]
    for name in tried:
        try:
            return content.decode(name), name
        except LookupError:
            raise ValueError(f"--encoding must be one that Python knows, such as cp1252, got {name!r:.40}") from None
        except UnicodeDecodeError as error:
            if stated is not None or marked:
                raise ValueError(
                    f"{path} must be {name} text, got byte 0x{content[error.start]:02x} at {error.start}: try another "
                    "--encoding, such as utf-8, cp1252 or utf-16"
                ) from None
    if b"\0" in content:
        raise ValueError(f"{path} must hold a table as text, got bytes that are not text")
    from charset_normalizer import from_bytes

    sample = content[:SAMPLE]
    western, best = from_bytes(sample, cp_isolation=["cp1252"]).best(), from_bytes(sample).best()
    match = western if best is None or (western is not None and western.chaos <= best.chaos) else best
    if match is not None:
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(match.encoding), match.encoding
    raise ValueError(f"{path} must be text, got bytes of no known encoding: state one by --encoding, such as cp1252")


def parsed(text: str, separator: str, strict: bool = True) -> list[list[str]]:
    """The cells of every line; equal cells are one text in memory."""
    known: dict[str, str] = {}
    if separator == SPACES:
        text = "\n".join(line.strip() for line in text.splitlines())
    spaced = separator == SPACES
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=strict, skipinitialspace=spaced)
    return [[known.setdefault(cell, cell) for cell in line] for line in lines]


def find_separator(text: str, ending: str) -> str:
    """The separator by which most rows have one length, and most cells are numbers."""
    sample = text[:SAMPLE]
    if len(text) > SAMPLE:
        sample = sample[: sample.rfind("\n") + 1] or sample
    usual = "\t" if ending == ".tsv" else ","
    best, chosen = (0, 0, 0), usual
    for separator in SEPARATORS.values():
        try:
            rows = parsed(sample, separator, strict=False)
        except csv.Error:
            continue
        lengths = Counter(len(row) for row in rows if len(row) > 1)
        if not lengths:
            continue
        width, times = lengths.most_common(1)[0]
        block = [row for row in rows if len(row) == width]
        score = sum(bool(NUMERIC.fullmatch(cell.strip())) for row in block for cell in row)
        labelled = 2 * sum(not all(map(is_numeric, row)) for row in block) > len(block)
        usually = 2 * times > sum(map(bool, rows))
        if separator == SPACES and (best > (0, 0, 0) or not score or not labelled or not usually):
            continue  # blanks in texts, in some intervals, or between groups of digits
        if separator == "\t" and 2 * times > sum(1 for row in rows if len(row) > 0 and len("".join(row)) > 3):
            return separator
        if (score, times, separator == usual) > best:
            best, chosen = (score, times, separator == usual), separator
    return chosen


def rows_of_workbook(path: Path, wanted: str | None = None) -> tuple[list[list[Any]], tuple[str, ...]]:
    """(the cells of a sheet, the names of all sheets with cells, this one first).

    By default it is the first sheet that has cells and is not hidden.

    Raises:
        ValueError: no such sheet, or a first one without numbers before others that have some.
    """
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ValueError(
            f"{path} must be read by openpyxl, which is not installed: {install('tables')}, or save it as .csv"
        ) from error
    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # whatever a broken archive raises
        raise ValueError(
            f"{path} must be a workbook (.xlsx), got a file that openpyxl cannot read: {error!s:.100}"
        ) from error
    sheets = {}
    try:
        for sheet in sorted(book.worksheets, key=lambda sheet: sheet.sheet_state != "visible"):
            rows = [[cell_of(value) for value in row] for row in sheet.iter_rows(values_only=True)]
            width = max((place + 1 for row in rows for place, cell in enumerate(row) if filled(cell)), default=0)
            if width:
                sheets[sheet.title] = [(row + [""] * width)[:width] for row in rows]
    finally:
        book.close()
    if not sheets:
        raise ValueError(f"{path} must hold a table, got no cells")
    if wanted is not None and wanted not in sheets:
        raise ValueError(f"--sheet must be one of {', '.join(map(repr, sheets))}, got {wanted!r:.60}")
    read = next(iter(sheets)) if wanted is None else wanted
    numeric = [
        name for name, rows in sheets.items() if any(isinstance(cell, int | float) for row in rows for cell in row)
    ]
    if wanted is None and numeric and read not in numeric:
        raise ValueError(
            f"{path} must have its table in the first sheet, got {read!r:.60} without numbers: state --sheet "
            f"{shlex.quote(numeric[0])}"
        )
    return sheets[read], (read, *(name for name in sheets if name != read))


def cell_of(value: Any) -> Any:
    """A cell of a workbook: a number, or text; dates as 2020-01-31."""
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat().removesuffix("T00:00:00")
    return str(value)


def without_surroundings(
    path: Path, rows: list[list[Any]], skip: int | None, header: bool
) -> tuple[tuple[str, ...], list[list[Any]], tuple[str, ...]]:
    """(lines above the table, its rows, lines below it)."""
    width = usual_width(rows)
    if not width:
        raise ValueError(f"{path} must hold a table, got no cells")
    first = skip if skip is not None else first_row(path, rows, width, header)
    last = next((place for place in range(first, len(rows)) if is_rule(rows[place], width)), len(rows))
    if any(is_record(row, width) for row in rows[last + 1 :]):
        raise ValueError(
            f"{path} must hold one table, got rows of {width} cells after a line of {text_of(rows[last][0])[:10]!r}: "
            "save each table as a file"
        )
    tail = last
    while width > 1 and tail > first + 1 and not any(map(filled, rows[tail - 1][1:])):
        tail -= 1
    notes = [place for place in range(tail, last) if NOTE.match("".join(map(text_of, rows[place][:1])))]
    last = min([last, *notes])  # what stands below a note is one
    while last > first + 1 and is_note(rows[last - 1], rows[first : last - 1], width):
        last -= 1
    return (as_lines(rows[:first]), [row for row in rows[first:last] if row or width == 1], as_lines(rows[last:]))


def as_lines(rows: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    """Rows as text, without empty ones."""
    lines = (" ".join(text_of(cell) for cell in row if filled(cell)) for row in rows)
    return tuple(line for line in lines if line)


def is_rule(row: Sequence[Any], width: int) -> bool:
    """Whether a row is a line such as ---, which ends a table."""
    return width > 1 and bool(row) and bool(RULE.fullmatch(text_of(row[0]))) and not any(map(filled, row[1:]))


def is_record(row: Sequence[Any], width: int) -> bool:
    """Whether a row looks like one of the table, and not like a note."""
    full = len(row) == width and sum(map(filled, row)) >= min(width, 3) and not NOTE.match(text_of(row[0]))
    return full and any(map(is_numeric, row[1:]))


def usual_width(rows: Sequence[Sequence[Any]]) -> int:
    """The number of cells of most rows that have several; 1 where nearly all others are numbers."""
    lengths = Counter(len(row) for row in rows if row)
    several = {length: times for length, times in lengths.items() if length > 1}
    if not several:
        return max(lengths, default=0)
    single = [row[0] for row in rows if len(row) == 1]
    if len(single) > max(several.values()) and 2 * sum(is_numeric(cell) for cell in single) > len(single):
        return 1
    return max(several, key=lambda length: several[length])


def first_row(path: Path, rows: list[list[Any]], width: int, header: bool) -> int:
    """Where the table begins: at the first row as long as most, which is no title in its first cell alone."""
    for place, row in enumerate(rows):
        full = [i for i, cell in enumerate(row) if filled(cell)]
        title = len(row) < width or (header and width > 1 and full == [0]) or not full
        if title and (width > 1 or not full):
            continue
        before: list[Any] = next((line for line in reversed(rows[:place]) if any(map(filled, line))), [])
        if width > 2 and len(before) == width - 1 and sum(map(filled, before)) > 1:
            ends = not any(filled(line[-1]) for line in rows[place:] if len(line) == width)
            extra = "delete the separator at the end of every other row, which adds an empty cell, or, " * ends
            raise ValueError(
                f"{path} must have {width} cells in every row, got {len(before)} in row {place}: {extra}if these are "
                f"names of columns, add one for the row labels; if they are not, --skip {place} leaves them out"
            )
        return place
    return 0


def is_note(row: Sequence[Any], above: Sequence[Sequence[Any]], width: int) -> bool:
    """Whether a row at the end is empty, or text below the table: one with reports is a record, whatever its label."""
    cells = [text_of(cell) for cell in row]
    full = [cell for cell in cells if cell]
    if not full:
        return width > 1 or not row
    if width > 1 and NOTE.match(cells[0]):
        return not (len(row) == width and has_reports(cells, above))
    ragged = (len(row) == 1 and width > 2) or (len(row) == 1 and width == 2 and len(cells[0]) > 40)
    padded = len(row) == width and len(full) == 1 and len(cells[0]) > LONG_LABEL
    if padded:
        padded = len(cells[0]) > max((len(text_of(line[0])) for line in above if any(map(filled, line[1:]))), default=0)
    return width > 1 and (ragged or padded) and not is_numeric(cells[0])


def has_reports(cells: Sequence[str], above: Sequence[Sequence[Any]]) -> bool:
    """Whether a row has numbers, other than the year of a source, or what other rows have for a number."""
    further = [cell for cell in cells[1:] if cell]
    if any(map(is_numeric, further)):
        return ":" not in cells[0] or not all(TIMES.fullmatch(cell) or not is_numeric(cell) for cell in further)
    others = {text_of(cell) for line in above[1:] for cell in line[1:]}
    return bool(further) and all(cell in others for cell in further)


def check_headers(path: Path, rows: Sequence[Any], headers: Sequence[Sequence[Any]], sure: bool) -> None:
    """Refuse a header row that occurs again, and one that may be a record; raises ValueError."""
    last = [text_of(cell) for cell in headers[-1]]
    if sum(map(bool, last)) > 1:
        places = [place for place, row in enumerate(rows, start=1) if [text_of(cell) for cell in row] == last]
        if len(places) > 1:
            raise ValueError(
                f"{path} must have its header row once, got it again in row {places[1]}: delete that row if the table "
                "goes on below it, or save each table as a file"
            )
    names = [name for name in (last[1:] or last) if name]
    numbers = [name for name in names if is_numeric(name) and not TIMES.fullmatch(name)]
    run = (
        len(numbers) > 2 and all(map(str.isdecimal, numbers)) and {int(b) - int(a) for a, b in pairwise(numbers)} == {1}
    )
    if (
        not sure
        and len(headers) == 1
        and 2 * len(numbers) >= len(names) > 0
        and not run
        and (last[0] or len(last) == 1)
    ):
        shown = ", ".join(repr(name[:40]) for name in last[:4])
        raise ValueError(
            f"{path} must begin with names of columns, got {shown}: state --header-rows 0 if "
            "the first row is a record, or --header-rows 1 if these are names"
        )


def rectangular(path: Path, rows: list[list[Any]]) -> list[list[Any]]:
    """Rows of one length, without empty ones, which are cells where there is one column; raises ValueError."""
    width = max(usual_width(rows), 1)
    if width == 1:
        rows = [row or [""] for row in rows]
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            remedy = "a cell with a separator in it needs quotes"
            if len(row) < width:
                remedy = "an absent report is an empty cell"
                if width > 2 and not any(map(is_numeric, row[1:])):
                    remedy = f"delete {text_of(row[0])!r:.40} if it is a title or a note, and save each table as a file"
            raise ValueError(f"{path} must have {width} cells in every row, got {len(row)} in row {number}: {remedy}")
    return [row for row in rows if width == 1 or any(map(filled, row))]


def header_rows_of(rows: Sequence[Sequence[Any]]) -> int:
    """How many rows at the top are names: further ones have no row label, or stand below merged cells."""
    n = 1
    while n < min(len(rows) - 1, HEADER_ROWS) and is_heading(rows[n - 1], rows[n], rows[n + 1 :]):
        n += 1
    index = n > 1 and len(rows) > n + 1 and filled(rows[n][0]) and not any(map(filled, rows[n][1:]))
    return n + index  # pandas writes the name of the row labels below those of the columns


def is_heading(above: Sequence[Any], row: Sequence[Any], below: Sequence[Sequence[Any]]) -> bool:
    """Whether a row below one of names has names as well: years, or text that stands in no cell below it."""
    first = next((place for place, cell in enumerate(row) if filled(cell)), 0)
    begin = first if first else 1
    cells = [text_of(cell) for cell in row[begin:]]
    names = [text_of(cell) for cell in above[1:]]
    merged = "" in names[begin - 1 :] or len(set(names)) < len(names)
    if len(row) < 2 or (first == 0 and not merged) or ("" in cells[-1:] and not merged):
        return False
    if not all(TIMES.fullmatch(cell) or not is_numeric(cell) for cell in cells if cell) or not any(cells):
        return False
    words = {text_of(cell) for line in below for cell in line[begin:]}
    return not any(cell in words for cell in cells if cell and not TIMES.fullmatch(cell))


def is_numeric(cell: Any) -> bool:
    """Whether a cell may be a number."""
    return bool(NUMERIC.fullmatch(text_of(cell)))


def joined_names(rows: Sequence[Sequence[Any]]) -> list[str]:
    """The names of columns by all header rows; those above the last one are repeated where cells were merged."""
    texts = [[on_one_line(text_of(cell)) for cell in row] for row in rows]
    labels = next((place for place, cell in enumerate(texts[-1]) if cell), 0)
    for row in texts[:-1]:
        for place in range(max(labels, 1) + 1, len(row)):
            row[place] = row[place] or row[place - 1]
    return [joined(column) for column in zip(*texts, strict=True)]


def on_one_line(name: str) -> str:
    """A name with a blank in place of each line break, as options need it."""
    return re.sub(r"\s*[\r\n]\s*", " ", name.strip())


def joined(parts: Iterable[str]) -> str:
    """Different names one after the other."""
    return SEPARATOR.join(dict.fromkeys(part for part in parts if part))
