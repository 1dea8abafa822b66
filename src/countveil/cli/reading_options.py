"""Options that say how a file of text holds its table, where that cannot be found in it."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from countveil.data.tables.cells import Words
    from countveil.data.tables.text import Format

WORDS_OF_SEPARATORS = "comma, semicolon, tab, bar"
TABLE = "How the file is read"
"""The panel of help for options of files."""


class FileOptions(NamedTuple):
    """What is stated of a file; None is found in it."""

    separator: Annotated[
        str | None,
        typer.Option(help=f"Cell separator: {WORDS_OF_SEPARATORS} [default: found].", rich_help_panel=TABLE),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            help="Encoding, such as utf-8, cp1252 or utf-16 [default: found].", rich_help_panel=TABLE
        ),
    ] = None
    thousands: Annotated[
        str | None,
        typer.Option(
            metavar="MARK",
            rich_help_panel=TABLE,
            help="Thousands separator: . , space or apostrophe [default: found].",
        ),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(metavar="MARK", help="Decimal mark: . or , [default: found].", rich_help_panel=TABLE),
    ] = None
    skip: Annotated[
        int | None,
        typer.Option(min=0, help="Number of lines above the table [default: found].", rich_help_panel=TABLE),
    ] = None
    header_rows: Annotated[
        int | None,
        typer.Option(min=0, max=4, help="Number of header rows [default: found].", rich_help_panel=TABLE),
    ] = None
    sheet: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Sheet of a workbook [default: the first].", rich_help_panel=TABLE),
    ] = None

    def read(self) -> "Format":
        """The format; raises ValueError for a separator that is none."""
        from countveil.data.tables.text import SEPARATORS, Format

        separator = self.separator
        if separator is not None:
            separator = SEPARATORS.get(separator, separator)
            if len(separator) != 1:
                raise ValueError(
                    f"--separator must be {WORDS_OF_SEPARATORS}, or a character, got {separator!r:.40}"
                )
        return Format(
            separator, self.encoding, self.thousands, self.decimal, self.skip, self.header_rows, self.sheet
        )


class CellOptions(NamedTuple):
    """What words in cells stand for."""

    absent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            help="A word for counts that were hidden because of their size, such as 'Suppressed' [default: empty "
            "cells and N/A]. Repeatable.",
        ),
    ] = None
    missing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            help="A word for cells that were never reported, for reasons unrelated to their counts, such as 'n/a', "
            "or '' for empty cells. With --absent, empty cells and N/A are such cells. Repeatable.",
        ),
    ] = None
    zero: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD", help="A word for a count of zero, such as '-'. Repeatable."),
    ] = None

    def read(self) -> "Words":
        """The words."""
        from countveil.data.tables.cells import Words

        return Words(tuple(self.absent or ()), tuple(self.missing or ()), tuple(self.zero or ()))
