"""Options that say how a file of text holds its table, where that cannot be found in it."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from countveil.data.cell_kinds import Words
    from countveil.data.text_tables import Format

WORDS_OF_SEPARATORS = "comma, semicolon, tab, bar"


class FileOptions(NamedTuple):
    """What is stated of a file; None is found in it."""

    separator: Annotated[
        str | None, typer.Option(help=f"What is between cells: {WORDS_OF_SEPARATORS} [default: found].")
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Of the text, such as utf-8, cp1252 or utf-16 [default: found].")
    ] = None
    thousands: Annotated[
        str | None,
        typer.Option(
            metavar="MARK", help="Between groups of three digits: . , space or apostrophe [default: found]."
        ),
    ] = None
    decimal: Annotated[
        str | None, typer.Option(metavar="MARK", help="Before decimals: . or , [default: found].")
    ] = None
    skip: Annotated[
        int | None, typer.Option(min=0, help="Lines above the table to leave out [default: found].")
    ] = None
    header_rows: Annotated[
        int | None, typer.Option(min=0, max=4, help="Rows of column names [default: found].")
    ] = None

    def read(self) -> "Format":
        """The format; raises ValueError for a separator that is none."""
        from countveil.data.text_tables import SEPARATORS, Format

        separator = self.separator
        if separator is not None:
            separator = SEPARATORS.get(separator, separator)
            if len(separator) != 1:
                raise ValueError(
                    f"--separator must be {WORDS_OF_SEPARATORS}, or a character, got {separator!r:.40}"
                )
        return Format(separator, self.encoding, self.thousands, self.decimal, self.skip, self.header_rows)


class CellOptions(NamedTuple):
    """What words in cells stand for."""

    absent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            help="What stands for a count that was hidden because of what it is, such as 'Suppressed'; repeatable. "
            "Without any, empty cells and N/A do.",
        ),
    ] = None
    missing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            help="What stands for a cell that was never reported, for reasons that have nothing to do with its count, "
            "such as 'n/a', or '' for empty cells; repeatable. Next to --absent, empty cells and N/A always do.",
        ),
    ] = None
    zero: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD", help="What stands for a count of zero, such as '-'; repeatable."),
    ] = None

    def read(self) -> "Words":
        """The words."""
        from countveil.data.cell_kinds import Words

        return Words(tuple(self.absent or ()), tuple(self.missing or ()), tuple(self.zero or ()))
