"""Networks from files: edge lists, and graphs in GraphML and GEXF.

Counts are private: no message about those of an owner shows one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.common.extras import install
from countveil.data.importing import background_of, import_reports
from countveil.data.io import UNREADABLE, CountTable
from countveil.data.networks import edge_weights
from countveil.data.tables.cells import NumberFormat, Words, format_of, is_number, number_of
from countveil.data.tables.published import ONE_HEADER, read_frame
from countveil.data.tables.text import Format
from countveil.privacy import Release
from countveil.privacy.mechanisms import Mechanism

GRAPHS = ".graphml", ".gexf"
NAMES = {
    "sender": ("source", "from", "sender", "src", "ego"),
    "receiver": ("target", "to", "receiver", "recipient", "dst", "alter"),
    "weight": ("weight", "count", "value", "n"),
}
"""What columns of edge lists are usually called, in lower case."""
KINDS = {"directed": True, "undirected": False}
STATE = "state --directed or --undirected"


class Edges(NamedTuple):
    """A list of edges between actors."""

    path: Path
    senders: list[str]
    receivers: list[str]
    weights: Any  # a column of numbers or texts, None where an edge has none; None if there is no such column
    weight: str  # what they are called
    directed: bool
    actors: list[str]
    stated: Format = ONE_HEADER  # of the file
    axis_names: tuple[str, ...] = ()  # the columns of senders and receivers

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the edges; in an undirected network each pair is above the diagonal."""
        place = {actor: number for number, actor in enumerate(self.actors)}
        rows = np.array([place[name] for name in self.senders], dtype=np.int64)
        columns = np.array([place[name] for name in self.receivers], dtype=np.int64)
        return (rows, columns) if self.directed else (np.minimum(rows, columns), np.maximum(rows, columns))


def read_edges(
    path: Path,
    columns: Sequence[str] | None = None,
    directed: bool | None = None,
    actors: Sequence[str] | None = None,
    stated: Format = ONE_HEADER,
) -> Edges:
    """Read an edge list (.csv, .tsv, .parquet: a row for each edge) or a graph (.graphml, .gexf, by networkx).

    Args:
        columns: the names of the columns of senders, receivers and, if there is one, weights; by default found by name.
        directed: needed where neither a column "Type" nor the graph says it.
        actors: all of them, in order; by default a graph's nodes, or those with an edge in order of appearance.
        stated: how an edge list is written, as far as it is stated.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file that cannot be read; columns that are not there, or not recognised; a network that is not
            known to be directed or undirected, or that is of the other kind; an actor who is not among ``actors``.
    """
    if path.suffix.lower() in GRAPHS:
        if columns is not None:
            raise ValueError(
                "columns (--edge-columns) must be left out with a graph, which names its own edges, got "
                f"{columns} for {path}"
            )
        found = edges_of_graph(path)
    else:
        found = edges_of_table(path, columns, directed, stated)
    if directed is not None and found.directed != directed:
        kinds = {kind: name for name, kind in KINDS.items()}
        raise ValueError(
            f"{path} must be {kinds[directed]}, as stated, got {kinds[found.directed]} edges: leave out "
            f"--{kinds[directed]}"
        )
    if actors is None:
        return found
    known = set(actors)
    if len(known) < len(actors):
        raise ValueError("actors must differ from each other, got a duplicate")
    odd = next((name for name in found.actors if name not in known), None)
    if odd is not None:
        raise ValueError(f"actors (--vocabulary) must include everybody in {path}, got a list without {odd!r:.60}")
    return found._replace(actors=list(actors))


