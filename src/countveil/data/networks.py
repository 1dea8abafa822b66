"""Networks as networkx holds them: counts between actors, for owners and for analysts.

networkx itself is never imported: whatever has its graphs' attributes is a graph.
"""

import re
import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from countveil.data.matrices import whole_values
from countveil.data.provenance import Provenance
from countveil.privacy import Release, privatize
from countveil.privacy.level import Level
from countveil.privacy.privatize import recorded

WHOLE = re.compile("[+-]?[0-9]{1,18}", re.ASCII)


def is_graph(data: Any) -> bool:
    """Whether this is a networkx graph of any kind."""
    return all(hasattr(data, name) for name in ("nodes", "edges", "is_directed", "is_multigraph"))


def graph_matrix(
    graph: Any, weight: str | None = "weight", nodes: Sequence[Hashable] | None = None, *, show: bool = False
) -> tuple[sp.csr_array, list[str]]:
    """(n, n) counts between actors, and their names.

    An edge counts by its attribute ``weight``, or once where it has none (or weight is None), with a warning if no edge
    has one; parallel edges add up. An undirected graph fills the upper triangle only, each pair once.

    Raises:
        TypeError: not a graph.
        ValueError: nodes that are not all of the graph's, names that are the same as text, weights that are
            not whole; weights are shown only if ``show``.
    """
    if not is_graph(graph):
        raise TypeError(f"graph must be a networkx graph, got {type(graph).__name__}")
    order = list(graph.nodes) if nodes is None else list(nodes)
    place = {node: i for i, node in enumerate(order)}
    if len(place) != len(order) or set(place) != set(graph.nodes):
        raise ValueError(
            f"nodes must name each of the graph's {graph.number_of_nodes()} nodes once, got {len(order)} names"
        )
    if not order:
        raise ValueError("graph must have at least one node, got none")
    names = [str(node) for node in order]
    if len(set(names)) != len(names):
        raise ValueError("nodes must differ from each other as text, got a duplicate")
    edges = list(graph.edges(data=weight or False))
    rows = np.array([place[edge[0]] for edge in edges], dtype=np.int64)
    columns = np.array([place[edge[1]] for edge in edges], dtype=np.int64)
    counts = np.ones(len(edges), dtype=np.int64)
    if weight is not None and edges:
        counts = edge_weights([edge[2] for edge in edges], weight, show)
    if not graph.is_directed():
        rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
    matrix = sp.coo_array((counts, (rows, columns)), shape=(len(order), len(order))).tocsr()
    return matrix, names


def graph_parts(
    graph: Any, weight: str | None, nodes: Sequence[Hashable] | None, show: bool
) -> tuple[Any, dict[str, Any]]:
    """A graph's matrix, and its names and mask as options: an undirected one is seen above the diagonal only.

    ``show`` is True for reports, of which each pair has one, and which errors may show.
    """
    matrix, names = graph_matrix(graph, weight, nodes, show=show)
    directed = bool(graph.is_directed())
    pairs = {(a, b) if directed else frozenset((a, b)) for a, b in graph.edges(data=False)}
    if show and graph.number_of_edges() > len(pairs):
        raise ValueError("graph must have one report for each pair of actors, got parallel edges")
    mask = None if directed else np.tri(len(names), k=-1, dtype=bool)
    provenance = Provenance(directed=directed)
    return matrix, {"mask": mask, "row_labels": names, "column_labels": names, "provenance": provenance}


def edge_weights(values: list[Any], weight: str, show: bool) -> np.ndarray:
    """Weights as whole numbers, also where they are texts; 1 where an edge has none; warns if no edge has any.

    Raises:
        ValueError: something else; weights are shown only if ``show``.
    """
    none = [value is None for value in values]
    if all(none):
        warnings.warn(
            f"no edge has the attribute {weight!r}, so each of them counts once: weight=None, in from_graph and "
            "privatize_graph, states that",
            UserWarning,
            stacklevel=4,
        )
    numbers = [
        1 if value is None else int(value) if isinstance(value, str) and WHOLE.fullmatch(value.strip()) else value
        for value in values
    ]
    weights = np.asarray(numbers)
    if weights.ndim != 1 or weights.dtype.kind not in "iuf":
        wrong = next((value for value in numbers if not isinstance(value, int | float | np.number)), numbers)
        got = f"{wrong!r:.60}" if show else f"{type(wrong).__name__} (not shown: it may be private)"
        raise ValueError(f"edge attribute {weight!r} must hold whole numbers, got {got}")
    return whole_values(weights, None, show)


