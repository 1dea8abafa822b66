"""Networks in files of edges: their options in commands."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from countveil.cli.matrix_options import MATRICES
from countveil.privacy import Release
from countveil.privacy.mechanisms import Mechanism

if TYPE_CHECKING:
    from countveil.data.edge_lists import Edges
    from countveil.data.tables.text import Format


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
            "two directions of a pair have separate counts; in an undirected network a pair has one count, above the "
            "diagonal or on both sides of it. The release records this, and models of the other kind refuse it. With "
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
            raise ValueError(
                "--background must be a number with --network, since a network has no masked pairs"
            )
        edges = self.read(path, vocabulary, stated)
        return import_edges(
            edges, mechanism, source, absent=absent, background=background, simulated=simulated
        )

    def read(self, path: Path, vocabulary: Path | None, stated: "Format | None" = None) -> "Edges":
        """The edges; raises as ``read_edges`` and ``read_vocabulary``."""
        from countveil.data.edge_lists import read_edges
        from countveil.data.io import read_vocabulary

        columns = (
            None if self.edge_columns is None else [name.strip() for name in self.edge_columns.split(",")]
        )
        actors = None if vocabulary is None else read_vocabulary(vocabulary)
        if stated is None:
            return read_edges(path, columns, self.directed, actors)
        return read_edges(path, columns, self.directed, actors, stated)
