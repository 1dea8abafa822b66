"""Topics, communities and components: their strongest members, their shares, and which go together."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from countveil.inference.matching import STABLE
from countveil.plotting import style
from countveil.plotting.style import Fit

FEW = 5  # components that a figure shows unless it is told which


def topics(
    fit: Fit,
    which: Iterable[int] | None = None,
    n: int = 8,
    interval: float = 0.9,
    *,
    mode: str | None = None,
    ax: Any = None,
) -> Any:
    """The n strongest members of topics (communities, components), ranked, with their intervals; returns the axes.

    Each is drawn from the chains that have it; where these are not all, its support is written beside it.
    A fit whose intervals are not calibrated is drawn without any, and the label of the axis says why.

    Args:
        fit: any fitted model whose components can be listed.
        which: numbers of the topics; by default five, the best supported first, then the largest.
        n: members of each.
        interval: probability of the equal-tailed intervals.
        mode: the axis of the members; by default the last one along which those of the first kind of component are
            listed.
        ax: axes to draw on; new ones by default, as high as they need to be.

    Raises:
        TypeError: not a model.
        ValueError: an unknown topic or mode; n or interval out of range; components that cannot be listed.
    """
    mode = listed_axis(fit, mode)
    found = fit.parts.supported(mode, n, interval)
    name = fit.parts.prevalences(axis=mode).columns[0]
    names = fit._reader.names_of(mode)
    wanted, title = shown(found["component"].unique().tolist(), which)
    rows = [found[found["component"] == k] for k in wanted]
    height = sum(len(part) + 1.6 for part in rows)
    ax = style.axes_for(ax, 6.4, 0.8 + 0.19 * height)
    place, ticks, labels = 0.0, [], []
    for i, (k, part) in enumerate(zip(wanted, rows, strict=True)):
        y = place + 1.0 + np.arange(len(part))
        share, support = part["prevalence"].iloc[0], part["support"].iloc[0]
        said = f", support {support:.0%}" if support < 1.0 else ""
        heading = style.plain(called(name, k, names))
        heading = f"{heading}: {share:.1%} of expected counts{said}"
        ax.text(0.0, place, heading, transform=ax.get_yaxis_transform(), weight="bold", va="center", fontsize=9)
        middle = part["probability"].to_numpy()
        ax.errorbar(
            middle, y, xerr=ends_of(part, middle), color=style.CYCLE[i % len(style.CYCLE)], marker=style.MARKERS[i % 8],
            linestyle="none", markersize=4.5, capsize=2, linewidth=1.4,
        )  # fmt: skip
        ticks += y.tolist()
        labels += [style.plain(member) for member in part["member"]]
        place += len(part) + 1.6
    ax.set_yticks(ticks, labels, fontsize=8)
    ax.set_ylim(place - 0.8, -0.8)
    ax.set_xlim(left=0.0)
    ax.set_xlabel(f"probability{said_of_intervals(fit, interval)}")
    ax.set_title(title, fontsize=9, wrap=True)
    style.tidy(ax, "x")
    return ax


def shown(known: list[int], which: Iterable[int] | None) -> tuple[list[int], str]:
    """(numbers of the components to draw, a title that says which of how many, empty where they are all).

    Raises:
        ValueError: an unknown number, or none.
    """
    wanted = known[:FEW] if which is None else chosen(known, which)
    if len(wanted) == len(known):
        return wanted, ""
    said = "the best supported first, then the largest" if which is None else ", ".join(map(str, wanted))
    return wanted, f"{len(wanted)} of {len(known)} are shown: {said}"


def chosen(known: list[int], which: Iterable[int]) -> list[int]:
    """Numbers of the components to draw, each once; ValueError for an unknown number, or none."""
    given = list(which) if isinstance(which, Iterable) else [which]
    wanted = [int(k) if isinstance(k, np.integer) else k for k in given]
    unknown = [k for k in wanted if type(k) is not int or k not in known]
    if unknown or not wanted:
        raise ValueError(f"which must be numbers from 0 to {max(known)}, got {unknown}")
    return list(dict.fromkeys(wanted))


def prevalence(fit: Fit, interval: float = 0.9, *, mode: str | None = None, ax: Any = None) -> Any:
    """Each topic's (community's, component's) share of all expected counts, with intervals; returns the axes.

    The best supported come first, within the same support the largest.
    Each is drawn from the chains that have it; those that at most half of the chains have are grey.
    A fit whose intervals are not calibrated is drawn without any, and the label of the axis says why.
    With several kinds of components, ``mode`` is an axis of the kind that is meant; the first kind by default.

    Raises:
        TypeError: not a model.
        ValueError: interval not between 0 and 1; an unknown mode; components that cannot be listed.
    """
    mode = listed_axis(fit, mode)
    support = fit.parts.support(axis=mode).set_index("component")["support"]
    found = fit.parts.prevalences(interval, axis=mode)
    found = found.sort_values(found.columns[0], key=lambda numbers: numbers.map(support.index.get_loc))
    ax = style.axes_for(ax, 6.4, 0.8 + 0.2 * len(found))
    y, middle = np.arange(len(found)), found["prevalence"].to_numpy()
    ends = ends_of(found, middle)
    unstable = support.reindex(found.iloc[:, 0]).to_numpy() <= STABLE
    ax.barh(y, middle, color=np.where(unstable, style.GREY, style.SKY), height=0.7)
    if ends is not None:
        ax.errorbar(middle, y, xerr=ends, color=style.BLACK, linestyle="none", capsize=2, linewidth=1.2)
    name = found.columns[0]
    step = max(1, len(found) // 40)
    names = fit._reader.names_of(mode)
    ax.set_yticks(y[::step], [style.plain(called(name, k, names)) for k in found[name]][::step], fontsize=8)
    ax.set_ylim(len(found) - 0.4, -0.6)
    ax.set_xlim(left=0.0)
    ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
    ax.set_xlabel(f"share of all expected counts{said_of_intervals(fit, interval)}")
    style.tidy(ax, "x")
    return ax


def called(one: str, number: int, names: Mapping[int, str]) -> str:
    """A component's number, with the name that it was given: "topic 3", or "topic 3 (trade)"."""
    return f"{one} {number} ({names[number]})" if number in names else f"{one} {number}"