def graph_counts(graph: Any, weight: str | None = "weight", nodes: Sequence[Hashable] | None = None) -> pd.DataFrame:
    """The owner's table of true counts between actors, (n, n) int64 with the actors' names on both axes.

    Edges as in ``privatize_graph``; an undirected graph fills the upper triangle only.

    Raises:
        TypeError: not a graph.
        ValueError: as ``privatize_graph``.
    """
    matrix, names = graph_matrix(graph, weight, nodes)
    if (matrix.data < 0).any():
        raise ValueError("counts must be non-negative, got a negative weight of an edge")
    return pd.DataFrame(matrix.toarray(), index=pd.Index(names), columns=pd.Index(names))


def privatize_graph(
    graph: Any,
    level: Level | Sequence[Level],
    *,
    weight: str | None = "weight",
    nodes: Sequence[Hashable] | None = None,
    truncate: bool | None = None,
) -> Release:
    """Add exact noise to the counts between all actors of a networkx graph, those without an edge included.

    An edge counts by its attribute ``weight``, or once where it has none; parallel edges add up. The noise is that of
    ``privatize``, and so is ``level``: one for all, or one for each actor's row. In an undirected graph each pair is
    reported once, above the diagonal, and nothing is below it: fit it with ``BlockModel(directed=False)``. The release
    says whether it is of a directed network. The actors' names are published as they are.

    Args:
        nodes: the order of the actors; the graph's own by default.
        truncate: True for max(0, report), False or None for signed reports.

    Raises:
        TypeError: not a graph, not a level.
        ValueError: nodes that are not all of the graph's, names that are the same as text, weights that are negative
            or not whole; no message shows one.
    """
    table = graph_counts(graph, weight, nodes)
    directed = bool(graph.is_directed())
    return privatize(table, level, truncate, row_labels=table.index, column_labels=table.columns, directed=directed)


def above_diagonal(release: Release) -> Release:
    """The release as one of an undirected network, with zeros below the diagonal, where its reports are noise alone.

    For releases that do not say of what network they are; ``privatize(..., directed=False)`` makes one that does.

    Raises:
        ValueError: a release that is not square, or of a directed network.
    """
    if len(release.shape) != 2 or release.shape[0] != release.shape[1]:
        raise ValueError(f"release must be square, one row and one column per actor, got {release.shape}")
    if release.directed:
        raise ValueError("release must be an undirected network, got a directed network")
    return recorded(release, False)


def links_among(
    actors: int | Sequence[Hashable],
    senders: Sequence[Hashable],
    receivers: Sequence[Hashable] | None = None,
    *,
    directed: bool = True,
) -> np.ndarray:
    """(n, n) booleans, True for every link from one of the senders to one of the receivers: a mask to hold out.

    Fit with it as the data's ``mask``, and compare ``rate()`` with what was held out. Source: the link prediction of
    Schein, Wu, Schofield, Zhou and Wallach (2019), section 5.

    Args:
        actors: the names of all actors in order, or how many there are.
        senders, receivers: names, or numbers where ``actors`` is a number; receivers are the senders by default.
        directed: whether the link back stays; an undirected network holds out both.

    Raises:
        ValueError: somebody who is not among the actors, or a name that is there twice.
    """
    names = list(range(actors)) if isinstance(actors, int | np.integer) else list(actors)
    place = {name: i for i, name in enumerate(names)}
    if len(place) != len(names):
        raise ValueError("actors must differ from each other, got a duplicate")

    def places(who: str, given: Sequence[Hashable]) -> list[int]:
        unknown = next((name for name in given if name not in place), None)
        if unknown is not None:
            raise ValueError(f"{who} must be among the {len(names)} actors, got {unknown!r}")
        return [place[name] for name in given]

    mask = np.zeros((len(names), len(names)), dtype=bool)
    mask[np.ix_(places("senders", senders), places("receivers", senders if receivers is None else receivers))] = True
    return mask if directed else mask | mask.T
