"""Components and topics over time, the steps to come, and where their activity goes."""

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from countveil.inference.matching import STABLE
from countveil.plotting import style
from countveil.plotting.factors import called, chosen, said_of_intervals
from countveil.plotting.style import Fit

MAX_TICKS = 12


def activity(fit: Fit, which: Iterable[int] | None = None, interval: float = 0.9, *, ax: Any = None) -> Any:
    """Expected counts of components in each time step, with bands; returns the axes.

    A fit whose intervals are not calibrated is drawn without bands, and the label of the axis says why.

    Args:
        fit: a fitted ``DynamicModel``.
        which: numbers of the components; by default the five largest.
        interval: probability of the bands.
        ax: axes to draw on; new ones by default.

    Raises:
        TypeError: a fit without a time axis.
        ValueError: an unknown component, or an interval out of range.
    """
    if not hasattr(fit, "activity"):
        raise TypeError(f"fit must be a DynamicModel, got {type(fit).__name__}")
    ax = drawn_by_component(fit.activity(interval), "rate", which, ax)
    ax.set_ylabel(f"expected counts{said_of_intervals(fit, interval)}", wrap=True)
    return ax


def seasons(fit: Fit, which: Iterable[int] | None = None, interval: float = 0.9, *, ax: Any = None) -> Any:
    """What components are multiplied by in each step of the season, with bands; returns the axes.

    A fit whose intervals are not calibrated is drawn without bands, and the label of the axis says why.

    Args:
        fit: a fitted ``DynamicModel`` with a season.
        which: numbers of the components; by default the five largest.
        interval: probability of the bands.
        ax: axes to draw on; new ones by default.

    Raises:
        TypeError: a fit without a time axis.
        ValueError: a fit without a season, an unknown component, or an interval out of range.
    """
    if not hasattr(fit, "seasons"):
        raise TypeError(f"fit must be a DynamicModel, got {type(fit).__name__}")
    ax = drawn_by_component(fit.seasons(interval), "factor", which, ax)
    ax.axhline(1.0, color=style.BLACK, linewidth=0.6, linestyle=":")
    ax.set_ylabel(f"factor of the season{said_of_intervals(fit, interval)}", wrap=True)
    return ax