def ends_of(table: pd.DataFrame, middle: np.ndarray) -> list[np.ndarray] | None:
    """How far the intervals of a table reach below and above these values; None for a table without intervals."""
    if "lower" not in table:
        return None
    return [np.maximum(middle - table["lower"], 0.0), np.maximum(table["upper"] - middle, 0.0)]


def said_of_intervals(fit: Fit, interval: float) -> str:
    """The end of an axis' label: what the intervals are, or on a line of its own why there are none."""
    if fit._reader.why_no_intervals:
        return f"\n(no intervals: {fit._reader.why_no_intervals})"
    return f", with {100 * interval:g}% intervals"


def listed_axis(fit: Any, mode: str | None) -> str:
    """The axis whose entries are members: the one that was asked for, or the last of the first kind of component.

    Raises:
        TypeError: not a model.
        ValueError: an axis along which nothing can be listed, or a model without components that can be.
    """
    if not hasattr(type(fit), "parts"):
        raise TypeError(f"fit must be a model of countveil, got {type(fit).__name__}")
    known = fit._reader.member_axes
    if not known:
        raise ValueError(
            f"fit must have components whose members can be listed, got a {type(fit).__name__}, which has none"
        )
    if mode is None:
        return str(fit._reader.kinds[0].axes[-1])
    if mode not in known:
        raise ValueError(f"mode must be one of {list(known)}, got {mode!r}")
    return mode


COLOURS = "RdBu_r"
EMPTY = "0.85"  # the grey of pairs without a number
MOST_NUMBERS = 12  # topics, above which the numbers in the cells would not be legible


def correlations(fit: Any, interval: float = 0.9, *, ax: Any = None) -> Any:
    """The correlation of the shares of each two topics over the documents: red together, blue apart.

    Numbers are those of ``fit.documents.correlations``, whose rules hold: shares sum to one, so that unrelated topics
    have a correlation below zero. They are in the cells of up to 12 topics, in bold where the interval does not hold
    zero. Pairs that no chain has are grey. Returns the axes.

    Raises:
        TypeError: a fit of something else than topics.
        ValueError: an interval out of range; fewer than two topics; a fit without draws of its documents.
    """
    if not hasattr(fit, "documents"):
        raise TypeError(f"fit must be a TopicModel, got {type(fit).__name__}")
    table, names = fit.documents.correlations(interval), fit._reader.names_of()
    if table.empty:
        raise ValueError("fit must have two topics or more to have correlations, got fewer")
    numbers = sorted({*table["topic"], *table["other"]})
    place = {number: i for i, number in enumerate(numbers)}
    cells = np.full((len(numbers), len(numbers)), np.nan)
    ax = style.axes_for(ax, 2.4 + 0.5 * len(numbers), 1.6 + 0.45 * len(numbers))
    for row in table.to_dict("records"):
        i, j = sorted((place[row["topic"]], place[row["other"]]))
        cells[i, j] = cells[j, i] = row["correlation"]
        if len(numbers) <= MOST_NUMBERS:
            sure = "lower" in row and not row["lower"] <= 0.0 <= row["upper"]
            said = {"ha": "center", "va": "center", "fontsize": 7, "fontweight": "bold" if sure else "normal"}
            said["color"] = "white" if abs(row["correlation"]) > 0.6 else "black"
            for x, y in ((i, j), (j, i)):
                ax.text(x, y, f"{row['correlation']:.2f}", **said)
    ax.set_facecolor(EMPTY)
    image = ax.imshow(cells, cmap=COLOURS, vmin=-1.0, vmax=1.0)
    labels = [style.plain(called("topic", number, names), 22) for number in numbers]
    ax.set_xticks(range(len(numbers)), labels, rotation=45, ha="right", fontsize=8)
    ax.set_yticks(range(len(numbers)), labels, fontsize=8)
    ax.set_title("Red: topics of the same documents; blue: of different ones", fontsize=9, wrap=True)
    unrelated = -1.0 / (fit.model_.n_components - 1)
    ax.figure.colorbar(image, ax=ax, fraction=0.05, label=f"correlation (of unrelated topics: {unrelated:.2f})")
    return ax
