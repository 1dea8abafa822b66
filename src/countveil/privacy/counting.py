"""Counts over a study's categories, on the device that holds the record.

Text becomes words by one rule, TOKENISATION, which every study of words states. No message here shows a
word or a count of the record.
"""

import codecs
import csv
import io
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

from countveil.privacy import _fields
from countveil.privacy._counts import MAX_COUNT, reads_as_number
from countveil.privacy.errors import RefusedError
from countveil.privacy.wording import BOTH

TOKENISATION = "letters-digits-1"
RULE = (
    "Text is read as UTF-8, brought to Unicode form NFC and lower case. A word is a longest run of letters, "
    "marks and digits; an apostrophe between two of them belongs to the word; everything else separates."
)
FORMATS = ("text", "csv", "json")
SIGNATURES = ((b"PK\x03\x04", "office_file"), (b"\xd0\xcf\x11\xe0", "office_file"), (b"{\\rtf", "office_file"),
              (b"%PDF-", "pdf_file"))  # fmt: skip
"""How files begin that are not plain text (.docx, .odt, .xlsx; .doc, .xls; .rtf; .pdf), and what to say of each."""

_WHOLE = "must be a whole number from 0 to 2^62"


class Counted(NamedTuple):
    """Counts in the study's order, and how much fell outside the study: that stays on the device."""

    values: list[int]
    outside: int
    outside_kinds: int


class _Letters(dict[int, str]):
    """What each character becomes before the text is split: itself, an apostrophe, or a space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kept = character.isalnum() or unicodedata.category(character).startswith("M")
        self[code] = character if kept else "'" if character in "'\u2019" else " "
        return self[code]


_LETTERS = _Letters()


def words(text: str) -> Iterator[str]:
    """The words of a text, in their order, by RULE."""
    lower = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())
    for run in lower.translate(_LETTERS).split():
        if "'" in run:
            yield from filter(None, (part.strip("'") for part in run.split("''")))
        else:
            yield run


def count_text(text: str, labels: Iterable[str]) -> Counted:
    """How often each label, a word, occurs in a text."""
    found = Counter(words(text))
    values = [found.pop(label, 0) for label in labels]
    return Counted(values, found.total(), len(found))


def count_csv(content: bytes, axes: tuple[tuple[str, ...], ...], name: str) -> Counted:
    """Counts from rows ``label,...,count``, one label for each axis; a header may come first.

    Rows of the same cell add up. Raises RefusedError.
    """
    text = _decoded(content, name)
    totals: dict[tuple[str, ...], int] = {}
    try:
        for number, row in enumerate(csv.reader(io.StringIO(text, newline=""), strict=True), start=1):
            if not row:
                continue
            if len(row) != len(axes) + 1:
                rule = f"must have {len(axes) + 1} cells, a label for each axis and a count, got {len(row)}"
                raise RefusedError(name, f"row {number}", rule)
            key = tuple(cell.strip() for cell in row[:-1])
            if number == 1 and not reads_as_number(row[-1]) and not _miswritten(key, row[-1], axes):
                continue
            totals[key] = totals.get(key, 0) + _whole(row[-1].strip(), name, f"row {number}")
    except csv.Error as error:
        raise RefusedError(name, _fields.WHOLE_FILE, f"must be comma-separated text, got {error}") from None
    return _laid_out(totals, axes, name)


def count_json(content: bytes, axes: tuple[tuple[str, ...], ...], name: str) -> Counted:
    """Counts from an object label -> count, nested where there are more axes than one; raises RefusedError."""
    totals: dict[tuple[str, ...], int] = {}

    def walk(node: Any, labels: tuple[str, ...]) -> None:
        if len(labels) < len(axes):
            if type(node) is not dict:
                raise RefusedError(name, "the counts", f"must be nested {len(axes)} deep, got {len(labels)}")
            for label, inner in node.items():
                walk(inner, (*labels, label))
        elif type(node) is not int or not 0 <= node <= MAX_COUNT:
            raise RefusedError(name, "a count", f"{_WHOLE}, got {_kind(node)} (not shown: it may be private)")
        else:
            totals[labels] = node

    walk(_fields.parse(content.removeprefix(codecs.BOM_UTF8), name, private=True), ())
    return _laid_out(totals, axes, name)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        rule = f"must be UTF-8 text, got bytes that are not at {error.start}. {BOTH['not_text']}"
        raise RefusedError(name, _fields.WHOLE_FILE, rule) from None


def format_of(content: bytes) -> str | None:
    """What to say, by its key in ``wording.BOTH``, of a file that is no plain text by its first bytes."""
    return next((key for start, key in SIGNATURES if content.startswith(start)), None)


def count(content: bytes, form: str, axes: tuple[tuple[str, ...], ...], name: str) -> Counted:
    """Counts from the bytes of a record in one of FORMATS; raises RefusedError."""
    if key := format_of(content):
        raise RefusedError(name, _fields.WHOLE_FILE, f"must be plain text, got a file of another kind. {BOTH[key]}")
    text = _decoded(content, name)
    if form == "text":
        return count_text(text, axes[0])
    return (count_csv if form == "csv" else count_json)(content, axes, name)


def _miswritten(key: tuple[str, ...], cell: str, axes: tuple[tuple[str, ...], ...]) -> bool:
    """Whether a first row is a mistyped count, not a header: the study's labels, then a cell with a digit."""
    of_study = all(label in labels for label, labels in zip(key, axes, strict=True))
    return of_study and any(unicodedata.category(c).startswith("N") for c in cell)


def _whole(cell: str, name: str, field: str) -> int:
    if not cell.isascii() or not cell.isdecimal() or len(cell) > 19 or int(cell) > MAX_COUNT:
        got = f"{_kind_of_text(cell)} (not shown: it may be private)"
        raise RefusedError(name, field, f"{_WHOLE} in its last cell, got {got}")
    return int(cell)


def _kind(node: Any) -> str:
    """What stands in place of a count in JSON, without its value."""
    if type(node) is int:
        return "a negative number" if node < 0 else "a larger number"
    return _fields.kind_of(node)


def _kind_of_text(cell: str) -> str:
    """What stands in place of a count in a table, without its value."""
    if not cell:
        return "an empty cell"
    if not cell.isascii() or not reads_as_number(cell):
        return "text"
    if cell.isdecimal():
        return "a larger number"
    return "a negative number" if cell.startswith("-") else "a number that is not written as digits only"


def _laid_out(totals: Mapping[tuple[str, ...], int], axes: tuple[tuple[str, ...], ...], name: str) -> Counted:
    """The counts in the order of the axes, the last one fastest; labels that are on no axis are left out."""
    places = [{label: place for place, label in enumerate(labels)} for labels in axes]
    values = [0] * prod(len(labels) for labels in axes)
    outside = outside_kinds = 0
    for key, total in totals.items():
        if total > MAX_COUNT:
            raise RefusedError(name, "a count", f"{_WHOLE}, got a sum of rows that is more")
        cell = 0
        for label, place in zip(key, places, strict=True):
            cell = cell * len(place) + place.get(label, -(1 << 62))
        if cell < 0:
            outside, outside_kinds = outside + total, outside_kinds + 1
        else:
            values[cell] = total
    return Counted(values, outside, outside_kinds)
