"""Communities: the actors' expected contacts as an ordered heat map and as a labelled network."""

from typing import Any

import numpy as np

from countveil.common.extras import install
from countveil.plotting import style
from countveil.plotting.factors import called
from countveil.plotting.style import Fit, Network

LAYOUTS = ("spring", "circle")
MAX_NAMES = 90  # in a figure, so that they can be read


def communities_of(network: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(order, home, strength) of the actors, each (actors,): communities side by side, the largest first.

    home is the community that most of an actor's expected messages come from or go to; strength is how many.
    """
    sent = network.memberships * (network.blocks + network.blocks.T).sum(axis=1)
    home, strength = sent.argmax(axis=1), sent.sum(axis=1)
    sizes = [strength[home == c].sum() for c in range(sent.shape[1])]
    rank = np.argsort(np.argsort(sizes)[::-1])
    return np.lexsort((-strength, rank[home])), home, strength


def rate_matrix(fit: Fit, network: Network) -> np.ndarray:
    """(actors, actors) posterior mean of the rates; of an undirected network both halves."""
    rate = np.array(fit.rate().to_numpy(), dtype=np.float64)
    if not network.self_loops:
        np.fill_diagonal(rate, 0.0)
    return rate


def block_matrix(fit: Fit, *, ax: Any = None) -> Any:
    """Every pair's expected contacts as a heat map, actors ordered by community; returns the axes.

    Lines separate the communities, the largest at the top left. Colours are on a scale of log(1 + rate / s), s a
    quarter of the rates' mean, so that rare contacts can be told apart.

    Raises:
        TypeError: not a model of a network.
    """
    found = network_in(fit)
    from matplotlib.colors import FuncNorm

    order, home, _ = communities_of(found)
    rate = rate_matrix(fit, found)[np.ix_(order, order)]
    ax = style.axes_for(ax, 6.4, 5.8)
    spread = max(float(rate.mean()) / 4.0, 1e-12)
    norm = FuncNorm(
        (lambda x: np.log1p(np.asarray(x) / spread), lambda x: spread * np.expm1(x)),
        vmin=0.0, vmax=max(float(rate.max()), 1e-9),
    )  # fmt: skip
    image = ax.imshow(rate, cmap=style.HEAT, norm=norm, interpolation="nearest")
    for edge in np.flatnonzero(np.diff(home[order])) + 0.5:
        ax.axhline(edge, color="white", linewidth=0.8)
        ax.axvline(edge, color="white", linewidth=0.8)
    names = [style.plain(name, 22) for name in found.actors[order]]
    step = -(-len(names) // 50)
    size = 7 if len(names[::step]) <= 40 else 5.5
    ax.set_yticks(range(0, len(names), step), names[::step], fontsize=size)
    ax.set_xticks([])
    ax.set_ylabel("from" if found.directed else "")
    ax.set_xlabel("to (same order)" if found.directed else "same order")
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.7)
    bar.set_label("expected count of a pair")
    bar.set_ticks([0.0, *nice_ticks(float(rate.max()), spread)])
    bar.ax.minorticks_off()
    return ax


def nice_ticks(highest: float, spread: float) -> list[float]:
    """Round numbers along a scale that is linear up to about spread and logarithmic from there."""
    if not highest > 0.0:
        return []
    powers = range(int(np.floor(np.log10(max(spread, highest / 1e4)))), int(np.ceil(np.log10(highest))) + 1)
    rounded = [float(f"{m}e{p}") for p in powers for m in (1, 3)]
    return [value for value in rounded if spread <= value <= highest][-6:]


def network(
    fit: Fit, *, layout: str | None = None, edges: int | None = None, names: int = MAX_NAMES, ax: Any = None
) -> Any:
    """The strongest expected contacts as a network, actors coloured by community and named; returns the axes.

    Args:
        fit: a fitted model of a network, such as BlockModel.
        layout: "spring" (networkx) or "circle" (communities side by side, names never overlap); by default "spring"
            for up to 40 actors where networkx is installed, else "circle".
        edges: how many of the strongest pairs to draw; two for each actor by default.
        names: how many of the strongest actors to name.
        ax: axes to draw on; new ones by default.

    Raises:
        TypeError: not a model of a network.
        ValueError: an unknown layout, edges or names negative.
        ModuleNotFoundError: layout "spring" without networkx.
    """
    found = network_in(fit)
    if layout not in (None, *LAYOUTS):
        raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    order, home, strength = communities_of(found)
    n_actors = len(order)
    edges = 2 * n_actors if edges is None else edges
    if edges < 0 or names < 0:
        raise ValueError(f"edges and names must not be negative, got {min(edges, names)}")
    both = rate_matrix(fit, found)
    both = both if not found.directed else both + both.T
    if layout is None:
        layout = "spring" if n_actors <= 40 and has_networkx() else "circle"
    places = spring(both) if layout == "spring" else circle(order, home)
    ax = style.axes_for(ax, 7.0, 7.0)
    draw_edges(ax, both, places, edges, curved=layout == "circle")
    biggest = max(float(strength.max()), 1e-300)
    for c in np.unique(home[order]):
        mine = np.flatnonzero(home == c)
        ax.scatter(
            *places[mine].T, s=14.0 + 120.0 * strength[mine] / biggest, color=style.CYCLE[c % len(style.CYCLE)],
            marker=style.MARKERS[(c + c // len(style.CYCLE)) % len(style.MARKERS)], edgecolor="white", linewidth=0.5,
            zorder=3, label=style.plain(called(found.part.one, int(c), fit._reader.names_of())),
        )  # fmt: skip
    named = order if n_actors <= names else np.sort(np.argsort(-strength)[:names])
    name_actors(ax, found.actors, places, named, outward=layout == "circle")
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=min(4, len(np.unique(home))), frameon=False,
        fontsize=8, markerscale=0.9,
    )  # fmt: skip
    return ax


def draw_edges(ax: Any, both: np.ndarray, places: np.ndarray, edges: int, curved: bool) -> None:
    """The strongest pairs, the stronger the darker and wider; bent towards the middle of a circle."""
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path

    first, second = np.triu_indices(len(both), 1)
    weights = both[first, second]
    chosen = np.argsort(-weights, kind="stable")[:edges]
    chosen = chosen[weights[chosen] > 0.0][::-1]
    if not chosen.size:
        return
    strength = np.sqrt(weights[chosen] / weights[chosen].max())
    codes = [Path.MOVETO, Path.CURVE3, Path.CURVE3]
    paths = []
    for e in chosen:
        a, b = places[first[e]], places[second[e]]
        paths.append(Path([a, (0.15 if curved else 0.5) * (a + b), b], codes))
    ax.add_collection(
        PathCollection(
            paths,
            facecolors="none",
            linewidths=0.3 + 2.2 * strength,
            zorder=1,
            edgecolors=[(0.35, 0.35, 0.35, alpha) for alpha in 0.15 + 0.6 * strength],
        )
    )


def name_actors(ax: Any, actors: np.ndarray, places: np.ndarray, named: np.ndarray, outward: bool) -> None:
    """Names beside their actors: along the ray of a circle, or above."""
    for i in named:
        x, y = places[i]
        text = style.plain(actors[i], 22)
        if not outward:
            ax.annotate(text, (x, y), (0, 6), textcoords="offset points", ha="center", fontsize=7, zorder=4)
            continue
        angle = np.degrees(np.arctan2(y, x))
        left = abs(angle) > 90.0
        ax.text(
            1.06 * x, 1.06 * y, text, rotation=angle + 180.0 * left, rotation_mode="anchor",
            ha="right" if left else "left", va="center", fontsize=7 if len(named) <= 60 else 5.5,
        )  # fmt: skip
    if outward:
        ax.set_xlim(-1.38, 1.38)
        ax.set_ylim(-1.38, 1.38)
    else:
        ax.margins(0.12)


def circle(order: np.ndarray, home: np.ndarray) -> np.ndarray:
    """(actors, 2) places on the unit circle in this order, with a gap between communities."""
    changes = np.concatenate([[0], np.cumsum(np.diff(home[order]) != 0)])
    turns = (np.arange(len(order)) + changes) / (len(order) + changes[-1] + 1.0)
    angles = np.empty(len(order))
    angles[order] = np.pi / 2.0 - 2.0 * np.pi * turns
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def spring(both: np.ndarray) -> np.ndarray:
    """(actors, 2) places by networkx's force-directed layout, the same every time.

    Raises:
        ModuleNotFoundError: networkx is missing.
    """
    try:
        import networkx as nx
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"layout 'spring' needs networkx, which is missing: {install('plots')}, or use layout 'circle'"
        ) from error
    graph = nx.from_numpy_array(np.sqrt(both))
    found = nx.spring_layout(graph, seed=1, k=2.2 / np.sqrt(len(both)), iterations=200)
    return np.array([found[i] for i in range(len(both))])


def has_networkx() -> bool:
    """Whether networkx is installed."""
    from importlib.util import find_spec

    return find_spec("networkx") is not None


def network_in(fit: Any) -> Network:
    """The network that was fitted.

    Raises:
        TypeError: a fit of anything else.
    """
    found: Network | None = fit._reader.network if hasattr(fit, "_reader") else None
    if found is None:
        raise TypeError(f"fit must be a model of a network, such as BlockModel, got {type(fit).__name__}")
    return found