def edges_of_table(path: Path, columns: Sequence[str] | None, directed: bool | None, stated: Format) -> Edges:
    """Edges with a row for each; ``directed`` is used only if no column says it."""
    frame = read_frame(path, stated if stated.header_rows else stated._replace(header_rows=1))
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    names = list(frame.columns)
    roles = list(NAMES) if columns is None else list(NAMES)[: len(columns)]
    if columns is not None and len(columns) not in (2, 3):
        raise ValueError(f"columns (--edge-columns) must be two or three names, got {len(columns)}")
    used = (
        {role: called(path, names, role) for role in roles}
        if columns is None
        else dict(zip(roles, columns, strict=True))
    )
    for name in used.values():
        if name is not None and names.count(name) != 1:
            raise ValueError(f"{path} must have one column {name!r}, got columns {names[:20]}")
    senders, receivers = ([str(cell).strip() for cell in frame[used[role]]] for role in ("sender", "receiver"))
    if "" in senders or "" in receivers:
        raise ValueError(f"{path} must name the sender and the receiver of every edge, got an empty cell")
    weight = used.get("weight")
    weights = None if weight is None else frame[weight]
    kind = kind_of(path, frame, set(used.values()))
    if kind is None and directed is None:
        raise ValueError(f"{path} must state whether the network is directed or undirected: {STATE}")
    actors = list(dict.fromkeys(name for pair in zip(senders, receivers, strict=True) for name in pair))
    is_directed = bool(directed if kind is None else kind)
    names_of_both = (str(used["sender"]), str(used["receiver"]))
    return Edges(path, senders, receivers, weights, weight or "", is_directed, actors, stated, names_of_both)


def called(path: Path, names: list[str], role: str) -> str | None:
    """The column with a usual name for this; None for weights, which a list may lack."""
    there = [name for name in names if name.lower() in NAMES[role]]
    if len(there) == 1:
        return there[0]
    if not there and role == "weight" and len(names) == 2:
        return None
    raise ValueError(
        f"{path} must have one column of {role}s, called {', '.join(NAMES[role])}, got columns {names[:20]}: name them "
        "by --edge-columns SENDER,RECEIVER,WEIGHT, or by --edge-columns SENDER,RECEIVER if each row counts once"
    )


def kind_of(path: Path, frame: pd.DataFrame, used: set[str | None]) -> bool | None:
    """What a column "Type" says, as Gephi writes it; None without one."""
    for name in frame.columns:
        kinds = {str(cell).strip().lower() for cell in frame[name]}
        if name.lower() == "type" and name not in used and kinds <= set(KINDS):
            if len(kinds) > 1:
                raise ValueError(
                    f"{path} must have edges of one type, got directed and undirected ones: delete the column {name}, "
                    "and state --directed or --undirected"
                )
            return KINDS[kinds.pop()]
    return None


def edges_of_graph(path: Path) -> Edges:
    """The edges of a GraphML or GEXF file, with their attribute "weight"."""
    if not path.is_file():
        raise FileNotFoundError(f"no network at {path}")
    try:
        import networkx
    except ImportError as error:
        raise ValueError(f"{path} must be read by networkx: {install('networks')}") from error
    read = networkx.read_graphml if path.suffix.lower() == ".graphml" else networkx.read_gexf
    try:
        graph = read(path)
    except (*UNREADABLE, LookupError, networkx.NetworkXException) as error:
        raise ValueError(f"{path} must hold a graph, got {type(error).__name__}") from error
    edges = list(graph.edges(data="weight"))
    senders, receivers = ([str(edge[place]) for edge in edges] for place in (0, 1))
    weights = pd.Series([edge[2] for edge in edges], dtype=object)
    return Edges(
        path, senders, receivers, weights, "weight", bool(graph.is_directed()), [str(node) for node in graph.nodes]
    )


def counts_of_edges(edges: Edges) -> CountTable:
    """The owner's true counts between all actors; edges of the same pair add up, and one without a weight counts once.

    Raises:
        ValueError: weights that are not whole numbers, none of which is shown; an undirected list that has each pair in
            both directions; no actors.
    """
    rows, columns = edges.places()
    n = len(edges.actors)
    if not n:
        raise ValueError(f"{edges.path} must have at least one actor, got none")
    weights = np.ones(rows.size, dtype=np.int64)
    if edges.weights is not None and rows.size:
        try:
            weights = edge_weights(list(edges.weights), edges.weight, False)
        except ValueError as error:
            raise ValueError(f"{edges.path}: {error}") from error
    if (weights < 0).any():
        raise ValueError(f"{edges.path} must hold non-negative counts, got a negative weight")
    if not edges.directed:
        refuse_both_ways(edges, weights)
    values = sp.coo_array((weights, (rows, columns)), shape=(n, n)).tocsr()
    return CountTable(values, edges.actors, edges.actors, edges.axis_names)


