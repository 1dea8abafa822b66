"""Components and topics over time, and the steps to come."""

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import Any

import numpy as np

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
    table = fit.activity(interval)
    known = table["component"].unique().tolist()
    wanted = known[:5] if which is None else chosen(known, which)
    ax = style.axes_for(ax, 6.4, 3.4)
    for i, k in enumerate(wanted):
        rows, color = table[table["component"] == k], style.CYCLE[i % len(style.CYCLE)]
        x = np.arange(len(rows))
        line = style.LINES[i // len(style.CYCLE) % len(style.LINES)]
        ax.plot(x, rows["rate"], color=color, linestyle=line, linewidth=1.6, label=f"component {k}")
        if "lower" in rows:
            ax.fill_between(x, rows["lower"], rows["upper"], color=color, alpha=0.2, linewidth=0)
    name_steps(ax, table.loc[table["component"] == wanted[0], fit.time_axis].tolist())
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel(f"expected counts{said_of_intervals(fit, interval)}", wrap=True)
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

    Shares are those of ``fit.prevalence_over``, whose rules hold; all panels have one scale. Titles say
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
    if not hasattr(fit, "prevalence_over"):
        raise TypeError(f"fit must be a TopicModel, got {type(fit).__name__}")
    table, names = fit.prevalence_over(interval), fit.names_of()
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
    known = fit.axes[along].tolist()
    place = (
        int(np.argmax(counts.mean(["draw", time]).to_numpy()))
        if label is None
        else place_of(label, known, along)
    )
    past, to_come = table[table[along] == known[place]], counts.isel({along: place}).transpose("draw", time)
    m, seen = to_come.sizes[time], len(past)
    past = past if last is None else past.tail(last)
    n = len(past)
    ax = style.axes_for(ax, 6.4, 3.4)
    ax.plot(np.arange(n), past["rate"], color=style.BLUE, linewidth=1.6, label="expected counts")
    x = np.arange(n, n + m)
    values = to_come.to_numpy()
    ax.plot(
        x, np.median(values, axis=0), color=style.VERMILION, linewidth=1.6, label="counts to come, median"
    )
    if "lower" in past:
        ax.fill_between(np.arange(n), past["lower"], past["upper"], color=style.BLUE, alpha=0.2, linewidth=0)
        for probability, shade in zip(BANDS, SHADES, strict=True):
            ends = np.quantile(values, [0.5 - probability / 2, 0.5 + probability / 2], axis=0)
            ax.fill_between(x, *ends, color=style.VERMILION, alpha=shade, linewidth=0)
    if reports is not None:
        dots = checked(reports, seen, seen + m)[seen - n :]
        ax.plot(np.arange(len(dots)), dots, ".", color=style.BLACK, markersize=4, label="reports")
    name_steps(ax, [*fit.axes[time].tolist()[-n:], *ahead.counts[time].to_numpy().tolist()])
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
