"""Fits and models side by side: strongest members on one scale, and how well models predict held-out reports."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from countveil.common.parameters import check_integer
from countveil.inference.matching import LEAST_OVERLAP, overlap
from countveil.plotting import style
from countveil.plotting.factors import called, ends_of, listed_axis, said_of_intervals, shown
from countveil.plotting.style import Fit

ALL = 10**9  # members: more than any axis has
APART = 0.17  # how far the dots of the two fits lie from a member's line, on either side


def compare(
    fit: Fit,
    other: Fit,
    which: Iterable[int] | None = None,
    n: int = 6,
    interval: float = 0.9,
    *,
    names: tuple[str, str] = ("the fit", "the other fit"),
    mode: str | None = None,
    ax: Any = None,
) -> Any:
    """The n strongest members of topics (communities, components) beside their counterparts in another fit.

    Topics are assigned one to one so that what they share, sum_v min(p_v, q_v), is largest in all. One that shares less
    than half with its counterpart has none, and is drawn alone. Members are those with the largest mean of both fits;
    one that a fit does not have is not drawn for it. Fits whose intervals are not calibrated are drawn without any.
    Returns the axes.

    Args:
        fit: any fitted model whose components can be listed; topics have its order and its numbers.
        other: another one, with some of the same labels along the axis.
        which: numbers of the topics of ``fit``; by default five, the best supported first, then the largest.
        n: members of each.
        interval: probability of the equal-tailed intervals.
        names: what the legend calls the two fits.
        mode: the axis of the members, as for ``topics``.
        ax: axes to draw on; new ones by default, as high as they need to be.

    Raises:
        TypeError: not models.
        ValueError: an unknown topic or mode; n or interval out of range; no label along the axis that both fits have.
    """
    check_integer("n", n, 1)
    mode = listed_axis(fit, mode)
    listed_axis(other, mode)
    one, two = (each.parts.supported(mode, ALL, interval).set_index("member") for each in (fit, other))
    if one.index.intersection(two.index).empty:
        first, second = (f"{each.index[0]!r:.40}" if len(each) else "none" for each in (one, two))
        raise ValueError(
            f"other must share at least one label with fit along {mode}, got no label in common: the first are "
            f"{first} in fit and {second} in other"
        )
    pairs = counterparts(one, two)
    order = fit.parts.supported(mode, 1, interval)["component"].unique().tolist()
    kind, ours, theirs = (
        fit.parts.prevalences(axis=mode).columns[0],
        fit._reader.names_of(mode),
        other._reader.names_of(mode),
    )
    wanted, title = shown(order, which)
    parts = []
    for k in wanted:
        said, own = called(kind, k, ours), [one[one["component"] == k]]
        if k in pairs:
            match, share = pairs[k]
            said += f" and {called(kind, match, theirs)}, {share:.0%} in common"
            own.append(two[two["component"] == match])
        else:
            said += ", without a counterpart"
        parts.append((said, strongest(own, n)))
    ax = style.axes_for(ax, 6.4, 1.3 + 0.22 * sum(len(own[0]) + 1.6 for _, own in parts))
    draw(ax, parts, names)
    ax.set_xlim(left=0.0)
    ax.set_xlabel(f"probability{said_of_intervals(other if other._reader.why_no_intervals else fit, interval)}")
    ax.set_title(title, fontsize=9, wrap=True)
    style.tidy(ax, "x")
    return ax


def counterparts(one: pd.DataFrame, other: pd.DataFrame) -> dict[int, tuple[int, float]]:
    """{component: (its counterpart in the other fit, what they share)}, of tables by member."""
    p, q = (table.pivot(columns="component", values="probability") for table in (one, other))
    members = p.index.union(q.index, sort=False)
    p, q = p.reindex(members).fillna(0.0), q.reindex(members).fillna(0.0)
    common = overlap(p.to_numpy().T, q.to_numpy().T)
    rows, columns = linear_sum_assignment(common, maximize=True)
    return {
        int(p.columns[i]): (int(q.columns[j]), float(common[i, j]))
        for i, j in zip(rows, columns, strict=True)
        if common[i, j] >= LEAST_OVERLAP
    }


def strongest(own: list[pd.DataFrame], n: int) -> list[pd.DataFrame]:
    """The rows of the n members with the largest mean over one or two tables, in that order in each."""
    total = pd.concat([table["probability"] for table in own]).groupby(level=0, sort=False).sum()
    top = total.sort_values(ascending=False, kind="stable").index[:n]
    return [table.reindex(top) for table in own]


def draw(ax: Any, parts: list[tuple[str, list[pd.DataFrame]]], names: tuple[str, str]) -> None:
    """Every component's members below its title, with a dot for each of the fits that have it."""
    from matplotlib.lines import Line2D

    place, ticks, labels = 0.0, [], []
    for said, tables in parts:
        y = place + 1.0 + np.arange(len(tables[0]))
        ax.text(0.0, place, style.plain(said, 90), transform=ax.get_yaxis_transform(), weight="bold",
                va="center", fontsize=9)  # fmt: skip
        for i, table in enumerate(tables):
            has = table["probability"].notna().to_numpy()
            middle = table["probability"].to_numpy()[has]
            ax.errorbar(
                middle, y[has] + (2 * i - 1) * APART, xerr=ends_of(table[has], middle), color=style.CYCLE[i],
                marker=style.MARKERS[i], linestyle="none", markersize=4.5, capsize=2, linewidth=1.4,
            )  # fmt: skip
        ticks += y.tolist()
        labels += [style.plain(member) for member in tables[0].index]
        place += len(tables[0]) + 1.6
    ax.set_yticks(ticks, labels, fontsize=8)
    ax.set_ylim(place - 0.8, -0.8)
    marks = [
        Line2D([], [], color=style.CYCLE[i], marker=style.MARKERS[i], linestyle="none", label=style.plain(name))
        for i, name in enumerate(names)
    ]
    ax.legend(handles=marks, frameon=False, fontsize=8, loc="lower right")


def differences(table: pd.DataFrame, *, ax: Any = None) -> Any:
    """Differences of models' scores from the best one, with bars of two standard errors; returns the axes.

    Args:
        table: that of ``compare``, with the columns model, difference and standard_error.
        ax: axes to draw on; new ones by default, as high as they need to be.

    Raises:
        ValueError: a table without these columns.
    """
    absent = [name for name in ("model", "difference", "standard_error") if name not in table]
    if absent:
        raise ValueError(f"table must have the columns model, difference and standard_error, got no {absent[0]}")
    ax = style.axes_for(ax, 6.4, 0.9 + 0.28 * len(table))
    y, middle = np.arange(len(table)), table["difference"].to_numpy(dtype=float)
    error = table["standard_error"].to_numpy(dtype=float)
    ax.axvline(0.0, color=style.GREY, linewidth=1.0, linestyle="--")
    ax.errorbar(
        middle, y, xerr=2.0 * error, color=style.BLUE, marker="o", linestyle="none",
        capsize=3, markersize=6, linewidth=1.6,
    )  # fmt: skip
    ax.set_yticks(y, [style.plain(name, 40) for name in table["model"]], fontsize=8)
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlabel("difference from the best, log score per 1,000 held-out cells (bars: 2 standard errors)", fontsize=8)
    style.tidy(ax, "x")
    return ax
