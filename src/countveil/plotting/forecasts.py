"""Forecasts as fans: what was, what may come, and what was reported."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from countveil.plotting import style
from countveil.plotting.dynamics import name_steps
from countveil.plotting.factors import said_of_intervals
from countveil.plotting.style import Fit

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
