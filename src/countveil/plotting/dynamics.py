"""Components over time, and the steps to come."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from countveil.plotting import style
from countveil.plotting.factors import chosen, said_of_intervals
from countveil.plotting.fits import Fit

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
    ax = drawn_by_component(fit, fit.activity(interval), "rate", which, ax)
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
    ax = drawn_by_component(fit, fit.seasons(interval), "factor", which, ax)
    ax.axhline(1.0, color=style.BLACK, linewidth=0.6, linestyle=":")
    ax.set_ylabel(f"factor of the season{said_of_intervals(fit, interval)}", wrap=True)
    return ax


def drawn_by_component(fit: Fit, table: Any, value: str, which: Iterable[int] | None, ax: Any) -> Any:
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