def drawn_by_component(table: Any, value: str, which: Iterable[int] | None, ax: Any) -> Any:
    """A line with a band for each component of a table, over the steps that its second column names."""
    known = table["component"].unique().tolist()
    wanted = known[:5] if which is None else chosen(known, which)
    ax = style.axes_for(ax, 6.4, 3.4)
    for i, k in enumerate(wanted):
        rows, color = table[table["component"] == k], style.CYCLE[i % len(style.CYCLE)]
        x = np.arange(len(rows))
        line = style.LINES[i // len(style.CYCLE) % len(style.LINES)]
        ax.plot(x, rows[value], color=color, linestyle=line, linewidth=1.6, label=f"component {k}")
        if "lower" in rows:
            ax.fill_between(x, rows["lower"], rows["upper"], color=color, alpha=0.2, linewidth=0)
    name_steps(ax, table.loc[table["component"] == wanted[0], table.columns[1]].tolist())
    ax.set_ylim(bottom=0.0)
    ax.legend(frameon=False, fontsize=8)
    style.tidy(ax)
    return ax


def name_steps(ax: Any, names: list[Any]) -> None:
    """Labels of steps along the axis of time, as many as fit."""
    places = np.unique(np.linspace(0, len(names) - 1, min(len(names), MAX_TICKS)).astype(int))
    ax.set_xticks(places, [style.plain(names[p]) for p in places], fontsize=8, rotation=45, ha="right")
    ax.set_xlim(0, max(len(names) - 1, 1))


COLUMNS = 3  # of panels
LETTERS = 26  # of a label beside a panel


def prevalence_over(fit: Any, which: Iterable[int] | None = None, interval: float = 0.9) -> Any:
    """Each topic's expected share of a document over time, as a curve with a band in a panel of its own.

    Shares are those of ``fit.effects.over_time``, whose rules hold; all panels have one scale. Titles say
    the first and the last share, and whether the topic rises or falls: where the intervals of both do not overlap. A
    fit whose intervals are not calibrated is drawn without bands. Returns the axes, an array of them.

    Args:
        fit: a ``TopicModel`` that was fitted with dates of the documents (``time=``).
        which: numbers of the topics; by default all.
        interval: probability of the bands.

    Raises:
        TypeError: a fit of something else than topics.
        ValueError: a fit without dates, an unknown topic, or an interval out of range.
    """
    if not getattr(fit, "_takes_dates", False):
        raise TypeError(f"fit must be a TopicModel, got {type(fit).__name__}")
    table, names = fit.effects.over_time(interval), fit._reader.names_of()
    known = table["topic"].unique().tolist()
    wanted = known if which is None else chosen(known, which)
    columns = min(COLUMNS, len(wanted))
    n_rows = -(-len(wanted) // columns)
    whole = style.axes_for(None, 2.6 * columns + 0.6, 1.9 * n_rows + 0.5)
    figure = whole.figure
    whole.remove()
    axes = figure.subplots(n_rows, columns, sharex=True, sharey=True, squeeze=False)
    for k, ax in zip(wanted, axes.flat, strict=False):
        rows = table[table["topic"] == k]
        draw_panel(ax, rows)
        ax.set_title(style.plain(called("topic", k, names)) + change(rows), fontsize=9, wrap=True)
    for ax in axes.flat[len(wanted) :]:
        ax.set_visible(False)
    label = fill(f"expected share{said_of_intervals(fit, interval)}", LETTERS * n_rows)
    figure.supylabel(label, fontsize=9)
    return axes


def draw_panel(ax: Any, rows: Any) -> None:
    """The curve of one topic, and its band if there is one."""
    x = np.arange(len(rows))
    ax.plot(x, rows["estimate"], color=style.BLUE, linewidth=1.6)
    if "lower" in rows:
        ax.fill_between(x, rows["lower"], rows["upper"], color=style.BLUE, alpha=0.2, linewidth=0)
    names = rows["time"].tolist()
    places = np.unique(np.linspace(0, len(names) - 1, min(len(names), MAX_TICKS // 2)).astype(int))
    ax.set_xticks(places, [style.plain(str(names[p])) for p in places], fontsize=8, rotation=45, ha="right")
    ax.set_xlim(0, len(names) - 1)
    ax.set_ylim(bottom=0.0)
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
    style.tidy(ax)


def change(rows: Any) -> str:
    """The first share and the last, and which way it goes where their intervals do not overlap: rest of a title."""
    first, last = rows.iloc[0], rows.iloc[-1]
    verb = ""
    if "lower" in rows and last["lower"] > first["upper"]:
        verb = " rises:"
    elif "lower" in rows and last["upper"] < first["lower"]:
        verb = " falls:"
    return f"{verb or ':'} {100 * first['estimate']:.0f}% to {100 * last['estimate']:.0f}%"


BANDS = 0.9, 0.5  # probabilities of a fan's intervals, the wider first
SHADES = 0.18, 0.35


def forecast(
    fit: Fit,
    ahead: Any,
    label: object = None,
    *,
    along: str | None = None,
    reports: Sequence[float] | np.ndarray | None = None,
    last: int | None = None,
    ax: Any = None,
) -> Any:
    """Expected counts of one thing until now, and a fan of those to come; returns the axes.

    Until now there is the line of ``fit.trend`` with its 90% band, which is about expected counts; from then on the
    median of the counts that may come, with their 50% and 90% intervals. A fit whose intervals are not calibrated is
    drawn without, and the label of the axis says why.

    Args:
        fit: a fitted ``DynamicModel``.
        ahead: its ``forecast``.
        label: of the thing along ``along``; by default the one with the largest forecast.
        along: an axis that is not time; by default the last such. Others are summed over.
        reports: sums of what was reported of this thing in each step of the data, and perhaps of those to come: dots.
        last: how many steps of the data to draw, the last ones; by default all.
        ax: axes to draw on; new ones by default.

    Raises:
        TypeError: a fit without a time axis.
        ValueError: an unknown axis or label; reports for fewer steps than the data have, or more than there are; last
            below one.
    """
    if not hasattr(fit, "activity"):
        raise TypeError(f"fit must be a DynamicModel, got {type(fit).__name__}")
    if last is not None and last < 1:
        raise ValueError(f"last must be 1 or more, got {last}")
    time = fit.time_axis
    others = [dim for dim in ahead.counts.dims if dim not in ("draw", time)]
    along = others[-1] if along is None else along
    table = fit.trend(along)
    counts = ahead.counts.sum([dim for dim in others if dim != along])
    known = fit._reader.axes[along].tolist()
    place = int(np.argmax(counts.mean(["draw", time]).to_numpy())) if label is None else place_of(label, known, along)
    past, to_come = table[table[along] == known[place]], counts.isel({along: place}).transpose("draw", time)
    m, seen = to_come.sizes[time], len(past)
    past = past if last is None else past.tail(last)
    n = len(past)
    ax = style.axes_for(ax, 6.4, 3.4)
    ax.plot(np.arange(n), past["rate"], color=style.BLUE, linewidth=1.6, label="expected counts")
    x = np.arange(n, n + m)
    values = to_come.to_numpy()
    ax.plot(x, np.median(values, axis=0), color=style.VERMILION, linewidth=1.6, label="counts to come, median")
    if "lower" in past:
        ax.fill_between(np.arange(n), past["lower"], past["upper"], color=style.BLUE, alpha=0.2, linewidth=0)
        for probability, shade in zip(BANDS, SHADES, strict=True):
            ends = np.quantile(values, [0.5 - probability / 2, 0.5 + probability / 2], axis=0)
            ax.fill_between(x, *ends, color=style.VERMILION, alpha=shade, linewidth=0)
    if reports is not None:
        dots = checked(reports, seen, seen + m)[seen - n :]
        ax.plot(np.arange(len(dots)), dots, ".", color=style.BLACK, markersize=4, label="reports")
    name_steps(ax, [*fit._reader.axes[time].tolist()[-n:], *ahead.counts[time].to_numpy().tolist()])
    ax.set_title(style.plain(f"{along} {known[place]}"), fontsize=9)
    ax.set_ylabel(f"counts{said_of_intervals(fit, BANDS[0])}", wrap=True)
    ax.legend(frameon=False, fontsize=8)
    style.tidy(ax)
    return ax


def place_of(label: object, known: list[Any], along: str) -> int:
    """Where a label is."""
    if label not in known:
        raise ValueError(f"label must be one of the {along} axis, got {label!r:.60}")
    return known.index(label)


def checked(reports: Any, least: int, most: int) -> np.ndarray:
    """Reports, one for each step."""
    found = np.asarray(reports, dtype=float)
    if found.ndim != 1 or not least <= len(found) <= most:
        raise ValueError(f"reports must be {least} to {most} numbers, one per step, got shape {found.shape}")
    return found


MOST = 8  # components that a graph shows unless it is told which
TOP = 3  # things that a component is labelled with
SMALLEST, LARGEST = 0.07, 0.17  # radii of components; the circle that they are on has radius one
WIDEST = 4.0  # points
BEND = 0.18  # of an arrow, so that it and the one back lie side by side
ALONG = 0.35, 0.42, 0.28, 0.5, 0.58, 0.65  # of an arrow: where its number may be
APART = 0.22  # between two numbers
SOFTEST = 0.35  # opacity of the narrowest arrow


def transitions(
    fit: Fit, which: Iterable[int] | None = None, least: float = 0.02, *, mode: str | None = None, ax: Any = None
) -> Any:
    """Components as circles, with arrows to where their activity goes in the next step; returns the axes.

    A circle grows with its component's share of all expected counts. The number on an arrow is the share of a
    component's activity that goes to the other; widths are to the scale of the widest. What stays is written below a
    component's name and its largest things. Each component is of the chains that have it, and an arrow of the chains
    that have both of its components, as in ``fit.transitions``. Components that exchange much are side by side, and the
    same fit has the same picture.

    Args:
        fit: a fitted ``DynamicModel``.
        which: numbers of the components; by default the largest of those that more than half of the chains have, eight
            at most.
        least: the smallest share that has an arrow.
        mode: an axis other than time whose three largest entries label the components; by default the only one, or of
            several axes the largest entry of each.
        ax: axes to draw on; new ones by default.

    Raises:
        TypeError: a fit without a time axis.
        ValueError: an unknown component or axis, least not between 0 and 1, or no component that most chains have.
    """
    if not hasattr(fit, "transitions"):
        raise TypeError(f"fit must be a DynamicModel, got {type(fit).__name__}")
    if not 0.0 <= least <= 1.0:
        raise ValueError(f"least must be between 0 and 1, got {least}")
    known = fit.parts.support(axis=fit.time_axis).set_index("component")
    wanted = largest(known) if which is None else chosen(known.index.tolist(), which)
    shares = shares_between(fit.transitions(), wanted)
    order = circle_order(shares)
    wanted, shares = [wanted[i] for i in order], shares[np.ix_(order, order)]
    ax = style.axes_for(ax, 7.0, 5.4)
    places = on_a_circle(len(wanted))
    sizes = known.loc[wanted, "prevalence"].to_numpy()
    radii = SMALLEST + (LARGEST - SMALLEST) * np.sqrt(sizes / max(float(sizes.max()), 1e-300))
    circles = [draw_component(ax, *each) for each in zip(wanted, places, radii, strict=True)]
    draw_arrows(ax, shares, places, circles, least)
    names, things = fit._reader.names_of(fit.time_axis), things_of(fit, mode)
    for k, place, radius, stays in zip(wanted, places, radii, np.diag(shares), strict=True):
        support = known.loc[k, "support"]
        said = f", support {support:.0%}" if support < 1.0 else ""
        heading = style.plain(called("component", k, names)) + said
        kept = "" if np.isnan(stays) else f"\n{stays:.0%} stays"
        label(ax, f"{heading}\n{things[k]}{kept}", place, radius)
    ax.set_title(f"Shares of activity that go elsewhere in the next step, from {least:.0%} on", fontsize=9)
    ax.set_xlim(-2.0, 2.0)
    ax.set_ylim(-1.5, 1.5)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def largest(known: pd.DataFrame) -> list[int]:
    """Numbers of the components that are drawn unless others are asked for."""
    stable = known[known["support"] > STABLE].sort_values("prevalence", ascending=False, kind="stable")
    if stable.empty:
        raise ValueError("fit must have components that more than half of its chains have, got none")
    return [int(k) for k in stable.index[:MOST]]


def shares_between(table: pd.DataFrame, wanted: list[int]) -> np.ndarray:
    """(to, from) shares; NaN where no chain has both components."""
    found = table.pivot_table(index="component", columns="previous_component", values="share")
    return np.array(found.reindex(index=wanted, columns=wanted), dtype=np.float64)


def circle_order(shares: np.ndarray) -> list[int]:
    """Places along a circle: from the first on, always the one that exchanges most with the one before."""
    both = np.nan_to_num(shares + shares.T)
    order = [0]
    while len(order) < len(both):
        left = [i for i in range(len(both)) if i not in order]
        order.append(left[int(np.argmax(both[order[-1], left]))])
    return order


def on_a_circle(n: int) -> np.ndarray:
    """(n, 2) places, from the right anticlockwise; one alone is in the middle."""
    if n == 1:
        return np.zeros((1, 2))
    angles = 2.0 * np.pi * np.arange(n) / n
    return np.column_stack([np.cos(angles), np.sin(angles)])


def draw_component(ax: Any, number: int, place: np.ndarray, radius: float) -> Any:
    """A circle with a number in it."""
    from matplotlib.patches import Circle

    circle = Circle(tuple(place), radius, facecolor=style.SKY, edgecolor=style.BLUE, linewidth=1.0, zorder=3)
    ax.add_patch(circle)
    ax.text(*place, str(number), ha="center", va="center", fontsize=9, weight="bold", zorder=4)
    return circle


def draw_arrows(ax: Any, shares: np.ndarray, places: np.ndarray, circles: list[Any], least: float) -> None:
    """An arrow for each share from one component to another that is large enough, the widest last."""
    from matplotlib.patches import FancyArrowPatch

    apart = np.where(np.eye(len(shares), dtype=bool), np.nan, shares)
    pairs = [(i, j) for i, j in np.argwhere(apart >= least) if apart[i, j] > 0.0]
    taken: list[np.ndarray] = []
    most = max((float(apart[pair]) for pair in pairs), default=1.0)
    for i, j in sorted(pairs, key=lambda pair: (apart[pair], pair)):
        share = float(apart[i, j])
        size = share / most
        arrow = FancyArrowPatch(
            tuple(places[j]), tuple(places[i]), patchA=circles[j], patchB=circles[i], shrinkA=0, shrinkB=1,
            arrowstyle="-|>", mutation_scale=7.0 + 8.0 * size, linewidth=WIDEST * size, color=style.BLACK,
            connectionstyle=f"arc3,rad={BEND}", alpha=SOFTEST + (1.0 - SOFTEST) * size, zorder=2,
        )  # fmt: skip
        ax.add_patch(arrow)
        taken.append(clear(beside(places[j], places[i]), taken))
        ax.text(*taken[-1], f"{share:.0%}", fontsize=7, ha="center", va="center", zorder=5,
                bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"})  # fmt: skip


def beside(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """(n, 2) places for a number on an arrow that is bent to its right, the best first: nearer to where it starts."""
    along = end - start
    control = (start + end) / 2.0 + BEND * np.array([along[1], -along[0]])
    t = np.array(ALONG)[:, None]
    return np.asarray((1.0 - t) ** 2 * start + 2.0 * t * (1.0 - t) * control + t**2 * end)


def clear(places: np.ndarray, taken: list[np.ndarray]) -> np.ndarray:
    """The first place far enough from those that are taken, or the farthest."""
    if not taken:
        return np.asarray(places[0])
    apart = np.linalg.norm(places[:, None] - np.array(taken)[None], axis=2).min(axis=1)
    return np.asarray(places[int(np.argmax(np.minimum(apart, APART)))])


def things_of(fit: Fit, mode: str | None) -> dict[int, str]:
    """What each component is labelled with."""
    axes = [axis for axis in fit._reader.member_axes if axis != fit.time_axis]
    if mode is not None and mode not in axes:
        raise ValueError(f"mode must be one of {axes}, got {mode!r}")
    one = mode or (axes[0] if len(axes) == 1 else None)
    tables = [fit.parts.supported(axis, TOP if one else 1) for axis in ([one] if one else axes)]
    found: dict[int, list[str]] = {}
    for table in tables:
        for k, member in zip(table["component"], table["member"], strict=True):
            found.setdefault(int(k), []).append(style.plain(member, 18))
    return {k: ", ".join(members) for k, members in found.items()}


def label(ax: Any, text: str, place: np.ndarray, radius: float) -> None:
    """Lines of text outside the circle that components are on."""
    x, y = place
    outward = place / max(float(np.hypot(x, y)), 1e-9) if x or y else np.array([0.0, 1.0])
    side = "left" if outward[0] > 0.2 else "right" if outward[0] < -0.2 else "center"
    height = "center" if abs(outward[1]) < 0.8 else "bottom" if outward[1] > 0.0 else "top"
    ax.text(*(place + (radius + 0.09) * outward), text, ha=side, va=height, fontsize=8, linespacing=1.25)
