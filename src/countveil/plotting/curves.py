"""What privacy costs: error against the level, from the table of a plan or of the demo."""

import os
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from countveil.plotting import style

NAMES = {
    "log_score": "log score per word (higher is better)",
    "mae": "mean absolute error per cell",
    "mae_of_rates": "error of the rates per cell",
    "npmi": "NPMI of topic words (higher is better)",
    "topic_error": "topic error",
    "interval_width": "width of the middle 90% of a rate's draws",
}


def privacy_utility(
    table: pd.DataFrame | str | os.PathLike[str], measure: str = "mae", *, rows: int | None = None, ax: Any = None
) -> Any:
    """A measure of error against epsilon/N, one line per method; returns the axes.

    Args:
        table: what ``countveil plan`` (plan.csv) or the demo (scores.csv) writes, or the name of such a file.
        measure: a column of it, such as "mae", "log_score" or "topic_error".
        rows: the number of participants to show of a plan; the largest by default.
        ax: axes to draw on; new ones by default.

    Bars are two standard errors of a plan's simulation, or the range over the demo's noise draws. Without noise the
    true counts are a dashed line.

    Raises:
        ValueError: a table without levels, methods or this measure, or no such number of rows.
        FileNotFoundError: no such file.
    """
    found = table if isinstance(table, pd.DataFrame) else pd.read_csv(table)
    data = tidy_table(found, measure, rows)
    ax = style.axes_for(ax, 6.4, 3.6)
    levels = sorted(set(data["rate"].dropna()))
    ticks = np.arange(len(levels), dtype=float)
    methods = [m for m in (*style.METHODS, *data["method"].unique()) if m in set(data["method"])]
    drawn = [m for m in dict.fromkeys(methods) if data.loc[data["method"] == m, "rate"].notna().any()]
    for i, method in enumerate(drawn):
        colour, marker, line = style.METHODS.get(method, (style.PURPLE, style.MARKERS[i % 8], "-"))
        part = data[data["method"] == method].set_index("rate").reindex(levels)
        middle = part["middle"].to_numpy(dtype=float)
        ends = np.abs(part[["low", "high"]].to_numpy(dtype=float).T - middle)
        ax.errorbar(
            ticks + 0.05 * (i - (len(drawn) - 1) / 2), middle, yerr=np.nan_to_num(ends), color=colour, marker=marker,
            linestyle=line, capsize=3, markersize=6, linewidth=1.6, label=method,
        )  # fmt: skip
    clean = data[data["rate"].isna() & (data["method"] == "true counts")]
    if len(clean) and np.isfinite(clean["middle"].iloc[0]):
        ax.axhline(
            clean["middle"].iloc[0], color="black", linestyle="--", linewidth=1.2, label="true counts (no noise)"
        )
    ax.set_xticks(ticks, [f"{level:g}" for level in levels])
    ax.set_xlim(-0.4, len(levels) - 0.6)
    ax.set_xlabel("epsilon/N (more noise to the left)")
    ax.set_ylabel(NAMES.get(measure, measure), fontsize=9)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    style.tidy(ax)
    return ax


def tidy_table(found: pd.DataFrame, measure: str, rows: int | None) -> pd.DataFrame:
    """Columns rate (epsilon/N, NaN without noise), method, middle, low, high; raises ValueError."""
    column = measure if measure in found else f"{measure}_mean"
    absent = [name for name in ("level", "method", column) if name not in found]
    if absent:
        raise ValueError(f"table must have the columns level, method and {measure}, got none called {absent[0]}")
    if "rows" in found:
        wanted = int(found["rows"].max()) if rows is None else rows
        if wanted not in set(found["rows"]):
            known = sorted(set(found["rows"].astype(int)))
            raise ValueError(f"rows must be one of {known}, got {rows}")
        found = found[found["rows"] == wanted]
    elif rows is not None:
        raise ValueError(f"rows requires the table of a plan, got {rows} and a table without rows")
    middle = found[column].astype(float)
    low, high = middle, middle
    if f"{measure}_error" in found:
        low, high = middle - 2.0 * found[f"{measure}_error"], middle + 2.0 * found[f"{measure}_error"]
    elif f"{measure}_min" in found:
        low, high = found[f"{measure}_min"], found[f"{measure}_max"]
    rates = [rate_of(str(level)) for level in found["level"]]
    return pd.DataFrame({"rate": rates, "method": found["method"], "middle": middle, "low": low, "high": high})


def rate_of(level: str) -> float:
    """epsilon/N of a level as a plan says it (N:epsilon) or as the demo does; NaN for one without noise."""
    try:
        precision, colon, epsilon = level.partition(":")
        return float(Fraction(epsilon) / Fraction(precision) if colon else Fraction(level))
    except (ValueError, ZeroDivisionError):
        return float("nan")