def refuse_both_ways(edges: Edges, weights: np.ndarray) -> None:
    """Raise ValueError where every undirected edge is listed in both directions: adding them up would double counts."""
    listed = sorted(zip(edges.senders, edges.receivers, weights.tolist(), strict=True))
    turned = sorted(zip(edges.receivers, edges.senders, weights.tolist(), strict=True))
    if listed == turned and any(sender != receiver for sender, receiver, _ in listed):
        raise ValueError(
            f"{edges.path} must list each undirected pair once, got every pair in both directions: leave out one row "
            "of each pair"
        )


def reports_of(edges: Edges, absent: Sequence[str]) -> np.ndarray:
    """Reports as floats, NaN where a cell is empty or one of the words; raises ValueError for other texts."""
    none = {"", *(word.strip() for word in absent)}
    cells = ["" if pd.isna(cell) else cell if is_number(cell) else str(cell).strip() for cell in edges.weights]
    form = NumberFormat(None, ".")  # of graphs
    if edges.path.suffix.lower() not in GRAPHS:
        form = format_of(edges.path, cells, Words(tuple(absent)), edges.stated, edges.stated.separator)
    found = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        number = float(cell) if is_number(cell) else number_of(cell, form)
        if number is None and cell not in none:
            raise ValueError(
                f"{edges.path} must hold numbers, or words given by --absent for counts without a report, got "
                f"{cell[:40]!r} in row {row + 1}, column {edges.weight!r}"
            )
        found[row] = np.nan if number is None or cell in none else number
    return found


def import_edges(
    edges: Edges,
    mechanism: Mechanism,
    source: str,
    *,
    absent: Sequence[str] = (),
    background: float | None = None,
    simulated: bool = False,
) -> Release:
    """A release of an edge list of reports, which says of what network it is.

    Args:
        absent: words that stand for a count without a report.
        background: the report of pairs without an edge, as for ``import_long``.

    Raises:
        ValueError: a pair that is listed twice, an edge without a report, and as ``import_long``.
    """
    if edges.weights is None:
        raise ValueError(
            f"{edges.path} must have a column of reports: name it by --edge-columns SENDER,RECEIVER,REPORT"
        )
    rows, columns = edges.places()
    n = len(edges.actors)
    listed = np.zeros((n, n), dtype=bool)
    listed[rows, columns] = True
    if int(listed.sum()) < rows.size:
        raise ValueError(f"{edges.path} must list each pair of actors once, got a duplicate")
    lacking = edges.path.suffix.lower() in GRAPHS and edges.weights.isna().any()
    if lacking:
        bare = int(np.argmax(edges.weights.isna()))
        raise ValueError(
            f"{edges.path} must have a report, the attribute 'weight', for every edge, got none for the edge from "
            f"{edges.actors[rows[bare]]!r:.60} to {edges.actors[columns[bare]]!r:.60}"
        )
    values = np.zeros((n, n))
    values[rows, columns] = reports_of(edges, absent)
    pairs = ~np.eye(n, dtype=bool) if edges.directed else np.triu(np.ones((n, n), dtype=bool), 1)
    missing = pairs & ~listed
    values[missing] = background_of(mechanism, background, int(missing.sum()))
    uncounted = ~pairs & ~listed
    labels = {"row_labels": edges.actors, "column_labels": edges.actors}
    found = import_reports(values, mechanism, source, mask=uncounted, simulated=simulated, **labels)
    reports = found.reports
    if getattr(mechanism, "absent", False):  # then a report of 0 may be impossible, but none is always possible
        reports = np.where(np.eye(n, dtype=bool) & ~listed, np.nan, reports)
    release = Release(
        reports, found.mechanism, found.truncated, found.labels, simulated, directed=edges.directed, source=source
    )
    return release.with_axis_names(edges.axis_names)
