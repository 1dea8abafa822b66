"""Options that say how files are read: tables of text, matrices, and networks."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from countveil.cli.output import say
from countveil.common.names import names_in
from countveil.privacy import Release
from countveil.privacy.mechanisms import Mechanism

if TYPE_CHECKING:
    from countveil.data.edge_lists import Edges
    from countveil.data.tables.cells import Words
    from countveil.data.tables.text import Format


WORDS_OF_SEPARATORS = "comma, semicolon, tab, bar, space"
TABLE = "How the file is read"
"""The panel of help for options of files."""


class FileOptions(NamedTuple):
    """What is stated of a file; None is found in it."""

    separator: Annotated[
        str | None,
        typer.Option(help=f"Cell separator: {WORDS_OF_SEPARATORS} [default: detected].", rich_help_panel=TABLE),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(help="Encoding, such as utf-8, cp1252 or utf-16 [default: detected].", rich_help_panel=TABLE),
    ] = None
    thousands: Annotated[
        str | None,
        typer.Option(
            metavar="MARK",
            rich_help_panel=TABLE,
            help="Thousands separator: . , space or apostrophe [default: detected].",
        ),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(metavar="MARK", help="Decimal mark: . or , [default: detected].", rich_help_panel=TABLE),
    ] = None
    skip: Annotated[
        int | None,
        typer.Option(min=0, help="Number of lines above the table [default: detected].", rich_help_panel=TABLE),
    ] = None
    header_rows: Annotated[
        int | None, typer.Option(min=0, max=4, help="Number of header rows [default: detected].", rich_help_panel=TABLE)
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
                raise ValueError(f"--separator must be {WORDS_OF_SEPARATORS}, or a character, got {separator!r:.40}")
        return Format(separator, self.encoding, self.thousands, self.decimal, self.skip, self.header_rows, self.sheet)


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
            "or '' for empty cells. If --absent is given, empty cells and N/A count as never reported. Repeatable.",
        ),
    ] = None
    zero: Annotated[
        list[str] | None, typer.Option(metavar="WORD", help="A word for a count of zero, such as '-'. Repeatable.")
    ] = None

    def read(self) -> "Words":
        """The words."""
        from countveil.data.tables.cells import Words

        return Words(tuple(self.absent or ()), tuple(self.missing or ()), tuple(self.zero or ()))


MATRICES = "Matrices and networks"
"""The panel of help for them."""
ORIENTATION_NOT_STATED = ".mtx", ".npz", ".npy"


class MatrixFile(NamedTuple):
    """Options of every command that reads a matrix; their names are those of ``read_counts``."""

    vocabulary: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=MATRICES,
            help="Names of the columns: a text file, one per line. Their number shows whether a matrix is transposed. "
            "With --network: the names of all actors.",
        ),
    ] = None
    transpose: Annotated[
        bool,
        typer.Option(
            "--transpose", rich_help_panel=MATRICES, help="The matrix file has terms in rows and documents in columns."
        ),
    ] = False
    n_rows: Annotated[
        int | None,
        typer.Option(min=1, rich_help_panel=MATRICES, help="Number of rows, if the file omits empty rows at its end."),
    ] = None
    numbered_from: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=1,
            rich_help_panel=MATRICES,
            help="Number of the first column in an SVMlight file, 0 or 1, if the file does not show it.",
        ),
    ] = None
    layer: Annotated[
        str | None,
        typer.Option(rich_help_panel=MATRICES, help="The layer of an .h5ad file that has the counts [default: X]."),
    ] = None

    def refuse(self, option: str) -> None:
        """Raise ValueError for any of these options beside another one that reads another kind of file."""
        named = {"--vocabulary": self.vocabulary} | self.others()
        there = [name for name, value in named.items() if value not in (None, False)]
        if there:
            raise ValueError(f"{option} must come without {' and '.join(there)}")

    def others(self) -> dict[str, object]:
        """The options by name that a list of edges does not have."""
        named = self._asdict()
        return {"--" + name.replace("_", "-"): named[name] for name in named if name != "vocabulary"}

    def say_orientation(self, path: Path, shape: tuple[int, ...]) -> None:
        """Say what was taken for rows where neither the file nor a vocabulary shows it."""
        stated = self.transpose or self.vocabulary is not None
        if path.suffix.lower() in ORIENTATION_NOT_STATED and len(shape) == 2 and not stated:
            say(
                f"{path} was read as {shape[0]} records (documents) with {shape[1]} columns (terms). If it is the "
                "other way round, pass --transpose; --vocabulary, with the names of the columns, checks it."
            )


class NetworkFile(NamedTuple):
    """Options of every command that reads a network."""

    network: Annotated[
        bool,
        typer.Option(
            "--network",
            rich_help_panel=MATRICES,
            help="The file has a row for each edge, with columns such as Source, Target and Weight, or is a graph "
            "(.graphml, .gexf). --vocabulary names all actors.",
        ),
    ] = False
    edge_columns: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            rich_help_panel=MATRICES,
            help="With --network: the columns of senders, receivers and weights, separated by commas, if they have "
            "unusual names. Without a third column, each row counts once.",
        ),
    ] = None
    directed: Annotated[
        bool | None,
        typer.Option(
            "--directed/--undirected",
            rich_help_panel=MATRICES,
            help="The matrix is a network: square, with the same actors as rows and columns. In a directed network the "
            "two directions of a pair have separate counts. In an undirected network a pair has one count, above the "
            "diagonal or on both sides of it. The release records which, and models of the other kind refuse it. With "
            "--network: required if the file has no Type column.",
        ),
    ] = None

    def check(self, others: dict[str, object]) -> None:
        """Refuse what belongs to another kind of file; raises ValueError that names it."""
        if self.network:
            there = [name for name, value in others.items() if value not in (None, False)]
            if there:
                raise ValueError(f"--network must come without {' and '.join(there)}")
        elif self.edge_columns is not None:
            raise ValueError("--edge-columns must come with --network")

    def check_import(self, others: dict[str, object]) -> None:
        """The same for reports that somebody else protected, whose matrices do not say of what network they are."""
        if self.directed is not None and not self.network:
            raise ValueError("--directed and --undirected must come with --network")
        self.check(others)

    def imported(
        self,
        path: Path,
        vocabulary: Path | None,
        mechanism: Mechanism,
        source: str,
        absent: Sequence[str],
        background: float | Literal["missing"] | None,
        simulated: bool,
        stated: "Format",
    ) -> Release:
        """A release of a file of edges with reports; raises as ``import_edges``."""
        from countveil.data.edge_lists import import_edges

        if background == "missing":
            raise ValueError("--background must be a number with --network, since a network has no masked pairs")
        edges = self.read(path, vocabulary, stated)
        return import_edges(edges, mechanism, source, absent=absent, background=background, simulated=simulated)

    def read(self, path: Path, vocabulary: Path | None, stated: "Format | None" = None) -> "Edges":
        """The edges; raises as ``read_edges`` and ``read_vocabulary``."""
        from countveil.data.edge_lists import read_edges
        from countveil.data.io import read_vocabulary

        columns = None if self.edge_columns is None else names_in(self.edge_columns)
        actors = None if vocabulary is None else read_vocabulary(vocabulary)
        if stated is None:
            return read_edges(path, columns, self.directed, actors)
        return read_edges(path, columns, self.directed, actors, stated)
