"""One look for all figures: Okabe and Ito's colours, told apart by marker and line as well."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from countveil.plotting.style import new_figure
from countveil.privacy._archive import replacing

OURS, NAIVE, LEAST_SQUARES, TRUE_COUNTS = "countveil", "naive", "least squares", "true counts"
KNOWN_PRIOR = "countveil, true prior"
BURSTY = "countveil, bursty"
EXACT_VI, PUBLISHED_VI, PUBLISHED_MCMC, ZERO = "cavi", "published VI", "published MCMC", "zero"
STYLES: dict[str, tuple[str, str, str]] = {
    OURS: ("#0072B2", "o", "-"),
    KNOWN_PRIOR: ("#56B4E9", "X", "-"),
    BURSTY: ("#CC79A7", "X", "-."),
    NAIVE: ("#D55E00", "^", "-"),
    LEAST_SQUARES: ("#E69F00", "s", "-"),
    EXACT_VI: ("#009E73", "D", "-"),
    PUBLISHED_VI: ("#CC79A7", "v", "-"),
    PUBLISHED_MCMC: ("#56B4E9", "P", "-"),
    TRUE_COUNTS: ("#000000", "_", "--"),
    ZERO: ("#888888", "", ":"),
}
DPI = 110


def figure(width: float, height: float) -> Any:
    """An empty figure of this size in inches."""
    return new_figure(width, height)


def tidy(axes: Any, xlabel: str = "", ylabel: str = "", title: str = "") -> None:
    """Labels, light horizontal lines, no box."""
    axes.set_xlabel(xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    axes.set_title(title, fontsize=9.5)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)


def log_scale(axes: Any) -> None:
    """A logarithmic vertical axis, with plain numbers at 1, 2 and 5 of every decade."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def lines(axes: Any, fits: pd.DataFrame, x: str, y: str, methods: Sequence[str]) -> None:
    """One line per method over the values of x: means over draws, bars from the least to the largest draw.

    Methods without a value of x (no noise) are horizontal lines. Values of x that are not numbers are spaced evenly.
    """
    noisy = fits[fits[x].notna()]
    order = list(dict.fromkeys(noisy[x]))
    numeric = pd.api.types.is_numeric_dtype(noisy[x])
    ticks = np.array(sorted(order), dtype=float) if numeric else np.arange(len(order), dtype=float)
    order = sorted(order) if numeric else order
    step = 0.02 * (ticks[-1] - ticks[0]) if len(ticks) > 1 else 0.02
    for place, method in enumerate(methods):
        rows = fits[fits["method"] == method]
        if rows[y].isna().all():
            continue
        colour, marker, line = STYLES[method]
        if rows[x].isna().all():
            axes.axhline(rows[y].mean(), color=colour, linestyle=line, linewidth=1.3, label=method)
            continue
        groups = [rows.loc[rows[x] == value, y] for value in order]
        mean = np.array([group.mean() for group in groups])
        ends = np.array([[m - g.min(), g.max() - m] for m, g in zip(mean, groups, strict=True)]).T
        axes.errorbar(
            ticks + step * (place - (len(methods) - 1) / 2), mean, yerr=np.maximum(ends, 0.0), color=colour,
            marker=marker or None, linestyle=line, capsize=2.5, markersize=5, linewidth=1.4, label=method,
        )  # fmt: skip
    axes.set_xticks(ticks, [str(value) for value in order])


def legend(drawn: Any) -> None:
    """One legend below for all panels."""
    handles = {
        label: handle for axes in drawn.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if handles:
        drawn.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=min(7, len(handles)), frameon=False,
            fontsize=9,
        )  # fmt: skip


def heatmap(axes: Any, matrix: np.ndarray, title: str, norm: Any = None, cmap: str = "cividis") -> Any:
    """A matrix as an image."""
    image = axes.imshow(matrix, cmap=cmap, norm=norm, interpolation="nearest", aspect="auto")
    axes.set_title(title, fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])
    return image


def save(drawn: Any, paths: Iterable[Path]) -> None:
    """Write a figure to each path, by its ending; the same figure gives the same bytes."""
    import matplotlib as mpl

    for path in paths:
        kind = path.suffix[1:]
        with replacing(path) as temporary, mpl.rc_context({"svg.hashsalt": "countveil"}):
            drawn.savefig(temporary, dpi=DPI, format=kind, metadata={"Date": None} if kind == "svg" else None)
