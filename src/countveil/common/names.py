"""Names of columns in one text, separated by commas; a name that has a comma is in quotation marks, as in a .csv."""

import csv
import io
from collections.abc import Iterable


def names_in(text: str) -> list[str]:
    """The names, without spaces around them.

    Raises ValueError for no name, a line break, or a quotation mark inside a name or that is not closed.
    """
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error:
        rows = []
    if len(rows) != 1 or not rows[0] or "\n" in text or "\r" in text:
        raise ValueError(
            f"names must be separated by commas, and one with a comma must be in double quotes, got {text!r:.80}"
        )
    return [name.strip() for name in rows[0]]


def joined(names: Iterable[str]) -> str:
    """Names in one text, which ``names_in`` reads again."""
    found = io.StringIO()
    csv.writer(found, lineterminator="").writerow(names)
    return found.getvalue()
